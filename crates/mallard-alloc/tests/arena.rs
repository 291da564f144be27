//! What an arena promises.

mod common;

use common::Flaky;
use mallard::arena::Box as ABox;
use mallard::{unsize_box, Arena, BlockAllocator, Buffer, Full, Growth, Null, Owning, Source};
use std::alloc::Layout;
use std::mem::MaybeUninit;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

fn layout(bytes: usize, align: usize) -> Layout {
    Layout::from_size_align(bytes, align).unwrap()
}

/// Notes in a shared list that it was dropped.
struct Noted(usize, Arc<std::sync::Mutex<Vec<usize>>>);
impl Drop for Noted {
    fn drop(&mut self) {
        self.1.lock().unwrap().push(self.0);
    }
}

#[test]
fn a_fresh_arena_owns_no_memory() {
    let source = Flaky::new();
    let arena = Arena::new_in(source.clone());
    assert_eq!((source.taken(), arena.statistics().chunks), (0, 0));
    drop(arena);
    static EMPTY: std::sync::Mutex<Arena> = std::sync::Mutex::new(Arena::new());
    assert_eq!(EMPTY.lock().unwrap().statistics().bytes_taken, 0);
}

#[test]
fn blocks_rise_and_touch() {
    let arena = Arena::new();
    let blocks: Vec<_> = (0..10).map(|_| arena.alloc_layout(layout(3, 1)).addr().get()).collect();
    assert!(blocks.windows(2).all(|pair| pair[1] == pair[0] + 3));
}

#[test]
fn with_a_least_alignment_blocks_begin_at_multiples_of_it() {
    let arena = Arena::<_, 8>::with_min_align();
    let a = arena.alloc(1_u8) as *mut u8;
    let b = arena.alloc_str("twelve bytes").as_mut_ptr();
    let c = arena.alloc(2_u8) as *mut u8;
    assert_eq!((b.addr() - a.addr(), c.addr() - b.addr()), (8, 16));
    let aligned = arena.alloc_layout(layout(1, 64));
    assert_eq!(aligned.addr().get() % 64, 0);
    // SAFETY: the last one, with its layout.
    unsafe { arena.deallocate(aligned, layout(1, 64)) };
    assert_eq!(arena.alloc_layout(layout(5, 64)), aligned);
}

#[test]
fn it_grows_by_four_from_4_kib() {
    let source = Flaky::new();
    let arena = Arena::new_in(source.clone());
    let mut held = Vec::new();
    for _ in 0..400 {
        arena.alloc([0_u8; 100]);
        held.push(source.taken());
    }
    held.dedup();
    assert_eq!(held, [4096, 4096 + 16384, 4096 + 16384 + 65536]);
}

#[test]
fn a_large_request_gets_a_chunk_of_its_own_and_the_current_one_stays() {
    let source = Flaky::new();
    let arena = Arena::new_in(source.clone());
    let before = arena.alloc(1_u8) as *mut u8;
    arena.alloc_uninit_slice::<u8>(100_000);
    assert!(source.taken() < 4096 + 100_200);
    let after = arena.alloc(1_u8) as *mut u8;
    assert_eq!(after.addr(), before.addr() + 1);
}

#[test]
fn a_refused_step_is_halved_down_to_the_request() {
    let mut bytes = [MaybeUninit::uninit(); 3000];
    let arena = Arena::new_in(Buffer::new(&mut bytes));
    assert!(arena.try_alloc([0_u8; 700]).is_ok());
    assert!(arena.try_alloc([0_u8; 700]).is_ok());
    assert!(arena.try_alloc([0_u8; 4000]).is_err());
}

#[test]
fn the_limit_is_not_passed_and_the_last_step_is_clamped_to_it() {
    let source = Flaky::new();
    let arena = Arena::with_growth_in(Growth::new().limit(10_000), source.clone());
    let count = (0..2000).take_while(|_| arena.try_alloc([0_u8; 10]).is_ok()).count();
    assert!((950..=1000).contains(&count), "{count}");
    assert!(source.taken() <= 10_000);
}

