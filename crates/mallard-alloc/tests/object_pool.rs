//! Tests of object pools for one thread, and of their boxes.

use crate::common::{Flaky, Random};
use mallard::handles::{Box, OwnedBox};
use mallard::{sync, unsize_box, Buffer, Chunk, DefaultHeap, Growth, ObjectPool, Source, Validity};
use std::alloc::Layout;
use std::cell::Cell;
use std::mem::MaybeUninit;
use std::rc::Rc;
use std::sync::Arc;

const MANY: usize = if cfg!(miri) { 200 } else { 20_000 };

/// Counts the values that are alive.
#[derive(Debug)]
struct Counted(Rc<Cell<isize>>);

impl Counted {
    fn new(live: &Rc<Cell<isize>>) -> Self {
        live.set(live.get() + 1);
        Self(Rc::clone(live))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

#[test]
fn a_new_pool_owns_no_memory() {
    let source = Flaky::new();
    let pool: ObjectPool<u64, sync::Unshared, Flaky> = ObjectPool::new_in(source.clone());
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
fn the_next_object_gets_the_slot_of_a_dropped_box() {
    let pool: ObjectPool<[u64; 4]> = ObjectPool::new();
    let first = pool.make([1; 4]);
    let address = Box::as_ptr(&first);
    assert_eq!(pool.len(), 1);
    drop(first);
    assert_eq!(pool.len(), 0);
    assert_eq!(Box::as_ptr(&pool.make([2; 4])), address);
}

#[test]
fn a_pool_may_move_while_it_has_objects() {
    let pool: ObjectPool<u64> = ObjectPool::new();
    let raw = Box::into_raw(pool.make(7));
    let moved = [pool];
    // SAFETY: `into_raw` made the pointer from a box of this pool.
    let again: Box<'_, u64> = unsafe { Box::from_raw(raw) };
    assert_eq!(*again, 7);
    assert_eq!(moved[0].len(), 1);
    drop(again);
    assert_eq!(moved[0].len(), 0);
}

#[test]
fn a_full_pool_returns_the_value_in_the_error() {
    let pool: ObjectPool<String> = ObjectPool::fixed(2);
    assert_eq!(pool.capacity(), 2);
    let kept = pool.make_batch(["a".into(), "b".into()]);
    assert!(pool.is_full());
    let value = pool.try_make("c".into()).unwrap_err().into_inner();
    assert_eq!(value, "c");
    let f = pool.try_make_with(|| "d".to_string()).unwrap_err().into_inner();
    assert_eq!(f(), "d");
    drop(kept);
    assert_eq!(pool.available(), 2);
}

fn exactly<T: Default + PartialEq + std::fmt::Debug, const CHUNK: usize>(count: usize) {
    let source = Flaky::new();
    let pool: ObjectPool<T, sync::Unshared<CHUNK>, Flaky> =
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
fn a_fixed_pool_holds_exactly_its_count_of_objects_and_uses_little_more_memory() {
    for count in if cfg!(miri) { vec![1, 65] } else { vec![1, 2, 7, 63, 64, 65, 100, 1000] } {
        exactly::<u8, 65536>(count);
        exactly::<u64, 65536>(count);
        exactly::<[u64; 3], 65536>(count);
        exactly::<[u64; 3], 256>(count);
        exactly::<[u16; 21], 1024>(count);
        exactly::<[u64; 8], 4096>(count);
    }
    exactly::<[[u64; 32]; 3], 65536>(100);
    exactly::<(), 65536>(MANY / 20);
    exactly::<u32, 65536>(MANY * 2);
}

/// A source that rounds sizes up to a multiple of a number.
struct Rounding(usize);

// SAFETY: the heap fulfils the contract of `Source`.
unsafe impl Source for Rounding {
    fn try_take(&self, layout: Layout) -> Option<Chunk> {
        let bytes = layout.size().next_multiple_of(self.0);
        DefaultHeap.try_take(Layout::from_size_align(bytes, layout.align()).ok()?)
    }
    unsafe fn give(&self, chunk: Chunk) {
        // SAFETY: the heap supplied the chunk.
        unsafe { DefaultHeap.give(chunk) }
    }
}

#[test]
fn a_fixed_pool_holds_exactly_its_count_of_objects_although_its_source_rounds_sizes_up() {
    for count in [1, 3, 10, 33, 100, 1000] {
        for unit in [16, 128, 4096] {
            let pool: ObjectPool<u32, sync::Unshared, _> =
                ObjectPool::fixed_in(count, Rounding(unit));
            let all: Vec<_> = (0..count).map(|_| pool.try_make(7).unwrap()).collect();
            assert!(pool.try_make(7).is_err(), "{} and one more", all.len());
        }
    }
}

#[test]
fn the_magazine_of_a_small_fixed_pool_has_room_for_all_objects() {
    let pool: ObjectPool<u32> = ObjectPool::fixed(10);
    for _ in 0..5 {
        let all: Vec<_> = (0..10).map(|i| pool.make(i)).collect();
        drop(all);
    }
    assert_eq!(pool.statistics().flushes, 0);
}

#[test]
fn in_a_fixed_pool_for_0_objects_every_allocation_fails() {
    let pool: ObjectPool<u8> = ObjectPool::fixed(0);
    assert_eq!(pool.try_make(3).unwrap_err().into_inner(), 3);
    let pool: ObjectPool<u8, sync::Unshared, _> = ObjectPool::new_in(mallard::Null);
    assert_eq!(pool.try_make(3).unwrap_err().into_inner(), 3);
    let pool: ObjectPool<u64> = ObjectPool::fixed(usize::MAX);
    assert!(pool.try_make(1).is_err());
    if !cfg!(miri) {
        let pool: ObjectPool<u64> = ObjectPool::with_capacity(usize::MAX / 64);
        assert!(pool.try_make(1).is_ok(), "a step that the source refuses is halved");
    }
}

#[test]
fn with_capacity_allocates_room_for_the_capacity_in_one_request() {
    let source = Flaky::new();
    let pool: ObjectPool<u64, sync::Unshared, _> =
        ObjectPool::with_capacity_in(MANY, source.clone());
    let all: Vec<_> = (0..MANY as u64).map(|i| pool.make(i)).collect();
    assert_eq!(
        source.calls(),
        3,
        "one call for the core, one for the array of the magazine, one for the step"
    );
    assert!(pool.capacity() >= MANY);
    drop(all);
}

#[test]
fn a_pool_never_grows_beyond_its_limit() {
    let source = Flaky::new();
    let growth = Growth { first: 1000, limit: 100_000, ..Growth::new() };
    let pool: ObjectPool<[u64; 5], sync::Unshared, _> =
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
fn a_pool_works_in_a_small_buffer() {
    let mut bytes = [MaybeUninit::<u8>::uninit(); 2048];
    let pool: ObjectPool<[u32; 4], sync::Unshared<256>, _> =
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
fn objects_of_any_size_and_alignment_are_distinct_and_aligned() {
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
fn classify_distinguishes_valid_invalid_and_foreign_addresses() {
    let pool: ObjectPool<u64> = ObjectPool::new();
    let object = pool.make(1);
    let at = Box::as_ptr(&object).as_ptr();
    assert!(pool.owns(at));
    assert_eq!(pool.classify(at), Validity::Valid);
    assert_eq!(pool.classify(at.wrapping_byte_add(1)), Validity::Invalid);
    assert_eq!(pool.classify(at.wrapping_add(1)), Validity::Invalid, "the slot was never in use");
    assert_eq!(pool.classify(&5), Validity::Miss);
    drop(object);
    assert_eq!(pool.classify(at), Validity::Invalid);
}

#[test]
fn dropping_the_pool_drops_forgotten_objects() {
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
fn iterators_visit_each_forgotten_object_once() {
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
fn into_inner_moves_the_object_out_of_its_box() {
    let live = Rc::default();
    let pool: ObjectPool<Counted> = ObjectPool::new();
    let object = Box::into_inner(pool.make(Counted::new(&live)));
    assert_eq!((pool.len(), live.get()), (0, 1));
    drop(object);
    assert_eq!(live.get(), 0);
}

#[test]
fn a_box_implements_the_traits_of_its_object() {
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
fn a_pinned_box_can_be_polled() {
    let pool = ObjectPool::<_>::new();
    let mut future = Box::into_pin(pool.make(async { 7 }));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert_eq!(future.as_mut().poll(&mut context), std::task::Poll::Ready(7));
}

use std::future::Future;

#[test]
fn boxes_of_slices_and_trait_objects_return_their_slots_to_their_pool() {
    let live = Rc::default();
    let pool: ObjectPool<Counted> = ObjectPool::new();
    let large: ObjectPool<[u64; 2000]> = ObjectPool::new();
    let shown: Box<'_, dyn std::fmt::Debug> =
        unsize_box!(pool.make(Counted::new(&live)) => dyn std::fmt::Debug);
    assert!(format!("{shown:?}").starts_with("Counted"));
    drop(shown);
    assert_eq!((pool.len(), live.get()), (0, 0));
    let slice: Box<'_, [u64]> = unsize_box!(large.make([3; 2000]) => [u64]);
    assert_eq!(slice.iter().sum::<u64>(), 6000);
    drop(slice);
    assert_eq!(large.len(), 0);
}

#[test]
fn an_owned_box_keeps_its_pool_alive() {
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
fn a_batch_creates_all_objects_or_none() {
    let live = Rc::default();
    let source = Flaky::new();
    let pool: ObjectPool<Counted, sync::Unshared, _> = ObjectPool::fixed_in(10, source.clone());
    let six = pool.make_batch([0; 6].map(|_| Counted::new(&live)));
    let values = pool.try_make_batch([0; 5].map(|_| Counted::new(&live))).unwrap_err();
    let values = values.into_inner();
    assert_eq!((live.get(), pool.len()), (11, 6));
    drop(values);
    let four = pool.try_make_batch([0; 4].map(|_| Counted::new(&live))).unwrap();
    pool.destroy_batch(six);
    let other: ObjectPool<Counted, sync::Unshared, _> = ObjectPool::new_in(source.clone());
    pool.destroy_batch(four.into_iter().chain([other.make(Counted::new(&live))]));
    assert_eq!((live.get(), pool.len(), other.len()), (0, 0, 0));
}

/// A node of a linked list. Dropping the first node drops all nodes.
struct Node {
    next: Option<Box<'static, Node, sync::Mutex>>,
}

static NODES: ObjectPool<Node, sync::Mutex> = ObjectPool::with_mode();

#[test]
fn objects_may_own_other_objects_of_the_same_pool() {
    let mut first = None;
    for _ in 0..100 {
        first = Some(NODES.make(Node { next: first }));
    }
    assert_eq!(NODES.len(), 100);
    assert!(first.as_ref().unwrap().next.is_some());
    drop(first);
    assert_eq!(NODES.len(), 0);
}
