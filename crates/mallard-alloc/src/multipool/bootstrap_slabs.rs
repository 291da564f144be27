//! Bootstrap slabs. They are the first memory of a multipool, and all size classes share them.

use super::chunks::{Chunk, Chunks};
use super::class_pool::Shape;
use crate::base::bits::{align_up, layout};
use crate::{Source, Statistics};
use core::cell::Cell;

/// Slabs of 1, 4, 16, 64 and 256 KiB, from which blocks of any size class are cut in address order.
/// If each size class requested a chunk for its first block, the chunks of a small container would
/// be larger than its blocks. For example, 64 strings have 24 different sizes.
///
/// ```text
///     header | 40 B | 24 B | 640 B | not cut yet ...   | 5 | 2 | 4 |
///                                  cut                 room_end    end
/// ```
///
/// The kind of a block is the index of its size class. The bytes between `room_end` and the end of
/// the slab store the kinds, one byte for each block. The byte of the first block is the last byte
/// of the slab. With these bytes, a slab can be read block by block. A freed block is added to the
/// free list of its class.
pub(super) struct BootstrapSlabs {
    chunks: Chunks,
    step: Cell<usize>, // the size of the next slab in bytes
}

const STEP_FIRST: usize = 1 << 10;
const STEP_MAX: usize = 1 << 18;
const STEP_FACTOR: usize = 4;
const BLOCKS_MIN: usize = 4; // a new slab holds at least this number of the requested blocks

/// Returns how many bytes of blocks are cut together. The result is 512 for blocks of up to 64
/// bytes, because a container usually has many of these blocks. The result is 256 for larger
/// blocks, so that a few large blocks do not use up the memory of many small blocks.
fn batch_bytes(shape: Shape) -> usize {
    if shape.bytes <= 64 {
        512
    } else {
        256
    }
}

/// Marks all blocks of a slab as never cut.
fn rewind(slab: Chunk) {
    slab.cut.set(slab.begin(1));
    slab.room_end.set(slab.end());
}

/// Returns the address of a slab's next block with this shape. Returns `None` unless both the block
/// and the byte of its kind fit.
fn next_block(slab: Chunk, shape: Shape) -> Option<*mut u8> {
    let begin = slab.cut.get().map_addr(|at| align_up(at, shape.align));
    (begin.addr() + shape.bytes < slab.room_end.get().addr()).then_some(begin)
}

/// Iterates over the blocks that were cut from a slab, each with its kind.
fn blocks(slab: Chunk, shapes: &[Shape]) -> impl Iterator<Item = (*mut u8, usize)> + '_ {
    let (mut at, mut kind) = (slab.begin(1), slab.end());
    core::iter::from_fn(move || {
        if kind == slab.room_end.get() {
            return None;
        }
        kind = kind.wrapping_sub(1);
        // SAFETY: the bytes of the kinds are between `room_end` and the end of the slab.
        let of = usize::from(unsafe { kind.read() });
        let block = at.map_addr(|at| align_up(at, shapes[of].align));
        at = block.wrapping_add(shapes[of].bytes);
        Some((block, of))
    })
}

impl BootstrapSlabs {
    pub(super) const fn new() -> Self {
        Self { chunks: Chunks::new(), step: Cell::new(STEP_FIRST) }
    }

    /// Makes an object that never has slabs, for a multipool whose growth rule the caller has
    /// chosen.
    pub(super) const fn none() -> Self {
        Self { chunks: Chunks::new(), step: Cell::new(STEP_MAX + 1) }
    }

    pub(super) fn chunks(&self) -> &Chunks {
        &self.chunks
    }

    /// Cuts several neighbouring blocks, and returns the start of the first and the end of the
    /// last. Returns `None` if the slabs are used up, or the source is exhausted.
    pub(super) fn cut<S: Source>(
        &self,
        source: &S,
        shape: Shape,
        kind: usize,
    ) -> Option<(*mut u8, *mut u8)> {
        loop {
            if let Some(slab) = self.chunks.current() {
                if let Some(begin) = next_block(slab, shape) {
                    return Some(Self::cut_off(slab, begin, shape, kind));
                }
            }
            self.go_on(source, shape.bytes)?;
        }
    }

