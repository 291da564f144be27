//! The free bitmaps of chunks: one bit for each slot.

use super::chunk_list::{ChunkHead, ChunkList};
use super::core_trait::LiveCursor;
use super::layout::{ChunkLayout, SlotRange};
use crate::base::source::Source;
use core::cell::Cell;
use core::ops::Deref;
use core::ptr::{null_mut, NonNull};
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};

type Block = NonNull<u8>;

pub(crate) const WORD_BITS: usize = usize::BITS as usize;

pub(crate) const fn words_for(slots: usize) -> usize {
    slots.div_ceil(WORD_BITS)
}

/// The part of a chunk's header that describes its free bits.
///
/// A slot is *carved* when it is allocated for the first time. Slots are carved in address order. A
/// slot whose number is `carved` or more was never allocated, and no byte of such a slot was
/// touched. A carved slot is in use, in a cache, or free. The bit of a slot is set only while the
/// slot is free.
///
/// One thread at a time writes these fields. Other threads may read `carved` and the bits for
/// statistics at the same time, so these fields are atomic.
#[repr(C)]
pub(crate) struct Bits {
    /// Number of words that have a bit set.
    partial_words: Cell<u32>,
    /// The number of the word from which blocks were allocated last.
    hint: Cell<u32>,
    carved: AtomicU32,
}

impl Bits {
    pub(crate) const fn new() -> Self {
        Self { partial_words: Cell::new(0), hint: Cell::new(0), carved: AtomicU32::new(0) }
    }
    #[inline(always)]
    pub(crate) fn carved(&self) -> usize {
        self.carved.load(Relaxed) as usize
    }
    #[inline(always)]
    pub(crate) fn has_free(&self) -> bool {
        self.partial_words.get() != 0
    }
}

/// A chunk with a bit for each slot.
pub(crate) trait BitChunk: Copy {
    fn header(self) -> NonNull<u8>;
    fn slots(&self) -> &SlotRange;
    fn bits(&self) -> &Bits;
    /// Returns the word with the bits of the `WORD_BITS` slots from `w * WORD_BITS` on.
    fn word(&self, w: usize) -> &AtomicUsize;

    /// Returns whether the bit of the slot is set.
    fn is_free(&self, slot: usize) -> bool {
        self.word(slot / WORD_BITS).load(Relaxed) >> (slot % WORD_BITS) & 1 != 0
    }
    fn is_carved(&self, slot: usize) -> bool {
        slot < self.bits().carved() && self.slots().contains(slot)
    }
    fn is_fully_carved(&self) -> bool {
        self.bits().carved() == self.slots().end()
    }
    /// Returns the number of blocks that were allocated at least once.
    fn carved_blocks(&self) -> usize {
        self.slots().count_below(self.bits().carved())
    }
    /// Returns the number of blocks whose bit is set.
    fn free_blocks(&self) -> usize {
        let words = 0..words_for(self.bits().carved());
        words.map(|w| self.word(w).load(Relaxed).count_ones() as usize).sum()
    }
    /// Returns whether no block of the chunk is in use, that is, whether the bit of every carved
    /// block is set.
    fn is_idle(&self) -> bool {
        self.carved_blocks() == self.free_blocks()
    }

    /// Returns the first slot from `from` on that is carved and whose bit is clear.
    fn next_used(&self, from: usize) -> Option<usize> {
        let carved = self.bits().carved();
        let mut at = from;
        while at < carved {
            let used = !self.word(at / WORD_BITS).load(Relaxed) >> (at % WORD_BITS);
            if used == 0 {
                at = (at / WORD_BITS + 1) * WORD_BITS;
                continue;
            }
            at += used.trailing_zeros() as usize;
            if self.is_carved(at) {
                return Some(at);
            }
            at = (at + 1).max(self.slots().hole().end);
        }
        None
    }

    /// Sets `carved` to `slot`, or to the first slot after the header if the header occupies the
    /// place of `slot`.
    fn carve_to(&self, slot: usize) {
        let hole = self.slots().hole();
        let slot = if slot == hole.start { hole.end } else { slot };
        self.bits().carved.store(slot as u32, Relaxed);
    }
    /// Returns the end of the range of slots that may be carved together. The range starts at
    /// `carved`.
    fn carvable_end(&self) -> usize {
        let hole = self.slots().hole();
        if self.bits().carved() < hole.start {
            hole.start
        } else {
            self.slots().end()
        }
    }

    /// Marks every slot as never allocated, so that the caller carves the chunk from its start.
    fn uncarve(&self) {
        self.bits().partial_words.set(0);
        self.bits().hint.set(0);
        self.bits().carved.store(0, Relaxed);
    }

