//! The threads of the process that is compiled.

use crate::error::Result;
use crate::hash::NumberMap;
use crate::tables::schema::{PROCESSES, THREADS};
use crate::Trace;

/// A thread as the table `threads` has it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Recorded {
    pub tid: i32,
    /// When it started, if that is known.
    pub t0: Option<i64>,
    /// How many events it has.
    pub events: u64,
}

/// The process that is compiled.
pub(crate) struct Process {
    /// Its number, if the trace has it.
    pub number: Option<i32>,
    /// Its threads that have events, in the order of their starts.
    pub threads: Vec<Recorded>,
    /// How many other processes have events.
    pub others: u64,
}

impl Process {
    /// Reads the threads of the process `wanted`, or else of the process with the most events.
    pub fn read(trace: &Trace, wanted: Option<i32>) -> Result<Process> {
        let table = trace.table(&THREADS)?;
        let (tids, processes) = (table.i64s("tid")?, table.i64s("proc")?);
        let (starts, events) = (table.i64s("t0")?, table.i64s("events")?);
        let mut counts: NumberMap<u32, u64> = NumberMap::default();
        for (&process, &events) in processes.iter().zip(&events).filter(|(_, &events)| events > 0) {
            *counts.entry(process as u32).or_default() += events.max(0) as u64;
        }
        let most = || {
            let order = |(&process, &events): &(&u32, &u64)| (events, std::cmp::Reverse(process));
            counts.iter().max_by_key(order).map(|(&process, _)| process as i32)
        };
        let number = wanted.or_else(most);
        let is_there = number.is_some_and(|number| counts.contains_key(&(number as u32)));
        let others = counts.len() as u64 - u64::from(is_there);
        let rows = tids.iter().zip(&processes).zip(starts.iter().zip(&events));
        let of_process = rows
            .filter(|((_, &process), (_, &events))| Some(process as i32) == number && events > 0);
        let recorded = |((&tid, _), (&t0, &events)): ((&i64, &i64), (&i64, &i64))| Recorded {
            tid: tid as i32,
            t0: (t0 >= 0).then_some(t0),
            events: events as u64,
        };
        let mut threads: Vec<Recorded> = of_process.map(recorded).collect();
        threads.sort_by_key(|thread| (thread.t0.unwrap_or(i64::MAX), thread.tid));
        Ok(Process { number, threads, others })
    }

    /// The processes of a trace, for an error.
    pub fn list(trace: &Trace) -> Result<String> {
        let table = trace.table(&PROCESSES)?;
        let numbers = table.i64s("proc")?.into_iter().zip(table.texts("path")?);
        let text = |(number, path)| format!("{number} ({path})");
        Ok(numbers.take(8).map(text).collect::<Vec<_>>().join(", "))
    }
}

/// A thread while it is compiled.
pub(super) struct ThreadState {
    /// The end of its last call, in nanoseconds.
    pub end_of_call: i64,
    /// The row of its latest event inside a call that starts a thread.
    pub starts_at: Option<u64>,
    /// Events that are still to come.
    pub events_left: u64,
}

/// The threads that have started.
#[derive(Default)]
pub(super) struct Threads {
    states: Vec<ThreadState>,
    by_tid: NumberMap<u32, u32>,
    /// The thread of the last row.
    last: Option<(i32, usize)>,
}

impl Threads {
    /// The index of a thread, if it has started.
    #[inline]
    pub fn index(&mut self, tid: i32) -> Option<usize> {
        match self.last {
            Some((last, index)) if last == tid => Some(index),
            _ => {
                let index = *self.by_tid.get(&(tid as u32))? as usize;
                self.last = Some((tid, index));
                Some(index)
            }
        }
    }

    /// Adds a thread.
    pub fn add(&mut self, tid: i32, state: ThreadState) {
        self.by_tid.insert(tid as u32, self.states.len() as u32);
        self.states.push(state);
    }

    /// The state of a thread.
    #[inline]
    pub fn state(&mut self, thread: usize) -> &mut ThreadState {
        &mut self.states[thread]
    }

    /// The thread that starts a new one: the last that was seen in a call that starts threads, or
    /// the first thread. A new thread has its first event after such a call of its creator, since
    /// glibc allocates memory for the new thread there.
    pub fn creator(&self) -> Option<usize> {
        let starting = self.states.iter().enumerate();
        let latest = starting.filter_map(|(index, state)| Some((state.starts_at?, index))).max();
        latest.map(|(_, index)| index).or_else(|| (!self.states.is_empty()).then_some(0))
    }
}
