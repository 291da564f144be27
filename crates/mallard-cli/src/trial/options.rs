//! The options of `mallard try` and `mallard verify`, and a measurement with them.

use super::blocks::{measure, Measured, Plan};
use super::subject::{Runner, Subject};
use crate::error::status::MALLARD_FAILED;
use crate::error::Failure;
use crate::output::progress::Work;
use crate::parse::{duration, share};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::Arc;
use std::time::Duration;

/// How programs are measured.
#[derive(clap::Args)]
pub struct Options {
    /// The measurement ends after this time, or earlier if the differences are known to 1 %.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "60s")]
    pub budget: Duration,
    /// The least difference that counts.
    #[arg(long, value_name = "PERCENT", value_parser = share, default_value = "2%")]
    pub min_gain: f64,
    /// A shell command that runs before each run, for example to restore files. It is not measured.
    #[arg(long, value_name = "CMD")]
    setup: Option<String>,
    /// The file that is stdin of each run.
    #[arg(long, value_name = "FILE")]
    stdin: Option<PathBuf>,
    /// A shell command that gives work to a server. The program is started, CMD is repeated until it
    /// succeeds, and the program is ended by SIGTERM. The output of CMD is compared instead of that
    /// of the program.
    #[arg(long, value_name = "CMD")]
    load: Option<String>,
    /// Repeats the load for this time in each run. Figures are then those of one CMD.
    #[arg(long = "for", value_name = "TIME", value_parser = duration, requires = "load")]
    repeated_for: Option<Duration>,
    /// Accepts runs with different output and status, for programs that print times or random
    /// numbers.
    #[arg(long)]
    ignore_output: bool,
    /// The beginning of the random order of runs, to repeat a measurement.
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// Writes one JSON object.
    #[arg(long)]
    pub json: bool,
    /// Shows no progress, and no notes.
    #[arg(short, long)]
    pub quiet: bool,
}

impl Options {
    /// Measures, and returns the seed of the random order as well.
    pub fn measure(
        &self,
        base: &Subject,
        candidates: &[Subject],
    ) -> Result<(Measured, u64), Failure> {
        let seed = self.seed.unwrap_or_else(|| fastrand::u64(..1 << 32));
        let interrupted = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, interrupted.clone()).map_err(|e| {
                let what = format!("signals cannot be handled: {e}");
                Failure::new(what, "nothing was started", "ulimit -a").with_status(MALLARD_FAILED)
            })?;
        }
        let runner = Runner {
            stdin: self.stdin.clone(),
            setup: self.setup.clone(),
            load: self.load.clone(),
            repeated_for: self.repeated_for,
            interrupted,
        };
        let plan = Plan {
            budget: self.budget,
            ignores_output: self.ignore_output,
            seed,
            progress: (!self.quiet).then(Work::begin),
        };
        Ok((measure(&runner, base, candidates, &plan)?, seed))
    }

    /// Whether figures are those of one piece of work of a server.
    pub fn is_server(&self) -> bool {
        self.load.is_some()
    }
}
