//! A multipool: one pool per size class, over one source.

mod class_core;
mod large;
mod list;
mod starter;

use crate::bits::{align_up, dangling, layout};
use crate::{size_class, BlockAllocator, Chunk, DefaultHeap, Growth, Owns, Source};
use crate::{Statistics, Validity};
use class_core::{ClassCore, Shape};
use core::alloc::Layout;
use core::cell::Cell;
use core::ptr::{self, NonNull};
use large::LargeBlocks;
use starter::Starter;

/// Gives blocks of any size and takes them back one by one, without a header: the size said at
/// `deallocate` picks the pool.
///
/// ```
/// use mallard::{BlockAllocator, Multipool};
/// use std::alloc::Layout;
/// let pool = Multipool::new(); // takes nothing yet; also in a `const` or `static`
/// let layout = Layout::new::<[u64; 5]>();
/// let block = pool.allocate(layout);
/// // SAFETY: it is from there, with this layout.
/// unsafe { pool.deallocate(block, layout) };
/// ```
///
/// With a feature such as `allocator-api2-02` it is an `Allocator`, by value and by reference:
/// `Vec::new_in(&pool)`. Over an arena, `Multipool::new_in(&arena)`, blocks are used again
/// while it lives and all die at once; it is Lakos's multipool over a monotonic allocator.
///
/// A block is at most 7 bytes, or from 128 up at most 12.5 %, larger than asked for (see
/// [`size_class`]). What is above [`LARGEST`](Self::LARGEST), or aligned to more than a cache
/// line, comes from the source and goes back to it alone. The first blocks of all sizes are cut
/// from pieces of 1 KiB to 256 KiB that they share, by four; then a class that needs more takes
/// 2 KiB, by four to 1 MiB. With a growth of one's own there are no pieces, and its limit is
/// that of each class; to bound them all, bound the source.
///
/// An allocation fails when the source refuses; then nothing has changed. One thread at a time:
/// it is `Send` and not `Sync`, and [`Synchronized`](crate::Synchronized) puts a lock around it.
/// A pair of calls costs some ten instructions; less than 800 bytes while it is empty.
pub struct Multipool<S: Source = DefaultHeap> {
    cores: [Cell<NonNull<ClassCore>>; CLASSES],
    starter: Starter,
    large: LargeBlocks,
    growth: Growth,
    source: S,
}

const LARGEST: usize = 32 << 10;
const CLASSES: usize = size_class::of(LARGEST) + 1;
// Beyond it, rare requests would have every chunk of their class aligned as much.
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

/// Cores of neighbouring sizes, in memory from the source. They are made when the first of them
/// is asked for: a multipool is for the few sizes of one small container, too.
#[repr(C)] // its first core is its first byte
struct Group {
    cores: [ClassCore; GROUP],
    taken: Chunk,
}
const GROUP: usize = 8;

struct Absent(ClassCore);
// SAFETY: nothing is ever written to it: it is never grown, nor are there blocks to give back.
unsafe impl Sync for Absent {}

/// No test for a core that is not made: it is this one that all share, which has nothing at hand,
/// so that only `refill` has to look.
static ABSENT: Absent = Absent(ClassCore::new(SHAPES[0], GROWTH));

const fn absent() -> NonNull<ClassCore> {
    // SAFETY: a static is not at null.
    unsafe { NonNull::new_unchecked((&raw const ABSENT.0).cast_mut()) }
}

// SAFETY: all that it points to is its own, but for `ABSENT`, which nobody writes.
unsafe impl<S: Source + Send> Send for Multipool<S> {}

impl Multipool {
    /// Over the global allocator. Takes nothing yet.
    pub const fn new() -> Self {
        Self::new_in(DefaultHeap)
    }
}

impl<S: Source> Multipool<S> {
    /// Bytes of the largest block that is pooled.
    pub const LARGEST: usize = LARGEST;

