//! Tracks the threads of the process that is compiled.

use crate::instances::Marks;
use crate::threads::Indices;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The state of a thread during compilation.
#[derive(Default)]
pub(super) struct ThreadState {
    /// The thread that started this thread. `None` for the first thread.
    pub creator: Option<usize>,
    /// The time when the thread exited. `None` if unknown.
    pub t1: Option<i64>,
    /// The end of the thread's last call, in nanoseconds.
    pub end_of_call: i64,
    /// The number of rows compiled up to the latest event in which the thread was inside a call
    /// that starts a thread.
    pub starts_at: Option<u64>,
    /// The number of the thread's events that are not compiled yet.
    pub events_left: u64,
    /// The open marked regions, by the nodes that represent their names.
    pub marks: Marks<i32>,
}

/// The threads that have started.
#[derive(Default)]
pub(super) struct Threads {
    states: Vec<ThreadState>,
    pub indices: Indices,
    /// The threads without further events, with the times of their exit. The earliest exit comes
    /// first.
    ending: BinaryHeap<Reverse<(i64, usize)>>,
    /// The threads that have exited since the last start of a thread.
    ended: Vec<usize>,
}

impl Threads {
    /// Adds a thread.
    pub fn add(&mut self, tid: i32, state: ThreadState) {
        self.indices.insert_first(tid, self.states.len());
        self.states.push(state);
    }

    /// Returns the state of a thread.
    #[inline]
    pub fn state(&mut self, thread: usize) -> &mut ThreadState {
        &mut self.states[thread]
    }

    /// Counts an event of a thread. Returns true after the last event of the thread.
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

    /// Returns a thread that has exited before `now`, and its creator if the creator has more
    /// events. Returns each thread only once.
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

    /// Returns the threads that have exited since the last call of this function.
    pub fn take_ended(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.ended)
    }

    /// Guesses which thread started a new thread at time `t0`. The guess is the thread that was
    /// last inside a call that starts threads, unless that thread exited before `t0`. glibc, C++
    /// and Rust allocate memory for a new thread inside such a call, so the creator has an event
    /// before the new thread begins. If no thread was inside such a call, returns the first thread,
    /// or `None` if no thread has started yet.
    pub fn creator(&self, t0: i64) -> Option<usize> {
        let alive =
            self.states.iter().enumerate().filter(|(_, of)| of.t1.is_none_or(|t1| t1 >= t0));
        let latest = alive.filter_map(|(index, state)| Some((state.starts_at?, index))).max();
        latest.map(|(_, index)| index).or_else(|| (!self.states.is_empty()).then_some(0))
    }
}
