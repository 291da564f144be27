//! Decides whether a comparison shows a gain, a loss, no difference, or nothing measurable.
//!
//! `judge` compares programs whose runs are interleaved in rounds. A round has one run of each
//! program, and a second run of the base as its control. The difference between base and control is
//! noise. The crate bench-report compares benchmark results, which have only a median and a range
//! (`unpaired`). `docs/decisions/0043-intervals-widened-by-the-control.md` explains the rule, and
//! `docs/decisions/0060-savings-by-two-means.md` the estimate of a saving, with error rates.

pub mod estimate;
pub mod fresh;
pub mod paired;

#[cfg(test)]
pub mod coverage;
#[cfg(test)]
pub mod simulation;
#[cfg(test)]
mod tests;

use paired::{Differences, Interval};
use serde::{Serialize, Serializer};
use std::fmt;

/// The probability below which a difference counts as significant, so that chance hardly explains
/// it.
const SIGNIFICANT: f64 = 0.05;
/// The minimum number of rounds for a significant sign-flip test. The smallest p of n rounds is 2 /
/// 2^n, which is below 0.05 from 6 rounds on.
pub const ROUNDS_MIN: usize = 6;
/// The tolerance for rounding errors, so that 2.0000000000000018 % is not more than 2 %.
const ROUNDING: f64 = 1e-9;

/// What a comparison shows. Lower figures are better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// The candidate needs less than the base.
    Gain,
    /// The candidate needs more than the base.
    Loss,
    /// If there is a difference between candidate and base, it is smaller than the minimum gain
    /// that counts.
    NoDifference,
    /// The measurements do not decide.
    NotMeasurable,
}

impl Verdict {
    /// Returns the verdict in words, as the text output and the JSON contain it.
    pub fn words(self) -> &'static str {
        match self {
            Verdict::Gain => "gain",
            Verdict::Loss => "loss",
            Verdict::NoDifference => "no difference",
            Verdict::NotMeasurable => "not measurable",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.pad(self.words())
    }
}

impl Serialize for Verdict {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.words())
    }
}

/// Why a difference is not measurable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// A figure is missing, negative, infinite or not a number.
    NoFigure,
    /// There are fewer rounds than a verdict needs.
    TooFewRounds {
        /// The number of rounds with which a verdict is possible.
        needed: usize,
    },
    /// Base and control differ as much as base and candidate. But base and control are the same
    /// program, so the difference shows noise.
    ControlDiffers,
    /// The interval of the control is too wide for differences of this size.
    ControlTooWide,
    /// The interval of the candidate is too wide, so more runs can decide.
    IntervalTooWide,
    /// The candidate had a gain, but confirmation runs do not show it.
    NotConfirmed,
    /// The candidate was dropped early, because others saved more.
    DroppedEarly {
        /// The number of runs that the candidate had.
        runs: usize,
    },
    /// Other candidates had confirmation runs instead of this one, and its selection runs do not
    /// decide.
    NotRunAgain {
        /// The number of runs that the candidate had.
        runs: usize,
    },
    /// The figures come from a replay. Threads of the recorded program allocate at the same time,
    /// which a replay does not repeat.
    ThreadsMeet,
}

impl Why {
    /// Returns the number of runs that a candidate had before it was dropped.
    pub fn runs(self) -> Option<usize> {
        match self {
            Why::DroppedEarly { runs } | Why::NotRunAgain { runs } => Some(runs),
            _ => None,
        }
    }
}

/// Returns the number of rounds that a verdict needs, if there are fewer rounds for any candidate.
pub fn rounds_missing(judged: &Judged) -> Option<usize> {
    let needed = |of: &Judgement| match of.why {
        Some(Why::TooFewRounds { needed }) => Some(needed),
        _ => None,
    };
    judged.candidates.iter().filter_map(needed).max()
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Why::NoFigure => f.write_str("a figure is missing"),
            Why::TooFewRounds { needed } => write!(f, "too few runs, {needed} of each are needed"),
            Why::ControlDiffers => f.write_str("two measurements of the base differ by as much"),
            Why::ControlTooWide => f.write_str("two measurements of the base vary by as much"),
            Why::IntervalTooWide => f.write_str("more runs are needed"),
            Why::NotConfirmed => f.write_str("confirmation runs do not show the gain"),
            Why::DroppedEarly { runs: 1 } => f.write_str("dropped after 1 run"),
            Why::DroppedEarly { runs } => write!(f, "dropped after {runs} runs"),
            Why::NotRunAgain { runs: 1 } => f.write_str("undecided after 1 run"),
            Why::NotRunAgain { runs } => write!(f, "undecided after {runs} runs"),
            Why::ThreadsMeet => f.write_str("a replay does not show how often threads wait"),
        }
    }
}

