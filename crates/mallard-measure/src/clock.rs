//! The clock that measures time budgets.
//!
//! The default is the clock of the machine. With `MALLARD_RUN_TAKES=60ms`, each run of a program
//! counts as exactly 60 ms, and everything else counts as 0. The tests of the commands set this
//! variable, so that the number of runs does not depend on the load of the machine. CPU times and
//! memory are always measured.

use crate::parse;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// The time that each run counts, from `MALLARD_RUN_TAKES`. `None` if the real time of a run
/// counts.
static RUN_TAKES: LazyLock<Option<Duration>> =
    LazyLock::new(|| parse::duration(&std::env::var("MALLARD_RUN_TAKES").ok()?).ok());
/// The number of runs so far.
static RUNS: AtomicU32 = AtomicU32::new(0);
/// The minimum real time before a run is killed if `MALLARD_RUN_TAKES` is set. The limits of a
/// budget are not real times in this case.
const PATIENCE: Duration = Duration::from_secs(60);

/// A moment on this clock.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    at: Instant,
    runs: u32,
}

impl Moment {
    /// Returns the current moment.
    pub fn now() -> Moment {
        Moment { at: Instant::now(), runs: RUNS.load(Ordering::Relaxed) }
    }

    /// Returns the time since this moment.
    pub fn elapsed(self) -> Duration {
        match *RUN_TAKES {
            Some(each) => each * (RUNS.load(Ordering::Relaxed) - self.runs),
            None => self.at.elapsed(),
        }
    }
}

/// Counts a run whose real time was `took`, and returns its time on this clock.
pub fn ran(took: Duration) -> Duration {
    RUNS.fetch_add(1, Ordering::Relaxed);
    RUN_TAKES.unwrap_or(took)
}

/// Returns the real time after which a run is killed. `limit` is the run's share of the budget.
pub fn limit(limit: Duration) -> Duration {
    match *RUN_TAKES {
        Some(_) => limit.max(PATIENCE),
        None => limit,
    }
}
