//! Helpers of the tests: a pool core with a fixed address, and a source that counts bytes.

use core::alloc::Layout;
use core::ptr::NonNull;
use mallard::sync::{self, Core, Mode, SlotShape};
use mallard::{Chunk, DefaultHeap, Growth, Source};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicIsize, Ordering::SeqCst};
use std::sync::Arc;

pub type Cached = <sync::ThreadCached as Mode>::Core<Books>;
pub type LockFree = <sync::LockFree as Mode>::Core<Books>;

/// A source that counts the allocated bytes, and fails on demand.
#[derive(Clone, Default)]
pub struct Books(Arc<(AtomicIsize, AtomicIsize)>);

impl Books {
    pub fn bytes(&self) -> isize {
        self.0 .0.load(SeqCst)
    }
    /// Makes the source fail in the call with this number and in all later calls. The first call
    /// has number 1. With 0, no call fails.
    pub fn fail_after(&self, successes: isize) {
        self.0 .1.store(successes, SeqCst);
    }
}

// SAFETY: every call is passed to the heap, which fulfils the contract of `Source`.
unsafe impl Source for Books {
    fn try_take(&self, layout: Layout) -> Option<Chunk> {
        let left = self.0 .1.load(SeqCst);
        if left == 1 {
            return None;
        }
        let chunk = DefaultHeap.try_take(layout)?;
        self.0 .1.store(if left == 0 { 0 } else { left - 1 }, SeqCst);
        self.0 .0.fetch_add(chunk.layout.size() as isize, SeqCst);
        Some(chunk)
    }
    unsafe fn give(&self, chunk: Chunk) {
        self.0 .0.fetch_sub(chunk.layout.size() as isize, SeqCst);
        // SAFETY: the chunk is from the heap.
        unsafe { DefaultHeap.give(chunk) }
    }
}

pub const WORD: SlotShape = shape(16, 8, usize::MAX);

pub const fn shape(stride: usize, align: usize, most: usize) -> SlotShape {
    let chunk = if cfg!(miri) { 4096 } else { 65536 };
    SlotShape { stride, align, chunk, bytes: chunk, most }
}

pub fn steps(native: usize, miri: usize) -> usize {
    if cfg!(miri) {
        miri
    } else {
        native
    }
}

/// A pool core with a fixed address, as in a pool.
pub struct Pool<C: Core<Books>>(pub Box<C>, SlotShape);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Block(pub NonNull<u8>);
// SAFETY: the owner of a `Block` owns the memory of the block.
unsafe impl Send for Block {}

impl<C: Core<Books>> Pool<C> {
    pub fn new(shape: SlotShape, growth: Growth, books: &Books) -> Self {
        Self(Box::new(C::new(shape, growth, books.clone())), shape)
    }
    /// Allocates a block, and writes `mark` into it.
    pub fn make(&self, mark: usize) -> Option<Block> {
        let block = self.0.try_allocate()?;
        assert_eq!(block.addr().get() % self.1.align, 0);
        // SAFETY: the block is large enough, and nothing else uses it.
        unsafe { block.cast::<usize>().write(mark) };
        Some(Block(block))
    }
    pub fn free(&self, block: Block, mark: usize) {
        // SAFETY: the caller owns the block, and `make` wrote to it.
        unsafe {
            assert_eq!(block.0.cast::<usize>().read(), mark, "another owner wrote to the block");
            block.0.cast::<usize>().write(!mark);
            let core = C::of(block.0, &self.1);
            assert!(core::ptr::eq(core, &*self.0));
            core.deallocate(block.0);
        }
    }
    pub fn live(&self) -> usize {
        self.0.statistics().blocks_live
    }
    pub fn blocks(&mut self) -> BTreeSet<Block> {
        let mut all = BTreeSet::new();
        self.0.for_each_live(&mut |block| assert!(all.insert(Block(block))));
        all
    }
}

/// Makes a pool with room for `count` blocks. If `grows` is false, the pool allocates the memory of
/// all blocks when it is made.
pub fn with_room<C: Core<Books>>(
    grows: bool,
    shape: SlotShape,
    count: usize,
    books: &Books,
) -> Pool<C> {
    if grows {
        return Pool::new(shape, Growth::new(), books);
    }
    let shape = SlotShape { most: count, ..shape };
    Pool::new(shape, Growth::none(C::bytes_for(shape, count)), books)
}

pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }
}
