//! Handles that share an object: strong handles, which own the object together, and weak handles.

use super::boxed::{slot_of, Borrows, DropsObject};
use super::counts::{Counts, HandleCounts, Local};
#[cfg(target_has_atomic = "64")]
use super::Atomic;
use crate::base::box_traits::deref_traits;
use crate::base::source::{DefaultHeap, Source};
use crate::hooks::NoHooks;
#[cfg(target_has_atomic = "64")]
use crate::sync::Shared;
use crate::sync::{self, Mode};
use core::marker::PhantomData;
use core::mem::{ManuallyDrop, MaybeUninit};
use core::ops::Deref;
use core::ptr::NonNull;

/// The slot of an object and its reference counts. The slot is in use while handles exist, and
/// contains the object while strong handles exist.
pub struct Slot<T, C: Counts> {
    object: MaybeUninit<T>,
    counts: HandleCounts<C>,
}

impl<T, C: Counts> Slot<T, C> {
    #[inline(always)]
    pub(crate) fn new(object: T) -> Self {
        Self { object: MaybeUninit::new(object), counts: HandleCounts::one() }
    }
    pub(crate) const OBJECT: usize = core::mem::offset_of!(Self, object);

    /// Returns the object, unless it was dropped.
    pub(crate) fn get(&self) -> Option<&T> {
        // SAFETY: the object exists while there are strong handles.
        (self.counts.strong() != 0).then(|| unsafe { self.object.assume_init_ref() })
    }
}

/// Drops the object if a strong handle was leaked. Runs when the pool drops its remaining slots.
impl<T, C: Counts> Drop for Slot<T, C> {
    fn drop(&mut self) {
        if self.counts.strong() != 0 {
            // SAFETY: the object exists while there are strong handles.
            unsafe { self.object.assume_init_drop() }
        }
    }
}

/// A strong handle, which is an [`Rc`] or an [`Arc`]. It is one of several owners of an object of a
/// [`CountedPool`](crate::CountedPool). When the last owner is dropped, the object is dropped too.
/// A handle has the size of a pointer, because the counts are in the slot.
///
/// ```
/// use mallard::{handles::Rc, RcPool};
/// let pool: RcPool<String> = RcPool::new();
/// let name = pool.make("tree".into());
/// let again = name.clone();
/// let watcher = Rc::downgrade(&name);
/// drop((name, again));
/// assert!(watcher.upgrade().is_none());
/// ```
pub struct Handle<'p, T, C: Counts, M: Mode, S: Source> {
    slot: NonNull<Slot<T, C>>,
    pool: PhantomData<Borrows<'p, T, M, S>>,
}

/// A weak handle, which refers to an object without owning it. `upgrade` returns a strong handle
/// while the object exists.
///
/// A weak handle keeps the slot in use, but does not keep the object alive. If many weak handles
/// would outlive their objects, use a slot map instead, because keys do not keep slots in use. A
/// weak handle has the size of a pointer.
///
/// ```
/// use mallard::{handles::Rc, RcPool};
/// let pool: RcPool<u32> = RcPool::new();
/// let owner = pool.make(7);
/// let watcher = Rc::downgrade(&owner);
/// assert_eq!(watcher.upgrade().as_deref(), Some(&7));
/// drop(owner);
/// assert!(watcher.upgrade().is_none());
/// ```
pub struct Weak<'p, T, C: Counts = Local, M: Mode = sync::Unshared, S: Source = DefaultHeap> {
    slot: NonNull<Slot<T, C>>,
    pool: PhantomData<Borrows<'p, T, M, S>>,
}

/// A strong [`Handle`] for one thread, from an [`RcPool`](crate::RcPool).
pub type Rc<'p, T, M = sync::Unshared, S = DefaultHeap> = Handle<'p, T, Local, M, S>;

/// A strong [`Handle`] for several threads, from an [`ArcPool`](crate::ArcPool). Cloning a handle
/// costs one atomic operation, and so does dropping a handle, unless it is the only handle of its
/// object.
#[cfg(target_has_atomic = "64")]
pub type Arc<'p, T, M, S = DefaultHeap> = Handle<'p, T, Atomic, M, S>;

