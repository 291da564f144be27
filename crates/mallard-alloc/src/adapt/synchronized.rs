//! The adaptor that holds a lock around each call.

use crate::adapt::prelude::*;
use crate::threads::lock::{DefaultLock, Lock};

/// An adaptor that makes an allocator or source usable by any number of threads. Each call holds a
/// lock, even while the wrapped object grows.
///
/// ```
/// use mallard::{BlockAllocator, Multipool, Synchronized};
/// use std::alloc::Layout;
/// static MEMORY: Synchronized<Multipool> = Synchronized::new(Multipool::new());
/// std::thread::spawn(|| MEMORY.allocate(Layout::new::<u64>()).addr());
/// ```
///
/// To hold the lock during several calls of the wrapped allocator, use `with`. The wrapped
/// allocator must not call the adaptor, because the thread would wait for a lock that it holds
/// already. Without contention, an allocation and its free each lock and unlock once.
pub struct Synchronized<A, L: Lock = DefaultLock> {
    lock: L,
    inner: A,
}

// SAFETY: `inner` is accessed through `&self` only under the lock, so only one thread at a time
// uses `inner`. Different threads may use `inner`, because `A` is `Send`.
unsafe impl<A: Send, L: Lock + Sync> Sync for Synchronized<A, L> {}

impl<A> Synchronized<A> {
    /// Wraps `inner` with the default lock.
    pub const fn new(inner: A) -> Self {
        Self::locked_by(inner)
    }
}

impl<A, L: Lock> Synchronized<A, L> {
    /// Wraps `inner` with the lock in the type: `Synchronized::<_, Spin>::locked_by(pool)`.
    pub const fn locked_by(inner: A) -> Self {
        Self { lock: L::NEW, inner }
    }

    /// Calls `f` with the wrapped allocator under the lock.
    ///
    /// ```
    /// use mallard::{Multipool, Synchronized};
    /// let memory = Synchronized::new(Multipool::new());
    /// assert_eq!(memory.with(|pool| pool.statistics()).chunks, 0);
    /// ```
    #[inline]
    pub fn with<R>(&self, f: impl FnOnce(&A) -> R) -> R {
        let _alone = self.lock.lock();
        f(&self.inner)
    }

    /// Returns the wrapped allocator.
    pub fn into_inner(self) -> A {
        self.inner
    }
}

// SAFETY: all blocks are blocks of `inner`.
unsafe impl<A: BlockAllocator, L: Lock> BlockAllocator for Synchronized<A, L> {
    #[inline]
    fn try_allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        self.with(|inner| inner.try_allocate(layout))
    }
    #[inline]
    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller's guarantee is passed on unchanged.
        self.with(|inner| unsafe { inner.deallocate(block, layout) });
    }
    #[inline]
    unsafe fn try_expand(&self, block: NonNull<u8>, from: Layout, to: Layout) -> bool {
        // SAFETY: the caller's guarantee is passed on unchanged.
        self.with(|inner| unsafe { inner.try_expand(block, from, to) })
    }
}

// SAFETY: all chunks are chunks of `inner`.
unsafe impl<A: Source, L: Lock> Source for Synchronized<A, L> {
    fn try_take(&self, layout: Layout) -> Option<Chunk> {
        self.with(|inner| inner.try_take(layout))
    }
    unsafe fn give(&self, chunk: Chunk) {
        // SAFETY: the caller's guarantee is passed on unchanged.
        self.with(|inner| unsafe { inner.give(chunk) });
    }
}

// SAFETY: all blocks are blocks of `inner`.
unsafe impl<A: Owns, L: Lock> Owns for Synchronized<A, L> {
    fn owns(&self, p: *const u8) -> bool {
        self.with(|inner| inner.owns(p))
    }
}

impl<A: Resettable, L: Lock> Resettable for Synchronized<A, L> {
    fn reset(&mut self) {
        self.inner.reset();
    }
    fn release(&mut self) {
        self.inner.release();
    }
    fn trim(&mut self, keep: usize) {
        self.inner.trim(keep);
    }
}

impl<A: Measured, L: Lock> Measured for Synchronized<A, L> {
    fn statistics(&self) -> Statistics {
        self.with(A::statistics)
    }
}

impl<A: core::fmt::Debug, L: Lock> core::fmt::Debug for Synchronized<A, L> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.with(|inner| f.debug_tuple("Synchronized").field(inner).finish())
    }
}

impl<A: Default, L: Lock> Default for Synchronized<A, L> {
    fn default() -> Self {
        Self::locked_by(A::default())
    }
}
