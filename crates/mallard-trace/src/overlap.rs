//! Finds calls of different threads that overlapped in time.

use std::collections::VecDeque;

/// The maximum number of calls in the list. If more threads are inside a call at the same time, the
/// additional threads are not counted.
const CALLS_MAX: usize = 64;

/// A call whose duration was measured.
#[derive(Debug, Clone, Copy)]
pub struct TimedCall {
    /// When the call began.
    pub begin: u64,
    /// When the call returned.
    pub end: u64,
    /// The thread that called.
    pub thread: u32,
    /// The index of the site that counts the call.
    pub site: u32,
}

/// The most recent calls, in the order in which they returned. Each call has the number of other
/// threads that were inside a call at the same time.
#[derive(Default)]
pub struct Overlaps {
    calls: VecDeque<(TimedCall, u32)>,
    /// Whether calls of at least two threads were added. Otherwise, no calls can overlap.
    has_threads: bool,
}

impl Overlaps {
    /// Adds the call that returned last. If the list is full, removes the oldest call, and calls
    /// `each` with its site and the number of other threads that were inside a call at the same
    /// time. Does not call `each` as long as all calls are from one thread.
    pub fn add(&mut self, call: TimedCall, each: &mut impl FnMut(u32, u32)) {
        if !self.has_threads {
            self.has_threads =
                self.calls.back().is_some_and(|(last, _)| last.thread != call.thread);
            if !self.has_threads {
                self.calls.clear();
            }
        }
        let mut others = 0;
        let mut seen = 0u64;
        for (earlier, count) in self.calls.iter_mut().rev() {
            if earlier.end < call.begin {
                break;
            }
            let bit = 1u64 << (earlier.thread & 63);
            if earlier.thread != call.thread && seen & bit == 0 {
                seen |= bit;
                others += 1;
                *count += 1;
            }
        }
        self.calls.push_back((call, others));
        if self.calls.len() > CALLS_MAX {
            let (old, count) = self.calls.pop_front().expect("a call");
            each(old.site, count);
        }
    }

    /// Calls `each` for the remaining calls.
    pub fn finish(self, each: &mut impl FnMut(u32, u32)) {
        for (call, count) in self.calls {
            each(call.site, count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn concurrent_calls_of_two_threads_are_counted_as_contention() {
        let mut overlaps = Overlaps::default();
        let mut counts = [0; 3];
        let mut each = |site: u32, count: u32| counts[site as usize] += count;
        let call = |begin, end, thread, site| TimedCall { begin, end, thread, site };
        overlaps.add(call(0, 10, 1, 0), &mut each);
        overlaps.add(call(5, 15, 2, 1), &mut each);
        overlaps.add(call(20, 30, 1, 2), &mut each);
        overlaps.finish(&mut each);
        assert_eq!(counts, [1, 1, 0]);
    }
}
