//! The box, which is the only owner of an object of a pool.

use crate::base::box_traits::{box_iterator, box_traits, deref_traits};
use crate::base::source::{DefaultHeap, PinSource, Source};
use crate::hooks::{Hooks, NoHooks};
use crate::pool::core_trait::Core;
use crate::pool::layout::SlotShape;
use crate::pool::slots::{CoreOf, Kept, Slots};
use crate::sync::{self, Mode, Shared};
use core::alloc::Layout;
use core::iter::FusedIterator;
use core::marker::PhantomData;
use core::mem::{forget, ManuallyDrop};
use core::ops::{Deref, DerefMut};
use core::pin::Pin;
use core::ptr::NonNull;

/// The only owner of an object of an [`ObjectPool`](crate::ObjectPool). Dropping the box drops the object
/// and frees its slot.
///
/// ```
/// let pool: mallard::ObjectPool<[u8; 24]> = mallard::ObjectPool::new();
/// let object = pool.make([7; 24]);
/// assert_eq!(size_of_val(&Some(object)), size_of::<usize>());
/// ```
///
/// A box is `Send` if any thread may call the pool. If a box is leaked, the object exists until the
/// pool is dropped.
pub struct Box<'p, T, M = sync::Unshared, S = DefaultHeap, H = NoHooks>
where
    T: ?Sized,
    M: Mode,
    S: Source,
    H: Hooks<T>,
{
    object: NonNull<T>,
    pool: PhantomData<Borrows<'p, T, M, S, H>>,
}

/// The borrow that a handle holds. `*mut T` makes handles invariant in `T`. A handle must not
/// become a handle of a type with a shorter lifetime, because the pool still reads the object after
/// the handle was leaked.
pub(super) type Borrows<'p, T, M, S, H = NoHooks> = (&'p (S, H), *mut T, fn(M));

// SAFETY: the object moves to another thread with the box. Dropping the box calls the pool and the
// hooks from that thread, as `Shared` and the bounds allow.
unsafe impl<T, M, S, H> Send for Box<'_, T, M, S, H>
where
    T: ?Sized + Send,
    M: Shared,
    S: Source + Send + Sync,
    H: Hooks<T> + Send + Sync,
{
}
// SAFETY: a reference to the box gives access to a shared reference to the object, but not to the
// pool.
unsafe impl<T: ?Sized + Sync, M: Mode, S: Source, H: Hooks<T>> Sync for Box<'_, T, M, S, H> {}

/// A guard that frees a slot when the guard is dropped, even if a destructor panics.
pub(crate) struct FreesSlot<'c, C: Core<S>, S: Source> {
    pub(crate) core: &'c C,
    place: (NonNull<u8>, usize),
    source: PhantomData<S>,
}

impl<C: Core<S>, S: Source> FreesSlot<'_, C, S> {
    /// Makes the guard of a block. This function computes the place of the block, and not `drop`,
    /// because the compiler always inlines this function, but inlines `drop` only if it is short.
    ///
    /// # Safety
    /// `block` is in use in a core of this type and shape, and the core outlives the guard.
    #[inline(always)]
    pub(crate) unsafe fn new(block: NonNull<u8>, shape: &SlotShape) -> Self {
        // SAFETY: the caller guarantees that `block` is in use and has this shape.
        let core = unsafe { C::of(block, shape) };
        Self { core, place: C::place_of(block, shape), source: PhantomData }
    }
}

impl<C: Core<S>, S: Source> Drop for FreesSlot<'_, C, S> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: the slot is in use in this core, and nothing uses the slot from now on.
        unsafe { self.core.deallocate_at(self.place) }
    }
}

/// A guard that drops an object when the guard is dropped, even if a hook panics.
pub(crate) struct DropsObject<T: ?Sized>(pub(crate) NonNull<T>);

impl<T: ?Sized> Drop for DropsObject<T> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: nothing uses the object from now on.
        unsafe { self.0.drop_in_place() }
    }
}

