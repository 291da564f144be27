//! Tests the iteration and clones of slot maps, and that they return memory.

use crate::common::{Flaky, Random};
use mallard::{Key, Key32, SlotMap};
use std::collections::{HashMap, HashSet};

mallard::key_type! {
    struct MidKey(12, 20);
}

/// The number of steps of a test, which is smaller under Miri.
const MANY: usize = if cfg!(miri) { 600 } else { 20_000 };

#[test]
fn iterators_visit_each_element_once_after_any_removals() {
    let mut random = Random::new(17);
    let mut map = SlotMap::<MidKey, u64>::new();
    let mut model = HashMap::new();
    for round in 0..if cfg!(miri) { 6 } else { 60 } {
        for i in 0..random.below(900) as u64 {
            if let Ok(key) = map.try_insert(i) {
                model.insert(key, i);
            }
        }
        let keys: Vec<_> = model.keys().copied().collect();
        for key in keys {
            if random.below(100) < 30 + round {
                assert_eq!(map.remove(key), model.remove(&key));
            }
        }
        match round % 4 {
            0 => assert_eq!(map.iter().map(|(k, &v)| (k, v)).collect::<HashMap<_, _>>(), model),
            1 => drop(map.iter().take(model.len() / 2).count()), // the iterator is dropped half-way
            2 => map.values_mut().for_each(|v| *v = v.wrapping_add(0)),
            _ => {}
        }
        let mut iter = map.iter();
        let mut met = 0;
        while iter.next().is_some() {
            met += 1;
            assert_eq!(iter.len(), model.len() - met);
        }
        assert_eq!((met, iter.next(), map.len()), (model.len(), None, model.len()));
        assert!(map.keys().map(|k| k.index()).is_sorted());
    }
}

#[test]
fn fold_visits_what_a_for_loop_visits() {
    let mut map = SlotMap::<Key32, u64>::new();
    let mut keys = Vec::new();
    let look = |map: &mut SlotMap<Key32, u64>| {
        let mut looped = Vec::new();
        for (key, &value) in &*map {
            looped.push((key, value));
        }
        let mut folded = Vec::new();
        map.iter().for_each(|(key, &value)| folded.push((key, value)));
        assert_eq!((folded.len(), &folded), (map.len(), &looped));
        let mut rest = map.iter();
        assert_eq!(rest.next().map(|(key, _)| key), looped.first().map(|&(key, _)| key));
        assert_eq!(rest.count(), map.len().saturating_sub(1));
        let mut rest = map.iter();
        rest.next();
        assert_eq!(rest.fold(0, |sum, (_, v)| sum + v + 1), sum(looped.iter().skip(1)));
        map.values_mut().for_each(|v| *v += 1);
        assert_eq!(map.values().map(|v| v + 1).sum::<u64>(), sum(&looped) + looped.len() as u64);
    };
    // Covers groups of slots that are full, have gaps, or are partly used, each with and without
    // free keys.
    for n in 0..if cfg!(miri) { 70 } else { 300 } {
        keys.push(map.insert(n));
        look(&mut map);
    }
    for i in [0, 63, 64, 65, 130, 250] {
        if i < keys.len() {
            map.remove(keys[i]).unwrap();
            look(&mut map);
        }
    }
    fn sum<'a>(all: impl IntoIterator<Item = &'a (Key32, u64)>) -> u64 {
        all.into_iter().map(|&(_, value)| value + 1).sum()
    }
}

#[test]
fn several_threads_iterate_over_one_map() {
    let mut map = SlotMap::<Key32, u64>::new();
    for round in 0..if cfg!(miri) { 3 } else { 50 } {
        let keys: Vec<_> = (0..500).map(|i| map.insert(i)).collect();
        keys.iter().skip(round % 3).step_by(3).for_each(|&key| {
            map.remove(key);
        });
        let sum: u64 = keys.iter().filter_map(|&k| map.get(k)).sum();
        let others = map.len() - keys.iter().filter(|&&k| map.contains_key(k)).count();
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let (mut s, mut n) = (0, 0);
                    for (_, v) in &map {
                        (s, n) = (s + v, n + 1);
                    }
                    assert_eq!((s, n), (sum, map.len()));
                    assert_eq!((map.values().sum::<u64>(), others), (sum, 0));
                });
            }
        });
        map.clear();
    }
}

