//! Finds the process of each thread of a trace, and the ends of the processes.

use crate::error::Result;
use crate::hash::NumberMap;
use crate::tables::schema::{PROCESSES, THREADS};
use crate::trace::Trace;
use std::collections::VecDeque;

/// The process of each thread, and the ends of the processes.
pub(super) struct Owners {
    /// The number and the process of each thread, in the order of the table `threads`.
    threads: Vec<(i32, u32)>,
    index_of: NumberMap<u32, u32>,
    /// The number of the thread that was looked up last, and its index.
    last: (i32, u32),
    /// The ends of the processes, the earliest first. Empty if there is a single process: its
    /// blocks count as in use at the end of the trace.
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
        let mut owners = Owners {
            threads: Vec::new(),
            index_of: NumberMap::default(),
            last: (-1, u32::MAX),
            ends: ends.into(),
        };
        for (tid, process) in numbers {
            owners.add(tid as i32, process as u32);
        }
        Ok(owners)
    }

    fn add(&mut self, tid: i32, process: u32) -> u32 {
        let index = self.threads.len() as u32;
        self.threads.push((tid, process));
        *self.index_of.entry(tid as u32).or_insert(index)
    }

    /// The index of a thread, by its number.
    #[inline]
    pub fn thread(&mut self, tid: i32) -> u32 {
        if self.last.0 != tid || self.last.1 == u32::MAX {
            self.last = (tid, self.find(tid));
        }
        self.last.1
    }

    /// Finds the index of a thread. Threads that a damaged trace lacks belong to no process.
    fn find(&mut self, tid: i32) -> u32 {
        match self.index_of.get(&(tid as u32)) {
            Some(&index) => index,
            None => self.add(tid, u32::MAX),
        }
    }

    /// The process of a thread, by the thread's index.
    #[inline]
    pub fn process(&self, thread: u32) -> u32 {
        self.threads[thread as usize].1
    }

    #[inline]
    pub fn has_end_before(&self, now: i64) -> bool {
        self.ends.front().is_some_and(|&(t1, _)| t1 < now)
    }

    /// The next process that ended before `now`, and the time of its end.
    pub fn next_end(&mut self, now: i64) -> Option<(i64, u32)> {
        if self.has_end_before(now) {
            self.ends.pop_front()
        } else {
            None
        }
    }
}
