//! Measures maps that choose the keys of their values, such as the crate slotmap and its
//! competitors.

use crate::contenders::maps::{self, Map, Value};
use crate::harness::memory::Table;
use crate::harness::random::{random_indices, shuffled_indices};
use crate::harness::statistics::percentile;
use crate::harness::{clock, timed, Body, Effort, Entrant, Experiment};
use mallard::{Key32, Key64, SlotMap};
use std::hint::black_box;

/// A way to prepare a case for any map.
trait Play: Copy + 'static {
    fn prepare<M: Map>(self, effort: Effort) -> Body;
}

fn entrant<M: Map>(play: impl Play) -> Entrant {
    Entrant { name: M::name(), prepare: Box::new(move |effort| Ok(play.prepare::<M>(effort))) }
}

fn everyone(play: impl Play) -> Vec<Entrant> {
    vec![
        entrant::<SlotMap<Key64, Value>>(play),
        entrant::<SlotMap<Key32, Value>>(play),
        entrant::<maps::Slot>(play),
        entrant::<maps::Hop>(play),
        entrant::<maps::Dense>(play),
        entrant::<maps::Thunderdome>(play),
        entrant::<maps::Generational>(play),
        entrant::<maps::Slab>(play),
        entrant::<maps::Sharded>(play),
    ]
}

pub fn experiments() -> Vec<Experiment> {
    let mut all = Vec::new();
    for count in [1000, 100_000] {
        let asks = format!("{count} values are inserted into a map that had as many. ns of one");
        let case = format!("slotmap/insert/{count}");
        all.push(Experiment::new(case, asks, everyone(Insert(count))).ops(count));
        let asks = format!("{count} values are inserted, then removed in random order. ns of both");
        let case = format!("slotmap/insert-remove/{count}");
        all.push(Experiment::new(case, asks, everyone(InsertRemove(count))).ops(count));
        let asks = format!("{count} live; a random one is removed, another inserted. ns of both");
        let case = format!("slotmap/replace/{count}");
        all.push(Experiment::new(case, asks, everyone(Replace(count))));
    }
    for count in [1000, 100_000, 1_000_000] {
        let asks = format!("{count} values are read by their keys, in random order. ns of one");
        let case = format!("slotmap/get/{count}");
        all.push(Experiment::new(case, asks, everyone(Get(count))).ops(count));
    }
    for percent in [100, 10] {
        let count = 100_000;
        let asks = format!("Of {count} values {percent} % are left; all are visited. ns of one");
        let case = format!("slotmap/iterate/{percent}%");
        let ops = count * percent / 100;
        all.push(Experiment::new(case, asks, everyone(Iterate { count, percent })).ops(ops));
    }
    let asks = "A new map gets 1,000,000 values, each insert timed: the mean, what 999 of 1,000 \
                stay below, and the longest";
    let growing = everyone(Growing(1_000_000));
    all.push(Experiment::new("slotmap/growth/1000000", asks, growing).ops(1_000_000).metrics(&[
        "ns_per_op",
        "p999_ns",
        "max_ns",
    ]));
    all
}

fn fill<M: Map>(map: &mut M, count: usize) -> Vec<M::Key> {
    (0..count).map(|i| map.insert(i as Value)).collect()
}

#[derive(Clone, Copy)]
struct Insert(usize);

impl Play for Insert {
    fn prepare<M: Map>(self, effort: Effort) -> Body {
        let count = effort.count(self.0);
        let mut map = M::with_capacity(count);
        let mut keys = fill(&mut map, count);
        Box::new(move |passes, spent| {
            for _ in 0..passes {
                for key in &keys {
                    black_box(map.remove(*key));
                }
                let from = clock::ticks();
                for (i, key) in keys.iter_mut().enumerate() {
                    *key = map.insert(black_box(i as Value));
                }
                spent[0] += (clock::ticks() - from) as f64 * clock::ns_per_tick();
            }
        })
    }
}

#[derive(Clone, Copy)]
struct InsertRemove(usize);

impl Play for InsertRemove {
    fn prepare<M: Map>(self, effort: Effort) -> Body {
        let count = effort.count(self.0);
        let mut map = M::with_capacity(count);
        let mut keys = fill(&mut map, count);
        keys.iter().for_each(|k| assert!(map.remove(*k).is_some()));
        let order = shuffled_indices(count);
        timed(move || {
            for (i, key) in keys.iter_mut().enumerate() {
                *key = map.insert(black_box(i as Value));
            }
            for i in order.iter() {
                black_box(map.remove(keys[*i as usize]));
            }
        })
    }
}

#[derive(Clone, Copy)]
struct Replace(usize);

impl Play for Replace {
    fn prepare<M: Map>(self, effort: Effort) -> Body {
        let count = effort.count(self.0);
        let mut map = M::with_capacity(count);
        let mut keys = fill(&mut map, count);
        let which = random_indices(1 << 14, count);
        let mut at = 0;
        timed(move || {
            let key = &mut keys[which[at % which.len()] as usize];
            at += 1;
            black_box(map.remove(*key));
            *key = map.insert(black_box(at as Value));
        })
    }
}

#[derive(Clone, Copy)]
struct Get(usize);

impl Play for Get {
    fn prepare<M: Map>(self, effort: Effort) -> Body {
        let count = effort.count(self.0);
        let mut map = M::with_capacity(count);
        let keys = fill(&mut map, count);
        let order = shuffled_indices(count);
        // Sorts the keys into the order of the reads, so that a read measures only the map.
        let keys: Vec<M::Key> = order.iter().map(|i| keys[*i as usize]).collect();
        timed(move || {
            let map = black_box(&map);
            let read = |sum: Value, k: &M::Key| sum.wrapping_add(map.get(*k).unwrap_or(0));
            black_box(keys.iter().fold(0, read));
        })
    }
}

#[derive(Clone, Copy)]
struct Iterate {
    count: usize,
    percent: usize,
}

impl Play for Iterate {
    fn prepare<M: Map>(self, effort: Effort) -> Body {
        let count = effort.count(self.count);
        let mut map = M::with_capacity(count);
        let keys = fill(&mut map, count);
        let gone = count * (100 - self.percent) / 100;
        for i in shuffled_indices(count).iter().take(gone) {
            map.remove(keys[*i as usize]);
        }
        drop(keys);
        timed(move || {
            black_box(black_box(&mut map).sum());
        })
    }
}

#[derive(Clone, Copy)]
struct Growing(usize);

impl Play for Growing {
    fn prepare<M: Map>(self, effort: Effort) -> Body {
        let count = effort.count(self.0);
        let mut samples = Table::new((0..count).map(|_| 0_u32));
        Box::new(move |passes, spent| {
            let ns_per_tick = clock::ns_per_tick();
            for _ in 0..passes {
                let mut map = M::new();
                for (i, sample) in samples.iter_mut().enumerate() {
                    let from = clock::ticks();
                    black_box(map.insert(black_box(i as Value)));
                    *sample = (clock::ticks() - from).min(u64::from(u32::MAX)) as u32;
                }
                drop(map);
                samples.sort_unstable();
                let sum: u64 = samples.iter().map(|s| u64::from(*s)).sum();
                // These figures are times of a single insert. The runner divides by the number of
                // inserts, so the figures are multiplied by that number here.
                let scale = ns_per_tick * self.0 as f64;
                spent[0] += sum as f64 / count as f64 * scale;
                spent[1] += f64::from(percentile(&samples, 0.999)) * scale;
                spent[2] += f64::from(samples[count - 1]) * scale;
            }
        })
    }
}
