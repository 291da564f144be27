//! `mallard import`: converts a stream of events, or a file of heaptrack, into a trace, which is a
//! directory of tables.

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

/// Makes a trace of a stream of events, or of a file of heaptrack.
///
/// A stream is what `trace_file` writes for single allocators, or what `mallard record` left when
/// it was killed or given --keep-stream. A file of heaptrack, raw or interpreted, lacks threads,
/// precise times and call stacks of frees: the trace says so.
#[derive(clap::Args)]
pub struct Command {
    /// The stream or the file of heaptrack.
    #[arg(value_name = "FILE")]
    stream: PathBuf,
    /// The trace to write, NAME.mallard. By default it has the name of the file.
    #[arg(short = 'o', long = "output", value_name = "NAME")]
    output: Option<PathBuf>,
    /// Looks for debug information here as well.
    #[arg(long, value_name = "FOLDER")]
    debug_dir: Vec<PathBuf>,
    #[command(flatten)]
    debuginfod: Debuginfod,
    /// Leaves addresses without names of functions.
    #[arg(long)]
    no_symbols: bool,
    /// Leaves out paths, arguments and environment of the program, and the name of the host. Of a
    /// path, the name of the file stays.
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
                (format!("{shown} is a directory, not an event stream"), "nothing was read");
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
            "cut" => tell("  the event stream is incomplete: its writer was killed, or the disk was full; earlier events are there"),
            ending => tell(format!("  the event stream is {ending}; earlier events are there")),
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
