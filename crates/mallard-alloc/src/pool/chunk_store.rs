//! The chunks of one pool, and their free blocks that are not at hand: a bit each, or not carved.

use crate::pool::chunk::{words_for, ChunkPtr, Cut, WORD_BITS};
use crate::pool::core_trait::LiveCursor;
use crate::source::Chunk;
use core::alloc::Layout;
use core::cell::Cell;
use core::ptr::{null_mut, NonNull};

type Block = NonNull<u8>;

/// A store without a chunk is a store whose chunks are used up.
#[repr(C)] // what an allocation reads comes first
pub(crate) struct ChunkStore {
    /// Slots that are given out next where none is free again: `next <= end`, and `limit` is
    /// one of the two. Hidden (`limit == next`) while there are chunks with free bits.
    next: Cell<*mut u8>,
    limit: Cell<*mut u8>,
    pub(crate) cut: Cut,
    end: Cell<*mut u8>,
    /// Chunks with free bits.
    partial: Cell<Option<ChunkPtr>>,
    /// Chunks with slots to carve.
    fresh: Cell<Option<ChunkPtr>>,
    /// The first chunks of what was taken at once, newest first.
    takes: Cell<Option<ChunkPtr>>,
    /// What is left of the newest, in chunks that have no header yet.
    rest: Cell<*mut u8>,
    rest_end: Cell<*mut u8>,
    /// In chunks that have a header.
    slots: Cell<usize>,
}

/// Their bits are cleared together: 512 bytes, so no allocation takes long.
const WINDOW_SLOTS_MAX: usize = 4096;

impl ChunkStore {
    pub(crate) fn new(cut: Cut) -> Self {
        let null = || Cell::new(null_mut());
        Self {
            next: null(),
            limit: null(),
            cut,
            end: null(),
            partial: Cell::new(None),
            fresh: Cell::new(None),
            takes: Cell::new(None),
            rest: null(),
            rest_end: null(),
            slots: Cell::new(0),
        }
    }

    /// The next block that was never given out, unless there are others to give first.
    #[inline(always)]
    pub(crate) fn carve(&self) -> Option<Block> {
        let next = self.next.get();
        if next == self.limit.get() {
            return None;
        }
        self.next.set(next.wrapping_add(self.cut.shape.stride));
        // SAFETY: it is within a chunk.
        Some(unsafe { NonNull::new_unchecked(next) })
    }

    pub(crate) fn has_recycled(&self) -> bool {
        self.partial.get().is_some()
    }

    /// `false`: nothing is left. Else there are recycled blocks, or else blocks to carve.
    pub(crate) fn replenish(&self, owner: *const u8) -> bool {
        if self.has_recycled() {
            return true;
        }
        if self.next.get() == self.end.get() {
            let Some(c) = self.fresh.get().or_else(|| self.make_chunk(owner)) else { return false };
            self.open(c);
        }
        self.limit.set(self.end.get());
        true
    }

    /// The next slots of `c` are to be given out.
    fn open(&self, c: ChunkPtr) {
        let (first, hole) = (c.carved.get() as usize, c.hole_begin as usize);
        let stop = if first < hole { hole } else { c.count as usize };
        let end = stop.min(first + WINDOW_SLOTS_MAX);
        self.next.set(self.cut.slot_address(c, first));
        self.end.set(self.cut.slot_address(c, end));
        self.limit.set(self.end.get());
        c.carve_to(end);
        if c.carved.get() == c.count {
            self.fresh.set(c.next_fresh.get());
        }
    }

    /// One more chunk of what is left of the newest take.
    fn make_chunk(&self, owner: *const u8) -> Option<ChunkPtr> {
        let (at, end) = (self.rest.get(), self.rest_end.get());
        let bytes = (end.addr() - at.addr()).min(self.cut.shape.bytes);
        if bytes == 0 {
            return None;
        }
        self.rest.set(at.wrapping_add(bytes));
        // SAFETY: what is left is this store's, and a whole number of chunks from the first.
        let c = unsafe { self.cut.make_chunk(at, bytes, self.most_to_come(), owner) }?;
        let first = self.takes.get().unwrap_or(c);
        first.take_made.set(first.take_made.get() + 1);
        self.slots.set(self.slots.get() + c.capacity());
        c.next_fresh.set(self.fresh.replace(Some(c)));
        Some(c)
    }

    /// What a take that has room for a slot needs to have. With a bound for the slots: for all
    /// that may still come.
    pub(crate) fn least_take(&self) -> Option<Layout> {
        let shape = &self.cut.shape;
        let slots = if shape.most == usize::MAX { 1 } else { self.most_to_come() };
        if slots == 0 {
            return None;
        }
        crate::bits::layout(self.cut.bytes_for(slots), shape.chunk)
    }

    fn most_to_come(&self) -> usize {
        self.cut.shape.most - self.slots.get()
    }

