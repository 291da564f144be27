//! The layout of a pool's chunks, which determines where the header and the slots of a chunk are.

use crate::base::bits::{align_up, layout};
use core::alloc::Layout;
use core::ops::Range;
use core::ptr::NonNull;

/// The size and alignment of a pool's slots and chunks.
///
/// Handles compute the shape from the type of an object, to find the chunk of an object by its
/// address.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct SlotShape {
    /// Number of bytes from one slot to the next. A multiple of `align`, and at least 1.
    pub stride: usize,
    /// Alignment of every slot.
    pub align: usize,
    /// Alignment of a chunk, a power of two. Every slot of a chunk begins within the first `chunk`
    /// bytes, so masking the address of a block finds its chunk.
    pub chunk: usize,
    /// Size of a chunk in bytes, a multiple of `chunk`. A chunk with 15 or more slots has `chunk`
    /// bytes. A chunk for one large slot has more bytes.
    pub bytes: usize,
    /// Largest number of slots that the pool may have at the same time.
    pub most: usize,
}

impl SlotShape {
    /// Computes the shape for blocks of `layout`. The size of a chunk is `chunk` bytes, or the
    /// power of two that holds 15 slots, whichever is larger. A slot of 16 KiB or more that needs
    /// little alignment gets a separate chunk. Otherwise a pool of 16 MiB slots would allocate 256
    /// MiB for its first slot.
    #[inline(always)] // a constant for a known type, which saves 44 instructions per dropped box
    pub(crate) const fn of(layout: Layout, chunk: usize) -> Self {
        let (bytes, align) = (layout.size(), layout.align());
        let stride = if bytes == 0 { align } else { align_up(bytes, align) };
        // The size of a header with one word of bits, padded to the alignment of slots.
        let header = align_up(HEADER_BYTES_MAX, align);
        let needed = match stride.checked_mul(SLOTS_MIN) {
            Some(slots) => slots.saturating_add(header),
            None => usize::MAX,
        };
        let power = match needed.checked_next_power_of_two() {
            Some(power) => power,
            None => 1 << (usize::BITS - 2), // more bytes than any source has
        };
        if power > chunk && stride >= ALONE_BYTES_MIN && align <= stride / SLOTS_MIN {
            let header = if align > ALONE_HEADER_BYTES { align } else { ALONE_HEADER_BYTES };
            let (chunk, bytes) = (2 * header, header.saturating_add(stride));
            let bytes = match bytes.checked_next_multiple_of(chunk) {
                Some(bytes) => bytes,
                Option::None => usize::MAX & !(chunk - 1), // more bytes than any source has
            };
            return Self { stride, align, chunk, bytes, most: usize::MAX };
        }
        let chunk = if power > chunk { power } else { chunk };
        Self { stride, align, chunk, bytes: chunk, most: usize::MAX }
    }
}

/// Minimum number of slots in a chunk, unless the chunk is for one slot alone.
const SLOTS_MIN: usize = 15;
/// A slot of this size or more may have a separate chunk.
const ALONE_BYTES_MIN: usize = 16 << 10;
/// Number of bytes that are reserved for the header of a chunk with one slot, in every mode.
pub(crate) const ALONE_HEADER_BYTES: usize = 512;
/// The largest size of the header of a chunk of up to 64 slots, in `sync::Unshared`.
pub(crate) const HEADER_BYTES_MAX: usize = 128;

/// All sizes that a pool requests from its source, in bytes, are multiples of this number.
pub(crate) const STEP_UNIT: usize = 64;

/// The positions of the headers and slots in all chunks of one pool.
///
/// ```text
///     slots                    header, free bits               end
///       | 0 | 1 | 2 | ...  | hole.start ......... | hole.end | ...  |
/// ```
///
/// The header occupies the place of some slots, and the numbers of these slots are the hole. The
/// headers of 16 neighbouring chunks are at 16 different offsets, 256 bytes apart, because headers
/// at equal offsets would compete for the same few cache sets
/// (docs/decisions/0003-coloured-headers.md). Slots larger than `COLOURED_STRIDE_MAX` begin after
/// the header, because a chunk has only a few of them.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct ChunkLayout {
    pub(crate) shape: SlotShape,
    /// The offset of slot 0 in its chunk. 0 if the header occupies the place of later slots.
    origin: usize,
    /// The number floor((2^64 - 1) / stride). A multiplication by this number replaces a division
    /// by `stride`.
    reciprocal: u64,
    colours: Colours,
    /// A function that computes the size of a chunk's header from the number of its slots.
    header_bytes: fn(usize) -> usize,
}

const COLOURED_STRIDE_MAX: usize = 512;
const COLOUR_STEP: usize = 256;
const COLOURS: usize = 16;

/// The rule that computes the offset of a chunk's header from the low bits of the chunk's number.
#[derive(Clone, Copy, Debug)]
struct Colours {
    /// The mask for a header's offset. Headers are within the first 16th of their chunks.
    mask: usize,
    /// Shift that turns the address of a chunk into the offset of its header.
    shift: u32,
}

