//! Handles that share an object, and those that only see it.

use super::boxed::{core_of, Borrows, DropsObject, FreesSlot};
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

/// An object and how many handles there are of it. In a pool, a slot is this for as long as
/// there are handles; the object is in it for as long as there are strong ones.
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

    /// The object, while it lives.
    pub(crate) fn get(&self) -> Option<&T> {
        // SAFETY: it lives while there are strong handles.
        (self.counts.strong() != 0).then(|| unsafe { self.object.assume_init_ref() })
    }
}

/// By the pool, when all are dropped.
impl<T, C: Counts> Drop for Slot<T, C> {
    fn drop(&mut self) {
        if self.counts.strong() != 0 {
            // SAFETY: it lives while there are strong handles.
            unsafe { self.object.assume_init_drop() }
        }
    }
}

/// One of the owners of an object of a [`CountedPool`](crate::CountedPool), which dies with the
/// last of them: an [`Rc`] or an [`Arc`]. One pointer wide; the count stands in the slot.
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

/// Sees an object without owning it: `upgrade` gives an owner, or nothing once the object is
/// dead, for ever. Keeps the slot, though not the object: where many stay behind, a slot map and
/// its keys hold less. One pointer wide.
pub struct Weak<'p, T, C: Counts = Local, M: Mode = sync::Unshared, S: Source = DefaultHeap> {
    slot: NonNull<Slot<T, C>>,
    pool: PhantomData<Borrows<'p, T, M, S>>,
}

/// A [`Handle`] for one thread, of an [`RcPool`](crate::RcPool).
pub type Rc<'p, T, M = sync::Unshared, S = DefaultHeap> = Handle<'p, T, Local, M, S>;

/// A [`Handle`] for many threads, of an [`ArcPool`](crate::ArcPool). To clone one takes one
/// atomic operation; to drop one as well, or none where it is the only handle.
#[cfg(target_has_atomic = "64")]
pub type Arc<'p, T, M, S = DefaultHeap> = Handle<'p, T, Atomic, M, S>;

#[cfg(target_has_atomic = "64")]
// SAFETY: all handles together give references to one object, in whatever threads they are;
// the last drops it there and calls the pool.
unsafe impl<T: Send + Sync, M: Shared, S: Source + Send + Sync> Send
    for Handle<'_, T, Atomic, M, S>
{
}
#[cfg(target_has_atomic = "64")]
// SAFETY: the same, since a reference to a handle is as good as one: it may be cloned.
unsafe impl<T: Send + Sync, M: Shared, S: Source + Send + Sync> Sync
    for Handle<'_, T, Atomic, M, S>
{
}
#[cfg(target_has_atomic = "64")]
// SAFETY: as for `Handle`, which it gives.
unsafe impl<T: Send + Sync, M: Shared, S: Source + Send + Sync> Send for Weak<'_, T, Atomic, M, S> {}
#[cfg(target_has_atomic = "64")]
// SAFETY: as for `Handle`, which it gives.
unsafe impl<T: Send + Sync, M: Shared, S: Source + Send + Sync> Sync for Weak<'_, T, Atomic, M, S> {}

/// # Safety
/// There is a handle of `slot`, weak or not, for as long as `'a`.
#[inline(always)]
unsafe fn counts<'a, T, C: Counts>(slot: NonNull<Slot<T, C>>) -> &'a HandleCounts<C> {
    // SAFETY: the slot is in use while there are handles, and its counts are in it.
    unsafe { &(*slot.as_ptr()).counts }
}

/// # Safety
/// There is no handle of `slot` any more; its pool outlives this.
#[inline(always)]
unsafe fn free<T, C: Counts, M: Mode, S: Source>(slot: NonNull<Slot<T, C>>) {
    // SAFETY: the slot is still in use, and its pool is alive.
    let core = unsafe { core_of::<Slot<T, C>, M, S, NoHooks>(slot) };
    drop(FreesSlot { core, block: slot.cast(), source: PhantomData });
}

impl<'p, T, C: Counts, M: Mode, S: Source> Handle<'p, T, C, M, S> {
    /// # Safety
    /// `slot` is of a pool that outlives `'p`, and one strong handle of it is the caller's.
    #[inline(always)]
    pub(crate) unsafe fn new(slot: NonNull<Slot<T, C>>) -> Self {
        Self { slot, pool: PhantomData }
    }

