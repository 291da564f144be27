//! Finds the regions of a program in its trace. A region is a function whose blocks could be freed
//! together.
//!
//! A candidate is a function below which the program spends at least 1 % of the time in malloc and
//! free, or allocates at least 1 % of the bytes. Instances begin and end as in a replay plan (see
//! [`crate::replay::End`]). One pass over the events finds the instances of all candidates, the
//! blocks that escape from (outlive) them, and what ends them.
//!
//! For `End::Drained`, a region is returned only if no block certainly outlives a call of the
//! function. `docs/decisions/0047-regions-from-call-stacks.md` describes what call stacks do not
//! show, and how often that matters.
//!
//! The pass uses at most 630 MiB of memory, for 14 million blocks in use. If there are more, the
//! additional blocks count as never freed.

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
