//! The adaptor with one allocator for small blocks and another for large blocks.

use crate::adapt::prelude::*;

/// An adaptor that allocates blocks of at most `N` bytes from `small`, and larger blocks from
/// `large`.
///
/// `deallocate` chooses the same allocator from the size of the block. The choice costs one
/// comparison, or nothing if the size is a constant.
///
/// ```
/// use mallard::{BySize, DefaultHeap, Multipool};
/// let memory = BySize::<256, _, _>::new(Multipool::new(), DefaultHeap);
/// # let _ = memory;
/// ```
///
/// `BySize` wraps only allocators, not sources. A source may supply more bytes than requested, so
/// the size of a chunk does not determine which source supplied the chunk. When the chosen
/// allocator fails, the other allocator is not tried. `BySize` is `Send` and `Sync` if both
/// allocators are.
#[derive(Debug, Default)]
pub struct BySize<const N: usize, Small, Large> {
    small: Small,
    large: Large,
}

impl<const N: usize, Small, Large> BySize<N, Small, Large> {
    /// Makes an adaptor that allocates blocks of at most `N` bytes from `small`, and larger blocks
    /// from `large`.
    pub const fn new(small: Small, large: Large) -> Self {
        Self { small, large }
    }
    /// Returns the allocator of blocks of at most `N` bytes.
    pub const fn small(&self) -> &Small {
        &self.small
    }
    /// Returns the allocator of larger blocks.
    pub const fn large(&self) -> &Large {
        &self.large
    }
}

// SAFETY: each block is freed in the allocator that allocated it.
unsafe impl<const N: usize, A: BlockAllocator, B: BlockAllocator> BlockAllocator
    for BySize<N, A, B>
{
    #[inline]
    fn try_allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        if layout.size() <= N {
            self.small.try_allocate(layout)
        } else {
            self.large.try_allocate(layout)
        }
    }
    #[inline]
    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
        // SAFETY: the size selected the same allocator when the block was allocated.
        unsafe {
            if layout.size() <= N {
                self.small.deallocate(block, layout);
            } else {
                self.large.deallocate(block, layout);
            }
        }
    }
    #[inline]
    unsafe fn try_expand(&self, block: NonNull<u8>, from: Layout, to: Layout) -> bool {
        // SAFETY: both sizes select the same allocator, and the block is from this allocator.
        unsafe {
            match (from.size() <= N, to.size() <= N) {
                (true, true) => self.small.try_expand(block, from, to),
                (false, false) => self.large.try_expand(block, from, to),
                _ => false,
            }
        }
    }
}

// SAFETY: each block belongs to one of the two allocators.
unsafe impl<const N: usize, A: Owns, B: Owns> Owns for BySize<N, A, B> {
    fn owns(&self, p: *const u8) -> bool {
        self.small.owns(p) || self.large.owns(p)
    }
}

impl<const N: usize, A: Resettable, B: Resettable> Resettable for BySize<N, A, B> {
    fn reset(&mut self) {
        self.small.reset();
        self.large.reset();
    }
    fn release(&mut self) {
        self.small.release();
        self.large.release();
    }
    fn trim(&mut self, keep: usize) {
        self.small.trim(keep);
        self.large.trim(keep);
    }
}

impl<const N: usize, A: Measured, B: Measured> Measured for BySize<N, A, B> {
    fn statistics(&self) -> Statistics {
        self.small.statistics() + self.large.statistics()
    }
}
