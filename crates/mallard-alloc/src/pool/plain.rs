//! What a pool is: a magazine of free blocks over a store of chunks.

use crate::growth::GrowthState;
use crate::pool::chunk::{header_of, Cut, STEP_UNIT};
use crate::pool::chunk_store::ChunkStore;
use crate::pool::core_trait::{Core, LiveCursor};
use crate::pool::layout::SlotShape;
use crate::pool::magazine::Magazine;
use crate::source::{Chunk, Source};
use crate::{Growth, Statistics, Validity};
use core::alloc::Layout;
use core::cell::Cell;
use core::ptr::NonNull;

type Block = NonNull<u8>;

const ENTRIES_FIRST: usize = 64;
const ENTRIES_MAX: usize = 1024;
/// The most bytes of blocks that a magazine may hold.
const CACHED_BYTES_MAX: usize = 256 << 10;

/// A pool without its source, which each call brings. While a source is called, all may be
/// called but what grows: by the source itself, or by other threads (`locked_core`).
///
/// Between any two calls, with |x| for the blocks in x, summed over chunks:
///   live + |magazine| + |free in the store| + |window| + |not carved|  ==  capacity
#[repr(C)] // what an allocation reads first comes first
pub(crate) struct PoolState {
    magazine: Magazine,
    store: ChunkStore,
    /// What headers lead to.
    growth: GrowthState,
    /// The source is at work for this pool.
    growing: Cell<bool>,
    refills: Cell<usize>,
    flushes: Cell<usize>,
}

/// Ends `growing`, however the source returns.
struct Growing<'s>(&'s Cell<bool>);

impl Drop for Growing<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

/// Fewer where fewer are enough; the array takes at most a 64th of a limit.
fn entries_limit(shape: &SlotShape, limit: usize) -> usize {
    let bytes = CACHED_BYTES_MAX.min(limit);
    let most = shape.most.min(limit / (64 * size_of::<Block>()));
    (bytes / shape.stride).min(most).clamp(1, ENTRIES_MAX)
}

/// Of a magazine.
fn array(entries: usize) -> Option<Layout> {
    Layout::array::<Block>(entries).ok()
}

impl PoolState {
    pub(crate) fn new(shape: SlotShape, growth: Growth) -> Self {
        Self {
            magazine: Magazine::new(),
            store: ChunkStore::new(Cut::new(shape)),
            growth: GrowthState::new(growth),
            growing: Cell::new(false),
            refills: Cell::new(0),
            flushes: Cell::new(0),
        }
    }

    pub(crate) fn bytes_for(shape: SlotShape, count: usize) -> usize {
        let entries = count.min(entries_limit(&shape, usize::MAX)).min(ENTRIES_FIRST);
        let chunks = Cut::new(shape).bytes_for(count);
        chunks.saturating_add(entries * size_of::<Block>())
    }

    /// A block that is at hand.
    #[inline(always)]
    pub(crate) fn at_hand(&self) -> Option<Block> {
        match self.magazine.pop() {
            None => self.store.carve(),
            block => block,
        }
    }

    /// Nothing is at hand. `owner` is what headers lead to.
    #[cold]
    #[inline(never)]
    pub(crate) fn refill(&self, source: &impl Source, owner: *const u8) -> Option<Block> {
        // The array comes before the chunk, which may take all that the limit has left; but not
        // if there is no chunk with it.
        let entries = entries_limit(&self.store.cut.shape, self.growth.growth().limit);
        let without = !self.magazine.has_memory();
        let with = without && self.enlarge(source, entries.min(ENTRIES_FIRST));
        if !self.replenish(source, owner) {
            if with && self.magazine.is_empty() {
                self.forget_magazine(source);
            }
            return self.at_hand();
        }
        self.refills.set(self.refills.get() + 1);
        if self.store.has_recycled() && self.magazine.is_empty() {
            return self.recycle();
        }
        self.at_hand() // some may have come while the source was at work
    }

