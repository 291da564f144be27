//! Tests of the slot map for several threads.

use crate::common::Random;
use mallard::shared_slot_map::{Copied, Guard, Plain};
use mallard::{Chunk, DefaultHeap, Growth, Key, Key32, Key64, SharedSlotMap, Source};
use std::alloc::Layout;
use std::collections::{HashMap, HashSet};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};

mallard::key_type! {
    struct ShortKey(12, 3);
    struct RoundKey(12, 2, wrapping);
}

/// The number of steps of a test, which is smaller under Miri.
const MANY: usize = if cfg!(miri) { 100 } else { 20_000 };
const THREADS: usize = if cfg!(miri) { 3 } else { 8 };

/// Counts the values that are alive.
struct Counted(Arc<AtomicUsize>, u64);
impl Counted {
    fn new(alive: &Arc<AtomicUsize>, value: u64) -> Self {
        alive.fetch_add(1, Ordering::Relaxed);
        Self(alive.clone(), value)
    }
}
impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A source that fails after a number of chunks, and counts the allocated bytes.
#[derive(Clone, Default)]
struct Counting(Arc<(AtomicUsize, AtomicUsize)>);
// SAFETY: every call is passed to the heap.
unsafe impl Source for Counting {
    fn try_take(&self, layout: Layout) -> Option<Chunk> {
        let left = self.0 .1.load(Ordering::Relaxed);
        self.0 .1.store(left.checked_sub(1)?, Ordering::Relaxed);
        let taken = DefaultHeap.try_take(layout)?;
        self.0 .0.fetch_add(taken.layout.size(), Ordering::Relaxed);
        Some(taken)
    }
    unsafe fn give(&self, chunk: Chunk) {
        self.0 .0.fetch_sub(chunk.layout.size(), Ordering::Relaxed);
        // SAFETY: the chunk is from the heap.
        unsafe { DefaultHeap.give(chunk) }
    }
}

#[test]
fn an_empty_map_uses_no_memory_and_finds_no_key() {
    static EMPTY: SharedSlotMap<Key32, String> = SharedSlotMap::new();
    for bits in [1, 5, 1 << 20, 1 << 20 | 1, u32::MAX] {
        let key = Key32::from_bits(bits).unwrap();
        assert!(EMPTY.get(key).is_none() && !EMPTY.remove(key) && EMPTY.take(key).is_none());
    }
    assert_eq!((EMPTY.len(), EMPTY.statistics().bytes_taken), (0, 0));
}

#[test]
fn an_inserted_element_is_found_until_it_is_removed() {
    let mut map = SharedSlotMap::<Key64, String>::new();
    let (a, b) = (map.insert("a".into()), map.insert_with_key(|key| format!("{key:?}")));
    assert_eq!((map.get(a).unwrap().as_str(), map.len()), ("a", 2));
    assert_eq!(map.with(b, |v| v.clone()), Some(format!("{b:?}")));
    map.get_mut(a).unwrap().push('!');
    assert_eq!(map.take(a).as_deref(), Some("a!"));
    assert!(map.get(a).is_none() && map.get_mut(a).is_none() && !map.remove(a));
    assert!(map.remove(b) && !map.remove(b) && map.is_empty());
    let c = map.insert("c".into());
    assert!(c != a && c != b && !map.contains_key(a) && map.contains_key(c));
    assert!(!map.contains_key(Key64::null()));
}

#[test]
fn a_guard_keeps_its_element_and_the_last_guard_drops_it() {
    let alive = Arc::new(AtomicUsize::new(0));
    let map = SharedSlotMap::<Key32, Counted>::new();
    let key = map.insert(Counted::new(&alive, 5));
    let guard = map.get(key).unwrap();
    let second = guard.clone();
    assert!(map.take(key).is_none()); // `take` returns nothing while guards exist
    assert!(map.remove(key) && map.get(key).is_none());
    assert_eq!((guard.1, guard.key(), map.len()), (5, key, 1));
    drop(guard);
    assert_eq!((second.1, alive.load(Ordering::Relaxed)), (5, 1));
    drop(second);
    assert_eq!((alive.load(Ordering::Relaxed), map.len()), (0, 0));
    let key = map.insert(Counted::new(&alive, 6));
    std::mem::forget(map.get(key));
    map.remove(key);
    map.insert(Counted::new(&alive, 7));
    drop(map);
    assert_eq!(alive.load(Ordering::Relaxed), 0);
}

#[test]
fn a_slot_with_no_generation_left_is_retired_or_starts_over() {
    let map = SharedSlotMap::<ShortKey, u8>::new();
    let mut seen = HashSet::new();
    let rounds = if cfg!(miri) { 100 } else { 7 * 4095 };
    for _ in 0..rounds {
        let key = map.try_insert(1).unwrap();
        assert!(seen.insert(key) && map.remove(key));
    }
    assert_eq!(map.retired(), rounds / 7);
    if !cfg!(miri) {
        assert_eq!(map.try_insert(9).unwrap_err().into_inner(), 9);
        assert!(catch_unwind(|| map.insert(1)).is_err());
    }
    let map = SharedSlotMap::<RoundKey, u8>::new();
    let first = map.insert(0);
    let keys: Vec<_> = (0..3).map(|_| (map.clear(), map.insert(0)).1).collect();
    assert_eq!((keys[2], map.retired()), (first, 0));
}

