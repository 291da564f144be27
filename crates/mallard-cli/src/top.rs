//! `mallard top`: shows live which functions of a program hold memory, and which allocate.

use crate::output::debuginfod::Debuginfod;
use crate::record::{self, Follow, ServerWork};
use mallard_measure::error::Failure;
use mallard_measure::parse::{bytes, duration};
use mallard_measure::process::launch::{Out, Streams};
use mallard_top::{can_draw, Format, Options, Sort};
use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// Shows live which functions hold memory now, and which allocate most.
///
/// Records a new program, or with --pid a running process, which continues as before when you quit. On
/// a terminal, keys change the order, filter the list and save the recording; the last lines name
/// them. Into a pipe or a file, writes one line a second.
#[derive(clap::Args)]
pub struct Command {
    /// Shows the running process with this ID, until you quit or it ends. Blocks from before are not
    /// counted.
    #[arg(
        short = 'p',
        long,
        value_name = "PID",
        value_parser = clap::value_parser!(u32).range(1..),
        conflicts_with_all = ["program", "follow"]
    )]
    pid: Option<u32>,
    /// With --pid, quits after this time.
    #[arg(
        long = "for",
        value_name = "TIME",
        value_parser = duration,
        requires = "pid",
        conflicts_with = "program"
    )]
    ends_after: Option<Duration>,
    /// What the list is ordered by at first.
    #[arg(long, value_enum, default_value = "use")]
    sort: Sort,
    /// Lists only functions whose name or file contains this text.
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    filter: String,
    /// How often the figures change.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "1s")]
    interval: Duration,
    /// Saves the recording as the trace NAME.mallard at the end. Without this option, the key s does.
    #[arg(short = 'o', long, value_name = "NAME")]
    output: Option<PathBuf>,
    /// Writes no further events to the event log when it has this size. The view goes on.
    #[arg(long, value_name = "BYTES", value_parser = bytes, default_value = "1GiB")]
    max_size: u64,
    /// Also counts processes that the program starts: by fork, or also by exec.
    #[arg(long, value_enum, value_delimiter = ',')]
    follow: Vec<Follow>,
    /// Also looks for debug information in this directory.
    #[arg(long, value_name = "DIRECTORY")]
    debug_dir: Vec<PathBuf>,
    /// Writes one JSON object a second instead of text, with the first 20 functions and 100 threads.
    #[arg(long)]
    json: bool,
    /// The program and its arguments. On a screen, the program has no input, and its output is
    /// discarded; otherwise its output goes to stderr.
    #[arg(
        required_unless_present = "pid",
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "PROG ARGS"
    )]
    program: Vec<OsString>,
}

impl Command {
    pub fn run(self) -> Result<ExitCode, Failure> {
        let format = match (self.json, can_draw()) {
            (true, _) => Format::Json,
            (false, true) => Format::Screen,
            (false, false) => Format::Lines,
        };
        let is_screen = format == Format::Screen;
        let takes_keys = is_screen && std::io::stdin().is_terminal();
        let streams = Streams {
            stdin: takes_keys.then(|| PathBuf::from("/dev/null")),
            out: if is_screen { Out::Nowhere } else { Out::Stderr },
        };
        let options = Options {
            is_attached: self.pid.is_some(),
            interval: self.interval.max(Duration::from_millis(50)),
            sort: self.sort,
            filter: self.filter,
            format,
            keeps: Arc::new(self.output.is_some().into()),
            debug_folders: self.debug_dir,
        };
        let work = ServerWork { repeated_for: self.ends_after, ..ServerWork::default() };
        let debuginfod = Debuginfod::default();
        let recording = match self.pid {
            Some(process) => {
                record::Command::of_process(process, self.output, &work, debuginfod, true)
            }
            None => {
                let (program, follow) = (&self.program, &self.follow);
                record::Command::of(program, self.output, follow, &work, streams, debuginfod)
            }
        };
        recording.with_top(options, self.max_size).run()
    }
}
