//! Tracks the time budget of `mallard advise`, and proposes a larger budget if the budget was too
//! small.

use super::measured::Measured;
use mallard_measure::clock::Moment;
use mallard_measure::output::progress::Work;
use mallard_measure::output::units::time;
use mallard_measure::rounds::subject::Runner;
use std::cell::Cell;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The share of the remaining budget for replays if the program itself runs afterwards.
pub const SHARE_BEFORE_RUNS: f64 = 0.6;
/// A second recording may take at most the remaining time divided by this number.
pub const RECORDING_PART: u32 = 2;
/// The maximum number of mallocs in a trial.
pub const TRIED_MAX: usize = 3;
/// The maximum number of plans in a race with the mallocs.
pub const PLANS_MAX: usize = 3;
/// The default budget is RUNS times the time of one program run. A race (interleaved runs) of four
/// mallocs, the glibc settings and three plans needs 70 to 140 runs, including confirmation rounds.
const RUNS: u32 = 150;
/// The minimum and the maximum of the default budget.
const LEAST: Duration = Duration::from_secs(30);
pub const MOST: Duration = Duration::from_secs(300);
/// The default budget if the program cannot run again, so that replays measure instead.
const OF_REPLAYS: Duration = Duration::from_secs(120);
/// A computed budget is multiplied by this factor before it is proposed, because the times of runs
/// vary.
const SPARE: f64 = 1.1;

/// The budget of one `mallard advise` command. Its time starts after the program was recorded.
pub struct Budget {
    begin: Moment,
    all: Duration,
    /// The time spent in steps that use a share of the budget. A larger budget makes these steps
    /// longer.
    shares: Cell<Duration>,
    /// The time of steps that were left out. A larger budget would include these steps.
    missed: Cell<Duration>,
    /// Runs programs, and notices when the user interrupts mallard.
    pub runner: Runner,
    is_quiet: bool,
}

impl Budget {
    /// Starts the clock of a budget.
    pub fn begin(all: Duration, runner: Runner, is_quiet: bool) -> Budget {
        let (shares, missed) = Default::default();
        Budget { begin: Moment::now(), all, shares, missed, runner, is_quiet }
    }

    /// Sets the default budget for a program whose run takes the time `run`. `run` is `None` if the
    /// program cannot run again, or takes too long.
    pub fn of_runs(self, run: Option<Duration>) -> Budget {
        let all = run.map_or(OF_REPLAYS, |run| (run * RUNS).clamp(LEAST, MOST));
        Budget { all, ..self }
    }

    /// Returns how much of the budget is used up.
    pub fn taken(&self) -> Duration {
        self.begin.elapsed()
    }

    /// Returns how much of the budget is left.
    pub fn left(&self) -> Duration {
        self.all.saturating_sub(self.taken())
    }

    /// Runs a step that uses a share of the budget, and adds the time of the step to `shares`.
    pub fn share<T>(&self, step: impl FnOnce() -> T) -> T {
        let begin = Moment::now();
        let made = step();
        self.shares.set(self.shares.get() + begin.elapsed());
        made
    }

    /// Records that a step was left out. The step would take `time`, however large the budget is.
    pub fn miss(&self, time: Duration) {
        self.missed.set(self.missed.get() + time);
    }

    /// Returns the total budget in which a step would get the time `needed`. The step gets the
    /// fraction `share` of the time that remains after all steps of a fixed duration.
    pub fn needed(&self, needed: Duration, share: f64) -> Duration {
        let fixed = self.taken().saturating_sub(self.shares.get()) + self.missed.get();
        fixed + needed.mul_f64(1.0 / share)
    }

    /// Proposes one larger budget that is probably enough for all open questions and for a second
    /// recording. If no question needs a larger budget, but noise was too large, proposes twice the
    /// current budget.
    pub fn proposed(&self, measured: &Measured) -> Option<Duration> {
        let needed = measured.questions.iter().filter_map(|of| of.needed);
        let needed = needed.chain(measured.second_needs).max();
        let twice = || measured.noise.filter(|_| !measured.interrupted).map(|_| self.all * 2);
        needed.map(|needed| self.larger(needed)).or_else(twice)
    }

    /// Returns `needed` plus some spare time. If the current budget was already that large, returns
    /// twice the current budget.
    fn larger(&self, needed: Duration) -> Duration {
        match needed.mul_f64(SPARE) {
            needed if needed > self.all => needed,
            _ => self.all * 2,
        }
    }

    /// Returns whether the user has interrupted this command.
    pub fn is_interrupted(&self) -> bool {
        self.runner.interrupted.load(Ordering::Relaxed)
    }

    /// Returns the whole budget.
    pub fn all(&self) -> Duration {
        self.all
    }

    /// Shows the name of a step and the remaining time, until the returned value is dropped.
    /// Returns `None` if the user wants no progress messages.
    pub fn step(&self, what: &str) -> Option<Work> {
        let work = (!self.is_quiet).then(Work::begin)?;
        work.say(&format!("{what}, {} left", time(self.left().as_nanos() as f64)));
        Some(work)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advise::card::cards;
    use crate::advise::reason::{Question, What};
    use crate::advise::rules::sample;
    use crate::advise::words::undecided;
    use mallard_measure::output::units::budget;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn of(seconds: u64) -> Budget {
        Budget::begin(Duration::from_secs(seconds), Default::default(), true)
    }

    #[test]
    fn the_advice_suggests_one_budget_and_never_a_smaller_one_than_the_current() {
        let mut evidence = sample::noisy();
        let question = |what, needed| Question { what, needed: Some(Duration::from_secs(needed)) };
        evidence.questions = vec![
            question(What::LongReplay(seconds(1), 7), 15),
            question(What::LongRun(seconds(1), 27), 25),
        ];
        evidence.proposed = of(20).proposed(&evidence);
        let undecided = undecided(&evidence).join("\n");
        assert_eq!(
            undecided.matches("; --budget 30s is probably enough").count(),
            2,
            "{undecided}"
        );
        let card = &cards(&evidence)[0];
        let expected = "the budget was too small, and --budget 30s is probably enough.";
        assert!(card.sentence.ends_with(expected), "{}", card.sentence);
        assert!(card.check.as_ref().unwrap().contains(" --budget 30s "), "{card:?}");
        // A budget that should have been enough is doubled.
        for (given, needed, proposed) in [(20, 25, "30s"), (27, 20, "60s"), (120, 115, "3m")] {
            assert_eq!(budget(of(given).larger(seconds(needed))), proposed);
        }
    }

    #[test]
    fn the_default_budget_depends_on_the_duration_of_a_run() {
        let of = |run| of(300).of_runs(run).all().as_secs();
        let milliseconds = |ms| Some(Duration::from_millis(ms));
        assert_eq!([1, 400, 9000].map(|ms| of(milliseconds(ms))), [30, 60, 300]);
        assert_eq!(of(None), 120);
    }

    #[test]
    fn the_suggested_budget_grows_with_the_time_that_other_steps_need() {
        let budget = of(20);
        budget.share(|| std::thread::sleep(Duration::from_millis(200)));
        budget.miss(seconds(3));
        let needed = budget.needed(seconds(4), 0.4).as_secs_f64();
        assert!((13.0..13.1).contains(&needed), "{needed}");
    }
}
