//! Bindings to the `Allocator` traits of allocator-api2 and of nightly `core`.
//!
//! The traits are foreign, so a blanket implementation is not possible. The macro `bridges!`
//! therefore lists the allocators of this crate, and is expanded once for each trait.

use crate::BlockAllocator;
use core::alloc::Layout;
use core::ptr::NonNull;

#[inline]
pub(crate) fn allocate<A: BlockAllocator>(from: &A, layout: Layout) -> Option<NonNull<[u8]>> {
    Some(NonNull::slice_from_raw_parts(from.try_allocate(layout)?, layout.size()))
}

#[inline]
pub(crate) fn allocate_zeroed<A: BlockAllocator>(
    from: &A,
    layout: Layout,
) -> Option<NonNull<[u8]>> {
    let block = from.try_allocate(layout)?;
    // SAFETY: the block is new, and has `layout.size()` bytes.
    unsafe { block.write_bytes(0, layout.size()) }
    Some(NonNull::slice_from_raw_parts(block, layout.size()))
}

/// Grows or shrinks a block. The block stays in place if the allocator can resize it there, and is
/// otherwise copied to a new block.
///
/// # Safety
/// `block` is in use, and was allocated by `of` with the layout `old`.
#[inline]
pub(crate) unsafe fn resize<A: BlockAllocator>(
    of: &A,
    block: NonNull<u8>,
    old: Layout,
    new: Layout,
) -> Option<NonNull<[u8]>> {
    // A block of size 0 has no memory, so it cannot stay in place.
    let may_stay = old.size() != 0 && new.size() != 0;
    let aligned = new.align() <= old.align() || block.addr().get() & (new.align() - 1) == 0;
    // SAFETY: the caller guarantees that the block is from this allocator.
    if may_stay && aligned && unsafe { of.try_expand(block, old, new) } {
        return Some(NonNull::slice_from_raw_parts(block, new.size()));
    }
    // SAFETY: the caller's guarantee is passed on unchanged.
    unsafe { replace(of, block, old, new) }
}

/// Copies a block to a new one, and frees the old one.
///
/// # Safety
/// The same as for `resize`.
#[cold]
#[inline(never)]
unsafe fn replace<A: BlockAllocator>(
    of: &A,
    block: NonNull<u8>,
    old: Layout,
    new: Layout,
) -> Option<NonNull<[u8]>> {
    let moved = of.try_allocate(new)?;
    // SAFETY: two blocks in use do not overlap, and both are as large as the bytes copied. The old
    // block is not used after the copy.
    unsafe {
        moved.copy_from_nonoverlapping(block, old.size().min(new.size()));
        of.deallocate(block, old);
    }
    Some(NonNull::slice_from_raw_parts(moved, new.size()))
}

/// Grows a block, and zeroes the new bytes.
///
/// # Safety
/// The same as for `resize`. Also, `new` is at least as large as `old`.
#[inline]
pub(crate) unsafe fn grow_zeroed<A: BlockAllocator>(
    of: &A,
    block: NonNull<u8>,
    old: Layout,
    new: Layout,
) -> Option<NonNull<[u8]>> {
    // SAFETY: the caller's guarantee is passed on unchanged.
    let grown = unsafe { resize(of, block, old, new) }?;
    // SAFETY: the block has `new.size()` bytes, and only the bytes after the first `old.size()` are
    // zeroed.
    unsafe {
        let fresh = grown.cast::<u8>().add(old.size());
        fresh.write_bytes(0, new.size() - old.size());
    }
    Some(grown)
}

/// Implements one trait for one type.
macro_rules! bridge {
    ([$($generics:tt)*] $type:ty) => {
        // SAFETY: the blocks of a `BlockAllocator` do not overlap, are aligned, and keep their
        // address when the allocator is moved. No allocator in the list is `Clone`, except
        // `DefaultHeap`, whose values all stand for the same heap.
        unsafe impl<$($generics)*> Allocator for $type {
            #[inline]
            fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
                allocator_api::allocate(self, layout).ok_or(AllocError)
            }
            #[inline]
            fn allocate_zeroed(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
                allocator_api::allocate_zeroed(self, layout).ok_or(AllocError)
            }
            #[inline]
            unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
                // SAFETY: the caller makes the same guarantee.
                unsafe { BlockAllocator::deallocate(self, block, layout) }
            }
            #[inline]
            unsafe fn grow(
                &self,
                block: NonNull<u8>,
                old: Layout,
                new: Layout,
            ) -> Result<NonNull<[u8]>, AllocError> {
                // SAFETY: the caller makes the same guarantee.
                unsafe { allocator_api::resize(self, block, old, new) }.ok_or(AllocError)
            }
            #[inline]
            unsafe fn grow_zeroed(
                &self,
                block: NonNull<u8>,
                old: Layout,
                new: Layout,
            ) -> Result<NonNull<[u8]>, AllocError> {
                // SAFETY: the caller makes the same guarantee.
                unsafe { allocator_api::grow_zeroed(self, block, old, new) }.ok_or(AllocError)
            }
            #[inline]
            unsafe fn shrink(
                &self,
                block: NonNull<u8>,
                old: Layout,
                new: Layout,
            ) -> Result<NonNull<[u8]>, AllocError> {
                // SAFETY: the caller makes the same guarantee.
                unsafe { allocator_api::resize(self, block, old, new) }.ok_or(AllocError)
            }
        }
    };
}

