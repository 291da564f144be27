//! What handles do as what they lead to does it.

use super::{Box, Counts, Handle, Lasting};
use crate::base::source::Source;
use crate::hooks::Hooks;
use crate::sync::Mode;
use core::borrow::{Borrow, BorrowMut};
use core::cmp::Ordering;
use core::future::Future;
use core::hash::{Hash, Hasher};
use core::iter::FusedIterator;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::{fmt, ops::Deref};

/// What `&T` is enough for. `where` names what the handle wants of its parameters.
macro_rules! as_what_it_leads_to {
    (($($generics:tt)*) $handle:ty) => {
        impl<$($generics)*> AsRef<T> for $handle {
            fn as_ref(&self) -> &T {
                self
            }
        }
        impl<$($generics)*> Borrow<T> for $handle {
            fn borrow(&self) -> &T {
                self
            }
        }
        as_what_it_leads_to!(fmt ($($generics)*) $handle, Debug, Display);
        impl<$($generics)*> fmt::Pointer for $handle {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Pointer::fmt(&self.deref(), f)
            }
        }
        impl<$($generics)*> PartialEq for $handle where T: PartialEq {
            fn eq(&self, other: &Self) -> bool {
                **self == **other
            }
        }
        impl<$($generics)*> Eq for $handle where T: Eq {}
        impl<$($generics)*> PartialOrd for $handle where T: PartialOrd {
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                (**self).partial_cmp(&**other)
            }
        }
        impl<$($generics)*> Ord for $handle where T: Ord {
            fn cmp(&self, other: &Self) -> Ordering {
                (**self).cmp(&**other)
            }
        }
        impl<$($generics)*> Hash for $handle where T: Hash {
            fn hash<A: Hasher>(&self, state: &mut A) {
                (**self).hash(state);
            }
        }
        impl<$($generics)*> core::error::Error for $handle where T: core::error::Error {
            fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
                (**self).source()
            }
        }
    };
    (fmt $generics:tt $handle:ty, $($name:ident),*) => {
        $(as_what_it_leads_to!(one $generics $handle, $name);)*
    };
    (one ($($generics:tt)*) $handle:ty, $name:ident) => {
        impl<$($generics)*> fmt::$name for $handle where T: fmt::$name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::$name::fmt(&**self, f)
            }
        }
    };
}
#[cfg(feature = "alloc")]
pub(super) use as_what_it_leads_to;

as_what_it_leads_to!((T: ?Sized, M: Mode, S: Source, H: Hooks<T>) Box<'_, T, M, S, H>);
as_what_it_leads_to!((T, C: Counts, M: Mode, S: Source) Handle<'_, T, C, M, S>);

impl<T: ?Sized, M: Mode, S: Source, H: Hooks<T>> AsMut<T> for Box<'_, T, M, S, H> {
    fn as_mut(&mut self) -> &mut T {
        self
    }
}
impl<T: ?Sized, M: Mode, S: Source, H: Hooks<T>> BorrowMut<T> for Box<'_, T, M, S, H> {
    fn borrow_mut(&mut self) -> &mut T {
        self
    }
}

impl<I, M: Mode, S: Source, H: Hooks<I>> Iterator for Box<'_, I, M, S, H>
where
    I: Iterator + ?Sized,
{
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
impl<I, M: Mode, S: Source, H: Hooks<I>> DoubleEndedIterator for Box<'_, I, M, S, H>
where
    I: DoubleEndedIterator + ?Sized,
{
    fn next_back(&mut self) -> Option<I::Item> {
        (**self).next_back()
    }
}
impl<I, M: Mode, S: Source, H: Hooks<I>> ExactSizeIterator for Box<'_, I, M, S, H> where
    I: ExactSizeIterator + ?Sized
{
}
impl<I, M: Mode, S: Source, H: Hooks<I>> FusedIterator for Box<'_, I, M, S, H> where
    I: FusedIterator + ?Sized
{
}

impl<F, M: Mode, S: Source, H: Hooks<F>> Future for Box<'_, F, M, S, H>
where
    F: Future + Unpin + ?Sized,
{
    type Output = F::Output;
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        Pin::new(&mut **self).poll(context)
    }
}

/// Pinned for good.
impl<'p, T: ?Sized, M: Mode, S: Lasting> From<Box<'p, T, M, S>> for Pin<Box<'p, T, M, S>> {
    fn from(object: Box<'p, T, M, S>) -> Self {
        Box::into_pin(object)
    }
}
