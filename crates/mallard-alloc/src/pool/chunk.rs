//! One chunk of a pool: its slots, a header, a bit for each slot.

use crate::bits::align_up;
use crate::pool::layout::SlotShape;
use core::cell::Cell;
use core::mem::size_of;
use core::ptr::NonNull;

pub(crate) const WORD_BITS: usize = 64;

pub(crate) const fn words_for(slots: usize) -> usize {
    slots.div_ceil(WORD_BITS)
}

/// Where the headers and slots of all chunks of one pool are.
///
/// Headers all at one offset would fight for the same few cache sets, and how often: each drop
/// of a box reads one. So they stand 256 bytes further on in each of up to 16 neighbouring
/// chunks, in place of some slots (docs/decisions/0003-coloured-headers.md). Not further, since
/// the least chunk reaches from its first byte to the end of its header. Slots above
/// `COLOURED_STRIDE_MAX` are few to a chunk, and begin behind the header.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Cut {
    pub(crate) shape: SlotShape,
    /// Of slot 0 in its chunk.
    origin: usize,
    /// (2^64 - 1) / stride.
    reciprocal: u64,
}

const COLOURED_STRIDE_MAX: usize = 512;
const COLOUR_STEP: usize = 256;
const COLOURS_MAX: usize = 16;

/// Of the header in the chunk that `address` is in.
#[inline(always)]
fn header_offset(address: usize, shape: &SlotShape) -> usize {
    address >> (shape.chunk.trailing_zeros() - COLOUR_STEP.trailing_zeros()) & colour_mask(shape)
}

/// At most a 16th of a chunk.
#[inline(always)]
const fn colour_mask(shape: &SlotShape) -> usize {
    if shape.stride > COLOURED_STRIDE_MAX || shape.chunk < COLOURS_MAX * COLOURS_MAX * COLOUR_STEP {
        return 0;
    }
    (COLOURS_MAX - 1) * COLOUR_STEP
}

/// The header of the chunk of a block.
#[inline(always)]
pub(crate) fn header_of(block: *mut u8, shape: &SlotShape) -> ChunkPtr {
    let header = block.map_addr(|a| (a & !(shape.chunk - 1)).wrapping_add(header_offset(a, shape)));
    // SAFETY: a chunk is not at address 0.
    ChunkPtr(unsafe { NonNull::new_unchecked(header.cast()) })
}

impl Cut {
    pub(crate) fn new(shape: SlotShape) -> Self {
        let header = Header::bytes((shape.chunk / shape.stride).max(1));
        let coloured = shape.stride <= COLOURED_STRIDE_MAX;
        let origin = if coloured { 0 } else { align_up(header, shape.align) };
        Self { shape, origin, reciprocal: u64::MAX / shape.stride as u64 }
    }

    /// Slots of a chunk of `bytes`, with the header at `offset`.
    fn plan(&self, bytes: usize, offset: usize) -> Plan {
        let stride = self.shape.stride;
        let mut count = (bytes.saturating_sub(self.origin) / stride).min(u32::MAX as usize);
        while offset + Header::bytes(count) > bytes && count != 0 {
            count = (count - 1) / WORD_BITS * WORD_BITS; // fewer bits
        }
        if self.origin != 0 {
            return Plan { count, hole_begin: count, hole_end: count };
        }
        let hole_begin = (offset / stride).min(count);
        let hole_end = (offset + Header::bytes(count)).div_ceil(stride).min(count);
        Plan { count, hole_begin, hole_end }
    }

    /// Slots of the chunk that `make_chunk` would make there.
    pub(crate) fn capacity_at(&self, at: usize, bytes: usize) -> usize {
        self.plan(bytes.min(self.shape.bytes), header_offset(at, &self.shape)).capacity()
    }

