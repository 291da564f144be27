//! Tests of pools of reference-counted objects.

use crate::common::{Flaky, Random};
use mallard::handles::{Arc, Handle, Local, Rc, Weak};
use mallard::{sync, ArcPool, RcPool, Validity};
use std::cell::Cell;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicUsize, Ordering};

const MANY: usize = if cfg!(miri) { 100 } else { 10_000 };

/// A value that adds one to a counter when it is dropped.
struct Ends<'c>(&'c Cell<usize>);
impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

#[test]
fn the_last_owner_drops_the_object() {
    let dead = Cell::new(0);
    let pool: RcPool<Ends> = RcPool::new();
    let first = pool.make(Ends(&dead));
    let second = Rc::clone(&first);
    assert!(Rc::ptr_eq(&first, &second));
    assert_eq!(Rc::strong_count(&first), 2);
    drop(first);
    assert_eq!(dead.get(), 0);
    drop(second);
    assert_eq!((dead.get(), pool.len()), (1, 0));
}

#[test]
fn a_weak_handle_keeps_the_slot_reserved_but_not_the_object_alive() {
    let dead = Cell::new(0);
    let pool: RcPool<Ends> = RcPool::new();
    let owner = pool.make(Ends(&dead));
    let weak = Rc::downgrade(&owner);
    let other = weak.clone();
    assert_eq!((Rc::weak_count(&owner), Rc::strong_count(&owner)), (2, 1));
    let again = weak.upgrade().unwrap();
    drop((owner, again));
    assert_eq!((dead.get(), pool.len()), (1, 1));
    assert!(weak.upgrade().is_none() && weak.ptr_eq(&other));
    assert_eq!(weak.strong_count(), 0);
    drop(weak);
    assert_eq!(pool.len(), 1);
    drop(other);
    assert_eq!(pool.len(), 0);
}

#[test]
fn the_only_owner_may_change_the_object_or_move_it_out() {
    let pool: RcPool<String> = RcPool::new();
    let mut owner = pool.make("a".into());
    Rc::get_mut(&mut owner).unwrap().push('b');
    let weak = Rc::downgrade(&owner);
    assert!(Rc::get_mut(&mut owner).is_none(), "a weak handle might become an owner");
    let other = owner.clone();
    let owner = Rc::try_unwrap(owner).unwrap_err();
    assert_eq!(Rc::into_inner(other), None);
    assert_eq!(Rc::try_unwrap(owner).unwrap(), "ab");
    assert!(weak.upgrade().is_none());
    assert_eq!(pool.len(), 1);
    drop(weak);
    assert_eq!(pool.len(), 0);
}

#[test]
fn dropping_the_pool_drops_objects_whose_handles_were_forgotten() {
    let dead = Cell::new(0);
    let mut pool: RcPool<Ends> = RcPool::new();
    std::mem::forget(pool.make(Ends(&dead)));
    let watched = pool.make(Ends(&dead));
    std::mem::forget(Rc::downgrade(&watched));
    drop(watched);
    assert_eq!((dead.get(), pool.len(), pool.iter().count()), (1, 2, 1));
    pool.clear();
    assert_eq!((dead.get(), pool.len()), (2, 0));
    std::mem::forget(pool.make(Ends(&dead)));
    drop(pool);
    assert_eq!(dead.get(), 3);
}

#[test]
fn a_full_pool_returns_the_value_and_a_panicking_constructor_leaks_no_slot() {
    let pool: RcPool<Box<u32>> = RcPool::fixed(1);
    let made = catch_unwind(AssertUnwindSafe(|| drop(pool.make_with(|| panic!("no")))));
    assert!(made.is_err());
    let only = pool.make(Box::new(1));
    assert_eq!(*pool.try_make(Box::new(2)).unwrap_err().into_inner(), 2);
    assert_eq!(pool.classify(Rc::as_ptr(&only).as_ptr()), Validity::Valid);

    struct Bad;
    impl Drop for Bad {
        fn drop(&mut self) {
            panic!("a destructor panics");
        }
    }
    let pool: RcPool<Bad> = RcPool::new();
    for weak in [false, true] {
        let bad = pool.make(Bad);
        let weak = weak.then(|| Rc::downgrade(&bad));
        assert!(catch_unwind(AssertUnwindSafe(|| drop(bad))).is_err());
        drop(weak);
        assert_eq!(pool.len(), 0);
    }
}