impl Colours {
    #[inline(always)]
    const fn of(shape: &SlotShape) -> Self {
        let shift = shape.chunk.trailing_zeros() - COLOUR_STEP.trailing_zeros();
        if shape.stride > COLOURED_STRIDE_MAX || shape.chunk < COLOURS * COLOURS * COLOUR_STEP {
            return Self { mask: 0, shift };
        }
        Self { mask: (COLOURS - 1) * COLOUR_STEP, shift }
    }

    /// Returns the offset of the header in the chunk that contains `address`.
    #[inline(always)]
    fn offset(self, address: usize) -> usize {
        address >> self.shift & self.mask
    }

    #[inline(always)]
    fn header_of(self, block: NonNull<u8>, chunk: usize) -> NonNull<u8> {
        let header = block.as_ptr().map_addr(|a| (a & !(chunk - 1)) | self.offset(a));
        // SAFETY: the header is in a chunk, and no chunk is at address 0.
        unsafe { NonNull::new_unchecked(header) }
    }
}

/// Returns the header of the chunk that contains `block`, with the provenance of `block`.
#[inline(always)]
pub(crate) fn header_of(block: NonNull<u8>, shape: &SlotShape) -> NonNull<u8> {
    Colours::of(shape).header_of(block, shape.chunk)
}

impl ChunkLayout {
    /// Makes a layout. `header_bytes(count)` is the header size for a chunk with `count` slots.
    #[inline(always)]
    pub(crate) fn new(shape: SlotShape, header_bytes: fn(usize) -> usize) -> Self {
        let in_hole = shape.stride <= COLOURED_STRIDE_MAX;
        let header = header_bytes((shape.chunk / shape.stride).max(1));
        let origin = if in_hole { 0 } else { align_up(header, shape.align) };
        let reciprocal = u64::MAX / shape.stride as u64;
        Self { shape, origin, reciprocal, colours: Colours::of(&shape), header_bytes }
    }

    /// Computes the slots of a chunk that begins at the address `at` and has `bytes` bytes. The
    /// chunk has at most `most` slots.
    pub(crate) fn slots(&self, at: usize, bytes: usize, most: usize) -> SlotRange {
        let (stride, offset) = (self.shape.stride, self.colours.offset(at));
        let bytes = bytes.min(self.shape.bytes);
        let mut count = (bytes.saturating_sub(self.origin) / stride).min(u32::MAX as usize);
        while offset + (self.header_bytes)(count) > bytes && count != 0 {
            count = (count - 1) / 64 * 64; // a header for fewer slots is smaller
        }
        if self.origin != 0 {
            return SlotRange::new(count.min(most), count..count);
        }
        let begin = (offset / stride).min(count);
        let end = (offset + (self.header_bytes)(count)).div_ceil(stride).min(count);
        if most <= begin {
            return SlotRange::new(most, most..most);
        }
        SlotRange::new(most.saturating_add(end - begin).min(count), begin..end)
    }

    /// Returns the number of slots that a chunk of `bytes` bytes has even if its header is at the
    /// worst offset.
    fn capacity_at_least(&self, bytes: usize) -> usize {
        let colours = 0..=self.colours.mask / COLOUR_STEP;
        let slots = |colour| self.slots(colour * self.shape.chunk, bytes, usize::MAX);
        colours.map(|colour| slots(colour).capacity()).min().unwrap_or(0)
    }

    /// Returns the number of bytes that suffice for `count` blocks, wherever the memory begins.
    pub(crate) fn bytes_for(&self, count: usize) -> usize {
        let SlotShape { stride, bytes: chunk, .. } = self.shape;
        let full = self.capacity_at_least(chunk);
        if full == 0 {
            return usize::MAX; // chunks are too small for their header
        }
        let rest = count % full;
        let mut part = 0;
        if rest != 0 {
            let header = (self.header_bytes)(rest);
            let least = (rest * stride + header.max(self.origin)).max(self.colours.mask + header);
            part = align_up(least, STEP_UNIT);
            while self.capacity_at_least(part) < rest {
                let missing = rest - self.capacity_at_least(part);
                part += align_up(missing * stride, STEP_UNIT);
            }
        }
        (count / full).saturating_mul(chunk).saturating_add(part.min(chunk))
    }

    /// Returns the layout of the smallest memory that suffices for `count` blocks.
    pub(crate) fn layout_for(&self, count: usize) -> Option<Layout> {
        layout(self.bytes_for(count), self.shape.chunk)
    }

    /// Returns how many of `bytes` bytes slots can use. These are all bytes of whole chunks, and
    /// the bytes of whole slots in the last chunk.
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

    #[inline(always)]
    pub(crate) fn header_of(&self, block: NonNull<u8>) -> NonNull<u8> {
        self.colours.header_of(block, self.shape.chunk)
    }