    /// Over a source. Takes nothing yet.
    pub const fn new_in(source: S) -> Self {
        Self::made_of(Starter::new(), GROWTH, source)
    }

    /// With a growth of one's own for each size class, and no pieces that they share. Takes
    /// nothing yet.
    pub const fn with_growth_in(growth: Growth, source: S) -> Self {
        Self::made_of(Starter::none(), growth, source)
    }

    const fn made_of(starter: Starter, growth: Growth, source: S) -> Self {
        let cores = [const { Cell::new(absent()) }; CLASSES];
        Self { cores, starter, large: LargeBlocks::new(), growth, source }
    }

    /// Where chunks come from.
    pub const fn source(&self) -> &S {
        &self.source
    }

    /// Frees every block and keeps the memory of pooled ones. O(pieces and classes).
    pub fn reset(&mut self) {
        self.for_each_core(|_, core| core.reset());
        self.starter.reset();
        self.large.release(&self.source);
    }

    /// Frees every block and gives all memory back to the source.
    pub fn release(&mut self) {
        self.for_each_core(|_, core| core.release(&self.source));
        for first in (0..CLASSES).step_by(GROUP) {
            self.drop_group(first);
        }
        self.starter.release(&self.source);
        self.large.release(&self.source);
    }

    /// Gives back what is idle, beyond `keep` bytes in each class; O(free blocks), and sorts
    /// them.
    pub fn trim(&mut self, keep: usize) {
        let starter = &self.starter;
        starter.count(&SHAPES);
        self.for_each_core(|_, core| {
            core.gather(|slot| starter.owns(slot));
            core.free_blocks().iter().for_each(|block| starter.put_aside(block));
        });
        self.for_each_core(|_, core| {
            let free = core.free_blocks();
            let lent = free.take_out(|block| starter.owns(block.as_ptr()));
            lent.take_out(|block| starter.is_in_idle_piece(block));
            free.sort();
            core.trim(&self.source, keep);
            free.append(lent);
        });
        starter.give_idle(&self.source);
    }

    /// What is held; O(free blocks).
    pub fn statistics(&self) -> Statistics {
        let mut s = Statistics::default();
        self.large.add_to(&mut s);
        self.starter.add_to(&mut s, &SHAPES);
        self.for_each_core(|_, core| core.add_to(&mut s));
        self.for_each_group(|taken| s.bytes_taken += taken.layout.size());
        s
    }

