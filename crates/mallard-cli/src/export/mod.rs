//! Implements `mallard export`, which writes a trace in the formats of other programs, or adds a
//! trace to a fleet.

mod calls;
mod csv;
pub mod fleet;
mod folded;
mod perfetto;
mod pprof;
mod remarks;
mod speedscope;
mod weight;

use crate::look::open;
use crate::output::file::{write_whole, Trouble};
use fleet::write::{add, Addition};
use fleet::Key;
use mallard_measure::error::tell;
use mallard_measure::error::Failure;
use mallard_measure::output::shell::{as_called, quoted_path};
use mallard_measure::output::units::{bytes, plural};
use mallard_trace::Trace;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use weight::Weight;

/// Writes a trace in the format of another program, or adds it to a fleet.
///
/// A fleet is a directory with the tables of many runs of many services, which `mallard query --fleet`,
/// DuckDB and Spark read: ROOT/TABLE/service=S/date=D/run=R/part-*.parquet.
#[derive(clap::Args)]
pub struct Command {
    /// The trace.
    #[arg(value_name = "NAME")]
    name: PathBuf,
    /// The format.
    #[arg(long, value_enum, required_unless_present = "fleet", conflicts_with = "fleet")]
    format: Option<Format>,
    /// What the file counts, or what its viewer shows first. A `folded` file has only one weight.
    #[arg(long, value_enum, requires = "format")]
    weight: Option<Weight>,
    /// Keeps functions that only pass an allocation on, and names with their arguments.
    #[arg(long, requires = "format")]
    full: bool,
    /// The file to write; - for stdout. By default, a file in this directory with the name of the
    /// trace.
    #[arg(short = 'o', long = "output", value_name = "FILE", conflicts_with = "fleet")]
    output: Option<PathBuf>,
    /// Adds the trace to the fleet in this directory.
    #[arg(long, value_name = "ROOT", requires = "service")]
    fleet: Option<PathBuf>,
    /// The service that was recorded.
    #[arg(long, value_name = "S", requires = "fleet", value_parser = fleet::name)]
    service: Option<String>,
    /// The day of the run; by default that of the recording, in UTC.
    #[arg(long, value_name = "DAY", requires = "fleet", value_parser = fleet::date)]
    date: Option<String>,
    /// The name of the run; by default the moment of the recording and the process.
    #[arg(long, value_name = "R", requires = "fleet", value_parser = fleet::name)]
    run: Option<String>,
    /// Also adds the tables of events and of blocks, which are most of a trace.
    #[arg(long, requires = "fleet")]
    events: bool,
    /// Leaves out paths, arguments and environment of the program, and the host name. File names
    /// without their directories stay.
    #[arg(long)]
    anonymize: bool,
    /// Overwrites the file or the run if it exists.
    #[arg(long)]
    force: bool,
}

/// A format that other programs read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// A line for each call stack that allocates, for spreadsheets
    Csv,
    /// A line for each call stack with one weight, for flame graphs
    Folded,
    /// A profile of pprof, for `go tool pprof` and whatever else reads its files
    Pprof,
    /// JSON for www.speedscope.app, with all weights
    Speedscope,
    /// A trace for ui.perfetto.dev: memory over time, threads, and the heap
    Perfetto,
}

/// Options for all formats.
struct Options {
    /// The weight that is counted, or that a viewer shows first.
    weight: Option<Weight>,
    /// Whether to keep wrapper functions and the arguments of function names.
    is_full: bool,
}

/// The result of writing a file.
type Result<T> = std::result::Result<T, Trouble>;

impl Format {
    /// Writes a trace.
    fn write(self, trace: &Trace, options: &Options, to: &mut dyn Write) -> Result<()> {
        match self {
            Format::Csv => csv::write(trace, to),
            Format::Folded => folded::write(trace, options, to),
            Format::Pprof => pprof::write(trace, options, to),
            Format::Speedscope => speedscope::write(trace, options, to),
            Format::Perfetto => perfetto::write(trace, options, to),
        }
    }

    /// Returns the extension of file names in this format.
    fn extension(self) -> &'static str {
        match self {
            Format::Csv => "csv",
            Format::Folded => "folded",
            Format::Pprof => "pb.gz",
            Format::Speedscope => "speedscope.json",
            Format::Perfetto => "pftrace",
        }
    }

    /// Returns a text about how to open a finished file in this format.
    fn next(self, file: &Path) -> String {
        let picture = quoted_path(format!("{}.svg", file.display()).as_ref());
        let file = quoted_path(file);
        match self {
            Format::Csv => format!("head {file}"),
            Format::Folded => format!("flamegraph.pl {file} > {picture}"),
            Format::Pprof => format!("go tool pprof -top {file}"),
            Format::Speedscope => format!("open {file} at www.speedscope.app"),
            Format::Perfetto => format!("open {file} at ui.perfetto.dev"),
        }
    }
}

impl Command {
    /// Writes the trace to a file, or adds the trace to a fleet.
    pub fn run(self) -> std::result::Result<ExitCode, Failure> {
        let trace = open(&self.name)?;
        let trace = if self.anonymize { trace.redacted() } else { trace };
        match (&self.fleet, &self.service, self.format) {
            (Some(root), Some(service), _) => self.add(&trace, root, service)?,
            (_, _, Some(format)) => self.write(&trace, format)?,
            _ => unreachable!("clap asks for a format, or for a fleet and a service"),
        }
        Ok(ExitCode::SUCCESS)
    }

    fn write(&self, trace: &Trace, format: Format) -> std::result::Result<(), Failure> {
        let to = self.output.clone().unwrap_or_else(|| {
            let name = trace.folder().file_stem().unwrap_or_default().to_string_lossy();
            PathBuf::from(format!("{name}.{}", format.extension()))
        });
        let options = Options { weight: self.weight, is_full: self.full };
        write_whole(&to, self.force, |out| format.write(trace, &options, out))?;
        if to.as_os_str() != "-" {
            let shown = to.display().to_string();
            tell(format!("mallard: wrote {shown} from {}", trace.folder().display()));
            for remark in remarks::of(trace.manifest()) {
                tell(format!("  {remark}"));
            }
            tell(format!("  next: {}", as_called(&format.next(&to))));
        }
        Ok(())
    }

    fn add(&self, trace: &Trace, root: &Path, service: &str) -> std::result::Result<(), Failure> {
        let mut key = Key::of(trace.manifest(), service);
        key.date = self.date.clone().unwrap_or(key.date);
        key.run = self.run.clone().unwrap_or(key.run);
        let addition = Addition { trace, key, events: self.events, force: self.force };
        let added = add(root, &addition)?;
        tell(format!(
            "mallard: added {} to {} as {}: {}, {}",
            trace.folder().display(),
            root.display(),
            addition.key.folder().display(),
            plural(added.tables as u64, "table"),
            bytes(added.bytes)
        ));
        if !self.events {
            tell("  events and blocks were not added; --events adds them");
        }
        let next = format!("mallard query --fleet {} 'SHOW TABLES'", quoted_path(root));
        tell(format!("  next: {}", as_called(&next)));
        Ok(())
    }
}
