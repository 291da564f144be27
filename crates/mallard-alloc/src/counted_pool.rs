//! Pools of reference-counted objects.

use crate::base::bits::out_of_memory;
use crate::base::source::{DefaultHeap, Source};
#[cfg(target_has_atomic = "64")]
use crate::handles::Atomic;
use crate::handles::{Box, Counts, Handle, Local, Slot};
use crate::object_pool::ObjectPool;
use crate::sync::{self, Growing, Mode};
use crate::{Full, Growth, Validity};
use core::alloc::Layout;
use core::fmt;

/// A pool for reference-counted objects of one type. An [`RcPool`] is for one thread, and an
/// [`ArcPool`] is for several. [`Weak`](crate::handles::Weak) handles refer to an object without
/// owning it.
///
/// ```
/// use mallard::{handles::Rc, RcPool};
/// let meshes = RcPool::new();
/// let tree = meshes.make("tree.obj".to_string());
/// let again = Rc::clone(&tree);
/// assert_eq!((Rc::strong_count(&again), &*again), (2, &tree[..].to_string()));
/// ```
///
/// Each object needs 8 bytes more than in an [`ObjectPool`], for its reference counts. Everything
/// else is as in an [`ObjectPool`].
///
/// ```compile_fail
/// let pool: mallard::RcPool<u32> = mallard::RcPool::new();
/// let rc = pool.make(1);
/// std::thread::scope(|s| { s.spawn(move || drop(rc)); }); // an Rc is not Send
/// ```
/// ```compile_fail
/// fn send<T: Send>() {}
/// send::<mallard::handles::Rc<'static, u32, mallard::sync::Mutex>>(); // an Rc is not Send in any mode
/// ```
/// ```compile_fail
/// fn send<T: Send>() {}
/// send::<mallard::handles::Arc<'static, std::cell::Cell<u32>, mallard::sync::Mutex>>();
/// ```
/// ```compile_fail
/// fn send<T: Send>() {}
/// send::<mallard::handles::Arc<'static, u32, mallard::sync::Unshared>>();
/// ```
/// ```
/// fn send_and_sync<T: Send + Sync>() {}
/// send_and_sync::<mallard::handles::Arc<'static, u32, mallard::sync::Mutex>>();
/// send_and_sync::<mallard::ArcPool<u32, mallard::sync::Mutex>>();
/// ```
pub struct CountedPool<T, C: Counts, M: Mode = sync::Unshared, S: Source = DefaultHeap> {
    slots: ObjectPool<Slot<T, C>, M, S>,
}

/// A pool of reference-counted objects whose handles stay in one thread.
///
/// ```
/// use mallard::{handles::Rc, RcPool};
/// let names = RcPool::new();
/// let name = names.make(String::from("mallard"));
/// let weak = Rc::downgrade(&name);
/// drop(name);
/// assert!(weak.upgrade().is_none());
/// ```
pub type RcPool<T, M = sync::Unshared, S = DefaultHeap> = CountedPool<T, Local, M, S>;

/// A pool of reference-counted objects whose handles may be sent to other threads. `M` is a mode
/// for several threads, such as `sync::Mutex`.
///
/// ```
/// use mallard::{handles::Arc, sync, ArcPool};
/// static MESHES: ArcPool<String, sync::Mutex> = ArcPool::new();
/// let tree = MESHES.make("tree.obj".into());
/// let again = Arc::clone(&tree);
/// std::thread::spawn(move || assert_eq!(*again, "tree.obj")).join().unwrap();
/// ```
#[cfg(target_has_atomic = "64")]
pub type ArcPool<T, M, S = DefaultHeap> = CountedPool<T, Atomic, M, S>;

// SAFETY: the reasons are the same as for `ObjectPool`. The slots also contain reference counts,
// which nobody uses while the pool moves.
unsafe impl<T: Send, C: Counts, M: Mode, S: Source + Send> Send for CountedPool<T, C, M, S> {}
// SAFETY: the reasons are the same as for `ObjectPool`. Handles that count without atomics are not
// `Send`, so all handles of an object are in one thread.
unsafe impl<T, C: Counts, M: sync::Shared, S: Source + Send + Sync> Sync for CountedPool<T, C, M, S> where
    T: Send
{
}

impl<T> RcPool<T> {
    /// Makes a pool for one thread, without allocating.
    pub const fn new() -> Self {
        Self::with_mode()
    }
}

#[cfg(target_has_atomic = "64")]
impl<T, M: sync::Shared + Growing> ArcPool<T, M> {
    /// Makes a pool for several threads, without allocating.
    pub const fn new() -> Self {
        Self::with_mode()
    }
}

