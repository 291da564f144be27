//! The traits that a box passes on to its value, and the iterator over a boxed slice.

use super::boxed::Box;
use crate::arena::Arena;
use crate::base::allocator::BlockAllocator;
use crate::base::box_traits::{box_iterator, box_traits, deref_traits};
use core::fmt;
use core::iter::FusedIterator;
use core::mem::MaybeUninit;
use core::ops::{Deref, DerefMut, Range};
use core::ptr::NonNull;

impl<T: ?Sized, A: BlockAllocator> Deref for Box<'_, T, A> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the value is initialised, and only the box uses it.
        unsafe { self.value.as_ref() }
    }
}
impl<T: ?Sized, A: BlockAllocator> DerefMut for Box<'_, T, A> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the value is initialised, and only the box uses it.
        unsafe { self.value.as_mut() }
    }
}
deref_traits!([T: ?Sized, A: BlockAllocator] Box<'_, T, A>, [B: BlockAllocator] Box<'_, T, B>);
box_traits!([T: ?Sized, A: BlockAllocator] Box<'_, T, A>);

/// Implements `Iterator` for boxes of iterator trait objects. A box of a sized iterator is also an
/// iterator. Boxes of other unsized iterators are not iterators, because a boxed slice implements
/// `IntoIterator`. Iterate over such a box through `&mut *boxed`.
macro_rules! box_of_dyn_iterator {
    ($($also:tt)*) => {
        box_iterator!([X, A: BlockAllocator] Box<'_, dyn Iterator<Item = X> $($also)*, A>, X);
        box_iterator!([X, A: BlockAllocator] Box<'_, dyn DoubleEndedIterator<Item = X> $($also)*, A>, X);
        box_iterator!(back [X, A: BlockAllocator] Box<'_, dyn DoubleEndedIterator<Item = X> $($also)*, A>, X);
        box_iterator!([X, A: BlockAllocator] Box<'_, dyn ExactSizeIterator<Item = X> $($also)*, A>, X);
        impl<X, A: BlockAllocator> ExactSizeIterator for Box<'_, dyn ExactSizeIterator<Item = X> $($also)*, A> {}
    };
}
box_of_dyn_iterator!(+ '_);
box_of_dyn_iterator!(+ Send + '_);
box_iterator!([I: Iterator, A: BlockAllocator] Box<'_, I, A>, I::Item);
box_iterator!(back [I: DoubleEndedIterator, A: BlockAllocator] Box<'_, I, A>, I::Item);
impl<I: ExactSizeIterator, A: BlockAllocator> ExactSizeIterator for Box<'_, I, A> {}
impl<I: FusedIterator, A: BlockAllocator> FusedIterator for Box<'_, I, A> {}

/// Iterator over the elements of a boxed slice by value, from `into_iter`. Dropping the iterator drops
/// the remaining elements and frees the block.
///
/// ```
/// let arena = mallard::Arena::new();
/// let names = arena.alloc_box_iter(["duck", "swan"].map(String::from));
/// let mut longer: Vec<String> = names.into_iter().map(|name| name + "!").collect();
/// assert_eq!(longer.pop().unwrap(), "swan!");
/// ```
pub struct IntoIter<'a, T, A: BlockAllocator = Arena> {
    slots: Box<'a, [MaybeUninit<T>], A>,
    /// The indices of the elements that the iterator has not returned yet.
    left: Range<usize>,
}

impl<'a, T, A: BlockAllocator> IntoIterator for Box<'a, [T], A> {
    type Item = T;
    type IntoIter = IntoIter<'a, T, A>;
    fn into_iter(self) -> IntoIter<'a, T, A> {
        let left = 0..self.len();
        // SAFETY: the block, its layout and its arena stay the same. The iterator drops the elements.
        let slots = unsafe {
            let (values, arena) = self.into_raw_parts();
            let slots = NonNull::slice_from_raw_parts(values.cast(), values.len());
            Box::from_raw_in(slots, arena)
        };
        IntoIter { slots, left }
    }
}

impl<T, A: BlockAllocator> Iterator for IntoIter<'_, T, A> {
    type Item = T;
    #[inline]
    fn next(&mut self) -> Option<T> {
        let i = self.left.next()?;
        // SAFETY: the element is initialised, and was just removed from `left`.
        Some(unsafe { self.slots[i].assume_init_read() })
    }
    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.left.size_hint()
    }
}
impl<T, A: BlockAllocator> DoubleEndedIterator for IntoIter<'_, T, A> {
    #[inline]
    fn next_back(&mut self) -> Option<T> {
        let i = self.left.next_back()?;
        // SAFETY: the element is initialised, and was just removed from `left`.
        Some(unsafe { self.slots[i].assume_init_read() })
    }
}
impl<T, A: BlockAllocator> ExactSizeIterator for IntoIter<'_, T, A> {}
impl<T, A: BlockAllocator> FusedIterator for IntoIter<'_, T, A> {}

impl<T, A: BlockAllocator> Drop for IntoIter<'_, T, A> {
    fn drop(&mut self) {
        let left: *mut [MaybeUninit<T>] = &mut self.slots[self.left.clone()];
        // SAFETY: the remaining elements are initialised, and nothing else drops them. If one panics,
        // the others are still dropped and the block is freed.
        unsafe { (left as *mut [T]).drop_in_place() }
    }
}

impl<T, A: BlockAllocator> fmt::Debug for IntoIter<'_, T, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IntoIter").field("left", &self.left.len()).finish_non_exhaustive()
    }
}

impl<'b, T, A: BlockAllocator> IntoIterator for &'b Box<'_, [T], A> {
    type Item = &'b T;
    type IntoIter = core::slice::Iter<'b, T>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
impl<'b, T, A: BlockAllocator> IntoIterator for &'b mut Box<'_, [T], A> {
    type Item = &'b mut T;
    type IntoIter = core::slice::IterMut<'b, T>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}
