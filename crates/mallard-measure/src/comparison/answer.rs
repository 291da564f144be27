//! Answers whether some malloc saves CPU time. A comparison asks this question if it has no winner.

use crate::verdict::{Judgement, Verdict, Why};

/// If no malloc can save more than this share of the CPU time, the answer is no.
const PRECISION: f64 = 0.03;
/// The smallest and the largest factor by which the next comparison should be longer.
const TIMES: (f64, f64) = (2.0, 10.0);

/// The answer to the question whether a malloc saves CPU time, if the comparison has no winner.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Answer<'a> {
    /// No malloc saves more than this share, within the precision.
    No {
        /// The largest upper bound of all intervals, but not less than 0.
        most: f64,
    },
    /// There were too few runs for intervals.
    TooFewRuns,
    /// More runs are needed.
    NotYet {
        /// The malloc that may save the most.
        name: &'a str,
        /// The upper bound of the candidate's interval.
        most: f64,
    },
}

impl<'a> Answer<'a> {
    /// Returns the answer for candidates and their names, or `None` without candidates. Ignores
    /// candidates that were dropped early, because each of them saves less than another candidate.
    pub fn of(
        candidates: impl Iterator<Item = (&'a str, &'a Judgement)>,
        min_gain: f64,
    ) -> Option<Answer<'a>> {
        let kept = candidates.filter(|(_, of)| !is_dropped(of) && of.high.is_finite());
        let (name, of) = kept.max_by(|(_, a), (_, b)| a.high.total_cmp(&b.high))?;
        Some(match of.high <= PRECISION.max(min_gain) {
            true => Answer::No { most: of.high.max(0.0) },
            false => Answer::NotYet { name, most: of.high },
        })
    }
}

/// Estimates the factor by which the number of runs must grow to decide about a candidate. A
/// decision needs an interval that is above 0 or below the precision, and the width of an interval
/// falls with the square root of the number of runs.
pub fn times_to_decide(of: &Judgement, min_gain: f64) -> f64 {
    let precision = PRECISION.max(min_gain);
    let to_gain = (of.saving - of.low) / of.saving;
    let to_no = (of.high - of.saving) / (precision - of.saving);
    let needed = [to_gain, to_no].into_iter().filter(|times| *times > 0.0);
    needed.map(|times| times * times).fold(f64::INFINITY, f64::min).clamp(TIMES.0, TIMES.1)
}

/// Returns whether a candidate has no verdict because the measurement dropped it early.
pub fn is_dropped(of: &Judgement) -> bool {
    matches!(of.why, Some(Why::DroppedEarly { .. }))
}

/// Returns whether more runs could decide about a candidate.
pub fn is_open(of: &Judgement) -> bool {
    of.verdict == Verdict::NotMeasurable && !is_dropped(of)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(saving: f64, low: f64, high: f64) -> Judgement {
        let why = Some(Why::IntervalTooWide);
        Judgement { saving, low, high, p: 0.5, verdict: Verdict::NotMeasurable, why }
    }

    #[test]
    fn no_gain_is_concluded_if_no_interval_exceeds_the_precision() {
        let (a, b) = (judged(0.01, -0.02, 0.029), judged(-0.1, -0.2, -0.01));
        let of = |all: &[(&'static str, Judgement)], min_gain| {
            let answer = Answer::of(all.iter().map(|(name, of)| (*name, of)), min_gain);
            answer.map(|of| format!("{of:?}"))
        };
        let no = |most| Some(format!("{:?}", Answer::No { most }));
        assert_eq!(of(&[("a", a.clone()), ("b", b.clone())], 0.02), no(0.029));
        assert_eq!(of(&[("b", b.clone())], 0.02), no(0.0));
        let c = judged(0.02, -0.01, 0.05);
        let not_yet = Some(format!("{:?}", Answer::NotYet { name: "c", most: 0.05 }));
        assert_eq!(of(&[("a", a.clone()), ("c", c.clone())], 0.02), not_yet);
        assert_eq!(of(&[("a", a), ("c", c)], 0.05), no(0.05));
        let early =
            Judgement { why: Some(Why::DroppedEarly { runs: 3 }), ..judged(0.0, -0.3, 0.3) };
        assert_eq!(of(&[("b", b), ("early", early)], 0.02), no(0.0));
        assert_eq!(of(&[], 0.02), None);
    }

    #[test]
    fn halving_the_width_of_an_interval_needs_four_times_the_runs() {
        assert_eq!(times_to_decide(&judged(0.04, -0.04, 0.12), 0.02), 4.0);
        assert_eq!(times_to_decide(&judged(-0.01, -0.13, 0.11), 0.02), 9.0);
        assert_eq!(times_to_decide(&judged(0.01, -0.01, 0.031), 0.02), TIMES.0);
        assert_eq!(times_to_decide(&judged(0.03, -0.5, 0.5), 0.02), TIMES.1);
    }
}
