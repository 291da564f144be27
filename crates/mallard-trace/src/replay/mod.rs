//! Compiles traces into op streams. An op stream has the calls of a recorded program, with the
//! allocators of a plan, in the form that `mallard-replay` plays.
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
pub(crate) mod ends;
pub mod format;
mod lead;
mod numbers;
mod plan;
mod regions;
mod selection;
mod strategy;
mod streams;
pub(crate) mod threads;
mod validity;

pub use compile::compile;
pub use compiled::{Compiled, RuleResult, Spread};
pub use plan::{End, Malloc, Plan, Rule, Scope};
pub use strategy::{Allocator, Strategy};
pub use validity::{Cause, Validity};

use crate::error::Result;
use crate::tables::schema::PROCESSES;
use crate::Trace;

/// The process that is compiled by default: its number, its file, and its share in the events or in the
/// CPU time of all processes, whichever is smaller. `None` if the trace has no events.
pub fn default_process(trace: &Trace) -> Result<Option<(i32, String, f64)>> {
    let process = threads::Process::read(trace, None)?;
    let Some(number) = process.number else { return Ok(None) };
    let table = trace.table(&PROCESSES)?;
    let mut files = table.i64s("proc")?.into_iter().zip(table.texts("path")?);
    let file = files.find(|(proc, _)| *proc == i64::from(number));
    Ok(Some((number, file.map_or(String::new(), |(_, file)| file), process.share)))
}

/// How a trace is compiled.
#[derive(Debug, Clone)]
pub struct Options {
    /// The process; `None` means the process with the most CPU time, or with the most events if a
    /// CPU time is unknown.
    pub process: Option<i32>,
    /// Whether a sampled trace is compiled, although it has only a part of the calls.
    pub allow_samples: bool,
    /// Whether a plan is compiled although it winks out blocks that are used afterwards. The frees
    /// of such blocks are left out.
    pub allow_escapes: bool,
    /// How many free slots of other threads may lie idle before a thread takes one of them. To take a
    /// slot of another thread needs a wait for that thread. More idle slots mean fewer waits, and cost
    /// the player 8 bytes each.
    pub spare_slots: usize,
    /// A thread waits before an op until the other threads have done what came this many bytes
    /// earlier in the recording, or a sixteenth of the peak if that is more. Bytes of blocks that
    /// other threads freed count in full, and allocated bytes as an eighth.
    pub step_bytes: u64,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            process: None,
            allow_samples: false,
            allow_escapes: false,
            spare_slots: 1 << 20,
            step_bytes: 1 << 20,
        }
    }
}
