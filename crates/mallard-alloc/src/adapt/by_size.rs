//! An adaptor that has one allocator for small blocks and another for large ones.

use crate::adapt::prelude::*;

/// Blocks of at most `N` bytes are from `small`, others from `large`. The size said at
/// `deallocate` decides too, so nothing is looked up: one comparison, and none where the size
/// is a constant.
///
/// ```
/// use mallard::{BySize, DefaultHeap, Multipool};
/// let memory = BySize::<256, _, _>::new(Multipool::new(), DefaultHeap);
/// # let _ = memory;
/// ```
///
/// For allocators alone: a source may give more than was asked for, and then its size no
/// longer tells where it is from. A refusal of either is one of both. Threads: as both allow.
#[derive(Debug, Default)]
pub struct BySize<const N: usize, Small, Large> {
    small: Small,
    large: Large,
}

impl<const N: usize, Small, Large> BySize<N, Small, Large> {
    /// Blocks of at most `N` bytes from `small`.
    pub const fn new(small: Small, large: Large) -> Self {
        Self { small, large }
    }
    /// Of at most `N` bytes.
    pub const fn small(&self) -> &Small {
        &self.small
    }
    /// Of more than `N` bytes.
    pub const fn large(&self) -> &Large {
        &self.large
    }
}

// SAFETY: each block is one of either's, and goes back there.
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
        // SAFETY: as the caller says; the size led to the same one then.
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
        // SAFETY: as for `deallocate`; it stays with the same one.
        unsafe {
            match (from.size() <= N, to.size() <= N) {
                (true, true) => self.small.try_expand(block, from, to),
                (false, false) => self.large.try_expand(block, from, to),
                _ => false,
            }
        }
    }
}

// SAFETY: each block is of one of the two.
unsafe impl<const N: usize, A: Owning, B: Owning> Owning for BySize<N, A, B> {
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