    /// Bytes that hold `count` slots, whatever chunk of memory they begin at.
    pub(crate) fn bytes_for(&self, count: usize) -> usize {
        let SlotShape { stride, bytes: chunk, .. } = self.shape;
        let hole = |slots| Header::bytes(slots).div_ceil(stride) + 1;
        let full = match self.origin {
            0 => chunk / stride - hole(chunk / stride),
            origin => (chunk - origin) / stride,
        };
        let (fulls, rest) = (count / full, count % full);
        let part = match (rest, self.origin) {
            (0, _) => 0,
            (_, 0) => {
                // One word of bits more than expected takes 8 bytes of slots.
                let with_hole = |slots| rest + hole(slots) + 8 / stride;
                let mut slots = rest;
                while slots < with_hole(slots) {
                    slots = with_hole(slots); // an eighth as much again, at most
                }
                (slots * stride).max(self.header_reach())
            }
            (_, origin) => origin + rest * stride,
        };
        fulls.saturating_mul(chunk).saturating_add(align_up(part.min(chunk), STEP_UNIT))
    }

    /// The part of a step that slots need: whole chunks, and whole slots of the last chunk.
    pub(crate) fn useful(&self, bytes: usize) -> usize {
        let SlotShape { stride, bytes: chunk, .. } = self.shape;
        let rest = bytes % chunk;
        let waste = match self.origin {
            0 => 0,
            origin if rest < origin + stride => rest,
            origin => (rest - origin) % stride,
        };
        align_up(bytes - waste, STEP_UNIT).min(bytes & !(STEP_UNIT - 1))
    }

    /// Of a chunk of so many bytes, or more, the header ends within it, wherever it begins.
    fn header_reach(&self) -> usize {
        let last_offset = colour_mask(&self.shape);
        let mut bytes = 0;
        loop {
            let needed = last_offset + Header::bytes(bytes / self.shape.stride);
            if needed <= bytes {
                return bytes + STEP_UNIT; // grows faster than the bits do
            }
            bytes = needed;
        }
    }

    /// The slot that `p` is in; in a chunk of one slot, `p` has to be its first byte.
    #[inline(always)]
    pub(crate) fn slot_of(&self, p: *const u8) -> usize {
        let offset = (p.addr() & (self.shape.chunk - 1)).wrapping_sub(self.origin);
        // (n + 1) * floor((2^64 - 1) / d) / 2^64 is n / d, for all n * d below 2^64.
        (((offset as u128 + 1) * self.reciprocal as u128) >> 64) as usize
    }

    pub(crate) fn slot_address(&self, c: ChunkPtr, slot: usize) -> *mut u8 {
        c.base(self).wrapping_add(self.origin + slot * self.shape.stride)
    }

    pub(crate) fn header_of(&self, block: *mut u8) -> ChunkPtr {
        header_of(block, &self.shape)
    }

    /// Writes the header of a chunk that begins at `at`, in `bytes` of memory, with at most
    /// `most` slots; `None` if there is no room for a slot.
    ///
    /// # Safety
    /// The memory is the caller's, and `at` is a multiple of the size of a chunk.
    pub(crate) unsafe fn make_chunk(
        &self,
        at: *mut u8,
        bytes: usize,
        most: usize,
        owner: *const u8,
    ) -> Option<ChunkPtr> {
        let offset = header_offset(at.addr(), &self.shape);
        let plan = self.plan(bytes.min(self.shape.bytes), offset).at_most(most);
        if plan.capacity() == 0 {
            return None;
        }
        let header = NonNull::new(at.wrapping_add(offset).cast::<Header>())?;
        // SAFETY: it is within the chunk, as the plan says, and aligned: `offset` is a multiple
        // of 256.
        unsafe {
            header.write(Header {
                owner,
                next_partial: Cell::new(None),
                next_fresh: Cell::new(None),
                next_take: Cell::new(None),
                take_bytes: Cell::new(0),
                take_made: Cell::new(0),
                count: plan.count as u32,
                hole_begin: plan.hole_begin as u32,
                hole_end: plan.hole_end as u32,
                carved: Cell::new(0),
                partial_words: Cell::new(0),
                hint: Cell::new(0),
            });
        }
        let c = ChunkPtr(header);
        c.uncarve();
        Some(c)
    }
}

/// What is taken from a source is a multiple of it.
pub(crate) const STEP_UNIT: usize = 64;

