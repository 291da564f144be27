//! Combines all tests of the crate in one program, so that only one program is linked.

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
