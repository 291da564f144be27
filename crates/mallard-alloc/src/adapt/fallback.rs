//! An adaptor that asks a second allocator when the first refuses.

use crate::adapt::prelude::*;

/// Takes from `first` while that has something, and then from `second`. What is given back goes
/// to the one it is from, which `first` knows by the address.
///
/// ```
/// use mallard::{Buffer, DefaultHeap, Fallback, Multipool};
/// use std::mem::MaybeUninit;
/// let mut bytes = [MaybeUninit::uninit(); 4096];
/// let stack_first = Fallback::new(Buffer::new(&mut bytes), DefaultHeap);
/// let pool = Multipool::new_in(stack_first); // the heap when 4 KiB are used up
/// # let _ = pool;
/// ```
///
/// An allocator where both are, a source where both are. Fails when both do. One thread at a
/// time, like both. A free costs what `first.owns` does: O(1) for a buffer, O(chunks) for
/// what has chunks.
///
/// `first` is owned by value, so that `second` cannot take its memory from `first`. Otherwise blocks of
/// one side could be freed in the other:
/// ```compile_fail,E0277
/// use mallard::{Arena, BlockAllocator, Fallback, Multipool};
/// let arena = Arena::new();
/// let both = Fallback::new(&arena, Multipool::new_in(&arena));
/// both.allocate(std::alloc::Layout::new::<u64>());
/// ```
#[derive(Debug, Default)]
pub struct Fallback<First, Second> {
    first: First,
    second: Second,
}

impl<First, Second> Fallback<First, Second> {
    /// `second` where `first` refuses.
    pub const fn new(first: First, second: Second) -> Self {
        Self { first, second }
    }
    /// Asked first.
    pub const fn first(&self) -> &First {
        &self.first
    }
    /// Asked when that refuses.
    pub const fn second(&self) -> &Second {
        &self.second
    }
}

// SAFETY: each block is one of either's, and goes back there.
unsafe impl<A: BlockAllocator + Owning, B: BlockAllocator> BlockAllocator for Fallback<A, B> {
    #[inline]
    fn try_allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        self.first.try_allocate(layout).or_else(|| self.second.try_allocate(layout))
    }
    #[inline]
    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
        if layout.size() == 0 {
            return; // it is in no memory, hence nobody's
        }
        // SAFETY: as the caller says; and only who owns an address gives it.
        unsafe {
            if self.first.owns(block.as_ptr()) {
                self.first.deallocate(block, layout);
            } else {
                self.second.deallocate(block, layout);
            }
        }
    }
    #[inline]
    unsafe fn try_expand(&self, block: NonNull<u8>, from: Layout, to: Layout) -> bool {
        if from.size() == 0 || to.size() == 0 {
            return false;
        }
        // SAFETY: as for `deallocate`.
        unsafe {
            if self.first.owns(block.as_ptr()) {
                self.first.try_expand(block, from, to)
            } else {
                self.second.try_expand(block, from, to)
            }
        }
    }
}

// SAFETY: each chunk is one of either's, and goes back there.
unsafe impl<A: Source + Owning, B: Source> Source for Fallback<A, B> {
    fn try_take(&self, layout: Layout) -> Option<Chunk> {
        self.first.try_take(layout).or_else(|| self.second.try_take(layout))
    }
    unsafe fn give(&self, chunk: Chunk) {
        // SAFETY: as the caller says; and only who owns an address gives it.
        unsafe {
            if self.first.owns(chunk.data.as_ptr()) {
                self.first.give(chunk);
            } else {
                self.second.give(chunk);
            }
        }
    }
}

// SAFETY: each block is of one of the two.
unsafe impl<A: Owning, B: Owning> Owning for Fallback<A, B> {
    fn owns(&self, p: *const u8) -> bool {
        self.first.owns(p) || self.second.owns(p)
    }
}

impl<A: Resettable, B: Resettable> Resettable for Fallback<A, B> {
    fn reset(&mut self) {
        self.first.reset();
        self.second.reset();
    }
    fn release(&mut self) {
        self.first.release();
        self.second.release();
    }
    fn trim(&mut self, keep: usize) {
        self.first.trim(keep);
        self.second.trim(keep);
    }
}

impl<A: Measured, B: Measured> Measured for Fallback<A, B> {
    fn statistics(&self) -> Statistics {
        self.first.statistics() + self.second.statistics()
    }
}
