//! Numbers for threads: each of the first 63 has one to itself while it lives.

/// Threads have the numbers from 1 to 63. Number 0 says that a thread has none of its own.
pub(super) const NUMBERS: usize = 64;

/// Number of fronts for threads without a number, so that these threads seldom contend.
pub(super) const SHARED: usize = if cfg!(feature = "std") { 8 } else { 1 };

#[cfg(feature = "std")]
mod numbers {
    use super::NUMBERS;
    use core::cell::Cell;
    use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

    /// A bit each; 0 is nobody's own.
    static TAKEN: AtomicU64 = AtomicU64::new(1);
    const _: () = assert!(NUMBERS == 64);

    const UNKNOWN: usize = usize::MAX;

    /// Gives the number back when the thread ends.
    struct Owned;
    impl Drop for Owned {
        fn drop(&mut self) {
            // What runs on this thread after this goes by 0. Release: all that was done by this number
            // is seen by who has it next.
            let number = NUMBER.replace(0);
            TAKEN.fetch_and(!(1 << number), Ordering::Release);
        }
    }

    /// The shared front that this thread uses while it has no number, assigned round robin.
    pub(in super::super) fn share() -> usize {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        if SHARE.get() == UNKNOWN {
            SHARE.set(NEXT.fetch_add(1, Ordering::Relaxed) % super::SHARED);
        }
        SHARE.get()
    }

    std::thread_local! {
        static SHARE: Cell<usize> = const { Cell::new(UNKNOWN) };
        // Apart, since what has a destructor costs a test at each use.
        static NUMBER: Cell<usize> = const { Cell::new(UNKNOWN) };
        static OWNED: Owned = const { Owned };
    }

    /// Of this thread.
    #[inline(always)]
    pub(in super::super) fn number() -> usize {
        let number = NUMBER.get();
        if number == UNKNOWN {
            return begin();
        }
        number
    }

    #[cold]
    #[inline(never)]
    fn begin() -> usize {
        let mut taken = TAKEN.load(Ordering::Relaxed);
        while taken != u64::MAX {
            let number = taken.trailing_ones() as usize; // the lowest, so that fronts are used again
            let with = taken | 1 << number;
            match TAKEN.compare_exchange_weak(taken, with, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) if OWNED.try_with(|_| ()).is_ok() => {
                    NUMBER.set(number);
                    return number;
                }
                Ok(_) => {
                    // The thread is about to end, and would not give it back.
                    TAKEN.fetch_and(!(1 << number), Ordering::Relaxed);
                    NUMBER.set(0);
                    return 0;
                }
                Err(now) => taken = now,
            }
        }
        0 // too many threads now; asked again next time
    }
}

#[cfg(feature = "std")]
pub(super) use numbers::{number, share};

#[cfg(not(feature = "std"))]
#[inline(always)]
pub(super) fn number() -> usize {
    0
}
#[cfg(not(feature = "std"))]
pub(super) fn share() -> usize {
    0
}

/// Waits a moment for another thread.
pub(super) fn pause() {
    #[cfg(feature = "std")]
    std::thread::yield_now();
    #[cfg(not(feature = "std"))]
    core::hint::spin_loop();
}
