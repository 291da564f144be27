//! The threads of the process that is compiled.

use crate::error::Result;
use crate::hash::NumberMap;
use crate::tables::schema::{PROCESSES, THREADS};
use crate::Trace;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

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

/// The process that is compiled.
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

/// A thread while it is compiled.
pub(super) struct ThreadState {
    /// The thread that started this thread. `None` for the first thread.
    pub creator: Option<usize>,
    /// When the thread ended, if that is known.
    pub t1: Option<i64>,
    /// The end of the thread's last call, in nanoseconds.
    pub end_of_call: i64,
    /// The row of the thread's latest event inside a call that starts a thread.
    pub starts_at: Option<u64>,
    /// Events that are still to come.
    pub events_left: u64,
    /// The marks of regions that have begun, the outermost first.
    pub marks: Vec<i32>,
}

/// The threads that have started.
#[derive(Default)]
pub(super) struct Threads {
    states: Vec<ThreadState>,
    by_tid: NumberMap<u32, u32>,
    /// The thread of the last row.
    last: Option<(i32, usize)>,
    /// The threads that have had their last event, by the time of their end: the earliest first.
    ending: BinaryHeap<Reverse<(i64, usize)>>,
    /// The threads that have ended since the last start of a thread.
    ended: Vec<usize>,
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

    /// The thread of the last row.
    pub fn latest(&self) -> Option<usize> {
        self.last.map(|(_, index)| index)
    }

    /// Counts an event of a thread. Returns whether the thread has no more events.
    #[inline]
    pub fn count_event(&mut self, thread: usize) -> bool {
        let state = &mut self.states[thread];
        state.events_left = state.events_left.saturating_sub(1);
        let is_last = state.events_left == 0;
        if let (true, Some(t1)) = (is_last, state.t1) {
            self.ending.push(Reverse((t1, thread)));
        }
        is_last
    }

    /// Returns a thread that has ended by now, and its creator, if the creator has more events. Each
    /// thread is returned once.
    #[inline]
    pub fn next_ended(&mut self, now: i64) -> Option<(usize, Option<usize>)> {
        let &Reverse((t1, thread)) = self.ending.peek()?;
        if t1 > now {
            return None;
        }
        self.ending.pop();
        self.ended.push(thread);
        let creator = self.states[thread].creator;
        Some((thread, creator.filter(|&of| self.states[of].events_left > 0)))
    }

    /// Returns the threads that have ended since this was called last.
    pub fn take_ended(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.ended)
    }

    /// Guesses which thread started a thread at `t0`: the thread that was seen last in a call that
    /// starts threads, and has not ended before `t0`. If no thread was seen in such a call, returns
    /// the first thread, or `None` if no thread has started yet. glibc, C++ and Rust allocate
    /// memory for a new thread inside such a call, so the creator has an event there before the new
    /// thread begins.
    pub fn creator(&self, t0: i64) -> Option<usize> {
        let alive =
            self.states.iter().enumerate().filter(|(_, of)| of.t1.is_none_or(|t1| t1 >= t0));
        let latest = alive.filter_map(|(index, state)| Some((state.starts_at?, index))).max();
        latest.map(|(_, index)| index).or_else(|| (!self.states.is_empty()).then_some(0))
    }
}
