//! Runs fastalloc's six programs with every contender that makes objects one by one.

use super::plays::{entrant, Inside, Live, Outside, Play, Read};
use super::programs::{
    Alternating, Bulk, Churn, Cycles, Fifo, Growing, OneLive, Pipeline, Program, RandomDrop, Waves,
};
use crate::contenders::mallard_objects as mallard;
use crate::contenders::objects::{Connection, Entity, Growth, Large, Object, Part, Particle};
use crate::contenders::objects_peers as peers;
use crate::harness::{Entrant, Experiment};

/// Lists every contender that makes objects for one thread.
fn everyone<T: Object>(play: impl Play<T>) -> Vec<Entrant> {
    vec![
        entrant::<T, peers::Boxes>(play),
        entrant::<T, mallard::MallardFixed<T>>(play),
        entrant::<T, mallard::MallardPool<T>>(play),
        entrant::<T, mallard::MallardArenaOfOne<T>>(play),
        entrant::<T, peers::Fixed<T>>(play),
        entrant::<T, peers::Growing<T>>(play),
        entrant::<T, peers::TypedArena<T>>(play),
        entrant::<T, peers::ObjectPool<T>>(play),
        entrant::<T, peers::LocalOpool<T>>(play),
        entrant::<T, peers::LinearPool<T>>(play),
        entrant::<T, peers::Slab<T>>(play),
        entrant::<T, peers::Heapless<T>>(play),
    ]
}

pub fn experiments() -> Vec<Experiment> {
    let mut all = Vec::new();
    for capacity in [100, 1000, 10_000] {
        all.extend(slots::<i32>(&format!("i32/{capacity}"), "an i32", capacity));
    }
    all.extend(slots::<u8>("u8", "a byte", 1000));
    all.extend(slots::<u128>("u128", "a u128", 1000));
    all.extend(slots::<Large>("256B", "a struct of 256 bytes", 1000));
    all.extend(slots::<Entity>("struct", "a game object", 1000));
    let twice = OneLive { capacity: 100, pairs: 2 };
    all.push(
        outside::<i32, _>(
            "i32/twice",
            "an i32 is made and dropped, twice. ns of both pairs",
            twice,
        )
        .variant("faithful"),
    );
    all.push(
        Experiment::new(
            "fastalloc/read/1000",
            "1,000 i32 are read in the order in which they were made. ns of one",
            everyone::<i32>(Read(1000)),
        )
        .ops(1000),
    );
    all.extend(lives());
    all.extend(growing());
    all.extend(programs());
    all
}

/// Makes two experiments. In the first, one object is live at a time whatever the pool's capacity
/// is, as in fastalloc's benchmark. In the second, the same program has `capacity` live objects.
fn slots<T: Object>(name: &str, what: &str, capacity: usize) -> [Experiment; 2] {
    let case = format!("fastalloc/{name}");
    let one = Outside(OneLive { capacity, pairs: 1 });
    let faithful = Experiment::new(
        &case,
        format!("In a pool for {capacity}, {what} is made and dropped, one at a time. ns of both"),
        everyone::<T>(one),
    );
    let corrected = Experiment::new(
        &case,
        format!(
            "{capacity} live, each {what}; a random one is dropped and another made. ns of both"
        ),
        everyone::<T>(Live(capacity)),
    );
    let is_headline = name == "i32/1000";
    [
        Experiment { in_brief: is_headline, ..faithful.variant("faithful") },
        corrected.variant("corrected"),
    ]
}

fn outside<T: Object, G: Program<T>>(name: &str, asks: &str, program: G) -> Experiment {
    let case = format!("fastalloc/{name}");
    Experiment::new(case, asks, everyone::<T>(Outside(program))).ops(program.ops())
}

/// Makes the experiments that differ in the order in which objects are made and dropped.
fn lives() -> Vec<Experiment> {
    let mut all = Vec::new();
    for count in [10, 100, 1000] {
        let asks = format!("{count} i32 are made into a Vec, then all dropped. ns of one");
        all.push(outside::<i32, _>(&format!("bulk/{count}"), &asks, Bulk(count)));
    }
    let asks = "Three i32 at a time, whose lives overlap. ns of one";
    for (variant, with_barrier) in [("faithful", false), ("corrected", true)] {
        all.push(outside::<i32, _>("churn", asks, Churn { with_barrier }).variant(variant));
    }
    all.push(outside::<i32, _>(
        "alternating",
        "One of two i32 stays, the other is dropped immediately; then 500 are. ns of one",
        Alternating,
    ));
    all.push(outside::<i32, _>("fifo", "200 i32 through a queue of 100. ns of one", Fifo));
    all.push(outside::<i32, _>(
        "random-drop",
        "500 i32, and at every third one from the middle goes. ns of one",
        RandomDrop,
    ));
    all.push(outside::<i32, _>(
        "cycles",
        "100 cycles of 100 i32; of more than 500 the oldest 100 go. ns of one",
        Cycles,
    ));
    all
}

/// Makes the experiments on growth. In fastalloc's benchmark the pool grows only in the first pass.
/// In the other experiments each pass has a new pool, so each pass measures growth.
fn growing() -> Vec<Experiment> {
    let mut all = Vec::new();
    let linear = Growing { growth: Growth::Linear { add: 100, most: 1000 } };
    let double = Growing { growth: Growth::Double { most: 1000 } };
    let asks = "500 i32 in a pool that grows; some go on the way. ns of one";
    for (name, program) in [("growth/linear", linear), ("growth/exponential", double)] {
        let case = format!("fastalloc/{name}");
        let ops = Program::<i32>::ops(program);
        all.push(outside::<i32, _>(name, asks, program).variant("faithful").not_in_brief());
        let inside = Experiment::new(case, asks, everyone::<i32>(Inside(program)));
        all.push(inside.ops(ops).variant("corrected"));
    }
    all
}

/// Makes the experiments whose pattern of making and dropping objects resembles real programs.
fn programs() -> Vec<Experiment> {
    let waves = |capacity, start, renewed, frames| Waves { capacity, start, renewed, frames };
    vec![
        outside::<Entity, _>(
            "entities",
            "100 game entities; 20 die and 20 come. ns of one",
            waves(1000, 100, 20, 1),
        ),
        outside::<Connection, _>(
            "connections",
            "100 connections with 1 KiB each on the heap; 30 close and 30 come. ns of one",
            waves(500, 100, 30, 1),
        ),
        outside::<Particle, _>(
            "particles",
            "500 particles, of which 50 are renewed in each of 10 frames. ns of one",
            waves(2000, 500, 50, 10),
        ),
        outside::<Part, _>(
            "pipeline",
            "50 parts of 100 numbers each are worked on; 25 go and 25 come. ns of one",
            Pipeline,
        ),
    ]
}
