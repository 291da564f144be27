//! The error of every `try_` function that was given a value.

use core::fmt;

/// No memory for a value, which comes back in it. Nothing has changed.
///
/// Either the limit of a [`Growth`](crate::Growth) is reached, or the source refuses.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Full<T = ()>(
    /// The value that was to be stored.
    pub T,
);

impl<T> Full<T> {
    /// The value that was to be stored.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> fmt::Debug for Full<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Full(..)")
    }
}

impl<T> fmt::Display for Full<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "no memory for one more\n  \
             nothing was changed, and the value is in this error\n  \
             help: free some first, or raise the limit of the growth",
        )
    }
}

impl<T> core::error::Error for Full<T> {}
