//! Hooks of object pools: functions that a pool calls after constructors and before destructors.

/// Functions that an [`ObjectPool`](crate::ObjectPool) calls for each object that it makes or drops.
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
/// The thread that makes or drops the object calls the hook, without holding a lock, so a hook may
/// use the same pool. If a hook panics, the object is dropped and its slot is free again.
pub trait Hooks<T: ?Sized> {
    /// Whether the hooks do nothing, so that the pool does not call them.
    #[doc(hidden)]
    const SILENT: bool = false;

    /// Is called after `object` was made.
    #[inline(always)]
    fn acquired(&self, object: &mut T) {
        let _ = object;
    }
    /// Is called before `object` is dropped, or moved out of the pool by `into_inner`.
    #[inline(always)]
    fn released(&self, object: &mut T) {
        let _ = object;
    }
}

/// Hooks that do nothing and cost nothing. They are the default of
/// [`ObjectPool`](crate::ObjectPool).
#[derive(Clone, Copy, Debug, Default)]
pub struct NoHooks;

impl<T: ?Sized> Hooks<T> for NoHooks {
    const SILENT: bool = true;
}
