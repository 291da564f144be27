//! Runs fastalloc's programs in several threads. All threads make objects in one pool.

use crate::contenders::mallard_objects::{MallardFixed, MallardPool};
use crate::contenders::objects::{Object, Objects, Plan};
use crate::contenders::objects_peers as peers;
use crate::harness::crew::Crew;
use crate::harness::{clock, Body, Effort, Entrant, Experiment, Why};
use mallard::sync;
use std::cell::UnsafeCell;
use std::hint::black_box;
use std::marker::PhantomData;

use super::plays::Slots;

/// A way to prepare a case for any contender that several threads may share.
trait SharedPlay<T: Object>: Copy + 'static {
    fn prepare<P: Objects<T> + Sync>(self, effort: Effort) -> Result<Body, Why>;
}

fn entrant<T: Object, P: Objects<T> + Sync>(play: impl SharedPlay<T>) -> Entrant {
    Entrant { name: P::name(), prepare: Box::new(move |effort| play.prepare::<P>(effort)) }
}

fn entrant_of<T: Object, P: Objects<T> + Sync>(
    _: PhantomData<P>,
    play: impl SharedPlay<T>,
) -> Entrant {
    entrant::<T, P>(play)
}

/// Lists every contender that makes objects for several threads.
fn everyone<T: Object>(play: impl SharedPlay<T>) -> Vec<Entrant> {
    vec![
        entrant::<T, peers::Boxes>(play),
        entrant::<T, MallardPool<T, sync::ThreadCached>>(play),
        entrant::<T, MallardFixed<T, sync::LockFree>>(play),
        entrant::<T, MallardPool<T, sync::Mutex>>(play),
        entrant_of(peers::thread_safe(|pool, value: T| pool.allocate(value).unwrap()), play),
        entrant::<T, peers::ObjectPool<T>>(play),
        entrant::<T, peers::Opool<T>>(play),
        entrant::<T, peers::LinearPool<T>>(play),
        entrant::<T, peers::Heapless<T>>(play),
    ]
}

pub fn experiments() -> Vec<Experiment> {
    let mut all = Vec::new();
    for threads in [1, 2, 4, 8] {
        let pairs = 100;
        let case = format!("fastalloc/threads/T{threads}");
        let spawned = Spawned { threads, pairs, capacity: 10_000 };
        let kept = Kept { threads, live: pairs, capacity: 10_000 };
        let faithful = Experiment::new(
            &case,
            format!(
                "{threads} threads are started, and each makes and drops {pairs} i32. ns of both"
            ),
            everyone::<i32>(spawned),
        );
        let corrected = Experiment::new(
            &case,
            format!(
                "{threads} threads, each with {pairs} i32 of which a random one is dropped and \
                 another made. ns of both"
            ),
            everyone::<i32>(kept),
        );
        all.push(faithful.ops(threads * pairs).threads(threads).variant("faithful").not_in_brief());
        all.push(corrected.ops(threads * pairs).threads(threads).variant("corrected"));
    }
    for (name, capacity, threads, pairs) in [("high", 50, 8, 10), ("low", 10_000, 2, 100)] {
        let case = format!("fastalloc/contention/{name}");
        let asks = format!(
            "{threads} threads each make and drop {pairs} i32, one at a time, in a pool for \
             {capacity}. ns of both"
        );
        let spawned = everyone::<i32>(Spawned { threads, pairs, capacity });
        let faithful = Experiment::new(&case, &asks, spawned);
        let kept = everyone::<i32>(Pairs { threads, pairs, capacity });
        let corrected = Experiment::new(&case, &asks, kept);
        all.push(faithful.ops(threads * pairs).threads(threads).variant("faithful").not_in_brief());
        all.push(corrected.ops(threads * pairs).threads(threads).variant("corrected"));
    }
    all
}

/// Starts threads in each pass and includes their start in the time, as fastalloc's benchmark does.
#[derive(Clone, Copy)]
struct Spawned {
    threads: usize,
    pairs: usize,
    capacity: usize,
}

#[inline(always)]
fn make_and_drop<T: Object, P: Objects<T>>(pool: &P, pairs: usize) {
    for i in 0..pairs {
        let handle = pool.make(black_box(T::of(i)));
        pool.give(black_box(handle));
    }
}