/// Defines the module of one `Allocator` trait: its implementations, and `FromAllocator`.
macro_rules! bridges {
    ($(#[$doc:meta])* $name:ident from $($api:ident)::+, $feature:literal) => {
        $(#[$doc])*
        ///
        /// Every allocator of this crate implements the trait. References to the allocators
        /// implement the trait too, so `Vec::new_in(&pool)` compiles. When a collection grows, its
        /// block stays in place if the allocator can expand the block, as an arena can expand its
        /// last block.
        #[cfg(feature = $feature)]
        pub mod $name {
            use crate::allocator_api;
            use crate::sync::Mode;
            use crate::*;
            use ::$($api)::+::{AllocError, Allocator};
            use core::alloc::Layout;
            use core::ptr::NonNull;

            /// A source whose chunks are blocks of any `Allocator`.
            ///
            /// A chunk has the size that the allocator reports. If the allocator fails, so does the
            /// source.
            ///
            /// ```
            /// // `Global` stands for an allocator of another crate.
            /// # #[cfg(feature = "allocator-api2-02")] {
            /// use allocator_api2_02::alloc::Global;
            /// use mallard::{allocator_api2_02::FromAllocator, Arena};
            /// let arena = Arena::new_in(FromAllocator(Global));
            /// assert_eq!(*arena.alloc(7), 7);
            /// # }
            /// ```
            #[derive(Clone, Copy, Debug, Default)]
            pub struct FromAllocator<A>(
                /// The wrapped allocator.
                pub A,
            );

            // SAFETY: the blocks of an `Allocator` do not overlap, are aligned, and keep their
            // address when the allocator is moved.
            unsafe impl<A: Allocator> Source for FromAllocator<A> {
                fn try_take(&self, layout: Layout) -> Option<Chunk> {
                    let block = self.0.allocate(layout).ok()?;
                    let layout = Layout::from_size_align(block.len(), layout.align()).ok()?;
                    Some(Chunk { data: block.cast(), layout })
                }
                unsafe fn give(&self, chunk: Chunk) {
                    // SAFETY: the chunk has the size that the allocator reported for this block.
                    unsafe { self.0.deallocate(chunk.data, chunk.layout) }
                }
            }

            bridge!([A: BlockAllocator] AsSource<A>);
            bridge!([S: Source, const M: usize] Arena<S, M>);
            bridge!([S: Source] Multipool<S>);
            bridge!([M: Mode, S: Source] Pool<M, S>);
            bridge!([] DefaultHeap);
            bridge!([A: BlockAllocator] Counted<A>);
            bridge!([A: BlockAllocator] Limited<A>);
            bridge!([A: BlockAllocator, R: FailureRule] Failing<A, R>);
            bridge!([A: BlockAllocator, F: Observer] Traced<A, F>);
            bridge!([A: BlockAllocator + Owns, B: BlockAllocator] Fallback<A, B>);
            bridge!([const N: usize, A: BlockAllocator, B: BlockAllocator] BySize<N, A, B>);
            bridge!([A: BlockAllocator, L: Lock] Synchronized<A, L>);
            #[cfg(feature = "alloc")]
            bridge!([A: BlockAllocator, H: Fn(&Fault<'_>)] Checked<A, H>);
            #[cfg(feature = "std")]
            bridge!([S: Source, const M: usize] SharedArena<S, M>);
            #[cfg(all(
                feature = "std",
                target_os = "linux",
                any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"),
            ))]
            const _: () = {
                bridge!([] FileArena);
                bridge!([] SharedMemory);
            };
        }
    };
}

bridges! {
    /// `Allocator` of allocator-api2 0.2, the version that hashbrown and bumpalo use.
    allocator_api2_02 from allocator_api2_02::alloc, "allocator-api2-02"
}
bridges! {
    /// `Allocator` of allocator-api2 0.3.
    allocator_api2_03 from allocator_api2_03::alloc, "allocator-api2-03"
}
bridges! {
    /// `Allocator` of allocator-api2 0.4.
    allocator_api2_04 from allocator_api2_04::alloc, "allocator-api2-04"
}
bridges! {
    /// `Allocator` of nightly `core`. This feature cannot be combined with the feature `nightly` of
    /// allocator-api2 0.2, which re-exports the same trait.
    nightly from core::alloc, "nightly"
}
