//! The trait of arenas in which objects can be made.

use crate::base::allocator::BlockAllocator;
use core::alloc::Layout;
use core::ptr::NonNull;

/// An arena, exclusive or shared, in which objects are made.
pub(crate) trait ObjectArena: BlockAllocator {
    /// Returns a block for one `T`.
    #[inline(always)]
    fn try_place<T>(&self) -> Option<NonNull<T>> {
        Some(self.try_allocate(Layout::new::<T>())?.cast())
    }
    /// Returns a block for several `T`. The alignment of `layout` is the alignment of `T`.
    #[inline(always)]
    fn try_place_many<T>(&self, layout: Layout) -> Option<NonNull<T>> {
        Some(self.try_allocate(layout)?.cast())
    }
}
