//! Objects, their boxes, and what becomes of both.

mod common;

use common::{Flaky, Random};
use mallard::handles::{Box, OwnedBox};
use mallard::{sync, unsize_box, Buffer, Full, Growth, Hooks, ObjectPool, Source, Validity};
use std::cell::{Cell, RefCell};
use std::mem::MaybeUninit;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::rc::Rc;
use std::sync::Arc;

const MANY: usize = if cfg!(miri) { 200 } else { 20_000 };

/// Counts those that live, and panics when told to.
#[derive(Debug)]
struct Counted {
    live: Rc<Cell<isize>>,
    panics: bool,
}

impl Counted {
    fn new(live: &Rc<Cell<isize>>) -> Self {
        live.set(live.get() + 1);
        Self { live: Rc::clone(live), panics: false }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.live.set(self.live.get() - 1);
        assert!(!self.panics, "a drop that panics");
    }
}

#[test]
fn a_fresh_pool_owns_no_memory() {
    let source = Flaky::new();
    let pool: ObjectPool<u64, sync::None, Flaky> = ObjectPool::new_in(source.clone());
    assert_eq!(source.calls(), 0);
    assert_eq!((pool.len(), pool.capacity(), pool.available()), (0, 0, 0));
    assert!(pool.is_empty());
    assert_eq!(pool.classify(&0), Validity::Miss);
}