    /// Sets `bits` in word `w`. Requires that all these bits are clear. Returns whether the chunk
    /// had no free block before this call.
    #[inline(always)]
    fn put_free(&self, w: usize, bits: usize) -> bool {
        let word = self.word(w);
        let before = word.load(Relaxed);
        debug_assert!(before & bits == 0, "a block is freed twice");
        word.store(before | bits, Relaxed);
        let partial = self.bits().partial_words.get();
        self.bits().partial_words.set(partial + u32::from(before == 0));
        partial == 0
    }

    /// Clears the bits of at most `room` free blocks, and calls `write(index, block)` with each
    /// block. Blocks with a higher index have a lower address, so a caller that uses the last block
    /// first allocates in address order.
    #[inline(always)]
    fn take_free(
        &self,
        layout: &ChunkLayout,
        room: usize,
        mut write: impl FnMut(usize, Block),
    ) -> usize {
        let own = self.bits();
        let mut count = 0;
        while count < room && own.has_free() {
            let w = own.hint.get() as usize;
            let word = self.word(w);
            let mut bits = word.load(Relaxed);
            let any = bits != 0;
            let more = (room - count).min(bits.count_ones() as usize);
            for i in (count..count + more).rev() {
                let slot = w * WORD_BITS + bits.trailing_zeros() as usize;
                write(i, layout.block_at(self.header(), slot));
                bits &= bits - 1;
            }
            count += more;
            word.store(bits, Relaxed);
            if bits != 0 {
                break;
            }
            own.partial_words.set(own.partial_words.get() - u32::from(any));
            let words = words_for(own.carved()) as u32;
            own.hint.set(if w != 0 { w as u32 } else { words } - 1);
        }
        count
    }
}

/// A chunk of a pool that one thread at a time uses. The words of its free bits follow the header.
#[derive(Clone, Copy, PartialEq, Eq)]
struct PlainChunk(NonNull<Header>);

#[repr(C)]
struct Header {
    head: ChunkHead,
    bits: Bits,
    /// The next chunk in the list of chunks with free blocks.
    next_partial: Cell<Option<PlainChunk>>,
    /// The next chunk in the list of chunks that have slots that were never carved.
    next_fresh: Cell<Option<PlainChunk>>,
}

/// Returns the size of the header of a chunk with `slots` slots, for `ChunkLayout::new`.
const fn header_bytes(slots: usize) -> usize {
    size_of::<Header>() + words_for(slots) * size_of::<usize>()
}
const _: () = assert!(header_bytes(WORD_BITS) <= super::layout::HEADER_BYTES_MAX);

pub(crate) fn chunk_layout(shape: super::layout::SlotShape) -> ChunkLayout {
    ChunkLayout::new(shape, header_bytes)
}

impl Deref for PlainChunk {
    type Target = Header;
    #[inline(always)]
    fn deref(&self) -> &Header {
        // SAFETY: `begin` wrote the header, and the header exists while the pool holds the chunk.
        // All fields that change are cells and atomics.
        unsafe { self.0.as_ref() }
    }
}

impl BitChunk for PlainChunk {
    fn header(self) -> NonNull<u8> {
        self.0.cast()
    }
    fn slots(&self) -> &SlotRange {
        &self.head.slots
    }
    fn bits(&self) -> &Bits {
        &self.bits
    }
    #[inline(always)]
    fn word(&self, w: usize) -> &AtomicUsize {
        // SAFETY: the words stand after the header, and the words of carved slots are initialised.
        unsafe { &*self.word_address(w) }
    }
}

impl PlainChunk {
    /// Writes the part of the header that follows the `ChunkHead`.
    ///
    /// # Safety
    /// A `ChunkHead` is written at `header`, and nothing after it is written yet.
    unsafe fn begin(header: NonNull<u8>) -> Self {
        let chunk = Self(header.cast());
        // SAFETY: by the layout, the header fits in the chunk. No other thread has the chunk's
        // address.
        unsafe {
            let h = chunk.0.as_ptr();
            (&raw mut (*h).bits).write(Bits::new());
            (&raw mut (*h).next_partial).write(Cell::new(None));
            (&raw mut (*h).next_fresh).write(Cell::new(None));
        }
        chunk.carve(0);
        chunk
    }

    #[inline(always)]
    fn word_address(self, w: usize) -> *mut AtomicUsize {
        self.0.as_ptr().wrapping_add(1).cast::<AtomicUsize>().wrapping_add(w)
    }

    /// Calls `carve_to(slot)`, and clears the bits of the slots between the old and the new value
    /// of `carved`. The bits are not written earlier, so that a large chunk does not touch memory
    /// before its blocks are needed.
    fn carve(self, slot: usize) {
        let before = words_for(self.bits.carved());
        self.carve_to(slot);
        for w in before..words_for(self.bits.carved()) {
            // SAFETY: the words of carved slots are within the chunk.
            unsafe { self.word_address(w).write(AtomicUsize::new(0)) }
        }
    }
}

