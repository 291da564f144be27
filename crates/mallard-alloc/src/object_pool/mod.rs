//! A pool that makes and drops objects of one type. Each object has a handle.

mod batch;
mod iter;
#[cfg(feature = "alloc")]
mod owned_box;

use iter::Sweep;
pub use iter::{Iter, IterMut};
#[cfg(feature = "alloc")]
pub use owned_box::OwnedBox;

use crate::base::bits::out_of_memory;
use crate::base::source::{DefaultHeap, Source};
use crate::handles::{Box, DropsObject, FreesSlot};
use crate::hooks::{Hooks, NoHooks};
use crate::pool::layout::SlotShape;
use crate::pool::methods::pool_methods;
use crate::pool::slots::{CoreOf, Sizing, Slots};
use crate::sync::{self, Growing, Mode, Shared};
use crate::{Full, Growth, Validity};
use core::alloc::Layout;
use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;
use core::mem::{forget, ManuallyDrop};
use core::ptr::NonNull;

/// Makes and drops objects of one type, one by one, in constant time. When the pool is dropped, it
/// drops the objects that are left.
///
/// ```
/// use mallard::ObjectPool;
/// #[derive(Debug)]
/// struct Order { id: u32 }
/// let orders = ObjectPool::new();
/// let first = orders.make(Order { id: 7 }); // a Box, one pointer wide, which owns the object
/// assert_eq!(first.id, 7);
/// let few: ObjectPool<Order> = ObjectPool::fixed(1);
/// let only = few.make(Order { id: 8 });
/// let full = few.try_make(Order { id: 9 }).unwrap_err();
/// assert_eq!(full.into_inner().id, 9); // the error returns the value
/// # drop((first, only));
/// ```
///
/// A constructor of a pool is `const` and allocates nothing, so a pool may be a `static` if `M` is
/// a mode for several threads. `new` makes a pool for one thread. `with_mode` and all other
/// constructors make a pool of the mode in the type.
///
/// ```
/// use mallard::{sync, ObjectPool};
/// static LINES: ObjectPool<String, sync::Mutex> = ObjectPool::with_mode();
/// let line = LINES.make("of any thread".into());
/// std::thread::spawn(move || drop(line)).join().unwrap();
/// ```
///
/// **Memory.** A pool requests no memory before the first object. Then it requests memory in steps
/// that double from 64 KiB to 1 MiB, or that a [`Growth`] determines. The pool does not touch the
/// memory of slots that were never used. In addition to the objects, a pool needs 1/8 byte for each
/// object, 72 bytes for each 64 KiB, about 300 bytes for itself, and 8 bytes for each of up to
/// 1,024 slots that were freed last. Only `trim` and `release` return memory to the source.
///
/// **Panics.** If a constructor, a destructor or a hook panics, the slot is free again. The pool
/// holds no lock while it calls them, so they may use the same pool.
///
/// # Threads
/// A pool of `sync::Unshared` is `Send` if `T` is, and is not `Sync`. The boxes of such a pool are
/// neither `Send` nor `Sync`.
///
/// ```compile_fail
/// let pool: mallard::ObjectPool<u32> = mallard::ObjectPool::new();
/// std::thread::scope(|s| { s.spawn(|| pool.make(1)); }); // a pool of `sync::Unshared` is not Sync
/// ```
/// ```compile_fail
/// let pool: mallard::ObjectPool<u32> = mallard::ObjectPool::new();
/// let object = pool.make(1);
/// std::thread::scope(|s| { s.spawn(move || drop(object)); }); // such a box is not Send
/// ```
/// ```compile_fail
/// fn send<T: Send>() {}
/// send::<mallard::ObjectPool<std::rc::Rc<u32>>>(); // a pool is Send only if T is
/// ```
/// ```compile_fail
/// fn sync<T: Sync>() {}
/// sync::<mallard::ObjectPool<std::rc::Rc<u32>, mallard::sync::Mutex>>();
/// ```
/// ```
/// fn send<T: Send>() {}
/// fn sync<T: Sync>() {}
/// use mallard::{handles::Box, sync::Mutex, ObjectPool};
/// send::<ObjectPool<std::cell::Cell<u32>>>();
/// sync::<ObjectPool<std::cell::Cell<u32>, Mutex>>();
/// send::<Box<'static, std::cell::Cell<u32>, Mutex>>();
/// sync::<Box<'static, u32>>(); // a reference to a box can only read the object
/// ```
///
/// # Lifetimes
/// A box borrows its pool. The pool drops objects that were leaked, for example by `mem::forget`,
/// so everything that the objects borrow must outlive the pool:
///
/// ```compile_fail
/// let pool: mallard::ObjectPool<&str> = mallard::ObjectPool::new();
/// {
///     let text = String::from("short");
///     std::mem::forget(pool.make(&text));
/// }
/// drop(pool);
/// ```
/// ```compile_fail
/// // a box of a type with a long lifetime does not become one of a type with a short lifetime
/// fn shorten<'p, 's>(b: mallard::handles::Box<'p, &'static str>, s: &'s str)
///     -> mallard::handles::Box<'p, &'s str> { b }
/// ```
pub struct ObjectPool<T, M = sync::Unshared, S = DefaultHeap, H = NoHooks>
where
    M: Mode,
    S: Source,
    H: Hooks<T>,
{
    /// Between any two calls, each slot in use holds an object.
    slots: Slots<M, S, H>,
    /// Makes the pool invariant in `T`, because `make` writes objects through `&self`, and the
    /// destructor of the pool reads these objects.
    objects: PhantomData<UnsafeCell<T>>,
}

