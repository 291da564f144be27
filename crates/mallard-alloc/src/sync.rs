//! Threading modes: types that determine which threads may call a pool at the same time.
//!
//! ```
//! use mallard::{sync, ObjectPool};
//! let local = ObjectPool::new(); // sync::Unshared: one thread at a time, no locks
//! static SHARED: ObjectPool<u64, sync::Mutex> = ObjectPool::with_mode(); // a lock around each call
//! static FREE: ObjectPool<u64, sync::LockFree> = ObjectPool::fixed(100); // no call waits
//! static CACHED: ObjectPool<u64, sync::ThreadCached> = ObjectPool::with_mode(); // a cache per thread
//! # let _ = (local.make(1), SHARED.make(2), FREE.make(3), CACHED.make(4));
//! ```

#[doc(hidden)]
pub use crate::pool::core_trait::{Core, LiveCursor};
#[doc(hidden)]
pub use crate::pool::layout::SlotShape;

use crate::Source;

mod sealed {
    pub trait Sealed {}
    impl<const CHUNK: usize> Sealed for super::Unshared<CHUNK> {}
    #[cfg(feature = "std")]
    impl<const CHUNK: usize> Sealed for super::Mutex<CHUNK> {}
    #[cfg(target_has_atomic = "64")]
    impl<const CHUNK: usize> Sealed for super::LockFree<CHUNK> {}
    #[cfg(feature = "std")]
    impl<const CHUNK: usize> Sealed for super::ThreadCached<CHUNK> {}
}

/// A threading mode: one of the types of this module. A mode is a type argument of a pool.
///
/// ```
/// use mallard::{sync, ObjectPool};
/// fn count<M: sync::Mode>(pool: &ObjectPool<u64, M>) -> usize {
///     pool.len()
/// }
/// assert_eq!(count(&ObjectPool::<u64, sync::Mutex>::with_mode()), 0);
/// ```
pub trait Mode: sealed::Sealed {
    /// The type that manages the blocks of a pool.
    #[doc(hidden)]
    type Core<S: Source>: Core<S>;
    /// The size of the chunks of small objects, in bytes.
    #[doc(hidden)]
    const CHUNK: usize;
    /// Whether several threads may call a pool of this mode at the same time.
    #[doc(hidden)]
    const IS_SHARED: bool;
}

/// A mode in which any thread may call the pool at any time. Such a pool can be a `static`.
///
/// ```
/// use mallard::{sync, ObjectPool};
/// fn lend<M: sync::Shared>(pool: &ObjectPool<u64, M>) {
///     std::thread::scope(|s| {
///         s.spawn(|| pool.make(1));
///     });
/// }
/// lend(&ObjectPool::<u64, sync::Mutex>::with_mode());
/// ```
///
/// # Safety
/// Any number of threads may call the `&self` functions of the mode's cores at the same time.
pub unsafe trait Shared: Mode {}

/// A mode whose pools can grow: all modes but [`LockFree`].
///
/// ```
/// use mallard::{sync, ObjectPool};
/// fn make<M: sync::Growing>() -> ObjectPool<u64, M> {
///     ObjectPool::with_mode()
/// }
/// assert_eq!(*make::<sync::Mutex>().make(7), 7);
/// ```
#[diagnostic::on_unimplemented(
    message = "a pool of `{Self}` cannot grow",
    label = "this constructor creates a pool that grows",
    note = "create the pool with `fixed` or `fixed_in`, or use `sync::ThreadCached` or `sync::Mutex`"
)]
pub trait Growing: Mode {}

impl<const CHUNK: usize> Growing for Unshared<CHUNK> {}
#[cfg(feature = "std")]
impl<const CHUNK: usize> Growing for Mutex<CHUNK> {}
#[cfg(feature = "std")]
impl<const CHUNK: usize> Growing for ThreadCached<CHUNK> {}

const fn chunk_bytes(chunk: usize) -> usize {
    assert!(
        chunk.is_power_of_two() && chunk >= 256,
        "the chunk size must be a power of two, at least 256"
    );
    chunk
}

/// The mode for one thread at a time. The compiler checks this, because such a pool is not `Sync`.
/// This is the fastest mode.
///
/// `CHUNK` is the size and the alignment of the pool's chunks in bytes, in this mode and in the
/// others. `CHUNK` is a power of two and at least 256 (512 for [`ThreadCached`]). A chunk of large
/// blocks is larger, and a limit may make the last chunk smaller. The default of 64 KiB suits all
/// pools except those in a small [`Buffer`](crate::Buffer), which may contain no address with that
/// alignment:
///
/// ```
/// use core::mem::MaybeUninit;
/// use mallard::{sync, Buffer, ObjectPool};
/// let mut bytes = [MaybeUninit::uninit(); 4096];
/// let pool: ObjectPool<[u32; 4], sync::Unshared<512>, _> = ObjectPool::new_in(Buffer::new(&mut bytes));
/// assert_eq!(pool.make([7; 4])[3], 7);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Unshared<const CHUNK: usize = 65536>;

impl<const CHUNK: usize> Mode for Unshared<CHUNK> {
    type Core<S: Source> = crate::pool::plain::PlainCore<S>;
    const CHUNK: usize = chunk_bytes(CHUNK);
    const IS_SHARED: bool = false;
}

