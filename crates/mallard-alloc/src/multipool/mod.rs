//! A multipool, which has one pool for each size class, over one source.

mod bootstrap_slabs;
mod chunks;
mod class_pool;
mod large_blocks;
mod list;

use crate::base::bits::{align_up, dangling, layout};
use crate::{size_class, BlockAllocator, Chunk, DefaultHeap, Growth, Owns, Source};
use crate::{Statistics, Validity};
use bootstrap_slabs::BootstrapSlabs;
use class_pool::{ClassPool, Shape};
use core::alloc::Layout;
use core::cell::Cell;
use core::ptr::{self, NonNull};
use large_blocks::LargeBlocks;

/// Allocates blocks of any size and frees them one by one. Blocks have no header, because the size
/// given to `deallocate` selects the pool.
///
/// ```
/// use mallard::{BlockAllocator, Multipool};
/// use std::alloc::Layout;
/// let pool = Multipool::new(); // takes no memory yet; may be a `const` or `static`
/// let layout = Layout::new::<[u64; 5]>();
/// let block = pool.allocate(layout);
/// // SAFETY: `pool` allocated it, with this layout.
/// unsafe { pool.deallocate(block, layout) };
/// ```
///
/// With a feature such as `allocator-api2-02`, a multipool is an `Allocator`, by value and by
/// reference: `Vec::new_in(&pool)`. With an arena as its source, `Multipool::new_in(&arena)`, a
/// multipool reuses freed blocks, and the arena frees all blocks together. Lakos (ACCU 2017) calls
/// this combination a multipool over a monotonic allocator.
///
/// **Sizes.** A block below 128 bytes is at most 7 bytes larger than requested, and any other
/// pooled block at most 12.5 % larger (see [`size_class`]). A block above
/// [`LARGEST`](Self::LARGEST), or aligned to more than a cache line, is a large block. A large
/// block comes directly from the source, and a free returns it to the source.
///
/// **Growth.** The first blocks of all sizes are cut from shared slabs of 1, 4, 16, 64 and 256 KiB.
/// When the slabs are used up, each size class requests separate chunks. The first chunk has 2 KiB,
/// and each later chunk is four times as large, up to 1 MiB. With a growth rule of the caller there
/// are no slabs, and the limit of the rule applies to each class separately. To limit all classes
/// together, limit the source.
///
/// An allocation fails when the source is exhausted. A failed call changes nothing. A multipool is
/// `Send` and not `Sync`. [`Synchronized`](crate::Synchronized) puts a lock around a multipool. An
/// allocation and its free together cost about ten instructions. An empty multipool has less than
/// 800 bytes.
pub struct Multipool<S: Source = DefaultHeap> {
    cores: [Cell<NonNull<ClassPool>>; CLASSES],
    slabs: BootstrapSlabs,
    large: LargeBlocks,
    growth: Growth,
    source: S,
}

const LARGEST: usize = 32 << 10;
const CLASSES: usize = size_class::of(LARGEST) + 1;
// With a larger maximum, every chunk of a class would need a stricter alignment for the sake of
// rare requests.
const ALIGN_MAX: usize = 64;
const GROWTH: Growth = Growth { first: 2048, num: 4, ..Growth::new() };

static SHAPES: [Shape; CLASSES] = {
    let mut shapes = [Shape { bytes: 8, align: 8 }; CLASSES];
    let mut i = 0;
    while i < CLASSES {
        let align = size_class::align(i);
        let align = if align < ALIGN_MAX { align } else { ALIGN_MAX };
        shapes[i] = Shape { bytes: size_class::bytes(i), align };
        i += 1;
    }
    shapes
};

/// A group of pools, for eight neighbouring size classes, in memory from the source. A group is
/// made when its first pool is needed, because a multipool often serves only the few sizes of one
/// small container.
#[repr(C)] // the first pool is at the first byte
struct Group {
    cores: [ClassPool; GROUP],
    taken: Chunk,
}
const GROUP: usize = 8;

