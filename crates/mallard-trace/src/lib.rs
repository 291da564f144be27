//! Reads allocation events from event streams and makes traces, which are directories of Parquet
//! tables. Compiles traces for replays ([`replay`]) and for allocator plans in the recorded program
//! itself ([`plan`]).
//!
//! ```no_run
//! use mallard_trace::import::{import, Options};
//! use std::path::Path;
//!
//! let (stream, to) = (Path::new("orders.stream"), Path::new("orders.mallard"));
//! let trace = import(stream, to, &Options::default(), &mut |_| ())?;
//! let stacks = trace.stacks()?;
//! for site in trace.sites()? {
//!     let innermost = stacks.functions(site.stack).first().map_or("?", |frame| frame.function);
//!     println!("{:>12} bytes by {innermost}", site.bytes);
//! }
//! # Ok::<(), mallard_trace::error::Error>(())
//! ```
#![deny(missing_docs, unsafe_code)]

pub mod allocs;
mod blocks;
mod clock;
pub mod error;
mod explanations;
pub mod format;
mod growth;
mod hash;
mod heaps;
pub mod heaptrack;
mod histogram;
pub mod import;
mod instances;
mod ledger;
mod lifetimes;
pub mod live;
pub mod manifest;
pub mod measures;
mod memory;
mod merge;
mod modules;
pub mod names;
mod occupancy;
mod overlap;
pub mod plan;
pub mod regions;
pub mod replay;
pub mod residency;
mod rounding;
mod rows;
pub mod run_notes;
mod site_measures;
mod site_row;
mod sites;
mod slices;
mod stacks;
pub mod stream;
pub mod survey;
mod symbols;
pub mod system_text;
pub mod tables;
mod threads;
mod touched;
pub mod trace;
pub mod walk;

pub use error::{Error, ErrorKind, Result};
pub use ledger::Counts;
pub use run_notes::RunNotes;
pub use site_row::SiteRow;
pub use trace::Trace;
