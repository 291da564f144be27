//! The options of `mallard record`.

use super::serving::{ServerWork, WORK};
use crate::output::debuginfod::Debuginfod;
use mallard_measure::error::Failure;
use mallard_measure::parse::{bytes, window};
use mallard_measure::process::launch::Streams;
use std::ffi::OsString;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Records every allocation of a program, with its call stack.
///
/// The program is not rebuilt. It uses the terminal and receives signals as usual, and the command
/// returns its exit status (with --load, 0). With --pid, a running process is recorded. The result
/// is a directory NAME.mallard, which `mallard stats`, `sites` and other commands read.
#[derive(clap::Args)]
pub struct Command {
    /// The trace to write, NAME.mallard. By default it has the name of the program, with a number if
    /// there is one already.
    #[arg(short = 'o', long = "output", value_name = "NAME")]
    pub(super) output: Option<PathBuf>,
    /// Records the running process with this ID, for the time of --for, until Ctrl-C, or until it
    /// ends. Afterwards, the process runs on as before. Lists which code allocated the memory that is
    /// still in use at the end. Of earlier blocks, only the frees are recorded.
    #[arg(
        short = 'p',
        long,
        value_name = "PID",
        value_parser = clap::value_parser!(u32).range(1..),
        group = WORK,
        conflicts_with_all = ["program", "load", "timeout", "window", "follow"]
    )]
    pub(super) pid: Option<u32>,
    /// How call stacks are recorded: all frames by the unwind tables, all frames by frame pointers,
    /// only the caller, or not at all.
    #[arg(long, value_enum, default_value = "full")]
    pub(super) stacks: Stacks,
    /// Records no call stacks of frees.
    #[arg(long)]
    pub(super) no_free_stacks: bool,
    /// Records only a sample: on average one allocation per BYTES allocated bytes.
    #[arg(long, value_name = "BYTES", value_parser = bytes, default_value = "0", hide_default_value = true)]
    pub(super) sample: u64,
    /// Records only this part of the run, for example 10s..70s.
    #[arg(long, value_name = "FROM..TO", value_parser = window)]
    pub(super) window: Option<Range<Duration>>,
    /// Records processes that the program starts as well: by fork, or also by exec. The recording
    /// ends when all of them have ended.
    #[arg(long, value_enum, value_delimiter = ',')]
    pub(super) follow: Vec<Follow>,
    #[command(flatten)]
    pub(super) work: ServerWork,
    /// What a thread does when it allocates faster than the events can be written.
    #[arg(long, value_enum, default_value = "block")]
    pub(super) on_full: OnFull,
    /// Stops recording when the event log has this size. The trace is at most a tenth larger.
    #[arg(long, value_name = "BYTES", value_parser = bytes, default_value = "16GiB")]
    pub(super) max_size: u64,
    /// Also looks for debug information in this directory.
    #[arg(long, value_name = "DIRECTORY")]
    pub(super) debug_dir: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) debuginfod: Debuginfod,
    /// Does not look up the function names of addresses.
    #[arg(long)]
    pub(super) no_symbols: bool,
    /// Leaves out paths, arguments and environment of the program, and the host name. File names
    /// without their directories stay.
    #[arg(long)]
    pub(super) anonymize: bool,
    /// Keeps the event log next to the trace, as NAME.stream.
    #[arg(long, conflicts_with = "anonymize")]
    pub(super) keep_stream: bool,
    /// Overwrites the trace if it exists.
    #[arg(long)]
    pub(super) force: bool,
    /// Writes the summary as one line of JSON. Like the text, it goes to stderr.
    #[arg(long)]
    pub(super) json: bool,
    /// Writes nothing but errors.
    #[arg(short, long)]
    pub(super) quiet: bool,
    /// Prints more about the recording: with --pid, for how long threads were stopped.
    #[arg(short, long)]
    pub(super) verbose: bool,
    /// What is printed before the summary of a running process.
    #[arg(skip)]
    pub(super) growth: Option<Growth>,
    /// A live view of the recording, which is discarded at the end unless the view keeps it.
    #[arg(skip)]
    pub(super) top: Option<mallard_top::Options>,
    /// Whether the command prints that a recording has begun, although it is quiet.
    #[arg(skip)]
    pub(super) prints_begin: bool,
    #[arg(skip)]
    pub(super) streams: Streams,
    /// The program and its arguments.
    #[arg(
        required_unless_present = "pid",
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "PROG ARGS"
    )]
    pub(super) program: Vec<OsString>,
}

/// A function that prints what a trace shows about the growth of a process.
pub type Growth = fn(&Path) -> Result<(), Failure>;

#[derive(Clone, Copy, clap::ValueEnum)]
pub enum Stacks {
    Full,
    Fp,
    Caller,
    None,
}

/// Which of the processes that a program starts are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Follow {
    /// Those that it forks.
    Fork,
    /// Those that run another program.
    Exec,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum OnFull {
    /// The thread waits. No event is lost.
    Block,
    /// The thread goes on. Events are lost, and counted.
    Drop,
}
