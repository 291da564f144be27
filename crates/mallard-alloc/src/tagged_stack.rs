//! A stack of numbers that many threads push to and pop from.

use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};

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