/// Returns the guard of an object's slot. The address of the object determines the core, which is
/// the part of the pool that manages the slots.
///
/// # Safety
/// `object` is an object of an `ObjectPool<_, M, S, H>`, and has not been dropped. The pool
/// outlives `'a`.
#[inline(always)]
pub(crate) unsafe fn slot_of<'a, T: ?Sized, M: Mode, S: Source + 'a, H: 'a>(
    object: NonNull<T>,
) -> FreesSlot<'a, CoreOf<M, S, H>, Kept<S, H>> {
    // `for_value` returns the layout of the concrete type, also for a `dyn`. For sized types the
    // layout is a constant.
    // SAFETY: the caller guarantees that the object has not been dropped.
    let layout = Layout::for_value(unsafe { object.as_ref() });
    let shape = SlotShape::of(layout, M::CHUNK);
    // SAFETY: the caller guarantees that the object exists and that its pool outlives `'a`.
    unsafe { FreesSlot::new(object.cast(), &shape) }
}

impl<'p, T: ?Sized, M: Mode, S: Source, H: Hooks<T>> Box<'p, T, M, S, H> {
    /// Turns the box into a pointer, without dropping the object.
    ///
    /// ```
    /// use mallard::{handles::Box, ObjectPool};
    /// let pool: ObjectPool<u64> = ObjectPool::new();
    /// let raw = Box::into_raw(pool.make(7));
    /// // SAFETY: the object is from this pool, and has no other box.
    /// let again: Box<'_, u64> = unsafe { Box::from_raw(raw) };
    /// assert_eq!(*again, 7);
    /// ```
    #[inline(always)]
    pub fn into_raw(this: Self) -> NonNull<T> {
        ManuallyDrop::new(this).object
    }

    /// Makes a box from the result of `into_raw`.
    ///
    /// # Safety
    /// `object` is the result of `into_raw` for a box of the same type, and was not passed to this
    /// function since. The pool of the object outlives `'p`.
    #[inline(always)]
    pub unsafe fn from_raw(object: NonNull<T>) -> Self {
        Self { object, pool: PhantomData }
    }

    /// Returns the address of the object, which never changes.
    #[inline(always)]
    pub fn as_ptr(this: &Self) -> NonNull<T> {
        this.object
    }

    /// Turns the box into a reference. The object exists while the pool is borrowed, and is dropped
    /// with the pool.
    #[inline(always)]
    pub fn leak(this: Self) -> &'p mut T
    where
        T: 'p,
    {
        // SAFETY: the object has not been dropped, and the box was its only owner.
        unsafe { Self::into_raw(this).as_mut() }
    }

    /// Converts the box by an unsizing coercion. The macro [`unsize_box!`](crate::unsize_box) is
    /// the safe form of this function.
    ///
    /// # Safety
    /// `f` does nothing but an unsizing coercion. The pointers of `f` are `*mut`, because the
    /// compiler does not shorten lifetimes behind a `*mut`, but would behind a `NonNull`.
    #[inline(always)]
    pub unsafe fn map_unsized<U: ?Sized>(
        this: Self,
        f: impl FnOnce(*mut T) -> *mut U,
    ) -> Box<'p, U, M, S, H>
    where
        H: Hooks<U>,
    {
        // SAFETY: an unsizing coercion keeps the address, which is not null.
        let object = unsafe { NonNull::new_unchecked(f(Self::into_raw(this).as_ptr())) };
        Box { object, pool: PhantomData }
    }
}