// SAFETY: no box exists while the pool moves, and everything else moves with the pool.
unsafe impl<T: Send, M: Mode, S: Source + Send, H: Hooks<T> + Send> Send
    for ObjectPool<T, M, S, H>
{
}
// SAFETY: any thread may call a pool of a shared mode. One thread may make an object and another
// thread may drop it, and any thread may call the source and the hooks. `&self` returns no
// reference to an object.
unsafe impl<T, M, S, H> Sync for ObjectPool<T, M, S, H>
where
    T: Send,
    M: Shared,
    S: Source + Send + Sync,
    H: Hooks<T> + Send + Sync,
{
}

impl<T> ObjectPool<T> {
    /// Makes a pool for one thread, without allocating.
    ///
    /// ```
    /// let pool = mallard::ObjectPool::new();
    /// assert_eq!(*pool.make(7), 7);
    /// ```
    pub const fn new() -> Self {
        Self::with_mode()
    }
}

impl<T, M: Mode> ObjectPool<T, M> {
    /// Makes a pool in any mode that can grow, without allocating.
    pub const fn with_mode() -> Self
    where
        M: Growing,
    {
        Self::new_in(DefaultHeap)
    }
    /// Makes a pool that grows by the rule `growth`, without allocating.
    ///
    /// ```
    /// use mallard::{Growth, ObjectPool};
    /// let pool: ObjectPool<[u8; 64]> = ObjectPool::with_growth(Growth::new().limit(1 << 20));
    /// while let Ok(object) = pool.try_make([0; 64]) {
    ///     std::mem::forget(object);
    /// }
    /// assert!(pool.statistics().bytes_taken <= 1 << 20);
    /// ```
    pub const fn with_growth(growth: Growth) -> Self
    where
        M: Growing,
    {
        Self::with_growth_in(growth, DefaultHeap)
    }
    /// Makes a pool whose first chunk request has room for `count` objects, without allocating. The
    /// first `make` sends this request to the source.
    pub const fn with_capacity(count: usize) -> Self
    where
        M: Growing,
    {
        Self::with_capacity_in(count, DefaultHeap)
    }
    /// Makes a pool with hooks, without allocating. To add hooks to a pool that another constructor
    /// makes, call [`hooked`](Self::hooked).
    pub const fn with_hooks<H: Hooks<T>>(hooks: H) -> ObjectPool<T, M, DefaultHeap, H>
    where
        M: Growing,
    {
        ObjectPool::new_with(Sizing::Usual, DefaultHeap, hooks)
    }

    /// Makes a pool like `with_mode`, with the caller's source.
    pub const fn new_in<S: Source>(source: S) -> ObjectPool<T, M, S>
    where
        M: Growing,
    {
        ObjectPool::new_with(Sizing::Usual, source, NoHooks)
    }
    /// Makes a pool like `with_growth`, with the caller's source.
    pub const fn with_growth_in<S: Source>(growth: Growth, source: S) -> ObjectPool<T, M, S>
    where
        M: Growing,
    {
        ObjectPool::new_with(Sizing::Growth(growth), source, NoHooks)
    }
    /// Makes a pool like `with_capacity`, with the caller's source.
    pub const fn with_capacity_in<S: Source>(count: usize, source: S) -> ObjectPool<T, M, S>
    where
        M: Growing,
    {
        ObjectPool::new_with(Sizing::First(count), source, NoHooks)
    }