#[test]
fn retain_drain_and_into_iter_remove_the_right_elements() {
    let mut map: SlotMap<Key32, u32> = SlotMap::with_capacity(100);
    let keys: Vec<_> = (0..100).map(|i| map.insert(i)).collect();
    map.retain(|key, value| {
        assert_eq!(key, keys[*value as usize]);
        *value % 3 == 0
    });
    assert_eq!((map.len(), map.values().sum::<u32>()), (34, 1683));
    let mut drain = map.drain();
    assert_eq!((drain.next(), drain.len()), (Some((keys[0], 0)), 33));
    drop(drain);
    assert!(map.is_empty());
    let kept = map.insert(1);
    let mut drain = map.drain();
    drain.next();
    std::mem::forget(drain);
    assert_eq!((map.len(), map.contains_key(kept)), (0, false));
    let keys: Vec<_> = (0..10).map(|i| map.insert(i)).collect();
    let twin = map.clone();
    assert_eq!(map.clone().into_keys().collect::<HashSet<_>>(), keys.into_iter().collect());
    assert_eq!(map.into_values().sum::<u32>(), 45);
    assert_eq!(twin.into_iter().skip(3).count(), 7);
}

#[test]
fn trim_returns_memory_and_no_key_is_reused() {
    let source = Flaky::new();
    let mut map = SlotMap::<Key32, u64, _>::new_in(source.clone());
    let mut dead = HashSet::new();
    for round in 0..4 {
        let keys: Vec<_> = (0..MANY as u64).map(|i| map.insert(i)).collect();
        let high = source.taken();
        for (i, &key) in keys.iter().enumerate() {
            assert!(!dead.contains(&key), "{key:?} came again");
            if i != 5 + round {
                map.remove(key);
                dead.insert(key);
            }
        }
        map.trim();
        assert!(source.taken() * 2 < high + 40_000, "{} of {high}", source.taken());
        assert!(dead.iter().all(|&key| !map.contains_key(key)));
        assert_eq!((map.len(), map.iter().count()), (round + 1, round + 1));
    }
    assert_eq!(map.statistics().bytes_taken, source.taken());
}

#[test]
fn reserve_allocates_the_memory_for_later_elements() {
    let source = Flaky::new();
    let mut map = SlotMap::<Key32, u64, _>::new_in(source.clone());
    map.reserve(MANY);
    assert!(map.capacity() >= MANY && map.is_empty());
    let calls = source.calls();
    (0..MANY as u64).for_each(|i| {
        map.insert(i);
    });
    assert_eq!((source.calls(), map.iter().count()), (calls, MANY));
}

#[test]
fn a_clone_has_the_same_keys() {
    let mut map = SlotMap::<Key32, String>::new();
    let keys: Vec<_> = (0..MANY / 4).map(|i| map.insert(i.to_string())).collect();
    keys.iter().step_by(3).for_each(|&key| {
        map.remove(key);
    });
    map.detach(keys[1]);
    map.trim();
    let mut twin = map.clone();
    assert_eq!((twin.len(), twin.detached(), twin.capacity()), (map.len(), 1, map.capacity()));
    assert!(keys.iter().all(|&key| twin.get(key) == map.get(key)));
    assert_eq!(format!("{twin:?}"), format!("{map:?}"));
    twin.reattach(keys[1], "1".into()).unwrap();
    let fresh: HashSet<_> = (0..MANY / 4).map(|_| twin.insert("new".into())).collect();
    assert!(keys.iter().all(|key| !fresh.contains(key)));
    assert!(map.get(keys[1]).is_none());
}
