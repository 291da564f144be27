//! Tests of objects in arenas.

use super::{layout, Noted};
use crate::common::Flaky;
use mallard::arena::Box as ABox;
use mallard::{unsize_box, Arena, BlockAllocator, Buffer, Cause, Growth, Null};
use std::cell::Cell;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

#[test]
fn when_the_source_is_exhausted_the_error_returns_the_value_or_closure() {
    let arena = Arena::new_in(Null);
    assert_eq!(arena.try_alloc(String::from("mine")).unwrap_err().into_inner(), "mine");
    let Err(full) = arena.try_alloc_with(|| 7) else { panic!() };
    let make = full.into_inner();
    assert_eq!(make(), 7);
    assert_eq!(arena.try_own(String::from("mine")).unwrap_err().into_inner(), "mine");
    assert_eq!(arena.try_alloc_box(String::from("mine")).unwrap_err().into_inner(), "mine");
    assert!(arena.try_alloc_str("text").is_err());
    assert!(arena.try_alloc_iter(0..3).is_err());
    assert!(arena.try_alloc_fmt(format_args!("{}", 1)).is_err());
    assert!(arena.try_alloc_slice_copy(&[1]).is_err());
    assert!(arena.try_alloc_slice_clone(&[String::new()]).is_err());
    assert!(arena.try_alloc_slice_fill_with(3, |n| n).is_err());
    assert!(arena.try_alloc_box_iter(0..3).is_err());
    assert!(arena.try_alloc_uninit::<u8>().is_err());
    assert!(arena.try_alloc_layout(layout(1, 1)).is_err());
    assert!(arena.try_reserve(1).is_err());
    assert_eq!(arena.statistics().bytes_taken, 0);
}

#[test]
fn zero_sized_values_have_dangling_pointers_and_use_no_memory() {
    let arena = Arena::new_in(Null);
    #[repr(align(64))]
    struct Wide;
    assert_eq!((arena.alloc(Wide) as *mut Wide).addr() % 64, 0);
    assert_eq!(arena.alloc_layout(layout(0, 4096)).addr().get(), 4096);
    assert_eq!(arena.alloc_str(""), "");
    assert_eq!(arena.alloc_iter(0..0), [] as [i32; 0]);
    assert_eq!(arena.alloc_iter([(); 100]).len(), 100);
    assert_eq!(arena.alloc_slice_copy::<u64>(&[]), [] as [u64; 0]);
    let nothing = arena.alloc_layout(layout(0, 8));
    // SAFETY: the block is from this arena.
    unsafe { arena.deallocate(nothing, layout(0, 8)) };
    // SAFETY: the block is from this arena.
    assert!(!unsafe { arena.try_expand(nothing, layout(0, 8), layout(8, 8)) });
    assert_eq!(arena.statistics().bytes_taken, 0);
}

#[test]
fn a_panic_in_a_constructor_frees_the_block() {
    let arena = Arena::new();
    arena.alloc(1_u8);
    let gone = Arc::default();
    let live = arena.statistics().bytes_live;
    let thrown = |f: &mut dyn FnMut()| assert!(catch_unwind(AssertUnwindSafe(f)).is_err());
    thrown(&mut || *arena.alloc_with(|| panic!("thrown")));
    thrown(&mut || {
        let items = (0..100).map(|n| match n {
            57 => panic!("thrown"),
            n => Noted(n, Arc::clone(&gone)),
        });
        arena.alloc_iter(items.filter(|_| true));
    });
    assert_eq!(gone.lock().unwrap().len(), 57);
    let error: Result<&mut [u8; 100], _> = arena.alloc_try_with(|| Err("no"));
    assert_eq!(error.unwrap_err(), "no");
    // The failed allocations left no live bytes except padding.
    assert!(arena.statistics().bytes_live <= live + 15);
}

#[test]
fn an_iterator_of_unknown_length_grows_in_place() {
    let source = Flaky::new();
    let (step, count) = if cfg!(miri) { (1 << 12, 300) } else { (1 << 16, 5000) };
    let arena = Arena::with_growth_in(Growth::fixed(step), source.clone());
    let odd = arena.alloc_iter((0..count).filter(|n: &u32| n % 2 == 1));
    assert!(odd.iter().copied().eq((0..count / 2).map(|n| 2 * n + 1)));
    assert_eq!(arena.statistics().bytes_live, 2 * count as usize);
    // The slice moves if its iterator allocates from the same arena.
    let texts = arena.alloc_iter((0..100).map(|n| &*arena.alloc_str(&n.to_string())));
    assert!(texts.iter().enumerate().all(|(n, text)| *text == n.to_string()));
    // A slice also moves when it continues in the next chunk.
    let many = arena.alloc_iter((0..10 * count).filter(|_| true));
    assert!(many.iter().copied().eq(0..10 * count));
}

