//! What every allocator of blocks offers.

use crate::base::bits::out_of_memory;
use core::alloc::Layout;
use core::ptr::NonNull;

/// Gives blocks and takes them back; C++ calls it `block_allocator`.
///
/// A block of size 0 is dangling and aligned, and costs nothing.
///
/// # Safety
/// A block lies in memory that nobody else uses, is aligned, and stays where it is, whatever
/// happens to other blocks and wherever the allocator is moved, until it is given back or
/// the allocator ends.
pub unsafe trait BlockAllocator {
    /// A block, or `None` when memory is refused.
    fn try_allocate(&self, layout: Layout) -> Option<NonNull<u8>>;

    /// Takes a block back.
    ///
    /// # Safety
    /// `block` came from this allocator with this `layout`, and was not given back since.
    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout);

    /// Grows or shrinks a block where it is; `false`: nothing has changed.
    ///
    /// # Safety
    /// As for `deallocate`, with the layout `from`.
    #[inline]
    unsafe fn try_expand(&self, block: NonNull<u8>, from: Layout, to: Layout) -> bool {
        let _ = (block, from, to);
        false
    }

    /// A block; where memory is refused, `alloc::alloc::handle_alloc_error` ends the program.
    #[inline]
    fn allocate(&self, layout: Layout) -> NonNull<u8> {
        match self.try_allocate(layout) {
            Some(block) => block,
            None => out_of_memory(layout),
        }
    }
}

/// Knows its own blocks, or chunks, by their address.
///
/// # Safety
/// `owns` is true for every block of a byte or more that this allocator has given and not got
/// back, and false for every such block of another allocator: adaptors like
/// [`Fallback`](crate::Fallback) free a block where `owns` says it is from. So a reference to an
/// allocator is not `Owning`: another allocator may take its chunks from the same allocator, which
/// then owns the blocks of both.
pub unsafe trait Owning {
    /// Whether `p` points into memory of this allocator, in use or not.
    fn owns(&self, p: *const u8) -> bool;
}

// SAFETY: the allocator behind the reference keeps the promises.
unsafe impl<A: BlockAllocator + ?Sized> BlockAllocator for &A {
    #[inline]
    fn try_allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        (**self).try_allocate(layout)
    }
    #[inline]
    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
        // SAFETY: passed on as it was given.
        unsafe { (**self).deallocate(block, layout) }
    }
    #[inline]
    unsafe fn try_expand(&self, block: NonNull<u8>, from: Layout, to: Layout) -> bool {
        // SAFETY: passed on as it was given.
        unsafe { (**self).try_expand(block, from, to) }
    }
}
