//! The core of `sync::Unshared`, which is a magazine (a stack of free blocks) over chunks.

use super::chunk_list::{core_of, ChunkList};
use super::core_trait::{Core, LiveCursor};
use super::free_bitmap::{chunk_layout, FreeBitmap};
use super::layout::{header_of, SlotShape};
use crate::base::bits::layout;
use crate::base::source::{Chunk, Source};
use crate::{Growth, Statistics, Validity};
use core::alloc::Layout;
use core::cell::Cell;
use core::ptr::{null_mut, NonNull};

type Block = NonNull<u8>;

/// The number of entries of a new magazine, and the largest number of entries. The largest number
/// is enough for the blocks that programs usually free before they allocate again, as `./x bench
/// pool --case '^burst/'` shows.
const ENTRIES_FIRST: usize = 64;
const ENTRIES_MAX: usize = 1024;
/// The maximum size of all blocks in a magazine together, in bytes.
const CACHED_BYTES_MAX: usize = 256 << 10;

/// The state of a pool without its source. Each call passes the source as an argument.
///
/// While the source works for this pool, any function may be called, by the source itself or, under
/// a lock, by another thread. During that time, a call that needs memory from the source fails. All
/// other calls work.
///
/// This equation holds between any two calls, where |x| is the number of blocks in x:
///
///   live + |magazine| + |free bits| + |bump range| + |never used|  ==  capacity
#[repr(C)] // an allocation reads the magazine first, then the bump range
pub(crate) struct PoolState {
    magazine: Magazine,
    free: FreeBitmap,
    /// Whether a call to the source for this pool is in progress.
    growing: Cell<bool>,
    refills: Cell<usize>,
    flushes: Cell<usize>,
}

/// A guard that sets `growing` to false when the guard is dropped, even if the source panics.
struct Growing<'s>(&'s Cell<bool>);

impl Drop for Growing<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

/// Returns the maximum number of magazine entries in a pool with this limit. The array of entries
/// uses at most a 64th of the limit. The limit of a pool with a fixed number of blocks includes its
/// first array.
fn entries_max(shape: &SlotShape, limit: usize) -> usize {
    let included = if shape.most == usize::MAX { 0 } else { ENTRIES_FIRST };
    let most = shape.most.min(included.max(limit / (64 * size_of::<Block>())));
    (CACHED_BYTES_MAX.min(limit) / shape.stride).min(most).clamp(1, ENTRIES_MAX)
}

impl PoolState {
    pub(crate) fn new(shape: SlotShape, growth: Growth) -> Self {
        Self {
            magazine: Magazine::new(),
            free: FreeBitmap::new(ChunkList::new(chunk_layout(shape), growth)),
            growing: Cell::new(false),
            refills: Cell::new(0),
            flushes: Cell::new(0),
        }
    }

    pub(crate) fn bytes_for(shape: SlotShape, count: usize) -> usize {
        let entries = count.min(entries_max(&shape, usize::MAX)).min(ENTRIES_FIRST);
        let chunks = chunk_layout(shape).bytes_for(count);
        chunks.saturating_add(entries * size_of::<Block>())
    }

    #[inline(always)]
    fn chunks(&self) -> &ChunkList {
        &self.free.chunks
    }
    fn entries_max(&self) -> usize {
        entries_max(&self.chunks().layout.shape, self.chunks().growth.growth().limit)
    }

    /// Allocates a block from the magazine or the bump range.
    #[inline(always)]
    pub(crate) fn pop(&self) -> Option<Block> {
        match self.magazine.pop() {
            None => self.free.bump(),
            block => block,
        }
    }