    /// Makes a pool for exactly `count` objects, without allocating. The first `make` requests the
    /// memory of all objects from the source.
    ///
    /// ```
    /// use mallard::{sync, ObjectPool};
    /// let two: ObjectPool<u8, sync::LockFree> = ObjectPool::fixed(2);
    /// let (a, b) = (two.make(1), two.make(2));
    /// assert!(two.try_make(3).is_err());
    /// # drop((a, b));
    /// ```
    pub const fn fixed(count: usize) -> Self {
        Self::fixed_in(count, DefaultHeap)
    }
    /// Makes a pool like `fixed`, with the caller's source.
    ///
    /// The chunk of the objects lies at a multiple of the mode's `CHUNK`, which is 64 KiB by
    /// default. So a [`Buffer`](crate::Buffer) must contain such a multiple, wherever the buffer
    /// begins, or the mode must have small chunks. Whether a buffer is large enough does not depend
    /// on its address. [`Cause::BufferTooSmall`](crate::Cause::BufferTooSmall) contains how many
    /// bytes are missing.
    ///
    /// ```
    /// use core::mem::MaybeUninit;
    /// use mallard::{sync, Buffer, ObjectPool};
    /// let mut bytes = [MaybeUninit::uninit(); 2048];
    /// let pool: ObjectPool<u64, sync::Unshared<512>, _> = ObjectPool::fixed_in(10, Buffer::new(&mut bytes));
    /// assert_eq!(*pool.make(7), 7);
    /// ```
    pub const fn fixed_in<S: Source>(count: usize, source: S) -> ObjectPool<T, M, S> {
        ObjectPool::new_with(Sizing::Fixed(count), source, NoHooks)
    }
}

impl<T, M: Mode, S: Source, H: Hooks<T>> ObjectPool<T, M, S, H> {
    /// The size and alignment of slots and chunks. A handle computes the same shape from the type
    /// of its object, except for a fixed pool's maximum number of slots, which no handle contains.
    const SHAPE: SlotShape = SlotShape::of(Layout::new::<T>(), M::CHUNK);

    const fn new_with(sizing: Sizing, source: S, hooks: H) -> Self {
        let slots = Slots::new(Layout::new::<T>(), sizing, source, hooks);
        Self { slots, objects: PhantomData }
    }

    /// Drops all objects that are left in the pool, and replaces the hooks.
    ///
    /// ```
    /// use mallard::{Hooks, ObjectPool};
    /// struct Print;
    /// impl Hooks<u32> for Print {
    ///     fn released(&self, n: &mut u32) {
    ///         println!("{n} is gone");
    ///     }
    /// }
    /// let pool = ObjectPool::<u32>::fixed(10).hooked(Print);
    /// pool.make(7);
    /// ```
    #[doc(alias("set_hooks", "replace_hooks", "with_hooks"))]
    pub fn hooked<I: Hooks<T>>(mut self, hooks: I) -> ObjectPool<T, M, S, I> {
        self.release();
        let this = ManuallyDrop::new(self);
        // SAFETY: `this` is neither used again nor dropped.
        let slots = unsafe { (&raw const this.slots).read() }.with_hooks(hooks);
        ObjectPool { slots, objects: PhantomData }
    }
    /// Returns the hooks of the pool.
    pub fn hooks(&mut self) -> &H {
        self.slots.upstream().1
    }
    /// Returns the source of the pool.
    pub fn source(&mut self) -> &S {
        self.slots.upstream().0
    }

