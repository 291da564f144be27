//! Finds the regions of a program in its trace: functions whose blocks could be freed together.
//!
//! A candidate is a function under which at least 1 % of the time in malloc and free, or 1 % of the
//! bytes, lies. The instances and their ends are the same as in a plan of a replay: see
//! [`crate::replay::End`]. One pass over the events finds the instances of all candidates, which blocks
//! escape from them, and what ends them.
//!
//! A region with drained ends is returned only if no block certainly outlives a call of its function. What
//! call stacks cannot tell, and how often that matters: `docs/decisions/0047-regions-from-call-stacks.md`.
//!
//! Memory: at most 630 MiB for 14 million blocks in use. Blocks beyond that count as blocks that are
//! never freed.

mod candidates;
mod clocks;
mod drained;
mod escapes;
mod follow;
mod instance;
mod marks;
mod pass;
mod places;
mod region;
mod result;
mod sizes;
mod sure;
mod table;
mod tally;

pub use candidates::UNNAMED;
pub use region::{EscapeSite, Lane, Limits, Quantiles, Region, Regions};
pub use result::find;
pub use table::{file, keep};
