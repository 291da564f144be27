//! The adaptor that makes an owned allocator a source of chunks.

use crate::base::allocator::{BlockAllocator, Owns};
use crate::base::source::{Chunk, Source};
use core::alloc::Layout;
use core::ptr::NonNull;

/// An adaptor that makes any [`BlockAllocator`] a [`Source`] too. With a feature such as
/// `allocator-api2-02`, the adaptor is also an `Allocator` for `Vec` and `Box`.
///
/// Mallard's allocators implement `Allocator` themselves, and a reference to any allocator is a
/// source. Use `AsSource` for your own allocators, and where one allocator owns another:
///
/// ```
/// use mallard::{AsSource, Multipool};
/// let pool = Multipool::new_in(AsSource(Multipool::new()));
/// # let _ = pool;
/// ```
#[derive(Debug, Default)] // not Clone: an `Allocator` and its clone must share their blocks
#[doc(alias = "wrapper")]
pub struct AsSource<A>(
    /// The allocator that this source wraps.
    pub A,
);

// SAFETY: a block keeps its address when the allocator is moved, as a chunk must.
unsafe impl<A: BlockAllocator> Source for AsSource<A> {
    #[inline]
    fn try_take(&self, layout: Layout) -> Option<Chunk> {
        Some(Chunk { data: self.0.try_allocate(layout)?, layout })
    }
    #[inline]
    unsafe fn give(&self, chunk: Chunk) {
        // SAFETY: the chunk is a block that was allocated with this layout.
        unsafe { self.0.deallocate(chunk.data, chunk.layout) }
    }
}

// SAFETY: every call is passed to the wrapped allocator.
unsafe impl<A: BlockAllocator> BlockAllocator for AsSource<A> {
    #[inline]
    fn try_allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        self.0.try_allocate(layout)
    }
    #[inline]
    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller's guarantee is passed on unchanged.
        unsafe { self.0.deallocate(block, layout) }
    }
    #[inline]
    unsafe fn try_expand(&self, block: NonNull<u8>, from: Layout, to: Layout) -> bool {
        // SAFETY: the caller's guarantee is passed on unchanged.
        unsafe { self.0.try_expand(block, from, to) }
    }
}

// SAFETY: the wrapped allocator determines whether it owns an address.
unsafe impl<A: Owns> Owns for AsSource<A> {
    #[inline]
    fn owns(&self, p: *const u8) -> bool {
        self.0.owns(p)
    }
}
