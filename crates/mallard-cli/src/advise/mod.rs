//! `mallard advise`: which allocator, where, what the allocator gains, and the proof.
//!
//! `evidence` has the types in which everything that is known of a program is collected.

pub mod evidence;
