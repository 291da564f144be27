//! Who may call a pool at the same time, as a type; and the one place that knows of loom.
//!
//! ```
//! use mallard::{sync, ObjectPool};
//! let local = ObjectPool::new(); // sync::Unshared: one thread, and the fastest
//! static SHARED: ObjectPool<u64, sync::Mutex> = ObjectPool::with_mode(); // a lock around each call
//! static FREE: ObjectPool<u64, sync::LockFree> = ObjectPool::with_mode(); // nobody waits for a free
//! static CACHED: ObjectPool<u64, sync::ThreadCached> = ObjectPool::with_mode(); // the fastest
//! # let _ = (local.make(1), SHARED.make(2), FREE.make(3), CACHED.make(4));
//! ```

use crate::{Growth, Source, Statistics, Validity};
use core::cell::Cell;
use core::mem::MaybeUninit;
use core::ptr::NonNull;

/// What shared code is made of: loom's where a model is checked.
#[allow(unused_imports)] // not every feature uses all
pub(crate) mod atomic {
    #[cfg(not(loom))]
    pub(crate) use core::sync::atomic::*;
    #[cfg(loom)]
    pub(crate) use loom::sync::atomic::*;
}

/// What models are made of.
#[cfg(all(test, loom))]
pub(crate) use loom::{cell::UnsafeCell as Watched, model, sync as watched, thread as threads};

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

/// One of the modes of this module: who may call a pool at the same time, and how that is kept.
pub trait Mode: sealed::Sealed {
    /// What keeps the slots.
    #[doc(hidden)]
    type Core<S: Source>: Core<S>;
    /// Where a pool keeps the address of its core.
    #[doc(hidden)]
    type Home: Home;
    /// Bytes of the chunks of small objects.
    #[doc(hidden)]
    const CHUNK: usize;
}

/// A mode in which any thread may call at any time.
///
/// # Safety
/// Those functions of its cores that take `&self` may be called by any threads at once.
pub unsafe trait Shared: Mode {}

const fn chunk_bytes(chunk: usize) -> usize {
    assert!(chunk.is_power_of_two() && chunk >= 256, "chunks are a power of two, from 256 on");
    chunk
}

/// One thread at a time, which the compiler sees to: such a pool is not `Sync`.
///
/// `CHUNK`, here and in the other modes, is a power of two, at least 256 (for [`ThreadCached`], 512):
/// the alignment of chunks, and their size unless blocks are large; a limit may end a chunk early.
/// 64 KiB is right except for a pool in a small [`Buffer`](crate::Buffer), which has no address with that alignment:
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
    type Home = LocalHome;
    const CHUNK: usize = chunk_bytes(CHUNK);
}

/// Any thread at any time, one after the other: a lock around each call. It is never held
/// while the source is called, nor while anything of the program runs; so no panic poisons it.
///
/// A source must not call the pool that it serves. `CHUNK` is as for [`Unshared`]. Needs the feature
/// `std`.
#[cfg(feature = "std")]
#[derive(Clone, Copy, Debug)]
pub struct Mutex<const CHUNK: usize = 65536>;

#[cfg(feature = "std")]
impl<const CHUNK: usize> Mode for Mutex<CHUNK> {
    type Core<S: Source> = crate::pool::locked::LockedCore<S>;
    type Home = SharedHome;
    const CHUNK: usize = chunk_bytes(CHUNK);
}
#[cfg(feature = "std")]
// SAFETY: each of them takes the lock.
unsafe impl<const CHUNK: usize> Shared for Mutex<CHUNK> {}