struct Plan {
    count: usize,
    hole_begin: usize,
    hole_end: usize,
}

impl Plan {
    fn capacity(&self) -> usize {
        self.count - (self.hole_end - self.hole_begin)
    }
    fn at_most(self, most: usize) -> Self {
        if most <= self.hole_begin {
            return Self { count: most, hole_begin: most, hole_end: most };
        }
        let hole = self.hole_end - self.hole_begin;
        Self { count: self.count.min(most.saturating_add(hole)), ..self }
    }
}

/// Slots are carved lazily, in address order: nothing from `carved` on has ever been touched,
/// neither the slot nor its bit.
///
/// ```text
///     slots                    header, free bits           end
///       | 0 | 1 | 2 | ...  | hole_begin ......... | hole_end | ...  |
/// ```
///
/// A carved slot is in use, or at hand in its pool, or free here: then its bit is set.
#[repr(C, align(8))]
pub(crate) struct Header {
    /// The core.
    owner: *const u8,
    /// Of the chunks with `partial_words` > 0.
    pub(crate) next_partial: Cell<Option<ChunkPtr>>,
    /// Words with a bit set.
    pub(crate) partial_words: Cell<u32>,
    /// The word that gave slots last.
    pub(crate) hint: Cell<u32>,
    /// Slots, those of the hole included.
    pub(crate) count: u32,
    pub(crate) carved: Cell<u32>,
    pub(crate) hole_begin: u32,
    pub(crate) hole_end: u32,
    /// Of the chunks with `carved` < `count`.
    pub(crate) next_fresh: Cell<Option<ChunkPtr>>,
    // In the first chunk of what was taken at once:
    /// The one taken before.
    pub(crate) next_take: Cell<Option<ChunkPtr>>,
    pub(crate) take_bytes: Cell<usize>,
    /// Chunks of it that have a header, from the first on.
    pub(crate) take_made: Cell<u32>,
}

impl Header {
    const fn bytes(slots: usize) -> usize {
        size_of::<Self>() + words_for(slots) * size_of::<u64>()
    }
}

const _: () = assert!(Header::bytes(WORD_BITS) <= crate::pool::layout::HEADER_BYTES_MAX);

/// A chunk that has a header, for as long as the pool holds it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChunkPtr(NonNull<Header>);

impl core::ops::Deref for ChunkPtr {
    type Target = Header;
    #[inline(always)]
    fn deref(&self) -> &Header {
        // SAFETY: a header is written before there is a `ChunkPtr` of it, and stays while its
        // pool holds the chunk; what changes in it is in cells, under the rule of the pool.
        unsafe { self.0.as_ref() }
    }
}

impl ChunkPtr {
    /// Reads nothing else: what another thread changes in the header does not matter.
    #[inline(always)]
    pub(crate) fn owner(self) -> *const u8 {
        // SAFETY: written once, before any block of the chunk was given out.
        unsafe { (&raw const (*self.0.as_ptr()).owner).read() }
    }

    pub(crate) fn base(self, cut: &Cut) -> *mut u8 {
        self.0.as_ptr().cast::<u8>().map_addr(|a| a & !(cut.shape.chunk - 1))
    }

    /// The free bits of slots from `64 * w` on; `w < words_for(count)`.
    #[inline(always)]
    pub(crate) fn word(self, w: usize) -> *mut u64 {
        debug_assert!(w < words_for(self.count as usize));
        // They are behind the header.
        self.0.as_ptr().wrapping_add(1).cast::<u64>().wrapping_add(w)
    }
    pub(crate) fn bits(self, w: usize) -> u64 {
        // SAFETY: bits of carved slots are initialised, and plain under the rule of the pool.
        unsafe { *self.word(w) }
    }

    pub(crate) fn is_free(self, slot: usize) -> bool {
        self.bits(slot / WORD_BITS) >> (slot % WORD_BITS) & 1 != 0
    }
    pub(crate) fn is_carved(self, slot: usize) -> bool {
        let in_hole = (self.hole_begin as usize..self.hole_end as usize).contains(&slot);
        slot < self.carved.get() as usize && !in_hole
    }

