//! Runs programs in turns, and measures each run.
//!
//! `child` is one process, and `subject` one run of a program. `blocks` runs subjects in turns, through
//! the trait in `runs`. `race` drops candidates early that cannot win. `measured` is the result.
//! `terminal` recognises programs that need a terminal or input, and `orphans` those that leave
//! processes running. `timing` has the options of all commands that measure, `host` finds what disturbs
//! measurements on this machine, and `words` shows judgements.

pub mod blocks;
mod child;
pub mod host;
pub mod measured;
pub mod orphans;
mod outputs;
mod race;
pub mod runs;
#[cfg(test)]
mod simulation;
pub mod subject;
mod terminal;
pub mod timing;
pub mod words;