/// Any thread at any time: two locked operations a pair, and nobody ever waits for one who frees.
/// One who finds nothing grows under a lock, for which only those wait who find nothing too.
///
/// ```
/// use mallard::{sync, ObjectPool};
/// static JOBS: ObjectPool<[u64; 4], sync::LockFree> = ObjectPool::with_mode();
/// let job = JOBS.make([1; 4]);
/// std::thread::spawn(move || drop(job)).join().unwrap();
/// ```
///
/// A source must not call the pool that it serves.
///
/// A slot is at least 8 bytes apart from the next, and costs 4 bytes and a bit beside it. There
/// are at most 2^32 slots. `CHUNK` is as for [`Unshared`]. Without `std` the lock
/// spins. For processors with 64-bit atomics.
#[cfg(target_has_atomic = "64")]
#[derive(Clone, Copy, Debug)]
pub struct LockFree<const CHUNK: usize = 65536>;

#[cfg(target_has_atomic = "64")]
impl<const CHUNK: usize> Mode for LockFree<CHUNK> {
    type Core<S: Source> = crate::pool::lock_free::LockFreeCore<S>;
    type Home = SharedHome;
    const CHUNK: usize = chunk_bytes(CHUNK);
}
#[cfg(target_has_atomic = "64")]
// SAFETY: what they share are atomics, and what is behind a lock.
unsafe impl<const CHUNK: usize> Shared for LockFree<CHUNK> {}

/// Any thread at any time, each from blocks that it has at hand: no lock and no locked
/// operation in most calls, so as fast with many threads as with one. Needs the feature `std`.
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
/// Each thread that uses the pool owns chunks, of `CHUNK` bytes as for [`Unshared`], and a list of what it
/// freed:
/// 8 bytes for each of up to 1,024 blocks, together at most 256 KiB. What it frees of other
/// threads' chunks goes home, many blocks at a time. When a thread ends, all that it had is for
/// the next new one, and for those who would have to grow.
///
/// Where memory is refused, some may be free in the lists of other threads, which hand it over
/// at their next free; in a pool with a limit, lists have at most a 16th of that, or two. Beside
/// the limit, a thread's list comes from the source.
///
/// A destructor of a thread-local value may use the pool; late ones do so under a lock. A source
/// must not call the pool that it serves.
///
/// A chunk of 256 bytes has room for its header only, so such a pool does not compile:
/// ```compile_fail,E0080
/// let pool = mallard::ObjectPool::<u64, mallard::sync::ThreadCached<256>>::with_mode();
/// ```
#[cfg(feature = "std")]
#[derive(Clone, Copy, Debug)]
pub struct ThreadCached<const CHUNK: usize = 65536>;

#[cfg(feature = "std")]
impl<const CHUNK: usize> Mode for ThreadCached<CHUNK> {
    type Core<S: Source> = crate::pool::cached::CachedCore<S>;
    type Home = SharedHome;
    const CHUNK: usize = {
        assert!(
            CHUNK >= 512,
            "chunks of sync::ThreadCached have 512 bytes or more: the header takes 256"
        );
        chunk_bytes(CHUNK)
    };
}
#[cfg(feature = "std")]
// SAFETY: a front is its thread's alone, or behind a lock, as is all that is shared.
unsafe impl<const CHUNK: usize> Shared for ThreadCached<CHUNK> {}

/// Where a pool keeps the address of its core. Null before there is one.
#[doc(hidden)]
pub trait Home {
    /// Nothing made, nobody at it.
    const EMPTY: Self;
    fn get(&self) -> *mut u8;
    /// For whoever has `begin`, or has all for itself.
    fn set(&self, core: *mut u8);
    /// Whether the caller is the one to make the core. `false`: there is one now, or the same
    /// thread is at it already.
    fn begin(&self) -> bool;
    fn end(&self);
}

/// For one thread at a time.
#[doc(hidden)]
#[derive(Debug)]
pub struct LocalHome {
    core: Cell<*mut u8>,
    busy: Cell<bool>,
}

impl Home for LocalHome {
    #[allow(clippy::declare_interior_mutable_const)] // an initial value, never a place
    const EMPTY: Self = Self { core: Cell::new(core::ptr::null_mut()), busy: Cell::new(false) };

