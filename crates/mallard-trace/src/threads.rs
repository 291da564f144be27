//! The threads of a process, and the process of a trace that did the most.

use crate::error::Result;
use crate::hash::NumberMap;
use crate::tables::schema::{PROCESSES, THREADS};
use crate::trace::Trace;
use std::cmp::Reverse;

/// A row of the table `threads`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Recorded {
    pub tid: i32,
    /// When the thread started, if that is known.
    pub t0: Option<i64>,
    /// When the thread ended, if that is known.
    pub t1: Option<i64>,
    /// How many events the thread has.
    pub events: u64,
}

/// A process of a trace.
pub(crate) struct Process {
    /// The number of the process, if the trace has it.
    pub number: Option<i32>,
    /// The threads with events, in the order of their starts.
    pub threads: Vec<Recorded>,
    /// How many other processes have events.
    pub others: u64,
    /// The share of the process in the events or in the CPU time of all processes: the smaller one.
    pub share: f64,
}

/// What the processes of a trace did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Work {
    /// CPU time in ns; 0 if it is unknown.
    cpu_ns: u64,
    events: u64,
}

impl Work {
    /// The share in the whole: of the events or of the CPU time, whichever is smaller.
    fn share_of(self, all: Work) -> f64 {
        let share = |part: u64, all: u64| if all == 0 { 1.0 } else { part as f64 / all as f64 };
        share(self.events, all.events).min(share(self.cpu_ns, all.cpu_ns))
    }
}

impl Process {
    /// Reads the threads of the process `wanted`, or else of the process with the most CPU time. If the
    /// CPU times are equal, or that of any thread is unknown, the number of events decides.
    pub fn read(trace: &Trace, wanted: Option<i32>) -> Result<Process> {
        let table = trace.table(&THREADS)?;
        let (tids, processes) = (table.i64s("tid")?, table.i64s("proc")?);
        let (starts, ends) = (table.i64s("t0")?, table.i64s("t1")?);
        let events = table.i64s("events")?;
        let cpu = table.i64s("cpu_ns")?;
        let mut counts: NumberMap<u32, Work> = NumberMap::default();
        let mut all = Work::default();
        let rows = || (0..tids.len()).filter(|&row| events[row] > 0);
        // A process that was too short for a sample of its CPU time may be one of many.
        let is_timed = rows().all(|row| cpu[row] >= 0);
        for row in rows() {
            for work in [counts.entry(processes[row] as u32).or_default(), &mut all] {
                work.events += events[row] as u64;
                work.cpu_ns += if is_timed { cpu[row] as u64 } else { 0 };
            }
        }
        let most = || {
            let order = |&(&process, &work): &(&u32, &Work)| (work, Reverse(process));
            counts.iter().max_by_key(order).map(|(&process, _)| process as i32)
        };
        let number = wanted.or_else(most);
        let is_there = number.is_some_and(|number| counts.contains_key(&(number as u32)));
        let others = counts.len() as u64 - u64::from(is_there);
        let own = number.and_then(|number| counts.get(&(number as u32))).copied();
        let share = own.map_or(1.0, |own| own.share_of(all));
        let known = |time: i64| (time >= 0).then_some(time);
        let is_wanted = |&row: &usize| Some(processes[row] as i32) == number && events[row] > 0;
        let recorded = |row: usize| Recorded {
            tid: tids[row] as i32,
            t0: known(starts[row]),
            t1: known(ends[row]),
            events: events[row] as u64,
        };
        let mut threads: Vec<Recorded> = (0..tids.len()).filter(is_wanted).map(recorded).collect();
        threads.sort_by_key(|thread| (thread.t0.unwrap_or(i64::MAX), thread.tid));
        Ok(Process { number, threads, others, share })
    }

    /// The processes of a trace, for an error.
    pub fn list(trace: &Trace) -> Result<String> {
        let table = trace.table(&PROCESSES)?;
        let numbers = table.i64s("proc")?.into_iter().zip(table.texts("path")?);
        let text = |(number, path)| format!("{number} ({path})");
        Ok(numbers.take(8).map(text).collect::<Vec<_>>().join(", "))
    }
}

/// The indices of threads, by their numbers.
#[derive(Default)]
pub(crate) struct Indices {
    of: NumberMap<u32, u32>,
    /// The thread that was looked up last: most events have the same thread as the event before.
    last: Option<(i32, usize)>,
}

impl Indices {
    /// The index of a thread.
    #[inline]
    pub fn get(&mut self, tid: i32) -> Option<usize> {
        match self.last {
            Some((last, index)) if last == tid => Some(index),
            _ => {
                let index = *self.of.get(&(tid as u32))? as usize;
                self.last = Some((tid, index));
                Some(index)
            }
        }
    }

    /// Sets the index of a thread, unless it has one. Returns its index.
    pub fn insert_first(&mut self, tid: i32, index: usize) -> usize {
        *self.of.entry(tid as u32).or_insert(index as u32) as usize
    }

    /// The thread that was looked up last.
    pub fn latest(&self) -> Option<usize> {
        self.last.map(|(_, index)| index)
    }
}
