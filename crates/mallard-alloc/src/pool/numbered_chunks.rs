//! Chunks by number, so that a slot has a number of 32 bits, and a link for each.

use crate::bits::layout;
use crate::growth::GrowthState;
use crate::loom::atomic::{AtomicPtr, AtomicU32, Ordering::*};
use crate::pool::chunk_list::{header_of, ChunkHead, Cut, Division, Slots};
use crate::source::{Chunk, Source};
use core::cell::Cell;
use core::ops::Deref;
use core::ptr::{null_mut, NonNull};

/// Then come the links of the slots, and a mark for each: for a visit of those in use.
#[repr(C)]
pub(crate) struct Header {
    head: ChunkHead,
    /// Of its first slot. With what leads from a block to its slot, so that a free need not look
    /// elsewhere for it.
    number: u32,
    division: Division,
    pub(crate) slots: Slots,
    /// For `trim`: how many of its blocks are on the stack.
    pub(crate) free: Cell<u32>,
}

/// For `Cut::new`.
pub(crate) fn header_bytes(count: usize) -> usize {
    size_of::<Header>() + (count + count.div_ceil(32)) * size_of::<AtomicU32>()
}

/// A header of a chunk of a pool that lives, good for the whole chunk.
#[derive(Clone, Copy)]
pub(crate) struct At(NonNull<Header>);

impl Deref for At {
    type Target = Header;
    #[inline(always)]
    fn deref(&self) -> &Header {
        // SAFETY: it lives, and is only ever shared.
        unsafe { self.0.as_ref() }
    }
}

impl At {
    /// # Safety
    /// `header` is what `begin` wrote, in a pool that lives as long as this is used.
    #[inline(always)]
    pub(crate) unsafe fn new(header: NonNull<u8>) -> Self {
        Self(header.cast())
    }

    /// # Safety
    /// `header` has a `ChunkHead`, and behind it nothing yet.
    unsafe fn begin(header: NonNull<u8>, cut: &Cut, number: u32, slots: Slots) -> Self {
        let at = Self(header.cast());
        // SAFETY: there is room for a header, which nobody else knows of.
        unsafe {
            let h = at.0.as_ptr();
            (&raw mut (*h).number).write(number);
            (&raw mut (*h).division).write(cut.division());
            (&raw mut (*h).slots).write(slots);
            (&raw mut (*h).free).write(Cell::new(0));
            (0..slots.count()).for_each(|slot| at.link_at(slot).write(AtomicU32::new(0)));
        }
        at
    }

    #[inline(always)]
    pub(crate) fn number_of(&self, slot: usize) -> u32 {
        self.number + slot as u32
    }

    /// Of a block in use.
    #[inline(always)]
    pub(crate) fn place_of(block: NonNull<u8>, chunk: usize) -> (Self, usize) {
        let at = Self(header_of(block, chunk).cast());
        (at, at.division.of(block.addr().get() & (chunk - 1)))
    }

    /// Not from a reference to the header: it goes beyond it.
    #[inline(always)]
    fn link_at(self, slot: usize) -> NonNull<AtomicU32> {
        // SAFETY: the chunk has room for the links behind its header.
        unsafe { self.0.add(1).cast::<AtomicU32>().add(slot) }
    }
    #[inline(always)]
    pub(crate) fn link<'a>(self, slot: usize) -> &'a AtomicU32 {
        // SAFETY: `begin` wrote it, and it lives as long as the header.
        unsafe { self.link_at(slot).as_ref() }
    }
    /// Behind the links; only while no other thread is inside a call. Written by `clear_marks`
    /// before it is read.
    fn mark_at(self, w: usize) -> NonNull<Cell<u32>> {
        // SAFETY: the chunk has room for the marks behind the links.
        unsafe { self.link_at(self.slots.count()).add(w).cast() }
    }
    pub(crate) fn clear_marks(self) {
        self.free.set(0);
        for w in 0..self.slots.count().div_ceil(32) {
            // SAFETY: its place, which nobody else is at.
            unsafe { self.mark_at(w).write(Cell::new(0)) };
        }
    }
    fn marks(&self, slot: usize) -> &Cell<u32> {
        // SAFETY: `clear_marks` wrote it.
        unsafe { self.mark_at(slot / 32).as_ref() }
    }
    pub(crate) fn is_marked(&self, slot: usize) -> bool {
        self.marks(slot).get() >> (slot % 32) & 1 != 0
    }
    pub(crate) fn mark(&self, slot: usize) {
        self.marks(slot).set(self.marks(slot).get() | 1 << (slot % 32));
        self.free.set(self.free.get() + 1);
    }

    #[inline(always)]
    pub(crate) fn header(self) -> NonNull<u8> {
        self.0.cast()
    }
}

const FIRST: usize = 16;
const TABLES: usize = 32; // more than there are, so that no index needs a check

type Entry = AtomicPtr<Header>;

/// Table `k` has `16 << k` entries, and never moves; so who looks a number up never finds
/// half of it. The first is at hand. One thread at a time enters chunks, while others look.
pub(crate) struct NumberedChunks {
    tables: [AtomicPtr<Entry>; TABLES],
    first: [Entry; FIRST],
    slot_bits: u32,
}