    #[inline(always)]
    fn get(&self) -> *mut u8 {
        self.core.get()
    }
    fn set(&self, core: *mut u8) {
        self.core.set(core);
    }
    fn begin(&self) -> bool {
        self.core.get().is_null() && !self.busy.replace(true)
    }
    fn end(&self) {
        self.busy.set(false);
    }
}

/// For many. Those who come while one makes the core wait for it, once in the pool's life.
#[doc(hidden)]
#[derive(Debug)]
pub struct SharedHome {
    core: core::sync::atomic::AtomicPtr<u8>,
    busy: core::sync::atomic::AtomicBool,
}

impl Home for SharedHome {
    #[allow(clippy::declare_interior_mutable_const)] // an initial value, never a place
    const EMPTY: Self = Self {
        core: core::sync::atomic::AtomicPtr::new(core::ptr::null_mut()),
        busy: core::sync::atomic::AtomicBool::new(false),
    };

    #[inline(always)]
    fn get(&self) -> *mut u8 {
        self.core.load(core::sync::atomic::Ordering::Acquire)
    }
    fn set(&self, core: *mut u8) {
        self.core.store(core, core::sync::atomic::Ordering::Release);
    }
    fn begin(&self) -> bool {
        use core::sync::atomic::Ordering::{Acquire, Relaxed};
        while self.busy.compare_exchange_weak(false, true, Acquire, Relaxed).is_err() {
            #[cfg(feature = "std")]
            std::thread::yield_now();
            #[cfg(not(feature = "std"))]
            core::hint::spin_loop();
        }
        let first = self.get().is_null();
        if !first {
            self.end();
        }
        first
    }
    fn end(&self) {
        self.busy.store(false, core::sync::atomic::Ordering::Release);
    }
}

/// The slots of a pool: what is in a chunk beside its header.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct SlotShape {
    /// From one slot to the next: a multiple of `align`, at least 1.
    pub stride: usize,
    /// Of every slot.
    pub align: usize,
    /// Alignment of a chunk, a power of two. All slots of a chunk begin within its first `chunk`
    /// bytes, so that masking the address of a block finds its chunk.
    pub chunk: usize,
    /// Bytes of a chunk, a multiple of `chunk`: either equal to `chunk`, with at least 15 slots; or
    /// more, with one large slot that begins `chunk / 2` bytes after the start of the chunk.
    pub bytes: usize,
    /// The most slots that there may ever be at a time.
    pub most: usize,
}

