//! The options of every command that measures programs.

use super::measure::Plan;
use super::measured::Measured;
use super::subject::Runner;
use crate::error::status::MALLARD_FAILED;
use crate::error::Failure;
use crate::output::progress::Work;
use crate::parse::{duration, share};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

/// The last signal that interrupted mallard.
static SIGNAL: LazyLock<Arc<AtomicUsize>> =
    LazyLock::new(|| Arc::new(AtomicUsize::new(SIGINT as usize)));
/// The default budget of a measurement.
const BUDGET: Duration = Duration::from_secs(60);
/// The default of the minimum difference that counts.
const MIN_GAIN: f64 = 0.02;

/// How long and how exactly is measured, and how the result is shown.
#[derive(clap::Args)]
pub struct Timing {
    /// The time limit of the measurement, 60 s by default. The measurement ends earlier if each
    /// difference is known to within 1 % of the base, or to within a fifth of the difference. Runs
    /// that confirm a gain may take a tenth longer.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub budget: Option<Duration>,
    /// The smallest difference that counts, as a share of the base.
    #[arg(long, value_name = "PERCENT", value_parser = share, default_value = "2%")]
    pub min_gain: f64,
    /// The seed of the random order of runs. The same seed gives the same order.
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// Writes one JSON object.
    #[arg(long)]
    pub json: bool,
    /// Prints neither progress nor notes.
    #[arg(short, long)]
    pub quiet: bool,
}

impl Timing {
    /// Returns the default options, with the given budget.
    pub fn of(budget: Duration, quiet: bool) -> Timing {
        Timing { budget: Some(budget), min_gain: MIN_GAIN, seed: None, json: false, quiet }
    }

    /// Returns the time that the measurement may take.
    pub fn budget(&self) -> Duration {
        self.budget.unwrap_or(BUDGET)
    }

    /// Returns a copy of these options with another budget, for a command that measures as one of
    /// several steps.
    pub fn part(&self, budget: Duration) -> Timing {
        Timing { budget: Some(budget), ..*self }
    }

    /// Returns the options `--min-gain` and `--seed` if they differ from their defaults. A command
    /// line that repeats the measurement needs them.
    pub fn typed(&self) -> Vec<String> {
        // The product of 0.07 and 100 is 7.000000000000001, so the percentage is rounded.
        let percent = (self.min_gain * 1e8).round() / 1e6;
        let least = (self.min_gain != MIN_GAIN).then(|| format!("--min-gain {percent}%"));
        let seed = self.seed.map(|seed| format!("--seed {seed}"));
        least.into_iter().chain(seed).collect()
    }

    /// Returns a runner without a load, which stops when the user interrupts mallard.
    pub fn runner(&self) -> Result<Runner, Failure> {
        let interrupted = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            let noted = signal_hook::flag::register_usize(signal, SIGNAL.clone(), signal as usize);
            let flagged = || signal_hook::flag::register(signal, interrupted.clone());
            noted.and_then(|_| flagged()).map_err(|e| {
                let what = format!("signals cannot be handled: {e}");
                Failure::new(what, "nothing was started", "ulimit -a").with_status(MALLARD_FAILED)
            })?;
        }
        Ok(Runner { interrupted, ..Runner::default() })
    }

    /// Returns the settings of a measurement in which runs may differ in their output, and
    /// candidates are dropped early.
    pub fn plan(&self) -> Plan {
        Plan {
            budget: self.budget(),
            timeout: None,
            ignores_output: true,
            min_gain: self.min_gain,
            drops: true,
            kept: Vec::new(),
            controls: Vec::new(),
            seed: self.seed.unwrap_or_else(|| fastrand::u64(..1 << 32)),
            progress: (!self.quiet).then(Work::begin),
        }
    }
}

/// Interrupts a runner, as if `signal` had arrived.
pub fn interrupt(runner: &Runner, signal: i32) {
    SIGNAL.store(signal as usize, Ordering::Relaxed);
    runner.interrupted.store(true, Ordering::Relaxed);
}

/// Returns the exit status of an interrupted command, which is 128 plus the signal.
pub fn interrupted() -> ExitCode {
    ExitCode::from(128 + SIGNAL.load(Ordering::Relaxed) as u8)
}

/// Returns the exit status of a command whose result does not affect the status: 0, or the status
/// of an interrupted command.
pub fn status(measured: &Measured) -> ExitCode {
    match measured.interrupted {
        true => interrupted(),
        false => ExitCode::SUCCESS,
    }
}
