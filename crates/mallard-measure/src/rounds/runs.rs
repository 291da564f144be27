//! The trait through which a measurement runs its subjects.

use super::measured::Measured;
use super::subject::{Run, Runner, Stop, Subject, Turn};
use super::terminal;
use crate::clock::Moment;
use crate::error::Failure;
use crate::output::shell::quoted_words;
use crate::process::orphans;
use crate::verdict::fresh;
use crate::verdict::{self, judge, Round};
use std::time::Duration;

/// The half-width, as a share of the base, up to which an interval is narrow enough.
const NARROW: f64 = 0.01;
/// The half-width, as a share of the measured difference, up to which an interval is also narrow
/// enough.
const NARROW_SHARE: f64 = 0.2;

/// Runs subjects, and decides when a measurement is exact enough.
pub trait Runs {
    /// Runs a subject once.
    fn run(&self, subject: &Subject, turn: Turn) -> Result<Run, Stop>;

    /// Returns whether the differences are known precisely enough to end the measurement.
    fn is_known(&self, measured: &Measured) -> bool;

    /// Returns the time since a moment. Simulations override this method with a simulated clock.
    fn elapsed(&self, since: Moment) -> Duration {
        since.elapsed()
    }

    /// Returns the number of compared candidates. Broken candidates do not count.
    fn compared(&self, measured: &Measured) -> usize {
        measured.alive().len()
    }

    /// Returns the candidates with a gain, the best first. Returns an empty list if there was only
    /// one candidate, so that nothing was selected.
    fn winners(&self, measured: &Measured, min_gain: f64) -> Vec<usize> {
        let alive = measured.alive();
        let judged = judge(&measured.metric(|f| f.cpu_ns), min_gain);
        fresh::winners(&judged).into_iter().map(|place| alive[place]).collect()
    }

    /// Returns the candidates that must run to judge some winners: the winners, and the candidates
    /// with which the winners are compared.
    fn needed_for(&self, winners: &[usize]) -> Vec<usize> {
        winners.to_vec()
    }

    /// Returns an error if the first run of the base shows that a comparison would be useless.
    fn explain(&self, _first: &Run, _base: &Subject) -> Option<Failure> {
        None
    }

    /// Returns a text for messages that tells the user how to shorten the measurement.
    fn less_work(&self) -> &'static str {
        "name fewer with --allocator, or give the program less work"
    }
}

impl Runs for Runner {
    fn run(&self, subject: &Subject, turn: Turn) -> Result<Run, Stop> {
        self.run_once(subject, turn)
    }

    fn is_known(&self, measured: &Measured) -> bool {
        is_narrow(&measured.metric(|f| f.cpu_ns))
    }

    fn explain(&self, first: &Run, base: &Subject) -> Option<Failure> {
        let program = quoted_words(&base.words);
        orphans::refusal(&first.left, &program).or_else(|| terminal::refusal(first, &program))
    }
}

/// Returns whether every interval is narrow enough. Whether an interval excludes 0 does not matter,
/// because a measurement that stops at the first difference would find differences by chance.
pub fn is_narrow(rounds: &[Round]) -> bool {
    let columns = rounds.first().map_or(0, |round| round.candidates.len());
    (0..columns).all(|index| {
        verdict::candidate(rounds, index).is_some_and(|of| {
            let interval = of.interval();
            interval.half_width() <= NARROW.max(interval.saving.abs() * NARROW_SHARE)
        })
    })
}