impl SlotShape {
    /// Of slots for `layout`, in chunks of `chunk` bytes or, where that is more, the power of
    /// two that holds 15. A slot from 16 KiB on that does not need much alignment has a chunk of
    /// its own: else the first of 16 MiB would take 256.
    pub(crate) const fn of(layout: core::alloc::Layout, chunk: usize) -> Self {
        let (bytes, align) = (layout.size(), layout.align());
        let stride = if bytes == 0 { align } else { crate::bits::align_up(bytes, align) };
        // What precedes the slots, a word for their bits included, padded to their alignment.
        let header = crate::bits::align_up(CHUNK_HEADER_MAX, align);
        let needed = match stride.checked_mul(SLOTS_MIN) {
            Some(slots) => slots.saturating_add(header),
            None => usize::MAX,
        };
        let power = match needed.checked_next_power_of_two() {
            Some(power) => power,
            None => 1 << (usize::BITS - 2), // which no source has
        };
        if power > chunk && stride >= ALONE_MIN && align <= stride / SLOTS_MIN {
            let header = if align > ALONE_HEADER { align } else { ALONE_HEADER };
            let (chunk, bytes) = (2 * header, header.saturating_add(stride));
            let bytes = match bytes.checked_next_multiple_of(chunk) {
                Some(bytes) => bytes,
                Option::None => usize::MAX & !(chunk - 1), // which no source has
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

/// Least number of slots of a chunk that is not for one slot alone.
const SLOTS_MIN: usize = 15;
/// From this size on a slot may have a chunk for itself.
const ALONE_MIN: usize = 16 << 10;
/// Largest header of such a chunk, in every mode.
const ALONE_HEADER: usize = 512;

/// A bound for the header of a chunk of up to 64 slots.
pub(crate) const CHUNK_HEADER_MAX: usize = 128;

/// Where a visit of the slots in use stands; its meaning is the core's.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct LiveCursor {
    pub take: *mut u8,
    pub chunk: *mut u8,
    pub slot: usize,
}

impl LiveCursor {
    /// Before the first.
    pub const START: Self =
        Self { take: core::ptr::null_mut(), chunk: core::ptr::null_mut(), slot: 0 };
}

/// What keeps the slots of one pool. It stays at one address from its first call to its last:
/// chunks lead to it.
///
/// # Safety
/// Blocks are as `BlockAllocator` wants them. Those functions that take `&self` may be called by
/// as many threads at once as the mode says.
#[doc(hidden)]
pub unsafe trait Core<S: Source>: Sized {
    /// Takes nothing from the source.
    fn new(shape: SlotShape, growth: Growth, source: S) -> Self;

    /// Bytes from the source that surely hold `count` slots, and all that is beside them; the
    /// core itself aside.
    fn bytes_for(shape: SlotShape, count: usize) -> usize {
        // The slots of a chunk take more bytes than everything else in the chunk.
        let chunks = count.saturating_mul(shape.stride).saturating_mul(2) / shape.bytes + 2;
        chunks.saturating_mul(shape.bytes)
    }

    /// A slot, or `None`: the limit or the source refuses. Uninitialised.
    fn try_allocate(&self) -> Option<NonNull<u8>>;

    /// # Safety
    /// `block` is this core's, in use, and no longer used.
    unsafe fn deallocate(&self, block: NonNull<u8>);

    /// All of `out`, or none and `false`.
    fn try_allocate_batch(&self, out: &mut [MaybeUninit<NonNull<u8>>]) -> bool {
        for i in 0..out.len() {
            let Some(block) = self.try_allocate() else {
                for block in &out[..i] {
                    // SAFETY: written above, from this core, and nobody else's.
                    unsafe { self.deallocate(block.assume_init()) }
                }
                return false;
            };
            out[i].write(block);
        }
        true
    }

    /// # Safety
    /// As for `deallocate`, each of `blocks`.
    unsafe fn deallocate_batch(&self, blocks: &[NonNull<u8>]) {
        for &block in blocks {
            // SAFETY: passed on as it was given.
            unsafe { self.deallocate(block) }
        }
    }

    /// The core that gave `block`; `shape` is its own, `most` aside.
    ///
    /// # Safety
    /// `block` is in use, and its core outlives `'a`.
    unsafe fn of<'a>(block: NonNull<u8>, shape: &SlotShape) -> &'a Self;

    /// All slots in use, in address order within a chunk. `f` must not panic nor call the pool.
    fn for_each_live(&mut self, f: &mut dyn FnMut(NonNull<u8>));

    /// The next slot in use, in the order of `for_each_live`. Between the first call and the
    /// last nothing is allocated or freed.
    fn next_live(&mut self, cursor: &mut LiveCursor) -> Option<NonNull<u8>> {
        // For cores that know no better: O(slots) each.
        let (last, mut found) = (cursor.chunk, None);
        let mut passed = last.is_null();
        self.for_each_live(&mut |block| {
            if passed && found.is_none() {
                found = Some(block);
            }
            passed |= block.as_ptr() == last;
        });
        cursor.chunk = found?.as_ptr();
        found
    }

    /// All are free; memory is kept.
    fn reset(&mut self);
    /// All are free; memory goes back to the source.
    fn release(&mut self);
    /// Idle chunks go back to the source, but for `keep` bytes.
    fn trim(&mut self, keep: usize);

    /// What is held; exact when no other thread is inside.
    fn statistics(&self) -> Statistics;
    /// What `p` is; exact when no other thread is inside.
    fn classify(&self, p: *const u8) -> Validity;
    /// Where chunks come from.
    fn source(&self) -> &S;
}
