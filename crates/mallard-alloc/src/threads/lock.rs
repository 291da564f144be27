//! Locks: the standard library's lock with the feature `std`, and a spin lock without this feature.

use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicBool, Ordering::*};

/// A lock that allocates no memory and can be in a `static`.
///
/// ```
/// use mallard::{Lock, Spin};
/// static LOCK: Spin = Spin::NEW;
/// let guard = LOCK.lock();
/// drop(guard); // unlocks
/// ```
///
/// # Safety
/// At most one guard exists at a time. Everything that is written before a guard is dropped is
/// visible to the thread that makes the next guard.
#[doc(alias("mutex", "raw_mutex"))]
pub unsafe trait Lock {
    /// A lock that nobody holds.
    const NEW: Self;
    /// The type of the guard, which holds the lock until it is dropped.
    type Guard<'a>
    where
        Self: 'a;
    /// Waits until nobody holds the lock, and then locks it for the caller.
    fn lock(&self) -> Self::Guard<'_>;
}

/// A [`Lock`] made of `std::sync::Mutex`. This lock ignores poison, because the data that the lock
/// protects stay valid when a caller panics.
///
/// ```
/// use mallard::{Multipool, StdLock, Synchronized};
/// static MEMORY: Synchronized<Multipool, StdLock> = Synchronized::locked_by(Multipool::new());
/// assert_eq!(MEMORY.with(|pool| pool.statistics().blocks_live), 0);
/// ```
#[cfg(feature = "std")]
#[derive(Debug)]
pub struct StdLock(std::sync::Mutex<()>);

#[cfg(feature = "std")]
// SAFETY: a mutex has one guard at a time, and the next holder sees everything that earlier holders
// wrote.
unsafe impl Lock for StdLock {
    #[allow(clippy::declare_interior_mutable_const)] // an initial value
    const NEW: Self = Self(std::sync::Mutex::new(()));
    type Guard<'a> = std::sync::MutexGuard<'a, ()>;
    #[inline]
    fn lock(&self) -> Self::Guard<'_> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[cfg(feature = "std")]
impl StdLock {
    fn try_lock(&self) -> Option<std::sync::MutexGuard<'_, ()>> {
        match self.0.try_lock() {
            Ok(guard) => Some(guard),
            Err(std::sync::TryLockError::Poisoned(error)) => Some(error.into_inner()),
            Err(std::sync::TryLockError::WouldBlock) => None,
        }
    }
}

/// A [`Lock`] that waits by reading its flag again and again, for targets without an operating
/// system. If threads of different priority share one processor, a waiting thread may wait for
/// ever, because the thread that holds the lock does not run while the waiting thread spins.
///
/// ```
/// use mallard::{Multipool, Spin, Synchronized};
/// static MEMORY: Synchronized<Multipool, Spin> = Synchronized::locked_by(Multipool::new());
/// assert_eq!(MEMORY.with(|pool| pool.statistics().blocks_live), 0);
/// ```
#[derive(Debug)]
pub struct Spin(AtomicBool);

/// The guard of a [`Spin`], which holds the lock until the guard is dropped.
#[derive(Debug)]
pub struct SpinGuard<'a>(&'a AtomicBool);

// SAFETY: only the thread that changes the flag from false to true has a guard. When the guard is
// dropped, everything that this thread wrote becomes visible to the thread that acquires the flag
// next.
unsafe impl Lock for Spin {
    #[allow(clippy::declare_interior_mutable_const)] // an initial value
    const NEW: Self = Self(AtomicBool::new(false));
    type Guard<'a> = SpinGuard<'a>;
    #[inline]
    fn lock(&self) -> SpinGuard<'_> {
        loop {
            if let Some(guard) = self.try_lock() {
                return guard;
            }
            while self.0.load(Relaxed) {
                core::hint::spin_loop();
            }
        }
    }
}

impl Spin {
    #[inline]
    fn try_lock(&self) -> Option<SpinGuard<'_>> {
        // `then_some` would make a guard even if the swap fails. Dropping that guard would unlock
        // the lock.
        (!self.0.swap(true, Acquire)).then(|| SpinGuard(&self.0))
    }
}

impl Drop for SpinGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.store(false, Release);
    }
}

/// The lock of the standard library with the feature `std`, and [`Spin`] without this feature.
#[cfg(feature = "std")]
pub type DefaultLock = StdLock;
/// The lock of the standard library with the feature `std`, and [`Spin`] without this feature.
#[cfg(not(feature = "std"))]
pub type DefaultLock = Spin;

/// A value that a `DefaultLock` protects. If a thread that holds the lock panics, the value is
/// still valid, because threads change the value only after everything that can fail.
pub(crate) struct Locked<T> {
    lock: DefaultLock,
    value: UnsafeCell<T>,
}

// SAFETY: one thread at a time uses the value, and `T: Send` allows that several threads use the
// value in turn.
unsafe impl<T: Send> Sync for Locked<T> {}

impl<T> Locked<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self { lock: DefaultLock::NEW, value: UnsafeCell::new(value) }
    }

    pub(crate) fn lock(&self) -> Held<'_, T> {
        Held { _guard: self.lock.lock(), value: self.value.get() }
    }
    /// Locks the value if no other thread holds the lock. Otherwise returns `None` immediately.
    #[allow(dead_code)] // pools of the feature `std` use it
    pub(crate) fn try_lock(&self) -> Option<Held<'_, T>> {
        Some(Held { _guard: self.lock.try_lock()?, value: self.value.get() })
    }
    #[allow(dead_code)] // arenas of the feature `std` use it
    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }
}

/// The guard of a `Locked`, which holds the lock until the guard is dropped.
pub(crate) struct Held<'a, T> {
    _guard: <DefaultLock as Lock>::Guard<'a>,
    value: *mut T,
}

impl<T> Deref for Held<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: the guard excludes all other threads.
        unsafe { &*self.value }
    }
}

impl<T> DerefMut for Held<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard excludes all other threads, and `self` is borrowed exclusively while
        // the reference exists.
        unsafe { &mut *self.value }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_failed_try_lock_leaves_a_spin_lock_locked() {
        let lock = Spin::NEW;
        let guard = lock.lock();
        assert!(lock.try_lock().is_none());
        assert!(lock.try_lock().is_none());
        drop(guard);
        assert!(lock.try_lock().is_some());
    }
}
