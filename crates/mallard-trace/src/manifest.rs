//! The manifest of a trace: what was recorded, what is missing, and totals.

use crate::error::{Error, ErrorKind, Result};
use crate::ledger::Counts;
use crate::memory::MemorySummary;
use crate::run_notes::RunNotes;
use crate::tables::Written;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::Path;

/// The name of the manifest in the directory of a trace. A directory without this file is not a
/// trace.
pub const FILE: &str = "manifest.json";
/// The version of the tables. A reader rejects a trace with a newer version.
pub const SCHEMA: u32 = 1;
const FORMAT: &str = "mallard trace";
/// What an imported trace may lack, as [`Manifest::lacks`] returns it.
pub mod lack {
    /// All events belong to one thread, although the program may have had several threads.
    pub const THREADS: &str = "threads";
    /// Times have a resolution of only 10 ms.
    pub const TIMES: &str = "lifetimes finer than 10 ms";
    /// No free has a call stack.
    pub const FREE_STACKS: &str = "call stacks of frees";
    /// No event has a real address. A free is assumed to free the latest block with the same size
    /// and call stack.
    pub const ADDRESSES: &str = "addresses of blocks";
    /// Blocks from before the recording are missing, because the recorder was attached to a running
    /// program.
    pub const BEGINNING: &str = "blocks from before the recorder was attached";
}

/// The content of manifest.json.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Manifest {
    /// Always "mallard trace".
    pub format: String,
    /// The version of the tables: [`SCHEMA`].
    pub schema: u32,
    /// The program that made the tables, with its version.
    pub tool: String,
    /// The event stream from which the tables were made.
    pub stream: Stream,
    /// Numbers of missing events.
    pub losses: Losses,
    /// Counts of events by kind, and of irregular events.
    pub counts: Counts,
    /// Irregularities in the stream.
    pub repairs: Repairs,
    /// Totals of the whole program.
    pub totals: Totals,
    /// What the resident memory consisted of. Empty in traces of older versions.
    #[serde(default)]
    pub memory: MemorySummary,
    /// The tables of the trace, with their sizes.
    pub tables: Vec<Written>,
    /// Notes of the command that recorded, such as the host, the program and the cost of recording.
    #[serde(default)]
    pub notes: RunNotes,
}

/// The event stream from which the tables were made.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Stream {
    /// Version of the stream format.
    pub version: u32,
    /// 1 for CLOCK_MONOTONIC, 2 for the time stamp counter.
    pub clock: u32,
    /// Ticks of the clock per second.
    pub clock_hz: u64,
    /// When the stream was opened, in nanoseconds since 1970.
    pub start_unix: u64,
    /// Process id.
    pub pid: u32,
    /// 0 if all calls were recorded, or the mean number of allocated bytes between two sampled
    /// allocations.
    pub sample_bytes: u64,
    /// Number of records in the stream.
    pub records: u64,
    /// How the stream ends: `complete`, `cut` for a stream without an end record, or `damaged:
    /// ...`.
    pub ending: String,
}

/// Numbers of missing events, by cause.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Losses {
    /// Events that were lost because the buffer was full.
    pub full: u64,
    /// Events that were lost because a signal handler allocated while another event was being
    /// written.
    pub nested: u64,
    /// Events that were lost because the stream could not be written.
    pub write: u64,
    /// Events that were lost for an unknown reason.
    pub unknown: u64,
}

impl Losses {
    /// Returns the number of missing events, whatever the cause.
    pub fn all(&self) -> u64 {
        self.full + self.nested + self.write + self.unknown
    }
}

/// The number of irregularities of each kind in the stream.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Repairs {
    /// Events that arrived too late in the stream to be sorted by time.
    pub inversions: u64,
    /// Call stacks that refer to more outer frames of the previous call stack than it had.
    pub broken_stacks: u64,
    /// Call stacks that lack outer frames.
    pub cut_stacks: u64,
    /// Call stacks that lack frames in the middle.
    pub gap_stacks: u64,
    /// Frames that were left out, because the table of call stacks was full.
    pub refused_nodes: u64,
    /// Allocations that were counted without a call stack, because the table of sites was full.
    pub merged_sites: u64,
    /// Records whose text could not be read.
    pub bad_texts: u64,
    /// Records of kinds that this version of the format does not define.
    pub unknown_records: u64,
}

