//! The options of `mallard try` and `mallard verify`, and the function that measures with these
//! options.

use crate::error::status::USAGE;
use crate::error::Failure;
use crate::parse::duration;
use crate::process::orphans;
use crate::process::proc;
use crate::process::stdin_file;
use crate::rounds::measure::{measure, Plan};
use crate::rounds::measured::Measured;
use crate::rounds::subject::{Runner, Stop, Subject};
use crate::rounds::timing::Timing;
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::Duration;

/// How long a pipe on stdin may stay empty until it counts as no input, in milliseconds.
const INPUT_MS: u16 = 100;

/// How programs are measured.
#[derive(clap::Args)]
pub struct Options {
    /// The time, the least gain and the output.
    #[command(flatten)]
    pub timing: Timing,
    #[command(flatten)]
    conditions: Conditions,
    /// Kills a run that takes longer than this time. Without this option, the first run may take the
    /// whole budget, and each later run ten times as long as the first, but at least 10 seconds.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    timeout: Option<Duration>,
    /// A shell command that gives work to a server. The program is started, CMD is repeated until it
    /// succeeds, and the program is ended by SIGTERM. The output of CMD is compared instead of that
    /// of the program. CMD must end by itself, also while the server does not answer yet.
    #[arg(long, value_name = "CMD")]
    load: Option<String>,
    /// Repeats the load for this time in each run. The figures are divided by the number of loads.
    #[arg(long = "for", value_name = "TIME", value_parser = duration, requires = "load")]
    repeated_for: Option<Duration>,
}

/// The conditions under which a program runs many times.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Conditions {
    /// A shell command that runs before each run, for example to restore files. It is not measured.
    #[arg(long, value_name = "CMD")]
    pub setup: Option<String>,
    /// The file that is stdin of each run. Without this option, it is the file to which stdin of
    /// mallard is redirected.
    #[arg(long, value_name = "FILE")]
    pub stdin: Option<PathBuf>,
    /// Accepts runs whose output or status differs, for programs that print times or random
    /// numbers.
    #[arg(long)]
    pub ignore_output: bool,
}

impl Conditions {
    /// Returns these conditions with a stdin file: if the user names none, the file to which stdin
    /// is redirected. Rejects a pipe with input, because only one run could read the input.
    pub fn with_stdin(self) -> Result<Conditions, Failure> {
        let stdin = self.stdin.clone().or_else(stdin_file);
        if stdin.is_none() && is_pipe_with_input() {
            let what = "stdin is a pipe, which only one run of the program can read";
            let help =
                "write the input to a file, and add < FILE or --stdin FILE; or < /dev/null, if \
                        the program needs no input";
            return Err(Failure::new(what, "nothing was started", help).with_status(USAGE));
        }
        Ok(Conditions { stdin, ..self })
    }

    /// Returns the stdin file of a recording: the file of these conditions, or else /dev/null.
    /// `None` if stdin is the terminal, which the program then uses.
    pub fn stdin_of_recording(&self) -> Option<PathBuf> {
        let empty = || (!io::stdin().is_terminal()).then(|| PathBuf::from("/dev/null"));
        self.stdin.clone().or_else(empty)
    }

    /// Runs the setup once.
    pub fn set_up(&self, plain: Runner) -> Result<(), Failure> {
        match self.runner(plain).set_up() {
            Err(Stop::Failed(failure)) => Err(failure),
            _ => Ok(()),
        }
    }

    /// Returns a runner that runs programs under these conditions.
    pub fn runner(&self, plain: Runner) -> Runner {
        Runner { stdin: self.stdin.clone(), setup: self.setup.clone(), ..plain }
    }
}

/// Returns whether stdin is a pipe or a socket that has input within `INPUT_MS` milliseconds.
fn is_pipe_with_input() -> bool {
    let stdin = io::stdin();
    let is_pipe = std::fs::metadata(proc::stdin()).is_ok_and(|of| {
        use std::os::unix::fs::FileTypeExt;
        of.file_type().is_fifo() || of.file_type().is_socket()
    });
    let mut wanted = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
    is_pipe
        && poll(&mut wanted, PollTimeout::from(INPUT_MS)).is_ok()
        && wanted[0].revents().is_some_and(|seen| seen.contains(PollFlags::POLLIN))
}

impl Options {
    /// Measures. Also returns the seed of the random order. If `drops` is true, candidates that
    /// cannot win are dropped early, except those in `kept`.
    pub fn measure(
        &self,
        base: &Subject,
        candidates: &[Subject],
        drops: bool,
        kept: &[usize],
    ) -> Result<(Measured, u64), Failure> {
        orphans::adopt();
        let runner = Runner {
            load: self.load.clone(),
            repeated_for: self.repeated_for,
            ends_orphans: true,
            ..self.conditions.clone().with_stdin()?.runner(self.timing.runner()?)
        };
        let plan = Plan {
            timeout: self.timeout,
            ignores_output: self.conditions.ignore_output,
            drops,
            kept: kept.to_vec(),
            controls: Vec::new(),
            ..self.timing.plan()
        };
        Ok((measure(&runner, base, candidates, &plan)?, plan.seed))
    }

    /// Returns whether the program is a server, whose figures are means for one request of the
    /// load.
    pub fn is_server(&self) -> bool {
        self.load.is_some()
    }
}
