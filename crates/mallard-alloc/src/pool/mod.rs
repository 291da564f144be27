//! A pool allocates and frees blocks of one layout in constant time.

#[cfg(feature = "std")]
pub(crate) mod cached;
// Only pools for several threads use all of this module. These pools need `std` or 64-bit atomics.
#[cfg_attr(not(any(feature = "std", target_has_atomic = "64")), allow(dead_code))]
pub(crate) mod chunk_list;
pub(crate) mod core_trait;
pub(crate) mod free_bitmap;
// Only pools for several threads use all of this module. These pools need `std` or 64-bit atomics.
#[cfg_attr(not(any(feature = "std", target_has_atomic = "64")), allow(dead_code))]
pub(crate) mod layout;
#[cfg(target_has_atomic = "64")]
pub(crate) mod lock_free;
#[cfg(feature = "std")]
pub(crate) mod locked;
pub(crate) mod methods;
pub(crate) mod plain;
pub(crate) mod slots;

use crate::base::source::{DefaultHeap, Source};
use crate::pool::core_trait::{Core, LiveCursor};
use crate::pool::methods::pool_methods;
use crate::pool::slots::{Sizing, Slots};
use crate::sync::{self, Growing, Mode, Shared};
use crate::{BlockAllocator, Growth, Owns, Validity};
use core::alloc::Layout;
use core::fmt;
use core::mem::MaybeUninit;
use core::ptr::NonNull;

/// Allocates blocks of one layout and frees them one by one, in constant time.
///
/// ```
/// use core::alloc::Layout;
/// use mallard::{BlockAllocator, Pool};
/// let pool = Pool::new(Layout::new::<[u64; 6]>());
/// let block = pool.allocate(Layout::new::<[u64; 6]>());
/// // SAFETY: the block is from this pool, and has this layout.
/// unsafe { pool.deallocate(block, Layout::new::<[u64; 6]>()) };
/// assert!(pool.try_allocate(Layout::new::<[u64; 7]>()).is_none()); // does not fit
/// ```
///
/// Growth, memory and order of reuse are the same as in an [`ObjectPool`](crate::ObjectPool). A
/// request that is smaller than a block gets a whole block. A request that is larger, or needs more
/// alignment, fails. Dropping the pool frees all blocks.
pub struct Pool<M: Mode = sync::Unshared, S: Source = DefaultHeap> {
    slots: Slots<M, S>,
}

// SAFETY: the chunks and the source move with the pool. The users of blocks fulfil the requirements
// of `BlockAllocator`.
unsafe impl<M: Mode, S: Source + Send> Send for Pool<M, S> {}
// SAFETY: any number of threads may call a pool of a shared mode.
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
    /// Makes a pool that grows by the rule `growth`, without allocating.
    pub const fn with_growth(block: Layout, growth: Growth) -> Self
    where
        M: Growing,
    {
        Self::with_growth_in(block, growth, DefaultHeap)
    }
    /// Makes a pool whose first chunk request has room for `count` blocks, without allocating. The
    /// first allocation sends this request to the source.
    pub const fn with_capacity(block: Layout, count: usize) -> Self
    where
        M: Growing,
    {
        Pool { slots: Slots::new(block, Sizing::First(count), DefaultHeap, ()) }
    }
    /// Makes a pool like `with_mode`, with the caller's source.
    pub const fn new_in<S: Source>(block: Layout, source: S) -> Pool<M, S>
    where
        M: Growing,
    {
        Pool { slots: Slots::new(block, Sizing::Usual, source, ()) }
    }
    /// Makes a pool like `with_growth`, with the caller's source.
    pub const fn with_growth_in<S: Source>(block: Layout, growth: Growth, source: S) -> Pool<M, S>
    where
        M: Growing,
    {
        Pool { slots: Slots::new(block, Sizing::Growth(growth), source, ()) }
    }

    /// Makes a pool for exactly `count` blocks, without allocating. The first allocation requests
    /// the memory of all blocks from the source.
    pub const fn fixed(block: Layout, count: usize) -> Self {
        Self::fixed_in(block, count, DefaultHeap)
    }
    /// Makes a pool like `fixed`, with the caller's source. A small [`Buffer`](crate::Buffer) needs
    /// a mode with small chunks, such as `sync::Unshared<512>`: see
    /// [`ObjectPool::fixed_in`](crate::ObjectPool::fixed_in).
    pub const fn fixed_in<S: Source>(block: Layout, count: usize, source: S) -> Pool<M, S> {
        Pool { slots: Slots::new(block, Sizing::Fixed(count), source, ()) }
    }
}