/// The mode in which any thread may call the pool at any time, and each call holds a lock. Needs
/// the feature `std`.
///
/// ```
/// use mallard::{sync, ObjectPool};
/// static NAMES: ObjectPool<String, sync::Mutex> = ObjectPool::with_mode();
/// let name = NAMES.make("mallard".into());
/// std::thread::spawn(move || drop(name)).join().unwrap();
/// ```
///
/// The pool releases the lock before it calls its source, a constructor, a destructor or a hook. So
/// a panic in one of these calls does not poison the lock. The source must not call the pool that
/// it serves. [`Unshared`] describes `CHUNK`.
#[cfg(feature = "std")]
#[derive(Clone, Copy, Debug)]
pub struct Mutex<const CHUNK: usize = 65536>;

#[cfg(feature = "std")]
impl<const CHUNK: usize> Mode for Mutex<CHUNK> {
    type Core<S: Source> = crate::pool::locked::LockedCore<S>;
    const CHUNK: usize = chunk_bytes(CHUNK);
    const IS_SHARED: bool = true;
}
#[cfg(feature = "std")]
// SAFETY: every `&self` function of the core holds the lock.
unsafe impl<const CHUNK: usize> Shared for Mutex<CHUNK> {}

/// The mode in which any thread may call the pool at any time without a lock, for pools with a
/// fixed number of blocks. Needs a processor with 64-bit atomics.
///
/// The first allocation requests the memory of all blocks. Later calls neither lock nor wait nor
/// call the source, so real-time threads and signal handlers may allocate and free. An allocation
/// and its free together cost two atomic read-modify-writes. [`ThreadCached`] is faster, so use
/// this mode only where a thread must not wait.
///
/// ```
/// use mallard::{sync, ObjectPool};
/// static JOBS: ObjectPool<[u64; 4], sync::LockFree> = ObjectPool::fixed(1000);
/// let job = JOBS.make([1; 4]);
/// std::thread::spawn(move || drop(job)).join().unwrap();
/// ```
///
/// Blocks are at least 8 bytes apart. Each block costs 4 bytes more for bookkeeping, and a block of
/// 8 bytes costs 8 bytes more. A pool has less than 2^32 blocks. The source must not call the pool
/// that it serves. [`Unshared`] describes `CHUNK`.
///
/// A pool that grows does not compile with this mode, because growth needs a lock, which [`Mutex`] and
/// [`ThreadCached`] have. The constructors of a growing pool need [`Growing`]:
/// ```compile_fail,E0277
/// let pool = mallard::ObjectPool::<u64, mallard::sync::LockFree>::with_mode();
/// ```
#[cfg(target_has_atomic = "64")]
#[derive(Clone, Copy, Debug)]
pub struct LockFree<const CHUNK: usize = 65536>;

#[cfg(target_has_atomic = "64")]
impl<const CHUNK: usize> Mode for LockFree<CHUNK> {
    type Core<S: Source> = crate::pool::lock_free::LockFreeCore<S>;
    const CHUNK: usize = chunk_bytes(CHUNK);
    const IS_SHARED: bool = true;
}
#[cfg(target_has_atomic = "64")]
// SAFETY: threads share only atomics and data that a lock protects.
unsafe impl<const CHUNK: usize> Shared for LockFree<CHUNK> {}

/// The mode in which any thread may call the pool at any time, and each thread has a cache of free
/// blocks. Needs the feature `std`.
///
/// Most calls need neither a lock nor an atomic read-modify-write, so a call costs the same with
/// many threads as with one.
///
/// ```
/// use mallard::{sync, ObjectPool};
/// static NODES: ObjectPool<[u64; 4], sync::ThreadCached> = ObjectPool::with_mode();
/// std::thread::scope(|s| {
///     for i in 0..4 {
///         s.spawn(move || NODES.make([i; 4]));
///     }
/// });
/// ```
///
/// **Memory.** Each thread that uses the pool owns chunks of `CHUNK` bytes (see [`Unshared`]) and a
/// cache: an array of 8 bytes for each of up to 1,024 free blocks, which together have at most 256
/// KiB. Blocks that another thread frees return to the thread that owns their chunk, many at a
/// time. When a thread exits, another thread reclaims its cache and chunks: the next new thread, or
/// a thread that would otherwise have to grow the pool.
///
/// **Limits.** When the source is exhausted, free blocks may remain in the caches of other threads.
/// Each of these threads returns its cached blocks at its next free. In a pool with a limit, a
/// cache holds at most a 16th of the blocks that the limit allows, or two blocks if that is more.
/// The arrays of the caches do not count toward the limit.
///
/// **End of a thread.** A destructor of a thread-local value may use the pool. If the cache of the
/// exiting thread no longer exists, the call holds a lock.
///
/// The source must not call the pool that it serves. A chunk of 256 bytes has room for its header
/// only, so such a pool does not compile:
/// ```compile_fail,E0080
/// let pool = mallard::ObjectPool::<u64, mallard::sync::ThreadCached<256>>::with_mode();
/// ```
#[cfg(feature = "std")]
#[doc(alias("thread_local", "tcache", "magazine"))]
#[derive(Clone, Copy, Debug)]
pub struct ThreadCached<const CHUNK: usize = 65536>;

#[cfg(feature = "std")]
impl<const CHUNK: usize> Mode for ThreadCached<CHUNK> {
    type Core<S: Source> = crate::pool::cached::CachedCore<S>;
    const CHUNK: usize = {
        assert!(
            CHUNK >= 512,
            "chunks of sync::ThreadCached need at least 512 bytes: the header uses 256"
        );
        chunk_bytes(CHUNK)
    };
    const IS_SHARED: bool = true;
}
#[cfg(feature = "std")]
// SAFETY: a cache belongs to one thread or is used under the lock. Everything else that threads
// share is used under the lock.
unsafe impl<const CHUNK: usize> Shared for ThreadCached<CHUNK> {}
