//! A box that keeps its pool alive.
#![cfg(feature = "alloc")]

use crate::base::box_traits::deref_traits;
use crate::base::source::{DefaultHeap, Source};
use crate::handles::Box;
use crate::hooks::{Hooks, NoHooks};
use crate::object_pool::ObjectPool;
use crate::sync::{self, Mode};
use alloc::sync::Arc;
use core::mem::ManuallyDrop;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;

/// A [`Box`] without a lifetime, which holds an [`Arc`] of its pool, and is two pointers wide.
/// Making such a box costs one atomic operation more than making a `Box`. Dropping such a box also
/// costs one atomic operation more.
///
/// ```
/// use mallard::{sync, ObjectPool};
/// use std::sync::Arc;
/// let pool: Arc<ObjectPool<String, sync::Mutex>> = Arc::new(ObjectPool::with_mode());
/// let name = pool.make_owned("mallard".into());
/// drop(pool);
/// std::thread::spawn(move || assert_eq!(*name, "mallard")).join().unwrap();
/// ```
pub struct OwnedBox<T, M: Mode = sync::Unshared, S: Source = DefaultHeap, H: Hooks<T> = NoHooks> {
    object: NonNull<T>,
    pool: ManuallyDrop<Arc<ObjectPool<T, M, S, H>>>,
}

// SAFETY: the object and a reference to the pool move with the box.
unsafe impl<T: Send, M: Mode, S: Source, H: Hooks<T>> Send for OwnedBox<T, M, S, H> where
    Arc<ObjectPool<T, M, S, H>>: Send
{
}
// SAFETY: a reference to the box gives access only to shared references to the object and to the
// pool.
unsafe impl<T: Sync, M: Mode, S: Source, H: Hooks<T>> Sync for OwnedBox<T, M, S, H> where
    Arc<ObjectPool<T, M, S, H>>: Sync
{
}

impl<T, M: Mode, S: Source, H: Hooks<T>> OwnedBox<T, M, S, H> {
    /// Makes a box that keeps its pool alive. Requires that `object` is from `pool`.
    pub(crate) fn new(object: Box<'_, T, M, S, H>, pool: &Arc<ObjectPool<T, M, S, H>>) -> Self {
        let pool = ManuallyDrop::new(Arc::clone(pool));
        Self { object: Box::into_raw(object), pool }
    }

    /// Returns the pool that the box keeps alive.
    pub fn pool(this: &Self) -> &Arc<ObjectPool<T, M, S, H>> {
        &this.pool
    }

    /// Returns the object and frees its slot.
    pub fn into_inner(this: Self) -> T {
        let mut this = ManuallyDrop::new(this);
        // SAFETY: `this` is not used after this call.
        let pool = unsafe { ManuallyDrop::take(&mut this.pool) };
        // SAFETY: the object is from this pool, and the pool is dropped after the object.
        Box::into_inner(unsafe { pool.adopt(this.object) })
    }
}

impl<T, M: Mode, S: Source, H: Hooks<T>> Drop for OwnedBox<T, M, S, H> {
    fn drop(&mut self) {
        // SAFETY: the field is not used after this call.
        let pool = unsafe { ManuallyDrop::take(&mut self.pool) };
        // SAFETY: the object is from this pool, and the pool is dropped after the object.
        drop(unsafe { pool.adopt(self.object) });
    }
}

impl<T, M: Mode, S: Source, H: Hooks<T>> Deref for OwnedBox<T, M, S, H> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the object has not been dropped, and only this box uses it.
        unsafe { self.object.as_ref() }
    }
}

impl<T, M: Mode, S: Source, H: Hooks<T>> DerefMut for OwnedBox<T, M, S, H> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the object has not been dropped, and the box is borrowed exclusively.
        unsafe { self.object.as_mut() }
    }
}

deref_traits!([T, M: Mode, S: Source, H: Hooks<T>] OwnedBox<T, M, S, H>, [] Self);