    /// `false` when the source is dry. Else there is a block to give. Carves what there is
    /// before it grows.
    fn replenish(&self, source: &impl Source, owner: *const u8) -> bool {
        if !self.store.replenish(owner) {
            self.grow(source, owner);
        }
        !self.magazine.is_empty() || self.store.replenish(owner)
    }

    fn grow(&self, source: &impl Source, owner: *const u8) {
        if self.growing.replace(true) {
            return; // the source calls the pool it is working for
        }
        let _ends = Growing(&self.growing);
        let Some(least) = self.store.least_take() else { return };
        let limited = self.growth.is_limited();
        let useful = |bytes| match limited {
            true => self.store.cut.useful(bytes),
            false => bytes & !(STEP_UNIT - 1),
        };
        if let Some(taken) = self.growth.take(source, least, least.size(), useful) {
            // SAFETY: it is from the source, for us alone.
            unsafe { self.store.add(taken, owner) };
        }
    }

    /// Brings recycled blocks to an empty magazine, and gives the last of them. Half of the
    /// array, so that a few frees after it do not overflow.
    fn recycle(&self) -> Option<Block> {
        let room = self.magazine.capacity() / 2;
        if room == 0 {
            let mut one = NonNull::dangling();
            // SAFETY: there is room for one.
            let count = unsafe { self.store.recycle(&mut one, 1) };
            return (count != 0).then_some(one);
        }
        // SAFETY: the array has twice as much room.
        self.magazine.load(room, |array| unsafe { self.store.recycle(array, room) });
        self.magazine.pop()
    }

    /// `false`: nothing has changed, and `overflow` is to be called.
    #[inline(always)]
    pub(crate) fn take_back(&self, block: Block) -> bool {
        self.magazine.push(block)
    }

    /// Makes room in a full magazine for one more. An array that has been emptied since it was
    /// last full is too small for this program: it doubles. Else the older half goes to the
    /// bits, where it costs one each.
    #[cold]
    #[inline(never)]
    pub(crate) fn overflow(&self, source: &impl Source, block: Block) {
        let capacity = self.magazine.capacity();
        let limit = entries_limit(&self.store.cut.shape, self.growth.growth().limit);
        if self.magazine.was_reloaded() && capacity < limit {
            self.enlarge(source, limit.min((capacity * 2).max(1)));
        }
        if self.magazine.is_full() {
            let older = self.magazine.capacity().div_ceil(2);
            self.store.put_back(&self.magazine.blocks()[..older]);
            self.magazine.drop_oldest(older);
            self.flushes.set(self.flushes.get() + 1);
        }
        if !self.magazine.push(block) {
            self.store.put_back(&[block]); // there was no memory for an array
        }
    }

    fn enlarge(&self, source: &impl Source, entries: usize) -> bool {
        let Some(wanted) = array(entries) else { return false };
        if self.growth.left() < wanted.size() || self.growing.replace(true) {
            return false;
        }
        let ends = Growing(&self.growing);
        let Some(taken) = source.try_take(wanted) else { return false };
        let bytes = taken.layout.size();
        if self.growth.left() < bytes {
            // SAFETY: it was just taken. The source gave more than it was asked for.
            unsafe { source.give(taken) };
            return false;
        }
        self.growth.took_aside(bytes);
        // SAFETY: it is ours, and has room for more than there are.
        let old = unsafe { self.magazine.move_to(taken, entries) };
        drop(ends);
        self.give_array(source, old);
        true
    }

    fn give_array(&self, source: &impl Source, array: Option<Chunk>) {
        if let Some(chunk) = array {
            self.growth.gave(chunk.layout.size());
            // SAFETY: it is from the source, and nothing is in it any more.
            unsafe { source.give(chunk) };
        }
    }

    fn forget_magazine(&self, source: &impl Source) {
        self.give_array(source, self.magazine.forget());
    }