#[cfg(target_has_atomic = "64")]
// SAFETY: handles in several threads share references to one object. The last handle drops the
// object in its own thread, and calls the pool from that thread.
unsafe impl<T: Send + Sync, M: Shared, S: Source + Send + Sync> Send
    for Handle<'_, T, Atomic, M, S>
{
}
#[cfg(target_has_atomic = "64")]
// SAFETY: the reasons are the same as for `Send`, because a handle can be cloned through a
// reference.
unsafe impl<T: Send + Sync, M: Shared, S: Source + Send + Sync> Sync
    for Handle<'_, T, Atomic, M, S>
{
}
#[cfg(target_has_atomic = "64")]
// SAFETY: the reasons are the same as for `Handle`, because `upgrade` returns a `Handle`.
unsafe impl<T: Send + Sync, M: Shared, S: Source + Send + Sync> Send for Weak<'_, T, Atomic, M, S> {}
#[cfg(target_has_atomic = "64")]
// SAFETY: the reasons are the same as for `Handle`, because `upgrade` returns a `Handle`.
unsafe impl<T: Send + Sync, M: Shared, S: Source + Send + Sync> Sync for Weak<'_, T, Atomic, M, S> {}

/// Returns the counts of a slot.
///
/// # Safety
/// A strong or weak handle of `slot` exists during `'a`.
#[inline(always)]
unsafe fn counts<'a, T, C: Counts>(slot: NonNull<Slot<T, C>>) -> &'a HandleCounts<C> {
    // SAFETY: the slot is in use while there are handles.
    unsafe { &(*slot.as_ptr()).counts }
}

/// Frees a slot.
///
/// # Safety
/// `slot` has no handle any more, and its pool has not been destroyed.
#[inline(always)]
unsafe fn free<T, C: Counts, M: Mode, S: Source>(slot: NonNull<Slot<T, C>>) {
    // SAFETY: the slot is still in use, and its pool has not been destroyed.
    drop(unsafe { slot_of::<Slot<T, C>, M, S, NoHooks>(slot) });
}

impl<'p, T, C: Counts, M: Mode, S: Source> Handle<'p, T, C, M, S> {
    /// Makes a handle.
    ///
    /// # Safety
    /// `slot` is from a pool that outlives `'p`, and the caller owns one of its strong counts.
    #[inline(always)]
    pub(crate) unsafe fn new(slot: NonNull<Slot<T, C>>) -> Self {
        Self { slot, pool: PhantomData }
    }

    #[inline(always)]
    fn counts(&self) -> &HandleCounts<C> {
        // SAFETY: `self` is a handle of the slot.
        unsafe { counts(self.slot) }
    }
    #[inline(always)]
    fn object(&self) -> NonNull<T> {
        // SAFETY: the object is a field of the slot, so its address is not 0.
        unsafe { NonNull::new_unchecked(&raw mut (*self.slot.as_ptr()).object).cast() }
    }

    /// Makes a weak handle of the object.
    pub fn downgrade(this: &Self) -> Weak<'p, T, C, M, S> {
        this.counts().add_weak();
        Weak { slot: this.slot, pool: PhantomData }
    }
    /// Returns the number of strong handles. In an [`Arc`] the number may change at any time.
    pub fn strong_count(this: &Self) -> usize {
        this.counts().strong()
    }
    /// Returns the number of weak handles. In an [`Arc`] the number may change at any time.
    pub fn weak_count(this: &Self) -> usize {
        this.counts().weak()
    }
    /// Returns whether both handles refer to the same object.
    pub fn ptr_eq(this: &Self, other: &Self) -> bool {
        this.slot == other.slot
    }
    /// Returns the address of the object, which never changes.
    pub fn as_ptr(this: &Self) -> NonNull<T> {
        this.object()
    }

    /// Returns a mutable reference to the object, if there is no other handle, strong or weak.
    ///
    /// ```
    /// use mallard::{handles::Rc, RcPool};
    /// let pool: RcPool<u32> = RcPool::new();
    /// let mut number = pool.make(7);
    /// *Rc::get_mut(&mut number).unwrap() += 1;
    /// let other = number.clone();
    /// assert!(Rc::get_mut(&mut number).is_none());
    /// # drop(other);
    /// ```
    pub fn get_mut(this: &mut Self) -> Option<&mut T> {
        // SAFETY: there is no other handle, and only a handle can make another handle.
        this.counts().is_sole().then(|| unsafe { this.object().as_mut() })
    }

    /// Returns the object, if `this` is its only strong handle. Otherwise returns `this` in the
    /// error.
    pub fn try_unwrap(this: Self) -> Result<T, Self> {
        if !this.counts().take_only() {
            return Err(this);
        }
        let this = ManuallyDrop::new(this);
        let _weak = Weak { slot: this.slot, pool: this.pool };
        // SAFETY: the object has not been dropped, and has no strong handle any more.
        Ok(unsafe { this.object().read() })
    }

    /// Returns the object, if `this` is its last strong handle. If several threads call this
    /// function at the same time with all handles of an object, exactly one thread gets the object.
    pub fn into_inner(this: Self) -> Option<T> {
        let this = ManuallyDrop::new(this);
        if !this.counts().drop_strong() {
            return None;
        }
        let _weak = Weak { slot: this.slot, pool: this.pool };
        // SAFETY: the object has not been dropped, and has no strong handle any more.
        Some(unsafe { this.object().read() })
    }
}

