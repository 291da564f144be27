//! The reference counts of shared handles.

#[cfg(target_has_atomic = "64")]
use crate::loom::atomic::{AtomicU64, Ordering};
use core::cell::Cell;

/// The kind of reference counts: [`Local`] or [`Atomic`].
pub trait Counts: word::Word {}

/// Reference counts for handles of one thread, such as [`Rc`](super::Rc).
#[derive(Debug)]
pub struct Local(Cell<u64>);

/// Reference counts for handles of several threads, such as [`Arc`](super::Arc).
#[cfg(target_has_atomic = "64")]
#[derive(Debug)]
pub struct Atomic(AtomicU64);

impl Counts for Local {}
#[cfg(target_has_atomic = "64")]
impl Counts for Atomic {}

/// The numbers of strong and weak handles of an object, in one word {weak, strong}.
///
/// All strong handles together count as one weak handle. The object is dropped with the last strong
/// handle, and its slot becomes free with the last weak handle.
///
/// ```text
///     strong > 0   ==   the object exists
///     weak > 0     ==   the slot is in use
/// ```
///
/// A strong handle is cloned from a strong handle, so a strong count of 0 is final. `upgrade` makes
/// a strong handle from a weak handle, so `upgrade` must never change a strong count from 0 to 1.
pub(super) struct HandleCounts<W>(W);

const ONE_STRONG: u64 = 1;
const ONE_WEAK: u64 = 1 << 32;
/// The largest allowed count. It is a quarter of the largest number that fits, so that leaked
/// handles are noticed long before an overflow.
const TOO_MANY: u64 = 1 << 30;

#[inline(always)]
fn strong(word: u64) -> u64 {
    word % ONE_WEAK
}
#[inline(always)]
fn weak(word: u64) -> u64 {
    word / ONE_WEAK
}

impl<W: word::Word> HandleCounts<W> {
    /// Returns the counts of an object with one strong handle.
    #[inline(always)]
    pub(super) fn one() -> Self {
        Self(W::new(ONE_STRONG + ONE_WEAK))
    }
    pub(super) fn strong(&self) -> usize {
        strong(self.0.load()) as usize
    }
    /// Returns the number of weak handles, without the count that stands for all strong handles.
    pub(super) fn weak(&self) -> usize {
        let word = self.0.load();
        (weak(word) - u64::from(strong(word) != 0)) as usize
    }
    /// Returns whether there is only one handle. Then no other thread can make another handle, and
    /// the only handle can be used or dropped without counting.
    #[inline(always)]
    pub(super) fn is_sole(&self) -> bool {
        self.0.load() == ONE_STRONG + ONE_WEAK
    }

    #[inline(always)]
    pub(super) fn add_strong(&self) {
        if strong(self.0.add(ONE_STRONG)) >= TOO_MANY {
            self.0.sub(ONE_STRONG);
            too_many();
        }
    }
    #[inline(always)]
    pub(super) fn add_weak(&self) {
        if weak(self.0.add(ONE_WEAK)) >= TOO_MANY {
            self.0.sub(ONE_WEAK);
            too_many();
        }
    }

