//! Makes op streams of traces: the calls of a recorded program with the allocators of a plan, in the
//! form in which `mallard-replay` makes them again.
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
mod plan;
mod regions;
mod rows;
mod selection;
mod strategy;
mod streams;
mod threads;
mod validity;

pub use compile::compile;
pub use compiled::{Cause, Compiled, RuleResult, Spread, Validity};
pub use plan::{End, Malloc, Plan, Rule, Scope};
pub use strategy::{Allocator, Strategy};

/// How a trace is compiled.
#[derive(Debug, Clone)]
pub struct Options {
    /// The process; without it, the one with the most events.
    pub process: Option<i32>,
    /// Whether a sampled trace is compiled, though its numbers of calls are too small.
    pub allow_samples: bool,
    /// Whether a plan is compiled that winks out blocks which are used afterwards. Their frees are
    /// left out.
    pub allow_escapes: bool,
    /// How many slots that other threads have freed a thread leaves alone, before it takes one of
    /// them and waits for its free. More slots mean fewer edges, and 8 bytes of the player for each.
    pub spare_slots: usize,
    /// A thread waits before an op until the other threads have done what came this many allocated
    /// bytes earlier in the recording, or a sixteenth of the peak if that is more.
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
