//! The options of `mallard try` and `mallard verify`, and a measurement with them.

use crate::error::Failure;
use crate::parse::duration;
use crate::turns::blocks::{measure, Plan};
use crate::turns::measured::Measured;
use crate::turns::orphans;
use crate::turns::subject::{Runner, Stop, Subject};
use crate::turns::timing::Timing;
use std::path::PathBuf;
use std::time::Duration;

/// How programs are measured.
#[derive(clap::Args)]
pub struct Options {
    #[command(flatten)]
    pub timing: Timing,
    #[command(flatten)]
    conditions: Conditions,
    /// Kills a run that takes longer than this time. Without this option, the first run may take the
    /// whole budget, and each other one ten times as long as the first, but at least 10 seconds.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    timeout: Option<Duration>,
    /// A shell command that gives work to a server. The program is started, CMD is repeated until it
    /// succeeds, and the program is ended by SIGTERM. The output of CMD is compared instead of that
    /// of the program.
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
    /// The file that is stdin of each run.
    #[arg(long, value_name = "FILE")]
    pub stdin: Option<PathBuf>,
    /// Accepts runs whose output or status differs, for programs that print times or random
    /// numbers.
    #[arg(long)]
    pub ignore_output: bool,
}

impl Conditions {
    /// Runs the setup once.
    pub fn set_up(&self, plain: Runner) -> Result<(), Failure> {
        match self.runner(plain).set_up() {
            Err(Stop::Failed(failure)) => Err(failure),
            _ => Ok(()),
        }
    }

    /// A runner of programs under these conditions.
    pub fn runner(&self, plain: Runner) -> Runner {
        Runner { stdin: self.stdin.clone(), setup: self.setup.clone(), ..plain }
    }
}

impl Options {
    /// Measures. Also returns the seed of the random order. `drops` tells whether candidates that cannot
    /// win are dropped early.
    pub fn measure(
        &self,
        base: &Subject,
        candidates: &[Subject],
        drops: bool,
    ) -> Result<(Measured, u64), Failure> {
        orphans::adopt();
        let runner = Runner {
            load: self.load.clone(),
            repeated_for: self.repeated_for,
            ends_orphans: true,
            ..self.conditions.runner(self.timing.runner()?)
        };
        let plan = Plan {
            timeout: self.timeout,
            ignores_output: self.conditions.ignore_output,
            drops,
            ..self.timing.plan()
        };
        Ok((measure(&runner, base, candidates, &plan)?, plan.seed))
    }

    /// Whether each figure is about one piece of work of a server.
    pub fn is_server(&self) -> bool {
        self.load.is_some()
    }
}
