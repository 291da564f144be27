//! Tests slot maps with values that panic, and with random programs.

use crate::common::{Flaky, Random};
use mallard::{Key, Key32, Key64, SlotMap};
use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::rc::Rc;

mallard::key_type! {
    struct TinyKey(3, 3);
    struct MidKey(12, 20);
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

#[test]
fn other_elements_stay_valid_after_a_destructor_panics() {
    let ended = Rc::new(Cell::new(0));
    let fill = |map: &mut SlotMap<Key32, Bomb, Flaky>| {
        for i in 0..100 {
            map.insert(Bomb(ended.clone(), i == 40));
        }
    };
    let mut map = SlotMap::new_in(Flaky::new());
    fill(&mut map);
    assert!(catch_unwind(AssertUnwindSafe(|| map.clear())).is_err());
    assert_eq!((ended.get(), map.len(), map.iter().count()), (41, 59, 59));
    map.clear();
    assert_eq!((ended.replace(0), map.len()), (100, 0));
    fill(&mut map);
    assert!(catch_unwind(AssertUnwindSafe(|| map.retain(|_, bomb| !bomb.1))).is_err());
    assert_eq!((ended.get(), map.len()), (1, 99));
    assert!(catch_unwind(AssertUnwindSafe(|| map.retain(|_, _| panic!("a closure")))).is_err());
    assert_eq!(map.len(), 99);
    fill(&mut map);
    ended.set(0);
    assert!(catch_unwind(AssertUnwindSafe(|| drop(map))).is_err());
    assert_eq!(ended.get(), 199);
}

#[test]
fn a_clone_that_panics_drops_the_values_cloned_so_far() {
    struct Fussy(Rc<Cell<isize>>, u32);
    impl Clone for Fussy {
        fn clone(&self) -> Self {
            assert!(self.1 != 30, "will not be cloned");
            self.0.set(self.0.get() + 1);
            Fussy(self.0.clone(), self.1)
        }
    }
    impl Drop for Fussy {
        fn drop(&mut self) {
            self.0.set(self.0.get() - 1);
        }
    }
    let alive = Rc::new(Cell::new(50));
    let mut map = SlotMap::<Key32, Fussy, _>::new_in(Flaky::new());
    (0..50).for_each(|i| {
        map.insert(Fussy(alive.clone(), i));
    });
    assert!(catch_unwind(AssertUnwindSafe(|| map.clone())).is_err());
    assert_eq!((alive.get(), map.len()), (50, 50));
}

/// Runs a random program on a slot map and a `HashMap`, and compares the two.
fn program<K: Key>(seed: u64, steps: usize) {
    let mut random = Random::new(seed);
    let source = Flaky::new();
    let mut map = SlotMap::<K, Box<u64>, _>::new_in(source.clone());
    let mut model = HashMap::<K, u64>::new();
    let (mut keys, mut away, mut given) = (Vec::new(), Vec::new(), HashSet::new());
    for step in 0..steps as u64 {
        match random.below(100) {
            0..=44 => {
                if random.below(50) == 0 {
                    source.fail_after(random.below(3));
                }
                if let Ok(key) = map.try_insert(Box::new(step)) {
                    assert!(given.insert(key) || K::WRAPPING, "{key:?} was given twice");
                    model.insert(key, step);
                    keys.push(key);
                }
                source.recover();
            }
            45..=84 if !keys.is_empty() => {
                let burst = if random.below(20) == 0 { random.below(200) } else { 1 };
                for _ in 0..burst.min(keys.len()) {
                    let key = keys.swap_remove(random.below(keys.len()));
                    assert_eq!(map.remove(key).map(|v| *v), model.remove(&key));
                    assert!(map.get(key).is_none());
                }
            }
            85..=87 if !keys.is_empty() => {
                let key = keys.swap_remove(random.below(keys.len()));
                if let Some(value) = map.detach(key) {
                    assert_eq!(Some(*value), model.remove(&key));
                    away.push((key, value));
                }
            }
            88..=89 if !away.is_empty() => {
                let (key, value) = away.swap_remove(random.below(away.len()));
                if random.below(3) == 0 {
                    assert!(map.remove(key).is_none());
                } else {
                    model.insert(key, *value);
                    assert!(map.reattach(key, value).is_ok());
                    keys.push(key);
                }
            }
            90..=91 => map.trim(),
            92 => {
                let odd = |v: u64| v % 2 == 1;
                map.retain(|_, v| odd(**v));
                model.retain(|_, v| odd(*v));
                keys.retain(|k| model.contains_key(k));
            }
            93 if random.below(10) == 0 => {
                map.clear();
                model.clear();
                keys.clear();
                away.clear();
            }
            94 => {
                let twin = map.clone();
                let _ = std::mem::replace(&mut map, twin);
            }
            _ => drop(map.try_reserve(random.below(300))),
        }
        assert_eq!((map.len(), map.detached()), (model.len(), away.len()));
        if step % 64 == 0 || random.below(40) == 0 {
            let seen: HashMap<_, _> = map.iter().map(|(k, v)| (k, **v)).collect();
            assert_eq!(seen, model);
            assert!(keys.iter().all(|k| map.get(*k).map(|v| **v) == model.get(k).copied()));
        }
    }
}

#[test]
fn random_operations_have_the_same_results_as_a_hash_map() {
    let (seeds, steps) = if cfg!(miri) { (1, 100) } else { (30, 4_000) };
    for seed in 0..seeds {
        program::<Key32>(seed, steps);
        program::<Key64>(seed + 100, steps);
        program::<MidKey>(seed + 200, steps);
    }
}

#[test]
fn random_operations_on_few_slots_have_the_same_results_as_a_hash_map() {
    let (seeds, steps) = if cfg!(miri) { (2, 150) } else { (60, 1_000) };
    for seed in 0..seeds {
        program::<TinyKey>(seed, steps);
    }
}
