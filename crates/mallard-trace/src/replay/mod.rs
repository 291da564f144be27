//! Compiles traces into op streams. An op stream has the calls of a recorded program, with the
//! allocators of a plan, in the form that `mallard-replay` repeats.
//!
//! ```no_run
//! use mallard_trace::replay::{compile, Options, Plan, Strategy};
//! use mallard_trace::Trace;
//! use std::path::Path;
//!
//! let trace = Trace::open(Path::new("orders.mallard"))?;
//! let plan = Plan::of_strategy(Strategy::new(7).expect("a strategy"));
//! let compiled = compile(&trace, &plan, &Options::default(), Path::new("orders.ops"))?;
//! println!("{} calls by {} threads", compiled.calls, compiled.threads);
//! # Ok::<(), mallard_trace::error::Error>(())
//! ```

mod clocks;
mod compile;
mod compiled;
mod emitter;
pub mod format;
mod lead;
mod numbers;
pub(crate) mod plan;
mod regions;
pub(crate) mod selection;
mod strategy;
mod streams;
mod threads;
mod validity;

pub use compile::{compile, Options};
pub use compiled::{Compiled, RuleResult, Spread};
pub use plan::{End, Malloc, Plan, Rule, Scope};
pub use strategy::{Allocator, Strategy};
pub use validity::{Cause, Validity};

use crate::error::Result;
use crate::tables::schema::PROCESSES;
use crate::Trace;

/// Returns the process that is compiled by default: its number, its file, and its share. The share
/// is that of all events or that of the CPU time of all processes, whichever is smaller. Returns
/// `None` if the trace has no events.
pub fn default_process(trace: &Trace) -> Result<Option<(i32, String, f64)>> {
    let process = crate::threads::Process::read(trace, None)?;
    let Some(number) = process.number else { return Ok(None) };
    let table = trace.table(&PROCESSES)?;
    let mut files = table.i64s("proc")?.into_iter().zip(table.texts("path")?);
    let file = files.find(|(proc, _)| *proc == i64::from(number));
    Ok(Some((number, file.map_or(String::new(), |(_, file)| file), process.share)))
}
