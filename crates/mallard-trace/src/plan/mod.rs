//! Compiled plans: files from which `libmallard-plan.so` reads which local allocator serves which
//! allocations of a program. `spec/plan_format.md` defines the format, and [`make`] makes plans
//! from recordings.
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
