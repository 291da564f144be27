//! Adaptors. Each adaptor wraps any allocator or source and adds one feature.

pub(crate) mod as_source;
pub(crate) mod by_size;
pub(crate) mod counted;
pub(crate) mod failing;
pub(crate) mod fallback;
pub(crate) mod limited;
pub(crate) mod synchronized;
pub(crate) mod traced;

use core::alloc::Layout;
use core::ptr::NonNull;

/// Implements the allocator traits for an adaptor with a field `inner`. The implementations call
/// four functions of the adaptor:
///
/// ```text
///     fn take_from<S: Source>(&self, below: &S, layout: Layout) -> Option<Chunk>;
///     unsafe fn give_to<S: Source>(&self, below: &S, chunk: Chunk);
///     unsafe fn expand(&self, change: Change, below: impl FnOnce() -> bool) -> bool;
///     fn forget_all(&self); // called before a reset or release frees all blocks
/// ```
///
/// An adaptor around an allocator is an allocator, and an adaptor around a source is a source.
macro_rules! adaptor {
    ($type:ident [$($name:ident: $bound:path),*]) => {
        // SAFETY: all blocks are blocks of `inner`.
        unsafe impl<A: BlockAllocator $(, $name: $bound)*> BlockAllocator for $type<A $(, $name)*> {
            #[inline]
            fn try_allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
                Some(self.take_from(&&self.inner, layout)?.data)
            }
            #[inline]
            unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
                // SAFETY: the block is from `inner`, and the caller's guarantee holds for `inner`
                // too.
                unsafe { self.give_to(&&self.inner, Chunk { data: block, layout }) }
            }
            #[inline]
            unsafe fn try_expand(&self, block: NonNull<u8>, from: Layout, to: Layout) -> bool {
                // SAFETY: the block is from `inner`, and the caller's guarantee holds for `inner`
                // too.
                self.expand(Change { block, from, to }, || unsafe {
                    self.inner.try_expand(block, from, to)
                })
            }
        }

        // SAFETY: all chunks are chunks of `inner`.
        unsafe impl<A: Source $(, $name: $bound)*> Source for $type<A $(, $name)*> {
            #[inline]
            fn try_take(&self, layout: Layout) -> Option<Chunk> {
                self.take_from(&self.inner, layout)
            }
            #[inline]
            unsafe fn give(&self, chunk: Chunk) {
                // SAFETY: the chunk is from `inner`, and the caller's guarantee holds for `inner`
                // too.
                unsafe { self.give_to(&self.inner, chunk) }
            }
        }

        // SAFETY: all blocks are blocks of `inner`.
        unsafe impl<A: Owns $(, $name)*> Owns for $type<A $(, $name)*> {
            #[inline]
            fn owns(&self, p: *const u8) -> bool {
                self.inner.owns(p)
            }
        }

        impl<A: Resettable $(, $name: $bound)*> Resettable for $type<A $(, $name)*> {
            fn reset(&mut self) {
                self.forget_all();
                self.inner.reset();
            }
            fn release(&mut self) {
                self.forget_all();
                self.inner.release();
            }
            fn trim(&mut self, keep: usize) {
                self.inner.trim(keep);
            }
        }

        impl<A: Measured $(, $name)*> Measured for $type<A $(, $name)*> {
            fn statistics(&self) -> Statistics {
                self.inner.statistics()
            }
        }

        impl<A $(, $name)*> $type<A $(, $name)*> {
            /// Returns the wrapped allocator or source.
            pub const fn inner(&self) -> &A {
                &self.inner
            }
        }
    };
}
pub(crate) use adaptor;

/// A block that is to grow or shrink in place.
#[derive(Clone, Copy)]
pub(crate) struct Change {
    #[allow(dead_code)] // most adaptors use only the sizes
    pub(crate) block: NonNull<u8>,
    pub(crate) from: Layout,
    pub(crate) to: Layout,
}

/// The names that the file of each adaptor imports.
pub(crate) mod prelude {
    pub(crate) use super::{adaptor, Change};
    pub(crate) use crate::base::resettable::{Measured, Resettable};
    pub(crate) use crate::{BlockAllocator, Chunk, Owns, Source, Statistics};
    pub(crate) use core::alloc::Layout;
    pub(crate) use core::ptr::NonNull;
}