impl Serialize for Why {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// One round, with a figure for each run. Lower figures are better.
#[derive(Clone, Debug, PartialEq)]
pub struct Round {
    /// The figure of the base, the program with which the candidates are compared.
    pub base: f64,
    /// The figure of another run of the base.
    pub control: f64,
    /// The figure of each candidate, always in the same order. NaN if a candidate has none.
    pub candidates: Vec<f64>,
}

impl Round {
    /// Returns a copy of the round with only the candidates at these indices.
    pub fn of(&self, places: &[usize]) -> Round {
        let candidates = places.iter().map(|&place| self.candidates[place]).collect();
        Round { base: self.base, control: self.control, candidates }
    }
}

/// The judgement on one candidate. Savings are shares of the base: 0.05 is 5 % less than the base,
/// -0.05 is 5 % more. If the base needs nothing, a saving is minus infinity, and null in JSON.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judgement {
    /// The saving in the rounds (see `paired`).
    pub saving: f64,
    /// The lower bound of the 95 % interval of the saving.
    pub low: f64,
    /// The upper bound of the 95 % interval of the saving.
    pub high: f64,
    /// The probability that chance alone causes such a difference, corrected for the number of
    /// candidates by Holm's method.
    pub p: f64,
    /// The verdict.
    pub verdict: Verdict,
    /// The reason if the verdict is `NotMeasurable`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<Why>,
}

impl Judgement {
    /// Returns the judgement on a candidate without a figure.
    fn without_figure() -> Judgement {
        Judgement {
            saving: f64::NAN,
            low: f64::NAN,
            high: f64::NAN,
            p: 1.0,
            verdict: Verdict::NotMeasurable,
            why: Some(Why::NoFigure),
        }
    }

    fn new(of: &Differences, p: f64, (verdict, why): (Verdict, Option<Why>)) -> Judgement {
        let Interval { saving, low, high } = of.interval();
        Judgement { saving, low, high, p, verdict, why }
    }
}

/// The results of the control and of each candidate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judged {
    /// The difference between two runs of the base. The verdict is `NoDifference` if the
    /// measurements can show differences of the minimum gain, else `NotMeasurable`.
    pub control: Judgement,
    /// The difference between the base and each candidate.
    pub candidates: Vec<Judgement>,
}

/// Judges one metric of some candidates. `min_gain` is the minimum difference that counts, as a
/// share of the base.
///
/// The first condition that holds decides:
/// 1. fewer than `ROUNDS_MIN` rounds: not measurable;
/// 2. the interval is within `-min_gain` and `min_gain`: no difference;
/// 3. the interval is above 0, and p is below 0.05: gain;
/// 4. the interval is below 0, and p is below 0.05: loss;
/// 5. otherwise: not measurable.
///
/// The verdict must stay the same when the interval is widened by the noise that the control shows
/// (see `Rule`); otherwise the verdict is not measurable.
pub fn judge(rounds: &[Round], min_gain: f64) -> Judged {
    let control = Differences::of(rounds.iter().map(|r| (r.base, r.control)));
    let candidates = (0..columns(rounds)).map(|i| candidate(rounds, i)).collect();
    judge_all(control, candidates, min_gain)
}

/// Judges as `judge` does. Each list has one figure for each round. The list of a candidate that
/// was dropped early ends with the last round of this candidate.
pub fn judge_each(base: &[f64], control: &[f64], candidates: &[Vec<f64>], min_gain: f64) -> Judged {
    let differences = |of: &[f64]| Differences::of(base.iter().copied().zip(of.iter().copied()));
    let candidates = candidates.iter().map(|of| differences(of)).collect();
    judge_all(differences(control), candidates, min_gain)
}

fn judge_all(
    control: Option<Differences>,
    candidates: Vec<Option<Differences>>,
    min_gain: f64,
) -> Judged {
    let Some(control) = control else {
        let none = Judgement::without_figure();
        return Judged { candidates: vec![none.clone(); candidates.len()], control: none };
    };
    let measured: Vec<f64> = candidates.iter().flatten().map(Differences::p).collect();
    let mut adjusted = holm(&measured).into_iter();
    let rule = Rule::new(&control, min_gain, measured.len());
    let mut judge_one = |of: Option<Differences>| {
        let Some(of) = of else { return Judgement::without_figure() };
        let p = adjusted.next().unwrap_or(1.0);
        Judgement::new(&of, p, rule.verdict(&of, p))
    };
    Judged {
        candidates: candidates.into_iter().map(&mut judge_one).collect(),
        control: Judgement::new(&control, control.p(), rule.verdict_on_control(&control)),
    }
}

/// Returns the half-width of the widest interval among the control and the candidates. If the
/// half-width is below 0.01, each saving is known to within one percent of the base. Returns
/// infinity if there are fewer than `ROUNDS_MIN` rounds or a figure is missing.
pub fn half_width(rounds: &[Round]) -> f64 {
    if rounds.len() < ROUNDS_MIN {
        return f64::INFINITY;
    }
    let control = Differences::of(rounds.iter().map(|r| (r.base, r.control)));
    let candidates = (0..columns(rounds)).map(|i| candidate(rounds, i));
    candidates
        .chain([control])
        .map(|of| of.map_or(f64::INFINITY, |of| of.interval().half_width()))
        .fold(0.0, f64::max)
}

