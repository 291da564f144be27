//! Tests of secondary maps, dense and sparse, which give the same guarantees.

use crate::common::{Flaky, Random};
use mallard::{Growth, Key, Key32, Key64, SecondaryMap, SlotMap, SparseSecondaryMap};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::collections::HashMap;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::rc::Rc;

mallard::key_type! {
    struct MidKey(12, 20);
}

fn key<K: Key<Bits = u32>>(index: u32, generation: u32) -> K {
    K::from_bits(generation << K::INDEX_BITS | index).unwrap()
}

/// A value that counts its drops, and can panic when it is dropped.
struct Bomb(Rc<Cell<usize>>, bool);
impl Drop for Bomb {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
        if self.1 && !std::thread::panicking() {
            panic!("a destructor");
        }
    }
}

macro_rules! promises {
    ($module:ident, $map:ident) => {
        mod $module {
            use super::*;

            #[test]
            fn an_empty_map_uses_no_memory_and_finds_no_key() {
                let source = Flaky::new();
                let mut map = $map::<Key32, u64, _>::new_in(source.clone());
                for bits in [1, 5, 1 << 20, 1 << 20 | 1, u32::MAX] {
                    let key = Key32::from_bits(bits).unwrap();
                    assert!(!map.contains_key(key) && map.remove(key).is_none());
                }
                map.clear();
                assert_eq!((map.iter().count(), map.len(), source.calls()), (0, 0, 0));
                static EMPTY: $map<Key64, u8> = $map::new();
                assert!(EMPTY.is_empty());
            }

            #[test]
            fn a_newer_key_replaces_an_older_one_and_never_the_reverse() {
                let mut map = $map::<Key32, &str>::new();
                let (old, new) = (key(7, 3), key(7, 4));
                assert_eq!(map.insert(old, "a"), None);
                assert_eq!(map.insert(old, "b"), Some("a"));
                assert_eq!(map.insert(new, "c"), None);
                assert_eq!((map.get(old), map.get(new), map.len()), (None, Some(&"c"), 1));
                assert_eq!(map.insert(old, "d"), None);
                assert_eq!(map.try_insert(old, "e").unwrap_err().into_inner(), "e");
                assert_eq!((map[new], map.remove(old), map.remove(new)), ("c", None, Some("c")));
                assert_eq!(map.try_insert(old, "f"), Ok(None));
            }

            #[test]
            fn null_keys_and_unknown_keys_cannot_be_given_a_value() {
                let mut map = $map::<MidKey, u8>::new();
                for bits in [1, 2, 0xfff, 0x1000, 0xf000] {
                    let key = MidKey::from_bits(bits).unwrap();
                    assert!(map.try_insert(key, 1).is_err() && map.insert(key, 1).is_none());
                }
                assert!(map.is_empty());
            }

            #[test]
            fn if_memory_is_exhausted_the_error_returns_the_value() {
                for successes in 0..6 {
                    let source = Flaky::new();
                    let mut map = $map::<Key32, String, _>::new_in(source.clone());
                    source.fail_after(successes);
                    let mut kept = Vec::new();
                    for i in 1..if cfg!(miri) { 300 } else { 3000 } {
                        match map.try_insert(key(i, 1), i.to_string()) {
                            Ok(before) => {
                                assert!(before.is_none());
                                kept.push(i);
                            }
                            Err(full) => assert_eq!(full.into_inner(), i.to_string()),
                        }
                    }
                    assert!(kept.iter().all(|&i| map[key(i, 1)] == i.to_string()));
                    assert_eq!((map.len(), map.iter().count()), (kept.len(), kept.len()));
                }
            }

            #[test]
            fn a_map_can_be_collected_extended_cloned_and_consumed() {
                let mut map: $map<Key32, u32> = (1..100).map(|i| (key(i * 50, 1), i)).collect();
                map.extend([(key(3, 9), 0)]);
                *map.get_mut(key(3, 9)).unwrap() += 1;
                map[key(3, 9)] += 1;
                let twin = map.clone();
                assert_eq!(format!("{map:?}"), format!("{twin:?}"));
                map.retain(|_, value| *value % 2 == 0);
                assert_eq!((map.len(), map.values().sum::<u32>()), (50, 2450 + 2));
                map.values_mut().for_each(|value| *value = 1);
                assert_eq!(map.iter_mut().map(|(_, v)| *v).sum::<u32>(), 50);
                assert_eq!(map.keys().len(), 50);
                let mut all: Vec<_> = twin.into_iter().map(|(_, v)| v).collect();
                all.sort();
                assert_eq!((all.len(), all[99]), (100, 99));
                assert_eq!(map.into_iter().skip(10).count(), 40);
            }

            #[test]
            fn other_values_stay_valid_after_a_destructor_panics() {
                let ended = Rc::new(Cell::new(0));
                let mut map = $map::<Key32, Bomb, _>::new_in(Flaky::new());
                for i in 1..=100 {
                    map.insert(key(i, 1), Bomb(ended.clone(), i == 40));
                }
                assert!(catch_unwind(AssertUnwindSafe(|| map.clear())).is_err());
                assert_eq!(map.len(), 100 - ended.get());
                assert_eq!(map.iter().count(), map.len());
                map.insert(key(200, 1), Bomb(ended.clone(), true));
                let all = map.len() + ended.get();
                assert!(catch_unwind(AssertUnwindSafe(|| drop(map))).is_err());
                assert_eq!(ended.get(), all);
            }

            #[test]
            fn zero_sized_and_over_aligned_values_work() {
                #[derive(Clone, PartialEq, Debug)]
                #[repr(align(256))]
                struct Wide(u8);
                let units: $map<Key32, ()> = (1..500).map(|i| (key(i, 1), ())).collect();
                assert_eq!(units.iter().count(), 499);
                let wide: $map<Key32, Wide> = (1..50).map(|i| (key(i, 1), Wide(i as u8))).collect();
                for (key, value) in &wide {
                    assert_eq!(value as *const Wide as usize % 256, 0);
                    assert_eq!(value.0 as usize, key.index());
                }
            }

            #[test]
            fn random_operations_have_the_same_results_as_a_hash_map() {
                let steps = if cfg!(miri) { 300 } else { 100_000 };
                let mut random = Random::new(3);
                let mut map = $map::<MidKey, Box<usize>, _>::new_in(Flaky::new());
                let mut model = HashMap::<u32, (MidKey, usize)>::new();
                for step in 0..steps {
                    let index = 1 + random.below(if step % 8 == 0 { 4095 } else { 60 }) as u32;
                    let k = key::<MidKey>(index, 1 + random.below(5) as u32);
                    let there = model.get(&index).copied();
                    let same = there.filter(|t| t.0 == k).map(|t| t.1);
                    match random.below(10) {
                        0..=4 => {
                            assert_eq!(map.insert(k, Box::new(step)).map(|v| *v), same);
                            if there.is_none_or(|t| t.0 <= k) {
                                model.insert(index, (k, step));
                            }
                        }
                        5..=7 => {
                            assert_eq!(map.remove(k).map(|v| *v), same);
                            if same.is_some() {
                                model.remove(&index);
                            }
                        }
                        _ => assert_eq!(map.get(k).map(|v| **v), same),
                    }
                    if step % 500 == 0 {
                        let cut = random.below(5) as u64;
                        map.retain(|k, _| k.generation() != cut);
                        model.retain(|_, (k, _)| k.generation() != cut);
                        let seen: HashMap<_, _> = map.iter().map(|(k, v)| (k, **v)).collect();
                        assert_eq!(seen, model.values().copied().collect());
                    }
                    assert_eq!(map.len(), model.len());
                }
            }

            #[test]
            fn indexing_without_a_value_panics_with_a_message() {
                let map = $map::<Key32, u8>::new();
                assert!(catch_unwind(AssertUnwindSafe(|| map[Key32::null()])).is_err());
            }
        }
    };
}
promises!(dense, SecondaryMap);
promises!(sparse, SparseSecondaryMap);

