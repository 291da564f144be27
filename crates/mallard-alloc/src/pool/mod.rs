//! A pool: blocks of one layout, given and taken back in constant time.

#[cfg(feature = "std")]
pub(crate) mod cached;
pub(crate) mod chunk_list;
pub(crate) mod core_trait;
pub(crate) mod free_bitmap;
pub(crate) mod layout;
#[cfg(target_has_atomic = "64")]
pub(crate) mod lock_free;
#[cfg(feature = "std")]
pub(crate) mod locked;
pub(crate) mod methods;
pub(crate) mod plain;
pub(crate) mod slots;

use crate::pool::core_trait::{Core, LiveCursor};
use crate::pool::methods::pool_methods;
use crate::pool::slots::{Sizing, Slots};
use crate::source::{DefaultHeap, Source};
use crate::sync::{self, Growing, Mode, Shared};
use crate::{BlockAllocator, Growth, Owns, Validity};
use core::alloc::Layout;
use core::fmt;
use core::mem::MaybeUninit;
use core::ptr::NonNull;

/// Gives blocks of one layout and takes them back one by one.
///
/// ```
/// use core::alloc::Layout;
/// use mallard::{BlockAllocator, Pool};
/// let pool = Pool::new(Layout::new::<[u64; 6]>());
/// let block = pool.allocate(Layout::new::<[u64; 6]>());
/// // SAFETY: it is from this pool, with this layout.
/// unsafe { pool.deallocate(block, Layout::new::<[u64; 6]>()) };
/// assert!(pool.try_allocate(Layout::new::<[u64; 7]>()).is_none()); // does not fit
/// ```
///
/// Growth, memory and order of reuse are those of an [`ObjectPool`](crate::ObjectPool). What is
/// smaller than a block gets one; what is larger, or more aligned, is refused. Blocks that are
/// left at its end are gone with it.
pub struct Pool<M: Mode = sync::Unshared, S: Source = DefaultHeap> {
    slots: Slots<M, S>,
}

// SAFETY: chunks and source move with it; who has blocks promised to mind what they do.
unsafe impl<M: Mode, S: Source + Send> Send for Pool<M, S> {}
// SAFETY: the mode is for many threads.
unsafe impl<M: Shared, S: Source + Send + Sync> Sync for Pool<M, S> {}

impl Pool {
    /// Makes a pool for blocks of layout `block` in one thread, without allocating.
    pub const fn new(block: Layout) -> Self {
        Self::with_mode(block)
    }
}

impl<M: Mode> Pool<M> {
    /// Makes a pool for blocks of layout `block` in any mode that can grow, without allocating.
    pub const fn with_mode(block: Layout) -> Self
    where
        M: Growing,
    {
        Self::new_in(block, DefaultHeap)
    }
    /// Makes a pool that grows as `growth` says, without allocating.
    pub const fn with_growth(block: Layout, growth: Growth) -> Self
    where
        M: Growing,
    {
        Self::with_growth_in(block, growth, DefaultHeap)
    }
    /// Makes a pool whose first step of growth has room for `count` blocks, without allocating. The
    /// first block takes that step.
    pub const fn with_capacity(block: Layout, count: usize) -> Self
    where
        M: Growing,
    {
        Pool { slots: Slots::new(block, Sizing::First(count), DefaultHeap, ()) }
    }
    /// `with_mode`, with the caller's source.
    pub const fn new_in<S: Source>(block: Layout, source: S) -> Pool<M, S>
    where
        M: Growing,
    {
        Pool { slots: Slots::new(block, Sizing::Usual, source, ()) }
    }
    /// `with_growth`, with the caller's source.
    pub const fn with_growth_in<S: Source>(block: Layout, growth: Growth, source: S) -> Pool<M, S>
    where
        M: Growing,
    {
        Pool { slots: Slots::new(block, Sizing::Growth(growth), source, ()) }
    }

