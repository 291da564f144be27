//! Hands out the numbers of slots and targets, and uses returned numbers again.
//!
//! A thread takes the number that it gave back last. This needs no wait, because the thread itself has
//! ended the previous use of the number. The numbers that other threads gave back are taken, the oldest
//! first, only if there are more of them than `spare`. Before the use, the thread waits for the thread
//! that gave the number back. So at any time
//!
//! ```text
//! numbers  <=  numbers in use  +  spare  +  1
//! ```
//!
//! A thread that needs a new number gets a group of them and keeps the others, if `spare` allows
//! it. The slots of a group fill two cache lines. Without groups, threads that start together would
//! get alternating slots. The threads would then write to the same cache lines (false sharing)
//! until the end of the replay, unlike the threads of the program.

use std::collections::VecDeque;

/// A number that was given back, and the position of the thread at that time. The position is 0 if
/// the number was never used, so that nobody waits for it.
type Free = (u32, u64);

/// The numbers from 0 on.
pub(super) struct Numbers {
    /// For each thread, the numbers that the thread gave back, the oldest first.
    free: Vec<VecDeque<Free>>,
    free_count: usize,
    spare: usize,
    group: u32,
    count: u32,
    /// The thread from which a number was taken last.
    victim: usize,
}

/// A number to use.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Taken {
    pub number: u32,
    /// The thread and the position to wait for, if the number was in use before.
    pub after: Option<(usize, u64)>,
    /// Whether the number is the first of a new group.
    pub is_new: bool,
}

impl Numbers {
    /// Makes an empty set. A thread gets `group` new numbers at a time.
    pub fn new(spare: usize, group: u32) -> Self {
        Numbers { free: Vec::new(), free_count: 0, spare, group, count: 0, victim: 0 }
    }

    /// How many numbers there are.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Takes a number for a thread. Returns `None` if no number is free and `may_grow` forbids new
    /// numbers, or if all 2^32 numbers are in use.
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

    /// Adds a group of numbers. The thread takes the first number. The others count as numbers that it
    /// gave back.
    fn grow(&mut self, thread: usize) -> Option<Taken> {
        let number = self.count;
        let unused = self.spare - self.free_count;
        let group = self.group.min(u32::try_from(unused + 1).unwrap_or(u32::MAX));
        self.count = number.checked_add(group)?;
        (number + 1..self.count).rev().for_each(|other| self.give(thread, other, 0));
        Some(Taken { number, after: None, is_new: true })
    }

    /// Takes the oldest free number of the thread from which a number was taken last. If that thread has
    /// no free number, takes one from the thread that has the most.
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

    /// Takes a number back from a thread that has reached `position`.
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
    fn a_thread_takes_what_it_gave_back_last() {
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
    fn numbers_of_others_are_taken_if_there_are_many() {
        let mut numbers = Numbers::new(2, 1);
        (0..3).for_each(|_| assert!(numbers.take(0, true).is_some()));
        for number in 0..3 {
            numbers.give(1, number, 10 + u64::from(number));
        }
        assert_eq!(numbers.take(0, true), taken(0, Some((1, 10)), false));
        assert_eq!(numbers.take(0, true), taken(3, None, true));
    }

    #[test]
    fn a_thread_that_takes_one_number_reserves_the_rest_of_the_group() {
        let mut numbers = Numbers::new(10, 4);
        assert_eq!(numbers.take(0, true), taken(0, None, true));
        assert_eq!(numbers.take(1, true), taken(4, None, true));
        assert_eq!(numbers.take(0, true), taken(1, None, false));
        assert_eq!(numbers.take(1, true), taken(5, None, false));
        assert_eq!(numbers.count(), 8);
    }

    #[test]
    fn a_group_is_smaller_if_more_numbers_would_be_free_than_allowed() {
        let mut numbers = Numbers::new(2, 4);
        assert_eq!(numbers.take(0, true), taken(0, None, true));
        assert_eq!(numbers.take(1, true), taken(3, None, true));
        assert_eq!(numbers.count(), 4);
    }

    #[test]
    fn a_full_set_takes_any_free_number_or_none() {
        let mut numbers = Numbers::new(10, 1);
        assert_eq!(numbers.take(0, false), None);
        numbers.take(0, true);
        numbers.give(0, 0, 7);
        assert_eq!(numbers.take(1, false), taken(0, Some((0, 7)), false));
        assert_eq!(numbers.take(1, false), None);
    }
}
