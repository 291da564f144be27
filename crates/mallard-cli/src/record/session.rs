//! Makes one recording: reads the ring while the program runs, samples the system, and writes the
//! stream.

use super::launch::{Ended, Running};
use super::ring::{Owner, Ring};
use super::system::{Memory, Sampler};
use super::ticks;
use super::unrecorded::RecordedTime;
use mallard_trace::format::{is_family, loss, op, Record, RECORD_BYTES};
use mallard_trace::stream::Writer;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Seek};
use std::ops::Range;
use std::time::{Duration, Instant};

/// How often the ring is read and the system is sampled.
const PASS: Duration = Duration::from_millis(10);

/// When less of the ring is free, the session looks for segments of threads that have ended.
const FREE_SHARE_MIN: f64 = 0.5;

/// Limits that the user has set for a recording.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The part of the run that is recorded, counted from its start.
    pub window: Option<Range<Duration>>,
    /// The recording stops when the stream has this size in bytes.
    pub max_bytes: u64,
}

/// When a recording began.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// The clock of the stream: mallard_trace::format::clock.
    pub clock: u32,
    /// The moment of `Header::start`, in nanoseconds of CLOCK_MONOTONIC.
    pub ns: u64,
    /// When the program was started.
    pub begin: Instant,
}

/// The outcome of a recording.
#[derive(Debug)]
pub struct Outcome {
    /// How the program ended.
    pub ended: Ended,
    /// Wall time of the program.
    pub wall: Duration,
    /// Whether the recorder was loaded.
    pub is_attached: bool,
    /// Why the recorder did not start, if it was loaded.
    pub refused: Option<io::Error>,
    /// Events that were not written, because the stream had become unwritable.
    pub lost_written: u64,
    /// How often a thread waited because the ring was full.
    pub waits: u64,
    /// Mean ticks that recording cost the program for each event; 0 if unknown.
    pub ticks_per_event: f64,
    /// Mean ticks of a free; 0 if unknown.
    pub ticks_per_free: f64,
    /// Why the stream could not be written to its end.
    pub write_error: Option<io::Error>,
    /// Whether the recording stopped because the stream reached `max_bytes`.
    pub reached_max_bytes: bool,
    /// CPU time of processes that were not recorded, in nanoseconds.
    pub unrecorded_ns: u64,
}

/// A running recording.
pub struct Session {
    ring: Ring,
    running: Running,
    /// `None` after a failed write.
    writer: Option<Writer<File>>,
    file: File,
    limits: Limits,
    start: Start,
    /// The running processes, by process id.
    samplers: BTreeMap<u32, (Owner, Sampler)>,
    /// The threads of these processes, by thread id.
    threads: BTreeMap<u32, Owner>,
    /// The CPU time of these processes.
    recorded: RecordedTime,
    lost_written: u64,
    write_error: Option<io::Error>,
    reached_max_bytes: bool,
}

impl Session {
    /// A session of a program that was just started.
    pub fn new(
        ring: Ring,
        running: Running,
        file: File,
        writer: Writer<File>,
        limits: Limits,
        start: Start,
        recorded: RecordedTime,
    ) -> Session {
        Session {
            ring,
            running,
            writer: Some(writer),
            file,
            limits,
            start,
            samplers: BTreeMap::new(),
            threads: BTreeMap::new(),
            recorded,
            lost_written: 0,
            write_error: None,
            reached_max_bytes: false,
        }
    }

    /// Records until the program, and all followed processes, have ended.
    pub fn run(mut self) -> io::Result<Outcome> {
        let mut ended = None;
        loop {
            if ended.is_some() {
                std::thread::sleep(PASS);
            } else if self.running.wait(PASS)? {
                self.pass(true);
                ended = Some(self.running.reap()?);
            }
            self.apply_limits();
            self.pass(false);
            let Some(ended) = ended else { continue };
            self.ring.seal_segments_of(|owner| !is_alive(owner.system_process));
            self.pass(false);
            if self.ring.owners().is_empty() {
                return Ok(self.finish(ended));
            }
        }
    }

    /// Starts and stops recording, depending on the window and the largest size.
    fn apply_limits(&mut self) {
        if let Some(window) = &self.limits.window {
            self.ring.set_recording(
                !self.reached_max_bytes && window.contains(&self.start.begin.elapsed()),
            );
        }
        let written = self.file.stream_position().unwrap_or(0);
        if written > self.limits.max_bytes && !self.reached_max_bytes {
            self.reached_max_bytes = true;
            self.ring.set_recording(false);
        }
    }

