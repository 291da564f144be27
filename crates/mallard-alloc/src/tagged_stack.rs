//! A stack of numbers that many threads push to and pop from.

use crate::loom::atomic::{AtomicU32, AtomicU64, Ordering::*};

/// Treiber's stack (1986) of numbers, whose links are kept elsewhere. A word {tag, top + 1},
/// where 0 is "empty". Each pop changes the tag, so who was slow between its read of the head
/// and its exchange finds that out.
///
/// The tag comes round after 2^32 pops. A thread that stands still in there for exactly so
/// many, and wakes to find the same number on top, would tear the list.
///
/// A link is an atomic of its own: it is read while another may already have the number.
pub(crate) struct TaggedStack {
    head: AtomicU64,
}

const ONE_TAG: u64 = 1 << 32;
const NUMBER: u64 = ONE_TAG - 1;

impl TaggedStack {
    pub(crate) fn new() -> Self {
        Self { head: AtomicU64::new(0) }
    }

    /// `find(n)` gives the link of `n`, and what the caller makes of it.
    #[inline(always)]
    pub(crate) fn pop<'a, R>(&self, find: impl Fn(u32) -> (&'a AtomicU32, R)) -> Option<R> {
        let mut head = self.head.load(Acquire);
        loop {
            let number = (head as u32).checked_sub(1)?;
            let (link, found) = find(number);
            // If the link was stale, so is the head, and its tag tells.
            let after = (head.wrapping_add(ONE_TAG) & !NUMBER) | u64::from(link.load(Relaxed));
            match self.head.compare_exchange_weak(head, after, Acquire, Acquire) {
                Ok(_) => return Some(found),
                Err(now) => head = now,
            }
        }
    }

    /// Pushes a chain: its first is `top`, and `link` is of its last.
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

    /// All numbers; exact while nobody pushes or pops, and never more than `most`. `f` may
    /// write to the link of what it is given.
    pub(crate) fn for_each<'a>(
        &self,
        most: usize,
        link: impl Fn(u32) -> &'a AtomicU32,
        mut f: impl FnMut(u32),
    ) {
        let mut top = self.head.load(Acquire) as u32;
        for _ in 0..most {
            let Some(number) = top.checked_sub(1) else { return };
            top = link(number).load(Relaxed);
            f(number);
        }
    }

    /// Forgets all, while nobody pushes or pops. The tag goes on.
    pub(crate) fn clear(&self) {
        self.head.store(self.head.load(Relaxed) & !NUMBER, Relaxed);
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::TaggedStack;
    use crate::loom::atomic::AtomicU32;
    use crate::loom::{model, sync::Arc, thread, TrackedCell};
    use std::vec::Vec;

    struct Pool {
        stack: TaggedStack,
        links: Vec<AtomicU32>,
        blocks: Vec<TrackedCell<u32>>,
    }
    // SAFETY: blocks are watched, the rest is atomic.
    unsafe impl Sync for Pool {}
    // SAFETY: the same.
    unsafe impl Send for Pool {}

    impl Pool {
        fn new(blocks: usize) -> Arc<Self> {
            let pool = Pool {
                stack: TaggedStack::new(),
                links: (0..blocks).map(|_| AtomicU32::new(0)).collect(),
                blocks: (0..blocks).map(|_| TrackedCell::new(0)).collect(),
            };
            (0..blocks as u32).rev().for_each(|n| pool.push(n));
            Arc::new(pool)
        }
        fn push(&self, n: u32) {
            self.stack.push(n, &self.links[n as usize]);
        }
        fn pop(&self) -> Option<u32> {
            let n = self.stack.pop(|n| (&self.links[n as usize], n))?;
            // SAFETY: the model is there to find out.
            self.blocks[n as usize].with_mut(|b| unsafe { *b += 1 });
            Some(n)
        }
        fn all(&self) -> Vec<u32> {
            let mut all = Vec::new();
            self.stack.for_each(9, |n| &self.links[n as usize], |n| all.push(n));
            all.sort();
            all
        }
    }

    #[test]
    fn who_has_read_an_old_link_does_not_tear_the_list() {
        model(|| {
            let pool = Pool::new(2);
            let other = pool.clone();
            // Takes both and puts the first back: the head is as it was, but for its tag.
            let thread = thread::spawn(move || {
                let (a, b) = (other.pop(), other.pop());
                a.into_iter().for_each(|n| other.push(n));
                b
            });
            let own = pool.pop();
            let theirs = thread.join().unwrap();
            let mut all = pool.all();
            all.extend(own.into_iter().chain(theirs));
            all.sort();
            assert_eq!(all, [0, 1]);
        });
    }

    #[test]
    fn each_number_is_one_threads() {
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
}
