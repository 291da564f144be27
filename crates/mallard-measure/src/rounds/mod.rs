//! Runs programs, interleaved, and measures each run.
//!
//! A subject is a program in an environment, for example under one malloc. A round has one run of
//! each column, in random order: the base, the base again as its control, and each candidate.
//! Selection rounds find the best candidates. Confirmation rounds (`fresh` in the code) measure the
//! best candidates again (see `verdict::fresh`).
//!
//! `subject` runs a subject once. `measure` runs all subjects, interleaved, through the trait in
//! `runs`. `race` drops candidates early that cannot win. `measured` is the result. `terminal`
//! recognises programs that need a terminal or input, and `outputs` shows where two outputs differ.
//! `timing` has options, `host` finds what disturbs measurements on this machine, and `words`
//! formats judgements.

pub mod host;
pub mod measure;
pub mod measured;
mod outputs;
mod race;
pub mod runs;
#[cfg(test)]
mod simulation;
pub mod subject;
mod terminal;
pub mod timing;
pub mod words;