    /// Moves all new records from the ring to the stream, and adds samples of memory and CPU time. If
    /// `last` is set, reads the CPU time of all threads, because the system is about to forget them.
    fn pass(&mut self, last: bool) {
        let (t, ns) = (ticks::now(self.start.clock), ticks::monotonic_ns() - self.start.ns);
        if self.ring.free_share() < FREE_SHARE_MIN {
            self.ring.seal_segments_of(|owner| !is_thread_alive(owner));
        }
        let (writer, lost) = (&mut self.writer, &mut self.lost_written);
        let mut error = None;
        let Ok(()) = self.ring.drain(|thread, records| -> Result<(), std::convert::Infallible> {
            if let Some(w) = writer {
                if let Err(e) = w.piece(thread.into(), t, records) {
                    error = Some(e);
                    *writer = None;
                }
            }
            if writer.is_none() {
                *lost += events_in(records);
            }
            Ok(())
        });
        if let Some(error) = error {
            self.fail(error);
        }
        for owner in self.ring.owners() {
            self.threads.insert(owner.system_thread, owner);
            self.samplers
                .entry(owner.system_process)
                .or_insert_with(|| (owner, Sampler::new(owner.system_process)));
        }
        self.samplers.keys().for_each(|&process| self.recorded.look(process));
        if let Err(error) = self.write_samples(t, ns, last) {
            self.fail(error);
        }
        self.forget_ended_threads();
    }

    /// Forgets ended processes without a segment, and their threads. A process with a segment is
    /// forgotten later, when the segment has been read.
    fn forget_ended_threads(&mut self) {
        let own = self.running.process();
        let with_segments: BTreeSet<u32> =
            self.ring.owners().iter().map(|owner| owner.system_process).collect();
        self.samplers.retain(|&process, _| {
            process == own || with_segments.contains(&process) || is_alive(process)
        });
        let samplers = &self.samplers;
        self.threads.retain(|_, owner| samplers.contains_key(&owner.system_process));
    }

    /// Ends the stream after a failed write. The program runs on without being recorded.
    fn fail(&mut self, error: io::Error) {
        self.writer = None;
        self.ring.set_recording(false);
        self.write_error.get_or_insert(error);
    }

    fn write_samples(&mut self, t: u64, ns: u64, last: bool) -> io::Result<()> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        for (owner, sampler) in self.samplers.values_mut() {
            if let Some(memory) = sampler.memory() {
                write_memory(writer, t, owner.process, &memory)?;
            }
            for (thread, cpu_ns) in sampler.threads(last) {
                if let Some(owner) = self.threads.get(&thread) {
                    writer.record(&Record {
                        stack: owner.thread,
                        ..Record::new(op::CPU, t, cpu_ns, 0)
                    })?;
                }
            }
        }
        writer.checkpoint(t, ns)?;
        writer.flush()
    }

    fn finish(mut self, ended: Ended) -> Outcome {
        let wall = self.start.begin.elapsed();
        if let Some(writer) = self.writer.take() {
            let process =
                self.threads.get(&self.running.process()).map_or(1, |owner| owner.process);
            if let Err(error) = self.write_end(writer, process, &ended) {
                self.fail(error);
            }
        }
        let mean = |(ticks, count): (u64, u64)| ticks as f64 / count.max(1) as f64;
        Outcome {
            ended,
            wall,
            is_attached: self.ring.is_attached(),
            refused: self.ring.refused(),
            lost_written: self.lost_written,
            waits: self.ring.waits(),
            ticks_per_event: mean(self.ring.own_ticks()),
            ticks_per_free: mean(self.ring.free_ticks()),
            write_error: self.write_error,
            reached_max_bytes: self.reached_max_bytes,
            unrecorded_ns: self.recorded.missing(ended.user_ns + ended.system_ns),
        }
    }

    fn write_end(&self, mut writer: Writer<File>, process: u32, ended: &Ended) -> io::Result<()> {
        let t = ticks::now(self.start.clock);
        writer.checkpoint(t, ticks::monotonic_ns() - self.start.ns)?;
        writer.record(&Record {
            stack: process,
            ..Record::new(op::PROCESS_END, t, ended.status as u64, 0)
        })?;
        let lost = [(loss::FULL, self.ring.lost_full()), (loss::NESTED, self.ring.lost_nested())];
        for (cause, count) in lost {
            if count > 0 {
                writer.record(&Record { stack: cause, ..Record::new(op::LOST, t, 0, count) })?;
            }
        }
        writer.finish(t).map(drop)
    }
}

fn write_memory(
    writer: &mut Writer<File>,
    t: u64,
    process: u32,
    memory: &Memory,
) -> io::Result<()> {
    let record = Record { stack: process, ..Record::new(op::MEMORY, t, 0, 0) };
    writer.text(record, &memory.text())
}

fn is_alive(process: u32) -> bool {
    // A process that has ended, but whose parent has not yet waited for it, has no memory.
    std::fs::read_to_string(format!("/proc/{process}/statm"))
        .is_ok_and(|text| !text.starts_with("0 "))
}

fn is_thread_alive(owner: Owner) -> bool {
    let folder = format!("/proc/{}/task/{}", owner.system_process, owner.system_thread);
    std::path::Path::new(&folder).exists()
}

/// Number of events in the records of one piece.
fn events_in(records: &[u8]) -> u64 {
    let mut count = 0;
    let mut rest = records;
    while rest.len() >= RECORD_BYTES {
        let record = Record::from_bytes(rest);
        count += u64::from(is_family(record.op()));
        let tail = (record.tail_bytes() as usize).next_multiple_of(RECORD_BYTES);
        rest = rest.get(RECORD_BYTES + tail..).unwrap_or_default();
    }
    count
}
