//! The clock of budgets.
//!
//! By default, this is the clock of the machine. With `MALLARD_RUN_TAKES=60ms` each run of a program takes just
//! this time, and all else takes no time. The tests of the commands use this, so that the number of runs does
//! not depend on the load of the machine. CPU times and memory are always those of the machine.

use crate::parse;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// The time of a run. `None` if runs take the time that they take.
static RUN_TAKES: LazyLock<Option<Duration>> =
    LazyLock::new(|| parse::duration(&std::env::var("MALLARD_RUN_TAKES").ok()?).ok());
/// The number of runs so far.
static RUNS: AtomicU32 = AtomicU32::new(0);
/// A run may take at least this long, if the time of a run is not measured.
const PATIENCE: Duration = Duration::from_secs(60);

/// A moment.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    at: Instant,
    runs: u32,
}

impl Moment {
    /// This moment.
    pub fn now() -> Moment {
        Moment { at: Instant::now(), runs: RUNS.load(Ordering::Relaxed) }
    }

    /// The time since then.
    pub fn elapsed(self) -> Duration {
        match *RUN_TAKES {
            Some(each) => each * (RUNS.load(Ordering::Relaxed) - self.runs),
            None => self.at.elapsed(),
        }
    }
}

/// Notes a run that took the time `took`, and returns what it takes by this clock.
pub fn ran(took: Duration) -> Duration {
    RUNS.fetch_add(1, Ordering::Relaxed);
    RUN_TAKES.unwrap_or(took)
}

/// The time of the machine after which a run is killed that may take `limit` of a budget.
pub fn limit(limit: Duration) -> Duration {
    match *RUN_TAKES {
        Some(_) => limit.max(PATIENCE),
        None => limit,
    }
}