#[test]
fn a_dry_source_gives_the_value_or_its_maker_back() {
    let arena = Arena::new_in(Null);
    assert_eq!(arena.try_alloc(String::from("mine")).unwrap_err().into_inner(), "mine");
    let Err(Full(make)) = arena.try_alloc_with(|| 7) else { panic!() };
    assert_eq!(make(), 7);
    assert_eq!(arena.try_own(String::from("mine")).unwrap_err().0, "mine");
    assert_eq!(arena.try_alloc_box(String::from("mine")).unwrap_err().0, "mine");
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
#[cfg_attr(miri, ignore)] // it ends the program where a heap would refuse
fn sizes_that_nothing_can_hold_are_refused() {
    let arena = Arena::new();
    arena.alloc(1_u8);
    let half = isize::MAX as usize;
    for bytes in [half, half - 15, half - 16, half - 47, half - 63, half - 64] {
        assert!(arena.try_alloc_layout(layout(bytes, 1)).is_err());
    }
    assert!(arena.try_alloc_layout(layout(1, 1 << 62)).is_err());
    assert!(arena.try_alloc_layout(layout(half & !15, 16)).is_err());
    assert!(arena.try_alloc_uninit_slice::<u64>(usize::MAX / 4).is_err());
    assert!(arena.try_alloc_iter(std::iter::repeat(1)).is_err());
    assert_eq!(arena.statistics().chunks, 1);
}

#[test]
fn alignment_is_honoured_to_2_mib() {
    let source = Flaky::new();
    let arena = Arena::new_in(source.clone());
    for shift in 0..=if cfg!(miri) { 13 } else { 21 } {
        arena.alloc(1_u8);
        assert_eq!(arena.alloc_layout(layout(5, 1 << shift)).addr().get() % (1 << shift), 0);
    }
    #[repr(align(256))]
    struct Wide(u8);
    let wide = arena.alloc(Wide(3));
    assert_eq!(((&raw const *wide).addr() % 256, wide.0), (0, 3));
}

#[test]
fn what_has_no_size_is_dangling_and_leaves_the_arena_alone() {
    let arena = Arena::new_in(Null);
    #[repr(align(64))]
    struct Wide;
    assert_eq!((arena.alloc(Wide) as *mut Wide).addr() % 64, 0);
    assert_eq!(arena.alloc_layout(layout(0, 4096)).addr().get(), 4096);
    assert_eq!(arena.alloc_str(""), "");
    assert_eq!(arena.alloc_iter(0..0), []);
    assert_eq!(arena.alloc_iter([(); 100]).len(), 100);
    assert_eq!(arena.alloc_slice_copy::<u64>(&[]), []);
    let nothing = arena.alloc_layout(layout(0, 8));
    // SAFETY: given by it.
    unsafe { arena.deallocate(nothing, layout(0, 8)) };
    // SAFETY: given by it.
    assert!(!unsafe { arena.try_expand(nothing, layout(0, 8), layout(8, 8)) });
    assert_eq!(arena.statistics().bytes_taken, 0);
}

#[test]
fn the_last_block_comes_back_and_others_do_not() {
    let arena = Arena::new();
    let (a, b) = (arena.alloc_layout(layout(16, 8)), arena.alloc_layout(layout(16, 8)));
    // SAFETY: each once, with its layout.
    unsafe {
        arena.deallocate(a, layout(16, 8));
        arena.deallocate(b, layout(16, 8));
    }
    assert_eq!(arena.alloc_layout(layout(16, 8)), b);
}

#[test]
fn the_last_block_grows_and_shrinks_in_place() {
    let arena = Arena::new();
    let first = arena.alloc_layout(layout(8, 8));
    let block = arena.alloc_layout(layout(8, 8));
    // SAFETY: each with its present layout.
    unsafe {
        assert!(arena.try_expand(block, layout(8, 8), layout(800, 8)));
        assert!(!arena.try_expand(block, layout(800, 8), layout(80_000, 8)));
        assert!(!arena.try_expand(block, layout(800, 8), layout(800, 16)));
        assert!(arena.try_expand(block, layout(800, 8), layout(16, 8)));
        assert!(!arena.try_expand(first, layout(8, 8), layout(16, 8)));
        assert!(arena.try_expand(first, layout(8, 8), layout(4, 8)));
    }
    assert_eq!(arena.alloc_layout(layout(1, 1)).addr().get(), block.addr().get() + 16);
}

#[test]
fn a_reset_keeps_every_chunk_and_begins_in_the_newest() {
    let source = Flaky::new();
    let mut arena = Arena::new_in(source.clone());
    for round in 0..3 {
        for n in 0..500_u64 {
            assert_eq!(*arena.alloc([n; 8]), [n; 8]);
        }
        let calls = source.calls();
        arena.reset();
        assert!(round == 0 || calls == source.calls());
        assert_eq!(source.chunks(), 3);
        assert_eq!(arena.statistics().bytes_live, 0);
    }
    let s = arena.statistics();
    assert_eq!(s.bytes_taken, source.taken());
    assert!(s.bytes_idle > 60_000);
}

#[test]
fn trim_gives_the_oldest_idle_chunks_back() {
    let source = Flaky::new();
    let mut arena = Arena::new_in(source.clone());
    arena.alloc_iter(0..100_u64);
    arena.alloc_iter(0..1000_u64);
    arena.alloc_iter(0..4000_u64);
    arena.reset();
    let all = source.taken();
    arena.trim(20_000);
    assert_eq!(source.taken(), all - 4096);
    arena.trim(0);
    assert_eq!(source.chunks(), 1); // the current one
    arena.release();
    assert_eq!(source.chunks(), 0);
    arena.alloc(1);
    assert_eq!(source.taken(), 4096); // growth began anew
}

#[test]
fn a_rewind_frees_what_came_after_the_mark_and_nothing_before() {
    let source = Flaky::new();
    let arena = Arena::new_in(source.clone());
    let a = arena.alloc(17);
    let mark = arena.mark();
    let b = arena.alloc(1) as *mut i32;
    for n in 0..3000 {
        arena.alloc(n);
    }
    // SAFETY: nothing of it is used any more.
    unsafe { arena.rewind(mark) };
    let taken = source.taken();
    assert_eq!(arena.alloc(2) as *mut i32, b);
    for n in 0..3000 {
        arena.alloc(n);
    }
    assert_eq!((*a, source.taken()), (17, taken));
    // SAFETY: the same again.
    unsafe { arena.rewind(mark) };
    assert_eq!(*a, 17);
}

#[test]
fn scopes_nest_and_free_what_was_made_in_them() {
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
fn a_scope_owns_what_lives_as_long_as_its_call() {
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
fn a_guard_frees_when_it_goes_and_one_that_is_forgotten_does_not() {
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
fn owned_values_are_dropped_newest_first_by_all_that_forget() {
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
    // SAFETY: nothing of it is used any more.
    unsafe { arena.rewind(mark) };
    assert_eq!(*gone.lock().unwrap(), [2, 1, 5, 4]);
    arena.release();
    own(&arena, 6);
    std::thread::spawn(move || drop(arena)).join().unwrap();
    assert_eq!(*gone.lock().unwrap(), [2, 1, 5, 4, 3, 6]);
}

#[test]
fn a_panic_in_a_destructor_does_not_keep_the_others_from_running() {
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
fn a_panic_in_a_constructor_gives_the_block_back() {
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
    // All but what alignment skipped.
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
    // One that allocates meanwhile moves.
    let texts = arena.alloc_iter((0..100).map(|n| &*arena.alloc_str(&n.to_string())));
    assert!(texts.iter().enumerate().all(|(n, text)| *text == n.to_string()));
    // One across chunks moves, too.
    let many = arena.alloc_iter((0..10 * count).filter(|_| true));
    assert!(many.iter().copied().eq(0..10 * count));
}

#[test]
fn an_iterator_that_meets_a_refusal_loses_nothing() {
    let source = Flaky::new();
    let gone = Arc::default();
    for successes in 0..6 {
        let mut arena = Arena::with_growth_in(Growth::fixed(256), source.clone());
        source.fail_after(successes);
        let items = (0..500).map(|n| Noted(n, Arc::clone(&gone))).filter(|_| true);
        let result = arena.try_alloc_box_iter(items).map(|slice| slice.len());
        source.recover();
        assert!(result == Ok(500) || result == Err(Full(())));
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
fn a_value_that_does_not_print_is_not_a_lack_of_memory() {
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
fn a_box_drops_its_value_and_gives_its_block_back() {
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
    // SAFETY: nobody else drops it.
    unsafe { std::ptr::drop_in_place(leaked) };
    let some = arena.alloc_box_iter((5..8).map(|n| Noted(n, Arc::clone(&gone))));
    assert_eq!(some.len(), 3);
    drop(some);
    assert_eq!(*gone.lock().unwrap(), [1, 2, 4, 5, 6, 7]);
    assert_eq!(size_of::<Option<ABox<u64>>>(), 2 * size_of::<usize>());
}

#[test]
fn a_box_of_a_trait_object_drops_what_it_is() {
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
fn a_box_is_as_its_value() {
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
fn a_box_whose_destructor_panics_gives_its_block_back() {
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
fn an_arena_feeds_another() {
    let source = Flaky::new();
    let outer = Arena::new_in(source.clone());
    let by_reference = Arena::new_in(&outer);
    let by_value = Arena::new_in(Arena::new_in(source.clone()));
    assert_eq!(by_reference.alloc_str("a").len() + by_value.alloc_str("b").len(), 2);
    assert!(by_value.source().statistics().bytes_live >= 4096);
    let chunk = outer.try_take(layout(100, 8)).unwrap();
    assert!(outer.owns(chunk.data.as_ptr()));
    // SAFETY: taken just now.
    unsafe { outer.give(chunk) };
}

#[test]
fn it_moves_with_its_blocks_staying() {
    let mut arena = Arena::new();
    let place = arena.alloc(5_u32) as *mut u32;
    assert!(arena.owns(place.cast()));
    let mut moved = std::mem::take(&mut arena);
    assert!(moved.owns(place.cast()) && !arena.owns(place.cast()));
    assert!(!moved.owns(std::ptr::null()));
    moved.reset();
    assert_eq!(std::thread::spawn(move || *moved.alloc(6)).join().unwrap(), 6);
}

#[test]
fn chunks_are_visited_oldest_first_as_far_as_they_are_filled() {
    let mut arena = Arena::<_, 4>::with_min_align();
    for n in 0..2000_u32 {
        arena.alloc(n);
    }
    let mut next = 0;
    for part in arena.allocated_chunks() {
        for bytes in part.chunks(4) {
            // SAFETY: all that was made are numbers.
            let number = unsafe { bytes.as_ptr().cast::<u32>().read() };
            assert_eq!(number, next);
            next += 1;
        }
    }
    assert_eq!(next, 2000);
}

#[test]
fn capacity_is_taken_at_once() {
    let source = Flaky::new();
    let arena = Arena::new_in(source.clone());
    arena.reserve(10_000);
    let calls = source.calls();
    arena.alloc_iter(0..10_000_u16 / 2);
    assert_eq!(source.calls(), calls);
    assert!(Arena::with_capacity(100_000).statistics().bytes_idle >= 100_000);
}

#[test]
fn moving_into_an_arena_drops_nothing_twice() {
    static DROPS: AtomicUsize = AtomicUsize::new(0);
    struct Counts;
    impl Drop for Counts {
        fn drop(&mut self) {
            DROPS.fetch_add(1, Ordering::Relaxed);
        }
    }
    let arena = Arena::new();
    arena.alloc((Counts, 1)); // never
    arena.own((Counts, 1)); // at the end
    arena.own(Counts);
    drop(arena.alloc_box((Counts, 1)));
    assert_eq!(DROPS.load(Ordering::Relaxed), 1);
    drop(arena);
    assert_eq!(DROPS.load(Ordering::Relaxed), 3);
}