struct Absent(ClassPool);
// SAFETY: nothing ever writes to this pool, because it never grows, and no block is freed to it.
unsafe impl Sync for Absent {}

/// An empty pool, which stands for the pool of each class that does not have a pool yet. Because
/// this pool is empty, only `refill` has to test whether the pool of a class exists, and
/// `try_allocate` does not.
static ABSENT: Absent = Absent(ClassPool::new(SHAPES[0], GROWTH));

const fn absent() -> NonNull<ClassPool> {
    // SAFETY: a `static` is not at address 0.
    unsafe { NonNull::new_unchecked((&raw const ABSENT.0).cast_mut()) }
}

// SAFETY: everything that a multipool points to belongs to it alone, except `ABSENT`, which nobody
// writes.
unsafe impl<S: Source + Send> Send for Multipool<S> {}

impl Multipool {
    /// Makes a multipool over the global allocator, without allocating.
    pub const fn new() -> Self {
        Self::new_in(DefaultHeap)
    }
}

impl<S: Source> Multipool<S> {
    /// The size of the largest blocks that pools serve, in bytes.
    pub const LARGEST: usize = LARGEST;

    /// Makes a multipool over a source, without allocating.
    pub const fn new_in(source: S) -> Self {
        Self::made_of(BootstrapSlabs::new(), GROWTH, source)
    }

    /// Makes a multipool in which each size class grows by the rule `growth`, without shared slabs
    /// and without allocating.
    pub const fn with_growth_in(growth: Growth, source: S) -> Self {
        Self::made_of(BootstrapSlabs::none(), growth, source)
    }

    const fn made_of(slabs: BootstrapSlabs, growth: Growth, source: S) -> Self {
        let cores = [const { Cell::new(absent()) }; CLASSES];
        Self { cores, slabs, large: LargeBlocks::new(), growth, source }
    }

    /// Returns the source of the chunks.
    pub const fn source(&self) -> &S {
        &self.source
    }

    /// Frees all blocks and keeps the memory, except the memory of large blocks. O(slabs and
    /// classes).
    pub fn reset(&mut self) {
        self.for_each_core(|_, core| core.reset());
        self.slabs.reset();
        self.large.release(&self.source);
    }

    /// Frees all blocks, and returns all memory to the source.
    pub fn release(&mut self) {
        self.for_each_core(|_, core| core.release(&self.source));
        for first in (0..CLASSES).step_by(GROUP) {
            self.drop_group(first);
        }
        self.slabs.release(&self.source);
        self.large.release(&self.source);
    }

    /// Returns chunks without a block in use to the source, except for `keep` bytes in each size
    /// class. Sorts the free blocks, so the time is O(n log n).
    pub fn trim(&mut self, keep: usize) {
        let slabs = self.slabs.chunks();
        self.slabs.count_cut(&SHAPES);
        self.for_each_core(|_, core| core.count_free(slabs));
        self.for_each_core(|_, core| {
            core.forget_idle(slabs);
            core.trim(&self.source, keep);
        });
        self.slabs.give_idle(&self.source);
    }

    /// Returns the statistics. O(free blocks).
    pub fn statistics(&self) -> Statistics {
        let mut s = Statistics::default();
        self.large.add_to(&mut s);
        self.slabs.add_to(&mut s, &SHAPES);
        self.for_each_core(|_, core| core.add_to(&mut s));
        self.for_each_group(|taken| s.bytes_taken += taken.layout.size());
        s
    }

