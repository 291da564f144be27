//! Runs programs in turns, and measures each run.
//!
//! `child` is one process, `subject` one run of a program, and `blocks` runs subjects in turns.
//! `timing` has the options that all such commands share, `host` finds what disturbs measurements
//! on this machine, and `words` shows judgements.

pub mod blocks;
mod child;
pub mod host;
mod outputs;
pub mod subject;
pub mod timing;
pub mod words;
