//! Iterators over the objects that are left in a pool.

use crate::base::source::Source;
use crate::hooks::Hooks;
use crate::pool::core_trait::LiveCursor;
use crate::pool::slots::Slots;
use crate::sync::Mode;
use core::iter::FusedIterator;
use core::marker::PhantomData;

/// An iterator over the objects of a pool whose box was leaked, for example by `mem::forget`.
/// [`ObjectPool::iter`](crate::ObjectPool::iter) returns this iterator.
///
/// ```
/// let mut pool = mallard::ObjectPool::new();
/// std::mem::forget(pool.make(7));
/// assert_eq!(pool.iter().copied().collect::<Vec<i32>>(), [7]);
/// ```
pub struct Iter<'p, T, M: Mode, S: Source, H: Hooks<T>> {
    slots: &'p mut Slots<M, S, H>,
    cursor: LiveCursor,
    objects: PhantomData<&'p T>,
}

/// An [`Iter`] with mutable references, from [`ObjectPool::iter_mut`](crate::ObjectPool::iter_mut).
///
/// ```
/// let mut pool = mallard::ObjectPool::new();
/// std::mem::forget(pool.make(7));
/// pool.iter_mut().for_each(|n| *n += 1);
/// assert_eq!(pool.iter().sum::<i32>(), 8);
/// ```
pub struct IterMut<'p, T, M: Mode, S: Source, H: Hooks<T>> {
    slots: &'p mut Slots<M, S, H>,
    cursor: LiveCursor,
    objects: PhantomData<&'p mut T>,
}

impl<'p, T, M: Mode, S: Source, H: Hooks<T>> Iter<'p, T, M, S, H> {
    pub(super) fn new(slots: &'p mut Slots<M, S, H>) -> Self {
        Self { slots, cursor: LiveCursor::START, objects: PhantomData }
    }
}
impl<'p, T, M: Mode, S: Source, H: Hooks<T>> IterMut<'p, T, M, S, H> {
    pub(super) fn new(slots: &'p mut Slots<M, S, H>) -> Self {
        Self { slots, cursor: LiveCursor::START, objects: PhantomData }
    }
}

impl<'p, T, M: Mode, S: Source, H: Hooks<T>> Iterator for Iter<'p, T, M, S, H> {
    type Item = &'p T;
    fn next(&mut self) -> Option<&'p T> {
        let block = self.slots.next_live(&mut self.cursor)?;
        // SAFETY: a slot in use holds an object, and nobody writes the object while the pool is
        // borrowed.
        Some(unsafe { block.cast().as_ref() })
    }
}
impl<'p, T, M: Mode, S: Source, H: Hooks<T>> Iterator for IterMut<'p, T, M, S, H> {
    type Item = &'p mut T;
    fn next(&mut self) -> Option<&'p mut T> {
        let block = self.slots.next_live(&mut self.cursor)?;
        // SAFETY: a slot in use holds an object, and each slot is visited once. Nobody else refers
        // to the object while the pool is borrowed.
        Some(unsafe { block.cast().as_mut() })
    }
}
impl<T, M: Mode, S: Source, H: Hooks<T>> FusedIterator for Iter<'_, T, M, S, H> {}
impl<T, M: Mode, S: Source, H: Hooks<T>> FusedIterator for IterMut<'_, T, M, S, H> {}

// The output does not contain the number of remaining objects, because counting them would need
// another iteration.
impl<T, M: Mode, S: Source, H: Hooks<T>> core::fmt::Debug for Iter<'_, T, M, S, H> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Iter").finish_non_exhaustive()
    }
}
impl<T, M: Mode, S: Source, H: Hooks<T>> core::fmt::Debug for IterMut<'_, T, M, S, H> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("IterMut").finish_non_exhaustive()
    }
}

/// A loop that drops all objects and frees their slots, even if a destructor panics.
pub(super) struct Sweep<'p, T, M: Mode, S: Source, H: Hooks<T>> {
    slots: &'p mut Slots<M, S, H>,
    cursor: LiveCursor,
    objects: PhantomData<T>,
}

impl<'p, T, M: Mode, S: Source, H: Hooks<T>> Sweep<'p, T, M, S, H> {
    /// Drops all objects. The destructor of `Sweep` frees the slots.
    pub(super) fn all(slots: &'p mut Slots<M, S, H>) {
        Self { slots, cursor: LiveCursor::START, objects: PhantomData }.visit();
    }

    fn visit(&mut self) {
        if !core::mem::needs_drop::<T>() && H::SILENT {
            return;
        }
        while let Some(block) = self.slots.next_live(&mut self.cursor) {
            let object = block.cast::<T>();
            let _alive = crate::handles::DropsObject(object);
            // SAFETY: a slot in use holds an object. The slot is visited once, and the object has
            // no box.
            self.slots.upstream().1.released(unsafe { &mut *object.as_ptr() });
        }
    }
}

impl<T, M: Mode, S: Source, H: Hooks<T>> Drop for Sweep<'_, T, M, S, H> {
    /// Drops the objects that are left after a panic. A second panic aborts.
    fn drop(&mut self) {
        self.visit();
        self.slots.reset();
    }
}
