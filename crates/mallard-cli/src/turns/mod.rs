//! Runs programs in turns, and measures each run.
//!
//! `child` is one process, `subject` one run of a program, and `blocks` runs subjects in turns, which
//! `runs` starts.
//! `measured` is the result. `terminal` recognises programs that need a terminal or input, `orphans`
//! those that leave processes running.
//! `timing` has the options that all such commands share, `host` finds what disturbs measurements
//! on this machine, and `words` shows judgements.

pub mod blocks;
mod child;
pub mod host;
pub mod measured;
pub mod orphans;
mod outputs;
pub mod runs;
pub mod subject;
mod terminal;
pub mod timing;
pub mod words;
