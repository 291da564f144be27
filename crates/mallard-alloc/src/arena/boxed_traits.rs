//! What a box does as its value would.

use super::boxed::Box;
use crate::arena::Arena;
use crate::base::allocator::BlockAllocator;
use core::borrow::{Borrow, BorrowMut};
use core::cmp::Ordering;
use core::fmt;
use core::future::Future;
use core::hash::{Hash, Hasher};
use core::iter::FusedIterator;
use core::mem::MaybeUninit;
use core::ops::{Deref, DerefMut, Range};
use core::pin::Pin;
use core::ptr::NonNull;
use core::task::{Context, Poll};

impl<T: ?Sized, A: BlockAllocator> Deref for Box<'_, T, A> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the value is there, and is the box's.
        unsafe { self.value.as_ref() }
    }
}
impl<T: ?Sized, A: BlockAllocator> DerefMut for Box<'_, T, A> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the value is there, and is the box's.
        unsafe { self.value.as_mut() }
    }
}
impl<T: ?Sized, A: BlockAllocator> AsRef<T> for Box<'_, T, A> {
    fn as_ref(&self) -> &T {
        self
    }
}
impl<T: ?Sized, A: BlockAllocator> AsMut<T> for Box<'_, T, A> {
    fn as_mut(&mut self) -> &mut T {
        self
    }
}
impl<T: ?Sized, A: BlockAllocator> Borrow<T> for Box<'_, T, A> {
    fn borrow(&self) -> &T {
        self
    }
}
impl<T: ?Sized, A: BlockAllocator> BorrowMut<T> for Box<'_, T, A> {
    fn borrow_mut(&mut self) -> &mut T {
        self
    }
}
impl<T: ?Sized, A: BlockAllocator> Unpin for Box<'_, T, A> {}

impl<T: ?Sized + fmt::Debug, A: BlockAllocator> fmt::Debug for Box<'_, T, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
impl<T: ?Sized + fmt::Display, A: BlockAllocator> fmt::Display for Box<'_, T, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
impl<T: ?Sized, A: BlockAllocator> fmt::Pointer for Box<'_, T, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}
impl<T: ?Sized + core::error::Error, A: BlockAllocator> core::error::Error for Box<'_, T, A> {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        (**self).source()
    }
}
impl<W: ?Sized + fmt::Write, A: BlockAllocator> fmt::Write for Box<'_, W, A> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        (**self).write_str(text)
    }
}

impl<T: ?Sized + PartialEq, A: BlockAllocator, B: BlockAllocator> PartialEq<Box<'_, T, B>>
    for Box<'_, T, A>
{
    fn eq(&self, other: &Box<'_, T, B>) -> bool {
        **self == **other
    }
}
impl<T: ?Sized + Eq, A: BlockAllocator> Eq for Box<'_, T, A> {}
impl<T: ?Sized + PartialOrd, A: BlockAllocator, B: BlockAllocator> PartialOrd<Box<'_, T, B>>
    for Box<'_, T, A>
{
    fn partial_cmp(&self, other: &Box<'_, T, B>) -> Option<Ordering> {
        (**self).partial_cmp(&**other)
    }
}
impl<T: ?Sized + Ord, A: BlockAllocator> Ord for Box<'_, T, A> {
    fn cmp(&self, other: &Self) -> Ordering {
        (**self).cmp(&**other)
    }
}
impl<T: ?Sized + Hash, A: BlockAllocator> Hash for Box<'_, T, A> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}
impl<T: ?Sized + Hasher, A: BlockAllocator> Hasher for Box<'_, T, A> {
    fn finish(&self) -> u64 {
        (**self).finish()
    }
    fn write(&mut self, bytes: &[u8]) {
        (**self).write(bytes);
    }
}

