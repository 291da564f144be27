//! Writes tracks for processes, threads, and counters over time.

use super::proto::{
    CounterDescriptor, Packet, ProcessDescriptor, ThreadDescriptor, TrackDescriptor, TrackEvent,
    COUNTER, SLICE_BEGIN, SLICE_END, UNIT_BYTES, UNIT_COUNT,
};
use super::{timestamp, Packets, Result};
use mallard_trace::manifest::Manifest;
use mallard_trace::tables::schema::{CPU, PROCESSES, SAMPLES, THREADS};
use mallard_trace::tables::Table;
use mallard_trace::Trace;
use std::collections::HashMap;
use std::io;

/// The counters of a process, each with the column of the table `samples`, the title, and the unit.
const COUNTERS: [(&str, &str, i32); 6] = [
    ("rss", "resident bytes", UNIT_BYTES),
    ("pss", "proportional resident bytes", UNIT_BYTES),
    ("anonymous", "anonymous bytes", UNIT_BYTES),
    ("huge", "bytes in huge pages", UNIT_BYTES),
    ("minor_faults", "page faults", UNIT_COUNT),
    ("major_faults", "page faults that read a file", UNIT_COUNT),
];

/// The processes of a trace with their IDs in Perfetto.
pub(super) struct Processes {
    /// For each process, its number in the trace, its process ID, and its track.
    all: Vec<(i64, i32, u64)>,
}

impl Processes {
    /// Returns the ID of the first process.
    pub fn first_pid(&self) -> i32 {
        self.all.first().map_or(1, |&(_, pid, _)| pid)
    }

    fn find(&self, number: i64) -> Option<(i32, u64)> {
        let found = self.all.iter().find(|&&(process, ..)| process == number);
        found.or(self.all.first()).map(|&(_, pid, track)| (pid, track))
    }

    /// Returns the track of the only process. `None` if the trace has several processes.
    fn only(&self) -> Option<u64> {
        match self.all.as_slice() {
            [(_, _, track)] => Some(*track),
            _ => None,
        }
    }
}

/// Writes all tracks.
pub(super) fn write(trace: &Trace, packets: &mut Packets) -> Result<Processes> {
    let mut tracks = Tracks { packets, next: 0 };
    let processes = tracks.processes(&trace.table(&PROCESSES)?)?;
    let samples = trace.table(&SAMPLES)?;
    tracks.live(&samples, trace.manifest(), &processes)?;
    tracks.system(&samples, &processes)?;
    let end = trace.manifest().totals.duration_ns;
    let threads = tracks.threads(&trace.table(&THREADS)?, &processes, end)?;
    tracks.cpu(&trace.table(&CPU)?, &threads)?;
    Ok(processes)
}

/// A writer of tracks, which gives each track a new number.
struct Tracks<'a, 'b> {
    packets: &'a mut Packets<'b>,
    next: u64,
}

impl Tracks<'_, '_> {
    fn add(&mut self, track: TrackDescriptor) -> io::Result<u64> {
        self.next += 1;
        let track = TrackDescriptor { id: Some(self.next), ..track };
        self.packets.write(Packet { track: Some(track), ..Packet::default() })?;
        Ok(self.next)
    }

    fn counter(&mut self, name: &str, unit: i32, parent: Option<u64>) -> io::Result<u64> {
        let counter = CounterDescriptor { unit: Some(unit), unit_name: None };
        let name = Some(name.to_string());
        self.add(TrackDescriptor { name, parent, counter: Some(counter), ..Default::default() })
    }

    fn event(&mut self, ns: i64, event: TrackEvent) -> io::Result<()> {
        let timestamp = Some(timestamp(ns));
        self.packets.write(Packet { timestamp, event: Some(event), ..Packet::default() })
    }

    fn value(&mut self, track: u64, ns: i64, value: i64) -> io::Result<()> {
        let (kind, track, value) = (Some(COUNTER), Some(track), Some(value));
        self.event(ns, TrackEvent { kind, track, value, ..TrackEvent::default() })
    }

    fn processes(&mut self, table: &Table) -> Result<Processes> {
        let (numbers, pids) = (table.i64s("proc")?, table.i64s("pid")?);
        let mut all = Vec::new();
        for ((number, pid), path) in numbers.into_iter().zip(pids).zip(table.texts("path")?) {
            // An imported trace has no process IDs. Perfetto treats process 0 as the idle process,
            // so the ID is at least 1.
            let pid = if pid > 0 { pid as i32 } else { number.max(1) as i32 };
            let name = path.rsplit('/').next().filter(|name| !name.is_empty()).map(str::to_string);
            let process = Some(ProcessDescriptor { pid: Some(pid), name: name.clone() });
            let track = self.add(TrackDescriptor { name, process, ..Default::default() })?;
            all.push((number, pid, track));
        }
        Ok(Processes { all })
    }

