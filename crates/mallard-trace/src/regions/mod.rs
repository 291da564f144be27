//! Regions of a trace: functions whose blocks could have an allocator of their own, which ends with
//! the function.

mod region;

pub use region::{EscapeSite, Lane, Limits, Quantiles, Region, Regions};