    /// Adds a strong handle, if the object still has a strong handle. Returns whether a handle was
    /// added.
    pub(super) fn lock(&self) -> bool {
        let mut seen = self.0.load();
        while strong(seen) != 0 {
            if strong(seen) >= TOO_MANY {
                too_many();
            }
            match self.0.exchange(seen, seen + ONE_STRONG) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
        false
    }

    /// Removes the strong handle, if it is the only one. Returns `true` if the object and one weak
    /// handle now belong to the caller. Returns `false`, and changes nothing, if there are other
    /// strong handles.
    pub(super) fn take_only(&self) -> bool {
        let mut seen = self.0.load();
        while strong(seen) == 1 {
            match self.0.exchange(seen, seen - ONE_STRONG) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
        false
    }

    /// Removes a strong handle. Returns `true` if it was the last strong handle. Then the caller
    /// drops the object, and after that removes a weak handle.
    #[inline(always)]
    pub(super) fn drop_strong(&self) -> bool {
        strong(self.0.sub(ONE_STRONG)) == 1
    }
    /// Removes a weak handle. Returns `true` if it was the last handle. Then the caller frees the
    /// slot.
    #[inline(always)]
    pub(super) fn drop_weak(&self) -> bool {
        weak(self.0.sub(ONE_WEAK)) == 1
    }
}

#[cold]
#[inline(never)]
fn too_many() -> ! {
    panic!(
        "mallard: 2^30 handles of one object exist already\n  \
         the requested handle was not created\n  \
         help: drop handles; `mem::forget` of a handle keeps its count for ever"
    )
}

mod word {
    /// A counter. `add` and `sub` return the value before the operation.
    pub trait Word {
        fn new(value: u64) -> Self;
        fn load(&self) -> u64;
        fn add(&self, some: u64) -> u64;
        fn sub(&self, some: u64) -> u64;
        fn exchange(&self, seen: u64, wanted: u64) -> Result<u64, u64>;
    }
}

impl word::Word for Local {
    #[inline(always)]
    fn new(value: u64) -> Self {
        Self(Cell::new(value))
    }
    #[inline(always)]
    fn load(&self) -> u64 {
        self.0.get()
    }
    #[inline(always)]
    fn add(&self, some: u64) -> u64 {
        self.0.replace(self.0.get() + some)
    }
    #[inline(always)]
    fn sub(&self, some: u64) -> u64 {
        self.0.replace(self.0.get() - some)
    }
    #[inline(always)]
    fn exchange(&self, _: u64, wanted: u64) -> Result<u64, u64> {
        Ok(self.0.replace(wanted))
    }
}

#[cfg(target_has_atomic = "64")]
impl word::Word for Atomic {
    #[inline(always)]
    fn new(value: u64) -> Self {
        Self(AtomicU64::new(value))
    }
    #[inline(always)]
    fn load(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
    #[inline(always)]
    fn add(&self, some: u64) -> u64 {
        self.0.fetch_add(some, Ordering::Relaxed)
    }
    #[inline(always)]
    fn sub(&self, some: u64) -> u64 {
        self.0.fetch_sub(some, Ordering::AcqRel)
    }
    #[inline(always)]
    fn exchange(&self, seen: u64, wanted: u64) -> Result<u64, u64> {
        self.0.compare_exchange_weak(seen, wanted, Ordering::Acquire, Ordering::Acquire)
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::{Atomic, HandleCounts};
    use crate::loom::{model, sync::Arc, thread, TrackedCell};
    use core::mem;

    /// An object with reference counts, for the loom model.
    struct Counted {
        counts: HandleCounts<Atomic>,
        lives: TrackedCell<bool>,
        in_use: TrackedCell<bool>,
    }

    /// Clears a flag. Requires that the flag was set, and that no other thread reads the flag at
    /// the same time.
    fn end(state: &TrackedCell<bool>) {
        // SAFETY: loom reports a data race on the cell.
        state.with_mut(|state| assert!(unsafe { mem::take(&mut *state) }));
    }

    impl Counted {
        fn new() -> Arc<Self> {
            let counts = HandleCounts::one();
            Arc::new(Self { counts, lives: TrackedCell::new(true), in_use: TrackedCell::new(true) })
        }
        fn look(&self) {
            // SAFETY: loom reports a data race on the cell.
            self.lives.with(|lives| assert!(unsafe { *lives }));
        }
        fn drop_strong(&self) {
            self.look();
            if self.counts.drop_strong() {
                end(&self.lives);
                self.drop_weak();
            }
        }
        fn drop_weak(&self) {
            if self.counts.drop_weak() {
                end(&self.in_use);
            }
        }
        fn upgrade_and_drop_weak(&self) {
            if self.counts.lock() {
                self.drop_strong();
            }
            self.drop_weak();
        }
        fn is_over(&self) {
            // SAFETY: loom reports a data race on the cell.
            let still = |state: &TrackedCell<bool>| state.with(|state| unsafe { *state });
            assert!(!still(&self.lives) && !still(&self.in_use));
        }
    }

    fn with_others<const N: usize>(
        others: [fn(&Counted); N],
        this: fn(&Counted),
        of: &Arc<Counted>,
    ) {
        let others = others.map(|other| {
            let of = of.clone();
            thread::spawn(move || other(&of))
        });
        this(of);
        others.into_iter().for_each(|other| other.join().unwrap());
        of.is_over();
    }

    #[test]
    fn the_last_strong_handle_drops_the_object_and_the_last_handle_frees_the_slot() {
        model(|| {
            let of = Counted::new();
            of.counts.add_strong();
            of.counts.add_weak();
            let others = [Counted::drop_strong, Counted::upgrade_and_drop_weak];
            with_others(others, Counted::drop_strong, &of);
        });
    }

    #[test]
    fn the_thread_that_unwraps_the_only_strong_handle_owns_the_object_alone() {
        model(|| {
            let of = Counted::new();
            of.counts.add_weak();
            let take = |of: &Counted| match of.counts.take_only() {
                true => {
                    end(&of.lives);
                    of.drop_weak();
                }
                false => of.drop_strong(),
            };
            with_others([Counted::upgrade_and_drop_weak], take, &of);
        });
    }

    #[test]
    fn the_only_handle_can_be_dropped_without_an_atomic_decrement() {
        model(|| {
            let of = Counted::new();
            of.counts.add_strong();
            let go = |of: &Counted| match of.counts.is_sole() {
                true => {
                    end(&of.lives);
                    end(&of.in_use);
                }
                false => of.drop_strong(),
            };
            with_others([Counted::drop_strong], go, &of);
        });
    }
}
