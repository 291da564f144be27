//! A stack of numbered things that any thread may push to and pop from.

use crate::loom::atomic::{AtomicU32, AtomicU64, Ordering};

/// The head is { changes 32 | number 32 }: a pop that was overtaken sees that there were changes, even
/// if the same thing is on top again. Things stay where they are while the stack lives.
pub(super) struct Stack(AtomicU64);

/// What is on a stack: the number below it.
pub(super) type Link = AtomicU32;

const NONE: u32 = u32::MAX;

impl Stack {
    #[cfg(not(loom))]
    pub(super) const fn new() -> Self {
        Self(AtomicU64::new(NONE as u64))
    }
    #[cfg(loom)]
    pub(super) fn new() -> Self {
        Self(AtomicU64::new(NONE as u64))
    }

    /// `link` is that of `number`, which is on no stack. What was written to it is seen by who pops
    /// it.
    pub(super) fn push(&self, number: u32, link: &Link) {
        let mut head = self.0.load(Ordering::Relaxed);
        loop {
            link.store(head as u32, Ordering::Relaxed);
            let next = (head >> 32).wrapping_add(1) << 32 | u64::from(number);
            match self.0.compare_exchange_weak(head, next, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    /// `link` gives that of a number.
    pub(super) fn pop<'a>(&self, link: impl Fn(u32) -> &'a Link) -> Option<u32> {
        let mut head = self.0.load(Ordering::Acquire);
        loop {
            let number = head as u32;
            if number == NONE {
                return None;
            }
            // Perhaps it is no longer on the stack; then this is not used.
            let below = link(number).load(Ordering::Relaxed);
            let next = (head >> 32).wrapping_add(1) << 32 | u64::from(below);
            match self.0.compare_exchange_weak(head, next, Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => return Some(number),
                Err(now) => head = now,
            }
        }
    }
}

/// What is on `own`, or else on the first of `all` that has one. None: each of them had none, but
/// perhaps not at one moment.
pub(super) fn find<'a, 'b>(
    own: &Stack,
    mut all: impl Iterator<Item = &'b Stack>,
    link: impl Fn(u32) -> &'a Link + Copy,
) -> Option<u32> {
    own.pop(link).or_else(|| all.find_map(|stack| stack.pop(link)))
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::sync::Arc;
    use loom::thread;
    use std::vec::Vec;

    struct Things(Stack, [Link; 3], [loom::cell::UnsafeCell<u32>; 3]);
    // SAFETY: who pops a thing has it.
    unsafe impl Sync for Things {}
    // SAFETY: the same.
    unsafe impl Send for Things {}

    impl Things {
        fn new(count: u32) -> Arc<Self> {
            let things = Arc::new(Self(
                Stack::new(),
                std::array::from_fn(|_| Link::new(0)),
                std::array::from_fn(|_| loom::cell::UnsafeCell::new(0)),
            ));
            (0..count).for_each(|i| things.0.push(i, &things.1[i as usize]));
            things
        }
        fn pop(&self) -> Option<u32> {
            let popped = self.0.pop(|i| &self.1[i as usize])?;
            // SAFETY: it is this thread's, and loom watches.
            self.2[popped as usize].with_mut(|p| unsafe { *p += 1 });
            Some(popped)
        }
        fn push(&self, number: u32) {
            self.0.push(number, &self.1[number as usize]);
        }
    }

    #[test]
    fn what_is_popped_has_one_owner_and_comes_again() {
        loom::model(|| {
            let things = Things::new(2);
            let other = things.clone();
            let thread = thread::spawn(move || {
                // Pop two and push the first: the case of a head that is the same again.
                let (a, b) = (other.pop(), other.pop());
                a.into_iter().for_each(|a| other.push(a));
                b
            });
            let mine = things.pop();
            let theirs = thread.join().unwrap();
            assert!(mine.is_none() || mine != theirs);
            let mut left: Vec<_> = [mine, theirs].into_iter().flatten().collect();
            left.extend(std::iter::from_fn(|| things.pop()));
            left.sort();
            assert_eq!(left, [0, 1]);
        });
    }

    #[test]
    fn what_is_pushed_by_two_is_all_there() {
        loom::model(|| {
            let things = Things::new(1);
            let other = things.clone();
            let thread = thread::spawn(move || other.push(1));
            things.push(2);
            thread.join().unwrap();
            let mut all: Vec<_> = std::iter::from_fn(|| things.pop()).collect();
            all.sort();
            assert_eq!(all, [0, 1, 2]);
        });
    }

    /// Three fronts. Each gives a full magazine away and looks for an empty one, then takes a full
    /// one and gives the empty one away, as a front does that flushes and then refills.
    #[test]
    fn who_looks_for_an_empty_one_or_a_full_one_finds_it() {
        const FRONTS: usize = 3;
        struct Fronts {
            stacks: [[Stack; 2]; FRONTS], // of each, the full ones and the empty ones
            links: [Link; 2 * FRONTS],
        }
        impl Fronts {
            fn push(&self, own: usize, kind: usize, number: u32) {
                self.stacks[own][kind].push(number, &self.links[number as usize]);
            }
            fn find(&self, own: usize, kind: usize) -> u32 {
                let link = |i: u32| &self.links[i as usize];
                loop {
                    let all = self.stacks.iter().map(|of_front| &of_front[kind]);
                    match find(&self.stacks[own][kind], all, link) {
                        Some(number) => return number,
                        None => thread::yield_now(),
                    }
                }
            }
            fn flush_and_refill(&self, own: usize) {
                self.push(own, 0, (FRONTS + own) as u32);
                let empty = self.find(own, 1);
                let full = self.find(own, 0);
                assert!((empty as usize) < FRONTS && full as usize >= FRONTS);
                self.push(own, 1, empty);
            }
        }
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(|| {
            let fronts = Arc::new(Fronts {
                stacks: std::array::from_fn(|_| [Stack::new(), Stack::new()]),
                links: std::array::from_fn(|_| Link::new(0)),
            });
            (0..FRONTS).for_each(|empty| fronts.push(FRONTS - 1, 1, empty as u32));
            let threads: Vec<_> = (1..FRONTS)
                .map(|own| {
                    let fronts = fronts.clone();
                    thread::spawn(move || fronts.flush_and_refill(own))
                })
                .collect();
            fronts.flush_and_refill(0);
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            let mut left: Vec<_> = (0..FRONTS).map(|_| fronts.find(0, 1)).collect();
            left.sort();
            assert_eq!(left, [0, 1, 2]);
        });
    }
}
