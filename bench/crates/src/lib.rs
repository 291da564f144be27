//! The suite `crates`: what a Rust program chooses instead of mallard-alloc, each at its own
//! benchmarks. `./x bench crates` runs it, `cargo bench` plays the same cases under Criterion.

pub mod cases;
pub mod contenders;
pub mod harness;

/// What the suite is for.
pub const ASKS: &str =
    "What do Mallard's crate and its peers on crates.io cost, each at its own benchmarks?";

/// Every experiment, in the order in which they are read.
pub fn suite() -> Vec<harness::Experiment> {
    let mut all = cases::objects::experiments();
    all.extend(cases::threads::experiments());
    all.extend(cases::arenas::experiments());
    all.extend(cases::blocks::experiments());
    all.extend(cases::slots::experiments());
    all.extend(cases::shared_slots::experiments());
    all.retain(|e| !e.entrants.is_empty());
    all
}
