//! A stack of numbers that many threads push to and pop from without a lock.

use crate::loom::atomic::{AtomicU32, AtomicU64, Ordering::*};

/// A stack of numbers by Treiber's method (1986). The link of each number is stored elsewhere. The
/// head is a word {tag, top + 1}, whose second half is 0 if the stack is empty. Each pop changes
/// the tag. So the compare-exchange of a thread fails if another thread has popped since the thread
/// read the head. This avoids the ABA problem.
///
/// After 2^32 pops the tag has the same value again. If a thread stops between its read and its
/// compare-exchange for exactly 2^32 pops, and then finds the same number on top, the thread would
/// corrupt the list.
///
/// A link is atomic, because a thread may read the link of a number that another thread has just
/// popped.
pub(crate) struct TaggedStack {
    head: AtomicU64,
}

const ONE_TAG: u64 = 1 << 32;
const NUMBER: u64 = ONE_TAG - 1;

impl TaggedStack {
    #[cfg(not(loom))]
    pub(crate) const fn new() -> Self {
        Self { head: AtomicU64::new(0) }
    }
    #[cfg(loom)]
    pub(crate) fn new() -> Self {
        Self { head: AtomicU64::new(0) }
    }

    /// Pops the top number. `find(n)` returns the link of `n` and a value. Returns the value that
    /// `find` returned for the popped number.
    #[inline(always)]
    pub(crate) fn pop<'a, R>(&self, find: impl Fn(u32) -> (&'a AtomicU32, R)) -> Option<R> {
        let mut head = self.head.load(Acquire);
        loop {
            let number = (head as u32).checked_sub(1)?;
            let (link, found) = find(number);
            // If another thread has popped the number by now, the link is stale. The head has then
            // changed too, and the exchange fails.
            let after = (head.wrapping_add(ONE_TAG) & !NUMBER) | u64::from(link.load(Relaxed));
            match self.head.compare_exchange_weak(head, after, Acquire, Acquire) {
                Ok(_) => return Some(found),
                Err(now) => head = now,
            }
        }
    }

    /// Pushes a chain of numbers: `top` is the first number, and `link` is the link of the last
    /// one. All other links are already written. A thread that pops a number sees everything that
    /// was written before the push.
    #[inline(always)]
    pub(crate) fn push(&self, top: u32, link: &AtomicU32) {
        let mut head = self.head.load(Relaxed);
        loop {
            link.store(head as u32, Relaxed);
            let after = (head & !NUMBER) | (u64::from(top) + 1);
            match self.head.compare_exchange_weak(head, after, Release, Relaxed) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    /// Empties the stack. No other thread may push or pop at the same time. The tag is not reset.
    pub(crate) fn clear(&self) {
        self.head.store(self.head.load(Relaxed) & !NUMBER, Relaxed);
    }
}

/// Pops a number from `own`, or else from the first stack of `all` that is not empty. Returns
/// `None` if each stack was empty when this function looked at it, though perhaps not all at the
/// same moment.
pub(crate) fn pop_any<'a, 'b>(
    own: &TaggedStack,
    mut all: impl Iterator<Item = &'b TaggedStack>,
    link: impl Fn(u32) -> &'a AtomicU32,
) -> Option<u32> {
    let pop = |stack: &TaggedStack| stack.pop(|number| (link(number), number));
    pop(own).or_else(|| all.find_map(pop))
}

#[cfg(all(test, loom))]
mod models {
    use super::{pop_any, TaggedStack};
    use crate::loom::atomic::AtomicU32;
    use crate::loom::{model, sync::Arc, thread, TrackedCell};
    use std::vec::Vec;

    struct Pool {
        stack: TaggedStack,
        links: Vec<AtomicU32>,
        blocks: Vec<TrackedCell<u32>>,
    }
    // SAFETY: loom checks how threads use the blocks, and everything else is atomic.
    unsafe impl Sync for Pool {}
    // SAFETY: the reasons are the same as for `Sync`.
    unsafe impl Send for Pool {}

    impl Pool {
        /// Makes a pool for three numbers. The numbers below `count` are on the stack.
        fn new(count: u32) -> Arc<Self> {
            let pool = Pool {
                stack: TaggedStack::new(),
                links: (0..3).map(|_| AtomicU32::new(0)).collect(),
                blocks: (0..3).map(|_| TrackedCell::new(0)).collect(),
            };
            (0..count).rev().for_each(|n| pool.push(n));
            Arc::new(pool)
        }
        fn push(&self, n: u32) {
            self.stack.push(n, &self.links[n as usize]);
        }
        fn pop(&self) -> Option<u32> {
            let n = self.stack.pop(|n| (&self.links[n as usize], n))?;
            // SAFETY: the loom model checks that no other thread uses the block.
            self.blocks[n as usize].with_mut(|b| unsafe { *b += 1 });
            Some(n)
        }
        fn all(&self) -> Vec<u32> {
            let mut all: Vec<_> = std::iter::from_fn(|| self.pop()).collect();
            all.sort();
            all
        }
    }

    #[test]
    fn a_thread_that_has_read_a_stale_link_does_not_corrupt_the_list() {
        model(|| {
            let pool = Pool::new(2);
            let other = pool.clone();
            // The thread pops both numbers and pushes the first one. Afterwards the head is as
            // before, except for its tag.
            let thread = thread::spawn(move || {
                let (a, b) = (other.pop(), other.pop());
                a.into_iter().for_each(|n| other.push(n));
                b
            });
            let own = pool.pop();
            let theirs = thread.join().unwrap();
            assert!(own.is_none() || own != theirs);
            let mut all = pool.all();
            all.extend(own.into_iter().chain(theirs));
            all.sort();
            assert_eq!(all, [0, 1]);
        });
    }

    #[test]
    fn no_index_is_lost_when_two_threads_push() {
        model(|| {
            let pool = Pool::new(1);
            let other = pool.clone();
            let thread = thread::spawn(move || other.push(1));
            pool.push(2);
            thread.join().unwrap();
            assert_eq!(pool.all(), [0, 1, 2]);
        });
    }

    #[test]
    fn an_index_is_popped_by_one_thread_at_a_time() {
        model(|| {
            let pool = Pool::new(2);
            let work = |pool: &Pool| {
                if let Some(n) = pool.pop() {
                    pool.push(n);
                }
            };
            let others: Vec<_> = (0..2)
                .map(|_| {
                    let pool = pool.clone();
                    thread::spawn(move || work(&pool))
                })
                .collect();
            others.into_iter().for_each(|t| t.join().unwrap());
            assert_eq!(pool.all(), [0, 1]);
        });
    }

    /// Runs three threads. Each has a stack of full magazines and a stack of empty ones. Each
    /// thread pushes a full magazine and pops an empty one, then pops a full one and pushes the
    /// empty one. A thread cache of a slot map does the same when it flushes and then refills.
    #[test]
    fn pop_any_finds_full_and_empty_magazines_while_other_threads_exchange_theirs() {
        const THREADS: usize = 3;
        struct Magazines {
            stacks: [[TaggedStack; 2]; THREADS], // for each thread: full and empty magazines
            links: [AtomicU32; 2 * THREADS],
        }
        impl Magazines {
            fn push(&self, own: usize, kind: usize, number: u32) {
                self.stacks[own][kind].push(number, &self.links[number as usize]);
            }
            fn find(&self, own: usize, kind: usize) -> u32 {
                let link = |i: u32| &self.links[i as usize];
                loop {
                    let all = self.stacks.iter().map(|of_thread| &of_thread[kind]);
                    match pop_any(&self.stacks[own][kind], all, link) {
                        Some(number) => return number,
                        None => thread::yield_now(),
                    }
                }
            }
            fn flush_and_refill(&self, own: usize) {
                self.push(own, 0, (THREADS + own) as u32);
                let empty = self.find(own, 1);
                let full = self.find(own, 0);
                assert!((empty as usize) < THREADS && full as usize >= THREADS);
                self.push(own, 1, empty);
            }
        }
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(|| {
            let magazines = Arc::new(Magazines {
                stacks: std::array::from_fn(|_| [TaggedStack::new(), TaggedStack::new()]),
                links: std::array::from_fn(|_| AtomicU32::new(0)),
            });
            (0..THREADS).for_each(|empty| magazines.push(THREADS - 1, 1, empty as u32));
            let threads: Vec<_> = (1..THREADS)
                .map(|own| {
                    let magazines = magazines.clone();
                    thread::spawn(move || magazines.flush_and_refill(own))
                })
                .collect();
            magazines.flush_and_refill(0);
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            let mut left: Vec<_> = (0..THREADS).map(|_| magazines.find(0, 1)).collect();
            left.sort();
            assert_eq!(left, [0, 1, 2]);
        });
    }
}
