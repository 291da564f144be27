//! The time that `mallard advise` may take, and how much of it is left.

use crate::output::progress::Work;
use crate::output::units::time;
use crate::turns::subject::Runner;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// A budget that is at least `time`, as a user can type it: in seconds, or from ten minutes on in
/// minutes, rounded up.
pub fn typable(time: Duration) -> String {
    match (time.as_secs_f64().ceil() as u64).max(1) {
        seconds @ ..600 => format!("{seconds}s"),
        seconds => format!("{}m", seconds.div_ceil(60)),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_enough_and_can_be_typed() {
        for (seconds, text) in
            [(0.0, "1s"), (7.5, "8s"), (599.0, "599s"), (599.5, "10m"), (754.0, "13m")]
        {
            let time = Duration::from_secs_f64(seconds);
            assert_eq!(typable(time), text);
            assert!(crate::parse::duration(text).unwrap() >= time);
        }
    }
}