    #[inline(always)]
    fn counts(&self) -> &HandleCounts<C> {
        // SAFETY: this is a handle of it.
        unsafe { counts(self.slot) }
    }
    #[inline(always)]
    fn object(&self) -> NonNull<T> {
        // SAFETY: within the slot.
        unsafe { NonNull::new_unchecked(&raw mut (*self.slot.as_ptr()).object).cast() }
    }

    /// One that sees the object and does not own it.
    pub fn downgrade(this: &Self) -> Weak<'p, T, C, M, S> {
        this.counts().add_weak();
        Weak { slot: this.slot, pool: PhantomData }
    }
    /// Strong handles, this one included; a moment's picture for an [`Arc`].
    pub fn strong_count(this: &Self) -> usize {
        this.counts().strong()
    }
    /// Weak handles; a moment's picture for an [`Arc`].
    pub fn weak_count(this: &Self) -> usize {
        this.counts().weak()
    }
    /// Whether both lead to the same object.
    pub fn ptr_eq(this: &Self, other: &Self) -> bool {
        this.slot == other.slot
    }
    /// The address of the object, which stays as it is.
    pub fn as_ptr(this: &Self) -> NonNull<T> {
        this.object()
    }

    /// The object, if this is the only handle of it, weak ones included.
    pub fn get_mut(this: &mut Self) -> Option<&mut T> {
        // SAFETY: nobody else has a handle of it, or could make one.
        this.counts().is_sole().then(|| unsafe { this.object().as_mut() })
    }

    /// The object itself, if this is the only strong handle of it.
    pub fn try_unwrap(this: Self) -> Result<T, Self> {
        if !this.counts().take_only() {
            return Err(this);
        }
        let this = ManuallyDrop::new(this);
        let _weak = Weak { slot: this.slot, pool: this.pool };
        // SAFETY: there is no strong handle any more, so it is ours.
        Ok(unsafe { this.object().read() })
    }

    /// The object itself, if this is the last strong handle of it. Of several that are given to
    /// this function at the same time, one gets it.
    pub fn into_inner(this: Self) -> Option<T> {
        let this = ManuallyDrop::new(this);
        if !this.counts().drop_strong() {
            return None;
        }
        let _weak = Weak { slot: this.slot, pool: this.pool };
        // SAFETY: there is no strong handle any more, so it is ours.
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
            // Nobody else could see it counted. Found before the object is dropped.
            // SAFETY: the slot is in use, and its pool is borrowed.
            let core = unsafe { core_of::<Slot<T, C>, M, S, NoHooks>(self.slot) };
            let _slot = FreesSlot { core, block: self.slot.cast(), source: PhantomData };
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
        // SAFETY: it lives while there are strong handles.
        unsafe { self.object().as_ref() }
    }
}

deref_traits!([T, C: Counts, M: Mode, S: Source] Handle<'_, T, C, M, S>, [] Self);

impl<'p, T, C: Counts, M: Mode, S: Source> Weak<'p, T, C, M, S> {
    /// An owner, if the object still lives.
    pub fn upgrade(&self) -> Option<Handle<'p, T, C, M, S>> {
        // SAFETY: this is a handle of it.
        let lives = unsafe { counts(self.slot) }.lock();
        lives.then(|| Handle { slot: self.slot, pool: PhantomData })
    }
    /// Owners; a moment's picture where those are [`Arc`]s.
    pub fn strong_count(&self) -> usize {
        // SAFETY: this is a handle of it.
        unsafe { counts(self.slot) }.strong()
    }
    /// Whether both see the same object.
    pub fn ptr_eq(&self, other: &Self) -> bool {
        self.slot == other.slot
    }
}

impl<T, C: Counts, M: Mode, S: Source> Clone for Weak<'_, T, C, M, S> {
    fn clone(&self) -> Self {
        // SAFETY: this is a handle of it.
        unsafe { counts(self.slot) }.add_weak();
        Self { slot: self.slot, pool: PhantomData }
    }
}

impl<T, C: Counts, M: Mode, S: Source> Drop for Weak<'_, T, C, M, S> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: this is a handle of it; where it is the last, there is none any more.
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