/// A boxed iterator is an iterator too, if its type is sized, or is a trait object of `Iterator`,
/// `DoubleEndedIterator` or `ExactSizeIterator`, `Send` or not. Use other iterators through
/// `&mut *boxed`. (Not all unsized types have this, because a boxed slice implements `IntoIterator`.)
macro_rules! iterator {
    ([$($generics:tt)*] $type:ty, $item:ty) => {
        impl<$($generics)*> Iterator for Box<'_, $type, A> {
            type Item = $item;
            fn next(&mut self) -> Option<$item> {
                (**self).next()
            }
            fn size_hint(&self) -> (usize, Option<usize>) {
                (**self).size_hint()
            }
            fn nth(&mut self, n: usize) -> Option<$item> {
                (**self).nth(n)
            }
        }
    };
    (back [$($generics:tt)*] $type:ty, $item:ty) => {
        impl<$($generics)*> DoubleEndedIterator for Box<'_, $type, A> {
            fn next_back(&mut self) -> Option<$item> {
                (**self).next_back()
            }
        }
    };
    (dyn $($also:tt)*) => {
        iterator!([X, A: BlockAllocator] dyn Iterator<Item = X> $($also)*, X);
        iterator!([X, A: BlockAllocator] dyn DoubleEndedIterator<Item = X> $($also)*, X);
        iterator!(back [X, A: BlockAllocator] dyn DoubleEndedIterator<Item = X> $($also)*, X);
        iterator!([X, A: BlockAllocator] dyn ExactSizeIterator<Item = X> $($also)*, X);
        impl<X, A: BlockAllocator> ExactSizeIterator for Box<'_, dyn ExactSizeIterator<Item = X> $($also)*, A> {}
    };
}
iterator!([I: Iterator, A: BlockAllocator] I, I::Item);
iterator!(back [I: DoubleEndedIterator, A: BlockAllocator] I, I::Item);
impl<I: ExactSizeIterator, A: BlockAllocator> ExactSizeIterator for Box<'_, I, A> {}
impl<I: FusedIterator, A: BlockAllocator> FusedIterator for Box<'_, I, A> {}
iterator!(dyn + '_);
iterator!(dyn + Send + '_);

/// Iterator over the elements of a boxed slice, by value, which `into_iter` returns. Dropping the
/// iterator drops the remaining elements and frees the block.
///
/// ```
/// let arena = mallard::Arena::new();
/// let names = arena.alloc_box_iter(["duck", "swan"].map(String::from));
/// let mut longer: Vec<String> = names.into_iter().map(|name| name + "!").collect();
/// assert_eq!(longer.pop().unwrap(), "swan!");
/// ```
pub struct IntoIter<'a, T, A: BlockAllocator = Arena> {
    slots: Box<'a, [MaybeUninit<T>], A>,
    /// The elements that remain.
    left: Range<usize>,
}

impl<'a, T, A: BlockAllocator> IntoIterator for Box<'a, [T], A> {
    type Item = T;
    type IntoIter = IntoIter<'a, T, A>;
    fn into_iter(self) -> IntoIter<'a, T, A> {
        let left = 0..self.len();
        // SAFETY: a block of the same layout from the same arena, whose elements are ended below.
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
        // SAFETY: it is there, and no longer counted.
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
        // SAFETY: it is there, and no longer counted.
        Some(unsafe { self.slots[i].assume_init_read() })
    }
}
impl<T, A: BlockAllocator> ExactSizeIterator for IntoIter<'_, T, A> {}
impl<T, A: BlockAllocator> FusedIterator for IntoIter<'_, T, A> {}

impl<T, A: BlockAllocator> Drop for IntoIter<'_, T, A> {
    fn drop(&mut self) {
        let left: *mut [MaybeUninit<T>] = &mut self.slots[self.left.clone()];
        // SAFETY: these are there, and nobody else drops them. A panic of one does not keep the rest
        // from being dropped, nor the block from being given back.
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

impl<F: ?Sized + Future + Unpin, A: BlockAllocator> Future for Box<'_, F, A> {
    type Output = F::Output;
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        Pin::new(&mut **self).poll(cx)
    }
}