    /// The first slot from `slot` on that is carved and not free here.
    pub(crate) fn next_used(self, slot: usize) -> Option<usize> {
        let carved = self.carved.get() as usize;
        let mut mask = u64::MAX << (slot % WORD_BITS);
        for w in slot / WORD_BITS..words_for(carved) {
            let hole = below(self.hole_end as usize, w) & !below(self.hole_begin as usize, w);
            let used = !self.bits(w) & below(carved, w) & !hole & mask;
            if used != 0 {
                return Some(w * WORD_BITS + used.trailing_zeros() as usize);
            }
            mask = u64::MAX;
        }
        None
    }

    /// Blocks it can hold.
    pub(crate) fn capacity(self) -> usize {
        (self.count - (self.hole_end - self.hole_begin)) as usize
    }
    /// Those that were given out, ever since the chunk was fresh.
    pub(crate) fn carved_blocks(self) -> usize {
        let carved = self.carved.get();
        let hole = if carved >= self.hole_end { self.hole_end - self.hole_begin } else { 0 };
        (carved - hole) as usize
    }
    /// Those of them that are free here.
    pub(crate) fn free_blocks(self) -> usize {
        let words = 0..words_for(self.carved.get() as usize);
        words.map(|w| self.bits(w).count_ones() as usize).sum()
    }

    /// Moves `carved` on, and past the hole.
    pub(crate) fn carve_to(self, slot: usize) {
        let to = if slot == self.hole_begin as usize { self.hole_end as usize } else { slot };
        for w in words_for(self.carved.get() as usize)..words_for(to) {
            // SAFETY: within the bits of the chunk, which is the pool's.
            unsafe { *self.word(w) = 0 }
        }
        self.carved.set(to as u32);
    }

    /// Every slot is as if never given out.
    pub(crate) fn uncarve(self) {
        self.carved.set(0);
        self.partial_words.set(0);
        self.hint.set(0);
        self.carve_to(0);
    }
}

/// The bits of word `w` for slots before `slot`.
fn below(slot: usize, w: usize) -> u64 {
    match slot.saturating_sub(w * WORD_BITS) {
        bits if bits >= WORD_BITS => u64::MAX,
        bits => (1 << bits) - 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::alloc::Layout;

    #[test]
    #[cfg_attr(miri, ignore)] // arithmetic, and much of it
    fn bytes_for_some_slots_hold_them_wherever_they_begin() {
        for (stride, align) in
            [(1, 1), (2, 2), (3, 1), (8, 8), (24, 8), (64, 64), (100, 4), (512, 8)]
        {
            for chunk in [256, 1024, 65536] {
                let layout = Layout::from_size_align(stride, align).unwrap();
                let cut = Cut::new(SlotShape::of(layout, chunk));
                let chunk = cut.shape.bytes;
                for count in (1..300).chain([1000, 2000, 4000, 7777, 50_000]) {
                    let bytes = cut.bytes_for(count);
                    for offset in (0..=colour_mask(&cut.shape)).step_by(COLOUR_STEP) {
                        let capacity = |bytes| cut.plan(bytes, offset).capacity();
                        let all = bytes / chunk * capacity(chunk) + capacity(bytes % chunk);
                        assert!(all >= count, "{all} of {count}: {stride} {chunk} {offset}");
                    }
                }
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore)] // arithmetic, and much of it
    fn a_slot_is_found_by_its_address() {
        for (bytes, align) in [(1, 1), (3, 1), (24, 8), (64, 64), (520, 8), (3000, 8), (4096, 4096)]
        {
            let layout = Layout::from_size_align(bytes, align).unwrap();
            let cut = Cut::new(SlotShape::of(layout, 65536));
            for slot in 0..(cut.shape.chunk - cut.origin) / cut.shape.stride {
                for within in [0, cut.shape.stride - 1] {
                    let address = 7 * cut.shape.chunk + cut.origin + slot * cut.shape.stride;
                    let p = core::ptr::without_provenance(address + within);
                    assert_eq!(cut.slot_of(p), slot);
                }
            }
        }
    }
}