    /// Allocates a block after `pop` has returned `None`. `core` is the address that is stored in
    /// chunk headers.
    #[cold]
    #[inline(never)]
    pub(crate) fn refill(&self, source: &impl Source, core: *const ()) -> Option<Block> {
        // The array of the magazine is requested before the first chunk, because the chunk may use
        // up the limit. If there is no memory for the chunk, the array is returned and the chunk is
        // requested again. The source may have supplied so many bytes for the array that the limit
        // left too few for the chunk.
        let is_first = !self.magazine.has_memory();
        let has_array = is_first && self.enlarge(source, self.entries_max().min(ENTRIES_FIRST));
        let mut found = self.find_blocks(source, core);
        if !found && has_array && self.magazine.is_empty() {
            self.give_array(source, self.magazine.take_memory());
            found = self.find_blocks(source, core);
        }
        if !found {
            return self.pop();
        }
        self.refills.set(self.refills.get() + 1);
        if self.free.has_free() && self.magazine.is_empty() {
            return self.load();
        }
        self.pop() // the magazine has blocks that were freed while the source worked
    }

    /// Finds free blocks in chunks, or else grows. Returns `false` if the limit is reached, or the
    /// source is exhausted.
    fn find_blocks(&self, source: &impl Source, core: *const ()) -> bool {
        if !self.free.refill(core) && !self.growing.replace(true) {
            let _end = Growing(&self.growing);
            self.free.grow(source, core);
        }
        !self.magazine.is_empty() || self.free.refill(core)
    }

    /// Fills half of the empty magazine with free blocks, and allocates the last of them. The other
    /// half stays empty, so that the next few frees do not overflow the magazine.
    fn load(&self) -> Option<Block> {
        let room = self.magazine.capacity() / 2;
        if room == 0 {
            let mut block = NonNull::dangling();
            // SAFETY: `block` has room for one block.
            let count = unsafe { self.free.take_free(&mut block, 1) };
            return (count != 0).then_some(block);
        }
        // SAFETY: the array has room for two times `room` blocks.
        self.magazine.load(|array| unsafe { self.free.take_free(array, room) });
        self.magazine.pop()
    }

    /// Frees a block. Returns `false`, and changes nothing, if the magazine is full. Then the
    /// caller has to call `overflow`.
    #[inline(always)]
    pub(crate) fn push(&self, block: Block) -> bool {
        self.magazine.push(block)
    }

    /// Frees a block when the magazine is full. If the magazine was emptied since it was last full,
    /// it is too small for this program, so its capacity doubles. Otherwise the older half of its
    /// blocks moves to the free bits.
    #[cold]
    #[inline(never)]
    pub(crate) fn overflow(&self, source: &impl Source, block: Block) {
        let (capacity, most) = (self.magazine.capacity(), self.entries_max());
        if self.magazine.take_reloaded() && capacity < most {
            self.enlarge(source, most.min((capacity * 2).max(1)));
        }
        if self.magazine.is_full() {
            let older = self.magazine.capacity().div_ceil(2);
            self.free.put_free(&self.magazine.blocks()[..older]);
            self.magazine.drop_oldest(older);
            self.flushes.set(self.flushes.get() + 1);
        }
        if !self.magazine.push(block) {
            self.free.put_free(&[block]); // there was no memory for a magazine
        }
    }

    /// Moves the magazine into an array of `entries` entries. Returns `false` if there is no memory
    /// for the array.
    fn enlarge(&self, source: &impl Source, entries: usize) -> bool {
        let growth = &self.chunks().growth;
        let Ok(wanted) = Layout::array::<Block>(entries) else { return false };
        if growth.left() < wanted.size() || self.growing.replace(true) {
            return false;
        }
        let end = Growing(&self.growing);
        let Some(taken) = source.try_take(wanted) else { return false };
        let bytes = taken.layout.size();
        if growth.left() < bytes {
            // The source supplied more bytes than requested, and these exceed the limit.
            // SAFETY: the source has just supplied the memory, and nothing uses it.
            unsafe { source.give(taken) };
            return false;
        }
        growth.took_aside(bytes);
        // SAFETY: the memory belongs to this pool, and is larger than the present array.
        let old = unsafe { self.magazine.move_to(taken, entries) };
        drop(end);
        self.give_array(source, old);
        true
    }

    fn give_array(&self, source: &impl Source, array: Option<Chunk>) {
        if let Some(chunk) = array {
            self.chunks().growth.gave(chunk.layout.size());
            // SAFETY: the source supplied the chunk, and the magazine no longer uses it.
            unsafe { source.give(chunk) };
        }
    }

