//! Looks at a trace in the terminal: `mallard stats` and `mallard sites`.

pub mod frames;
mod memory;
pub mod sites;
pub mod stats;

use crate::error::status::UNREADABLE;
use crate::error::Failure;
use crate::output::shell::quoted_path;
use crate::output::units::time;
use crate::record::names::trace_of;
use mallard_trace::manifest::Manifest;
use mallard_trace::Trace;
use std::path::Path;

/// Opens the trace NAME, or NAME.mallard.
pub fn open(name: &Path) -> Result<Trace, Failure> {
    let path = if name.is_dir() { name.to_path_buf() } else { trace_of(name) };
    if name.is_file() && !path.is_dir() {
        let shown = name.display();
        return Err(Failure::new(
            format!("{shown} is a file, and a trace is a folder"),
            "nothing was read",
            format!("mallard import {}, if it is a stream", quoted_path(name)),
        )
        .with_status(UNREADABLE));
    }
    Ok(Trace::open(&path)?)
}

/// Formats a lifetime with no more digits than the times of the trace allow.
pub fn lifetime(manifest: &Manifest, ns: i64) -> String {
    time(ns.max(manifest.time_step_ns()) as f64)
}
