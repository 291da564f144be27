//! What a box does as its value would.

use super::boxed::Box;
use crate::allocator::BlockAllocator;
use core::borrow::{Borrow, BorrowMut};
use core::cmp::Ordering;
use core::fmt;
use core::future::Future;
use core::hash::{Hash, Hasher};
use core::iter::FusedIterator;
use core::ops::{Deref, DerefMut};
use core::pin::Pin;
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

impl<I: ?Sized + Iterator, A: BlockAllocator> Iterator for Box<'_, I, A> {
    type Item = I::Item;
    fn next(&mut self) -> Option<I::Item> {
        (**self).next()
    }
    fn size_hint(&self) -> (usize, Option<usize>) {
        (**self).size_hint()
    }
    fn nth(&mut self, n: usize) -> Option<I::Item> {
        (**self).nth(n)
    }
}
impl<I: ?Sized + DoubleEndedIterator, A: BlockAllocator> DoubleEndedIterator for Box<'_, I, A> {
    fn next_back(&mut self) -> Option<I::Item> {
        (**self).next_back()
    }
}
impl<I: ?Sized + ExactSizeIterator, A: BlockAllocator> ExactSizeIterator for Box<'_, I, A> {}
impl<I: ?Sized + FusedIterator, A: BlockAllocator> FusedIterator for Box<'_, I, A> {}

impl<F: ?Sized + Future + Unpin, A: BlockAllocator> Future for Box<'_, F, A> {
    type Output = F::Output;
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        Pin::new(&mut **self).poll(cx)
    }
}