    /// Returns whether `p` is a block in use, another address in a chunk, or outside all chunks.
    /// O(chunks + free blocks).
    pub fn classify(&self, p: *const u8) -> Validity {
        let valid_if = |valid| if valid { Validity::Valid } else { Validity::Invalid };
        if let Some(is_begin) = self.large.find(p) {
            return valid_if(is_begin);
        }
        if let Some(slab) = self.slabs.chunks().find(p) {
            let kind = BootstrapSlabs::kind_of(slab, p, &SHAPES);
            return valid_if(kind.is_some_and(|class| !self.core(class).has_free(p)));
        }
        let mut answer = Validity::Miss;
        self.for_each_core(|_, core| {
            if answer == Validity::Miss {
                answer = core.classify(p);
            }
        });
        answer
    }

    #[inline(always)]
    fn core(&self, class: usize) -> &ClassPool {
        debug_assert!(class < CLASSES);
        // SAFETY: `class` is the class of a size up to `LARGEST`. The pool of a class exists until
        // `release`, which has `&mut self`.
        unsafe { self.cores.get_unchecked(class).get().as_ref() }
    }

    /// Allocates a block of a class that has no free block. The block comes from a bootstrap slab,
    /// or else from a chunk. Makes the pool of the class if it has no pool.
    #[inline(never)]
    fn refill(&self, class: usize) -> Option<NonNull<u8>> {
        let first = class / GROUP * GROUP;
        let is_new = self.is_absent(class);
        if is_new {
            self.make_group(first)?;
        }
        let core = self.core(class);
        if core.is_used_up() {
            if let Some(slots) = self.slabs.cut(&self.source, SHAPES[class], class) {
                // SAFETY: the slots were just cut for this class. Slabs exist until `release`, or
                // until `trim`, which first calls `forget_idle`.
                unsafe { core.add_fresh(slots) };
            }
        }
        let block = core.allocate(&self.source);
        if block.is_none() && is_new {
            self.drop_group_if_untouched(first);
        }
        block
    }

    fn is_absent(&self, class: usize) -> bool {
        ptr::eq(self.core(class), &ABSENT.0)
    }

    /// Makes the pools of the class `first` and of the seven classes after it. Returns `None` if
    /// the source is exhausted.
    #[cold]
    fn make_group(&self, first: usize) -> Option<()> {
        let taken = self.source.try_take(Layout::new::<Group>())?;
        if !self.is_absent(first) {
            // While the source supplied the memory, it called this multipool, and that call made
            // the group.
            // SAFETY: the source has just supplied the chunk, and nothing is in the chunk.
            unsafe { self.source.give(taken) };
            return Some(());
        }
        let group = taken.data.cast::<Group>();
        let core = |i: usize| ClassPool::new(SHAPES[(first + i).min(CLASSES - 1)], self.growth);
        // SAFETY: the source has just supplied the chunk, with the layout of a group.
        unsafe { group.write(Group { cores: core::array::from_fn(core), taken }) };
        for (i, slot) in self.cores[first..].iter().take(GROUP).enumerate() {
            // SAFETY: the pools are at the beginning of their group.
            slot.set(unsafe { group.cast::<ClassPool>().add(i) });
        }
        Some(())
    }

    fn drop_group_if_untouched(&self, first: usize) {
        if (first..CLASSES).take(GROUP).all(|i| self.core(i).is_untouched()) {
            self.drop_group(first);
        }
    }

    /// Returns the group to the source, if there is a group. Requires that none of its pools has a
    /// chunk.
    fn drop_group(&self, first: usize) {
        if self.is_absent(first) {
            return;
        }
        let group = self.cores[first].get().cast::<Group>();
        self.cores[first..].iter().take(GROUP).for_each(|slot| slot.set(absent()));
        // SAFETY: the source supplied the chunk, and no class points to the group any more.
        unsafe { self.source.give(group.as_ref().taken) };
    }

    fn for_each_core(&self, mut f: impl FnMut(usize, &ClassPool)) {
        for class in 0..CLASSES {
            if !self.is_absent(class) {
                f(class, self.core(class));
            }
        }
    }

