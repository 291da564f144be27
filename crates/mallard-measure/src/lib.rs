//! Measures programs against each other, and judges the differences.
//!
//! A measurement compares a base with candidates: the same program under other mallocs, or other
//! programs. Each round runs all of them once, in random order, so that a disturbance of the
//! machine affects all of them alike. The base runs twice in each round. The difference of these
//! two runs shows how much two equal programs differ on this machine.
//!
//! - [`process`] starts programs, gives work to servers, and reads `/proc`.
//! - [`rounds`] runs the compared programs, interleaved. Its main function is
//!   [`rounds::measure::measure`].
//! - [`verdict`] decides for each candidate whether its difference from the base is a gain, a loss,
//!   no difference, or not measurable.
//! - [`mallocs`] has the list of known mallocs, finds those that are installed, and preloads them.
//! - [`clock`] measures budgets. Tests replace the clock.
//! - [`comparison`] has the commands `mallard try`, `mallard verify` and `mallard run`.
//!
//! # Example
//!
//! ```no_run
//! use mallard_measure::rounds::measure::measure;
//! use mallard_measure::rounds::subject::Subject;
//! use mallard_measure::rounds::timing::Timing;
//! use std::time::Duration;
//!
//! # fn main() -> Result<(), mallard_measure::error::Failure> {
//! mallard_measure::process::starter::prepare(); // first of all, while the process is small
//! let subject = |name: &str, word: &str| Subject {
//!     name: name.into(),
//!     path: "/bin/ls".into(),
//!     words: vec!["ls".into(), word.into()],
//!     ..Subject::default()
//! };
//! let timing = Timing::of(Duration::from_secs(10), true);
//! let (base, flat) = (subject("recursive", "-lR"), subject("flat", "-l"));
//! let measured = measure(&timing.runner()?, &base, &[flat], &timing.plan())?;
//! let (cpu, _) = measured.settle(|run| run.cpu_ns, timing.min_gain);
//! println!("{:?}", cpu.candidates[0].verdict);
//! # Ok(())
//! # }
//! ```
#![deny(missing_docs, unsafe_code)]

pub mod clock;
pub mod command;
pub mod comparison;
pub mod error;
pub mod mallocs;
pub mod output;
pub mod panics;
pub mod parse;
pub mod process;
pub mod rounds;
pub mod verdict;
