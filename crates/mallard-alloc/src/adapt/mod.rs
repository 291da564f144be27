//! What an allocator may offer beside blocks, so that what is around it can pass it on.

pub(crate) mod by;
pub(crate) mod by_size;
pub(crate) mod counted;
pub(crate) mod failing;
pub(crate) mod fallback;
pub(crate) mod limited;
pub(crate) mod synchronized;
pub(crate) mod traced;

use crate::sync::Mode;
use crate::{Arena, Multipool, Pool, Source, Statistics};
use core::alloc::Layout;
use core::ptr::NonNull;

/// Can free all blocks at once. Callable only by who has the allocator to himself: a block that
/// is in use borrows it, or was made by `unsafe` calls.
pub trait Resettable {
    /// Frees every block and keeps the memory.
    fn reset(&mut self);
    /// Frees every block and gives the memory back.
    fn release(&mut self);
    /// Gives back what is idle, beyond `keep` bytes in each of its parts.
    fn trim(&mut self, keep: usize);
}

/// Can say what it holds: arenas, pools and multipools, and whatever is around them.
pub trait Measured {
    /// What is held.
    fn statistics(&self) -> Statistics;
}

/// For what has functions of the same names.
macro_rules! resettable {
    ([$($params:tt)*] $type:ty, $reset:ident) => {
        impl<$($params)*> Resettable for $type {
            fn reset(&mut self) {
                self.$reset();
            }
            fn release(&mut self) {
                self.release();
            }
            fn trim(&mut self, keep: usize) {
                self.trim(keep);
            }
        }
        impl<$($params)*> Measured for $type {
            fn statistics(&self) -> Statistics {
                self.statistics()
            }
        }
    };
}
resettable!([S: Source, const M: usize] Arena<S, M>, reset);
resettable!([S: Source] Multipool<S>, reset);
resettable!([M: Mode, S: Source] Pool<M, S>, clear);

impl<A: Measured + ?Sized> Measured for &A {
    fn statistics(&self) -> Statistics {
        (**self).statistics()
    }
}

/// All that an adaptor around `inner` is, made of four functions of its own:
///
/// ```text
///     fn take_from<S: Source>(&self, below: &S, layout: Layout) -> Option<Chunk>;
///     unsafe fn give_to<S: Source>(&self, below: &S, chunk: Chunk);
///     unsafe fn expand(&self, change: Change, below: impl FnOnce() -> bool) -> bool;
///     fn forget_all(&self); // all blocks go at once: reset, release
/// ```
///
/// An adaptor of an allocator is an allocator, an adaptor of a source is a source.
macro_rules! adaptor {
    ($type:ident [$($name:ident: $bound:path),*]) => {
        // SAFETY: blocks are those of the allocator below.
        unsafe impl<A: BlockAllocator $(, $name: $bound)*> BlockAllocator for $type<A $(, $name)*> {
            #[inline]
            fn try_allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
                Some(self.take_from(&&self.inner, layout)?.data)
            }
            #[inline]
            unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
                // SAFETY: as the caller says, and blocks are those of `inner`.
                unsafe { self.give_to(&&self.inner, Chunk { data: block, layout }) }
            }
            #[inline]
            unsafe fn try_expand(&self, block: NonNull<u8>, from: Layout, to: Layout) -> bool {
                // SAFETY: as the caller says, and blocks are those of `inner`.
                self.expand(Change { block, from, to }, || unsafe {
                    self.inner.try_expand(block, from, to)
                })
            }
        }

        // SAFETY: chunks are those of the source below.
        unsafe impl<A: Source $(, $name: $bound)*> Source for $type<A $(, $name)*> {
            #[inline]
            fn try_take(&self, layout: Layout) -> Option<Chunk> {
                self.take_from(&self.inner, layout)
            }
            #[inline]
            unsafe fn give(&self, chunk: Chunk) {
                // SAFETY: as the caller says, and chunks are those of `inner`.
                unsafe { self.give_to(&self.inner, chunk) }
            }
        }

        // SAFETY: blocks are those of `inner`.
        unsafe impl<A: Owning $(, $name)*> Owning for $type<A $(, $name)*> {
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
            /// What is wrapped.
            pub const fn inner(&self) -> &A {
                &self.inner
            }
        }
    };
}
pub(crate) use adaptor;

/// A block that grows or shrinks where it is.
#[derive(Clone, Copy)]
pub(crate) struct Change {
    #[allow(dead_code)] // most adaptors need the sizes only
    pub(crate) block: NonNull<u8>,
    pub(crate) from: Layout,
    pub(crate) to: Layout,
}

/// What an adaptor's file needs for the above.
pub(crate) mod prelude {
    pub(crate) use super::{adaptor, Change, Measured, Resettable};
    pub(crate) use crate::{BlockAllocator, Chunk, Owning, Source, Statistics};
    pub(crate) use core::alloc::Layout;
    pub(crate) use core::ptr::NonNull;
}
