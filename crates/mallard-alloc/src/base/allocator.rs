//! The trait that every allocator of blocks implements.

use crate::base::bits::out_of_memory;
use core::alloc::Layout;
use core::ptr::NonNull;

/// A guard that frees a block when the guard is dropped, also if a panic unwinds.
pub(crate) struct FreesBlock<'a, A: BlockAllocator + ?Sized>(
    pub(crate) &'a A,
    pub(crate) NonNull<u8>,
    pub(crate) Layout,
);

impl<A: BlockAllocator + ?Sized> Drop for FreesBlock<'_, A> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: the guard was made for a block from this allocator with this layout, and nothing
        // uses the block any more.
        unsafe { self.0.deallocate(self.1, self.2) }
    }
}

/// Allocates and frees blocks of memory. The C++ library calls this concept `block_allocator`.
///
/// A block of size 0 has a dangling, aligned address and uses no memory.
///
/// ```
/// use mallard::{Arena, BlockAllocator};
/// use std::alloc::Layout;
/// fn largest_power<A: BlockAllocator>(allocator: &A) -> usize {
///     (0..20).take_while(|n| allocator.try_allocate(Layout::array::<u8>(1 << n).unwrap()).is_some()).count()
/// }
/// assert_eq!(largest_power(&Arena::new()), 20);
/// ```
///
/// # Safety
/// A block is aligned memory that nothing else uses. A block keeps its address until the block is
/// deallocated or the allocator is dropped, even if the allocator is moved or other blocks are
/// freed.
pub unsafe trait BlockAllocator {
    /// Allocates a block. Returns `None` if there is no memory for it.
    fn try_allocate(&self, layout: Layout) -> Option<NonNull<u8>>;

    /// Frees a block.
    ///
    /// # Safety
    /// This allocator returned `block` for this `layout`, and `block` has not been freed since.
    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout);

    /// Grows or shrinks a block in place. Returns `false`, and changes nothing, if that is not
    /// possible.
    ///
    /// # Safety
    /// The same as for `deallocate`, with the layout `from`.
    #[inline]
    unsafe fn try_expand(&self, block: NonNull<u8>, from: Layout, to: Layout) -> bool {
        let _ = (block, from, to);
        false
    }

    /// Allocates a block. If there is no memory, calls `alloc::alloc::handle_alloc_error`, which
    /// aborts.
    #[inline]
    fn allocate(&self, layout: Layout) -> NonNull<u8> {
        match self.try_allocate(layout) {
            Some(block) => block,
            None => out_of_memory(layout),
        }
    }
}

/// Determines whether an address belongs to this allocator.
///
/// ```
/// use mallard::{Arena, Owns};
/// let arena = Arena::new();
/// let number = arena.alloc(7);
/// assert!(arena.owns((&raw const *number).cast()));
/// assert!(!arena.owns((&raw const arena).cast()));
/// ```
///
/// # Safety
/// `owns` returns true for each block of at least one byte that is in use in this allocator, and
/// false for each such block of another allocator. Adaptors such as [`Fallback`](crate::Fallback)
/// rely on these results, because they free a block in the allocator that `owns` the block.
///
/// A reference to an allocator does not implement `Owns`, because a second allocator may request
/// its chunks through the reference. Then the first allocator owns the addresses of both
/// allocators' blocks.
#[doc(alias = "contains")]
pub unsafe trait Owns {
    /// Returns whether `p` points into memory of this allocator, used or unused.
    fn owns(&self, p: *const u8) -> bool;
}

// SAFETY: every call is passed to the allocator behind the reference.
unsafe impl<A: BlockAllocator + ?Sized> BlockAllocator for &A {
    #[inline]
    fn try_allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        (**self).try_allocate(layout)
    }
    #[inline]
    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller's guarantee is passed on unchanged.
        unsafe { (**self).deallocate(block, layout) }
    }
    #[inline]
    unsafe fn try_expand(&self, block: NonNull<u8>, from: Layout, to: Layout) -> bool {
        // SAFETY: the caller's guarantee is passed on unchanged.
        unsafe { (**self).try_expand(block, from, to) }
    }
}
