//! `mallard record`: records the allocations of a program that need not be rebuilt.
//!
//! The recorder, `libmallard-record.so`, is preloaded into the program, or is loaded by a process
//! that is already running (the crate `mallard_attach`). `ring` is the memory that the recorder and this
//! command share. `session` reads the ring while the program runs and writes the stream file; `serving`
//! sends work to a server meanwhile. At the end, the library `mallard_trace` makes tables from the
//! stream.

mod bound;
mod command;
mod handover;
pub mod names;
mod options;
pub mod recorded;
mod ring;
mod serving;
mod session;
mod smaps;
mod subject;
mod summary;
mod system;
mod ticks;
mod unrecorded;

pub use bound::{
    bound, cost, cpu_ns, cpu_of_part, follow, other_processes, own_allocator, part, shares,
    unknown, unrecorded,
};
pub use command::Recorded;
pub use options::{Command, Follow};
pub use serving::{ServerWork, WORK};
pub use ticks::has_constant_counter as has_counter;
