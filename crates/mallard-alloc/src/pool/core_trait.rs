//! The trait `Core`, which manages the blocks of a pool. Each threading mode has a separate core.

use super::layout::SlotShape;
use crate::{Growth, Source, Statistics, Validity};
use core::mem::MaybeUninit;
use core::ptr::NonNull;

type Block = NonNull<u8>;

/// A position among the blocks in use, for a loop over these blocks. Each core uses the fields in a
/// different way.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct LiveCursor {
    pub step: *mut u8,
    pub chunk: *mut u8,
    pub slot: usize,
}

impl LiveCursor {
    /// The initial position, before the first block.
    pub const START: Self =
        Self { step: core::ptr::null_mut(), chunk: core::ptr::null_mut(), slot: 0 };
}

/// Manages the blocks of one pool in one threading mode. Chunks point to their core, so a core must
/// not move after the first call of a function.
///
/// # Safety
/// The blocks fulfil the guarantees of [`BlockAllocator`](crate::BlockAllocator). As many threads
/// as the mode allows may call the `&self` functions simultaneously.
#[doc(hidden)]
pub unsafe trait Core<S: Source>: Sized {
    /// Makes a core that has no memory for blocks yet.
    fn new(shape: SlotShape, growth: Growth, source: S) -> Self;

    /// Returns the bytes that `count` blocks and their headers need from the source. The size of
    /// the core itself is not included.
    fn bytes_for(shape: SlotShape, count: usize) -> usize;

    /// Returns the number of additional bytes that the core requests from the source before its
    /// first block, including padding. `limit` is the limit of the growth.
    fn bytes_aside(_shape: SlotShape, _limit: usize) -> usize {
        0
    }

    /// Allocates an uninitialised block. Returns `None` if the limit is reached, or the source is
    /// exhausted.
    fn try_allocate(&self) -> Option<Block>;

    /// # Safety
    /// `block` is a block of this core that nobody uses any more.
    unsafe fn deallocate(&self, block: Block);

    /// Allocates like `try_allocate`, for a caller that knows the shape of the core as a constant.
    #[inline(always)]
    fn try_allocate_of(&self, _shape: &SlotShape) -> Option<Block> {
        self.try_allocate()
    }

    /// Computes the place of a block, for `deallocate_at`. A place is an address and a number,
    /// whose meaning depends on the core. `shape` is the shape of the core.
    #[inline(always)]
    fn place_of(block: Block, _shape: &SlotShape) -> (NonNull<u8>, usize) {
        (block, 0)
    }

    /// Frees like `deallocate`, for a caller that knows the shape of the core as a constant.
    ///
    /// # Safety
    /// `place` is the result of `place_of` for a block that may be passed to `deallocate`.
    #[inline(always)]
    unsafe fn deallocate_at(&self, place: (NonNull<u8>, usize)) {
        // SAFETY: the caller guarantees that the block may be freed.
        unsafe { self.deallocate(place.0) }
    }

    /// Fills all of `out` with blocks, or returns `false` and allocates none.
    fn try_allocate_batch(&self, out: &mut [MaybeUninit<Block>]) -> bool {
        for i in 0..out.len() {
            let Some(block) = self.try_allocate() else {
                for block in &out[..i] {
                    // SAFETY: the outer loop has written all entries below `i`. The block is from
                    // this core, and nobody uses the block.
                    unsafe { self.deallocate(block.assume_init()) }
                }
                return false;
            };
            out[i].write(block);
        }
        true
    }

    /// # Safety
    /// Each of `blocks` meets the conditions of `deallocate`.
    unsafe fn deallocate_batch(&self, blocks: &[Block]) {
        for &block in blocks {
            // SAFETY: the caller guarantees that `block` may be freed.
            unsafe { self.deallocate(block) }
        }
    }

    /// Returns the core that allocated `block`. `shape` is the shape of the core, except that the
    /// field `most` may differ.
    ///
    /// # Safety
    /// `block` is in use, and its core outlives `'a`.
    unsafe fn of<'a>(block: Block, shape: &SlotShape) -> &'a Self;

    /// Calls `f` with each block in use, in address order within a chunk. `f` must not panic nor
    /// call the pool.
    fn for_each_live(&mut self, f: &mut dyn FnMut(Block)) {
        let mut cursor = LiveCursor::START;
        while let Some(block) = self.next_live(&mut cursor) {
            f(block);
        }
    }

    /// Returns the next block in use. Requires that nothing is allocated or freed between the first
    /// call with a cursor and the last.
    fn next_live(&mut self, cursor: &mut LiveCursor) -> Option<Block>;

    /// Frees all blocks and keeps the memory.
    fn reset(&mut self);
    /// Frees all blocks, and returns all memory to the source.
    fn release(&mut self);
    /// Returns idle chunks to the source, but keeps `keep` bytes of them.
    fn trim(&mut self, keep: usize);

    /// Computes the statistics of the core. They are exact while no other thread is inside a call.
    fn statistics(&self) -> Statistics;
    /// Returns whether `p` is a block in use, another address in a chunk, or outside all chunks.
    /// The result is exact while no other thread is inside a call.
    fn classify(&self, p: *const u8) -> Validity;
    /// Returns the source of the chunks.
    fn source(&self) -> &S;
}
