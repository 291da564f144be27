//! Compiled plans: files that tell `libmallard-plan.so` which allocations of a program come from which
//! local allocator. `spec/plan_format.md` defines them, and [`make`] makes them of a recording.
//!
//! ```no_run
//! use mallard_trace::plan::{make, Rules};
//! use mallard_trace::Trace;
//! use std::path::Path;
//!
//! let trace = Trace::open(Path::new("orders.mallard"))?;
//! let rules = Rules::read(Path::new("orders.toml"))?;
//! let made = make(&trace, &rules)?;
//! std::fs::write("orders.plan", made.plan.to_bytes()).expect("a writable file");
//! # Ok::<(), mallard_trace::error::Error>(())
//! ```

mod blocks;
mod callers;
mod format;
mod make;
mod named;
mod places;
mod read;
mod rules;

pub use format::{
    Answer, Caller, Choice, CodeRange, CompiledPlan, LocalAllocator, Place, PlanModule, PlanRule,
    PlanStack, BLOCK_MAX, FRAMES_MAX, RULES_MAX,
};
pub use make::{make, Made, Served};
pub use named::{names_in, Named};
pub use rules::{Details, Rules};
