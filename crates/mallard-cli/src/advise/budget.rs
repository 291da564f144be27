//! The time that `mallard advise` may take, how much of it is left, and how much would probably be
//! enough.

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
/// The greatest number of mallocs that are tried.
pub const TRIED_MAX: usize = 3;
/// The greatest number of plans that run in the program beside the mallocs.
pub const PLANS_MAX: usize = 3;
/// The number of runs of the program in the budget that the user does not name. A race of four mallocs, their
/// settings and three plans, and fresh runs of the best, take 70 to 140 runs.
const RUNS: u32 = 150;
/// The shortest and the longest budget that the user does not name.
const LEAST: Duration = Duration::from_secs(30);
pub const MOST: Duration = Duration::from_secs(300);
/// The budget that the user does not name, if the program cannot run again, so that replays measure.
const OF_REPLAYS: Duration = Duration::from_secs(120);
/// A proposed budget is this many times as long as the computed one, because runs vary.
const SPARE: f64 = 1.1;

/// The budget of one command. Its time begins after the program was recorded.
pub struct Budget {
    begin: Moment,
    all: Duration,
    /// The time of steps that take a share of the budget, and so take longer with a larger one.
    shares: Cell<Duration>,
    /// The time of steps that a larger budget adds.
    missed: Cell<Duration>,
    /// Runs programs, and notices when the user interrupts mallard.
    pub runner: Runner,
    is_quiet: bool,
}

impl Budget {
    /// Starts the time of a budget.
    pub fn begin(all: Duration, runner: Runner, is_quiet: bool) -> Budget {
        let (shares, missed) = Default::default();
        Budget { begin: Moment::now(), all, shares, missed, runner, is_quiet }
    }

    /// The budget for a program one run of which takes the time `run`. `None` if the program cannot run again, or takes
    /// too long.
    pub fn of_runs(self, run: Option<Duration>) -> Budget {
        let all = run.map_or(OF_REPLAYS, |run| (run * RUNS).clamp(LEAST, MOST));
        Budget { all, ..self }
    }

    /// The part of the budget that is used up.
    pub fn taken(&self) -> Duration {
        self.begin.elapsed()
    }

    /// The part of the budget that is left.
    pub fn left(&self) -> Duration {
        self.all.saturating_sub(self.taken())
    }

    /// Makes a step that takes a share of the budget.
    pub fn share<T>(&self, step: impl FnOnce() -> T) -> T {
        let begin = Moment::now();
        let made = step();
        self.shares.set(self.shares.get() + begin.elapsed());
        made
    }

    /// Notes that a step was left out which takes `time`, however large the budget is.
    pub fn miss(&self, time: Duration) {
        self.missed.set(self.missed.get() + time);
    }

    /// The budget that leaves `needed` for a step which has `share` of what all steps of a fixed time
    /// leave.
    pub fn needed(&self, needed: Duration, share: f64) -> Duration {
        let fixed = self.taken().saturating_sub(self.shares.get()) + self.missed.get();
        fixed + needed.mul_f64(1.0 / share)
    }

    /// One budget for all that this one was too small for. It is larger than this one.
    pub fn proposed(&self, measured: &Measured) -> Option<Duration> {
        let needed = measured.questions.iter().filter_map(|of| of.needed);
        let needed = needed.chain(measured.second_needs).max();
        let twice = || measured.noise.filter(|_| !measured.interrupted).map(|_| self.all * 2);
        needed.map(|needed| self.larger(needed)).or_else(twice)
    }

    /// A budget of at least `needed`. If this budget should have been enough, twice as much.
    fn larger(&self, needed: Duration) -> Duration {
        match needed.mul_f64(SPARE) {
            needed if needed > self.all => needed,
            _ => self.all * 2,
        }
    }

    /// Whether the user has interrupted mallard.
    pub fn is_interrupted(&self) -> bool {
        self.runner.interrupted.load(Ordering::Relaxed)
    }

    /// The whole budget.
    pub fn all(&self) -> Duration {
        self.all
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
    fn the_advice_names_one_budget_and_never_a_smaller_one() {
        let mut evidence = sample::noisy();
        let question = |what, needed| Question { what, needed: Some(Duration::from_secs(needed)) };
        evidence.questions = vec![
            question(What::LongReplay(seconds(1), 7), 15),
            question(What::LongRun(seconds(1), 27), 25),
        ];
        evidence.proposed = of(20).proposed(&evidence);
        let undecided = undecided(&evidence).join("\n");
        assert_eq!(undecided.matches("; --budget 30s probably decides").count(), 2, "{undecided}");
        let card = &cards(&evidence)[0];
        let expected = "the time was too short, and --budget 30s probably decides.";
        assert!(card.sentence.ends_with(expected), "{}", card.sentence);
        assert!(card.check.as_ref().unwrap().contains(" --budget 30s "), "{card:?}");
        // A budget that should have been enough is doubled.
        for (given, needed, proposed) in [(20, 25, "30s"), (27, 20, "60s"), (120, 115, "3m")] {
            assert_eq!(budget(of(given).larger(seconds(needed))), proposed);
        }
    }

    #[test]
    fn the_default_budget_follows_the_time_of_a_run() {
        let of = |run| of(300).of_runs(run).all().as_secs();
        let milliseconds = |ms| Some(Duration::from_millis(ms));
        assert_eq!([1, 400, 9000].map(|ms| of(milliseconds(ms))), [30, 60, 300]);
        assert_eq!(of(None), 120);
    }

    #[test]
    fn a_step_that_has_a_share_needs_a_budget_that_grows_with_it() {
        let budget = of(20);
        budget.share(|| std::thread::sleep(Duration::from_millis(200)));
        budget.miss(seconds(3));
        let needed = budget.needed(seconds(4), 0.4).as_secs_f64();
        assert!((13.0..13.1).contains(&needed), "{needed}");
    }
}