    /// Moves the blocks of the magazine to the free bits.
    fn flush(&self) {
        self.free.put_free(self.magazine.blocks());
        self.magazine.clear();
    }

    pub(crate) fn next_live(&self, cursor: &mut LiveCursor) -> Option<Block> {
        if !self.magazine.is_empty() {
            self.flush();
        }
        self.free.next_out(cursor)
    }

    pub(crate) fn reset(&self) {
        self.magazine.clear();
        self.free.reset();
    }

    pub(crate) fn trim(&self, source: &impl Source, keep: usize) {
        self.flush();
        let array = self.magazine.take_memory();
        self.free.give_idle(source, keep);
        // The array is returned last, because it was requested first. A `Buffer` reuses only the
        // memory that it supplied last.
        self.give_array(source, array);
    }

    pub(crate) fn release(&self, source: &impl Source) {
        self.reset();
        self.trim(source, 0);
        self.chunks().growth.restart();
    }

    pub(crate) fn statistics(&self) -> Statistics {
        let chunks = self.chunks();
        let stride = chunks.layout.shape.stride;
        let (out, count) = self.free.count_out();
        let live = out - self.magazine.len();
        Statistics {
            blocks_live: live,
            bytes_live: live * stride,
            bytes_idle: (chunks.capacity() - live) * stride,
            bytes_taken: chunks.growth.taken(),
            chunks: count,
            growths: chunks.growth.steps(),
            refills: self.refills.get(),
            flushes: self.flushes.get(),
        }
    }

    pub(crate) fn classify(&self, p: *const u8) -> Validity {
        let is_cached =
            || self.magazine.blocks().iter().any(|block| core::ptr::eq(block.as_ptr(), p));
        match self.free.is_out(p) {
            None => Validity::Miss,
            Some(true) if !is_cached() => Validity::Valid,
            Some(_) => Validity::Invalid,
        }
    }
}

/// A stack of pointers to free blocks of a pool. The pointers are in a separate array, so that
/// neither push nor pop reads or writes a free block. Bonwick ("Magazines and Vmem", 2001)
/// introduced the name.
///
/// `low <= top <= high`. If there is no array, all three are null. Then the magazine is empty for a
/// pop, and full for a push.
#[repr(C)]
struct Magazine {
    top: Cell<*mut Block>,
    low: Cell<*mut Block>,
    high: Cell<*mut Block>,
    /// Size of the memory at `low` in bytes.
    bytes: Cell<usize>,
    /// Whether `load` ran since `take_reloaded` was last called.
    reloaded: Cell<bool>,
}

impl Magazine {
    const fn new() -> Self {
        Self {
            top: Cell::new(null_mut()),
            low: Cell::new(null_mut()),
            high: Cell::new(null_mut()),
            bytes: Cell::new(0),
            reloaded: Cell::new(false),
        }
    }

    fn has_memory(&self) -> bool {
        !self.low.get().is_null()
    }
    #[inline(always)]
    fn is_empty(&self) -> bool {
        self.top.get() == self.low.get()
    }
    #[inline(always)]
    fn is_full(&self) -> bool {
        self.top.get() == self.high.get()
    }
    fn capacity(&self) -> usize {
        (self.high.get().addr() - self.low.get().addr()) / size_of::<Block>()
    }
    fn len(&self) -> usize {
        (self.top.get().addr() - self.low.get().addr()) / size_of::<Block>()
    }

    #[inline(always)]
    fn pop(&self) -> Option<Block> {
        if self.is_empty() {
            return None;
        }
        let top = self.top.get().wrapping_sub(1);
        self.top.set(top);
        // SAFETY: the magazine was not empty, so an entry is below the old top.
        Some(unsafe { top.read() })
    }

    /// Pushes a block. Returns `false`, and changes nothing, if the magazine is full.
    #[inline(always)]
    fn push(&self, block: Block) -> bool {
        if self.is_full() {
            return false;
        }
        let top = self.top.get();
        // SAFETY: the magazine is not full, so the top is within the array.
        unsafe { top.write(block) };
        self.top.set(top.wrapping_add(1));
        true
    }

