//! The suite `crates` compares mallard-alloc with other crates for Rust programs. Each crate is
//! measured by its own published benchmarks.
//!
//! `./x bench crates` runs the suite, and `cargo bench` runs the same cases under Criterion.

pub mod cases;
pub mod contenders;
pub mod harness;

/// The question of the suite.
pub const ASKS: &str =
    "What do Mallard's crate and its peers on crates.io cost, each at its own benchmarks?";

/// Lists every experiment, in the order in which they are printed.
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