/// The free blocks of a pool that one thread at a time uses, except the blocks in the pool's
/// magazine (a stack of recently freed blocks). A free block that was in use before has its bit
/// set. Blocks that were never in use are in the range from `next` on, and in chunks of the list
/// `fresh`.
///
/// If the pool has no chunk, all pointers are null, so the range is used up and the lists are
/// empty.
#[repr(C)] // an allocation reads the range and the stride, which come first
pub(crate) struct FreeBitmap {
    /// The bump range, which contains the slots that are allocated next when no bit is set. `next
    /// <= end`. While there are free bits, `limit` equals `next`, so that free bits are used first.
    /// Otherwise `limit` equals `end`.
    next: Cell<*mut u8>,
    limit: Cell<*mut u8>,
    pub(crate) chunks: ChunkList,
    end: Cell<*mut u8>,
    /// The list of the chunks with free bits.
    partial: Cell<Option<PlainChunk>>,
    /// The list of the chunks that have slots that were never carved.
    fresh: Cell<Option<PlainChunk>>,
}

/// The largest number of slots in one bump range. The bits of a range are cleared together.
/// Clearing 512 bytes of bits does not make an allocation slow.
const RANGE_SLOTS_MAX: usize = 4096;

impl FreeBitmap {
    pub(crate) fn new(chunks: ChunkList) -> Self {
        let null = || Cell::new(null_mut());
        Self {
            next: null(),
            limit: null(),
            chunks,
            end: null(),
            partial: Cell::new(None),
            fresh: Cell::new(None),
        }
    }

    #[inline(always)]
    fn layout(&self) -> &ChunkLayout {
        &self.chunks.layout
    }

    /// Allocates the next block that was never allocated before. Returns `None` if there is no such
    /// block, or if free bits have to be used first.
    #[inline(always)]
    pub(crate) fn bump(&self) -> Option<Block> {
        let next = self.next.get();
        if next == self.limit.get() {
            return None;
        }
        self.next.set(next.wrapping_add(self.layout().shape.stride));
        // SAFETY: an address below the limit is the address of a slot, so it is not 0.
        Some(unsafe { NonNull::new_unchecked(next) })
    }

    pub(crate) fn has_free(&self) -> bool {
        self.partial.get().is_some()
    }

    /// Opens a new bump range, unless there are free bits. Returns `false` if there are neither
    /// free bits nor slots that were never allocated.
    pub(crate) fn refill(&self, core: *const ()) -> bool {
        if self.has_free() {
            return true;
        }
        if self.next.get() == self.end.get() {
            // SAFETY: `next_chunk` wrote the `ChunkHead`.
            let begin = |h| self.add(unsafe { PlainChunk::begin(h) });
            let Some(chunk) = self.fresh.get().or_else(|| self.chunks.next_chunk(core).map(begin))
            else {
                return false;
            };
            self.open(chunk);
        }
        self.limit.set(self.end.get());
        true
    }

    /// Requests the memory of one growth step from the source.
    pub(crate) fn grow(&self, source: &impl Source, core: *const ()) {
        if let Some(header) = self.chunks.grow(source, 0, core) {
            // SAFETY: `grow` wrote the `ChunkHead`.
            self.add(unsafe { PlainChunk::begin(header) });
        }
    }

    fn add(&self, chunk: PlainChunk) -> PlainChunk {
        chunk.next_fresh.set(self.fresh.replace(Some(chunk)));
        chunk
    }

    /// Makes a bump range of the next slots of `chunk`, which is the first chunk of the list
    /// `fresh`.
    fn open(&self, chunk: PlainChunk) {
        let (first, header) = (chunk.bits.carved(), chunk.header());
        let end = chunk.carvable_end().min(first + RANGE_SLOTS_MAX);
        self.next.set(self.layout().block_at(header, first).as_ptr());
        self.end.set(self.layout().block_at(header, end).as_ptr());
        self.limit.set(self.end.get());
        chunk.carve(end);
        if chunk.is_fully_carved() {
            self.fresh.set(chunk.next_fresh.get());
        }
    }

    /// Allocates at most `room` blocks whose bit is set, and writes them to `out` (see
    /// `BitChunk::take_free`).
    ///
    /// # Safety
    /// `out` has room for `room` blocks.
    pub(crate) unsafe fn take_free(&self, out: *mut Block, room: usize) -> usize {
        let mut count = 0;
        while let (true, Some(chunk)) = (count < room, self.partial.get()) {
            let before = count;
            // SAFETY: the index is below `room - before`, so the entry is within the array at
            // `out`.
            count += chunk.take_free(self.layout(), room - before, |i, block| unsafe {
                out.add(before + i).write(block)
            });
            if chunk.bits.has_free() {
                break;
            }
            self.partial.set(chunk.next_partial.get());
        }
        count
    }

