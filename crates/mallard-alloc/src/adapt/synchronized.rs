//! An adaptor with a lock.

use crate::adapt::prelude::*;
use crate::threads::lock::{DefaultLock, Lock};

/// Any allocator, or source, for any number of threads: each call holds a lock, and so does the
/// growth inside it.
///
/// ```
/// use mallard::{BlockAllocator, Multipool, Synchronized};
/// use std::alloc::Layout;
/// static MEMORY: Synchronized<Multipool> = Synchronized::new(Multipool::new());
/// std::thread::spawn(|| MEMORY.allocate(Layout::new::<u64>()).addr());
/// ```
///
/// There is no way around the lock: `with` lends what is wrapped, and holds it. What is wrapped
/// does not call back: it would wait for itself. An uncontended pair of calls costs two pairs of
/// locked operations.
pub struct Synchronized<A, L: Lock = DefaultLock> {
    lock: L,
    inner: A,
}

// SAFETY: `inner` is reached by `&self` under the lock alone, so by one thread at a time; and it
// may be used by one thread after the other.
unsafe impl<A: Send, L: Lock + Sync> Sync for Synchronized<A, L> {}

impl<A> Synchronized<A> {
    /// `inner`, behind the usual lock.
    pub const fn new(inner: A) -> Self {
        Self::locked_by(inner)
    }
}

impl<A, L: Lock> Synchronized<A, L> {
    /// `inner`, behind a lock that the type says: `Synchronized::<_, Spin>::locked_by(pool)`.
    pub const fn locked_by(inner: A) -> Self {
        Self { lock: L::NEW, inner }
    }

    /// For several calls in one go: `memory.with(|pool| pool.statistics())`.
    #[inline]
    pub fn with<R>(&self, f: impl FnOnce(&A) -> R) -> R {
        let _alone = self.lock.lock();
        f(&self.inner)
    }

    /// What was wrapped.
    pub fn into_inner(self) -> A {
        self.inner
    }
}

// SAFETY: blocks are those of the allocator below.
unsafe impl<A: BlockAllocator, L: Lock> BlockAllocator for Synchronized<A, L> {
    #[inline]
    fn try_allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        self.with(|inner| inner.try_allocate(layout))
    }
    #[inline]
    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
        // SAFETY: passed on as it was given.
        self.with(|inner| unsafe { inner.deallocate(block, layout) });
    }
    #[inline]
    unsafe fn try_expand(&self, block: NonNull<u8>, from: Layout, to: Layout) -> bool {
        // SAFETY: passed on as it was given.
        self.with(|inner| unsafe { inner.try_expand(block, from, to) })
    }
}

// SAFETY: chunks are those of the source below.
unsafe impl<A: Source, L: Lock> Source for Synchronized<A, L> {
    fn try_take(&self, layout: Layout) -> Option<Chunk> {
        self.with(|inner| inner.try_take(layout))
    }
    unsafe fn give(&self, chunk: Chunk) {
        // SAFETY: passed on as it was given.
        self.with(|inner| unsafe { inner.give(chunk) });
    }
}

// SAFETY: blocks are those of the allocator inside.
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
