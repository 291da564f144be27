//! What an object pool calls beside constructors and destructors.

/// Hears of each object of an [`ObjectPool`](crate::ObjectPool) that is made or dropped.
///
/// ```
/// use core::cell::Cell;
/// use mallard::{Hooks, ObjectPool};
///
/// #[derive(Default)]
/// struct Count(Cell<usize>);
/// impl Hooks<u32> for Count {
///     fn acquired(&self, _: &mut u32) {
///         self.0.set(self.0.get() + 1);
///     }
/// }
/// let mut pool = ObjectPool::<u32>::with_hooks(Count::default());
/// pool.make(1);
/// assert_eq!(pool.hooks().0.get(), 1);
/// ```
///
/// Called by whatever thread makes or drops, and under no lock: a hook may use the same pool.
/// Where a hook panics the object is dropped, and its slot is free again.
pub trait Hooks<T: ?Sized> {
    /// Whether there is nothing to call.
    #[doc(hidden)]
    const SILENT: bool = false;

    /// It was just made.
    #[inline(always)]
    fn acquired(&self, object: &mut T) {
        let _ = object;
    }
    /// It is about to be dropped, or to leave the pool by `into_inner`.
    #[inline(always)]
    fn released(&self, object: &mut T) {
        let _ = object;
    }
}

/// None: costs nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoHooks;

impl<T: ?Sized> Hooks<T> for NoHooks {
    const SILENT: bool = true;
}
