//! Macros that implement traits of a value for the handle that refers to the value.

/// Implements, for a handle, the traits that need only a `&T`. `T` is the name of the value's type
/// in `$generics`. The handle can be compared with handles of the types `$other`.
macro_rules! deref_traits {
    ([$($generics:tt)*] $handle:ty, [$($more:tt)*] $other:ty) => {
        impl<$($generics)*> AsRef<T> for $handle {
            fn as_ref(&self) -> &T {
                self
            }
        }
        impl<$($generics)*> core::borrow::Borrow<T> for $handle {
            fn borrow(&self) -> &T {
                self
            }
        }
        impl<$($generics)*> core::fmt::Debug for $handle where T: core::fmt::Debug {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                (**self).fmt(f)
            }
        }
        impl<$($generics)*> core::fmt::Display for $handle where T: core::fmt::Display {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                (**self).fmt(f)
            }
        }
        impl<$($generics)*> core::fmt::Pointer for $handle {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                core::fmt::Pointer::fmt(&&**self, f)
            }
        }
        impl<$($generics)*, $($more)*> PartialEq<$other> for $handle where T: PartialEq {
            fn eq(&self, other: &$other) -> bool {
                **self == **other
            }
        }
        impl<$($generics)*> Eq for $handle where T: Eq {}
        impl<$($generics)*, $($more)*> PartialOrd<$other> for $handle where T: PartialOrd {
            fn partial_cmp(&self, other: &$other) -> Option<core::cmp::Ordering> {
                (**self).partial_cmp(&**other)
            }
        }
        impl<$($generics)*> Ord for $handle where T: Ord {
            fn cmp(&self, other: &Self) -> core::cmp::Ordering {
                (**self).cmp(&**other)
            }
        }
        impl<$($generics)*> core::hash::Hash for $handle where T: core::hash::Hash {
            fn hash<State: core::hash::Hasher>(&self, state: &mut State) {
                (**self).hash(state);
            }
        }
        impl<$($generics)*> core::error::Error for $handle where T: core::error::Error {
            fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
                (**self).source()
            }
        }
    };
}
pub(crate) use deref_traits;

/// Implements, for a box, the traits that need a `&mut T`. A box owns its value, so a box can
/// return a `&mut T`.
macro_rules! box_traits {
    ([$($generics:tt)*] $box:ty) => {
        impl<$($generics)*> Unpin for $box {}
        impl<$($generics)*> AsMut<T> for $box {
            fn as_mut(&mut self) -> &mut T {
                self
            }
        }
        impl<$($generics)*> core::borrow::BorrowMut<T> for $box {
            fn borrow_mut(&mut self) -> &mut T {
                self
            }
        }
        impl<$($generics)*> core::fmt::Write for $box where T: core::fmt::Write {
            fn write_str(&mut self, text: &str) -> core::fmt::Result {
                (**self).write_str(text)
            }
        }
        impl<$($generics)*> core::hash::Hasher for $box where T: core::hash::Hasher {
            fn finish(&self) -> u64 {
                (**self).finish()
            }
            fn write(&mut self, bytes: &[u8]) {
                (**self).write(bytes);
            }
        }
        impl<$($generics)*> core::future::Future for $box where T: core::future::Future + Unpin {
            type Output = T::Output;
            fn poll(
                mut self: core::pin::Pin<&mut Self>,
                context: &mut core::task::Context<'_>,
            ) -> core::task::Poll<T::Output> {
                core::pin::Pin::new(&mut **self).poll(context)
            }
        }
    };
}
pub(crate) use box_traits;

/// Implements `Iterator` for boxes of iterators, or `DoubleEndedIterator` with the argument `back`.
macro_rules! box_iterator {
    ([$($generics:tt)*] $box:ty, $item:ty) => {
        impl<$($generics)*> Iterator for $box {
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
    (back [$($generics:tt)*] $box:ty, $item:ty) => {
        impl<$($generics)*> DoubleEndedIterator for $box {
            fn next_back(&mut self) -> Option<$item> {
                (**self).next_back()
            }
        }
    };
}
pub(crate) use box_iterator;