#[test]
fn values_of_a_secondary_map_keep_their_addresses() {
    let mut map = SecondaryMap::<Key32, u64>::new();
    map.insert(key(1, 1), 5);
    let at = &map[key(1, 1)] as *const u64;
    (2..20_000).step_by(31).for_each(|i| {
        map.insert(key(i, 1), 1);
    });
    assert_eq!(&map[key(1, 1)] as *const u64, at);
}

#[test]
fn a_secondary_map_uses_memory_only_for_indices_near_keys_with_values() {
    let source = Flaky::new();
    let mut map = SecondaryMap::<Key32, u64, _>::with_growth_in(Growth::fixed(1), source.clone());
    map.insert(key(1_000_000, 1), 7);
    map.insert(key(3, 1), 8);
    assert!(source.taken() < 60_000, "{}", source.taken());
    let [a, b] = map.get_disjoint_mut([key(3, 1), key(1_000_000, 1)]).unwrap();
    std::mem::swap(a, b);
    assert_eq!((map[key(3, 1)], map.drain().len()), (7, 2));
    let before = source.taken();
    map.trim();
    assert!(source.taken() < before);
    assert!(map.get(key(3, 1)).is_none() && map.get(key(1_000_000, 1)).is_none());
    map.insert(key(3, 2), 9);
    assert_eq!(map[key(3, 2)], 9);
    assert_eq!(map.statistics().bytes_taken, source.taken());
}