impl<T, C: Counts, M: Mode, S: Source> Clone for Handle<'_, T, C, M, S> {
    #[inline(always)]
    fn clone(&self) -> Self {
        self.counts().add_strong();
        Self { slot: self.slot, pool: PhantomData }
    }
}

impl<T, C: Counts, M: Mode, S: Source> Drop for Handle<'_, T, C, M, S> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.counts().is_sole() {
            // This is the only handle, so no other thread can see the counts, and they need not
            // change. The pool is found first, because its search needs the object.
            // SAFETY: the slot is in use, and its pool is borrowed.
            let _slot = unsafe { slot_of::<Slot<T, C>, M, S, NoHooks>(self.slot) };
            drop(DropsObject(self.object()));
        } else if self.counts().drop_strong() {
            let _weak: Weak<'_, T, C, M, S> = Weak { slot: self.slot, pool: PhantomData };
            drop(DropsObject(self.object()));
        }
    }
}

impl<T, C: Counts, M: Mode, S: Source> Deref for Handle<'_, T, C, M, S> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the object exists while there are strong handles.
        unsafe { self.object().as_ref() }
    }
}

deref_traits!([T, C: Counts, M: Mode, S: Source] Handle<'_, T, C, M, S>, [] Self);

impl<'p, T, C: Counts, M: Mode, S: Source> Weak<'p, T, C, M, S> {
    /// Returns a strong handle, if the object has not been dropped.
    pub fn upgrade(&self) -> Option<Handle<'p, T, C, M, S>> {
        // SAFETY: `self` is a handle of the slot.
        let lives = unsafe { counts(self.slot) }.lock();
        lives.then(|| Handle { slot: self.slot, pool: PhantomData })
    }
    /// Returns the number of strong handles. In an [`Arc`] the number may change at any time.
    pub fn strong_count(&self) -> usize {
        // SAFETY: `self` is a handle of the slot.
        unsafe { counts(self.slot) }.strong()
    }
    /// Returns whether both handles refer to the same object.
    pub fn ptr_eq(&self, other: &Self) -> bool {
        self.slot == other.slot
    }
}

impl<T, C: Counts, M: Mode, S: Source> Clone for Weak<'_, T, C, M, S> {
    fn clone(&self) -> Self {
        // SAFETY: `self` is a handle of the slot.
        unsafe { counts(self.slot) }.add_weak();
        Self { slot: self.slot, pool: PhantomData }
    }
}

impl<T, C: Counts, M: Mode, S: Source> Drop for Weak<'_, T, C, M, S> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: `self` is a handle of the slot. If it was the last handle, nothing refers to the
        // slot any more.
        unsafe {
            if counts(self.slot).drop_weak() {
                free::<T, C, M, S>(self.slot);
            }
        }
    }
}

impl<T, C: Counts, M: Mode, S: Source> core::fmt::Debug for Weak<'_, T, C, M, S> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("(Weak)")
    }
}
