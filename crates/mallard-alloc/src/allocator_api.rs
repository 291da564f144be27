//! What the `Allocator` traits of others ask for, by what a `BlockAllocator` can do.
//!
//! Those traits are foreign, so there can be no blanket implementation: `bridges!` has the list
//! of our types, and is expanded once for each trait.

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
    // SAFETY: a fresh block has that many bytes.
    unsafe { block.write_bytes(0, layout.size()) }
    Some(NonNull::slice_from_raw_parts(block, layout.size()))
}

/// Grows or shrinks: in place where the allocator can, else by a copy.
///
/// # Safety
/// `block` is the allocator's, in use, with the layout `old`.
#[inline]
pub(crate) unsafe fn resize<A: BlockAllocator>(
    of: &A,
    block: NonNull<u8>,
    old: Layout,
    new: Layout,
) -> Option<NonNull<[u8]>> {
    // A block without bytes has no place, so none to stay in.
    let may_stay = old.size() != 0 && new.size() != 0;
    let aligned = new.align() <= old.align() || block.addr().get() & (new.align() - 1) == 0;
    // SAFETY: as the caller says.
    if may_stay && aligned && unsafe { of.try_expand(block, old, new) } {
        return Some(NonNull::slice_from_raw_parts(block, new.size()));
    }
    // SAFETY: as the caller says.
    unsafe { replace(of, block, old, new) }
}

/// # Safety
/// As for `resize`.
#[cold]
#[inline(never)]
unsafe fn replace<A: BlockAllocator>(
    of: &A,
    block: NonNull<u8>,
    old: Layout,
    new: Layout,
) -> Option<NonNull<[u8]>> {
    let moved = of.try_allocate(new)?;
    // SAFETY: both are blocks in use, hence apart, and each has at least as many bytes; then the
    // old one is no longer used.
    unsafe {
        moved.copy_from_nonoverlapping(block, old.size().min(new.size()));
        of.deallocate(block, old);
    }
    Some(NonNull::slice_from_raw_parts(moved, new.size()))
}

/// # Safety
/// As for `resize`; `new` is not smaller.
#[inline]
pub(crate) unsafe fn grow_zeroed<A: BlockAllocator>(
    of: &A,
    block: NonNull<u8>,
    old: Layout,
    new: Layout,
) -> Option<NonNull<[u8]>> {
    // SAFETY: as the caller says.
    let grown = unsafe { resize(of, block, old, new) }?;
    // SAFETY: the block has `new.size()` bytes, those behind the old ones among them.
    unsafe {
        let fresh = grown.cast::<u8>().add(old.size());
        fresh.write_bytes(0, new.size() - old.size());
    }
    Some(grown)
}

/// One trait for one type.
macro_rules! bridge {
    ([$($generics:tt)*] $type:ty) => {
        // SAFETY: a `BlockAllocator` promises that its blocks are apart, aligned, and stay where
        // they are when it is moved. No type in the list is `Clone` but the heap, of which there
        // is one.
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
                // SAFETY: the caller's promise is the same.
                unsafe { BlockAllocator::deallocate(self, block, layout) }
            }
            #[inline]
            unsafe fn grow(
                &self,
                block: NonNull<u8>,
                old: Layout,
                new: Layout,
            ) -> Result<NonNull<[u8]>, AllocError> {
                // SAFETY: the caller's promise is the same.
                unsafe { allocator_api::resize(self, block, old, new) }.ok_or(AllocError)
            }
            #[inline]
            unsafe fn grow_zeroed(
                &self,
                block: NonNull<u8>,
                old: Layout,
                new: Layout,
            ) -> Result<NonNull<[u8]>, AllocError> {
                // SAFETY: the caller's promise is the same.
                unsafe { allocator_api::grow_zeroed(self, block, old, new) }.ok_or(AllocError)
            }
            #[inline]
            unsafe fn shrink(
                &self,
                block: NonNull<u8>,
                old: Layout,
                new: Layout,
            ) -> Result<NonNull<[u8]>, AllocError> {
                // SAFETY: the caller's promise is the same.
                unsafe { allocator_api::resize(self, block, old, new) }.ok_or(AllocError)
            }
        }
    };
}

/// A module for one `Allocator` trait: all our types under it, and what is under it as a source.
macro_rules! bridges {
    ($(#[$doc:meta])* $name:ident from $($api:ident)::+, $feature:literal) => {
        $(#[$doc])*
        ///
        /// Every allocator of this crate implements it by value, so a reference to one does
        /// too: `Vec::new_in(&pool)`. What grows stays where it is when the allocator can
        /// expand it, as an arena can its last block.
        #[cfg(feature = $feature)]
        pub mod $name {
            use crate::allocator_api;
            use crate::sync::Mode;
            use crate::*;
            use ::$($api)::+::{AllocError, Allocator};
            use core::alloc::Layout;
            use core::ptr::NonNull;

            /// Any `Allocator`, as a source of chunks.
            ///
            /// A chunk is as large as the allocator says its block is. Fails when that does.
            #[derive(Clone, Copy, Debug, Default)]
            pub struct FromAllocator<A>(
                /// Where chunks come from.
                pub A,
            );

            // SAFETY: blocks of an `Allocator` are apart, aligned, and stay where they are when
            // it is moved.
            unsafe impl<A: Allocator> Source for FromAllocator<A> {
                fn try_take(&self, layout: Layout) -> Option<Chunk> {
                    let block = self.0.allocate(layout).ok()?;
                    let layout = Layout::from_size_align(block.len(), layout.align()).ok()?;
                    Some(Chunk { data: block.cast(), layout })
                }
                unsafe fn give(&self, chunk: Chunk) {
                    // SAFETY: the size is the one that the allocator told, which fits.
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
    /// `Allocator` of allocator-api2 0.2, which hashbrown and bumpalo use.
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
    /// `Allocator` of a nightly `core`. Not together with a feature `nightly` of
    /// allocator-api2 0.2, which makes that trait the same as this.
    nightly from core::alloc, "nightly"
}
