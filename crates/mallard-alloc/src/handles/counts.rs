//! How many handles there are of one object.

#[cfg(target_has_atomic = "64")]
use crate::loom::atomic::{AtomicU64, Ordering};
use core::cell::Cell;

/// How the handles of an object are counted: [`Local`] or [`Atomic`].
pub trait Counts: word::Word {}

/// For handles of one thread: what [`Rc`](super::Rc) has.
#[derive(Debug)]
pub struct Local(Cell<u64>);

/// For handles of many threads: what [`Arc`](super::Arc) has.
#[cfg(target_has_atomic = "64")]
#[derive(Debug)]
pub struct Atomic(AtomicU64);

impl Counts for Local {}
#[cfg(target_has_atomic = "64")]
impl Counts for Atomic {}

/// In a word {weak, strong}. The strong ones together hold one weak: the object dies with the
/// last strong handle, its slot becomes free with the last weak one.
///
/// ```text
///     strong > 0   ==   the object lives
///     weak > 0     ==   the slot is in use
/// ```
///
/// A strong handle may be copied as long as one exists, so a count of 0 is final; `lock`, which
/// has none, must never make 1 of it.
pub(super) struct HandleCounts<W>(W);

const ONE_STRONG: u64 = 1;
const ONE_WEAK: u64 = 1 << 32;
/// A quarter of what fits, so that it is noticed long before it would matter.
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
    /// One strong handle.
    #[inline(always)]
    pub(super) fn one() -> Self {
        Self(W::new(ONE_STRONG + ONE_WEAK))
    }
    pub(super) fn strong(&self) -> usize {
        strong(self.0.load()) as usize
    }
    /// Without that of the strong ones.
    pub(super) fn weak(&self) -> usize {
        let word = self.0.load();
        (weak(word) - u64::from(strong(word) != 0)) as usize
    }
    /// One handle, and nobody who might make another: it may go without counting.
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

    /// Another strong handle, if there is one.
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

    /// `true`: this was the only strong handle, and there is none any more; its weak one is the
    /// caller's to drop.
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

    /// `true`: that was the last strong handle; the object is the caller's to drop, and then a
    /// weak handle.
    #[inline(always)]
    pub(super) fn drop_strong(&self) -> bool {
        strong(self.0.sub(ONE_STRONG)) == 1
    }
    /// `true`: that was the last handle of all; the slot is the caller's to free.
    #[inline(always)]
    pub(super) fn drop_weak(&self) -> bool {
        weak(self.0.sub(ONE_WEAK)) == 1
    }
}

#[cold]
#[inline(never)]
fn too_many() -> ! {
    panic!(
        "mallard: 2^30 handles of one object\n  \
         the one asked for was not made\n  \
         help: handles that are forgotten count for ever"
    )
}

mod word {
    /// What counting is made of. `add` and `sub` say what it was before.
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

    /// Something with handles.
    struct Counted {
        counts: HandleCounts<Atomic>,
        lives: TrackedCell<bool>,
        in_use: TrackedCell<bool>,
    }

    /// It was so, and is so no more; nobody else looks.
    fn end(state: &TrackedCell<bool>) {
        // SAFETY: the model is there to find out.
        state.with_mut(|state| assert!(unsafe { mem::take(&mut *state) }));
    }

    impl Counted {
        fn new() -> Arc<Self> {
            let counts = HandleCounts::one();
            Arc::new(Self { counts, lives: TrackedCell::new(true), in_use: TrackedCell::new(true) })
        }
        fn look(&self) {
            // SAFETY: the same.
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
            // SAFETY: the same.
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
    fn an_object_ends_with_its_last_strong_handle_and_the_slot_with_the_last() {
        model(|| {
            let of = Counted::new();
            of.counts.add_strong();
            of.counts.add_weak();
            let others = [Counted::drop_strong, Counted::upgrade_and_drop_weak];
            with_others(others, Counted::drop_strong, &of);
        });
    }

    #[test]
    fn who_takes_the_only_strong_handle_has_the_object_alone() {
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
    fn the_sole_handle_need_not_count() {
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
