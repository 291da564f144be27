//! Counts how often the predictions of replays agree with measurements.

use super::pairs::{Pair, Saving};
use mallard_measure::verdict::Verdict;

/// A measured gain or loss of CPU time above this percentage must have the same sign in a replay.
pub const SIGN_PERCENT: f64 = 2.0;
/// A measured gain or loss of CPU time above this percentage must be judged as the same gain or
/// loss in a replay.
const CALL_PERCENT: f64 = 5.0;
/// The maximum error of a replayed peak: a share of the peak, or a number of KiB if that is more.
const PEAK_SHARE: f64 = 0.05;
const PEAK_KIB: f64 = 2048.0;

/// A question whether a replay predicted a measurement correctly. Each pair of a program and an
/// allocator has an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    Sign,
    Call,
    Unchanged,
    /// Whether the measured saving is within the predicted interval, for gains and losses only. In
    /// other pairs, noise hides the true saving.
    CoverageOfChanges,
    Coverage,
    Peak,
}

impl Question {
    pub const ALL: [Question; 6] = [
        Question::Sign,
        Question::Call,
        Question::Unchanged,
        Question::CoverageOfChanges,
        Question::Coverage,
        Question::Peak,
    ];

    /// Returns whether the replay of a pair was right, or `None` if the question does not apply to
    /// the pair.
    pub fn is_right(self, pair: &Pair) -> Option<bool> {
        match self {
            Question::Peak => return is_peak_right(pair),
            Question::CoverageOfChanges | Question::Coverage => {
                let (low, high) = pair.predicted?;
                let is_asked = |real: &&Saving| self == Question::Coverage || real.is_different();
                let real = pair.real.as_ref().filter(is_asked);
                return real.map(|real| (low..=high).contains(&real.median));
            }
            _ => {}
        }
        let (real, replayed) = (pair.real.as_ref()?, pair.replayed.as_ref()?);
        let above = |percent: f64| real.is_different() && real.median.abs() > percent;
        match self {
            Question::Sign => above(SIGN_PERCENT).then_some(real.median * replayed.median > 0.0),
            Question::Call => above(CALL_PERCENT).then(|| real.verdict == replayed.verdict),
            _ => (real.verdict == Some(Verdict::NoDifference)).then(|| !replayed.is_different()),
        }
    }

    /// Returns the question as the table of counts shows it.
    pub fn asks(self) -> String {
        match self {
            Question::Sign => format!(
                "the measured CPU time gain or loss is above {SIGN_PERCENT} %: does the replay find the \
                 same sign?"
            ),
            Question::Call => format!(
                "the measured CPU time gain or loss is above {CALL_PERCENT} %: does the replay \
                 have the same verdict?"
            ),
            Question::Unchanged => {
                "the measurement finds no CPU time difference: does the replay find neither a gain \
                 nor a loss?"
                    .to_string()
            }
            Question::CoverageOfChanges => {
                "the measurement finds a CPU time gain or loss: is it in the predicted interval?"
                    .to_string()
            }
            Question::Coverage => {
                "any measured CPU time saving, even within noise: is it in the predicted interval?"
                    .to_string()
            }
            Question::Peak => format!(
                "any measured peak memory saving: is the replay wrong by at most {}?",
                peak_tolerance()
            ),
        }
    }

    /// Returns the words that describe pairs whose prediction was wrong.
    pub fn misses(self) -> &'static str {
        match self {
            Question::Sign => "sign",
            Question::Call | Question::Unchanged => "verdict",
            Question::CoverageOfChanges | Question::Coverage => "interval",
            Question::Peak => "peak memory",
        }
    }

    /// Returns the minimum percentage of pairs that must be predicted correctly.
    pub fn wanted(self) -> u32 {
        match self {
            Question::Sign | Question::Unchanged => 100,
            Question::Call => 95,
            Question::CoverageOfChanges | Question::Coverage | Question::Peak => 80,
        }
    }
}

/// Describes in words the maximum error of a replayed peak.
pub fn peak_tolerance() -> String {
    format!("{} % of the peak ({} MiB, if that is more)", PEAK_SHARE * 100.0, PEAK_KIB / 1024.0)
}

fn is_peak_right(pair: &Pair) -> Option<bool> {
    let (real, replayed) = (pair.real_peak.as_ref()?, pair.replayed_peak.as_ref()?);
    let allowed = (PEAK_SHARE * pair.peak.unwrap_or(0.0)).max(PEAK_KIB);
    Some((real.median - replayed.median).abs() <= allowed)
}

/// The number of pairs for each answer to one question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    pub asked: usize,
    pub right: usize,
}

impl Count {
    pub fn of(question: Question, pairs: &[Pair]) -> Count {
        let answers = || pairs.iter().filter_map(|pair| question.is_right(pair));
        Count { asked: answers().count(), right: answers().filter(|right| *right).count() }
    }
}

/// The number of pairs for each verdict on the measured saving.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kinds {
    pub different: usize,
    pub unchanged: usize,
    pub not_measurable: usize,
    /// The number of pairs without a measured saving.
    pub missing: usize,
}

impl Kinds {
    pub fn of(pairs: &[Pair]) -> Kinds {
        let mut kinds = Kinds::default();
        for pair in pairs {
            let real = pair.real.as_ref().filter(|_| pair.replayed.is_some());
            match real {
                None => kinds.missing += 1,
                Some(real) if real.is_different() => kinds.different += 1,
                Some(real) if real.verdict == Some(Verdict::NoDifference) => kinds.unchanged += 1,
                Some(_) => kinds.not_measurable += 1,
            }
        }
        kinds
    }
}
