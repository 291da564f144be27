//! The box: the only owner of an object of a pool.

use crate::base::box_traits::{box_iterator, box_traits, deref_traits};
use crate::base::source::{DefaultHeap, PinSource, Source};
use crate::hooks::{Hooks, NoHooks};
use crate::pool::core_trait::Core;
use crate::pool::layout::SlotShape;
use crate::pool::slots::{CoreOf, Slots};
use crate::sync::{self, Mode, Shared};
use core::alloc::Layout;
use core::iter::FusedIterator;
use core::marker::PhantomData;
use core::mem::{forget, ManuallyDrop};
use core::ops::{Deref, DerefMut};
use core::pin::Pin;
use core::ptr::NonNull;

/// The only owner of an object of an [`ObjectPool`](crate::ObjectPool): drops it and frees its
/// slot at its end.
///
/// ```
/// let pool: mallard::ObjectPool<[u8; 24]> = mallard::ObjectPool::new();
/// let object = pool.make([7; 24]);
/// assert_eq!(size_of_val(&Some(object)), size_of::<usize>());
/// ```
///
/// Not `Send`, unless any thread may call the pool. `mem::forget` leaves the object alive: it
/// is dropped with the pool.
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

/// What a handle has of its pool. `*mut T`: what is written through a handle that is then
/// forgotten, the pool reads, so one of `T` may not become one of a `T` with a shorter lifetime.
pub(super) type Borrows<'p, T, M, S, H = NoHooks> = (&'p (S, H), *mut T, fn(M));

// SAFETY: the object moves with it, and its end calls the pool and the hooks from there.
unsafe impl<T, M, S, H> Send for Box<'_, T, M, S, H>
where
    T: ?Sized + Send,
    M: Shared,
    S: Source + Send + Sync,
    H: Hooks<T> + Send + Sync,
{
}
// SAFETY: a reference to it gives one to the object, and no way to the pool.
unsafe impl<T: ?Sized + Sync, M: Mode, S: Source, H: Hooks<T>> Sync for Box<'_, T, M, S, H> {}

/// Frees a slot at its end, whatever panics.
pub(crate) struct FreesSlot<'c, C: Core<S>, S: Source> {
    pub(crate) core: &'c C,
    pub(crate) block: NonNull<u8>,
    pub(crate) source: PhantomData<S>,
}

impl<C: Core<S>, S: Source> Drop for FreesSlot<'_, C, S> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: it was made for a slot of this core that is in use, and no longer used.
        unsafe { self.core.deallocate(self.block) }
    }
}

/// Drops an object at its end, whatever panics.
pub(crate) struct DropsObject<T: ?Sized>(pub(crate) NonNull<T>);

impl<T: ?Sized> Drop for DropsObject<T> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: it was made for an object that nobody uses any more.
        unsafe { self.0.drop_in_place() }
    }
}

/// The core of an object's pool.
///
/// # Safety
/// `object` is a live object of an `ObjectPool<_, M, S, H>` that outlives `'a`.
#[inline(always)]
pub(crate) unsafe fn core_of<'a, T: ?Sized, M: Mode, S: Source + 'a, H: 'a>(
    object: NonNull<T>,
) -> &'a CoreOf<M, S, H> {
    // The size and alignment of what it was made as, even of a `dyn`; a constant for most.
    // SAFETY: it is alive.
    let layout = Layout::for_value(unsafe { object.as_ref() });
    let shape = SlotShape::of(layout, M::CHUNK);
    // SAFETY: the caller promises it.
    unsafe { Slots::<M, S, H>::core_of(object.cast(), &shape) }
}

impl<'p, T: ?Sized, M: Mode, S: Source, H: Hooks<T>> Box<'p, T, M, S, H> {
    /// Makes the object the caller's.
    ///
    /// ```
    /// use mallard::{handles::Box, ObjectPool};
    /// let pool: ObjectPool<u64> = ObjectPool::new();
    /// let raw = Box::into_raw(pool.make(7));
    /// // SAFETY: it is of this pool, and this is its only box.
    /// let again: Box<'_, u64> = unsafe { Box::from_raw(raw) };
    /// assert_eq!(*again, 7);
    /// ```
    #[inline(always)]
    pub fn into_raw(this: Self) -> NonNull<T> {
        ManuallyDrop::new(this).object
    }

    /// A box again.
    ///
    /// # Safety
    /// `object` is from `into_raw`, of a box of the same type, was not given to this function
    /// since, and its pool outlives `'p`.
    #[inline(always)]
    pub unsafe fn from_raw(object: NonNull<T>) -> Self {
        Self { object, pool: PhantomData }
    }

