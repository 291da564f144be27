//! Allocates indices of slots and targets to threads, and reuses freed indices.
//!
//! A thread prefers the index that it freed last. This needs no wait, because the thread itself has
//! ended the previous use of the index. Indices that other threads freed are reused, the oldest
//! first, only if there are more of them than `spare`. Before the reuse, the thread waits for the
//! thread that freed the index. So at any time
//!
//! ```text
//! indices  <=  indices in use  +  spare  +  1
//! ```
//!
//! A thread that needs a new index gets a group of indices, and reserves the rest of the group for
//! itself if `spare` allows it. The slots of a group fill two cache lines. Without groups, threads
//! that start together would get alternating slots. Unlike the threads of the program, they would
//! then write to the same cache lines (false sharing) until the end of the replay.

use std::collections::VecDeque;

/// A free index, and the position at which its thread freed it. Position 0 means that the index was
/// never used, so no thread needs to wait.
type Free = (u32, u64);

/// Allocates indices from 0 on.
pub(super) struct Numbers {
    /// For each thread, the indices that the thread freed, the oldest first.
    free: Vec<VecDeque<Free>>,
    free_count: usize,
    spare: usize,
    group: u32,
    count: u32,
    /// The thread from which a freed index was last reused by another thread.
    victim: usize,
}

/// An index that a thread may use now.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Taken {
    pub number: u32,
    /// The thread to wait for before using the index, and its position. `None` if no wait is
    /// necessary.
    pub after: Option<(usize, u64)>,
    /// Whether the index is the first of a new group.
    pub is_new: bool,
}

impl Numbers {
    /// Makes an empty set. A thread gets `group` new indices at a time.
    pub fn new(spare: usize, group: u32) -> Self {
        Numbers { free: Vec::new(), free_count: 0, spare, group, count: 0, victim: 0 }
    }

    /// Returns the number of indices, both in use and free.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Allocates an index to a thread. Returns `None` if no index is free and `may_grow` is false,
    /// or if all 2^32 indices are in use.
    pub fn take(&mut self, thread: usize, may_grow: bool) -> Option<Taken> {
        if let Some((number, _)) = self.free.get_mut(thread).and_then(VecDeque::pop_back) {
            self.free_count -= 1;
            return Some(Taken { number, after: None, is_new: false });
        }
        if self.free_count > self.spare || !may_grow && self.free_count > 0 {
            return Some(self.take_from_other());
        }
        if !may_grow {
            return None;
        }
        self.grow(thread)
    }

    /// Adds a group of indices. The thread gets the first index. The others are added to the
    /// thread's free indices.
    fn grow(&mut self, thread: usize) -> Option<Taken> {
        let number = self.count;
        let unused = self.spare - self.free_count;
        let group = self.group.min(u32::try_from(unused + 1).unwrap_or(u32::MAX));
        self.count = number.checked_add(group)?;
        (number + 1..self.count).rev().for_each(|other| self.give(thread, other, 0));
        Some(Taken { number, after: None, is_new: true })
    }

    /// Reuses the oldest free index of the thread `victim`, or of the thread with the most free
    /// indices if `victim` has none.
    fn take_from_other(&mut self) -> Taken {
        if self.free[self.victim].is_empty() {
            let most = self.free.iter().enumerate().max_by_key(|(_, free)| free.len());
            self.victim = most.map_or(0, |(thread, _)| thread);
        }
        let (number, position) = self.free[self.victim].pop_front().expect("a free number");
        self.free_count -= 1;
        let after = (position > 0).then_some((self.victim, position));
        Taken { number, after, is_new: false }
    }

    /// Frees an index of a thread that has reached `position`.
    pub fn give(&mut self, thread: usize, number: u32, position: u64) {
        if self.free.len() <= thread {
            self.free.resize_with(thread + 1, VecDeque::new);
        }
        self.free[thread].push_back((number, position));
        self.free_count += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(number: u32, after: Option<(usize, u64)>, is_new: bool) -> Option<Taken> {
        Some(Taken { number, after, is_new })
    }

    #[test]
    fn a_thread_gets_the_slot_index_that_it_returned_last() {
        let mut numbers = Numbers::new(10, 1);
        assert_eq!(numbers.take(0, true), taken(0, None, true));
        assert_eq!(numbers.take(0, true), taken(1, None, true));
        numbers.give(0, 0, 5);
        numbers.give(0, 1, 6);
        assert_eq!(numbers.take(0, true), taken(1, None, false));
        assert_eq!(numbers.take(1, true), taken(2, None, true));
        assert_eq!(numbers.count(), 3);
    }

    #[test]
    fn slot_indices_of_other_threads_are_reused_if_many_are_free() {
        let mut numbers = Numbers::new(2, 1);
        (0..3).for_each(|_| assert!(numbers.take(0, true).is_some()));
        for number in 0..3 {
            numbers.give(1, number, 10 + u64::from(number));
        }
        assert_eq!(numbers.take(0, true), taken(0, Some((1, 10)), false));
        assert_eq!(numbers.take(0, true), taken(3, None, true));
    }

    #[test]
    fn a_thread_that_gets_one_slot_index_reserves_the_rest_of_its_group() {
        let mut numbers = Numbers::new(10, 4);
        assert_eq!(numbers.take(0, true), taken(0, None, true));
        assert_eq!(numbers.take(1, true), taken(4, None, true));
        assert_eq!(numbers.take(0, true), taken(1, None, false));
        assert_eq!(numbers.take(1, true), taken(5, None, false));
        assert_eq!(numbers.count(), 8);
    }

    #[test]
    fn a_group_of_slot_indices_is_smaller_if_too_many_would_be_free() {
        let mut numbers = Numbers::new(2, 4);
        assert_eq!(numbers.take(0, true), taken(0, None, true));
        assert_eq!(numbers.take(1, true), taken(3, None, true));
        assert_eq!(numbers.count(), 4);
    }

    #[test]
    fn when_all_slot_indices_exist_any_free_one_is_reused() {
        let mut numbers = Numbers::new(10, 1);
        assert_eq!(numbers.take(0, false), None);
        numbers.take(0, true);
        numbers.give(0, 0, 7);
        assert_eq!(numbers.take(1, false), taken(0, Some((0, 7)), false));
        assert_eq!(numbers.take(1, false), None);
    }
}