impl<T: Object> SharedPlay<T> for Spawned {
    fn prepare<P: Objects<T> + Sync>(self, _: Effort) -> Result<Body, Why> {
        let pool = P::new(Plan::of(self.capacity))?;
        Ok(Box::new(move |passes, spent| {
            let (wall, cpu) = (clock::wall_ns(), clock::process_cpu_ns());
            for _ in 0..passes {
                std::thread::scope(|scope| {
                    for _ in 0..self.threads {
                        scope.spawn(|| make_and_drop(&pool, self.pairs));
                    }
                });
            }
            spent[0] += clock::wall_ns() - wall;
            spent[1] += clock::process_cpu_ns() - cpu;
        }))
    }
}

/// Starts the threads before the first pass. Each thread has one object at a time.
#[derive(Clone, Copy)]
struct Pairs {
    threads: usize,
    pairs: usize,
    capacity: usize,
}

impl<T: Object> SharedPlay<T> for Pairs {
    fn prepare<P: Objects<T> + Sync>(self, _: Effort) -> Result<Body, Why> {
        let pool = P::new(Plan::of(self.capacity))?;
        let crew = Crew::new(self.threads);
        Ok(Box::new(move |passes, spent| {
            let took = crew.run(&|_| {
                for _ in 0..passes {
                    make_and_drop(&pool, self.pairs);
                }
            });
            spent[0] += took.wall_ns;
            spent[1] += took.cpu_ns;
        }))
    }
}

/// Starts the threads before the first pass. Each thread replaces its own objects.
#[derive(Clone, Copy)]
struct Kept {
    threads: usize,
    live: usize,
    capacity: usize,
}

impl<T: Object> SharedPlay<T> for Kept {
    fn prepare<P: Objects<T> + Sync>(self, _: Effort) -> Result<Body, Why> {
        let held = Shared::<T, P>::new(P::new(Plan::of(self.capacity))?, self.threads, self.live);
        Ok(Box::new(move |passes, spent| {
            let took = held.crew.run(&|i| {
                // SAFETY: only thread `i` uses these slots.
                let slots = unsafe { held.slots[i].get() };
                for _ in 0..passes * self.live as u64 {
                    slots.replace(&held.pool);
                }
            });
            spent[0] += took.wall_ns;
            spent[1] += took.cpu_ns;
        }))
    }
}

/// The handles of one thread. Only that thread makes, replaces and drops the objects.
#[repr(align(128))]
struct OfThread<T: Object, P: Objects<T>>(UnsafeCell<Slots<T, P>>);

// SAFETY: only one thread calls `get`, and it makes and drops the handles.
unsafe impl<T: Object, P: Objects<T>> Sync for OfThread<T, P> {}

impl<T: Object, P: Objects<T>> OfThread<T, P> {
    /// Returns the handles of one thread.
    ///
    /// # Safety
    ///
    /// Only one thread may call this function.
    #[allow(clippy::mut_from_ref)]
    unsafe fn get(&self) -> &mut Slots<T, P> {
        // SAFETY: the caller keeps the contract of this function.
        unsafe { &mut *self.0.get() }
    }
}

/// A pool, and a group of threads that each hold handles of its objects.
struct Shared<T: Object, P: Objects<T> + Sync> {
    slots: Vec<OfThread<T, P>>,
    crew: Crew,
    pool: Box<P>,
}

impl<T: Object, P: Objects<T> + Sync> Shared<T, P> {
    fn new(pool: P, threads: usize, live: usize) -> Self {
        let slots = (0..threads).map(|_| OfThread(UnsafeCell::new(Slots::empty(live)))).collect();
        let all = Self { slots, crew: Crew::new(threads), pool: Box::new(pool) };
        // SAFETY: each thread has slots of its own, and `drop` empties them before it drops the
        // pool.
        all.crew.run(&|i| unsafe { all.slots[i].get().fill(&*all.pool) });
        all
    }
}

impl<T: Object, P: Objects<T> + Sync> Drop for Shared<T, P> {
    fn drop(&mut self) {
        // SAFETY: each thread has slots of its own, and the pool still exists.
        self.crew.run(&|i| unsafe { self.slots[i].get().empty_into(&*self.pool) });
    }
}