#[test]
fn a_panic_leaves_the_slot_free_and_the_map_usable() {
    struct Bomb(bool);
    impl Drop for Bomb {
        fn drop(&mut self) {
            assert!(!self.0 || std::thread::panicking(), "a destructor");
        }
    }
    let map = SharedSlotMap::<Key32, Bomb>::new();
    let made = catch_unwind(AssertUnwindSafe(|| map.insert_with_key(|_| panic!("a constructor"))));
    assert!(made.is_err() && map.is_empty());
    let key = map.insert(Bomb(true));
    assert!(catch_unwind(AssertUnwindSafe(|| map.remove(key))).is_err());
    assert!(map.is_empty() && !map.contains_key(key));
    assert_eq!(map.insert(Bomb(false)).index(), key.index());
    map.insert(Bomb(true));
    map.insert(Bomb(true));
    assert!(catch_unwind(AssertUnwindSafe(|| drop(map))).is_err());
}

#[test]
fn if_memory_is_exhausted_the_error_returns_the_value() {
    for successes in 0..9 {
        let source = Counting::default();
        source.0 .1.store(successes, Ordering::Relaxed);
        let map = SharedSlotMap::<Key32, [u64; 9], _, _>::with_growth_in(
            Growth::fixed(1),
            source.clone(),
        );
        let map: &SharedSlotMap<_, _, mallard::shared_slot_map::Guarded, _> = &map;
        let mut keys = Vec::new();
        loop {
            match map.try_insert([keys.len() as u64; 9]) {
                Ok(key) => keys.push(key),
                Err(full) => break assert_eq!(full.into_inner()[8], keys.len() as u64),
            }
        }
        for (i, &key) in keys.iter().enumerate() {
            assert_eq!(map.take(key).unwrap()[0], i as u64);
        }
        source.0 .1.store(100, Ordering::Relaxed);
        let again: HashSet<_> = (0..keys.len() + 50).map(|_| map.insert([1; 9])).collect();
        assert_eq!((again.len(), map.len()), (keys.len() + 50, keys.len() + 50));
        assert_eq!(map.statistics().bytes_taken, source.0 .0.load(Ordering::Relaxed));
    }
}

#[test]
fn all_memory_is_returned_to_the_source() {
    let source = Counting::default();
    source.0 .1.store(usize::MAX, Ordering::Relaxed);
    let growth = Growth::fixed(1 << 17);
    let map = SharedSlotMap::<Key32, String, mallard::shared_slot_map::Guarded, _>::with_growth_in(
        growth,
        source.clone(),
    );
    for i in 0..MANY {
        map.insert(i.to_string());
    }
    assert!(source.0 .0.load(Ordering::Relaxed) > 0);
    drop(map);
    assert_eq!(source.0 .0.load(Ordering::Relaxed), 0);
}

#[test]
fn zero_sized_and_over_aligned_elements_work() {
    #[repr(align(512))]
    struct Wide(u8);
    let (wide, units) = (SharedSlotMap::<Key32, Wide>::new(), SharedSlotMap::<Key64, ()>::new());
    for i in 0..100 {
        let key = wide.insert(Wide(i));
        let guard = wide.get(key).unwrap();
        assert_eq!((&*guard as *const Wide as usize % 512, guard.0), (0, i));
        assert!(units.contains_key(units.insert(())));
    }
    assert_eq!(units.len(), 100);
}

#[test]
fn a_copied_element_equals_the_inserted_one() {
    fn same<V: Plain + PartialEq + std::fmt::Debug>(values: &[V]) {
        let map = SharedSlotMap::<Key64, V, Copied>::new();
        let keys: Vec<_> = values.iter().map(|&v| map.insert(v)).collect();
        for (&key, &value) in keys.iter().zip(values) {
            assert_eq!((map.read(key), map.get(key).map(|g| *g)), (Some(value), Some(value)));
            assert_eq!((map.take(key), map.read(key)), (Some(value), None));
        }
    }
    same(&[1u8, 200]);
    same(&[1u64, u64::MAX]);
    same(&[[1u16, 2, 3], [4, 5, 6]]);
    same(&[[7u8; 13], [8; 13]]);
    same(&[1u128 << 100, 5]);
    same(&[(); 3]);
    same(&['a', 'ö']);
}

#[test]
fn keys_from_all_threads_are_distinct_and_valid() {
    let map = SharedSlotMap::<Key32, (usize, usize)>::new();
    let all = Mutex::new(HashSet::new());
    std::thread::scope(|scope| {
        for t in 0..THREADS {
            let (map, all) = (&map, &all);
            scope.spawn(move || {
                let keys: Vec<_> = (0..MANY).map(|i| map.insert((t, i))).collect();
                assert!(keys.iter().enumerate().all(|(i, &k)| *map.get(k).unwrap() == (t, i)));
                all.lock().unwrap().extend(keys);
            });
        }
    });
    assert_eq!((all.lock().unwrap().len(), map.len()), (THREADS * MANY, THREADS * MANY));
    let mut sums = HashMap::new();
    map.for_each(|_, &(t, i)| *sums.entry(t).or_insert(0) += i);
    assert!((0..THREADS).all(|t| sums[&t] == MANY * (MANY - 1) / 2));
    map.clear();
    assert!(map.is_empty());
}