    /// Makes an object. If there is no memory, calls `alloc::alloc::handle_alloc_error`, which
    /// aborts.
    #[inline(always)]
    pub fn make(&self, value: T) -> Box<'_, T, M, S, H> {
        match self.slots.try_allocate_of(&Self::SHAPE) {
            Some(block) => self.fill(block, || value),
            None => out_of_memory(Layout::new::<T>()),
        }
    }

    /// Makes an object, or returns the value in the error if there is no memory.
    #[inline(always)]
    pub fn try_make(&self, value: T) -> Result<Box<'_, T, M, S, H>, Full<T>> {
        match self.slots.try_allocate_of(&Self::SHAPE) {
            Some(block) => Ok(self.fill(block, || value)),
            None => Err(self.slots.full(value)),
        }
    }

    /// Makes an object in its slot, from the result of `f`, so that a large object is not moved.
    ///
    /// ```
    /// let pool: mallard::ObjectPool<[u8; 1 << 16]> = mallard::ObjectPool::new();
    /// assert_eq!(pool.make_with(|| [1; 1 << 16])[9], 1);
    /// ```
    #[inline(always)]
    pub fn make_with(&self, f: impl FnOnce() -> T) -> Box<'_, T, M, S, H> {
        match self.slots.try_allocate_of(&Self::SHAPE) {
            Some(block) => self.fill(block, f),
            None => out_of_memory(Layout::new::<T>()),
        }
    }

    /// Makes an object like `make_with`. If there is no memory, returns `f` in the error without
    /// calling `f`.
    #[inline(always)]
    pub fn try_make_with<F: FnOnce() -> T>(&self, f: F) -> Result<Box<'_, T, M, S, H>, Full<F>> {
        match self.slots.try_allocate_of(&Self::SHAPE) {
            Some(block) => Ok(self.fill(block, f)),
            None => Err(self.slots.full(f)),
        }
    }

    /// Makes an object whose box keeps the pool alive.
    ///
    /// ```
    /// use mallard::ObjectPool;
    /// use std::sync::Arc;
    /// let pool = Arc::new(ObjectPool::new());
    /// let object = pool.make_owned(7);
    /// drop(pool);
    /// assert_eq!(*object, 7);
    /// ```
    #[cfg(feature = "alloc")]
    pub fn make_owned(self: &alloc::sync::Arc<Self>, value: T) -> OwnedBox<T, M, S, H> {
        OwnedBox::new(self.make(value), self)
    }
    /// Makes an object like `make_owned`. If there is no memory, returns the value in the error.
    #[cfg(feature = "alloc")]
    pub fn try_make_owned(
        self: &alloc::sync::Arc<Self>,
        value: T,
    ) -> Result<OwnedBox<T, M, S, H>, Full<T>> {
        Ok(OwnedBox::new(self.try_make(value)?, self))
    }

    /// Makes an object in a block. If `f` or a hook panics, the block is free again.
    #[inline(always)]
    fn fill(&self, block: NonNull<u8>, f: impl FnOnce() -> T) -> Box<'_, T, M, S, H> {
        let object = block.cast::<T>();
        // SAFETY: `block` was just allocated from these slots.
        let slot = unsafe { FreesSlot::<CoreOf<M, S, H>, _>::new(block, &Self::SHAPE) };
        // SAFETY: the block has the layout of a `T`, and belongs to this call.
        unsafe { object.write(f()) };
        if !H::SILENT {
            let alive = DropsObject(object);
            // SAFETY: the object was just made, and nobody else refers to it.
            Slots::<M, S, H>::hooks_of(slot.core).acquired(unsafe { &mut *object.as_ptr() });
            forget(alive);
        }
        forget(slot);
        // SAFETY: the object is from this pool, and has no other box.
        unsafe { self.adopt(object) }
    }

    /// Makes the box of an object.
    ///
    /// # Safety
    /// `object` is an object of this pool without a box.
    #[inline(always)]
    pub(crate) unsafe fn adopt(&self, object: NonNull<T>) -> Box<'_, T, M, S, H> {
        // SAFETY: the caller guarantees that the object is of this pool and has no box.
        unsafe { Box::from_raw(object) }
    }

    /// Iterates over the objects whose box was leaked, for example by `mem::forget`. Objects whose
    /// memory came from one chunk request are in address order. The exclusive borrow ensures that
    /// no other box is left.
    pub fn iter(&mut self) -> Iter<'_, T, M, S, H> {
        Iter::new(&mut self.slots)
    }
    /// Iterates like `iter`, with mutable references. `T: Unpin` is needed because the leaked box
    /// of an object may have been pinned.
    pub fn iter_mut(&mut self) -> IterMut<'_, T, M, S, H>
    where
        T: Unpin,
    {
        IterMut::new(&mut self.slots)
    }
    /// Calls `f` with each object whose box was leaked, for example by `mem::forget`.
    pub fn for_each(&mut self, f: impl FnMut(&mut T))
    where
        T: Unpin,
    {
        self.iter_mut().for_each(f);
    }

    /// Drops all objects and keeps the memory.
    pub fn clear(&mut self) {
        Sweep::<T, M, S, H>::all(&mut self.slots);
    }

    /// Returns whether `p` points into memory of this pool. O(chunk requests).
    pub fn owns(&self, p: *const T) -> bool {
        self.slots.classify(p.cast()) != Validity::Miss
    }
    /// Returns whether `p` points to an object, to another address in a chunk, or outside all
    /// chunks. O(chunk requests), plus a search of the slots that were freed last.
    pub fn classify(&self, p: *const T) -> Validity {
        self.slots.classify(p.cast())
    }

    pool_methods!();
}

impl<T, M: Mode, S: Source, H: Hooks<T>> Drop for ObjectPool<T, M, S, H> {
    fn drop(&mut self) {
        self.clear();
    }
}

impl<T, M: Growing> Default for ObjectPool<T, M> {
    fn default() -> Self {
        Self::with_mode()
    }
}

impl<T, M: Mode, S: Source, H: Hooks<T>> fmt::Debug for ObjectPool<T, M, S, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectPool").field("len", &self.len()).finish_non_exhaustive()
    }
}
