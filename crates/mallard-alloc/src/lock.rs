//! A lock for what is slow: the standard library's where there is one, else one that spins.

use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};

/// `T` for one thread at a time. A panic while it is held does not spoil it: who holds it
/// changes `T` only after what can fail.
pub(crate) struct Lock<T> {
    gate: gate::Gate,
    value: UnsafeCell<T>,
}

// SAFETY: it hands `T` from thread to thread, to one at a time.
unsafe impl<T: Send> Sync for Lock<T> {}
// SAFETY: the gate is part of no thread while nobody holds it.
unsafe impl<T: Send> Send for Lock<T> {}

impl<T> Lock<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self { gate: gate::Gate::new(), value: UnsafeCell::new(value) }
    }

    pub(crate) fn lock(&self) -> Held<'_, T> {
        Held { _pass: self.gate.enter(), value: self.value.get() }
    }

    /// None: it would have to wait.
    #[cfg_attr(not(feature = "std"), allow(dead_code))]
    pub(crate) fn try_lock(&self) -> Option<Held<'_, T>> {
        Some(Held { _pass: self.gate.try_enter()?, value: self.value.get() })
    }
}

/// While it lives, nobody else is at the value.
pub(crate) struct Held<'a, T> {
    _pass: gate::Pass<'a>,
    value: *mut T,
}

impl<T> Deref for Held<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: the gate lets one in at a time.
        unsafe { &*self.value }
    }
}

impl<T> DerefMut for Held<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the gate lets one in at a time, and `self` is borrowed for as long.
        unsafe { &mut *self.value }
    }
}

#[cfg(feature = "std")]
mod gate {
    use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

    pub(crate) struct Gate(Mutex<()>);
    pub(crate) type Pass<'a> = MutexGuard<'a, ()>;

    impl Gate {
        pub(crate) const fn new() -> Self {
            Self(Mutex::new(()))
        }
        pub(crate) fn enter(&self) -> Pass<'_> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner)
        }
        pub(crate) fn try_enter(&self) -> Option<Pass<'_>> {
            match self.0.try_lock() {
                Ok(pass) => Some(pass),
                Err(TryLockError::Poisoned(e)) => Some(e.into_inner()),
                Err(TryLockError::WouldBlock) => None,
            }
        }
    }
}

#[cfg(not(feature = "std"))]
mod gate {
    // Not loom's: a model that spins has no end.
    use core::sync::atomic::{AtomicBool, Ordering::*};

    pub(crate) struct Gate(AtomicBool);
    pub(crate) struct Pass<'a>(&'a AtomicBool);

    impl Gate {
        pub(crate) const fn new() -> Self {
            Self(AtomicBool::new(false))
        }
        pub(crate) fn enter(&self) -> Pass<'_> {
            loop {
                if let Some(pass) = self.try_enter() {
                    return pass;
                }
                while self.0.load(Relaxed) {
                    core::hint::spin_loop();
                }
            }
        }
        pub(crate) fn try_enter(&self) -> Option<Pass<'_>> {
            (!self.0.swap(true, Acquire)).then_some(Pass(&self.0))
        }
    }

    impl Drop for Pass<'_> {
        fn drop(&mut self) {
            self.0.store(false, Release);
        }
    }
}
