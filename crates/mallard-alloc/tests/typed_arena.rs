//! Tests of the arena for values of one type.

use crate::common::{Flaky, Random};
use mallard::{Cause, Growth, Null, TypedArena};
use std::cell::{Cell, RefCell};
use std::panic::{catch_unwind, AssertUnwindSafe};

thread_local! {
    static GONE: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

fn gone() -> Vec<usize> {
    GONE.take()
}

/// A value that records its drop, and can panic when it is dropped.
struct Noted(usize, bool);

impl Noted {
    fn new(n: usize) -> Self {
        Self(n, false)
    }
}

impl Drop for Noted {
    fn drop(&mut self) {
        GONE.with_borrow_mut(|gone| gone.push(self.0));
        assert!(!self.1, "thrown");
    }
}

#[test]
fn a_new_typed_arena_allocates_no_memory() {
    static _CONST: std::sync::Mutex<TypedArena<u8>> = std::sync::Mutex::new(TypedArena::new());
    let source = Flaky::new();
    let arena = TypedArena::<String, _>::new_in(source.clone());
    assert!(arena.is_empty());
    assert_eq!(source.calls(), 0);
}

#[test]
fn values_are_contiguous_and_are_dropped_in_order() {
    let source = Flaky::new();
    let arena = TypedArena::new_in(source.clone());
    let first = &raw const *arena.alloc(Noted::new(0));
    let second = &raw const *arena.alloc(Noted::new(1));
    assert_eq!(second.addr() - first.addr(), size_of::<Noted>());
    for n in 2..1000 {
        arena.alloc(Noted::new(n));
    }
    assert_eq!((arena.len(), arena.statistics().blocks_live), (1000, 1000));
    drop(arena);
    assert!(gone().into_iter().eq(0..1000));
}

#[test]
fn values_may_refer_to_each_other() {
    struct Node<'a>(#[allow(dead_code)] Vec<u8>, Cell<Option<&'a Node<'a>>>);
    let nodes = TypedArena::new();
    let a = nodes.alloc(Node(vec![1], Cell::new(None)));
    let b = nodes.alloc(Node(vec![2], Cell::new(Some(a))));
    a.1.set(Some(b));
    assert!(std::ptr::eq(b.1.get().unwrap(), a));
}

#[test]
fn a_reset_drops_the_values_and_keeps_the_memory() {
    let source = Flaky::new();
    let mut arena = TypedArena::new_in(source.clone());
    for _ in 0..3 {
        arena.alloc_extend((0..600).map(Noted::new));
        arena.reset();
        assert!(gone().into_iter().eq(0..600));
        assert!(arena.is_empty());
    }
    assert_eq!(source.calls(), 1);
    arena.release();
    assert_eq!(source.chunks(), 0);
    arena.alloc(Noted::new(7));
}

#[test]
fn all_values_are_visited_in_order_and_can_be_moved_into_a_vector() {
    let mut arena = TypedArena::new();
    for n in 0..300 {
        arena.alloc(n.to_string());
        arena.alloc_extend((0..n % 7).map(|m| format!("{n}.{m}")));
    }
    arena.iter_mut().for_each(|text| text.push('!'));
    let expected = (0..300).flat_map(|n: u32| {
        std::iter::once(n.to_string() + "!").chain((0..n % 7).map(move |m| format!("{n}.{m}!")))
    });
    assert!((&mut arena).into_iter().map(|text| text.clone()).eq(expected.clone()));
    assert!(arena.into_vec().into_iter().eq(expected));
    assert_eq!(TypedArena::<u8>::new().into_vec(), [] as [u8; 0]);
    assert_eq!((0..5).collect::<TypedArena<_>>().into_vec(), [0, 1, 2, 3, 4]);
}

#[test]
fn zero_sized_values_are_counted_and_dropped() {
    thread_local!(static DROPS: Cell<usize> = const { Cell::new(0) });
    struct Nothing;
    impl Drop for Nothing {
        fn drop(&mut self) {
            DROPS.set(DROPS.get() + 1);
        }
    }
    let mut arena = TypedArena::new_in(Null);
    arena.alloc(Nothing);
    assert_eq!(arena.alloc_extend([Nothing, Nothing]).len(), 2);
    assert_eq!((arena.len(), arena.iter_mut().count(), DROPS.get()), (3, 3, 0));
    arena.reset();
    assert_eq!((arena.len(), DROPS.get()), (0, 3));
    arena.alloc(Nothing);
    drop(arena.into_vec());
    assert_eq!(DROPS.get(), 4);
}

#[test]
fn large_alignments_work() {
    #[repr(align(128))]
    struct Wide(u8);
    let mut arena = TypedArena::new();
    assert!(arena.alloc_extend([]).is_empty());
    for n in 0..100 {
        let wide = arena.alloc(Wide(n));
        assert_eq!((&raw const *wide).addr() % 128, 0);
    }
    assert!(arena.iter_mut().map(|wide| wide.0).eq(0..100));
}

#[test]
fn an_iterator_passed_to_the_arena_may_allocate_from_it() {
    let arena = TypedArena::new();
    let outer = arena.alloc_extend((0..500).map(|n| {
        if n % 50 == 0 {
            arena.alloc_extend((1000..1010).map(Noted::new));
        }
        arena.alloc(Noted::new(2000 + n));
        Noted::new(n)
    }));
    assert!(outer.iter().map(|noted| noted.0).eq(0..500));
    assert_eq!(arena.len(), 500 + 500 + 100);
    drop(arena);
    let mut all = gone();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 500 + 500 + 10);
}