#[test]
fn of_many_threads_that_remove_an_element_exactly_one_succeeds() {
    let alive = Arc::new(AtomicUsize::new(0));
    let map = SharedSlotMap::<Key64, Counted>::new();
    let keys: Vec<_> = (0..MANY as u64).map(|i| map.insert(Counted::new(&alive, i))).collect();
    let removed = AtomicUsize::new(0);
    let barrier = Barrier::new(THREADS);
    std::thread::scope(|scope| {
        for t in 0..THREADS {
            let (map, keys, removed, barrier) = (&map, &keys, &removed, &barrier);
            scope.spawn(move || {
                barrier.wait();
                for &key in keys {
                    let guard = map.get(key).map(|g: Guard<'_, _, _>| g.1);
                    let won = match t % 2 {
                        0 => map.remove(key),
                        _ => map.take(key).inspect(|v| assert_eq!(v.1, guard.unwrap())).is_some(),
                    };
                    removed.fetch_add(won as usize, Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!((removed.into_inner(), map.len(), alive.load(Ordering::Relaxed)), (MANY, 0, 0));
}

#[test]
fn a_copied_element_is_never_a_mixture_of_two_elements() {
    let map = SharedSlotMap::<Key64, [u64; 4], Copied>::new();
    let shared = [const { std::sync::atomic::AtomicU64::new(0) }; 4];
    let done = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for place in &shared {
            let (map, done) = (&map, &done);
            scope.spawn(move || {
                for i in 0..MANY as u64 {
                    let key = map.insert([i; 4]);
                    place.store(key.to_bits(), Ordering::Release);
                    assert_eq!(map.read(key), Some([i; 4]));
                    assert!(map.remove(key) && map.read(key).is_none());
                }
                done.fetch_add(1, Ordering::Relaxed);
            });
        }
        for _ in 0..2 {
            scope.spawn(|| {
                let mut random = Random::new(1);
                while done.load(Ordering::Relaxed) < shared.len() {
                    let bits = shared[random.below(4)].load(Ordering::Acquire);
                    if let Some(value) = Key64::from_bits(bits).and_then(|key| map.read(key)) {
                        assert!(value.iter().all(|&word| word == value[0]), "{value:?}");
                    }
                    std::thread::yield_now();
                }
            });
        }
    });
}

#[test]
fn random_operations_of_several_threads_have_the_same_results_as_a_model() {
    let alive = Arc::new(AtomicUsize::new(0));
    let map = SharedSlotMap::<Key32, Counted>::new();
    // All threads share a list of keys. Each key is removed from the list once, and then from the
    // map.
    let bag = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for seed in 0..THREADS as u64 {
            let (map, bag, alive) = (&map, &bag, &alive);
            scope.spawn(move || {
                let mut random = Random::new(seed);
                let mut held: Vec<Guard<'_, _, Counted>> = Vec::new();
                for _ in 0..MANY {
                    let value = random.next();
                    match random.below(8) {
                        0..=3 => bag
                            .lock()
                            .unwrap()
                            .push((map.insert(Counted::new(alive, value)), value)),
                        4..=5 => {
                            let drawn = {
                                let mut bag = bag.lock().unwrap();
                                let len = bag.len();
                                (len != 0).then(|| bag.swap_remove(value as usize % len))
                            };
                            if let Some((key, value)) = drawn {
                                held.push(map.get(key).unwrap());
                                assert_eq!(held.last().unwrap().1, value);
                                assert!(map.remove(key) && !map.contains_key(key));
                            }
                        }
                        _ if !held.is_empty() => {
                            drop(held.swap_remove(value as usize % held.len()))
                        }
                        _ => {}
                    }
                    if held.len() > 20 {
                        held.clear();
                    }
                }
            });
        }
    });
    let bag = bag.into_inner().unwrap();
    assert_eq!((map.len(), alive.load(Ordering::Relaxed)), (bag.len(), bag.len()));
    assert!(bag.iter().all(|&(key, value)| map.get(key).unwrap().1 == value));
    drop(map);
    assert_eq!(alive.load(Ordering::Relaxed), 0);
}

#[test]
fn for_each_skips_elements_that_its_function_removed() {
    let map: SharedSlotMap<Key64, u32> = SharedSlotMap::new();
    let keys: Vec<_> = (0..10).map(|i| map.insert(i)).collect();
    let mut met = Vec::new();
    map.for_each(|key, &value| {
        met.push(value);
        if value == 2 {
            assert!([key, keys[3], keys[7]].into_iter().all(|k| map.remove(k)));
            map.insert(1000);
        }
    });
    met.retain(|&value| value != 1000); // an iteration may or may not visit value 1000
    assert_eq!((met, map.len()), (vec![0, 1, 2, 4, 5, 6, 8, 9], 8));
}
