//! The core of `sync::Mutex`, which is a lock around the same state that `sync::Unshared` uses.

use super::chunk_list::core_of;
use super::core_trait::{Core, LiveCursor};
use super::layout::{header_of, SlotShape};
use super::plain::PoolState;
use crate::base::source::{Chunk, Source};
use crate::threads::lock::{Held, Locked};
use crate::{Growth, Statistics, Validity};
use core::alloc::Layout;
use core::cell::Cell;
use core::mem::MaybeUninit;
use core::ptr::NonNull;

type Block = NonNull<u8>;

/// The core of `sync::Mutex`.
///
/// No thread holds `lock` while it calls the source. So a thread that frees a block, or finds a
/// free block, never waits for the source. Threads that need memory from the source call it one
/// after the other. Before such a call, each thread looks for free blocks again, so that one growth
/// step serves all of these threads.
#[doc(hidden)]
#[repr(C, align(64))] // a cache line
#[cfg_attr(target_arch = "aarch64", repr(align(128)))]
#[allow(missing_debug_implementations)] // not a public name
pub struct LockedCore<S> {
    lock: Locked<()>,
    /// The state of the blocks. It is used under the lock, or with `&mut self`.
    state: PoolState,
    source: S,
    /// The lock that a thread holds while it requests a chunk from the source. A thread locks it
    /// before `lock`.
    growing: Locked<()>,
}

/// The source of the pool, for a caller that holds the lock. Each call unlocks the lock while the
/// source works.
struct Unlocked<'c, S> {
    core: &'c LockedCore<S>,
    held: Cell<Option<Held<'c, ()>>>,
    /// Whether the caller holds `growing`. If not, the caller may request memory only if no thread
    /// is growing the pool.
    may_grow: bool,
}

impl<'c, S> Unlocked<'c, S> {
    fn new(core: &'c LockedCore<S>, may_grow: bool) -> Self {
        Self { core, held: Cell::new(Some(core.lock.lock())), may_grow }
    }
    fn without_lock<R>(&self, f: impl FnOnce(&S) -> R) -> R {
        let _relock = Relock(self); // locks again, even if the source panics
        self.held.take();
        f(&self.core.source)
    }
}

struct Relock<'u, 'c, S>(&'u Unlocked<'c, S>);

impl<S> Drop for Relock<'_, '_, S> {
    fn drop(&mut self) {
        self.0.held.set(Some(self.0.core.lock.lock()));
    }
}

// SAFETY: all calls are passed to `source`, which fulfils the guarantees of `Source`.
unsafe impl<S: Source> Source for Unlocked<'_, S> {
    fn try_take(&self, layout: Layout) -> Option<Chunk> {
        let _growing = match self.may_grow {
            true => None,
            false => Some(self.core.growing.try_lock()?),
        };
        self.without_lock(|source| source.try_take(layout))
    }
    unsafe fn give(&self, chunk: Chunk) {
        // SAFETY: the caller guarantees that the chunk may be returned.
        self.without_lock(|source| unsafe { source.give(chunk) });
    }
}

impl<S: Source> LockedCore<S> {
    fn address(&self) -> *const () {
        (&raw const *self).cast()
    }

    #[cold]
    #[inline(never)]
    fn grow(&self) -> Option<Block> {
        let _growing = self.growing.lock();
        let source = Unlocked::new(self, true);
        self.take(&source)
    }

    fn take(&self, source: &impl Source) -> Option<Block> {
        self.state.pop().or_else(|| self.state.refill(source, self.address()))
    }
    fn give(&self, block: Block, source: &impl Source) {
        if !self.state.push(block) {
            self.state.overflow(source, block);
        }
    }

    /// Fills all of `out` with blocks, or returns `false` and allocates none.
    fn fill(&self, out: &mut [MaybeUninit<Block>], source: &impl Source) -> bool {
        for i in 0..out.len() {
            let Some(block) = self.take(source) else {
                for block in &out[..i] {
                    // SAFETY: the outer loop has written all entries below `i`.
                    self.give(unsafe { block.assume_init() }, source);
                }
                return false;
            };
            out[i].write(block);
        }
        true
    }
}

// SAFETY: the state works like the state of `PlainCore`, and every `&self` function holds the lock.
unsafe impl<S: Source> Core<S> for LockedCore<S> {
    fn new(shape: SlotShape, growth: Growth, source: S) -> Self {
        Self {
            lock: Locked::new(()),
            state: PoolState::new(shape, growth),
            source,
            growing: Locked::new(()),
        }
    }
    fn bytes_for(shape: SlotShape, count: usize) -> usize {
        PoolState::bytes_for(shape, count)
    }

    fn try_allocate(&self) -> Option<Block> {
        let locked = self.lock.lock();
        // The first try is without the source, because the pool's chunks may have free blocks.
        if let Some(block) = self.take(&crate::Null) {
            return Some(block);
        }
        drop(locked);
        self.grow()
    }

    unsafe fn deallocate(&self, block: Block) {
        let locked = self.lock.lock();
        if self.state.push(block) {
            return;
        }
        drop(locked);
        self.give(block, &Unlocked::new(self, false));
    }

    fn try_allocate_batch(&self, out: &mut [MaybeUninit<Block>]) -> bool {
        let locked = self.lock.lock();
        if self.fill(out, &crate::Null) {
            return true;
        }
        drop(locked);
        let _growing = self.growing.lock();
        self.fill(out, &Unlocked::new(self, true))
    }

    unsafe fn deallocate_batch(&self, blocks: &[Block]) {
        let source = Unlocked::new(self, false);
        blocks.iter().for_each(|&block| self.give(block, &source));
    }

    #[inline(always)]
    unsafe fn of<'a>(block: Block, shape: &SlotShape) -> &'a Self {
        // SAFETY: the header of a block in use points to its core.
        unsafe { &*core_of(header_of(block, shape)).cast() }
    }

    fn next_live(&mut self, cursor: &mut LiveCursor) -> Option<Block> {
        self.state.next_live(cursor)
    }
    fn reset(&mut self) {
        self.state.reset();
    }
    fn release(&mut self) {
        self.state.release(&self.source);
    }
    fn trim(&mut self, keep: usize) {
        self.state.trim(&self.source, keep);
    }
    fn statistics(&self) -> Statistics {
        let _locked = self.lock.lock();
        self.state.statistics()
    }
    fn classify(&self, p: *const u8) -> Validity {
        let _locked = self.lock.lock();
        self.state.classify(p)
    }
    fn source(&self) -> &S {
        &self.source
    }
}
