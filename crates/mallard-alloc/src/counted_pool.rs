//! A pool of objects that several handles own together.

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

/// Objects of one type, each owned by as many handles as the program likes, and seen by
/// [`Weak`](crate::handles::Weak) ones: an [`RcPool`] or an [`ArcPool`].
///
/// ```
/// use mallard::{handles::Rc, RcPool};
/// let meshes = RcPool::new();
/// let tree = meshes.make("tree.obj".to_string());
/// let again = Rc::clone(&tree);
/// assert_eq!((Rc::strong_count(&again), &*again), (2, &tree[..].to_string()));
/// ```
///
/// All that [`ObjectPool`] says holds, and each object takes 8 bytes more.
///
/// ```compile_fail
/// let pool: mallard::RcPool<u32> = mallard::RcPool::new();
/// let rc = pool.make(1);
/// std::thread::scope(|s| { s.spawn(move || drop(rc)); }); // an Rc is not Send
/// ```
/// ```compile_fail
/// fn send<T: Send>() {}
/// send::<mallard::handles::Rc<'static, u32, mallard::sync::Mutex>>(); // whatever the mode
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

/// Objects with owners in one thread.
pub type RcPool<T, M = sync::Unshared, S = DefaultHeap> = CountedPool<T, Local, M, S>;

/// Objects with owners in any thread. `M` is a shared mode.
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

// SAFETY: as for an `ObjectPool`; what its slots have beside objects are counts, which nobody
// sees while the pool moves.
unsafe impl<T: Send, C: Counts, M: Mode, S: Source + Send> Send for CountedPool<T, C, M, S> {}
// SAFETY: as for an `ObjectPool`. Handles that count without atomics are not `Send`: each
// object is its own thread's.
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
    /// Makes a pool that grows as `growth` says, without allocating.
    pub const fn with_growth(growth: Growth) -> Self
    where
        M: Growing,
    {
        Self { slots: ObjectPool::with_growth(growth) }
    }
    /// Makes a pool whose first step of growth has room for `count` objects, without allocating. The
    /// first object takes that step.
    pub const fn with_capacity(count: usize) -> Self
    where
        M: Growing,
    {
        Self { slots: ObjectPool::with_capacity(count) }
    }
    /// `with_mode`, with the caller's source.
    pub const fn new_in<S: Source>(source: S) -> CountedPool<T, C, M, S>
    where
        M: Growing,
    {
        CountedPool { slots: ObjectPool::new_in(source) }
    }
    /// `with_growth`, with the caller's source.
    pub const fn with_growth_in<S: Source>(growth: Growth, source: S) -> CountedPool<T, C, M, S>
    where
        M: Growing,
    {
        CountedPool { slots: ObjectPool::with_growth_in(growth, source) }
    }

    /// Makes a pool for exactly `count` objects, without allocating. The first object takes the
    /// memory of all.
    pub const fn fixed(count: usize) -> Self {
        Self { slots: ObjectPool::fixed(count) }
    }
    /// `fixed`, with the caller's source.
    pub const fn fixed_in<S: Source>(count: usize, source: S) -> CountedPool<T, C, M, S> {
        CountedPool { slots: ObjectPool::fixed_in(count, source) }
    }
}

impl<T, C: Counts, M: Mode, S: Source> CountedPool<T, C, M, S> {
    fn handle<'p>(object: Box<'p, Slot<T, C>, M, S>) -> Handle<'p, T, C, M, S> {
        // SAFETY: it is of a pool that is borrowed, and has one handle, the first.
        unsafe { Handle::new(Box::into_raw(object)) }
    }

    /// A new object. Where memory is refused, `alloc::alloc::handle_alloc_error` ends the
    /// program.
    #[inline(always)]
    pub fn make(&self, value: T) -> Handle<'_, T, C, M, S> {
        self.make_with(|| value)
    }
    /// A new object, or the value back.
    #[inline(always)]
    pub fn try_make(&self, value: T) -> Result<Handle<'_, T, C, M, S>, Full<T>> {
        let mut value = Some(value);
        match self.slots.try_make_with(|| Slot::new(value.take().unwrap())) {
            Ok(object) => Ok(Self::handle(object)),
            Err(_) => Err(Full::no_memory(value.unwrap())),
        }
    }
    /// A new object, made in its place. When `f` panics, the slot is free again.
    #[inline(always)]
    pub fn make_with(&self, f: impl FnOnce() -> T) -> Handle<'_, T, C, M, S> {
        match self.slots.try_make_with(|| Slot::new(f())) {
            Ok(object) => Self::handle(object),
            Err(_) => out_of_memory(Layout::new::<Slot<T, C>>()),
        }
    }

    /// All objects whose last handle was forgotten, in address order within a step of growth.
    pub fn iter(&mut self) -> impl Iterator<Item = &T> {
        self.slots.iter().filter_map(Slot::get)
    }
    /// Drops all objects, and keeps the memory. No handle can be left while this borrows the
    /// pool.
    pub fn clear(&mut self) {
        self.slots.clear();
    }

    /// Whether `p` points into memory of this pool. O(steps of growth).
    pub fn owns(&self, p: *const T) -> bool {
        self.classify(p) != Validity::Miss
    }
    /// What `p` is to this pool; an object that is dead but watched is `Valid`.
    pub fn classify(&self, p: *const T) -> Validity {
        self.slots.classify(p.wrapping_byte_sub(Slot::<T, C>::OBJECT).cast())
    }
    /// The source it was made with.
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
