//! Prints what is in a trace, for `mallard stats` and `mallard sites`.

pub mod frames;
mod memory;
pub mod sites;
pub mod stats;

use crate::record::names::trace_of;
use mallard_measure::error::status::UNREADABLE;
use mallard_measure::error::Failure;
use mallard_measure::output::shell::quoted_path;
use mallard_measure::output::units::time;
use mallard_trace::manifest::{self, Manifest};
use mallard_trace::Trace;
use std::path::Path;

/// Opens the trace NAME, or NAME.mallard. A directory NAME with other content, such as the sources
/// of the program, does not hide the trace NAME.mallard.
pub fn open(name: &Path) -> Result<Trace, Failure> {
    let recorded = trace_of(name);
    let hides_none = name.join(manifest::FILE).exists() || !recorded.is_dir();
    let path = if name.is_dir() && hides_none { name.to_path_buf() } else { recorded };
    if name.is_file() && !path.is_dir() {
        let shown = name.display();
        return Err(Failure::new(
            format!("{shown} is a file, but a trace is a directory"),
            "nothing was read",
            format!("mallard import {}, if it is an event log", quoted_path(name)),
        )
        .with_status(UNREADABLE));
    }
    Ok(Trace::open(&path)?)
}

/// Formats a lifetime with no more digits than the times of the trace allow.
pub fn lifetime(manifest: &Manifest, ns: i64) -> String {
    time(ns.max(manifest.time_step_ns()) as f64)
}

/// Formats one line of the output: a name and its value.
pub fn line(name: &str, value: &str) -> String {
    format!("{name:<16}{value}\n")
}
