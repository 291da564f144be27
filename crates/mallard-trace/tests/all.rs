//! The tests of the crate in one program, which is linked once.

mod allocs;
mod fuzz;
mod heaptrack;
mod import;
mod plan;
mod redact;
mod regions;
mod regions_random;
mod replay;
mod replay_random;
mod replay_refusals;
mod residency;
mod stream;
mod support;
mod survey;
mod symbols;
