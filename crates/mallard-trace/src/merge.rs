//! Sorts the events of all threads by time, with bounded memory.
//!
//! The stream has the events of a single thread in order. Events of different threads are out of
//! order by at most the time between two checkpoints. So at a checkpoint, all events before the
//! time of the checkpoint can be sorted and passed to the caller.

/// An item with a time, in ticks.
pub trait Timed {
    /// Returns the time.
    fn t(&self) -> u64;
}

/// Stores events as long as events with an earlier time may still arrive.
pub struct Merge<T> {
    held: Vec<T>,
    held_max: usize,
    /// The time of the latest event that was passed to the caller.
    last: u64,
    inversions: u64,
}

impl<T: Timed> Merge<T> {
    /// Makes a buffer for at most `held_max` events. If more events occur between two checkpoints,
    /// the caller must take the earlier half out of the buffer without a checkpoint.
    pub fn new(held_max: usize) -> Self {
        Merge { held: Vec::new(), held_max: held_max.max(2), last: 0, inversions: 0 }
    }

    /// Adds the next event of the stream. Returns true if the buffer is full, so that the caller
    /// must call [`Merge::half`] now.
    #[inline]
    pub fn push(&mut self, event: T) -> bool {
        self.held.push(event);
        self.held.len() >= self.held_max
    }

    /// Removes all events before `t`, and calls `each` with them in time order.
    pub fn before(&mut self, t: u64, each: impl FnMut(T)) {
        self.sort();
        let count = self.held.partition_point(|event| event.t() < t);
        self.pass(count, each);
    }

    /// Frees the memory for more than `kept` events that are no longer held.
    pub fn shrink(&mut self, kept: usize) {
        if self.held.capacity() > kept {
            self.held.shrink_to(kept);
        }
    }

    /// Removes the earlier half of the events, and calls `each` with them in time order.
    pub fn half(&mut self, each: impl FnMut(T)) {
        self.sort();
        self.pass(self.held.len() / 2, each);
    }

    /// Removes all events, and calls `each` with them in time order.
    pub fn all(&mut self, each: impl FnMut(T)) {
        self.sort();
        self.pass(self.held.len(), each);
    }

    /// Returns the number of events that were passed to the caller after an event with a later
    /// time. The thread of such an event was stopped after its call, before it could write the
    /// event. Blocks are still assigned correctly.
    pub fn inversions(&self) -> u64 {
        self.inversions
    }

    /// Sorts the events by time. The sort is stable, so events of one thread at the same tick stay
    /// in order. The sort is fast, because the events of each thread are already sorted.
    fn sort(&mut self) {
        self.held.sort_by_key(Timed::t);
    }

    fn pass(&mut self, count: usize, mut each: impl FnMut(T)) {
        for event in self.held.drain(..count) {
            if event.t() < self.last {
                self.inversions += 1;
            } else {
                self.last = event.t();
            }
            each(event);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Timed for (u64, u32) {
        fn t(&self) -> u64 {
            self.0
        }
    }

    #[test]
    fn events_before_a_checkpoint_are_returned_in_order_and_others_are_held() {
        let mut merge = Merge::new(100);
        for event in [(1, 0), (5, 0), (2, 1), (3, 1), (9, 1)] {
            assert!(!merge.push(event));
        }
        let mut seen = Vec::new();
        merge.before(5, |event| seen.push(event));
        assert_eq!(seen, [(1, 0), (2, 1), (3, 1)]);
        merge.push((4, 2));
        merge.all(|event| seen.push(event));
        assert_eq!(seen[3..], [(4, 2), (5, 0), (9, 1)]);
        assert_eq!(merge.inversions(), 0);
    }

    #[test]
    fn an_event_that_arrives_too_late_is_counted() {
        let mut merge = Merge::new(100);
        merge.push((7, 0));
        merge.before(8, |_| ());
        merge.push((6, 1));
        merge.all(|event| assert_eq!(event, (6, 1)));
        assert_eq!(merge.inversions(), 1);
    }

    #[test]
    fn without_checkpoints_the_earlier_half_of_the_events_is_returned() {
        let mut merge = Merge::new(4);
        let mut seen = Vec::new();
        for t in [4, 3, 2, 1] {
            if merge.push((t, 0)) {
                merge.half(|event| seen.push(event.0));
            }
        }
        assert_eq!(seen, [1, 2]);
    }
}
