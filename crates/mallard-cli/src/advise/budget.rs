//! The time that `mallard advise` may take, how much of it is left, and how much would probably be
//! enough.

use super::evidence::Evidence;
use crate::output::progress::Work;
use crate::output::units::{budget, time};
use crate::turns::subject::Runner;
use std::cell::Cell;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// A proposed budget is this many times as long as the computed one, because runs vary.
const SPARE: f64 = 1.1;

/// The budget of one command. Its time begins after the program was recorded.
pub struct Budget {
    begin: Instant,
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
        Budget { begin: Instant::now(), all, shares, missed, runner, is_quiet }
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
        let begin = Instant::now();
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

    /// Proposes one budget for all that this one was too small for. It is larger than this one.
    pub fn propose(&self, evidence: &mut Evidence) {
        let lacks = evidence.lacks.iter().map(|lack| lack.needed);
        let needed = lacks.chain(evidence.recording_needs).max();
        let twice = || evidence.noise.filter(|_| !evidence.interrupted).map(|_| self.all * 2);
        evidence.proposed = needed.map(|needed| self.larger(needed)).or_else(twice);
        let Some(proposed) = evidence.proposed.map(budget) else { return };
        let decides = |what: &str| format!("{what}; --budget {proposed} probably decides");
        evidence.undecided.extend(evidence.lacks.iter().map(|lack| decides(&lack.what)));
        if let (Some(why), Some(_)) = (&mut evidence.not_again, evidence.recording_needs) {
            *why += &format!(": --budget {proposed} is probably enough");
        }
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
    use crate::advise::rules::sample;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn of(seconds: u64) -> Budget {
        Budget::begin(Duration::from_secs(seconds), Default::default(), true)
    }

    #[test]
    fn the_advice_names_one_budget_and_never_a_smaller_one() {
        let mut evidence = sample::noisy();
        evidence.lacks_budget("what plans save: one replay takes 1.0 s", seconds(15));
        evidence.lacks_budget("what mallocs save: one run takes 1.0 s", seconds(25));
        of(20).propose(&mut evidence);
        let undecided = evidence.undecided.join("\n");
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
    fn a_step_that_has_a_share_needs_a_budget_that_grows_with_it() {
        let budget = of(20);
        budget.share(|| std::thread::sleep(Duration::from_millis(200)));
        budget.miss(seconds(3));
        let needed = budget.needed(seconds(4), 0.4).as_secs_f64();
        assert!((13.0..13.1).contains(&needed), "{needed}");
    }
}