    /// Returns the number of the slot that contains `block`, a block of this pool.
    #[inline(always)]
    pub(crate) fn slot_of(&self, block: NonNull<u8>) -> usize {
        let offset = (block.addr().get() & (self.shape.chunk - 1)).wrapping_sub(self.origin);
        // For all n * d below 2^64, (n + 1) * floor((2^64 - 1) / d) / 2^64 equals n / d.
        ((offset.wrapping_add(1) as u128 * self.reciprocal as u128) >> 64) as usize
    }

    /// Returns the header of the chunk of `block`, and the number of the block's slot.
    #[inline(always)]
    pub(crate) fn place_of(&self, block: NonNull<u8>) -> (NonNull<u8>, usize) {
        (self.header_of(block), self.slot_of(block))
    }

    /// Returns the number of the slot that begins at `p`, an address in the chunk of `header`.
    pub(crate) fn slot_at(&self, header: NonNull<u8>, p: *const u8) -> Option<usize> {
        let offset = (p.addr() - self.base(header).addr()).checked_sub(self.origin)?;
        (offset % self.shape.stride == 0).then_some(offset / self.shape.stride)
    }

    /// Returns the address of a slot in the chunk of `header`. The provenance of the address covers
    /// the whole chunk.
    #[inline(always)]
    pub(crate) fn block_at(&self, header: NonNull<u8>, slot: usize) -> NonNull<u8> {
        let block = self.base(header).wrapping_add(self.origin + slot * self.shape.stride);
        // SAFETY: a slot lies in its chunk, and no chunk begins at address 0.
        unsafe { NonNull::new_unchecked(block) }
    }

    /// Returns the first byte of the chunk of `header`.
    #[inline(always)]
    pub(crate) fn base(&self, header: NonNull<u8>) -> *mut u8 {
        header.as_ptr().map_addr(|a| a & !(self.shape.chunk - 1))
    }
}

/// The slots of one chunk. These are all numbers below the end, except the numbers whose place the
/// header occupies (the hole).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct SlotRange {
    count: u32,
    hole_begin: u32,
    hole_end: u32,
}

impl SlotRange {
    fn new(count: usize, hole: Range<usize>) -> Self {
        Self { count: count as u32, hole_begin: hole.start as u32, hole_end: hole.end as u32 }
    }
    /// Returns the number after the last slot.
    #[inline(always)]
    pub(crate) fn end(&self) -> usize {
        self.count as usize
    }
    #[inline(always)]
    pub(crate) fn hole(&self) -> Range<usize> {
        self.hole_begin as usize..self.hole_end as usize
    }
    pub(crate) fn contains(&self, slot: usize) -> bool {
        slot < self.end() && !self.hole().contains(&slot)
    }
    /// Returns how many of the numbers below `end` are slots.
    pub(crate) fn count_below(&self, end: usize) -> usize {
        end.min(self.hole().start) + end.saturating_sub(self.hole().end)
    }
    pub(crate) fn capacity(&self) -> usize {
        self.count_below(self.end())
    }
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = usize> {
        (0..self.hole().start.min(self.end())).chain(self.hole().end..self.end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layouts() -> impl Iterator<Item = ChunkLayout> {
        let headers: [fn(usize) -> usize; 3] = [
            |slots| 72 + slots.div_ceil(64) * 8,
            |slots| 64 + slots * 4,
            |slots| 192 + 2 * slots.div_ceil(512) * 64,
        ];
        let slots =
            [(8, 8), (24, 8), (64, 64), (100, 4), (512, 8), (520, 8), (3000, 8), (4096, 4096)];
        slots.into_iter().flat_map(move |(bytes, align)| {
            headers.into_iter().flat_map(move |header| {
                [1024, 65536].map(|chunk| {
                    let layout = Layout::from_size_align(bytes, align).unwrap();
                    ChunkLayout::new(SlotShape::of(layout, chunk), header)
                })
            })
        })
    }

    #[test]
    #[cfg_attr(miri, ignore)] // takes long, because of much arithmetic
    fn bytes_for_returns_enough_bytes_for_memory_at_any_address() {
        for layout in layouts() {
            let chunk = layout.shape.bytes;
            for count in (1..300).chain([1000, 2000, 4000, 7777, 50_000]) {
                let bytes = layout.bytes_for(count);
                for colour in 0..COLOURS {
                    let at = colour * layout.shape.chunk;
                    let capacity = |bytes| layout.slots(at, bytes, usize::MAX).capacity();
                    let all = bytes / chunk * capacity(chunk) + capacity(bytes % chunk);
                    assert!(all >= count, "{all} of {count} in {bytes}: {layout:?}");
                }
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore)] // takes long, because of much arithmetic
    fn slot_of_finds_the_slot_of_every_address() {
        for layout in layouts() {
            let SlotShape { stride, chunk, .. } = layout.shape;
            for slot in 0..(chunk - layout.origin) / stride {
                for within in [0, stride - 1] {
                    let address = 7 * chunk + layout.origin + slot * stride + within;
                    let block = core::ptr::without_provenance_mut(address);
                    assert_eq!(layout.slot_of(NonNull::new(block).unwrap()), slot);
                }
            }
        }
    }
}
