//! The state of one slot in a shared slot map. All threads change the state by atomic operations.

use crate::loom::atomic::{AtomicU64, Ordering};

/// The state of a slot. The state stays readable until the map is dropped, so a thread can read the
/// state of any key's slot.
///
/// ```text
/// { generation 32 | live 1 | guards 31 }
///
/// { g, 0, 0 }   owned by one thread, which makes or drops an element or frees the slot; or retired
/// { g, 1, n }   the element of generation g, with n guards
/// { g, 0, n }   removed; n guards still use the element
///
/// insert   { g, 0, 0 } -> { g, 1, 0 }   a store, by the thread that owns the slot
/// get      { g, 1, n } -> { g, 1, n+1 } a compare-exchange of the whole word, so that generation and
///                                       "live" hold when the guard is counted
/// remove   { g, 1, n } -> { g, 0, n }   a compare-exchange
/// take     { g, 1, 0 } -> { g, 0, 0 }   a compare-exchange
/// drop of a guard   n  -> n-1           a subtraction
/// renew    { g, 0, 0 } -> { g+1, 0, 0 } a store, by the thread that made { g, 0, 0 }
/// ```
///
/// Each operation takes effect at the one change that is listed here, or at the one load that makes
/// the operation fail. So the operations are linearisable. Only remove and take clear "live", and
/// no get succeeds after that. From then on the number of guards only falls. Exactly one change
/// makes the state `{ g, 0, 0 }`, and the thread that makes this change owns the slot.
pub(super) struct SlotState(AtomicU64);

const LIVE: u64 = 1 << 31;
const GUARDS: u64 = LIVE - 1;
/// The maximum number of guards for an element. A larger number means that guards were leaked. The
/// maximum is half of the largest number that fits, because a thread first counts its guard and
/// then compares.
const GUARDS_MAX: u64 = GUARDS / 2;

