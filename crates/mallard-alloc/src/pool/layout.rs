//! The layout of a pool's chunks: where the header and the slots of a chunk are.

/// The slots of a pool, and the size of its chunks.
///
/// Handles compute the shape from the type of an object, to find the chunk of an object by its
/// address.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct SlotShape {
    /// Bytes from one slot to the next: a multiple of `align`, at least 1.
    pub stride: usize,
    /// Alignment of every slot.
    pub align: usize,
    /// Alignment of a chunk, a power of two. Every slot of a chunk begins within the first `chunk`
    /// bytes, so masking the address of a block finds its chunk.
    pub chunk: usize,
    /// Bytes of a chunk, a multiple of `chunk`: either equal to `chunk`, with at least 15 slots, or
    /// more, with one large slot.
    pub bytes: usize,
    /// Largest number of slots that the pool may have at a time.
    pub most: usize,
}

impl SlotShape {
    /// The shape for blocks of `layout`, in chunks of `chunk` bytes or, if that is more, of the
    /// power of two that holds 15 slots. A slot of 16 KiB or more that needs little alignment has a
    /// chunk of its own: otherwise the first slot of 16 MiB would take 256 MiB.
    pub(crate) const fn of(layout: core::alloc::Layout, chunk: usize) -> Self {
        let (bytes, align) = (layout.size(), layout.align());
        let stride = if bytes == 0 { align } else { crate::bits::align_up(bytes, align) };
        // The header with one word of bits, padded to the alignment of slots.
        let header = crate::bits::align_up(HEADER_BYTES_MAX, align);
        let needed = match stride.checked_mul(SLOTS_MIN) {
            Some(slots) => slots.saturating_add(header),
            None => usize::MAX,
        };
        let power = match needed.checked_next_power_of_two() {
            Some(power) => power,
            None => 1 << (usize::BITS - 2), // no source has so much
        };
        if power > chunk && stride >= ALONE_BYTES_MIN && align <= stride / SLOTS_MIN {
            let header = if align > ALONE_HEADER_BYTES { align } else { ALONE_HEADER_BYTES };
            let (chunk, bytes) = (2 * header, header.saturating_add(stride));
            let bytes = match bytes.checked_next_multiple_of(chunk) {
                Some(bytes) => bytes,
                Option::None => usize::MAX & !(chunk - 1), // no source has so much
            };
            return Self { stride, align, chunk, bytes, most: usize::MAX };
        }
        let chunk = if power > chunk { power } else { chunk };
        Self { stride, align, chunk, bytes: chunk, most: usize::MAX }
    }

    /// Whether each slot has a chunk of its own.
    pub(crate) const fn is_alone(&self) -> bool {
        self.bytes != self.chunk
    }
}

/// Least number of slots of a chunk, unless the chunk is for one slot alone.
const SLOTS_MIN: usize = 15;
/// A slot of this size or more may have a chunk of its own.
const ALONE_BYTES_MIN: usize = 16 << 10;
/// Room for the header of a chunk with one slot, in every mode.
pub(crate) const ALONE_HEADER_BYTES: usize = 512;
/// Bound of the header of a chunk of up to 64 slots, in `sync::Unshared`.
pub(crate) const HEADER_BYTES_MAX: usize = 128;
