//! The trait of a pool's core: what keeps its blocks in one thread mode.

use super::layout::SlotShape;
use crate::{Growth, Source, Statistics, Validity};
use core::mem::MaybeUninit;
use core::ptr::NonNull;

type Block = NonNull<u8>;

/// Position of a visit of the blocks in use. Each core gives the fields its own meaning.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct LiveCursor {
    pub step: *mut u8,
    pub chunk: *mut u8,
    pub slot: usize,
}

impl LiveCursor {
    /// The position before the first block.
    pub const START: Self =
        Self { step: core::ptr::null_mut(), chunk: core::ptr::null_mut(), slot: 0 };
}

/// The blocks of one pool in one thread mode. Chunks point to their core, so a core stays at one
/// address from its first call to its last.
///
/// # Safety
/// Blocks are as [`BlockAllocator`](crate::BlockAllocator) demands. As many threads as the mode
/// allows may call the `&self` functions at once.
#[doc(hidden)]
pub unsafe trait Core<S: Source>: Sized {
    /// A core without memory.
    fn new(shape: SlotShape, growth: Growth, source: S) -> Self;

    /// Bytes from the source that hold `count` blocks and everything beside them. The core itself
    /// is not included.
    fn bytes_for(shape: SlotShape, count: usize) -> usize;

    /// An uninitialised block. `None`: the limit or the source refuses.
    fn try_allocate(&self) -> Option<Block>;

    /// # Safety
    /// `block` is a block of this core that nobody uses any more.
    unsafe fn deallocate(&self, block: Block);

    /// Fills all of `out` with blocks, or returns `false` and allocates none.
    fn try_allocate_batch(&self, out: &mut [MaybeUninit<Block>]) -> bool {
        for i in 0..out.len() {
            let Some(block) = self.try_allocate() else {
                for block in &out[..i] {
                    // SAFETY: this loop wrote it; it is a block of this core that nobody uses.
                    unsafe { self.deallocate(block.assume_init()) }
                }
                return false;
            };
            out[i].write(block);
        }
        true
    }

    /// # Safety
    /// As for `deallocate`, for each of `blocks`.
    unsafe fn deallocate_batch(&self, blocks: &[Block]) {
        for &block in blocks {
            // SAFETY: the caller promises it.
            unsafe { self.deallocate(block) }
        }
    }

    /// The core that gave `block`. `shape` is that of the core, except for `most`.
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

    /// The next block in use. The caller allocates and frees nothing between the first call and
    /// the last.
    fn next_live(&mut self, cursor: &mut LiveCursor) -> Option<Block>;

    /// Frees all blocks and keeps the memory.
    fn reset(&mut self);
    /// Frees all blocks and gives all memory back to the source.
    fn release(&mut self);
    /// Gives idle chunks back to the source, except `keep` bytes of them.
    fn trim(&mut self, keep: usize);

    /// What the core holds. Exact while no other thread is inside a call.
    fn statistics(&self) -> Statistics;
    /// What `p` is to this core. Exact while no other thread is inside a call.
    fn classify(&self, p: *const u8) -> Validity;
    /// The source of the chunks.
    fn source(&self) -> &S;
}
