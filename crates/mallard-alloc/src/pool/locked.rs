//! The core of `sync::Mutex`: a plain one behind a lock.

use crate::pool::chunk::header_of;
use crate::pool::core_trait::{Core, LiveCursor};
use crate::pool::layout::SlotShape;
use crate::pool::plain::PoolState;
use crate::source::{Chunk, Source};
use crate::{Growth, Statistics, Validity};
use core::alloc::Layout;
use core::cell::Cell;
use core::mem::MaybeUninit;
use core::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};

type Block = NonNull<u8>;

/// The lock is not held while the source is called for more: a thread that frees, or finds a
/// free block, never waits for one that grows. Those who grow do it one by one, and look again
/// before, so that one step serves them all.
#[doc(hidden)]
#[repr(C, align(64))]
#[allow(missing_debug_implementations)] // nobody has one by its name
pub struct LockedCore<S> {
    lock: Mutex<()>,
    /// Only under the lock, or with `&mut self`.
    state: PoolState,
    source: S,
    /// For the source; taken before `lock`.
    growing: Mutex<()>,
}

/// Nothing that runs under our locks can leave a state by halves.
fn locked(lock: &Mutex<()>) -> MutexGuard<'_, ()> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A source that is called without the lock that its caller holds.
struct Unlocked<'c, S> {
    core: &'c LockedCore<S>,
    held: Cell<Option<MutexGuard<'c, ()>>>,
    /// Whether the caller has `growing`. If not, it gets memory only if nobody else is growing.
    alone: bool,
}

impl<'c, S> Unlocked<'c, S> {
    fn new(core: &'c LockedCore<S>, alone: bool) -> Self {
        Self { core, held: Cell::new(Some(locked(&core.lock))), alone }
    }
    fn without_lock<R>(&self, f: impl FnOnce(&S) -> R) -> R {
        let _again = Relock(self); // even if the source panics
        self.held.take();
        f(&self.core.source)
    }
}

struct Relock<'u, 'c, S>(&'u Unlocked<'c, S>);

impl<S> Drop for Relock<'_, '_, S> {
    fn drop(&mut self) {
        self.0.held.set(Some(locked(&self.0.core.lock)));
    }
}

// SAFETY: passed on to the source.
unsafe impl<S: Source> Source for Unlocked<'_, S> {
    fn try_take(&self, layout: Layout) -> Option<Chunk> {
        let alone = match self.alone {
            true => None,
            false => match self.core.growing.try_lock() {
                Ok(guard) => Some(guard),
                Err(std::sync::TryLockError::Poisoned(error)) => Some(error.into_inner()),
                Err(std::sync::TryLockError::WouldBlock) => return None,
            },
        };
        let taken = self.without_lock(|source| source.try_take(layout));
        drop(alone);
        taken
    }
    unsafe fn give(&self, chunk: Chunk) {
        // SAFETY: passed on as it was given.
        self.without_lock(|source| unsafe { source.give(chunk) });
    }
}

impl<S: Source> LockedCore<S> {
    fn address(&self) -> *const u8 {
        (&raw const *self).cast()
    }

    #[cold]
    #[inline(never)]
    fn grow(&self) -> Option<Block> {
        let _alone = locked(&self.growing);
        let source = Unlocked::new(self, true);
        match self.state.at_hand() {
            None => self.state.refill(&source, self.address()),
            block => block,
        }
    }

    /// `true` when all of `out` was at hand, or in a chunk that is there.
    fn fill(&self, out: &mut [MaybeUninit<Block>], source: &impl Source) -> bool {
        for i in 0..out.len() {
            let block = match self.state.at_hand() {
                None => self.state.refill(source, self.address()),
                block => block,
            };
            let Some(block) = block else {
                for block in &out[..i] {
                    // SAFETY: written above.
                    self.put(unsafe { block.assume_init() }, source);
                }
                return false;
            };
            out[i].write(block);
        }
        true
    }

    fn put(&self, block: Block, source: &impl Source) {
        if !self.state.take_back(block) {
            self.state.overflow(source, block);
        }
    }
}

// SAFETY: the state is that of `PlainCore`, and under the lock.
unsafe impl<S: Source> Core<S> for LockedCore<S> {
    fn new(shape: SlotShape, growth: Growth, source: S) -> Self {
        Self {
            lock: Mutex::new(()),
            state: PoolState::new(shape, growth),
            source,
            growing: Mutex::new(()),
        }
    }
    fn bytes_for(shape: SlotShape, count: usize) -> usize {
        PoolState::bytes_for(shape, count)
    }

    fn try_allocate(&self) -> Option<Block> {
        {
            let _one_at_a_time = locked(&self.lock);
            if let Some(block) = self.state.at_hand() {
                return Some(block);
            }
            if let Some(block) = self.state.refill(&crate::Null, self.address()) {
                return Some(block);
            }
        }
        self.grow()
    }

    unsafe fn deallocate(&self, block: Block) {
        {
            let _one_at_a_time = locked(&self.lock);
            if self.state.take_back(block) {
                return;
            }
        }
        self.put(block, &Unlocked::new(self, false));
    }

    fn try_allocate_batch(&self, out: &mut [MaybeUninit<Block>]) -> bool {
        {
            let _one_at_a_time = locked(&self.lock);
            if self.fill(out, &crate::Null) {
                return true;
            }
        }
        let _alone = locked(&self.growing);
        self.fill(out, &Unlocked::new(self, true))
    }

    unsafe fn deallocate_batch(&self, blocks: &[Block]) {
        let source = Unlocked::new(self, false);
        blocks.iter().for_each(|&block| self.put(block, &source));
    }

    #[inline(always)]
    unsafe fn of<'a>(block: Block, shape: &SlotShape) -> &'a Self {
        // SAFETY: headers of this pool lead to this core.
        unsafe { &*header_of(block.as_ptr(), shape).owner().cast() }
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
        let _one_at_a_time = locked(&self.lock);
        self.state.statistics()
    }
    fn classify(&self, p: *const u8) -> Validity {
        let _one_at_a_time = locked(&self.lock);
        self.state.classify(p)
    }
    fn source(&self) -> &S {
        &self.source
    }
}
