//! An allocator under the traits of others.

use crate::base::allocator::{BlockAllocator, Owning};
use crate::base::bits::dangling;
#[cfg(feature = "alloc")]
use crate::base::source::DefaultHeap;
use crate::base::source::{Chunk, Null, Source};
use core::alloc::Layout;
use core::ptr::NonNull;

/// Any [`BlockAllocator`], as a [`Source`] that is owned, and as an `Allocator` where a feature
/// has that trait.
///
/// The allocators of this crate are an `Allocator` themselves, and a reference to them is a
/// source. This is for one's own, and for an allocator that is to be inside of another:
///
/// ```
/// use mallard::{By, Multipool};
/// let pool = Multipool::new_in(By(Multipool::new()));
/// # let _ = pool;
/// ```
#[derive(Debug, Default)] // and no Clone: an `Allocator` and its clone must share their blocks
pub struct By<A>(
    /// What is under it.
    pub A,
);

// SAFETY: a block of the allocator, which stays where it is wherever that is moved, is a chunk.
unsafe impl<A: BlockAllocator> Source for By<A> {
    #[inline]
    fn try_take(&self, layout: Layout) -> Option<Chunk> {
        Some(Chunk { data: self.0.try_allocate(layout)?, layout })
    }
    #[inline]
    unsafe fn give(&self, chunk: Chunk) {
        // SAFETY: it is a block that was given with this layout.
        unsafe { self.0.deallocate(chunk.data, chunk.layout) }
    }
}

// SAFETY: all is passed on.
unsafe impl<A: BlockAllocator> BlockAllocator for By<A> {
    #[inline]
    fn try_allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        self.0.try_allocate(layout)
    }
    #[inline]
    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
        // SAFETY: passed on as it was given.
        unsafe { self.0.deallocate(block, layout) }
    }
    #[inline]
    unsafe fn try_expand(&self, block: NonNull<u8>, from: Layout, to: Layout) -> bool {
        // SAFETY: passed on as it was given.
        unsafe { self.0.try_expand(block, from, to) }
    }
}

// SAFETY: blocks are those of the allocator inside.
unsafe impl<A: Owning> Owning for By<A> {
    #[inline]
    fn owns(&self, p: *const u8) -> bool {
        self.0.owns(p)
    }
}

// SAFETY: it gives nothing but blocks without bytes.
unsafe impl BlockAllocator for Null {
    fn try_allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        (layout.size() == 0).then(|| dangling(layout))
    }
    unsafe fn deallocate(&self, _: NonNull<u8>, _: Layout) {}
}

#[cfg(feature = "alloc")]
// SAFETY: a chunk of the heap is as large as was asked, so its layout need not be kept.
unsafe impl BlockAllocator for DefaultHeap {
    #[inline]
    fn try_allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        if layout.size() == 0 {
            return Some(dangling(layout));
        }
        Some(self.try_take(layout)?.data)
    }
    #[inline]
    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
        if layout.size() != 0 {
            // SAFETY: what `try_take` gave for this layout.
            unsafe { self.give(Chunk { data: block, layout }) }
        }
    }
}