/// Returns the margin for noise, by which both bounds of an interval are moved outwards. The margin
/// is computed from the difference between base and control.
pub fn margin(control: &Judgement, min_gain: f64) -> f64 {
    let Judgement { saving, low, high, .. } = *control;
    widening(&Interval { saving, low, high }, min_gain)
}

fn widening(control: &Interval, min_gain: f64) -> f64 {
    match control.excludes_zero() {
        true => control.reach(),
        false => (control.reach() - min_gain).max(0.0),
    }
}

/// Returns the differences of one candidate from the base.
pub fn candidate(rounds: &[Round], index: usize) -> Option<Differences> {
    let figure = |r: &Round| r.candidates.get(index).copied().unwrap_or(f64::NAN);
    Differences::of(rounds.iter().map(|r| (r.base, figure(r))))
}

fn columns(rounds: &[Round]) -> usize {
    rounds.iter().map(|r| r.candidates.len()).max().unwrap_or(0)
}

/// Corrects the probabilities of n tests for their number (Holm 1979). The smallest probability is
/// multiplied by n, the next by n - 1, and so on. Each result is at least as large as the one
/// before.
fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*a].total_cmp(&p[*b]));
    let mut adjusted = vec![1.0; p.len()];
    let mut least: f64 = 0.0;
    for (rank, index) in order.into_iter().enumerate() {
        least = least.max(p[index] * (p.len() - rank) as f64).min(1.0);
        adjusted[index] = least;
    }
    adjusted
}

/// The rule that turns differences into a verdict.
///
/// A verdict on a candidate counts only if it stays the same when both bounds of the interval are
/// moved outwards by a margin. If the control's interval contains 0, the margin is the distance by
/// which the interval exceeds `min_gain`, which is 0 on a quiet machine. If the control's interval
/// excludes 0, base and control differ although they are the same program, and the margin is the
/// larger distance of a bound from 0. So on a noisy machine a large change still gets a verdict,
/// and a small change is not measurable.
struct Rule {
    min_gain: f64,
    margin: f64,
    control_differs: bool,
    /// The number of rounds from which every candidate can be significant.
    needed: usize,
}

impl Rule {
    fn new(control: &Differences, min_gain: f64, candidates: usize) -> Rule {
        let of = control.interval();
        let control_differs = of.excludes_zero();
        let margin = widening(&of, min_gain);
        Rule { min_gain, margin, control_differs, needed: Rule::rounds_needed(candidates) }
    }

    /// Returns the minimum number of rounds with which each of `candidates` can be significant.
    fn rounds_needed(candidates: usize) -> usize {
        let chance = |n: &usize| 2.0 * candidates.max(1) as f64 / 2f64.powi(*n as i32);
        (ROUNDS_MIN..).find(|n| chance(n) < SIGNIFICANT).unwrap_or(usize::MAX)
    }

    fn verdict(&self, of: &Differences, p: f64) -> (Verdict, Option<Why>) {
        let plain = self.decide(of.interval(), 0.0, p);
        let widened = self.decide(of.interval(), self.margin, p);
        let why = if of.rounds() < ROUNDS_MIN {
            Why::TooFewRounds { needed: self.needed }
        } else if let (Some(verdict), true) = (plain, plain == widened) {
            return (verdict, None);
        } else if plain.is_some() && self.control_differs {
            Why::ControlDiffers
        } else if plain.is_some() {
            Why::ControlTooWide
        } else if of.interval().excludes_zero() && of.rounds() < self.needed {
            Why::TooFewRounds { needed: self.needed }
        } else {
            Why::IntervalTooWide
        };
        (Verdict::NotMeasurable, Some(why))
    }

    fn decide(&self, of: Interval, margin: f64, p: f64) -> Option<Verdict> {
        let (low, high) = (of.low - margin, of.high + margin);
        let bound = self.min_gain + ROUNDING;
        if -bound <= low && high <= bound {
            Some(Verdict::NoDifference)
        } else if low > 0.0 && p < SIGNIFICANT {
            Some(Verdict::Gain)
        } else if high < 0.0 && p < SIGNIFICANT {
            Some(Verdict::Loss)
        } else {
            None
        }
    }

    fn verdict_on_control(&self, control: &Differences) -> (Verdict, Option<Why>) {
        let why = if control.rounds() < ROUNDS_MIN {
            Why::TooFewRounds { needed: ROUNDS_MIN }
        } else if control.interval().reach() <= self.min_gain + ROUNDING {
            return (Verdict::NoDifference, None);
        } else if self.control_differs {
            Why::ControlDiffers
        } else {
            Why::ControlTooWide
        };
        (Verdict::NotMeasurable, Some(why))
    }
}