#[test]
fn handles_are_one_pointer_wide() {
    assert_eq!(size_of::<Option<Box<'_, u64>>>(), size_of::<usize>());
    assert_eq!(size_of::<Option<mallard::handles::Rc<'_, u64>>>(), size_of::<usize>());
    assert_eq!(size_of::<Option<mallard::handles::Weak<'_, u64>>>(), size_of::<usize>());
    assert_eq!(size_of::<Option<OwnedBox<u64>>>(), 2 * size_of::<usize>());
}

#[test]
fn a_box_gives_its_slot_back_and_the_next_gets_it() {
    let pool: ObjectPool<[u64; 4]> = ObjectPool::new();
    let first = pool.make([1; 4]);
    let address = Box::as_ptr(&first);
    assert_eq!(pool.len(), 1);
    drop(first);
    assert_eq!(pool.len(), 0);
    assert_eq!(Box::as_ptr(&pool.make([2; 4])), address);
}

#[test]
fn a_pool_moves_while_it_has_objects() {
    let pool: ObjectPool<u64> = ObjectPool::new();
    let raw = Box::into_raw(pool.make(7));
    let moved = [pool];
    // SAFETY: from `into_raw`, of this pool.
    let again: Box<'_, u64> = unsafe { Box::from_raw(raw) };
    assert_eq!(*again, 7);
    assert_eq!(moved[0].len(), 1);
    drop(again);
    assert_eq!(moved[0].len(), 0);
}

#[test]
fn a_full_pool_gives_the_value_back() {
    let pool: ObjectPool<String> = ObjectPool::fixed(2);
    assert_eq!(pool.capacity(), 2);
    let kept = pool.make_batch(["a".into(), "b".into()]);
    assert!(pool.is_full());
    let Full(value) = pool.try_make("c".into()).unwrap_err();
    assert_eq!(value, "c");
    let Full(f) = pool.try_make_with(|| "d".to_string()).unwrap_err();
    assert_eq!(f(), "d");
    drop(kept);
    assert_eq!(pool.available(), 2);
}

fn exactly<T: Default + PartialEq + std::fmt::Debug, const CHUNK: usize>(count: usize) {
    let source = Flaky::new();
    let pool: ObjectPool<T, sync::None<CHUNK>, Flaky> =
        ObjectPool::fixed_in(count, source.clone());
    for _ in 0..2 {
        let mut all: Vec<_> = (0..count).map(|_| pool.try_make(T::default()).unwrap()).collect();
        assert!(pool.try_make(T::default()).is_err());
        assert!(pool.is_full());
        assert!(all.iter().all(|object| **object == T::default()));
        all.pop();
        assert_eq!(pool.available(), 1);
    }
    let statistics = pool.statistics();
    assert_eq!(statistics.growths, 1, "one step");
    let bytes = count * size_of::<T>();
    let beside = 5500 + bytes / if CHUNK < 4096 { 2 } else { 8 } + align_of::<T>();
    assert!(statistics.bytes_taken < bytes + beside, "{} for {bytes}", statistics.bytes_taken);
}

#[test]
fn a_fixed_pool_has_exactly_its_count_and_little_more_memory() {
    for count in [1, 2, 7, 63, 64, 65, 100, 1000] {
        exactly::<u8, 65536>(count);
        exactly::<u64, 65536>(count);
        exactly::<[u64; 3], 65536>(count);
        exactly::<[u64; 3], 256>(count);
        exactly::<[u16; 21], 1024>(count);
        exactly::<[u64; 8], 4096>(count);
    }
    exactly::<[[u64; 32]; 3], 65536>(100);
    exactly::<(), 65536>(1000);
    exactly::<u32, 65536>(MANY * 2);
}

#[test]
fn a_pool_of_none_refuses_all() {
    let pool: ObjectPool<u8> = ObjectPool::fixed(0);
    assert_eq!(pool.try_make(3).unwrap_err(), Full(3));
    let pool: ObjectPool<u8, sync::None, _> = ObjectPool::new_in(mallard::Null);
    assert_eq!(pool.try_make(3).unwrap_err(), Full(3));
    let pool: ObjectPool<u64> = ObjectPool::fixed(usize::MAX);
    assert!(pool.try_make(1).is_err());
    let pool: ObjectPool<u64> = ObjectPool::with_capacity(usize::MAX / 64);
    assert!(pool.try_make(1).is_ok(), "a step that is refused is halved");
}

#[test]
fn the_first_step_has_room_for_the_capacity() {
    let source = Flaky::new();
    let pool: ObjectPool<u64, sync::None, _> = ObjectPool::with_capacity_in(MANY, source.clone());
    let all: Vec<_> = (0..MANY as u64).map(|i| pool.make(i)).collect();
    assert_eq!(source.calls(), 3, "the core, an array, the step");
    assert!(pool.capacity() >= MANY);
    drop(all);
}

#[test]
fn growth_stays_within_its_limit() {
    let source = Flaky::new();
    let growth = Growth { first: 1000, limit: 100_000, ..Growth::new() };
    let pool: ObjectPool<[u64; 5], sync::None, _> =
        ObjectPool::with_growth_in(growth, source.clone());
    let mut all = Vec::new();
    while let Ok(object) = pool.try_make([9; 5]) {
        all.push(object);
        assert!(source.taken() <= 100_000);
    }
    assert!(all.len() * 40 > 85_000, "{}", all.len());
    assert_eq!(pool.statistics().bytes_taken, source.taken());
    assert_eq!(pool.len(), all.len());
}

#[test]
fn a_pool_stands_in_a_small_buffer() {
    let mut bytes = [MaybeUninit::<u8>::uninit(); 2048];
    let pool: ObjectPool<[u32; 4], sync::None<256>, _> =
        ObjectPool::new_in(Buffer::new(&mut bytes));
    let mut all = Vec::new();
    while let Ok(object) = pool.try_make([all.len() as u32; 4]) {
        all.push(object);
    }
    assert!(all.len() >= 20, "{}", all.len());
    assert!(all.iter().enumerate().all(|(i, object)| object[3] == i as u32));
}

#[repr(align(4096))]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Aligned(u8);

#[repr(align(128))]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Line([u8; 3]);

fn distinct_and_aligned<T: Copy + PartialEq + std::fmt::Debug>(value: T, count: usize) {
    let pool: ObjectPool<T> = ObjectPool::new();
    let mut all: Vec<_> = (0..count).map(|_| pool.make(value)).collect();
    let mut addresses: Vec<usize> = all.iter().map(|o| Box::as_ptr(o).addr().get()).collect();
    assert!(addresses.iter().all(|a| a % align_of::<T>() == 0));
    addresses.sort_unstable();
    let apart = size_of::<T>().max(1);
    assert!(addresses.windows(2).all(|pair| pair[1] - pair[0] >= apart));
    assert!(all.iter().all(|object| **object == value));
    all.drain(..count / 2);
    assert_eq!(pool.len(), count - count / 2);
    for object in &all {
        let at = Box::as_ptr(object).as_ptr();
        assert_eq!(pool.classify(at), Validity::Valid);
    }
}

#[test]
fn empty_large_and_over_aligned_objects_have_slots_of_their_own() {
    distinct_and_aligned((), MANY * 4);
    distinct_and_aligned(1u8, MANY * 4);
    distinct_and_aligned([1u16; 3], MANY);
    distinct_and_aligned([1u64; 64], MANY / 10);
    distinct_and_aligned([1u64; 65], MANY / 10);
    distinct_and_aligned(Line([5; 3]), MANY / 10);
    distinct_and_aligned(Aligned(3), 50);
    if !cfg!(miri) {
        distinct_and_aligned([1u8; 100_000], 50);
    }
}

#[test]
fn an_address_is_classified() {
    let pool: ObjectPool<u64> = ObjectPool::new();
    let object = pool.make(1);
    let at = Box::as_ptr(&object).as_ptr();
    assert!(pool.owns(at));
    assert_eq!(pool.classify(at), Validity::Valid);
    assert_eq!(pool.classify(at.wrapping_byte_add(1)), Validity::Invalid);
    assert_eq!(pool.classify(at.wrapping_add(1)), Validity::Invalid, "never given out");
    assert_eq!(pool.classify(&5), Validity::Miss);
    drop(object);
    assert_eq!(pool.classify(at), Validity::Invalid);
}

#[test]
fn what_is_forgotten_is_dropped_with_the_pool() {
    let live = Rc::default();
    let mut pool: ObjectPool<Counted> = ObjectPool::new();
    for i in 0..100 {
        let object = pool.make(Counted::new(&live));
        if i % 3 == 0 {
            std::mem::forget(object);
        }
    }
    assert_eq!(live.get(), 34);
    assert_eq!(pool.iter().count(), 34);
    pool.clear();
    assert_eq!((live.get(), pool.len()), (0, 0));
    Box::leak(pool.make(Counted::new(&live)));
    assert_eq!(live.get(), 1);
    drop(pool);
    assert_eq!(live.get(), 0);
}

#[test]
fn objects_that_are_left_are_visited_once_each() {
    let mut pool: ObjectPool<usize> = ObjectPool::new();
    let mut boxes: Vec<_> = (0..MANY).map(|i| pool.make(i)).collect();
    let mut random = Random::new(1);
    let mut expected = Vec::new();
    for i in (0..boxes.len()).rev() {
        let object = boxes.swap_remove(random.below(i + 1));
        if random.below(3) == 0 {
            expected.push(*Box::leak(object));
        }
    }
    drop(boxes);
    pool.for_each(|n| *n += 1);
    let mut seen: Vec<usize> = pool.iter().map(|n| *n - 1).collect();
    let mut again: Vec<usize> = pool.iter_mut().map(|n| *n - 1).collect();
    let mut iter = pool.iter();
    assert_eq!(iter.by_ref().count(), expected.len());
    assert!(iter.next().is_none());
    seen.sort_unstable();
    again.sort_unstable();
    expected.sort_unstable();
    assert_eq!(seen, expected);
    assert_eq!(again, expected);
}

#[test]
fn a_constructor_that_panics_leaks_no_slot() {
    let pool: ObjectPool<u64> = ObjectPool::fixed(1);
    for _ in 0..3 {
        let made = catch_unwind(AssertUnwindSafe(|| drop(pool.make_with(|| panic!("no")))));
        assert!(made.is_err());
    }
    assert_eq!(pool.len(), 0);
    assert!(pool.try_make(1).is_ok());
}

#[test]
fn a_destructor_that_panics_leaks_no_slot() {
    let live = Rc::default();
    let pool: ObjectPool<Counted> = ObjectPool::fixed(1);
    let mut object = pool.make(Counted::new(&live));
    object.panics = true;
    assert!(catch_unwind(AssertUnwindSafe(|| drop(object))).is_err());
    assert_eq!((pool.len(), live.get()), (0, 0));
}

#[test]
fn a_destructor_that_panics_while_all_are_dropped_leaves_none() {
    let live = Rc::default();
    let mut pool: ObjectPool<Counted> = ObjectPool::new();
    for i in 0..10 {
        Box::leak(pool.make(Counted::new(&live))).panics = i == 4;
    }
    assert!(catch_unwind(AssertUnwindSafe(|| pool.clear())).is_err());
    assert_eq!((pool.len(), live.get()), (0, 0));
    let objects = [0; 5].map(|_| pool.make(Counted::new(&live)));
    let batch = objects.map(|mut object| {
        object.panics = live.get() == 5 && !std::mem::replace(&mut object.panics, false);
        object
    });
    let dropped = catch_unwind(AssertUnwindSafe(|| {
        let mut batch = batch;
        for object in &mut batch[1..] {
            object.panics = false;
        }
        pool.destroy_batch(batch);
    }));
    assert!(dropped.is_err());
    assert_eq!((pool.len(), live.get()), (0, 0));
}

#[test]
fn an_object_comes_out_of_its_box() {
    let live = Rc::default();
    let pool: ObjectPool<Counted> = ObjectPool::new();
    let object = Box::into_inner(pool.make(Counted::new(&live)));
    assert_eq!((pool.len(), live.get()), (0, 1));
    drop(object);
    assert_eq!(live.get(), 0);
}

#[test]
fn a_box_behaves_as_its_object() {
    let pool: ObjectPool<String> = ObjectPool::new();
    let (a, mut b) = (pool.make("a".into()), pool.make("b".into()));
    assert!(a < b && a != b);
    b.clear();
    b.push('a');
    assert!(a == b);
    assert_eq!(format!("{a} {b:?}"), "a \"a\"");
    let mut set = std::collections::HashSet::new();
    assert!(set.insert(a) && !set.insert(b));
    let numbers: ObjectPool<std::ops::Range<u32>> = ObjectPool::new();
    assert_eq!(numbers.make(0..5).rev().sum::<u32>(), 10);
}

#[test]
fn a_box_is_pinned_and_polled() {
    let pool = ObjectPool::<_>::new();
    let mut future = Box::into_pin(pool.make(async { 7 }));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert_eq!(future.as_mut().poll(&mut context), std::task::Poll::Ready(7));
}

use std::future::Future;

#[test]
fn a_box_of_anything_finds_its_pool() {
    let live = Rc::default();
    let pool: ObjectPool<Counted> = ObjectPool::new();
    let large: ObjectPool<[u64; 2000]> = ObjectPool::new();
    let shown: Box<'_, dyn std::fmt::Debug> = unsize_box!(pool.make(Counted::new(&live)) => dyn std::fmt::Debug);
    assert!(format!("{shown:?}").starts_with("Counted"));
    drop(shown);
    assert_eq!((pool.len(), live.get()), (0, 0));
    let slice: Box<'_, [u64]> = unsize_box!(large.make([3; 2000]) => [u64]);
    assert_eq!(slice.iter().sum::<u64>(), 6000);
    drop(slice);
    assert_eq!(large.len(), 0);
}

#[test]
fn an_owned_box_outlives_all_others() {
    let live = Rc::default();
    let owned = {
        #[allow(clippy::arc_with_non_send_sync)]
        let pool: Arc<ObjectPool<Counted>> = Arc::new(ObjectPool::new());
        let other = pool.make_owned(Counted::new(&live));
        drop(OwnedBox::into_inner(other));
        assert_eq!(Arc::strong_count(&pool), 1);
        pool.make_owned(Counted::new(&live))
    };
    assert_eq!(OwnedBox::pool(&owned).len(), 1);
    drop(owned);
    assert_eq!(live.get(), 0);
}

#[test]
fn a_batch_is_all_or_nothing() {
    let live = Rc::default();
    let source = Flaky::new();
    let pool: ObjectPool<Counted, sync::None, _> = ObjectPool::fixed_in(10, source.clone());
    let six = pool.make_batch([0; 6].map(|_| Counted::new(&live)));
    let Full(values) = pool.try_make_batch([0; 5].map(|_| Counted::new(&live))).unwrap_err();
    assert_eq!((live.get(), pool.len()), (11, 6));
    drop(values);
    let four = pool.try_make_batch([0; 4].map(|_| Counted::new(&live))).unwrap();
    pool.destroy_batch(six);
    let other: ObjectPool<Counted, sync::None, _> = ObjectPool::new_in(source.clone());
    pool.destroy_batch(four.into_iter().chain([other.make(Counted::new(&live))]));
    assert_eq!((live.get(), pool.len(), other.len()), (0, 0, 0));
}

/// A list that is dropped by its first.
struct Node {
    next: Option<Box<'static, Node, sync::Mutex>>,
}

static NODES: ObjectPool<Node, sync::Mutex> = ObjectPool::new();

#[test]
fn objects_may_own_objects_of_their_pool() {
    let mut first = None;
    for _ in 0..100 {
        first = Some(NODES.make(Node { next: first }));
    }
    assert_eq!(NODES.len(), 100);
    assert!(first.as_ref().unwrap().next.is_some());
    drop(first);
    assert_eq!(NODES.len(), 0);
}

#[test]
fn release_gives_all_back_and_the_pool_begins_anew() {
    let source = Flaky::new();
    let mut pool: ObjectPool<u64, sync::None, _> = ObjectPool::new_in(source.clone());
    for round in 0..3 {
        std::mem::forget(pool.make(1));
        (0..MANY).map(|_| pool.make(1)).for_each(drop);
        assert!(source.chunks() >= 3);
        pool.release();
        assert_eq!((source.taken(), source.chunks(), pool.len()), (0, 0, 0));
        assert_eq!(pool.statistics().growths, round + 1);
    }
    assert_eq!(pool.source().taken(), 0);
}

#[test]
fn trim_gives_idle_steps_back_and_keeps_the_rest() {
    let source = Flaky::new();
    let mut pool: ObjectPool<[u64; 8], sync::None<1024>, _> =
        ObjectPool::with_growth_in(Growth::fixed(4096), source.clone());
    let mut boxes: Vec<_> = (0..1000).map(|_| pool.make([1; 8])).collect();
    let full = source.taken();
    let kept: Vec<_> = boxes.drain(..10).map(Box::into_raw).collect();
    drop(boxes);
    pool.trim(0);
    assert!(source.taken() < full / 8, "{} of {full}", source.taken());
    assert_eq!(pool.len(), 10);
    let more: Vec<_> = (0..1000).map(|_| pool.make([2; 8])).collect();
    assert_eq!(pool.len(), 1010);
    drop(more);
    pool.trim(20_000);
    assert!((20_000 - 4096..30_000).contains(&source.taken()), "{}", source.taken());
    for object in kept {
        // SAFETY: from `into_raw`.
        let object: Box<'_, _, sync::None<1024>, Flaky> = unsafe { Box::from_raw(object) };
        assert_eq!(*object, [1; 8]);
    }
    pool.trim(0);
    assert!(source.chunks() <= 1, "nothing but the core");
}

#[test]
fn whatever_call_the_source_refuses_nothing_is_lost() {
    for successes in 0..12 {
        let source = Flaky::new();
        let mut pool: ObjectPool<[u64; 4], sync::None<1024>, _> =
            ObjectPool::with_growth_in(Growth::fixed(1024), source.clone());
        source.fail_after(successes);
        let mut all = Vec::new();
        while let Ok(object) = pool.try_make([all.len() as u64; 4]) {
            all.push(object);
        }
        assert_eq!(pool.len(), all.len());
        let before = source.taken();
        assert!(pool.try_make([0; 4]).is_err());
        assert_eq!(source.taken(), before, "a failed call has changed nothing");
        assert!(all.iter().enumerate().all(|(i, object)| **object == [i as u64; 4]));
        source.recover();
        all.extend((0..200).map(|_| pool.make([7; 4])));
        drop(all);
        assert_eq!(pool.len(), 0);
        pool.trim(0);
    }
}

#[derive(Default)]
struct Log {
    acquired: Cell<usize>,
    released: RefCell<Vec<u32>>,
    panics: Cell<bool>,
}

impl Hooks<u32> for &Log {
    fn acquired(&self, object: &mut u32) {
        self.acquired.set(self.acquired.get() + 1);
        *object += 100;
        assert!(!self.panics.get(), "a hook that panics");
    }
    fn released(&self, object: &mut u32) {
        self.released.borrow_mut().push(*object);
        assert!(!self.panics.get(), "a hook that panics");
    }
}

#[test]
fn hooks_hear_of_each_object_once() {
    let log = Log::default();
    let mut pool = ObjectPool::<u32>::fixed(3).hooked(&log);
    let object = pool.make(1);
    assert_eq!(*object, 101);
    assert_eq!(Box::into_inner(object), 101);
    Box::leak(pool.make(2));
    pool.destroy_batch(pool.make_batch([3, 4]));
    log.panics.set(true);
    assert!(catch_unwind(AssertUnwindSafe(|| drop(pool.make(5)))).is_err());
    assert_eq!(pool.len(), 1);
    assert!(catch_unwind(AssertUnwindSafe(|| drop(pool.make_batch([6, 7])))).is_err());
    assert_eq!(pool.len(), 1);
    log.panics.set(false);
    let object = pool.make(8);
    log.panics.set(true);
    assert!(catch_unwind(AssertUnwindSafe(|| drop(object))).is_err());
    log.panics.set(false);
    assert_eq!(pool.len(), 1);
    assert_eq!(pool.hooks().acquired.get(), 7);
    drop(pool);
    assert_eq!(*log.released.borrow(), [101, 103, 104, 108, 102]);
}

/// A hook that uses its own pool.
struct Echo;
static ECHOES: ObjectPool<u8, sync::Mutex, mallard::DefaultHeap, Echo> =
    ObjectPool::<u8, sync::Mutex>::with_hooks(Echo);

impl Hooks<u8> for Echo {
    fn released(&self, object: &mut u8) {
        if *object > 0 {
            drop(ECHOES.make(*object - 1));
        }
    }
}

#[test]
fn a_hook_may_use_the_same_pool() {
    drop(ECHOES.make(20));
    assert_eq!(ECHOES.len(), 0);
}

/// A source that frees into, and makes in, the pool that it serves.
struct Meddler(Cell<Option<&'static ObjectPool<u64, sync::None, &'static Meddler>>>);

// SAFETY: passed on to the heap.
unsafe impl mallard::BlockAllocator for Meddler {
    fn try_allocate(&self, layout: std::alloc::Layout) -> Option<std::ptr::NonNull<u8>> {
        if let Some(pool) = self.0.get() {
            let made = pool.try_make(1);
            let more = pool.try_make(2);
            drop((made, more));
        }
        mallard::DefaultHeap.try_take(layout).map(|chunk| chunk.data)
    }
    unsafe fn deallocate(&self, data: std::ptr::NonNull<u8>, layout: std::alloc::Layout) {
        // SAFETY: it is from there.
        unsafe { mallard::DefaultHeap.give(mallard::Chunk { data, layout }) }
    }
}

#[test]
fn a_source_that_calls_its_pool_gets_what_is_at_hand() {
    let source: &'static Meddler = std::boxed::Box::leak(std::boxed::Box::new(Meddler(Cell::new(None))));
    let pool: *mut ObjectPool<u64, sync::None, &'static Meddler> =
        std::boxed::Box::into_raw(std::boxed::Box::new(ObjectPool::new_in(source)));
    // SAFETY: it is not moved, and taken back below.
    source.0.set(Some(unsafe { &*pool }));
    let all: Vec<_> = {
        // SAFETY: the same.
        let pool = unsafe { &*pool };
        (0..MANY as u64).map(|i| pool.make(i)).collect()
    };
    assert!(all.iter().enumerate().all(|(i, object)| **object == i as u64));
    drop(all);
    source.0.set(None);
    // SAFETY: nobody uses it any more. The source itself is left to be.
    drop(unsafe { std::boxed::Box::from_raw(pool) });
    // SAFETY: it was leaked above, and its pool is gone.
    drop(unsafe { std::boxed::Box::from_raw((source as *const Meddler).cast_mut()) });
}

/// A source that panics once.
struct Panicky(Cell<usize>);

// SAFETY: passed on to the heap.
unsafe impl Source for Panicky {
    fn try_take(&self, layout: std::alloc::Layout) -> Option<mallard::Chunk> {
        self.0.set(self.0.get().wrapping_sub(1));
        assert_ne!(self.0.get(), 0, "a source that panics");
        mallard::DefaultHeap.try_take(layout)
    }
    unsafe fn give(&self, chunk: mallard::Chunk) {
        // SAFETY: it is from there.
        unsafe { mallard::DefaultHeap.give(chunk) }
    }
}

fn after_a_panic_of_the_source<M: sync::Mode>() {
    for call in 1..6 {
        let pool = ObjectPool::<u64, M>::new_in(Panicky(Cell::new(call)));
        let mut all = Vec::new();
        for i in 0..MANY as u64 {
            let made = catch_unwind(AssertUnwindSafe(|| pool.make(i)));
            all.extend(made);
        }
        assert!(all.len() >= MANY - 1);
        assert_eq!(pool.len(), all.len());
    }
}

#[test]
fn a_source_that_panics_leaves_the_pool_as_it_was() {
    after_a_panic_of_the_source::<sync::None>();
    after_a_panic_of_the_source::<sync::Mutex>();
}

/// Any program of calls leaves the pool as a model says.
fn random_program<T: Copy + PartialEq + std::fmt::Debug, const CHUNK: usize>(
    seed: u64,
    of: fn(u64) -> T,
) {
    let mut random = Random::new(seed);
    let source = Flaky::new();
    let growth = [Growth::new(), Growth::fixed(2000), Growth::linear(100, 700).limit(60_000)];
    let mut pool: ObjectPool<T, sync::None<CHUNK>, _> =
        ObjectPool::with_growth_in(growth[random.below(3)], source.clone());
    let mut model: Vec<(std::ptr::NonNull<T>, u64)> = Vec::new();
    type Of<'p, T, const CHUNK: usize> = Box<'p, T, sync::None<CHUNK>, Flaky>;
    let steps = if cfg!(miri) { 60 } else { 600 };
    let mut next = 0;
    for _ in 0..steps {
        match random.below(10) {
            0..4 => {
                for _ in 0..random.below(200) {
                    next += 1;
                    match pool.try_make(of(next)) {
                        Ok(object) => model.push((Box::into_raw(object), next)),
                        Err(Full(value)) => assert_eq!(value, of(next)),
                    }
                }
            }
            4..8 => {
                for _ in 0..random.below(200).min(model.len()) {
                    let (object, n) = model.swap_remove(random.below(model.len()));
                    assert_eq!(pool.classify(object.as_ptr()), Validity::Valid);
                    // SAFETY: from `into_raw`, once.
                    let object: Of<'_, T, CHUNK> = unsafe { Box::from_raw(object) };
                    assert_eq!(*object, of(n));
                }
            }
            8 => match random.below(6) {
                0 => {
                    pool.clear();
                    model.clear();
                }
                1 => {
                    pool.release();
                    model.clear();
                    assert_eq!(source.taken(), 0);
                }
                _ => pool.trim(random.below(9000)),
            },
            _ => match random.below(2) {
                0 => source.fail_after(random.below(4)),
                _ => source.recover(),
            },
        }
        assert_eq!(pool.len(), model.len());
        let statistics = pool.statistics();
        assert_eq!(statistics.bytes_taken, source.taken());
        assert!(statistics.bytes_live + statistics.bytes_idle <= source.taken());
    }
    let mut seen: Vec<_> = pool.iter().map(std::ptr::NonNull::from).collect();
    let mut expected: Vec<_> = model.iter().map(|(object, _)| *object).collect();
    seen.sort_unstable();
    expected.sort_unstable();
    assert_eq!(seen, expected);
}

#[test]
fn random_programs_agree_with_a_model() {
    for seed in 0..if cfg!(miri) { 1 } else { 20 } {
        random_program::<u64, 65536>(seed, |n| n);
        random_program::<u64, 256>(seed, |n| n);
        random_program::<u8, 1024>(seed, |n| n as u8);
        random_program::<[u64; 5], 65536>(seed, |n| [n; 5]);
        random_program::<[u64; 5], 4096>(seed, |n| [n; 5]);
        random_program::<[u32; 130], 65536>(seed, |n| [n as u32; 130]);
        random_program::<Line, 2048>(seed, |n| Line([n as u8; 3]));
    }
}
