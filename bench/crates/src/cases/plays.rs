//! Prepares cases in several ways. The ways differ in what is made before the clock starts and what
//! is made in each pass.

use super::programs::Program;
use crate::contenders::objects::{Object, Objects, Plan};
use crate::harness::memory::Table;
use crate::harness::random::random_indices;
use crate::harness::{timed, Body, Effort, Entrant, Why};
use std::hint::black_box;
use std::mem::ManuallyDrop;

/// A way to prepare a case for any contender.
pub trait Play<T: Object>: Copy + 'static {
    fn prepare<P: Objects<T>>(self, effort: Effort) -> Result<Body, Why>;
}

pub fn entrant<T: Object, P: Objects<T>>(play: impl Play<T>) -> Entrant {
    Entrant { name: P::name(), prepare: Box::new(move |effort| play.prepare::<P>(effort)) }
}

const KEEPS_ALL: Why = "it frees nothing before it frees all";

/// Makes the pool before the first pass, and uses it in every pass.
#[derive(Clone, Copy)]
pub struct Outside<G>(pub G);

impl<T: Object, G: Program<T>> Play<T> for Outside<G> {
    fn prepare<P: Objects<T>>(self, _: Effort) -> Result<Body, Why> {
        if G::TAKES_BACK && !P::TAKES_BACK {
            return Err(KEEPS_ALL);
        }
        let mut pool = P::new(self.0.plan())?;
        Ok(timed(move || {
            self.0.pass(&pool);
            if !P::TAKES_BACK {
                pool.clear();
            }
        }))
    }
}

/// Makes a new pool in each pass, so that each pass measures the growth of the pool.
#[derive(Clone, Copy)]
pub struct Inside<G>(pub G);

impl<T: Object, G: Program<T>> Play<T> for Inside<G> {
    fn prepare<P: Objects<T>>(self, _: Effort) -> Result<Body, Why> {
        if G::TAKES_BACK && !P::TAKES_BACK {
            return Err(KEEPS_ALL);
        }
        P::new(self.0.plan())?;
        Ok(timed(move || {
            if let Ok(pool) = P::new(self.0.plan()) {
                self.0.pass(&pool);
            }
        }))
    }
}

/// Keeps the given number of objects live. A pass drops a random object and makes another.
#[derive(Clone, Copy)]
pub struct Live(pub usize);

impl<T: Object> Play<T> for Live {
    fn prepare<P: Objects<T>>(self, effort: Effort) -> Result<Body, Why> {
        if !P::TAKES_BACK {
            return Err(KEEPS_ALL);
        }
        let count = effort.count(self.0);
        let mut held = Held::<T, P>::new(P::new(Plan::of(count))?, count);
        Ok(timed(move || held.slots.replace(&held.pool)))
    }
}

/// Reads the given number of objects, in the order in which they were made.
#[derive(Clone, Copy)]
pub struct Read(pub usize);

impl<T: Object> Play<T> for Read {
    fn prepare<P: Objects<T>>(self, effort: Effort) -> Result<Body, Why> {
        let count = effort.count(self.0);
        let held = Held::<T, P>::new(P::new(Plan::of(count))?, count);
        Ok(timed(move || {
            let read = |sum: u64, h: &ManuallyDrop<_>| sum.wrapping_add(held.pool.get(h).number());
            black_box(held.slots.handles.iter().fold(0, read));
        }))
    }
}

/// A pool, and the handles of its objects. The handles are dropped before the pool.
struct Held<T: Object, P: Objects<T>> {
    slots: Slots<T, P>,
    pool: Box<P>,
}

impl<T: Object, P: Objects<T>> Held<T, P> {
    fn new(pool: P, count: usize) -> Self {
        let pool = Box::new(pool);
        let mut slots = Slots::empty(count);
        // SAFETY: the box keeps its address until `drop` has emptied the slots.
        unsafe { slots.fill(&*pool) };
        Self { slots, pool }
    }
}

impl<T: Object, P: Objects<T>> Drop for Held<T, P> {
    fn drop(&mut self) {
        // SAFETY: the pool still exists, and the slots were filled from it.
        unsafe { self.slots.empty_into(&*self.pool) };
    }
}

/// Holds the handles of live objects. `replace` drops one object and makes another in its place.
pub struct Slots<T: Object, P: Objects<T>> {
    pub handles: Vec<ManuallyDrop<P::Handle<'static>>>,
    which: Table<u32>,
    at: usize,
    count: usize,
}

/// Aborts the process if a contender panics while a place has no handle.
struct NoUnwinding;

impl Drop for NoUnwinding {
    fn drop(&mut self) {
        std::process::abort();
    }
}

impl<T: Object, P: Objects<T>> Slots<T, P> {
    pub fn empty(count: usize) -> Self {
        let which = random_indices(1 << 14, count);
        Self { handles: Vec::with_capacity(count), which, at: 0, count }
    }

    /// Makes an object for each place, and stores the handle there.
    ///
    /// # Safety
    ///
    /// The caller has to call `empty_into` before it drops the pool.
    pub unsafe fn fill(&mut self, pool: *const P) {
        // SAFETY: the caller keeps the contract of this function.
        let pool: &'static P = unsafe { &*pool };
        for i in 0..self.count {
            self.handles.push(ManuallyDrop::new(pool.make(T::of(i))));
        }
    }

    /// Drops all objects, and returns their memory to the pool.
    ///
    /// # Safety
    ///
    /// `pool` must be the pool that was passed to `fill`.
    pub unsafe fn empty_into(&mut self, pool: *const P) {
        // SAFETY: the caller keeps the contract of this function.
        let pool: &'static P = unsafe { &*pool };
        for handle in self.handles.drain(..) {
            pool.give(ManuallyDrop::into_inner(handle));
        }
    }

    #[inline(always)]
    pub fn replace(&mut self, pool: &P) {
        // SAFETY: the handles belong to this pool, which outlives them.
        let pool: &'static P = unsafe { &*std::ptr::from_ref(pool) };
        let index = self.which[self.at % self.which.len()] as usize;
        self.at += 1;
        let place = &mut self.handles[index];
        let whole = NoUnwinding;
        // SAFETY: another handle is immediately written to the place, or the process aborts.
        pool.give(unsafe { ManuallyDrop::take(place) });
        *place = ManuallyDrop::new(black_box(pool.make(black_box(T::of(42)))));
        std::mem::forget(whole);
    }
}
