//! `mallard replay`: what another allocator would change for a recorded program.
//!
//! `chosen` makes op streams of the trace, one for each plan, and lists what is compared. `player`
//! finds and runs the player, which makes the calls of an op stream. One run of the player is a play:
//! `playing` measures plays in turns (see `turns` for subjects, blocks and columns), and `effects`
//! computes the CPU time of the program from the plays. `report` shows the result, with `text` and
//! `json`. `write` writes an op stream instead. `plays` is the entry for other commands, which add
//! candidates one by one.

mod chosen;
mod effects;
mod json;
mod part;
mod player;
mod playing;
mod plays;
mod report;
mod text;
mod write;

use crate::allocators::{Wanted, SYNTAX};
use crate::error::Failure;
use crate::look;
use crate::output::shell::quoted;
use crate::starter;
use crate::turns::host::Host;
use crate::turns::timing::Timing;
use crate::verdict;
use crate::verdict::paired::Differences;
use chosen::Chosen;
use effects::{effects, Program};
use mallard_trace::replay::{Options, Strategy};
use mallard_trace::Trace;
use player::Manner;
use playing::Playing;
use report::Report;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

pub use effects::{cpu_ns, threads_at_once};
pub use part::recorded_share;
pub use plays::{Accounted, Pilot, Played, Plays};
pub use report::likely;

/// Replays a recording under other allocators, and says what each would change.
///
/// Makes the calls of the recorded program again, with its threads, in a process of its own for
/// each run: under glibc's malloc, under other mallocs (--allocator), and with local allocators
/// instead of malloc (--plan, --strategy). An allocator that does nothing is played too, and its
/// time is subtracted, since it is that of the replay itself. The result is the share of the
/// program's CPU time that another allocator would save, without locality: where blocks lie also
/// changes the time of the program's own accesses, which a replay does not make. `mallard try`
/// measures locality too, but only for mallocs.
#[derive(clap::Args)]
pub struct Command {
    /// The trace.
    #[arg(value_name = "NAME")]
    name: PathBuf,
    /// A malloc; may be repeated. Without --allocator, --plan and --strategy, all that are
    /// installed are compared.
    #[arg(short, long, value_name = SYNTAX)]
    allocator: Vec<Wanted>,
    /// A file with rules that give call sites or regions of the program to local allocators; may be
    /// repeated.
    #[arg(long, value_name = "FILE")]
    plan: Vec<PathBuf>,
    /// Strategies of J. Lakos's talk for the whole program: all, or a list such as AS1,AS7.
    #[arg(long, value_name = "all|AS1,...", value_delimiter = ',', value_parser = strategies)]
    strategy: Vec<Strategies>,
    /// Only writes an op stream to a file: that of the plan or the strategy, or else that of the
    /// recorded calls. `mallard-replay FILE` plays it once.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["allocator", "json"])]
    write: Option<PathBuf>,
    #[command(flatten)]
    manner: Manner,
    #[command(flatten)]
    compiling: Compiling,
    #[command(flatten)]
    timing: Timing,
}

/// How op streams are made.
#[derive(Default, clap::Args)]
struct Compiling {
    /// The process of the trace, by its number in the table `processes`. By default the one with the
    /// most CPU time, or with the most events if a CPU time is unknown.
    #[arg(long, value_name = "NUMBER")]
    process: Option<i32>,
    /// Replays a sampled trace too, although it has a small part of the calls.
    #[arg(long)]
    allow_samples: bool,
    /// Replays a plan that frees blocks while the program still uses them.
    #[arg(long)]
    r#unsafe: bool,
}

impl Compiling {
    fn options(&self) -> Options {
        Options {
            process: self.process,
            allow_samples: self.allow_samples,
            allow_escapes: self.r#unsafe,
            ..Options::default()
        }
    }
}

#[derive(Clone, Debug)]
struct Strategies(Vec<Strategy>);

fn strategies(text: &str) -> Result<Strategies, String> {
    if text == "all" {
        return Ok(Strategies(Strategy::all().collect()));
    }
    let one = text.parse().map_err(|()| "a strategy is one of AS1 to AS14".to_string())?;
    Ok(Strategies(vec![one]))
}

impl Command {
    /// Replays, and shows what was measured.
    pub fn run(self) -> Result<ExitCode, Failure> {
        starter::prepare();
        let trace = look::open(&self.name)?;
        if let Some(file) = &self.write {
            return self.write_stream(&trace, file);
        }
        let player = player::find()?;
        let folder = temporary_folder()?;
        let chosen = Chosen::make(&self, &trace, &player, folder.path())?;
        let program = Program::of(&trace, &chosen)?;
        let playing = Playing::new(self.timing.runner()?, &chosen, &program);
        let mut host = Host::now();
        let (measured, seed) = playing.measure(&self.timing, &chosen)?;
        let mut report = Report::new(&self, &trace, &chosen, &program, measured, seed);
        report.notes.extend(host.notes());
        report.show(&self.timing)?;
        Ok(report.status())
    }

    fn strategies(&self) -> impl Iterator<Item = Strategy> + '_ {
        self.strategy.iter().flat_map(|list| list.0.iter().copied())
    }
}

/// The savings that a replay finds for mallocs.
pub struct Savings {
    /// The savings of each malloc that could be played, by name, as shares of `program_ns`. Empty if
    /// nothing was measured.
    pub of: BTreeMap<String, Differences>,
    /// The CPU time of the program in ns, as the recording shows it, without the time of recording.
    pub program_ns: f64,
}

/// Replays a recording under some mallocs.
pub fn savings(
    trace: &Trace,
    allocators: &[Wanted],
    budget: Duration,
    quiet: bool,
) -> Result<Savings, Failure> {
    let command = Command {
        name: trace.folder().to_path_buf(),
        allocator: allocators.to_vec(),
        plan: Vec::new(),
        strategy: Vec::new(),
        write: None,
        manner: Manner::default(),
        compiling: Compiling::default(),
        timing: Timing::of(budget, quiet),
    };
    let player = player::find()?;
    let folder = temporary_folder()?;
    let chosen = Chosen::make(&command, trace, &player, folder.path())?;
    let program = Program::of(trace, &chosen)?;
    let (measured, _) = Playing::new(command.timing.runner()?, &chosen, &program)
        .measure(&command.timing, &chosen)?;
    let effects = effects(&chosen, &program, &measured);
    let all = effects.alive.iter().enumerate().filter_map(|(at, &index)| {
        let name = chosen.candidates[index].name.clone();
        Some((name, verdict::candidate(&effects.cpu, at)?))
    });
    Ok(Savings { of: all.collect(), program_ns: effects.program_ns })
}

/// A folder for op streams. It is removed at the end.
fn temporary_folder() -> Result<tempfile::TempDir, Failure> {
    tempfile::Builder::new().prefix("mallard-replay-").tempdir().map_err(|e| {
        let what = format!("cannot make a temporary folder: {}", e.to_string().to_lowercase());
        Failure::new(what, "nothing was replayed", "TMPDIR=/path/with/room mallard replay ...")
            .with_status(crate::error::status::MALLARD_FAILED)
    })
}

/// The command line of the recorded program, if the trace has it.
fn arguments(trace: &Trace) -> Option<String> {
    let words = trace.manifest().notes.get("arguments")?.as_array()?;
    let words: Vec<String> = words.iter().filter_map(|word| word.as_str()).map(quoted).collect();
    Some(words.join(" "))
}

fn name_of(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}
