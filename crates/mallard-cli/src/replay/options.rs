//! The options of `mallard replay`.

use super::player::Manner;
use crate::record::recorded;
use mallard_measure::error::Failure;
use mallard_measure::mallocs::wanted::{Wanted, SYNTAX};
use mallard_measure::rounds::timing::Timing;
use mallard_trace::replay::{Options, Strategy};
use mallard_trace::Trace;
use std::path::{Path, PathBuf};

/// Replays a recording under other allocators, and predicts what each would save.
///
/// Repeats the calls of the recorded program, with its threads, in a separate process for each
/// replay: under glibc's malloc, under other mallocs (--allocator), and with local allocators
/// instead of malloc (--plan, --strategy). The calls are also replayed with an allocator that does
/// nothing; its time is subtracted, because it is the cost of the replay itself. The result is the
/// share of the program's CPU time that another allocator would save, without locality: the
/// addresses of blocks also change the time of the program's memory accesses, which are not
/// replayed. `mallard try` measures locality too, but only for mallocs.
#[derive(clap::Args)]
pub struct Command {
    /// The trace.
    #[arg(value_name = "NAME")]
    pub name: PathBuf,
    /// A malloc; may be repeated. Without --allocator, --plan and --strategy, all that are
    /// installed are compared.
    #[arg(short, long, value_name = SYNTAX)]
    pub allocator: Vec<Wanted>,
    /// A file with rules that assign call sites or regions of the program to local allocators; may be
    /// repeated.
    #[arg(long, value_name = "FILE")]
    pub plan: Vec<PathBuf>,
    /// Lakos's allocation strategies (ACCU 2017) for the whole program: all, or a list such as AS1,AS7.
    #[arg(long, value_name = "all|AS1,...", value_delimiter = ',', value_parser = strategies)]
    pub strategy: Vec<Strategies>,
    /// Only writes an op stream to a file: that of the plan or the strategy, or else that of the
    /// recorded calls. `mallard-replay FILE` replays it once.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["allocator", "json"])]
    pub write: Option<PathBuf>,
    #[command(flatten)]
    pub manner: Manner,
    #[command(flatten)]
    pub compiling: Compiling,
    #[command(flatten)]
    pub timing: Timing,
}

/// How op streams are made.
#[derive(Default, clap::Args)]
pub struct Compiling {
    /// The process to replay, by its ID in the table `processes`. By default the one with the
    /// most CPU time, or with the most events if a CPU time is unknown.
    #[arg(long, value_name = "NUMBER")]
    pub process: Option<i32>,
    /// Also replays a sampled trace, although it has only a small part of the calls.
    #[arg(long)]
    pub allow_samples: bool,
    /// Replays a plan that frees blocks while the program still uses them.
    #[arg(long)]
    pub r#unsafe: bool,
}

impl Compiling {
    /// Converts these options into the form that the library needs.
    pub fn options(&self) -> Options {
        Options {
            process: self.process,
            allow_samples: self.allow_samples,
            allow_escapes: self.r#unsafe,
            ..Options::default()
        }
    }
}

#[derive(Clone, Debug)]
/// The strategies that one word of the command line names.
pub struct Strategies(Vec<Strategy>);

fn strategies(text: &str) -> Result<Strategies, String> {
    if text == "all" {
        return Ok(Strategies(Strategy::all().collect()));
    }
    let one = text.parse().map_err(|()| "the strategy must be one of AS1 to AS14".to_string())?;
    Ok(Strategies(vec![one]))
}

impl Command {
    /// Returns all strategies that the options name.
    pub fn strategies(&self) -> impl Iterator<Item = Strategy> + '_ {
        self.strategy.iter().flat_map(|list| list.0.iter().copied())
    }
}

/// Makes a directory for op streams, which is removed when the value is dropped.
pub fn temporary_folder() -> Result<tempfile::TempDir, Failure> {
    tempfile::Builder::new().prefix("mallard-replay-").tempdir().map_err(|e| {
        let what = format!("cannot create a temporary directory: {}", e.to_string().to_lowercase());
        Failure::new(what, "nothing was replayed", "TMPDIR=/path/with/room mallard replay ...")
            .with_status(mallard_measure::error::status::MALLARD_FAILED)
    })
}

/// Returns the command line of the recorded program, if the trace contains it.
pub fn arguments(trace: &Trace) -> Option<String> {
    recorded::command_line(trace.manifest())
}

pub fn name_of(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}