    /// What `p` is to this multipool; O(chunks and free blocks).
    pub fn classify(&self, p: *const u8) -> Validity {
        let valid_if = |valid| if valid { Validity::Valid } else { Validity::Invalid };
        if let Some(is_begin) = self.large.find(p) {
            return valid_if(is_begin);
        }
        if self.starter.owns(p) {
            let kind = self.starter.kind_of(p, &SHAPES);
            return valid_if(kind.is_some_and(|class| !self.core(class).is_at_hand(p)));
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
    fn core(&self, class: usize) -> &ClassCore {
        debug_assert!(class < CLASSES);
        // SAFETY: a class is that of a size up to `LARGEST`; and a core is there until `release`,
        // which has the multipool for itself.
        unsafe { self.cores.get_unchecked(class).get().as_ref() }
    }

    /// Nothing is at hand: makes the core, if there is none, then cuts or takes a chunk.
    #[inline(never)]
    fn refill(&self, class: usize) -> Option<NonNull<u8>> {
        let first = class / GROUP * GROUP;
        let is_new = self.is_absent(class);
        if is_new {
            self.make_group(first)?;
        }
        let core = self.core(class);
        if core.is_used_up() {
            if let Some(slots) = self.starter.cut(&self.source, SHAPES[class], class) {
                // SAFETY: they were just cut for this class, and pieces stay until `trim`, which
                // gathers, or `release`.
                unsafe { core.borrow(slots) };
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

    /// Of `first` and those after it. `None`: the source is dry.
    #[cold]
    fn make_group(&self, first: usize) -> Option<()> {
        let taken = self.source.try_take(Layout::new::<Group>())?;
        if !self.is_absent(first) {
            // The source has called back, and made the group meanwhile.
            // SAFETY: it was just taken, and is not used.
            unsafe { self.source.give(taken) };
            return Some(());
        }
        let group = taken.data.cast::<Group>();
        let core = |i: usize| ClassCore::new(SHAPES[(first + i).min(CLASSES - 1)], self.growth);
        // SAFETY: the chunk is ours, and of the layout of a group.
        unsafe { group.write(Group { cores: core::array::from_fn(core), taken }) };
        for (i, slot) in self.cores[first..].iter().take(GROUP).enumerate() {
            // SAFETY: the cores of a group are its first bytes.
            slot.set(unsafe { group.cast::<ClassCore>().add(i) });
        }
        Some(())
    }

    fn drop_group_if_untouched(&self, first: usize) {
        if (first..CLASSES).take(GROUP).all(|i| self.core(i).is_untouched()) {
            self.drop_group(first);
        }
    }

    /// None of its cores has a chunk, if it is there at all.
    fn drop_group(&self, first: usize) {
        if self.is_absent(first) {
            return;
        }
        let group = self.cores[first].get().cast::<Group>();
        self.cores[first..].iter().take(GROUP).for_each(|slot| slot.set(absent()));
        // SAFETY: no core leads to it any more, and it was taken from there.
        unsafe { self.source.give(group.as_ref().taken) };
    }

    fn for_each_core(&self, mut f: impl FnMut(usize, &ClassCore)) {
        for class in 0..CLASSES {
            if !self.is_absent(class) {
                f(class, self.core(class));
            }
        }
    }

    fn for_each_group(&self, mut f: impl FnMut(Chunk)) {
        for first in (0..CLASSES).step_by(GROUP) {
            if !self.is_absent(first) {
                // SAFETY: where a core is, its group is.
                f(unsafe { self.cores[first].get().cast::<Group>().as_ref().taken });
            }
        }
    }

    /// Blocks that are no pool's: too large, too aligned, or of no bytes at all.
    #[cold]
    #[inline(never)]
    fn allocate_apart(&self, bytes: usize, align: usize) -> Option<NonNull<u8>> {
        if bytes == 0 {
            return Some(dangling(layout(0, align)?));
        }
        self.large.allocate(&self.source, bytes, align)
    }

    /// # Safety
    /// `block` is from `allocate_apart`, and no longer used.
    #[cold]
    #[inline(never)]
    unsafe fn deallocate_apart(&self, block: NonNull<u8>, bytes: usize) {
        if bytes != 0 {
            // SAFETY: as the caller says.
            unsafe { self.large.deallocate(&self.source, block, bytes) }
        }
    }
}

/// What decides the class. 0, for no bytes at all, is no class's either.
#[inline(always)]
fn rounded(layout: Layout) -> usize {
    align_up(layout.size(), layout.align())
}

#[inline(always)]
fn is_pooled(layout: Layout) -> bool {
    rounded(layout).wrapping_sub(1) < LARGEST && layout.align() <= ALIGN_MAX
}

// SAFETY: blocks are slots of chunks and pieces, which overlap nothing, or chunks; none moves.
// What a size class serves is at least as large, and as much aligned, as its sizes.
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
            // SAFETY: as the caller says, and it was no pool's then, either.
            return unsafe { self.deallocate_apart(block, layout.size()) };
        }
        // SAFETY: as the caller says, and the layout led to the same core then.
        unsafe { self.core(size_class::look_up(rounded(layout))).push(block) }
    }

    /// In place within the size class.
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

// SAFETY: its blocks lie in its chunks, which are nobody else's.
unsafe impl<S: Source> Owns for Multipool<S> {
    /// O(chunks).
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