/// Totals of the whole program. They are estimates if the stream was sampled.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Totals {
    /// Time from the opening of the stream to the last event, in nanoseconds.
    pub duration_ns: i64,
    /// CPU time of the program, in nanoseconds. `None` if the stream does not contain it.
    pub cpu_ns: Option<i64>,
    /// The totals of all sites, as a row whose `stack` is 0.
    pub sites: crate::site_row::SiteRow,
    /// Number of sites.
    pub site_count: u64,
    /// Number of call stacks.
    pub stacks: u64,
    /// Number of frames.
    pub frames: u64,
    /// Number of threads.
    pub threads: u64,
    /// Number of processes.
    pub processes: u64,
}

impl Manifest {
    /// Removes what might reveal whose program was recorded and where: the arguments and the
    /// environment of the program, its directory and the host. The name of the program stays.
    pub fn redact(&mut self) {
        self.notes = std::mem::take(&mut self.notes).redacted();
    }

    /// Returns the only valid value of `format`.
    pub fn format() -> String {
        FORMAT.to_string()
    }

    /// Returns the name and version of the program that wrote the imported file, or `None` for a
    /// recording of Mallard.
    pub fn imported_from(&self) -> Option<&str> {
        self.notes.imported_from.as_deref()
    }

    /// Returns what the imported file lacks, such as "threads".
    pub fn lacks(&self) -> &[String] {
        self.notes.lacks.as_deref().unwrap_or_default()
    }

    /// Describes the origin of an imported trace and what it lacks, such as "imported from
    /// heaptrack 1.4.0: no threads, no call stacks of frees". If the recorder was attached to a
    /// running process, describes which blocks are missing. Returns `None` for other recordings of
    /// Mallard.
    pub fn origin(&self) -> Option<String> {
        if let Some(seconds) = self.notes.attached_after {
            return Some(format!(
                "the recording began in a process that had run for {}: blocks from before are known by their \
                 frees only ({} of them)",
                duration(seconds),
                self.counts.unknown_frees
            ));
        }
        let from = self.imported_from()?;
        Some(format!("imported from {from}: no {}", self.lacks().join(", no ")))
    }

    /// Returns whether the trace has `what`, a constant of [`lack`] that imported traces may lack.
    pub fn has(&self, what: &str) -> bool {
        !self.lacks().iter().any(|lack| lack == what)
    }

    /// Returns the resolution of the times in nanoseconds: 1, or more if the trace was imported.
    pub fn time_step_ns(&self) -> i64 {
        self.notes.time_step_ns.filter(|&step| step > 0).map_or(1, |step| step as i64)
    }

    /// Reads the manifest of the trace in a directory.
    pub fn read(folder: &Path) -> Result<Manifest> {
        let name = folder.display();
        let bytes = fs::read(folder.join(FILE)).map_err(|error| {
            let trace = "name a trace that mallard record -o NAME -- PROGRAM has written";
            let list = "ls -d *.mallard lists the traces in this directory";
            let (kind, what, help) = match error.kind() {
                io::ErrorKind::NotFound if folder.is_dir() => {
                    (ErrorKind::Foreign, format!("{name} is not a trace: it has no {FILE}"), trace)
                }
                io::ErrorKind::NotFound => {
                    (ErrorKind::Missing, format!("there is no trace {name}"), list)
                }
                _ => (ErrorKind::System, format!("cannot read the trace {name}: {error}"), trace),
            };
            Error::new(kind, what, "nothing was read", help)
        })?;
        Manifest::parse(&bytes, &name.to_string())
    }

    /// Parses a manifest. Checks the version first, because a newer manifest may have other
    /// members.
    fn parse(bytes: &[u8], name: &str) -> Result<Manifest> {
        #[derive(Deserialize)]
        struct Head {
            format: String,
            schema: u32,
        }
        let damaged = |why: &dyn std::fmt::Display| {
            Error::damaged(format!("the manifest of {name} is corrupt: {why}"), "nothing was read")
        };
        let head: Head = serde_json::from_slice(bytes).map_err(|error| damaged(&error))?;
        if head.format != FORMAT {
            return Err(damaged(&"it is that of another format"));
        }
        if head.schema > SCHEMA {
            return Err(Error::new(
                ErrorKind::Newer,
                format!(
                    "{name} has version {} of the tables, but this command reads {SCHEMA}",
                    head.schema
                ),
                "nothing was read",
                "use the mallard that made the trace, or a newer one",
            ));
        }
        serde_json::from_slice(bytes).map_err(|error| damaged(&error))
    }
}

/// Formats a duration in a suitable unit, such as minutes.
fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s if s < 172_800.0 => format!("{:.0} h", s / 3600.0),
        s => format!("{:.0} days", s / 86_400.0),
    }
}
