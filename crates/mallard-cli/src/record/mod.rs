//! `mallard record`: records the allocations of a program that was not rebuilt.
//!
//! The recorder, `libmallard-record.so`, is preloaded into the program. `ring` is the memory that the
//! recorder and this command share. `session` reads the ring while the program runs and writes a
//! stream; `serving` gives work to a server meanwhile. At the end, the library `mallard_trace` makes
//! tables of the stream. `launch` and `program` find and start programs, and also serve
//! other commands.

#[cfg(feature = "recordings")]
mod bound;
#[cfg(feature = "recordings")]
mod command;
pub mod launch;
#[cfg(feature = "recordings")]
pub mod names;
mod program;
#[cfg(feature = "recordings")]
mod ring;
#[cfg(feature = "recordings")]
mod serving;
#[cfg(feature = "recordings")]
mod session;
#[cfg(feature = "recordings")]
mod smaps;
#[cfg(feature = "recordings")]
mod summary;
#[cfg(feature = "recordings")]
mod system;
#[cfg(feature = "recordings")]
mod ticks;
#[cfg(feature = "recordings")]
mod unrecorded;

#[cfg(feature = "recordings")]
pub use bound::{
    bound, cost, cpu_ns, cpu_of_part, follow, other_processes, part, shares, unknown, unrecorded,
};
#[cfg(feature = "recordings")]
pub use command::{Command, Follow, Recorded};
pub use launch::{refused, stdin_file, Ended, Out, Streams};
pub use program::{examine, find as find_program, script, Finding};
#[cfg(feature = "recordings")]
pub use serving::ServerWork;
#[cfg(feature = "recordings")]
pub use ticks::has_constant_counter as has_counter;
