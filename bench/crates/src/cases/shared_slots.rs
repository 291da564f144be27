//! Measures maps in which several threads find values by keys at the same time, as in the crate
//! sharded-slab.

use crate::contenders::maps::{self, Value};
use crate::contenders::shared_maps::{Locked, Sharded, SharedMap};
use crate::harness::crew::Crew;
use crate::harness::random::{shuffled_indices, Random};
use crate::harness::{Body, Entrant, Experiment};
use mallard::shared_slot_map::{Copied, Guarded};
use mallard::{Key64, SharedSlotMap, SlotMap};
use std::hint::black_box;
use std::sync::{Mutex, PoisonError};

/// The number of elements that each thread has.
const ELEMENTS: usize = 1000;

/// A way to prepare a case for any map.
trait Play: Copy + 'static {
    fn prepare<M: SharedMap>(self) -> Body;
}

fn entrant<M: SharedMap>(play: impl Play) -> Entrant {
    Entrant { name: M::name(), prepare: Box::new(move |_| Ok(play.prepare::<M>())) }
}

fn everyone(play: impl Play) -> Vec<Entrant> {
    vec![
        entrant::<Sharded>(play),
        entrant::<SharedSlotMap<Key64, Value, Guarded>>(play),
        entrant::<SharedSlotMap<Key64, Value, Copied>>(play),
        entrant::<Locked<SlotMap<Key64, Value>>>(play),
        entrant::<Locked<maps::Slab>>(play),
        entrant::<Locked<maps::Slot>>(play),
    ]
}

pub fn experiments() -> Vec<Experiment> {
    let mut all = Vec::new();
    for threads in [1, 2, 4, 8] {
        let of = |name: &str, what: &str, entrants| {
            let asks = format!("{threads} threads, each of which {what}");
            Experiment::new(format!("sharded-slab/{name}/T{threads}"), asks, entrants)
        };
        let renewed = |is_new| everyone(InsertRemove { threads, is_new });
        let what = "inserts 1,000 values into a new map, then removes them. ns of both";
        all.push(
            of("insert-remove", what, renewed(true))
                .ops(threads * ELEMENTS)
                .threads(threads)
                .variant("faithful")
                .not_in_brief(),
        );
        let what = "inserts 1,000 values into a map that stays, then removes them. ns of both";
        all.push(
            of("insert-remove", what, renewed(false))
                .ops(threads * ELEMENTS)
                .threads(threads)
                .variant("corrected"),
        );
        let what = "has 1,000 values of which a random one is removed and another inserted. ns of \
                    both";
        all.push(of("replace", what, everyone(Replace { threads })).ops(threads).threads(threads));
        let what = "reads 1,000 values that all have, in random order. ns of one";
        let get = of("get", what, everyone(Get { threads }));
        all.push(get.ops(threads * ELEMENTS).threads(threads));
    }
    all
}

/// Each thread inserts elements and removes them. In the variant `faithful` (as published), each
/// pass has a new map. In the variant `corrected`, all passes use one map.
#[derive(Clone, Copy)]
struct InsertRemove {
    threads: usize,
    is_new: bool,
}

#[inline(always)]
fn insert_and_remove<M: SharedMap>(map: &M, keys: &mut Vec<M::Key>) {
    keys.extend((0..ELEMENTS).map(|i| map.insert(black_box(i as u64))));
    for key in keys.drain(..) {
        black_box(map.remove(key));
    }
}

impl Play for InsertRemove {
    fn prepare<M: SharedMap>(self) -> Body {
        let crew = Crew::new(self.threads);
        let mut map = M::new();
        Box::new(move |passes, spent| {
            let mut run = |map: &M, passes: u64| {
                let took = crew.run(&|_| {
                    let mut keys = Vec::with_capacity(ELEMENTS);
                    (0..passes).for_each(|_| insert_and_remove(map, &mut keys));
                });
                spent[0] += took.wall_ns;
                spent[1] += took.cpu_ns;
            };
            if !self.is_new {
                return run(&map, passes);
            }
            for _ in 0..passes {
                map = M::new();
                run(&map, 1);
            }
        })
    }
}

/// Each thread replaces random elements of its own.
#[derive(Clone, Copy)]
struct Replace {
    threads: usize,
}

impl Play for Replace {
    fn prepare<M: SharedMap>(self) -> Body {
        let crew = Crew::new(self.threads);
        let map = M::new();
        let keys: Vec<Mutex<Vec<M::Key>>> = (0..self.threads).map(|_| Mutex::default()).collect();
        Box::new(move |passes, spent| {
            let took = crew.run(&|i| {
                let mut keys = keys[i].lock().unwrap_or_else(PoisonError::into_inner);
                if keys.is_empty() {
                    keys.extend((0..ELEMENTS).map(|v| map.insert(v as u64)));
                }
                let mut random = Random::new(i as u64 + 1);
                for _ in 0..passes {
                    let key = &mut keys[random.below(ELEMENTS)];
                    black_box(map.remove(*key));
                    *key = map.insert(black_box(1));
                }
            });
            spent[0] += took.wall_ns;
            spent[1] += took.cpu_ns;
        })
    }
}

#[derive(Clone, Copy)]
struct Get {
    threads: usize,
}

impl Play for Get {
    fn prepare<M: SharedMap>(self) -> Body {
        let crew = Crew::new(self.threads);
        let map = M::new();
        let keys: Vec<M::Key> = (0..ELEMENTS).map(|i| map.insert(i as u64)).collect();
        let order = shuffled_indices(ELEMENTS);
        let keys: Vec<M::Key> = order.iter().map(|i| keys[*i as usize]).collect();
        let shared = KeysOfAll(keys);
        Box::new(move |passes, spent| {
            let took = crew.run(&|_| {
                for _ in 0..passes {
                    let read = |sum: u64, k: &M::Key| {
                        sum.wrapping_add(black_box(&map).get(*k).unwrap_or(0))
                    };
                    black_box(shared.get().iter().fold(0, read));
                }
            });
            spent[0] += took.wall_ns;
            spent[1] += took.cpu_ns;
        })
    }
}

/// The keys that all threads read.
struct KeysOfAll<K>(Vec<K>);

// SAFETY: keys are plain values, and threads only read them.
unsafe impl<K: Copy + Send> Sync for KeysOfAll<K> {}

impl<K> KeysOfAll<K> {
    fn get(&self) -> &[K] {
        &self.0
    }
}