#[test]
fn alloc_iter_without_memory_drops_every_element() {
    let source = Flaky::new();
    let gone = Arc::default();
    for successes in 0..6 {
        let mut arena = Arena::with_growth_in(Growth::fixed(256), source.clone());
        source.fail_after(successes);
        let items = (0..500).map(|n| Noted(n, Arc::clone(&gone))).filter(|_| true);
        let result = arena.try_alloc_box_iter(items).map(|slice| slice.len());
        source.recover();
        assert!(result == Ok(500) || result.is_err_and(|full| full.cause() == Cause::NoMemory));
        let mut all = std::mem::take(&mut *gone.lock().unwrap());
        all.sort();
        assert!(all.iter().copied().eq(0..all.len()));
        arena.reset();
        assert_eq!(arena.alloc_iter(0..50).len(), 50);
    }
}

#[test]
fn text_and_slices_are_copied() {
    let arena = Arena::new();
    let text = arena.alloc_str("duck");
    text.make_ascii_uppercase();
    assert_eq!(text, "DUCK");
    assert_eq!(arena.alloc_slice_copy(&[1_u64, 2, 3]), [1, 2, 3]);
    let cloned = arena.alloc_slice_clone(&["a".to_string(), "b".to_string()]);
    assert_eq!(cloned.iter_mut().map(std::mem::take).collect::<String>(), "ab");
    assert_eq!(arena.alloc_slice_fill_with(4, |n| n * n), [0, 1, 4, 9]);
    assert_eq!(arena.alloc_fmt(format_args!("{}-{:?}", 1, "x")), "1-\"x\"");
    assert_eq!(arena.alloc_fmt(format_args!("plain")), "plain");
    let long = arena.alloc_fmt(format_args!("{:>5000}", 7));
    assert_eq!((long.len(), &long[4999..]), (5000, "7"));
    assert_eq!(arena.alloc_uninit::<u32>().write(4), &4);
    assert_eq!(arena.alloc_uninit_slice::<u32>(9).len(), 9);
}

#[test]
fn a_formatting_error_is_not_reported_as_an_allocation_failure() {
    struct Mute;
    impl std::fmt::Display for Mute {
        fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            Err(std::fmt::Error)
        }
    }
    let arena = Arena::new();
    assert!(arena.try_alloc_fmt(format_args!("{Mute}")).is_err());
    let thrown = catch_unwind(AssertUnwindSafe(|| arena.alloc_fmt(format_args!("ab{Mute}")).len()));
    assert!(thrown.is_err());
    assert_eq!(arena.statistics().bytes_live, 0);
}

#[test]
fn a_box_drops_its_value_and_frees_its_block() {
    let gone = Arc::default();
    let arena = Arena::new();
    let a = arena.alloc_box(Noted(1, Arc::clone(&gone)));
    let place = &raw const *a;
    drop(a);
    let b = arena.alloc_box(Noted(2, Arc::clone(&gone)));
    assert_eq!(&raw const *b, place);
    let out = b.into_inner();
    assert_eq!((out.0, arena.statistics().bytes_live), (2, 0));
    let leaked = arena.alloc_box(Noted(3, Arc::clone(&gone))).leak();
    leaked.0 = 4;
    drop(out);
    assert_eq!(*gone.lock().unwrap(), [1, 2]);
    // SAFETY: nothing else drops the value.
    unsafe { std::ptr::drop_in_place(leaked) };
    let some = arena.alloc_box_iter((5..8).map(|n| Noted(n, Arc::clone(&gone))));
    assert_eq!(some.len(), 3);
    drop(some);
    assert_eq!(*gone.lock().unwrap(), [1, 2, 4, 5, 6, 7]);
    assert_eq!(size_of::<Option<ABox<u64>>>(), 2 * size_of::<usize>());
}

