//! What is done: each program once, for every contender.

pub mod objects;
pub mod plays;
pub mod programs;
pub mod threads;