impl<T, C: Counts, M: Mode> CountedPool<T, C, M> {
    /// Makes a pool in any mode that can grow, without allocating.
    pub const fn with_mode() -> Self
    where
        M: Growing,
    {
        Self { slots: ObjectPool::with_mode() }
    }
    /// Makes a pool that grows by the rule `growth`, without allocating.
    pub const fn with_growth(growth: Growth) -> Self
    where
        M: Growing,
    {
        Self { slots: ObjectPool::with_growth(growth) }
    }
    /// Makes a pool whose first chunk request has room for `count` objects, without allocating. The
    /// first `make` sends this request to the source.
    pub const fn with_capacity(count: usize) -> Self
    where
        M: Growing,
    {
        Self { slots: ObjectPool::with_capacity(count) }
    }
    /// Makes a pool like `with_mode`, with the caller's source.
    pub const fn new_in<S: Source>(source: S) -> CountedPool<T, C, M, S>
    where
        M: Growing,
    {
        CountedPool { slots: ObjectPool::new_in(source) }
    }
    /// Makes a pool like `with_growth`, with the caller's source.
    pub const fn with_growth_in<S: Source>(growth: Growth, source: S) -> CountedPool<T, C, M, S>
    where
        M: Growing,
    {
        CountedPool { slots: ObjectPool::with_growth_in(growth, source) }
    }

    /// Makes a pool for exactly `count` objects, without allocating. The first `make` requests the
    /// memory of all objects from the source.
    pub const fn fixed(count: usize) -> Self {
        Self { slots: ObjectPool::fixed(count) }
    }
    /// Makes a pool like `fixed`, with the caller's source. For a [`Buffer`](crate::Buffer), see
    /// [`ObjectPool::fixed_in`].
    pub const fn fixed_in<S: Source>(count: usize, source: S) -> CountedPool<T, C, M, S> {
        CountedPool { slots: ObjectPool::fixed_in(count, source) }
    }
}

impl<T, C: Counts, M: Mode, S: Source> CountedPool<T, C, M, S> {
    fn handle<'p>(object: Box<'p, Slot<T, C>, M, S>) -> Handle<'p, T, C, M, S> {
        // SAFETY: the pool is borrowed, and the object has no other handle.
        unsafe { Handle::new(Box::into_raw(object)) }
    }

    /// Makes an object. If there is no memory, calls `alloc::alloc::handle_alloc_error`, which
    /// aborts.
    #[inline(always)]
    pub fn make(&self, value: T) -> Handle<'_, T, C, M, S> {
        self.make_with(|| value)
    }
    /// Makes an object, or returns the value in the error if there is no memory.
    #[inline(always)]
    pub fn try_make(&self, value: T) -> Result<Handle<'_, T, C, M, S>, Full<T>> {
        let mut value = Some(value);
        match self.slots.try_make_with(|| Slot::new(value.take().unwrap())) {
            Ok(object) => Ok(Self::handle(object)),
            Err(full) => Err(Full::because(full.cause(), value.unwrap())),
        }
    }
    /// Makes an object from the result of `f`, in its slot. If `f` panics, the slot is free again.
    #[inline(always)]
    pub fn make_with(&self, f: impl FnOnce() -> T) -> Handle<'_, T, C, M, S> {
        match self.slots.try_make_with(|| Slot::new(f())) {
            Ok(object) => Self::handle(object),
            Err(_) => out_of_memory(Layout::new::<Slot<T, C>>()),
        }
    }

    /// Iterates over the objects that are still alive because a handle was leaked (`mem::forget`).
    /// Objects whose memory came from one chunk request are in address order.
    pub fn iter(&mut self) -> impl Iterator<Item = &T> {
        self.slots.iter().filter_map(Slot::get)
    }
    /// Drops all objects and keeps the memory. The exclusive borrow ensures that no handle exists.
    pub fn clear(&mut self) {
        self.slots.clear();
    }

    /// Returns whether `p` points into memory of this pool. O(chunk requests).
    pub fn owns(&self, p: *const T) -> bool {
        self.classify(p) != Validity::Miss
    }
    /// Returns whether `p` points to an object, to another address in a chunk, or outside all
    /// chunks. An object to which only `Weak` handles refer is `Valid`.
    pub fn classify(&self, p: *const T) -> Validity {
        self.slots.classify(p.wrapping_byte_sub(Slot::<T, C>::OBJECT).cast())
    }
    /// Returns the source of the pool.
    pub fn source(&mut self) -> &S {
        self.slots.source()
    }

    crate::pool::methods::pool_methods!();
}

impl<T, C: Counts, M: Growing> Default for CountedPool<T, C, M> {
    fn default() -> Self {
        Self::with_mode()
    }
}

impl<T, C: Counts, M: Mode, S: Source> fmt::Debug for CountedPool<T, C, M, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CountedPool").field("len", &self.len()).finish_non_exhaustive()
    }
}