impl<M: Mode, S: Source> Pool<M, S> {
    /// Returns the largest layout that fits in a block. This is the layout that was passed to the
    /// constructor, with the size rounded up to the alignment.
    pub fn block(&self) -> Layout {
        let shape = self.slots.shape();
        // SAFETY: the size and the alignment are from a `Layout`, with the size rounded up.
        unsafe { Layout::from_size_align_unchecked(shape.stride, shape.align) }
    }

    #[inline(always)]
    fn fits(&self, layout: Layout) -> bool {
        let shape = self.slots.shape();
        layout.size() <= shape.stride && layout.align() <= shape.align
    }

    /// Fills all of `out` with blocks of the layout `block()`, or returns `false` and allocates none.
    ///
    /// ```
    /// use core::{alloc::Layout, mem::MaybeUninit};
    /// let pool = mallard::Pool::new(Layout::new::<u64>());
    /// let mut blocks = [MaybeUninit::uninit(); 8];
    /// assert!(pool.try_allocate_batch(&mut blocks));
    /// assert_eq!(pool.len(), 8);
    /// ```
    pub fn try_allocate_batch(&self, out: &mut [MaybeUninit<NonNull<u8>>]) -> bool {
        self.slots.try_allocate_batch(out)
    }
    /// Frees all of `blocks`.
    ///
    /// # Safety
    /// Each entry is a block that this pool allocated for a request of more than 0 bytes. The block
    /// was not freed since then, and nobody uses it any more.
    pub unsafe fn deallocate_batch(&self, blocks: &[NonNull<u8>]) {
        if let Some(core) = self.slots.core() {
            // SAFETY: the caller guarantees that the blocks may be freed.
            unsafe { core.deallocate_batch(blocks) }
        }
    }

    /// Calls `f` with each block in use. Blocks whose memory came from one chunk request are in
    /// address order.
    pub fn for_each(&mut self, mut f: impl FnMut(NonNull<u8>)) {
        let mut cursor = LiveCursor::START;
        while let Some(block) = self.slots.next_live(&mut cursor) {
            f(block);
        }
    }

    /// Frees all blocks and keeps the memory.
    pub fn clear(&mut self) {
        self.slots.reset();
    }
    /// Returns whether `p` is a block in use, another address in a chunk, or outside all chunks.
    /// O(chunk requests), plus a search of the blocks that were freed last.
    pub fn classify(&self, p: *const u8) -> Validity {
        self.slots.classify(p)
    }
    /// Returns the source of the pool.
    pub fn source(&mut self) -> &S {
        self.slots.upstream().0
    }

    pool_methods!();
}

// SAFETY: a block is a slot of a chunk, which never moves, and a block has one user at a time.
unsafe impl<M: Mode, S: Source> BlockAllocator for Pool<M, S> {
    #[inline(always)]
    fn try_allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        if layout.size() == 0 {
            return Some(crate::base::bits::dangling(layout));
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
        // SAFETY: the pool has a core, since `block` is a block of the pool.
        unsafe { self.slots.core().unwrap_unchecked().deallocate(block) }
    }

    #[inline]
    unsafe fn try_expand(&self, _: NonNull<u8>, from: Layout, to: Layout) -> bool {
        from.size() != 0 && to.size() != 0 && self.fits(to)
    }
}

// SAFETY: the blocks of the pool lie in its chunks, which belong to this pool alone.
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
