//! Finds the process of each thread of a trace, and the times when the processes exited.

use crate::error::Result;
use crate::tables::schema::{PROCESSES, THREADS};
use crate::threads::Indices;
use crate::trace::Trace;
use std::collections::VecDeque;

/// The process of each thread, and the times when the processes exited.
pub(super) struct Owners {
    /// The process of each thread, indexed by the row in the table `threads`.
    processes: Vec<u32>,
    indices: Indices,
    /// The times when processes exited, as (time, process), sorted by time. Empty for a trace with
    /// one process, whose blocks count as in use at the end of the trace.
    ends: VecDeque<(i64, u32)>,
}

impl Owners {
    pub fn read(trace: &Trace) -> Result<Owners> {
        let threads = trace.table(&THREADS)?;
        let numbers = threads.i64s("tid")?.into_iter().zip(threads.i64s("proc")?);
        let processes = trace.table(&PROCESSES)?;
        let mut ends: Vec<(i64, u32)> = processes
            .i64s("t1")?
            .into_iter()
            .zip(processes.i64s("proc")?)
            .filter(|&(t1, _)| t1 >= 0)
            .map(|(t1, process)| (t1, process as u32))
            .collect();
        ends.sort_unstable();
        if processes.rows() < 2 {
            ends.clear();
        }
        let (processes, indices) = (Vec::new(), Indices::default());
        let mut owners = Owners { processes, indices, ends: ends.into() };
        for (tid, process) in numbers {
            owners.add(tid as i32, process as u32);
        }
        Ok(owners)
    }

    /// Adds a thread. If a corrupt table has several rows with the same thread number, the first
    /// row counts.
    fn add(&mut self, tid: i32, process: u32) -> usize {
        self.processes.push(process);
        self.indices.insert_first(tid, self.processes.len() - 1)
    }

    /// Returns the index of a thread by its number. If a corrupt trace lacks the thread, adds the
    /// thread without a process.
    #[inline]
    pub fn thread(&mut self, tid: i32) -> usize {
        self.indices.get(tid).unwrap_or_else(|| self.add(tid, u32::MAX))
    }

    /// Returns the process of a thread, by the thread's index.
    #[inline]
    pub fn process(&self, thread: u32) -> u32 {
        self.processes[thread as usize]
    }

    #[inline]
    pub fn has_end_before(&self, now: i64) -> bool {
        self.ends.front().is_some_and(|&(t1, _)| t1 < now)
    }

    /// Returns the next process that exited before `now`, and the time of its exit.
    pub fn next_end(&mut self, now: i64) -> Option<(i64, u32)> {
        self.has_end_before(now).then(|| self.ends.pop_front()).flatten()
    }
}