    /// The memory of one more take, `least_take` at least. What is left of the one before is
    /// forgotten: nothing, or too little for a slot.
    ///
    /// # Safety
    /// It is the store's until it is given back.
    pub(crate) unsafe fn add(&self, taken: Chunk, owner: *const u8) {
        let before = self.takes.take(); // so that the chunk made next is the first
        self.rest.set(taken.data.as_ptr());
        self.rest_end.set(taken.data.as_ptr().wrapping_add(taken.layout.size()));
        let first = self.make_chunk(owner);
        debug_assert!(first.is_some(), "a take has room for a slot");
        if let Some(first) = first {
            first.next_take.set(before);
            first.take_bytes.set(taken.layout.size());
            self.takes.set(Some(first));
        }
    }

    /// Writes at most `room` recycled blocks, the highest address first, so that taking them
    /// from the end walks memory forwards.
    ///
    /// # Safety
    /// There is that much room at `out`.
    pub(crate) unsafe fn recycle(&self, out: *mut Block, room: usize) -> usize {
        let stride = self.cut.shape.stride;
        let mut count = 0;
        while let (true, Some(c)) = (count < room, self.partial.get()) {
            let w = c.hint.get() as usize;
            let mut bits = c.bits(w);
            let any = bits != 0;
            let first = self.cut.slot_address(c, w * WORD_BITS);
            let more = (room - count).min(bits.count_ones() as usize);
            for i in (0..more).rev() {
                let block = first.wrapping_add(bits.trailing_zeros() as usize * stride);
                // SAFETY: `count + more` is at most `room`; a slot is not at address 0.
                unsafe { out.add(count + i).write(NonNull::new_unchecked(block)) };
                bits &= bits - 1;
            }
            count += more;
            // SAFETY: the bits of a carved slot, which are this store's.
            unsafe { *c.word(w) = bits };
            if bits != 0 {
                break;
            }
            let words = words_for(c.carved.get() as usize);
            c.hint.set((if w != 0 { w } else { words } - 1) as u32);
            c.partial_words.set(c.partial_words.get() - u32::from(any));
            if c.partial_words.get() == 0 {
                self.partial.set(c.next_partial.get());
            }
        }
        count
    }

    /// Costs a bit each; the blocks are not touched. Neighbours that are put back together
    /// share one write.
    pub(crate) fn put_back(&self, blocks: &[Block]) {
        let cut = self.cut; // not read again after every bit
        let (mut at, mut bits) = (null_mut::<u64>(), 0);
        for block in blocks {
            let block = block.as_ptr();
            let (c, slot) = (cut.header_of(block), cut.slot_of(block));
            let here = c.word(slot / WORD_BITS);
            if here != at {
                // SAFETY: the bits of a carved slot, which are this store's.
                bits = unsafe { *here };
                at = here;
                if bits == 0 {
                    self.list_word(c);
                }
            }
            bits |= 1 << (slot % WORD_BITS);
            // SAFETY: the same.
            unsafe { *here = bits };
        }
    }

    /// One more word of `c` gets its first bit.
    #[inline(always)]
    fn list_word(&self, c: ChunkPtr) {
        let before = c.partial_words.get();
        c.partial_words.set(before + 1);
        if before == 0 {
            c.next_partial.set(self.partial.replace(Some(c)));
            self.limit.set(self.next.get());
        }
    }

    fn is_in_window(&self, p: *const u8) -> bool {
        (self.next.get().addr()..self.end.get().addr()).contains(&p.addr())
    }

    /// The chunk that `p` points into; O(takes).
    fn find(&self, p: *const u8) -> Option<ChunkPtr> {
        let bytes = self.cut.shape.bytes;
        let mut take = self.takes.get();
        while let Some(first) = take {
            let base = first.base(&self.cut);
            let offset = p.addr().wrapping_sub(base.addr());
            if offset < first.take_bytes.get() {
                let number = offset / bytes;
                let made = number < first.take_made.get() as usize;
                return made.then(|| self.chunk_in(first, number));
            }
            take = first.next_take.get();
        }
        None
    }

    pub(crate) fn owns(&self, p: *const u8) -> bool {
        self.find(p).is_some()
    }

    /// Whether `p` is the first byte of a block that was given out, and has not come back here.
    pub(crate) fn is_out(&self, p: *const u8) -> bool {
        let Some(c) = self.find(p) else { return false };
        let slot = self.cut.slot_of(p);
        self.cut.slot_address(c, slot).addr() == p.addr()
            && c.is_carved(slot)
            && !self.is_in_window(p)
            && !c.is_free(slot)
    }

    /// All chunks, takes newest first.
    pub(crate) fn for_each(&self, mut f: impl FnMut(ChunkPtr)) {
        let mut take = self.takes.get();
        while let Some(first) = take {
            take = first.next_take.get();
            (0..first.take_made.get() as usize).for_each(|i| f(self.chunk_in(first, i)));
        }
    }

