//! `mallard export`: writes a trace in the formats of other programs, or into a fleet.

mod csv;
pub mod fleet;

use crate::error::Failure;
use crate::look::open;
use crate::output::file::{write_whole, Trouble};
use crate::output::units::{bytes, plural};
use fleet::{Addition, Key};
use mallard_trace::Trace;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Writes a trace in the format of another program, or adds it to a fleet.
///
/// A fleet is a folder with the tables of many runs of many services, which `mallard query --fleet`,
/// DuckDB and Spark read: ROOT/TABLE/service=S/date=D/run=R/part-*.parquet.
#[derive(clap::Args)]
pub struct Command {
    /// The trace.
    #[arg(value_name = "NAME")]
    name: PathBuf,
    /// The format.
    #[arg(long, value_enum, required_unless_present = "fleet", conflicts_with = "fleet")]
    format: Option<Format>,
    /// The file to write; - for stdout. By default it has the name of the trace, in this folder.
    #[arg(short = 'o', long = "output", value_name = "FILE", conflicts_with = "fleet")]
    output: Option<PathBuf>,
    /// Adds the trace to the fleet in this folder.
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
    /// Adds the tables of events and of blocks too, which are most of a trace.
    #[arg(long, requires = "fleet")]
    events: bool,
    /// Leaves out paths, arguments and environment of the program, and the name of the host. Of a
    /// path, the name of the file stays.
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
}

impl Format {
    /// Writes a trace.
    fn write(self, trace: &Trace, to: &mut dyn Write) -> Result<(), Trouble> {
        match self {
            Format::Csv => csv::write(trace, to),
        }
    }

    /// How names of files in this format end.
    fn extension(self) -> &'static str {
        match self {
            Format::Csv => "csv",
        }
    }

    /// What to type next, when a file in this format is complete.
    fn next(self, file: &str) -> String {
        match self {
            Format::Csv => format!("head {file}"),
        }
    }
}

impl Command {
    /// Writes the file, or adds to the fleet.
    pub fn run(self) -> Result<ExitCode, Failure> {
        let trace = open(&self.name)?;
        let trace = if self.anonymize { trace.redacted() } else { trace };
        match (&self.fleet, &self.service, self.format) {
            (Some(root), Some(service), _) => self.add(&trace, root, service)?,
            (_, _, Some(format)) => self.write(&trace, format)?,
            _ => unreachable!("clap asks for a format, or for a fleet and a service"),
        }
        Ok(ExitCode::SUCCESS)
    }

    fn write(&self, trace: &Trace, format: Format) -> Result<(), Failure> {
        let to = self.output.clone().unwrap_or_else(|| {
            let name = trace.folder().file_stem().unwrap_or_default();
            PathBuf::from(name).with_extension(format.extension())
        });
        write_whole(&to, self.force, |out| format.write(trace, out))?;
        if to.as_os_str() != "-" {
            let shown = to.display().to_string();
            eprintln!("mallard: {} is now {shown}", trace.folder().display());
            eprintln!("  next: {}", format.next(&shown));
        }
        Ok(())
    }

    fn add(&self, trace: &Trace, root: &Path, service: &str) -> Result<(), Failure> {
        let mut key = Key::of(trace.manifest(), service);
        key.date = self.date.clone().unwrap_or(key.date);
        key.run = self.run.clone().unwrap_or(key.run);
        let addition = Addition { trace, key, events: self.events, force: self.force };
        let added = fleet::add(root, &addition)?;
        eprintln!(
            "mallard: {} is now {} in {}: {}, {}",
            trace.folder().display(),
            addition.key.folder().display(),
            root.display(),
            plural(added.tables as u64, "table"),
            bytes(added.bytes)
        );
        if !self.events {
            eprintln!("  its events and blocks are not: --events adds them");
        }
        eprintln!("  next: mallard query --fleet {} 'SHOW TABLES'", root.display());
        Ok(())
    }
}