    /// The address of the object, which stays as it is.
    #[inline(always)]
    pub fn as_ptr(this: &Self) -> NonNull<T> {
        this.object
    }

    /// The object lives as long as the pool is borrowed, and is dropped with the pool, or by its
    /// `clear`.
    #[inline(always)]
    pub fn leak(this: Self) -> &'p mut T
    where
        T: 'p,
    {
        // SAFETY: alive, and no longer anybody else's.
        unsafe { Self::into_raw(this).as_mut() }
    }

    /// A box of the same object as another type: [`unsize_box`](crate::unsize_box) is the safe
    /// form.
    ///
    /// # Safety
    /// `f` does nothing but an unsizing coercion. Its pointers are `*mut`, which the compiler does
    /// not let become pointers of a shorter lifetime, as it would let a `NonNull`.
    #[inline(always)]
    pub unsafe fn map_unsized<U: ?Sized>(
        this: Self,
        f: impl FnOnce(*mut T) -> *mut U,
    ) -> Box<'p, U, M, S, H>
    where
        H: Hooks<U>,
    {
        // SAFETY: an unsizing coercion leaves the address as it is, which is not null.
        let object = unsafe { NonNull::new_unchecked(f(Self::into_raw(this).as_ptr())) };
        Box { object, pool: PhantomData }
    }
}

impl<'p, T, M: Mode, S: Source, H: Hooks<T>> Box<'p, T, M, S, H> {
    /// The object itself; its slot is free.
    #[inline(always)]
    pub fn into_inner(this: Self) -> T {
        let object = Self::into_raw(this);
        // SAFETY: it was the box's, whose pool is borrowed.
        let core = unsafe { core_of::<T, M, S, H>(object) };
        let _slot = FreesSlot { core, block: object.cast(), source: PhantomData };
        let alive = DropsObject(object);
        // SAFETY: alive, and ours.
        Slots::<M, S, H>::hooks_of(core).released(unsafe { &mut *object.as_ptr() });
        forget(alive);
        // SAFETY: alive, and its slot is not used after this.
        unsafe { object.read() }
    }
}

impl<'p, T: ?Sized, M: Mode, S: PinSource> Box<'p, T, M, S> {
    /// The object does not move until it is dropped.
    ///
    /// ```compile_fail
    /// use mallard::{handles::Box, sync, Buffer, ObjectPool};
    /// let mut bytes = [std::mem::MaybeUninit::uninit(); 4096];
    /// let pool = ObjectPool::<u8, sync::Unshared<256>>::new_in(Buffer::new(&mut bytes));
    /// Box::into_pin(pool.make(1)); // forget it and the pool, and the bytes are free
    /// ```
    #[inline(always)]
    pub fn into_pin(this: Self) -> Pin<Self> {
        // SAFETY: it stays where it is. Its memory is not used again before it was dropped: not
        // by the pool, which drops objects first, nor by others if the pool is forgotten. Nobody
        // gets a `&mut T`: hooks do, but there are none; `iter_mut` is for `T: Unpin`.
        unsafe { Pin::new_unchecked(this) }
    }
}

impl<T: ?Sized, M: Mode, S: Source, H: Hooks<T>> Drop for Box<'_, T, M, S, H> {
    #[inline(always)]
    fn drop(&mut self) {
        // The pool is found before the object is dropped, since nothing else is left after it.
        // SAFETY: it is the box's, whose pool is borrowed.
        let core = unsafe { core_of::<T, M, S, H>(self.object) };
        let _slot = FreesSlot { core, block: self.object.cast(), source: PhantomData };
        let _alive = DropsObject(self.object);
        // SAFETY: alive, and ours.
        Slots::<M, S, H>::hooks_of(core).released(unsafe { &mut *self.object.as_ptr() });
    }
}

impl<T: ?Sized, M: Mode, S: Source, H: Hooks<T>> Deref for Box<'_, T, M, S, H> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: alive, and the box's.
        unsafe { self.object.as_ref() }
    }
}

impl<T: ?Sized, M: Mode, S: Source, H: Hooks<T>> DerefMut for Box<'_, T, M, S, H> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: alive, and the box's, which is borrowed.
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

/// The same as [`Box::into_pin`].
impl<'p, T: ?Sized, M: Mode, S: PinSource> From<Box<'p, T, M, S>> for Pin<Box<'p, T, M, S>> {
    fn from(object: Box<'p, T, M, S>) -> Self {
        Box::into_pin(object)
    }
}
