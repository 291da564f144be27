//! Tests the ways to free the blocks of an arena, and which values each way drops.

use super::Noted;
use crate::common::Flaky;
use mallard::Arena;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::rc::Rc;
use std::sync::Arc;

#[test]
fn a_reset_keeps_every_chunk_and_restarts_in_the_newest() {
    let source = Flaky::new();
    let mut arena = Arena::new_in(source.clone());
    for round in 0..3 {
        for n in 0..500_u64 {
            assert_eq!(*arena.alloc([n; 8]), [n; 8]);
        }
        let calls = source.calls();
        arena.reset();
        assert!(round == 0 || calls == source.calls());
        assert_eq!(source.chunks(), 4);
        assert_eq!(arena.statistics().bytes_live, 0);
    }
    let s = arena.statistics();
    assert_eq!(s.bytes_taken, source.taken());
    assert!(s.bytes_idle > 60_000);
}

#[test]
fn trim_returns_the_oldest_idle_chunks() {
    let source = Flaky::new();
    let mut arena = Arena::new_in(source.clone());
    arena.alloc_iter(0..100_u64);
    arena.alloc_iter(0..1000_u64);
    arena.alloc_iter(0..4000_u64);
    arena.reset();
    let all = source.taken();
    arena.trim(9_000);
    assert_eq!(source.taken(), all - 1024);
    arena.trim(0);
    assert_eq!(source.chunks(), 1); // only the current chunk is kept
    arena.release();
    assert_eq!(source.chunks(), 0);
    arena.alloc(1);
    assert_eq!(source.taken(), 1024); // growth restarts with the first chunk size
}

#[test]
fn a_rewind_frees_only_what_was_allocated_after_the_mark() {
    let source = Flaky::new();
    let arena = Arena::new_in(source.clone());
    let a = arena.alloc(17);
    let mark = arena.mark();
    let b = arena.alloc(1) as *mut i32;
    for n in 0..3000 {
        arena.alloc(n);
    }
    // SAFETY: nothing made after the mark is used any more.
    unsafe { arena.rewind(mark) };
    let taken = source.taken();
    assert_eq!(arena.alloc(2) as *mut i32, b);
    for n in 0..3000 {
        arena.alloc(n);
    }
    assert_eq!((*a, source.taken()), (17, taken));
    // SAFETY: nothing made after the mark is used any more.
    unsafe { arena.rewind(mark) };
    assert_eq!(*a, 17);
}

#[test]
fn nested_scopes_free_what_was_allocated_in_them() {
    let mut arena = Arena::new();
    arena.scope(|outer| {
        let kept = outer.alloc(String::from("leaks nothing if taken"));
        let mut places = Vec::new();
        for _ in 0..3 {
            outer.scope(|inner| {
                let block = inner.alloc([1_u8; 100]);
                places.push(block.as_ptr());
                kept.push('!');
                inner.scope(|third| assert_eq!(third.alloc_str("deep"), "deep"));
            });
        }
        places.dedup();
        assert_eq!(places.len(), 1);
        assert!(std::mem::take(kept).ends_with("!!!"));
    });
    assert_eq!(arena.statistics().bytes_live, 0);
}

#[test]
fn a_scope_can_own_values_that_borrow_local_variables() {
    let mut arena = Arena::new();
    let count = std::cell::Cell::new(0);
    struct Counts<'a>(&'a std::cell::Cell<i32>);
    impl Drop for Counts<'_> {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
        }
    }
    arena.scope(|s| {
        s.own(Counts(&count));
        s.own(Rc::new(Counts(&count)));
        s.scope(|t| t.own_pin(Counts(&count)).0.set(10));
        assert_eq!(count.get(), 11);
    });
    assert_eq!(count.get(), 13);
    let thrown = catch_unwind(AssertUnwindSafe(|| {
        arena.scope(|s| {
            s.own(Counts(&count));
            panic!("thrown")
        })
    }));
    assert!(thrown.is_err());
    assert_eq!((count.get(), arena.statistics().bytes_live), (14, 0));
}

#[test]
fn a_scope_guard_frees_its_objects_if_it_is_dropped_and_not_if_it_is_leaked() {
    let mut arena = Arena::new();
    {
        let mut outer = arena.guard();
        outer.alloc([0_u8; 100]);
        let inner = outer.guard();
        inner.own(String::from("inner"));
        drop(inner);
        assert_eq!(outer.statistics().bytes_live, 100);
        outer.scope(|s| assert_eq!(*s.alloc(3), 3));
        outer.reset();
        assert_eq!(outer.statistics().bytes_live, 0);
    }
    std::mem::forget({
        let guard = arena.guard();
        guard.alloc(1_u8);
        guard
    });
    assert_eq!(arena.statistics().bytes_live, 1);
    arena.reset();
    assert_eq!(arena.statistics().bytes_live, 0);
}

#[test]
fn every_way_of_freeing_drops_owned_values_newest_first() {
    let gone = Arc::default();
    let mut arena = Arena::new();
    let own = |arena: &Arena, n| arena.own(Noted(n, Arc::clone(&gone))).0;
    own(&arena, 1);
    own(&arena, 2);
    arena.reset();
    own(&arena, 3);
    let mark = arena.mark();
    own(&arena, 4);
    own(&arena, 5);
    // SAFETY: nothing made after the mark is used any more.
    unsafe { arena.rewind(mark) };
    assert_eq!(*gone.lock().unwrap(), [2, 1, 5, 4]);
    arena.release();
    own(&arena, 6);
    std::thread::spawn(move || drop(arena)).join().unwrap();
    assert_eq!(*gone.lock().unwrap(), [2, 1, 5, 4, 3, 6]);
}

#[test]
fn the_other_destructors_run_after_one_panics() {
    struct Throws;
    impl Drop for Throws {
        fn drop(&mut self) {
            panic!("thrown")
        }
    }
    let gone = Arc::default();
    let source = Flaky::new();
    for how in 0..3 {
        let mut arena = Arena::new_in(source.clone());
        arena.own(Noted(1, Arc::clone(&gone)));
        arena.own(Throws);
        arena.own(Noted(2, Arc::clone(&gone)));
        let thrown = catch_unwind(AssertUnwindSafe(|| match how {
            0 => arena.reset(),
            1 => arena.release(),
            _ => drop(std::mem::replace(&mut arena, Arena::new_in(source.clone()))),
        }));
        assert!(thrown.is_err());
        assert_eq!(std::mem::take(&mut *gone.lock().unwrap()), [2, 1]);
        arena.alloc(1);
    }
}

#[test]
fn after_a_rewind_blocks_are_allocated_in_the_chunk_of_the_mark() {
    let arena = Arena::new();
    let first = arena.alloc(1_u8) as *mut u8;
    arena.alloc_uninit_slice::<u8>(50_000); // has a separate chunk; the cursor stays in the first
    let mark = arena.mark();
    for _ in 0..2 {
        arena.alloc_uninit_slice::<u8>(30_000);
        arena.alloc_iter(0..10_000_u64);
        // SAFETY: nothing made after the mark is used any more.
        unsafe { arena.rewind(mark) };
        let next = arena.alloc(2_u8) as *mut u8;
        assert_eq!(next.addr(), first.addr() + 1);
    }
    assert_eq!(arena.statistics().chunks, 5);
}
