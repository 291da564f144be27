//! Implements `mallard import`, which converts an event log, or a file of heaptrack, into a trace.
//! A trace is a directory of tables.

use crate::output::debuginfod::{fetching, Debuginfod};
use crate::record::names;
use mallard_measure::error::status::UNREADABLE;
use mallard_measure::error::tell;
use mallard_measure::error::Failure;
use mallard_measure::output::progress::Work;
use mallard_measure::output::shell::{as_called, quoted_path};
use mallard_measure::output::units::plural;
use mallard_trace::heaptrack;
use mallard_trace::import::{import, Options, Progress};
use mallard_trace::trace::Trace;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Makes a trace from an event log, or from a heaptrack file.
///
/// An event log is the file that `trace_file` writes for single allocators, or that `mallard
/// record` left behind because it was killed or --keep-stream was given. A heaptrack file, raw or
/// interpreted, lacks threads, precise times and call stacks of frees, and so does the trace.
#[derive(clap::Args)]
pub struct Command {
    /// The event log or the heaptrack file.
    #[arg(value_name = "FILE")]
    stream: PathBuf,
    /// The trace to write, NAME.mallard. By default it has the name of the file.
    #[arg(short = 'o', long = "output", value_name = "NAME")]
    output: Option<PathBuf>,
    /// Also looks for debug information in this directory.
    #[arg(long, value_name = "DIRECTORY")]
    debug_dir: Vec<PathBuf>,
    #[command(flatten)]
    debuginfod: Debuginfod,
    /// Does not look up the function names of addresses.
    #[arg(long)]
    no_symbols: bool,
    /// Leaves out paths, arguments and environment of the program, and the host name. File names
    /// without their directories stay.
    #[arg(long)]
    anonymize: bool,
    /// Overwrites the trace if it exists.
    #[arg(long)]
    force: bool,
}

impl Command {
    /// Makes the trace.
    pub fn run(self) -> Result<ExitCode, Failure> {
        let to = match &self.output {
            Some(output) => names::trace_of(output),
            None => names::trace_of(&stem_of(&self.stream)),
        };
        let options = Options {
            force: self.force,
            debug_folders: self.debug_dir,
            fetch_for: self.debuginfod.time(),
            without_symbols: self.no_symbols,
            redact: self.anonymize,
            ..Options::default()
        };
        let shown = self.stream.display();
        if self.stream.is_dir() {
            let (what, state) =
                (format!("{shown} is a directory, not an event log"), "nothing was read");
            let help = format!("mallard stats {}, if it is a trace", quoted_path(&self.stream));
            return Err(Failure::new(what, state, help).with_status(UNREADABLE));
        }
        let trace = with_progress(&self.stream, &to, &options)?;
        let manifest = trace.manifest();
        let events = plural(manifest.counts.events, "event");
        tell(format!("mallard: wrote {} ({events} from {shown})", to.display()));
        if let Some(origin) = manifest.origin() {
            tell(format!("  {origin}"));
        }
        match manifest.stream.ending.as_str() {
            "complete" => {}
            "cut" => tell("  the event log is incomplete: its writer was killed, or the disk was full; the trace has all earlier events"),
            ending => tell(format!("  the event log is {ending}; the trace has all earlier events")),
        }
        tell(format!("  next: {}", as_called(&format!("mallard stats {}", quoted_path(&to)))));
        Ok(ExitCode::SUCCESS)
    }
}

/// Makes a trace, and shows the progress.
pub fn with_progress(stream: &Path, to: &Path, options: &Options) -> Result<Trace, Failure> {
    let work = Work::begin();
    let mut show = |progress| match progress {
        Progress::Records(records) => {
            work.say(&format!("{} records", mallard_measure::output::units::count(records)))
        }
        Progress::Symbols(addresses) => {
            work.say(&format!("looking up the functions of {addresses} addresses"))
        }
        Progress::Fetching(number, of) => work.say(&fetching(number, of)),
        Progress::Sites(sites) => work.say(&format!("computing the figures of {sites} sites")),
    };
    if heaptrack::is_heaptrack(stream) {
        return heaptrack::import(stream, to, options, &mut show).map_err(Failure::from);
    }
    import(stream, to, options, &mut show).map_err(Failure::from)
}

/// Returns the name of a file without its extensions, because heaptrack writes NAME.zst, NAME.gz
/// and NAME.raw.zst.
fn stem_of(file: &Path) -> PathBuf {
    let mut stem = file.to_path_buf();
    for known in ["zst", "gz", "raw"] {
        if stem.extension().is_some_and(|extension| extension == known) {
            stem.set_extension("");
        }
    }
    if stem == file {
        stem.set_extension("");
    }
    stem
}