    fn for_each_group(&self, mut f: impl FnMut(Chunk)) {
        for first in (0..CLASSES).step_by(GROUP) {
            if !self.is_absent(first) {
                // SAFETY: the first pool of a group has the address of the group.
                f(unsafe { self.cores[first].get().cast::<Group>().as_ref().taken });
            }
        }
    }

    /// Allocates a block that no pool serves, because the block is too large, too strictly aligned,
    /// or has 0 bytes.
    #[cold]
    #[inline(never)]
    fn allocate_apart(&self, bytes: usize, align: usize) -> Option<NonNull<u8>> {
        if bytes == 0 {
            return Some(dangling(layout(0, align)?));
        }
        self.large.allocate(&self.source, bytes, align)
    }

    /// Frees a block that no pool serves.
    ///
    /// # Safety
    /// `block` was allocated by `allocate_apart`, and nobody uses the block any more.
    #[cold]
    #[inline(never)]
    unsafe fn deallocate_apart(&self, block: NonNull<u8>, bytes: usize) {
        if bytes != 0 {
            // SAFETY: the caller guarantees that nobody uses the block any more.
            unsafe { self.large.deallocate(&self.source, block, bytes) }
        }
    }
}

/// Returns the size that selects the class of a request. A request of 0 bytes has the size 0, which
/// has no class.
#[inline(always)]
fn rounded(layout: Layout) -> usize {
    align_up(layout.size(), layout.align())
}

#[inline(always)]
fn is_pooled(layout: Layout) -> bool {
    rounded(layout).wrapping_sub(1) < LARGEST && layout.align() <= ALIGN_MAX
}

// SAFETY: blocks are slots of chunks and slabs, or separate chunks. Blocks neither overlap nor
// move. The blocks of a class are at least as large and as strictly aligned as every request that
// the class serves.
unsafe impl<S: Source> BlockAllocator for Multipool<S> {
    #[inline]
    fn try_allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        if !is_pooled(layout) {
            return self.allocate_apart(layout.size(), layout.align());
        }
        let class = size_class::look_up(rounded(layout));
        match self.core(class).pop() {
            Some(block) => Some(block),
            None => self.refill(class),
        }
    }

    #[inline]
    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
        if !is_pooled(layout) {
            // SAFETY: the caller guarantees that nobody uses the block any more. `try_allocate`
            // chose this branch for the same layout.
            return unsafe { self.deallocate_apart(block, layout.size()) };
        }
        // SAFETY: the caller guarantees that nobody uses the block any more. `try_allocate` chose
        // the same class for this layout.
        unsafe { self.core(size_class::look_up(rounded(layout))).push(block) }
    }

    /// Expands a block in place if both sizes have the same size class.
    #[inline]
    unsafe fn try_expand(&self, _: NonNull<u8>, from: Layout, to: Layout) -> bool {
        match (is_pooled(from), is_pooled(to)) {
            (true, true) => size_class::look_up(rounded(from)) == size_class::look_up(rounded(to)),
            (false, false) => {
                from.size() != 0
                    && to.size() != 0
                    && to.align() <= from.align()
                    && LargeBlocks::may_stay(from, to)
            }
            _ => false,
        }
    }
}

// SAFETY: the blocks of a multipool lie in its chunks, which belong to this multipool alone.
unsafe impl<S: Source> Owns for Multipool<S> {
    /// Returns whether `p` points into memory of this multipool. O(chunks).
    fn owns(&self, p: *const u8) -> bool {
        self.classify(p) != Validity::Miss
    }
}

impl<S: Source + Default> Default for Multipool<S> {
    fn default() -> Self {
        Self::new_in(S::default())
    }
}

impl<S: Source> core::fmt::Debug for Multipool<S> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Multipool").field(&self.statistics()).finish()
    }
}

impl<S: Source> Drop for Multipool<S> {
    fn drop(&mut self) {
        self.release();
    }
}

crate::base::resettable::resettable!([S: Source] Multipool<S>, reset);
