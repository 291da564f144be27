//! The adaptor that limits the bytes and blocks in use.

use crate::adapt::prelude::*;
use core::cell::Cell;

/// Limits for the bytes and blocks in use at the same time.
///
/// ```
/// use mallard::Budget;
/// let both = Budget { bytes: 1 << 20, blocks: 100 };
/// # let _ = both;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Number of bytes that the callers request. Around a source, number of bytes that the source
    /// supplies.
    pub bytes: usize,
    /// Number of blocks.
    pub blocks: usize,
}

impl Budget {
    /// Makes a budget of `bytes` bytes, in any number of blocks.
    pub const fn bytes(bytes: usize) -> Self {
        Self { bytes, blocks: usize::MAX }
    }
    /// Makes a budget of `blocks` blocks, of any size.
    pub const fn blocks(blocks: usize) -> Self {
        Self { bytes: usize::MAX, blocks }
    }
}

/// An adaptor that fails allocations that would exceed a [`Budget`] of bytes, of blocks, or of
/// both. The limit is exact, so the last byte of the budget can be allocated. Freed bytes can be
/// allocated again.
///
/// ```
/// use mallard::{BlockAllocator, Budget, Limited, Multipool};
/// use std::alloc::Layout;
/// let memory = Limited::new(Budget::bytes(100), Multipool::new());
/// assert!(memory.try_allocate(Layout::new::<[u8; 100]>()).is_some());
/// assert!(memory.try_allocate(Layout::new::<u8>()).is_none());
/// ```
///
/// If the wrapped allocator has no memory, the call fails too. `last_failure` returns the reason in
/// one line. `Limited` is for one thread at a time, so several threads need a
/// [`Synchronized`](crate::Synchronized) around it.
#[derive(Debug)]
pub struct Limited<A> {
    inner: A,
    most: Budget,
    left: Cell<Budget>, // the bytes and blocks in use plus `left` equal `most`
    failure: Cell<&'static str>,
}

adaptor!(Limited []);

impl<A> Limited<A> {
    /// Wraps `inner`, and limits the blocks and bytes in use to the budget `most`.
    pub const fn new(most: Budget, inner: A) -> Self {
        Self { inner, most, left: Cell::new(most), failure: Cell::new("") }
    }

    /// Returns the whole budget, used or not.
    pub const fn most(&self) -> Budget {
        self.most
    }
    /// Returns the part of the budget that is not in use.
    pub fn left(&self) -> Budget {
        self.left.get()
    }
    /// Returns the reason for the last failure in one line, or an empty string if no call has
    /// failed.
    pub fn last_failure(&self) -> &'static str {
        self.failure.get()
    }

    #[inline]
    fn take_from<S: Source>(&self, below: &S, layout: Layout) -> Option<Chunk> {
        self.spend(layout.size(), 1)?;
        let Some(taken) = below.try_take(layout) else {
            self.earn(layout.size(), 1);
            return self.fail("the wrapped allocator is exhausted, but not the budget");
        };
        // A source may supply more bytes than requested, for example whole pages.
        let more = taken.layout.size() - layout.size();
        if more != 0 && self.spend(more, 0).is_none() {
            self.earn(layout.size(), 1);
            // SAFETY: `below` has just supplied the chunk.
            unsafe { below.give(taken) };
            return self.fail("the source returned more bytes than the budget has left");
        }
        Some(taken)
    }

    /// # Safety
    /// The same as for `Source::give`.
    #[inline]
    unsafe fn give_to<S: Source>(&self, below: &S, chunk: Chunk) {
        // SAFETY: the caller's guarantee is passed on unchanged.
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
            return self.fail("the block budget is used up: free blocks, or raise the budget");
        }
        if bytes > left.bytes {
            return self.fail("the budget has too few bytes left: free blocks, or raise it");
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
    fn fail<T>(&self, why: &'static str) -> Option<T> {
        self.failure.set(why);
        None
    }
}
