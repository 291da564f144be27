//! The cases of the suite. Each case runs one program with every contender.

pub mod arenas;
pub mod blocks;
pub mod objects;
pub mod plays;
pub mod programs;
pub mod shared_slots;
pub mod slots;
pub mod threads;