#[cold]
#[inline(never)]
fn too_many_guards() -> ! {
    struct Twice;
    impl Drop for Twice {
        fn drop(&mut self) {
            panic!("and so this ends"); // a second panic during this one ends the program
        }
    }
    let _twice = Twice;
    panic!("mallard: more than 2^30 guards of one element: they were leaked");
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Removal {
    Failed,
    /// The element still has guards. The thread that drops the last guard owns the slot.
    LeftToGuards,
    /// There are no guards, so the calling thread owns the slot.
    Alone,
}

impl SlotState {
    pub(super) fn new(generation: u64) -> Self {
        Self(AtomicU64::new(generation << 32))
    }
    fn is_live_in(state: u64, generation: u64) -> bool {
        state & !GUARDS == generation << 32 | LIVE
    }

    /// Returns whether the slot has an element. The result may be outdated, because another thread
    /// may change the slot at any time.
    pub(super) fn is_live(&self) -> bool {
        self.0.load(Ordering::Relaxed) & LIVE != 0
    }
    /// Returns whether the slot has a value, because the slot is live or guards were leaked.
    pub(super) fn has_value(&self) -> bool {
        self.0.load(Ordering::Relaxed) & (LIVE | GUARDS) != 0
    }
    pub(super) fn generation(&self) -> u64 {
        self.0.load(Ordering::Relaxed) >> 32
    }

    /// Starts an element, and returns its generation. The caller owns the slot. Each thread that
    /// reads the element sees everything that was written to the element before.
    #[inline(always)]
    pub(super) fn begin(&self) -> u64 {
        let state = self.0.load(Ordering::Relaxed);
        debug_assert!(state & (LIVE | GUARDS) == 0);
        self.0.store(state | LIVE, Ordering::Release);
        state >> 32
    }

    #[inline(always)]
    pub(super) fn is(&self, generation: u64) -> bool {
        Self::is_live_in(self.0.load(Ordering::Acquire), generation)
    }

    /// Counts a guard, if the slot has an element of this generation. Returns whether a guard was
    /// counted.
    #[inline(always)]
    pub(super) fn try_hold(&self, generation: u64) -> bool {
        let mut state = self.0.load(Ordering::Relaxed);
        while Self::is_live_in(state, generation) {
            match self.0.compare_exchange_weak(
                state,
                state + 1,
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => {
                    if state & GUARDS > GUARDS_MAX {
                        too_many_guards();
                    }
                    return true;
                }
                Err(now) => state = now,
            }
        }
        false
    }
    /// Counts another guard for a caller that has a guard already.
    pub(super) fn hold(&self) {
        if self.0.fetch_add(1, Ordering::Relaxed) & GUARDS > GUARDS_MAX {
            too_many_guards();
        }
    }
    /// Removes a guard. Returns `true` if it was the last guard of a removed element. Then the
    /// caller owns the slot.
    #[inline(always)]
    pub(super) fn let_go(&self) -> bool {
        self.0.fetch_sub(1, Ordering::AcqRel) & (LIVE | GUARDS) == 1
    }

    #[inline(always)]
    pub(super) fn try_remove(&self, generation: u64) -> Removal {
        // The first operation is a compare-exchange and not a load, because a load would wait for
        // an earlier locked operation.
        let mut state = generation << 32 | LIVE;
        while Self::is_live_in(state, generation) {
            match self.0.compare_exchange_weak(
                state,
                state & !LIVE,
                Ordering::AcqRel,
                Ordering::Relaxed,
            ) {
                Ok(_) if state & GUARDS == 0 => return Removal::Alone,
                Ok(_) => return Removal::LeftToGuards,
                Err(now) => state = now,
            }
        }
        Removal::Failed
    }
    /// Removes the element and makes the caller the owner of the slot. Returns `false` if the
    /// element has guards, or if the slot has no element of this generation.
    pub(super) fn try_take(&self, generation: u64) -> bool {
        let live = generation << 32 | LIVE;
        self.0.compare_exchange(live, generation << 32, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Sets a later generation. The caller owns the slot, and has to make the change visible to
    /// other threads by another atomic operation.
    #[inline(always)]
    pub(super) fn renew(&self, generation: u64) {
        self.0.store(generation << 32, Ordering::Relaxed);
    }

    /// Returns the result of `copy`, if the element stayed live during the copy. The words that
    /// `copy` loads with acquire order were stored with release order before `begin`. So if `copy`
    /// loads a word of a later element, this thread also sees that the earlier element was removed.
    #[inline(always)]
    pub(super) fn read<R>(&self, generation: u64, copy: impl FnOnce() -> R) -> Option<R> {
        if !self.is(generation) {
            return None;
        }
        let copy = copy();
        Self::is_live_in(self.0.load(Ordering::Relaxed), generation).then_some(copy)
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::sync::{atomic::AtomicU64, Arc};
    use loom::thread;
    use std::vec::Vec;

    /// A slot, its value, and how often the value was dropped, for the loom model.
    struct Cell {
        state: SlotState,
        value: loom::cell::UnsafeCell<u64>,
        ended: loom::sync::atomic::AtomicUsize,
    }
    // SAFETY: the state determines which thread owns the value.
    unsafe impl Sync for Cell {}
    // SAFETY: the state determines which thread owns the value.
    unsafe impl Send for Cell {}

    impl Cell {
        fn live() -> Arc<Self> {
            let cell = Self {
                state: SlotState::new(1),
                value: loom::cell::UnsafeCell::new(7),
                ended: loom::sync::atomic::AtomicUsize::new(0),
            };
            cell.state.begin();
            Arc::new(cell)
        }
        fn finish(&self) {
            self.value.with_mut(|_| ());
            self.ended.fetch_add(1, Ordering::Relaxed);
        }
        fn get(&self) {
            if self.state.try_hold(1) {
                // SAFETY: a guard keeps the value alive. Loom reports data races.
                self.value.with(|v| assert_eq!(unsafe { *v }, 7));
                if self.state.let_go() {
                    self.finish();
                }
            }
        }
        fn remove(&self) -> bool {
            match self.state.try_remove(1) {
                Removal::Failed => false,
                Removal::LeftToGuards => true,
                Removal::Alone => {
                    self.finish();
                    true
                }
            }
        }
    }

    #[test]
    fn a_value_is_dropped_once_and_only_after_its_guards() {
        loom::model(|| {
            let cell = Cell::live();
            let threads: Vec<_> = (0..2)
                .map(|_| {
                    let cell = cell.clone();
                    thread::spawn(move || cell.get())
                })
                .collect();
            assert!(cell.remove());
            threads.into_iter().for_each(|t| t.join().unwrap());
            assert_eq!(cell.ended.load(Ordering::Relaxed), 1);
            assert!(!cell.state.has_value());
        });
    }

    #[test]
    fn only_one_of_two_threads_removes_an_element() {
        loom::model(|| {
            let cell = Cell::live();
            let other = cell.clone();
            let thread = thread::spawn(move || other.remove());
            let mine = cell.state.try_take(1);
            if mine {
                cell.finish();
            }
            assert!(mine != thread.join().unwrap());
            assert_eq!(cell.ended.load(Ordering::Relaxed), 1);
        });
    }

    #[test]
    fn a_copied_element_is_never_a_mixture_of_two_elements() {
        loom::model(|| {
            let slot = Arc::new((SlotState::new(1), AtomicU64::new(1), AtomicU64::new(1)));
            slot.0.begin();
            let other = slot.clone();
            let thread = thread::spawn(move || {
                assert_eq!(other.0.try_remove(1), Removal::Alone);
                other.0.renew(2);
                other.1.store(2, Ordering::Release);
                other.2.store(2, Ordering::Release);
                other.0.begin();
            });
            for generation in [1, 2] {
                let copy = || (slot.1.load(Ordering::Acquire), slot.2.load(Ordering::Acquire));
                if let Some((a, b)) = slot.0.read(generation, copy) {
                    assert_eq!((a, b), (generation, generation));
                }
            }
            thread.join().unwrap();
        });
    }
}
