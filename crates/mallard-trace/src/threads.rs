//! Reads the threads of a process. Finds the process of a trace that used the most CPU time.

use crate::error::Result;
use crate::hash::NumberMap;
use crate::tables::schema::{PROCESSES, THREADS};
use crate::trace::Trace;
use std::cmp::Reverse;

/// A row of the table `threads`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Recorded {
    pub tid: i32,
    /// The time when the thread started. `None` if unknown.
    pub t0: Option<i64>,
    /// The time when the thread exited. `None` if unknown.
    pub t1: Option<i64>,
    /// Number of events of the thread.
    pub events: u64,
}

/// A process of a trace.
pub(crate) struct Process {
    /// The number of the process, as in the column `proc`. `None` if no process has events.
    pub number: Option<i32>,
    /// The threads with events, sorted by start time.
    pub threads: Vec<Recorded>,
    /// Number of other processes with events.
    pub others: u64,
    /// The share of the process in all events, or its share in the CPU time of all processes,
    /// whichever is smaller.
    pub share: f64,
}

/// The CPU time and the number of events of the threads of a process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Work {
    /// CPU time in ns; 0 if it is unknown.
    cpu_ns: u64,
    events: u64,
}

impl Work {
    /// Returns the share in all events, or the share in the CPU time of all processes, whichever is
    /// smaller.
    fn share_of(self, all: Work) -> f64 {
        let share = |part: u64, all: u64| if all == 0 { 1.0 } else { part as f64 / all as f64 };
        share(self.events, all.events).min(share(self.cpu_ns, all.cpu_ns))
    }
}

impl Process {
    /// Reads the threads of the process `wanted`. If `wanted` is `None`, chooses the process with
    /// the most CPU time. If CPU times are equal, or if the CPU time of any thread is unknown,
    /// chooses the process with the most events.
    pub fn read(trace: &Trace, wanted: Option<i32>) -> Result<Process> {
        let table = trace.table(&THREADS)?;
        let (tids, processes) = (table.i64s("tid")?, table.i64s("proc")?);
        let (starts, ends) = (table.i64s("t0")?, table.i64s("t1")?);
        let events = table.i64s("events")?;
        let cpu = table.i64s("cpu_ns")?;
        let mut counts: NumberMap<u32, Work> = NumberMap::default();
        let mut all = Work::default();
        let rows = || (0..tids.len()).filter(|&row| events[row] > 0);
        // If any CPU time is unknown, CPU times are not compared, because many processes may have
        // exited before their CPU time was read.
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

    /// Lists the first 8 processes of a trace for an error message.
    pub fn list(trace: &Trace) -> Result<String> {
        let table = trace.table(&PROCESSES)?;
        let numbers = table.i64s("proc")?.into_iter().zip(table.texts("path")?);
        let text = |(number, path)| format!("{number} ({path})");
        Ok(numbers.take(8).map(text).collect::<Vec<_>>().join(", "))
    }
}

/// Maps thread IDs to indices.
#[derive(Default)]
pub(crate) struct Indices {
    of: NumberMap<u32, u32>,
    /// The thread that was looked up last. Most events have the same thread as the previous event.
    last: Option<(i32, usize)>,
}

impl Indices {
    /// Returns the index of a thread, or `None` if it has no index.
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

    /// Sets the index of a thread, unless the thread already has one. Returns the index.
    pub fn insert_first(&mut self, tid: i32, index: usize) -> usize {
        *self.of.entry(tid as u32).or_insert(index as u32) as usize
    }

    /// Returns the index of the thread that was looked up last.
    pub fn latest(&self) -> Option<usize> {
        self.last.map(|(_, index)| index)
    }
}