#[test]
fn a_box_of_a_trait_object_drops_the_concrete_value() {
    trait Speak {
        fn speak(&self) -> usize;
    }
    impl Speak for Noted {
        fn speak(&self) -> usize {
            self.0
        }
    }
    let gone = Arc::default();
    let arena = Arena::new();
    let b: ABox<'_, dyn Speak> = unsize_box!(arena.alloc_box(Noted(9, Arc::clone(&gone))));
    assert_eq!(b.speak(), 9);
    drop(b);
    assert_eq!((gone.lock().unwrap().len(), arena.statistics().bytes_live), (1, 0));
}

#[test]
fn a_box_has_the_traits_of_its_value() {
    use std::collections::HashSet;
    let arena = Arena::new();
    let (mut a, b) = (arena.alloc_box(3), arena.alloc_box(4));
    assert!(a < b && a != b && format!("{a} {b:?}") == "3 4");
    *a += 1;
    assert_eq!(a, b);
    assert!(HashSet::from([a]).contains(&4));
    assert_eq!(arena.alloc_box(0..3).sum::<i32>(), 3);
    let mut text = arena.alloc_box(String::new());
    std::fmt::Write::write_str(&mut *text, "x").unwrap();
    let mut future = arena.alloc_box(std::future::ready(1));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let future = std::pin::Pin::new(&mut future);
    assert!(std::future::Future::poll(future, &mut context).is_ready());
}

#[test]
fn a_box_whose_destructor_panics_frees_its_block() {
    struct Throws(#[allow(dead_code)] [u8; 50]);
    impl Drop for Throws {
        fn drop(&mut self) {
            panic!("thrown")
        }
    }
    let arena = Arena::new();
    let b = arena.alloc_box(Throws([0; 50]));
    assert!(catch_unwind(AssertUnwindSafe(|| drop(b))).is_err());
    assert_eq!(arena.statistics().bytes_live, 0);
}

#[test]
fn moving_a_value_into_an_arena_drops_it_once() {
    static DROPS: AtomicUsize = AtomicUsize::new(0);
    struct Counts;
    impl Drop for Counts {
        fn drop(&mut self) {
            DROPS.fetch_add(1, Ordering::Relaxed);
        }
    }
    let arena = Arena::new();
    arena.alloc((Counts, 1)); // never dropped
    arena.own((Counts, 1)); // dropped at the end
    arena.own(Counts);
    drop(arena.alloc_box((Counts, 1)));
    assert_eq!(DROPS.load(Ordering::Relaxed), 1);
    drop(arena);
    assert_eq!(DROPS.load(Ordering::Relaxed), 3);
}

#[test]
fn an_arena_can_be_sent_and_its_boxes_cannot() {
    fn is_send<T: Send>() {}
    is_send::<Arena>();
    is_send::<Arena<Buffer<'_>, 8>>();
    is_send::<mallard::TypedArena<String>>();
    is_send::<mallard::SharedArena>();
    is_send::<ABox<'_, String, mallard::SharedArena>>();
}

#[test]
fn into_iter_of_a_boxed_slice_drops_the_remaining_elements() {
    let arena = Arena::new();
    let ends = Cell::new(0);
    struct End<'c>(&'c Cell<u32>, u32);
    impl Drop for End<'_> {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
            assert!(self.1 != 13 || std::thread::panicking(), "unlucky");
        }
    }
    let before = arena.statistics().bytes_live;
    let slice = arena.alloc_box_iter((0..5).map(|i| End(&ends, i)));
    let mut elements = slice.into_iter();
    assert_eq!((elements.len(), elements.next().unwrap().1), (5, 0));
    assert_eq!(elements.next_back().unwrap().1, 4);
    assert_eq!(format!("{elements:?}"), "IntoIter { left: 3, .. }");
    drop(elements);
    assert_eq!((ends.get(), arena.statistics().bytes_live), (5, before));

    let unlucky = arena.alloc_box_iter([1, 13, 2].map(|i| End(&ends, i))).into_iter();
    assert!(catch_unwind(AssertUnwindSafe(|| drop(unlucky))).is_err());
    assert_eq!((ends.get(), arena.statistics().bytes_live), (8, before));

    let mut numbers = arena.alloc_box_iter(0..3);
    for number in &mut numbers {
        *number += 1;
    }
    assert_eq!((&numbers).into_iter().sum::<i32>(), 6);
    let nothings = arena.alloc_box_iter([(); 7]);
    assert_eq!(nothings.into_iter().count(), 7);
    let boxed: mallard::arena::Box<dyn Iterator<Item = i32> + '_> =
        unsize_box!(arena.alloc_box(numbers.iter().copied()));
    assert_eq!(boxed.collect::<Vec<_>>(), [1, 2, 3]);
}