    /// Sets the bits of blocks, without touching the blocks. Successive blocks whose bits are in
    /// one word are freed by one write.
    pub(crate) fn put_free(&self, blocks: &[Block]) {
        let layout = *self.layout(); // a copy: the writes of bits do not change it
        let mut at: (Option<PlainChunk>, usize, usize) = (None, 0, 0);
        for &block in blocks {
            let (header, slot) = layout.place_of(block);
            let chunk = PlainChunk(header.cast());
            let (w, bit) = (slot / WORD_BITS, 1 << (slot % WORD_BITS));
            if at.0 == Some(chunk) && at.1 == w {
                at.2 |= bit;
                continue;
            }
            self.put_word(at);
            at = (Some(chunk), w, bit);
        }
        self.put_word(at);
    }

    #[inline(always)]
    fn put_word(&self, (chunk, w, bits): (Option<PlainChunk>, usize, usize)) {
        let Some(chunk) = chunk else { return };
        if chunk.put_free(w, bits) {
            chunk.next_partial.set(self.partial.replace(Some(chunk)));
            self.limit.set(self.next.get());
        }
    }

    /// Returns the chunk with this header. The chunk is in the list.
    fn chunk(&self, header: NonNull<u8>) -> PlainChunk {
        PlainChunk(header.cast())
    }

    fn is_in_range(&self, p: *const u8) -> bool {
        (self.next.get().addr()..self.end.get().addr()).contains(&p.addr())
    }

    /// Returns whether `p` is the first byte of a carved block whose bit is clear. Returns `None`
    /// if `p` is in no chunk.
    pub(crate) fn is_out(&self, p: *const u8) -> Option<bool> {
        let chunk = self.chunk(self.chunks.find(p)?);
        let is_out = |slot| chunk.is_carved(slot) && !self.is_in_range(p) && !chunk.is_free(slot);
        Some(self.layout().slot_at(chunk.header(), p).is_some_and(is_out))
    }

    /// Returns the next carved block whose bit is clear.
    pub(crate) fn next_out(&self, cursor: &mut LiveCursor) -> Option<Block> {
        let mut header = NonNull::new(cursor.chunk);
        loop {
            while let Some(h) = header {
                let Some(slot) = self.chunk(h).next_used(cursor.slot) else { break };
                cursor.slot = slot + 1;
                let block = self.layout().block_at(h, slot);
                if !self.is_in_range(block.as_ptr()) {
                    return Some(block);
                }
            }
            header = Some(self.chunks.next(cursor)?);
        }
    }

    /// Empties the lists and the bump range. The remaining slots of the range count as never
    /// allocated.
    fn clear(&self) {
        if let (true, Some(next)) =
            (self.next.get() != self.end.get(), NonNull::new(self.next.get()))
        {
            let chunk = self.chunk(self.layout().header_of(next));
            chunk.carve_to(self.layout().slot_of(next));
        }
        for p in [&self.next, &self.limit, &self.end] {
            p.set(null_mut());
        }
        self.partial.set(None);
        self.fresh.set(None);
    }

    /// Rebuilds the lists of chunks from all chunks.
    fn list_all(&self) {
        self.chunks.for_each(|h| {
            let chunk = self.chunk(h);
            if chunk.bits.has_free() {
                chunk.next_partial.set(self.partial.replace(Some(chunk)));
            }
            if !chunk.is_fully_carved() {
                self.add(chunk);
            }
        });
    }

    /// Marks every slot as never allocated.
    pub(crate) fn reset(&self) {
        self.clear();
        self.chunks.for_each(|h| {
            let chunk = self.chunk(h);
            chunk.uncarve();
            chunk.carve(0); // skips a header in the place of slot 0
        });
        self.list_all();
    }

    /// Returns to the source each growth step whose blocks are all free, but keeps `keep` bytes of
    /// these steps.
    pub(crate) fn give_idle(&self, source: &impl Source, keep: usize) {
        self.clear();
        self.chunks.give_idle(source, keep, |h| self.chunk(h).is_idle());
        self.list_all();
    }

    /// Returns the number of carved blocks whose bit is clear, and the number of chunks.
    pub(crate) fn count_out(&self) -> (usize, usize) {
        let in_range =
            (self.end.get().addr() - self.next.get().addr()) / self.layout().shape.stride;
        let (mut out, mut chunks) = (0, 0);
        self.chunks.for_each(|h| {
            out += self.chunk(h).carved_blocks() - self.chunk(h).free_blocks();
            chunks += 1;
        });
        (out - in_range, chunks)
    }
}
