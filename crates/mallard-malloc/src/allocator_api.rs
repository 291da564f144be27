//! Implements the `Allocator` traits of the standard library and of allocator-api2. One macro
//! implements all versions of the trait.

use crate::blocks::{move_block, Blocks};
use crate::Mallard;
use core::alloc::Layout;
use core::ptr::NonNull;

/// Allocates a block by calling `take`. For a layout of size 0, returns a dangling pointer.
#[inline(always)]
fn slice(layout: Layout, take: impl FnOnce(Layout) -> *mut u8) -> Option<NonNull<[u8]>> {
    let block = if layout.size() == 0 {
        core::ptr::without_provenance_mut(layout.align())
    } else {
        take(layout)
    };
    NonNull::new(block).map(|b| NonNull::slice_from_raw_parts(b, layout.size()))
}

/// Grows or shrinks a block, which may move.
///
/// # Safety
/// The requirements are those of `Allocator::grow` and `Allocator::shrink`.
#[inline(always)]
unsafe fn change(
    blocks: &impl Blocks,
    block: NonNull<u8>,
    from: Layout,
    to: Layout,
) -> Option<NonNull<[u8]>> {
    slice(to, |to| match from.size() {
        0 => blocks.take(to),
        // SAFETY: the caller guarantees what this call requires.
        _ if from.align() == to.align() => unsafe {
            blocks.resize(block.as_ptr(), from, to.size())
        },
        // SAFETY: the caller guarantees what this call requires.
        _ => unsafe { move_block(blocks, block.as_ptr(), from, to) },
    })
}

macro_rules! bridge {
    ($feature:literal, $api:path) => {
        #[cfg(feature = $feature)]
        const _: () = {
            use $api as api;
            bridge!(for api, Mallard);
            #[cfg(mallard_engine)]
            bridge!(for api, crate::Heap<S>, S);
        };
    };
    (for $api:ident, $allocator:ty $(, $generic:ident)?) => {
        // SAFETY: a block stays valid until the block is freed, or its heap is dropped or borrowed
        // mutably, even if the heap value moves. `Heap` is not `Clone`. All values of `Mallard` are
        // the same allocator.
        unsafe impl$(<$generic>)? $api::Allocator for $allocator {
            #[inline]
            fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, $api::AllocError> {
                slice(layout, |l| self.take(l)).ok_or($api::AllocError)
            }
            #[inline]
            fn allocate_zeroed(&self, layout: Layout) -> Result<NonNull<[u8]>, $api::AllocError> {
                slice(layout, |l| self.take_zeroed(l)).ok_or($api::AllocError)
            }
            #[inline]
            unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
                if layout.size() != 0 {
                    // SAFETY: the caller guarantees what this call requires.
                    unsafe { self.give(block.as_ptr(), layout) }
                }
            }
            #[inline]
            unsafe fn grow(
                &self,
                block: NonNull<u8>,
                from: Layout,
                to: Layout,
            ) -> Result<NonNull<[u8]>, $api::AllocError> {
                // SAFETY: the caller guarantees what this call requires.
                unsafe { change(self, block, from, to) }.ok_or($api::AllocError)
            }
            #[inline]
            unsafe fn shrink(
                &self,
                block: NonNull<u8>,
                from: Layout,
                to: Layout,
            ) -> Result<NonNull<[u8]>, $api::AllocError> {
                if to.size() == 0 {
                    // SAFETY: the caller guarantees what this call requires.
                    unsafe { $api::Allocator::deallocate(self, block, from) };
                }
                // SAFETY: the caller guarantees what this call requires. The content of a block
                // that was shrunk to size 0 is not read.
                unsafe { change(self, block, from, to) }.ok_or($api::AllocError)
            }
        }
    };
}

bridge!("nightly", alloc::alloc);
bridge!("allocator-api2-02", allocator_api2_02::alloc);
bridge!("allocator-api2-03", allocator_api2_03::alloc);
bridge!("allocator-api2-04", allocator_api2_04::alloc);
