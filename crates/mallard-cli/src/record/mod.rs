//! `mallard record`: records the allocations of a program that need not be rebuilt.
//!
//! The crate `mallard_record` does the recording: it starts the program with the recorder or attaches to
//! a process, and writes the event log. At the end, the library `mallard_trace` makes tables from the event
//! log, and `summary` prints what was recorded. `serving` sends work to a server meanwhile.

mod bound;
mod command;
pub mod names;
mod options;
pub mod recorded;
mod serving;
mod summary;

pub use bound::{
    bound, cost, cpu_ns, cpu_of_part, follow, other_processes, own_allocator, part, shares,
    unknown, unrecorded,
};
pub use command::Recorded;
pub use options::{Command, Follow};
pub use serving::{ServerWork, WORK};