    fn chunk_in(&self, first: ChunkPtr, i: usize) -> ChunkPtr {
        let base = first.base(&self.cut).wrapping_add(i * self.cut.shape.bytes);
        self.cut.header_of(base)
    }

    /// The next block that is out, when none is at hand.
    pub(crate) fn next_out(&self, cursor: &mut LiveCursor) -> Option<Block> {
        let mut take = match NonNull::new(cursor.take) {
            Some(base) => self.cut.header_of(base.as_ptr()),
            None => self.takes.get()?,
        };
        loop {
            let base = take.base(&self.cut);
            cursor.take = base;
            if cursor.chunk.is_null() {
                cursor.chunk = base;
            }
            let made_end = base.wrapping_add(take.take_made.get() as usize * self.cut.shape.bytes);
            while cursor.chunk != made_end {
                let c = self.cut.header_of(cursor.chunk);
                while let Some(slot) = c.next_used(cursor.slot) {
                    cursor.slot = slot + 1;
                    let block = self.cut.slot_address(c, slot);
                    if !self.is_in_window(block) {
                        return NonNull::new(block);
                    }
                }
                cursor.chunk = cursor.chunk.wrapping_add(self.cut.shape.bytes);
                cursor.slot = 0;
            }
            // Stays at the end of the last take, should it be asked again.
            take = take.next_take.get()?;
            cursor.chunk = null_mut();
        }
    }

    /// No lists and no window any more; what is left of the window was not carved.
    fn forget(&self) {
        if self.next.get() != self.end.get() {
            let c = self.cut.header_of(self.next.get());
            c.carved.set(self.cut.slot_of(self.next.get()) as u32);
        }
        for p in [&self.next, &self.limit, &self.end] {
            p.set(null_mut());
        }
        self.partial.set(None);
        self.fresh.set(None);
    }

    /// Every slot is as if never given out.
    pub(crate) fn reset(&self) {
        self.forget();
        self.for_each(ChunkPtr::uncarve);
        self.list();
    }

    fn list(&self) {
        let mut take = self.takes.get();
        while let Some(first) = take {
            take = first.next_take.get();
            for i in (0..first.take_made.get() as usize).rev() {
                let c = self.chunk_in(first, i);
                if c.partial_words.get() != 0 {
                    c.next_partial.set(self.partial.replace(Some(c)));
                }
                if c.carved.get() != c.count {
                    c.next_fresh.set(self.fresh.replace(Some(c)));
                }
            }
        }
    }

    /// Gives back every take whose chunks are all idle, beyond `keep` bytes. No block is at hand.
    pub(crate) fn give_idle(&self, mut keep: usize, mut give: impl FnMut(Chunk)) {
        self.forget();
        let mut take = self.takes.take();
        let newest = take;
        let mut kept_last: Option<ChunkPtr> = None;
        while let Some(first) = take {
            let next = first.next_take.get();
            let made = first.take_made.get() as usize;
            let chunks = || (0..made).map(|i| self.chunk_in(first, i));
            let idle = chunks().all(|c| c.free_blocks() == c.carved_blocks());
            let bytes = first.take_bytes.get();
            if idle && bytes > keep {
                if take == newest {
                    self.rest.set(null_mut());
                    self.rest_end.set(null_mut());
                }
                let slots: usize = chunks().map(ChunkPtr::capacity).sum();
                self.slots.set(self.slots.get() - slots);
                if let Some(chunk) = self.as_taken(first) {
                    give(chunk);
                }
            } else {
                keep -= if idle { bytes } else { 0 };
                first.next_take.set(None);
                match &kept_last {
                    Some(newer) => newer.next_take.set(take),
                    None => self.takes.set(take),
                }
                kept_last = Some(first);
            }
            take = next;
        }
        self.list();
    }

    /// What the source gave.
    fn as_taken(&self, first: ChunkPtr) -> Option<Chunk> {
        let data = NonNull::new(first.base(&self.cut))?;
        let layout = crate::bits::layout(first.take_bytes.get(), self.cut.shape.chunk)?;
        Some(Chunk { data, layout })
    }

    /// Slots that are in no header yet.
    fn slots_to_come(&self) -> usize {
        let (mut at, end) = (self.rest.get(), self.rest_end.get());
        let mut slots = 0;
        while at != end {
            let bytes = (end.addr() - at.addr()).min(self.cut.shape.bytes);
            slots += self.cut.capacity_at(at.addr(), bytes);
            at = at.wrapping_add(bytes);
        }
        slots.min(self.most_to_come())
    }

    /// Slots that are out or at hand; all that there are; chunks.
    pub(crate) fn count(&self) -> (usize, usize, usize) {
        let window = (self.end.get().addr() - self.next.get().addr()) / self.cut.shape.stride;
        let (mut out, mut chunks) = (0, 0);
        self.for_each(|c| {
            out += c.carved_blocks() - c.free_blocks();
            chunks += 1;
        });
        (out - window, self.slots.get() + self.slots_to_come(), chunks)
    }
}
