//! Reads benchmark results, groups them into experiments, and matches them with each other.

pub mod cases;
pub mod contender;
pub mod experiment;
pub mod files;
pub mod history;
pub mod locate;
pub mod machines;
pub mod matching;
pub mod natural;
pub mod published;
pub mod row;
pub mod situations;
