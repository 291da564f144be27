//! The error of every `try_` function.

use core::fmt;

/// The error of a `try_` function, with the value that could not be stored and the reason. A call
/// that returns this error has changed nothing.
///
/// ```
/// use mallard::{Cause, ObjectPool};
/// let pool = ObjectPool::<u32>::fixed(0);
/// let full = pool.try_make(7).unwrap_err();
/// assert_eq!(full.cause(), Cause::NoMemory);
/// assert_eq!(full.to_string(), "no memory: the source is exhausted, or the limit of the growth is reached");
/// assert_eq!(full.into_inner(), 7);
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Full<T = ()> {
    value: T,
    cause: Cause,
}

/// The reason why a value could not be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cause {
    /// The source is exhausted, or the limit of the [`Growth`](crate::Growth) is reached.
    NoMemory,
    /// The source is a buffer that, depending on its address, may be too small for the first
    /// element or for all elements of a fixed pool. With `missing` more bytes, the buffer is large
    /// enough at any address. If 2^32 or more bytes are missing, `missing` is `u32::MAX`.
    ///
    /// The chunks of a pool lie at multiples of their size, which is 64 KiB by default. A pool with
    /// smaller chunks, such as `ObjectPool<T, sync::Unshared<512>, _>`, needs a smaller buffer.
    BufferTooSmall {
        /// The number of bytes that the buffer lacks.
        missing: u32,
    },
    /// Every slot that a key of the map can address is in use, or is retired because its
    /// generations are used up. A key type with more index bits has more slots.
    NoSlot,
    /// The key is null, or the slot of the key has a newer key.
    StaleKey,
    /// The key is not detached. An element can be put back only under a key from which `detach` removed it.
    NotDetached,
    /// A formatting trait returned an error.
    Format,
}

impl<T> Full<T> {
    #[inline(always)]
    pub(crate) const fn no_memory(value: T) -> Self {
        Self::because(Cause::NoMemory, value)
    }
    #[inline(always)]
    pub(crate) const fn because(cause: Cause, value: T) -> Self {
        Self { value, cause }
    }

    /// Returns the value that could not be stored.
    pub fn into_inner(self) -> T {
        self.value
    }
    /// Returns the reason why the value was not stored.
    pub const fn cause(&self) -> Cause {
        self.cause
    }
}

impl<T> fmt::Debug for Full<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Full").field("cause", &self.cause).finish_non_exhaustive()
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BufferTooSmall { missing } => {
                return write!(
                    f,
                    "no memory: the buffer is too small. {missing} more bytes are enough at every \
                     address, or smaller chunks (see `Cause::BufferTooSmall`)"
                )
            }
            Self::NoMemory => {
                "no memory: the source is exhausted, or the limit of the growth is reached"
            }
            Self::NoSlot => "no slot: every slot within the key's index range is in use or retired",
            Self::StaleKey => "stale key: the key is null, or a newer key has the same slot",
            Self::NotDetached => "not detached: no element was detached with this key",
            Self::Format => "not written: formatting a value returned an error",
        })
    }
}

impl<T> fmt::Display for Full<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.cause.fmt(f)
    }
}

impl<T> core::error::Error for Full<T> {}