    /// Cuts several blocks: `batch_bytes` bytes in all, but at most an eighth of the slab, and at
    /// least one block.
    fn cut_off(slab: Chunk, begin: *mut u8, shape: Shape, kind: usize) -> (*mut u8, *mut u8) {
        let room = slab.room_end.get().addr() - begin.addr();
        let wanted = batch_bytes(shape).min(slab.bytes / 8) / shape.bytes;
        let count = wanted.clamp(1, room / (shape.bytes + 1));
        let (end, kinds) =
            (begin.wrapping_add(count * shape.bytes), slab.room_end.get().wrapping_sub(count));
        slab.cut.set(end);
        slab.room_end.set(kinds);
        // SAFETY: nothing between `cut` and the old `room_end` is in use.
        unsafe { kinds.write_bytes(kind as u8, count) };
        (begin, end)
    }

    /// Makes the next slab the current slab. If there is no next slab, requests from the source a
    /// new slab that holds several blocks of `bytes` bytes.
    fn go_on<S: Source>(&self, source: &S, bytes: usize) -> Option<()> {
        if bytes > STEP_MAX / BLOCKS_MIN {
            return None;
        }
        if self.chunks.advance().is_some() {
            return Some(());
        }
        let mut step = self.step.get();
        while step < bytes * BLOCKS_MIN {
            step *= STEP_FACTOR;
        }
        if step > STEP_MAX {
            return None;
        }
        let taken = source.try_take(layout(step, Chunk::ALIGN)?)?;
        self.step.set(step * STEP_FACTOR);
        // SAFETY: the source has just supplied the memory, which is larger than a header.
        rewind(unsafe { self.chunks.add(taken) });
        // Makes the new slab the current slab. While the source supplied the slab, it may have
        // allocated from this multipool and so added other slabs before the new slab.
        while self.chunks.advance().is_some() {}
        Some(())
    }

    /// Returns the kind of the block at `p`, in use or free. Returns `None` if `p` is not the first
    /// byte of a block that was cut from `slab`.
    pub(super) fn kind_of(slab: Chunk, p: *const u8, shapes: &[Shape]) -> Option<usize> {
        blocks(slab, shapes).find(|&(block, _)| block.cast_const() == p).map(|(_, kind)| kind)
    }

    /// Frees all blocks.
    pub(super) fn reset(&self) {
        self.chunks.iter().for_each(rewind);
        self.chunks.rewind();
        self.chunks.advance();
    }

    pub(super) fn release<S: Source>(&self, source: &S) {
        self.chunks.iter().for_each(|slab| slab.set_in_use(0));
        self.give_idle(source);
    }

    /// Counts all blocks that were cut as in use. The pool of each class then subtracts its free
    /// blocks.
    pub(super) fn count_cut(&self, shapes: &[Shape]) {
        self.chunks.iter().for_each(|slab| slab.set_in_use(blocks(slab, shapes).count()));
    }

    /// Returns to the source the slabs without a block in use.
    pub(super) fn give_idle<S: Source>(&self, source: &S) {
        if self.step.get() > STEP_MAX && self.chunks.is_empty() {
            return; // the multipool has no slabs
        }
        self.chunks.give_idle(source, |_| ());
        let last = self.chunks.iter().last();
        self.step.set(last.map_or(STEP_FIRST, |slab| slab.bytes.saturating_mul(STEP_FACTOR)));
    }

    /// Adds the slabs to `s`. Every block that was cut counts as live. The pool of each class then
    /// subtracts its free blocks.
    pub(super) fn add_to(&self, s: &mut Statistics, shapes: &[Shape]) {
        for slab in self.chunks.iter() {
            s.bytes_taken += slab.bytes;
            s.bytes_idle += slab.room_end.get().addr() - slab.cut.get().addr();
            s.chunks += 1;
            for (_, kind) in blocks(slab, shapes) {
                s.blocks_live += 1;
                s.bytes_live += shapes[kind].bytes;
            }
        }
    }
}
