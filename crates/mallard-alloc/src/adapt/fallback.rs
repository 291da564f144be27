//! The adaptor that uses a second allocator when the first one is exhausted.

use crate::adapt::prelude::*;

/// An adaptor that allocates from `first`, and from `second` when `first` is exhausted. A free
/// calls `first.owns` with the address to find out which of the two allocated the block.
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
/// `Fallback` is an allocator if both are allocators, and a source if both are sources. `Fallback`
/// is for one thread at a time, unless both allow more. The call of `first.owns` takes constant
/// time for a buffer, and O(chunks) for an allocator with chunks.
///
/// `first` is owned by value, so that `second` cannot request its memory from `first`. Otherwise
/// `first` would also own the addresses of the blocks of `second`, and such a block would be freed
/// in `first`:
/// ```compile_fail,E0599
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
    /// Makes an adaptor that uses `second` when `first` is exhausted.
    pub const fn new(first: First, second: Second) -> Self {
        Self { first, second }
    }
    /// Returns the allocator that is tried first.
    pub const fn first(&self) -> &First {
        &self.first
    }
    /// Returns the allocator that is used when `first` is exhausted.
    pub const fn second(&self) -> &Second {
        &self.second
    }
}

// SAFETY: each block is freed in the allocator that allocated it.
unsafe impl<A: BlockAllocator + Owns, B: BlockAllocator> BlockAllocator for Fallback<A, B> {
    #[inline]
    fn try_allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        self.first.try_allocate(layout).or_else(|| self.second.try_allocate(layout))
    }
    #[inline]
    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
        if layout.size() == 0 {
            return; // no allocator owns a block of size 0
        }
        // SAFETY: the block belongs to `first` if and only if `first` owns its address.
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
        // SAFETY: the block belongs to `first` if and only if `first` owns its address.
        unsafe {
            if self.first.owns(block.as_ptr()) {
                self.first.try_expand(block, from, to)
            } else {
                self.second.try_expand(block, from, to)
            }
        }
    }
}

// SAFETY: each chunk is returned to the source that supplied it.
unsafe impl<A: Source + Owns, B: Source> Source for Fallback<A, B> {
    fn try_take(&self, layout: Layout) -> Option<Chunk> {
        self.first.try_take(layout).or_else(|| self.second.try_take(layout))
    }
    unsafe fn give(&self, chunk: Chunk) {
        // SAFETY: the chunk belongs to `first` if and only if `first` owns its address.
        unsafe {
            if self.first.owns(chunk.data.as_ptr()) {
                self.first.give(chunk);
            } else {
                self.second.give(chunk);
            }
        }
    }
}

// SAFETY: each block belongs to one of the two allocators.
unsafe impl<A: Owns, B: Owns> Owns for Fallback<A, B> {
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