/// What only who holds the lock of the pool looks at.
pub(crate) struct Numbers {
    taken: [Option<Chunk>; TABLES],
    /// All below are used.
    next: usize,
}

// SAFETY: it has what it points to.
unsafe impl Send for Numbers {}

impl Numbers {
    pub(crate) const fn new() -> Self {
        Self { taken: [None; TABLES], next: 0 }
    }
}

impl NumberedChunks {
    pub(crate) fn new(cut: &Cut) -> Self {
        Self {
            tables: core::array::from_fn(|_| AtomicPtr::new(null_mut())),
            first: core::array::from_fn(|_| Entry::new(null_mut())),
            slot_bits: cut.count.max(2).next_power_of_two().trailing_zeros(),
        }
    }

    /// Of the tables that so many chunks need.
    pub(crate) fn bytes_for(chunks: usize) -> usize {
        match chunks {
            ..=FIRST => 0,
            _ => chunks.saturating_mul(2 * size_of::<Entry>()),
        }
    }

    #[inline(always)]
    fn entry(&self, number: usize) -> &Entry {
        if number < FIRST {
            return &self.first[number];
        }
        let at = number + FIRST;
        let log2 = at.ilog2();
        let table = self.tables[(log2 - FIRST.ilog2()) as usize % TABLES].load(Acquire);
        // SAFETY: who has a number of a chunk has it from after the table was there, and it has
        // an entry for each number of its range.
        unsafe { &*table.add(at - (1 << log2)) }
    }

    /// Of a number that was on the stack, or is.
    #[inline(always)]
    pub(crate) fn place_of(&self, number: u32) -> (At, usize) {
        let chunk = self.entry((number >> self.slot_bits) as usize).load(Acquire);
        let slot = number & ((1 << self.slot_bits) - 1);
        // SAFETY: a chunk is entered before any of its numbers are pushed.
        (At(unsafe { NonNull::new_unchecked(chunk) }), slot as usize)
    }

    // --- under the lock

    /// Finds the number for one more chunk, and room for it; None when memory or numbers are
    /// used up.
    pub(crate) fn next<S: Source>(
        &self,
        numbers: &mut Numbers,
        growth: &GrowthState,
        source: &S,
    ) -> Option<usize> {
        loop {
            let number = numbers.next;
            // One less than there are: so no number is as large as any that means another thing.
            if number >= (u32::MAX >> self.slot_bits) as usize {
                return None;
            }
            if number >= FIRST {
                let k = ((number + FIRST).ilog2() - FIRST.ilog2()) as usize % TABLES;
                if numbers.taken[k].is_none() {
                    numbers.taken[k] = Some(self.take_table(k, growth, source)?);
                }
            }
            if self.entry(number).load(Relaxed).is_null() {
                return Some(number);
            }
            numbers.next += 1;
        }
    }

    fn take_table<S: Source>(&self, k: usize, growth: &GrowthState, source: &S) -> Option<Chunk> {
        let entries = FIRST << k;
        let wanted = layout(entries * size_of::<Entry>(), align_of::<Entry>())?;
        if wanted.size() > growth.left() {
            return None;
        }
        let taken = source.try_take(wanted)?;
        growth.took_aside(taken.layout.size());
        let table = taken.data.cast::<Entry>().as_ptr();
        for i in 0..entries {
            // SAFETY: fresh memory for so many.
            unsafe { table.add(i).write(Entry::new(null_mut())) };
        }
        self.tables[k].store(table, Release);
        Some(taken)
    }

    /// Gives a chunk the number that `next` has found. Its blocks are nobody's yet.
    ///
    /// # Safety
    /// `header` has a `ChunkHead`, and behind it nothing yet.
    pub(crate) unsafe fn enter(
        &self,
        number: usize,
        header: NonNull<u8>,
        cut: &Cut,
        slots: Slots,
    ) -> At {
        // SAFETY: passed on.
        let at = unsafe { At::begin(header, cut, (number as u32) << self.slot_bits, slots) };
        self.entry(number).store(at.0.as_ptr(), Release);
        at
    }

    // --- while no other thread is inside a call

    pub(crate) fn leave(&self, numbers: &mut Numbers, c: At) {
        let number = (c.number >> self.slot_bits) as usize;
        self.entry(number).store(null_mut(), Relaxed);
        numbers.next = numbers.next.min(number);
    }

    /// All chunks have left; the tables go back.
    pub(crate) fn release<S: Source>(
        &self,
        numbers: &mut Numbers,
        growth: &GrowthState,
        source: &S,
    ) {
        numbers.next = 0;
        for (k, taken) in numbers.taken.iter_mut().enumerate() {
            if let Some(taken) = taken.take() {
                self.tables[k].store(null_mut(), Relaxed);
                growth.gave(taken.layout.size());
                // SAFETY: it came from the source, and nobody looks into it.
                unsafe { source.give(taken) }
            }
        }
    }
}