    /// The free blocks at hand go to the store.
    fn settle(&self) {
        self.store.put_back(self.magazine.blocks());
        self.magazine.clear();
    }

    pub(crate) fn next_live(&self, cursor: &mut LiveCursor) -> Option<Block> {
        if !self.magazine.is_empty() {
            self.settle();
        }
        self.store.next_out(cursor)
    }

    pub(crate) fn reset(&self) {
        self.magazine.clear();
        self.store.reset();
    }

    /// The array goes last: it was taken first, and a buffer takes back only the last.
    pub(crate) fn trim(&self, source: &impl Source, keep: usize) {
        self.settle();
        let array = self.magazine.forget();
        self.store.give_idle(keep, |chunk| {
            self.growth.gave(chunk.layout.size());
            // SAFETY: it is from the source, and nothing in it is in use.
            unsafe { source.give(chunk) };
        });
        self.give_array(source, array);
    }

    pub(crate) fn release(&self, source: &impl Source) {
        self.reset();
        self.trim(source, 0);
        self.growth.restart();
    }

    pub(crate) fn statistics(&self) -> Statistics {
        let stride = self.store.cut.shape.stride;
        let (out, all, chunks) = self.store.count();
        let live = out - self.magazine.len();
        Statistics {
            blocks_live: live,
            bytes_live: live * stride,
            bytes_idle: (all - live) * stride,
            bytes_taken: self.growth.taken(),
            chunks,
            growths: self.growth.steps(),
            refills: self.refills.get(),
            flushes: self.flushes.get(),
        }
    }

    pub(crate) fn classify(&self, p: *const u8) -> Validity {
        if !self.store.owns(p) {
            return Validity::Miss;
        }
        let at_hand =
            || self.magazine.blocks().iter().any(|block| block.as_ptr().addr() == p.addr());
        match self.store.is_out(p) && !at_hand() {
            true => Validity::Valid,
            false => Validity::Invalid,
        }
    }
}

/// The core of `sync::Unshared`.
#[doc(hidden)]
#[repr(C)]
#[allow(missing_debug_implementations)] // nobody has one by its name
pub struct PlainCore<S> {
    state: PoolState,
    source: S,
}

impl<S> PlainCore<S> {
    fn address(&self) -> *const u8 {
        (&raw const *self).cast()
    }
}

// SAFETY: blocks are slots of chunks that are the core's from `add` to `give`, each given out
// once between two `deallocate`s.
unsafe impl<S: Source> Core<S> for PlainCore<S> {
    fn new(shape: SlotShape, growth: Growth, source: S) -> Self {
        Self { state: PoolState::new(shape, growth), source }
    }
    fn bytes_for(shape: SlotShape, count: usize) -> usize {
        PoolState::bytes_for(shape, count)
    }

    #[inline(always)]
    fn try_allocate(&self) -> Option<Block> {
        match self.state.at_hand() {
            None => self.state.refill(&self.source, self.address()),
            block => block,
        }
    }
    #[inline(always)]
    unsafe fn deallocate(&self, block: Block) {
        if !self.state.take_back(block) {
            self.state.overflow(&self.source, block);
        }
    }
    #[inline(always)]
    unsafe fn of<'a>(block: Block, shape: &SlotShape) -> &'a Self {
        // SAFETY: headers of this pool lead to this core.
        unsafe { &*header_of(block.as_ptr(), shape).owner().cast() }
    }

    fn next_live(&mut self, cursor: &mut LiveCursor) -> Option<Block> {
        self.state.next_live(cursor)
    }

    fn reset(&mut self) {
        self.state.reset();
    }
    fn release(&mut self) {
        self.state.release(&self.source);
    }
    fn trim(&mut self, keep: usize) {
        self.state.trim(&self.source, keep);
    }
    fn statistics(&self) -> Statistics {
        self.state.statistics()
    }
    fn classify(&self, p: *const u8) -> Validity {
        self.state.classify(p)
    }
    fn source(&self) -> &S {
        &self.source
    }
}