    /// Returns the blocks, oldest first. Callers end the borrow before they push or pop.
    fn blocks(&self) -> &[Block] {
        if !self.has_memory() {
            return &[];
        }
        // SAFETY: all entries below the top are written.
        unsafe { core::slice::from_raw_parts(self.low.get(), self.len()) }
    }

    /// Lets `f` write blocks to the array of the empty magazine. `f` returns the number of blocks
    /// that it wrote.
    fn load(&self, f: impl FnOnce(*mut Block) -> usize) {
        debug_assert!(self.is_empty());
        self.reloaded.set(true);
        self.top.set(self.low.get().wrapping_add(f(self.low.get())));
    }

    /// Returns whether `load` ran since the last call of this function.
    fn take_reloaded(&self) -> bool {
        self.reloaded.replace(false)
    }

    fn clear(&self) {
        self.top.set(self.low.get());
        self.reloaded.set(false);
    }

    fn drop_oldest(&self, count: usize) {
        let (low, left) = (self.low.get(), self.len() - count);
        // SAFETY: both ranges are within the written entries.
        unsafe { low.copy_from(low.wrapping_add(count), left) };
        self.top.set(low.wrapping_add(left));
    }

    /// Moves the blocks into a larger array of `entries` entries, at the beginning of `memory`.
    /// Returns the memory of the previous array.
    ///
    /// # Safety
    /// The caller owns `memory`, which holds `entries` entries.
    unsafe fn move_to(&self, memory: Chunk, entries: usize) -> Option<Chunk> {
        let (low, len) = (memory.data.cast::<Block>().as_ptr(), self.len());
        if len != 0 {
            // SAFETY: the entries are written. `memory` is larger than the present array, and does
            // not overlap it.
            unsafe { low.copy_from_nonoverlapping(self.low.get(), len) };
        }
        let old = self.memory();
        self.low.set(low);
        self.top.set(low.wrapping_add(len));
        self.high.set(low.wrapping_add(entries));
        self.bytes.set(memory.layout.size());
        old
    }

    /// Returns the memory of the array, as the source supplied it.
    fn memory(&self) -> Option<Chunk> {
        let data = NonNull::new(self.low.get())?.cast();
        let layout = layout(self.bytes.get(), align_of::<Block>())?;
        Some(Chunk { data, layout })
    }

    /// Empties the magazine and returns its memory.
    fn take_memory(&self) -> Option<Chunk> {
        let memory = self.memory();
        self.low.set(null_mut());
        self.high.set(null_mut());
        self.clear();
        memory
    }
}

/// The core of `sync::Unshared`.
#[doc(hidden)]
#[repr(C)]
#[allow(missing_debug_implementations)] // not a public name
pub struct PlainCore<S> {
    state: PoolState,
    source: S,
}

impl<S> PlainCore<S> {
    fn address(&self) -> *const () {
        (&raw const *self).cast()
    }
}

// SAFETY: blocks are slots of chunks that the core holds. A block is allocated again only after it
// was freed.
unsafe impl<S: Source> Core<S> for PlainCore<S> {
    fn new(shape: SlotShape, growth: Growth, source: S) -> Self {
        Self { state: PoolState::new(shape, growth), source }
    }
    fn bytes_for(shape: SlotShape, count: usize) -> usize {
        PoolState::bytes_for(shape, count)
    }

    #[inline(always)]
    fn try_allocate(&self) -> Option<Block> {
        match self.state.pop() {
            None => self.state.refill(&self.source, self.address()),
            block => block,
        }
    }
    #[inline(always)]
    unsafe fn deallocate(&self, block: Block) {
        if !self.state.push(block) {
            self.state.overflow(&self.source, block);
        }
    }
    #[inline(always)]
    unsafe fn of<'a>(block: Block, shape: &SlotShape) -> &'a Self {
        // SAFETY: the header of a block in use points to its core.
        unsafe { &*core_of(header_of(block, shape)).cast() }
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