static SHARED: ArcPool<AtomicUsize, sync::Mutex> = ArcPool::new();

#[test]
fn several_threads_can_share_an_object_through_handles() {
    let object = SHARED.make(AtomicUsize::new(0));
    let weak = Arc::downgrade(&object);
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let (mine, weak) = (object.clone(), weak.clone());
            std::thread::spawn(move || {
                for _ in 0..MANY {
                    let again = weak.upgrade().unwrap();
                    again.fetch_add(1, Ordering::Relaxed);
                    drop(mine.clone());
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    drop(weak);
    assert_eq!(Arc::try_unwrap(object).unwrap().into_inner(), 4 * MANY);
}

#[test]
fn when_several_threads_unwrap_simultaneously_exactly_one_gets_the_object() {
    static POOL: ArcPool<String, sync::Mutex> = ArcPool::new();
    for _ in 0..if cfg!(miri) { 5 } else { 200 } {
        let object = POOL.make("mine".into());
        let other = object.clone();
        let weak = Arc::downgrade(&other);
        let thread = std::thread::spawn(move || Arc::into_inner(other).is_some());
        let watcher = std::thread::spawn(move || drop(weak.upgrade()));
        let here = Arc::into_inner(object).is_some();
        let there = thread.join().unwrap();
        watcher.join().unwrap();
        assert!(!(here && there));
    }
    assert_eq!(POOL.len(), 0);
}

#[test]
fn random_operations_have_the_same_results_as_a_model() {
    for seed in 0..if cfg!(miri) { 1 } else { 20 } {
        let mut random = Random::new(seed);
        let source = Flaky::new();
        let dead = Cell::new(0);
        let pool: RcPool<(u64, Ends), sync::Unshared<1024>, Flaky> = RcPool::new_in(source.clone());
        type Object<'c> = (u64, Ends<'c>);
        type Own<'p, 'c> = Handle<'p, Object<'c>, Local, sync::Unshared<1024>, Flaky>;
        let mut strong: Vec<(u64, Own)> = Vec::new();
        let mut weak: Vec<(u64, Weak<'_, _, _, _, _>)> = Vec::new();
        let mut made = 0;
        for _ in 0..MANY / 2 {
            match random.below(8) {
                0..3 => {
                    made += 1;
                    strong.push((made, pool.make((made, Ends(&dead)))));
                }
                3 if !strong.is_empty() => {
                    let (n, owner) = &strong[random.below(strong.len())];
                    strong.push((*n, owner.clone()));
                }
                4 if !strong.is_empty() => {
                    let (n, owner) = &strong[random.below(strong.len())];
                    weak.push((*n, Rc::downgrade(owner)));
                }
                5 if !weak.is_empty() => {
                    let (n, seen) = weak.swap_remove(random.below(weak.len()));
                    let lives = strong.iter().any(|(other, _)| *other == n);
                    assert_eq!(seen.upgrade().map(|owner| owner.0), lives.then_some(n));
                }
                _ if !strong.is_empty() => {
                    let (n, owner) = strong.swap_remove(random.below(strong.len()));
                    assert_eq!(owner.0, n);
                }
                _ => {}
            }
        }
        let mut live: Vec<u64> = strong.iter().map(|(n, _)| *n).collect();
        live.sort_unstable();
        live.dedup();
        assert_eq!(dead.get(), made as usize - live.len());
        let mut slots = live.clone();
        slots.extend(weak.iter().map(|(n, _)| *n));
        slots.sort_unstable();
        slots.dedup();
        assert_eq!(pool.len(), slots.len());
    }
}
