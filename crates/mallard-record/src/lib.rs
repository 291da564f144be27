//! Records the allocations of a program or of a running process, as an event log.
//!
//! The recorder, `libmallard-record.so`, is preloaded into a program, or is loaded by a process that is
//! already running ([`attach`]). [`ring`] is the memory that the recorder and this process share.
//! [`session`] reads the ring while the program runs, and writes an event log, from which
//! `mallard_trace::import` makes tables.
#![deny(missing_docs)]

pub mod attach;
mod handover;
pub mod ring;
pub mod session;
mod smaps;
pub mod subject;
pub mod system;
pub mod ticks;
pub mod unrecorded;