    /// Writes the bytes and blocks that the whole program has in use at the start, at each sample,
    /// at the peak, and at the end.
    fn live(&mut self, samples: &Table, manifest: &Manifest, of: &Processes) -> Result<()> {
        let totals = &manifest.totals;
        let all = &totals.sites;
        let (bytes, blocks) = (samples.i64s("live_bytes")?, samples.i64s("live_blocks")?);
        let mut points: Vec<(i64, i64, i64)> = samples
            .i64s("t_ns")?
            .into_iter()
            .zip(bytes)
            .zip(blocks)
            .map(|((t, bytes), blocks)| (t, bytes, blocks))
            .collect();
        points.push((0, 0, 0));
        points.push((all.peak_t, all.peak_bytes, all.peak_allocs));
        points.push((totals.duration_ns, all.live_bytes, all.live_allocs));
        points.sort_by_key(|&(t, ..)| t);
        let bytes = self.counter("live bytes", UNIT_BYTES, of.only())?;
        let blocks = self.counter("live blocks", UNIT_COUNT, of.only())?;
        for (t, live_bytes, live_blocks) in points {
            self.value(bytes, t, live_bytes)?;
            self.value(blocks, t, live_blocks)?;
        }
        Ok(())
    }

    /// Writes the counters that the system reports for each process.
    fn system(&mut self, samples: &Table, processes: &Processes) -> Result<()> {
        let (times, numbers) = (samples.i64s("t_ns")?, samples.i64s("proc")?);
        for (column, name, unit) in COUNTERS {
            let mut tracks: HashMap<i64, u64> = HashMap::new();
            let values = samples.i64s(column)?;
            for ((&t, &number), value) in times.iter().zip(&numbers).zip(values) {
                if value < 0 {
                    continue; // the system did not report this value
                }
                let track = match tracks.get(&number) {
                    Some(&track) => track,
                    None => {
                        let parent = processes.find(number).map(|(_, track)| track);
                        let track = self.counter(name, unit, parent)?;
                        tracks.insert(number, track);
                        track
                    }
                };
                self.value(track, t, value)?;
            }
        }
        Ok(())
    }

    /// Writes a track for each thread, with a bar from its start to its end. Returns the tracks.
    fn threads(
        &mut self,
        table: &Table,
        processes: &Processes,
        end: i64,
    ) -> Result<HashMap<i64, u64>> {
        let column = |name| table.i64s(name);
        let (numbers, of, ids) = (column("tid")?, column("proc")?, column("system_tid")?);
        let (begins, ends) = (column("t0")?, column("t1")?);
        let mut tracks = HashMap::new();
        for (row, name) in table.texts("name")?.into_iter().enumerate() {
            let (pid, parent) = processes.find(of[row]).unwrap_or((1, 0));
            let tid = Some(if ids[row] > 0 { ids[row] } else { pid.into() });
            let thread = ThreadDescriptor { pid: Some(pid), tid, name: Some(name.clone()) };
            let track = TrackDescriptor {
                parent: (parent > 0).then_some(parent),
                thread: Some(thread),
                ..TrackDescriptor::default()
            };
            let track = self.add(track)?;
            let (begin, end) = (begins[row].max(0), if ends[row] < 0 { end } else { ends[row] });
            let event = |kind, name| TrackEvent {
                kind: Some(kind),
                track: Some(track),
                name,
                ..TrackEvent::default()
            };
            let bar = if name.is_empty() { "thread".to_string() } else { name };
            self.event(begin, event(SLICE_BEGIN, Some(bar)))?;
            self.event(end.max(begin), event(SLICE_END, None))?;
            tracks.insert(numbers[row], track);
        }
        Ok(tracks)
    }

    /// Writes the CPU time of each thread between two readings, as a share of the elapsed time.
    fn cpu(&mut self, table: &Table, threads: &HashMap<i64, u64>) -> Result<()> {
        /// The track of a thread and the last reading of its CPU time.
        struct Thread {
            track: u64,
            last: (i64, i64),
        }
        let mut known: HashMap<i64, Thread> = HashMap::new();
        let readings = table.i64s("t_ns")?.into_iter().zip(table.i64s("cpu_ns")?);
        for (number, (t, cpu)) in table.i64s("tid")?.into_iter().zip(readings) {
            let Some(&parent) = threads.get(&number) else { continue };
            let Some(thread) = known.get_mut(&number) else {
                let unit_name = Some("%".to_string());
                let track = self.add(TrackDescriptor {
                    name: Some("CPU time".to_string()),
                    parent: Some(parent),
                    counter: Some(CounterDescriptor { unit: None, unit_name }),
                    ..TrackDescriptor::default()
                })?;
                known.insert(number, Thread { track, last: (t, cpu) });
                continue;
            };
            let (elapsed, used) = (t - thread.last.0, (cpu - thread.last.1).max(0));
            if elapsed > 0 {
                thread.last = (t, cpu);
                let track = thread.track;
                // A counter keeps a value until the next value, so the share is written at the
                // start of its interval.
                let share = (100.0 * used as f64 / elapsed as f64).round().min(100.0);
                self.value(track, t - elapsed, share as i64)?;
            }
        }
        Ok(())
    }
}
