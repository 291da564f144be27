//! The cases: each program once, for every contender.

pub mod arenas;
pub mod blocks;
pub mod objects;
pub mod plays;
pub mod programs;
pub mod shared_slots;
pub mod slots;
pub mod threads;