    /// Makes a pool for exactly `count` blocks, without allocating. The first block takes the memory
    /// of all.
    pub const fn fixed(block: Layout, count: usize) -> Self {
        Self::fixed_in(block, count, DefaultHeap)
    }
    /// `fixed`, with the caller's source.
    pub const fn fixed_in<S: Source>(block: Layout, count: usize, source: S) -> Pool<M, S> {
        Pool { slots: Slots::new(block, Sizing::Fixed(count), source, ()) }
    }
}

impl<M: Mode, S: Source> Pool<M, S> {
    /// The largest layout that gets a block: what was asked for, rounded up to its alignment.
    pub fn block(&self) -> Layout {
        let shape = self.slots.shape();
        // SAFETY: they are of a `Layout`, rounded up as one may be.
        unsafe { Layout::from_size_align_unchecked(shape.stride, shape.align) }
    }

    #[inline(always)]
    fn fits(&self, layout: Layout) -> bool {
        let shape = self.slots.shape();
        layout.size() <= shape.stride && layout.align() <= shape.align
    }

    /// All of `out`, or none and `false`. Each is of the layout `block()`.
    pub fn try_allocate_batch(&self, out: &mut [MaybeUninit<NonNull<u8>>]) -> bool {
        self.slots.try_allocate_batch(out)
    }
    /// Takes blocks back.
    ///
    /// # Safety
    /// Each is from this pool, not of size 0, and was not given back since.
    pub unsafe fn deallocate_batch(&self, blocks: &[NonNull<u8>]) {
        if let Some(core) = self.slots.core() {
            // SAFETY: the caller promises it.
            unsafe { core.deallocate_batch(blocks) }
        }
    }

    /// All blocks in use, in address order within a step of growth. Who calls `f` with what is
    /// left behind them is the caller's to know.
    pub fn for_each(&mut self, mut f: impl FnMut(NonNull<u8>)) {
        let mut cursor = LiveCursor::START;
        while let Some(block) = self.slots.next_live(&mut cursor) {
            f(block);
        }
    }

    /// All blocks are free; the memory is kept.
    pub fn clear(&mut self) {
        self.slots.reset();
    }
    /// What `p` is to this pool. O(steps of growth), and a search of those freed lately.
    pub fn classify(&self, p: *const u8) -> Validity {
        self.slots.classify(p)
    }
    /// The source it was made with.
    pub fn source(&mut self) -> &S {
        self.slots.upstream().0
    }

    pool_methods!();
}

// SAFETY: blocks are slots of chunks that stay where they are, given out once at a time.
unsafe impl<M: Mode, S: Source> BlockAllocator for Pool<M, S> {
    #[inline(always)]
    fn try_allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        if layout.size() == 0 {
            return Some(crate::bits::dangling(layout));
        }
        if !self.fits(layout) {
            return None;
        }
        self.slots.try_allocate()
    }

    #[inline(always)]
    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
        if layout.size() == 0 {
            return;
        }
        // SAFETY: the block is of this pool, so there is a core, and it is the core's.
        unsafe { self.slots.core().unwrap_unchecked().deallocate(block) }
    }

    #[inline]
    unsafe fn try_expand(&self, _: NonNull<u8>, from: Layout, to: Layout) -> bool {
        from.size() != 0 && to.size() != 0 && self.fits(to)
    }
}

// SAFETY: its blocks lie in its chunks, which are nobody else's.
unsafe impl<M: Mode, S: Source> Owns for Pool<M, S> {
    fn owns(&self, p: *const u8) -> bool {
        self.classify(p) != Validity::Miss
    }
}

impl<M: Mode, S: Source> fmt::Debug for Pool<M, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (block, len) = (self.block(), self.len());
        f.debug_struct("Pool").field("block", &block).field("len", &len).finish_non_exhaustive()
    }
}

crate::base::resettable::resettable!([M: Mode, S: Source] Pool<M, S>, clear);