impl<'p, T, M: Mode, S: Source, H: Hooks<T>> Box<'p, T, M, S, H> {
    /// Returns the object and frees its slot.
    #[inline(always)]
    pub fn into_inner(this: Self) -> T {
        let object = Self::into_raw(this);
        // SAFETY: the object has not been dropped, and its pool is borrowed.
        let slot = unsafe { slot_of::<T, M, S, H>(object) };
        let alive = DropsObject(object);
        // SAFETY: the object has not been dropped, and only this box uses it.
        Slots::<M, S, H>::hooks_of(slot.core).released(unsafe { &mut *object.as_ptr() });
        forget(alive);
        // SAFETY: the object has not been dropped, and its slot is not used from now on.
        unsafe { object.read() }
    }
}

impl<'p, T: ?Sized, M: Mode, S: PinSource> Box<'p, T, M, S> {
    /// Pins the object, which then does not move until it is dropped.
    ///
    /// ```compile_fail
    /// use mallard::{handles::Box, sync, Buffer, ObjectPool};
    /// let mut bytes = [std::mem::MaybeUninit::uninit(); 4096];
    /// let pool = ObjectPool::<u8, sync::Unshared<256>>::new_in(Buffer::new(&mut bytes));
    /// Box::into_pin(pool.make(1)); // if box and pool were leaked, the bytes would be free
    /// ```
    #[inline(always)]
    pub fn into_pin(this: Self) -> Pin<Self> {
        // SAFETY: the object keeps its address. Its memory is not reused before the object is
        // dropped, because the pool drops its objects first, and the memory of a `PinSource` stays
        // valid if the pool is leaked. Nothing else gets a `&mut T`, because this pool has no
        // hooks, and `iter_mut` needs `T: Unpin`.
        unsafe { Pin::new_unchecked(this) }
    }
}

impl<T: ?Sized, M: Mode, S: Source, H: Hooks<T>> Drop for Box<'_, T, M, S, H> {
    #[inline(always)]
    fn drop(&mut self) {
        // The pool is found before the drop, because afterwards the layout of the object is
        // unknown.
        // SAFETY: the object has not been dropped, and its pool is borrowed.
        let slot = unsafe { slot_of::<T, M, S, H>(self.object) };
        let _alive = DropsObject(self.object);
        // SAFETY: the object has not been dropped, and only this box uses it.
        Slots::<M, S, H>::hooks_of(slot.core).released(unsafe { &mut *self.object.as_ptr() });
    }
}

impl<T: ?Sized, M: Mode, S: Source, H: Hooks<T>> Deref for Box<'_, T, M, S, H> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the object has not been dropped, and only this box uses it.
        unsafe { self.object.as_ref() }
    }
}

impl<T: ?Sized, M: Mode, S: Source, H: Hooks<T>> DerefMut for Box<'_, T, M, S, H> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the object has not been dropped, and the box is borrowed exclusively.
        unsafe { self.object.as_mut() }
    }
}

deref_traits!([T: ?Sized, M: Mode, S: Source, H: Hooks<T>] Box<'_, T, M, S, H>, [] Self);
box_traits!([T: ?Sized, M: Mode, S: Source, H: Hooks<T>] Box<'_, T, M, S, H>);
box_iterator!([I: Iterator + ?Sized, M: Mode, S: Source, H: Hooks<I>] Box<'_, I, M, S, H>, I::Item);
box_iterator!(back [I: DoubleEndedIterator + ?Sized, M: Mode, S: Source, H: Hooks<I>] Box<'_, I, M, S, H>, I::Item);
impl<I, M: Mode, S: Source, H: Hooks<I>> ExactSizeIterator for Box<'_, I, M, S, H> where
    I: ExactSizeIterator + ?Sized
{
}
impl<I, M: Mode, S: Source, H: Hooks<I>> FusedIterator for Box<'_, I, M, S, H> where
    I: FusedIterator + ?Sized
{
}

/// Pins the object, as [`Box::into_pin`] does.
impl<'p, T: ?Sized, M: Mode, S: PinSource> From<Box<'p, T, M, S>> for Pin<Box<'p, T, M, S>> {
    fn from(object: Box<'p, T, M, S>) -> Self {
        Box::into_pin(object)
    }
}
