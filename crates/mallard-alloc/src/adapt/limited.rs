//! An adaptor with a budget.

use crate::adapt::prelude::*;
use core::cell::Cell;

/// The most that may be in use at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Bytes asked for; around a source, those it gave.
    pub bytes: usize,
    /// How many at once.
    pub blocks: usize,
}

impl Budget {
    /// So many bytes, in as many blocks as may be.
    pub const fn bytes(bytes: usize) -> Self {
        Self { bytes, blocks: usize::MAX }
    }
    /// So many blocks, of any size.
    pub const fn blocks(blocks: usize) -> Self {
        Self { bytes: usize::MAX, blocks }
    }
}

/// Refuses what would exceed a budget of bytes, of blocks, or of both. Exact: the last byte of
/// it can be had, and what is freed can be had again.
///
/// ```
/// use mallard::{BlockAllocator, Budget, Limited, Multipool};
/// use std::alloc::Layout;
/// let memory = Limited::new(Budget::bytes(100), Multipool::new());
/// assert!(memory.try_allocate(Layout::new::<[u8; 100]>()).is_some());
/// assert!(memory.try_allocate(Layout::new::<u8>()).is_none());
/// ```
///
/// Fails also when what it wraps does; `last_refusal` says why in a line. One thread at a time,
/// or a [`Synchronized`](crate::Synchronized) around it.
#[derive(Debug)]
pub struct Limited<A> {
    inner: A,
    most: Budget,
    left: Cell<Budget>, // left + what is in use == most
    refusal: Cell<&'static str>,
}

adaptor!(Limited []);

impl<A> Limited<A> {
    /// At most `most` of `inner` at once.
    pub const fn new(most: Budget, inner: A) -> Self {
        Self { inner, most, left: Cell::new(most), refusal: Cell::new("") }
    }

    /// The whole budget.
    pub const fn most(&self) -> Budget {
        self.most
    }
    /// What can be had at this moment.
    pub fn left(&self) -> Budget {
        self.left.get()
    }
    /// Why the last call that failed did, in a line; empty when none has.
    pub fn last_refusal(&self) -> &'static str {
        self.refusal.get()
    }

    #[inline]
    fn take_from<S: Source>(&self, below: &S, layout: Layout) -> Option<Chunk> {
        self.spend(layout.size(), 1)?;
        let Some(taken) = below.try_take(layout) else {
            self.earn(layout.size(), 1);
            return self.refuse("what is wrapped has refused, within the budget");
        };
        // A source may give more, as pages do.
        let more = taken.layout.size() - layout.size();
        if more != 0 && self.spend(more, 0).is_none() {
            self.earn(layout.size(), 1);
            // SAFETY: it was just taken from there.
            unsafe { below.give(taken) };
            return self.refuse("the source gave more than was asked for, and is left");
        }
        Some(taken)
    }

    /// # Safety
    /// As for `Source::give`.
    #[inline]
    unsafe fn give_to<S: Source>(&self, below: &S, chunk: Chunk) {
        // SAFETY: passed on as it was given.
        unsafe { below.give(chunk) };
        self.earn(chunk.layout.size(), 1);
    }

    #[inline]
    fn expand(&self, of: Change, below: impl FnOnce() -> bool) -> bool {
        let more = of.to.size().saturating_sub(of.from.size());
        if self.spend(more, 0).is_none() {
            return false;
        }
        let done = below();
        self.earn(if done { of.from.size().saturating_sub(of.to.size()) } else { more }, 0);
        done
    }

    fn forget_all(&self) {
        self.left.set(self.most);
    }

    #[inline]
    fn spend(&self, bytes: usize, blocks: usize) -> Option<()> {
        let left = self.left.get();
        if blocks > left.blocks {
            return self.refuse("the budget of blocks is used up: free some, or allow more");
        }
        if bytes > left.bytes {
            return self.refuse("the budget has fewer bytes left: free some, or allow more");
        }
        self.left.set(Budget { bytes: left.bytes - bytes, blocks: left.blocks - blocks });
        Some(())
    }

    #[inline]
    fn earn(&self, bytes: usize, blocks: usize) {
        let left = self.left.get();
        self.left.set(Budget { bytes: left.bytes + bytes, blocks: left.blocks + blocks });
    }

    #[cold]
    fn refuse<T>(&self, why: &'static str) -> Option<T> {
        self.refusal.set(why);
        None
    }
}
