//! Numbers for threads: each has one to itself while it lives.

/// Numbers from 1 on that threads have; what has none goes by 0, with others.
pub(super) const NUMBERS: usize = 64;

#[cfg(feature = "std")]
mod numbers {
    use super::NUMBERS;
    use core::cell::Cell;
    use core::sync::atomic::{AtomicU64, Ordering};

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

    std::thread_local! {
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
pub(super) use numbers::number;

#[cfg(not(feature = "std"))]
#[inline(always)]
pub(super) fn number() -> usize {
    0
}

/// Waits a moment for another thread.
pub(super) fn pause() {
    #[cfg(feature = "std")]
    std::thread::yield_now();
    #[cfg(not(feature = "std"))]
    core::hint::spin_loop();
}