#[test]
fn an_iterator_that_panics_leaves_no_gap() {
    let mut arena = TypedArena::new();
    arena.alloc(Noted::new(0));
    for stop in [0, 1, 100, 3000] {
        let thrown = catch_unwind(AssertUnwindSafe(|| {
            let numbers = (1..).filter(|_| true); // the filter hides the number of items
            arena.alloc_extend(numbers.map(|n| match n > stop {
                true => panic!("thrown"),
                false => {
                    if n == 50 {
                        arena.alloc(Noted::new(9999));
                    }
                    Noted::new(n)
                }
            }));
        }));
        assert!(thrown.is_err());
        assert!(gone().into_iter().eq(1..stop + 1));
    }
    assert_eq!(arena.iter_mut().map(|noted| noted.0).collect::<Vec<_>>(), [0, 9999, 9999]);
}

#[test]
fn the_other_destructors_run_after_one_panics() {
    for how in 0..3 {
        let source = Flaky::new();
        let mut arena = TypedArena::with_growth_in(Growth::fixed(256), source.clone());
        for n in 0..100 {
            arena.alloc(Noted(n, n == 30));
        }
        let thrown = catch_unwind(AssertUnwindSafe(|| match how {
            0 => arena.reset(),
            1 => arena.release(),
            _ => drop(std::mem::replace(&mut arena, TypedArena::new_in(source.clone()))),
        }));
        assert!(thrown.is_err());
        assert!(gone().into_iter().eq(0..100));
        assert!(arena.is_empty());
    }
}

#[test]
fn if_the_source_is_exhausted_the_error_returns_the_value() {
    let arena = TypedArena::new_in(Null);
    assert_eq!(arena.try_alloc(String::from("mine")).unwrap_err().into_inner(), "mine");
    assert_eq!(arena.try_alloc_extend([String::new()]).unwrap_err().cause(), Cause::NoMemory);
    assert!(arena.try_reserve(1).is_err());
    assert!(TypedArena::<u64>::new().try_reserve(usize::MAX / 4).is_err());
    assert!(TypedArena::with_growth(Growth::none(256)).try_alloc([0_u8; 300]).is_err());
}

#[test]
fn reserved_capacity_is_requested_in_one_chunk() {
    let source = Flaky::new();
    let arena = TypedArena::new_in(source.clone());
    arena.alloc(0_u64);
    arena.reserve(5000);
    let calls = source.calls();
    arena.alloc_extend(0..5000);
    assert_eq!(source.calls(), calls);
    assert!(TypedArena::<u64>::with_capacity(5000).statistics().bytes_idle >= 40_000);
}

#[test]
fn random_operations_have_the_same_results_as_a_vector() {
    for seed in 0..if cfg!(miri) { 3 } else { 300 } {
        let mut random = Random::new(seed);
        let source = Flaky::new();
        let growth = Growth { first: 64 + random.below(500), ..Growth::new() };
        let mut arena = TypedArena::with_growth_in(growth, source.clone());
        let mut model = Vec::new();
        for n in 0..if cfg!(miri) { 60 } else { 300 } {
            if random.below(10) == 0 {
                source.fail_after(random.below(3));
            }
            match random.below(20) {
                0 => {
                    arena.reset();
                    assert!(gone().into_iter().eq(model.drain(..)));
                }
                1 => arena.trim(random.below(1000)),
                2 => {
                    arena.release();
                    assert!(gone().into_iter().eq(model.drain(..)));
                }
                3..8 => {
                    let count = random.below(40);
                    if arena.try_alloc_extend((n..n + count).map(Noted::new)).is_ok() {
                        model.extend(n..n + count);
                    }
                    gone();
                }
                _ => match arena.try_alloc(Noted::new(n)) {
                    Ok(_) => model.push(n),
                    Err(full) => std::mem::forget(full),
                },
            }
            source.recover();
            assert_eq!(arena.len(), model.len());
            assert!(arena.iter_mut().map(|noted| noted.0).eq(model.iter().copied()));
            assert_eq!(arena.statistics().bytes_taken, source.taken());
        }
        drop(arena);
        assert!(gone().into_iter().eq(model));
    }
}