#[test]
fn several_secondary_maps_use_the_keys_of_one_slot_map() {
    let mut map = SlotMap::<Key64, &str>::new();
    let (mut dense, mut sparse) = (SecondaryMap::new(), SparseSecondaryMap::new());
    let keys: Vec<_> = ["a", "b", "c"].map(|s| map.insert(s)).into();
    dense.insert(keys[0], 1);
    sparse.insert(keys[1], 2);
    map.remove(keys[0]);
    let again = map.insert("d");
    assert_eq!((dense.get(again), dense.get(keys[0])), (None, Some(&1)));
    dense.insert(again, 3);
    assert_eq!((dense.get(again), dense.get(keys[0])), (Some(&3), None));
    dense.retain(|key, _| map.contains_key(key));
    assert_eq!((dense.len(), sparse[keys[1]]), (1, 2));
}

#[test]
fn a_join_visits_the_keys_that_have_an_element_in_every_map() {
    let mut numbers: SlotMap<Key64, u32> = SlotMap::new();
    let keys: Vec<Key64> = (0..100).map(|n| numbers.insert(n)).collect();
    let mut halves: SecondaryMap<Key64, u32> = SecondaryMap::new();
    let mut thirds: SparseSecondaryMap<Key64, String> = SparseSecondaryMap::new();
    for (n, &key) in keys.iter().enumerate() {
        if n % 2 == 0 {
            halves.insert(key, 6); // is overwritten below, except for element 12
        }
        if n % 3 == 0 {
            thirds.insert(key, n.to_string());
        }
    }
    numbers.remove(keys[12]);
    // Reuses a slot while the secondary maps still have a value for its old key.
    let stale = numbers.insert(12);
    let mut met = Vec::new();
    numbers.for_each_with(&mut halves, |key, n, half| {
        assert!(key != stale);
        *half = *n / 2;
        met.push(*n);
    });
    assert_eq!(met, (0..100).step_by(2).filter(|&n| n != 12).collect::<Vec<_>>());
    thirds.for_each_with(&mut halves, |_, text, half| assert_eq!(*text, (2 * *half).to_string()));
    halves.for_each_with(&mut thirds, |_, half, text| *text = half.to_string());
    thirds.for_each_with(&mut numbers, |_, text, n| {
        assert_eq!(*text, if *n % 2 == 0 { *n / 2 } else { *n }.to_string());
        *n += 1000;
    });
    assert_eq!(numbers.values().filter(|&&n| n >= 1000).count(), 33);
}

