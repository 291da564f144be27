//! The iterator over all values of a typed arena.

use super::TypedArena;
use crate::arena::blocks::Filled;
use crate::Source;
use core::iter::FusedIterator;
use core::marker::PhantomData;
use core::ptr::NonNull;
use core::slice;

/// Iterator over all values of a [`TypedArena`], in the order in which they were made.
///
/// ```
/// let mut arena: mallard::TypedArena<i32> = (1..4).collect();
/// arena.iter_mut().for_each(|n| *n *= 2);
/// assert_eq!(arena.into_vec(), [2, 4, 6]);
/// ```
pub struct IterMut<'a, T> {
    pub(super) part: slice::IterMut<'a, T>,
    pub(super) parts: Filled<'a, 1>,
    pub(super) values: PhantomData<&'a mut T>,
}

impl<'a, T> Iterator for IterMut<'a, T> {
    type Item = &'a mut T;
    fn next(&mut self) -> Option<&'a mut T> {
        loop {
            if let Some(value) = self.part.next() {
                return Some(value);
            }
            let bytes = self.parts.next()?;
            let count = bytes.len() / size_of::<T>().max(1);
            let part = NonNull::slice_from_raw_parts(bytes.cast::<T>(), count);
            // SAFETY: the chunk has `count` values, and the arena is borrowed exclusively.
            self.part = unsafe { &mut *part.as_ptr() }.iter_mut();
        }
    }
}

impl<T> FusedIterator for IterMut<'_, T> {}

impl<T> core::fmt::Debug for IterMut<'_, T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("IterMut").field("left_in_chunk", &self.part.len()).finish_non_exhaustive()
    }
}

impl<'a, T, S: Source> IntoIterator for &'a mut TypedArena<T, S> {
    type Item = &'a mut T;
    type IntoIter = IterMut<'a, T>;
    fn into_iter(self) -> IterMut<'a, T> {
        self.iter_mut()
    }
}
