//! The time that `mallard advise` may take, and how much of it is left.

use crate::output::progress::Work;
use crate::output::units::time;
use crate::turns::subject::Runner;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// A time in whole seconds, rounded up: a budget that a user can type.
pub fn whole_seconds(time: Duration) -> Duration {
    Duration::from_secs(time.as_secs() + 1)
}

/// The budget of one command. Its time begins after the program was recorded.
pub struct Budget {
    begin: Instant,
    all: Duration,
    /// Runs programs, and notices when the user interrupts mallard.
    pub runner: Runner,
    is_quiet: bool,
}

impl Budget {
    /// Starts the time of a budget.
    pub fn begin(all: Duration, runner: Runner, is_quiet: bool) -> Budget {
        Budget { begin: Instant::now(), all, runner, is_quiet }
    }

    /// The whole budget.
    pub fn all(&self) -> Duration {
        self.all
    }

    /// The part of the budget that is used up.
    pub fn taken(&self) -> Duration {
        self.begin.elapsed()
    }

    /// The part of the budget that is left.
    pub fn left(&self) -> Duration {
        self.all.saturating_sub(self.taken())
    }

    /// Whether the user has interrupted mallard.
    pub fn is_interrupted(&self) -> bool {
        self.runner.interrupted.load(Ordering::Relaxed)
    }

    /// Shows a step and the remaining time, until the result is dropped. `None` if nothing is shown.
    pub fn step(&self, what: &str) -> Option<Work> {
        let work = (!self.is_quiet).then(Work::begin)?;
        work.say(&format!("{what}, {} left", time(self.left().as_nanos() as f64)));
        Some(work)
    }
}