fn key_at(index: u64, generation: u64) -> Key64 {
    Key64::from_bits(generation << 32 | index).unwrap()
}

#[test]
fn a_forged_key_costs_no_more_memory_than_a_valid_one() {
    let mut map: SecondaryMap<Key64, u8> = SecondaryMap::new();
    map.insert(key_at(0xffff_fffe, 1), 1);
    assert!(map.statistics().bytes_taken < 20_000, "{:?}", map.statistics());
    for far in 1..20 {
        map.insert(key_at(far << 27, 1), far as u8);
    }
    assert!(map.statistics().bytes_taken < 20 * 20_000, "{:?}", map.statistics());
    assert_eq!(
        (map.len(), map.get(key_at(0xffff_fffe, 1)), map.get(key_at(9, 1))),
        (20, Some(&1), None)
    );
    let text: Vec<_> = map.iter().map(|(key, value)| (key.index(), *value)).collect();
    assert!(text.is_sorted(), "{text:?}");
}

/// Inserts keys with near and far indices, in few and in many chunks, and compares the map with a
/// `BTreeMap`.
#[test]
fn keys_of_any_index_are_found_visited_and_removed() {
    let mut random = Random::new(7);
    let source = Flaky::new();
    // A chunk has 8 slots, so the directory grows a few times.
    let mut map: SecondaryMap<Key64, [u64; 256], _> = SecondaryMap::new_in(source.clone());
    let mut model = BTreeMap::<u64, (u64, u64)>::new();
    let spreads = [10, 1 << 9, 1 << 18, 1 << 24, 0xffff_fff0];
    for step in 0..if cfg!(miri) { 101 } else { 6000 } {
        let spread = spreads[random.below(spreads.len())];
        let index = 1 + random.next() % spread / 3 * 3;
        let known = model.keys().nth(random.below(model.len().max(1))).copied();
        let index = known.filter(|_| random.below(2) == 0).unwrap_or(index);
        let generation = 1 + random.next() % 3;
        let key = key_at(index, generation);
        let before = model.get(&index).copied();
        let same = before.filter(|(g, _)| *g == generation).map(|(_, value)| value);
        match random.below(10) {
            0..4 => {
                let outdated = before.is_some_and(|(g, _)| g > generation);
                let given = map.try_insert(key, [step; 256]);
                assert_eq!(given.is_err(), outdated);
                if !outdated {
                    assert_eq!(given.unwrap().map(|value| value[255]), same);
                    model.insert(index, (generation, step));
                }
            }
            4..7 => {
                assert_eq!(map.remove(key).map(|value| value[0]), same);
                if same.is_some() {
                    model.remove(&index);
                }
            }
            7 => {
                assert_eq!(map.get_mut(key).map(|value| value[7]), same);
                assert_eq!(map.get_disjoint_mut([key]).map(|[value]| value[9]), same);
            }
            8 if step % 40 == 0 => map.trim(),
            9 if step % 50 == 0 => {
                map.retain(|key, _| key.index() % 2 == 0);
                model.retain(|index, _| index % 2 == 0);
            }
            _ => assert_eq!(map.get(key).map(|value| value[0]), same),
        }
        if step % 100 == 0 {
            let expected: Vec<_> = model.iter().map(|(i, (g, v))| (key_at(*i, *g), *v)).collect();
            let is = |map: &SecondaryMap<Key64, [u64; 256], Flaky>| {
                assert!(map
                    .iter()
                    .map(|(key, value)| (key, value[3]))
                    .eq(expected.iter().copied()));
                assert_eq!(
                    map.values().map(|value| value[5]).sum::<u64>(),
                    expected.iter().map(|e| e.1).sum::<u64>()
                );
                assert!(expected.iter().all(|(key, value)| map[*key][0] == *value));
            };
            is(&map);
            is(&map.clone());
        }
    }
    map.clear();
    map.trim();
    assert!(map.statistics().chunks <= 2, "{:?}", map.statistics());
    drop(map);
    assert_eq!(source.taken(), 0);
}
