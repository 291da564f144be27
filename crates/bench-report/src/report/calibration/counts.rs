//! Counts how often a replay agrees with reality.

use super::pairs::{Change, Pair};
use mallard_measure::verdict::Verdict;

/// A real change of CPU time above this percentage must have the right sign in a replay.
const SIGN_PERCENT: f64 = 2.0;
/// For a real change of CPU time above this percentage, the replay must have the verdict of a gain
/// or a loss.
const CALL_PERCENT: f64 = 5.0;
/// The error that a replayed peak may have, as a share of the peak, or in KiB.
const PEAK_SHARE: f64 = 0.05;
const PEAK_KIB: f64 = 2048.0;

/// A question whether the replay predicted a measurement correctly. It is asked for each pair of a
/// program and an allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    Sign,
    Call,
    Unchanged,
    /// Counts only changes that are beyond noise. For other changes, the real value is unknown.
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

    /// Answers the question for a pair. `None` if the question does not apply to the pair.
    pub fn is_right(self, pair: &Pair) -> Option<bool> {
        match self {
            Question::Peak => return is_peak_right(pair),
            Question::CoverageOfChanges | Question::Coverage => {
                let (low, high) = pair.predicted?;
                let is_asked = |real: &&Change| self == Question::Coverage || real.is_different();
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
                "a real change beyond noise and above {SIGN_PERCENT} %: the replay has the same sign"
            ),
            Question::Call => format!(
                "a real change beyond noise and above {CALL_PERCENT} %: the replay calls it a gain or \
                 a loss, rightly"
            ),
            Question::Unchanged => {
                "really no difference: the replay calls it neither a gain nor a loss".to_string()
            }
            Question::CoverageOfChanges => {
                "a real change beyond noise lies in the predicted interval".to_string()
            }
            Question::Coverage => {
                "any real change, as measured, lies in the predicted interval".to_string()
            }
            Question::Peak => format!(
                "the change of peak memory is right to {} % of the peak, or to {} MiB",
                PEAK_SHARE * 100.0,
                PEAK_KIB / 1024.0
            ),
        }
    }

    /// Returns the words for pairs whose answer is no.
    pub fn misses(self) -> &'static str {
        match self {
            Question::Sign => "sign",
            Question::Call => "gain or loss",
            Question::Unchanged => "no difference",
            Question::CoverageOfChanges | Question::Coverage => "interval",
            Question::Peak => "peak memory",
        }
    }

    /// Returns the required percentage of pairs whose answer is yes.
    pub fn wanted(self) -> u32 {
        match self {
            Question::Sign | Question::Unchanged => 100,
            Question::Call => 95,
            Question::CoverageOfChanges | Question::Coverage | Question::Peak => 80,
        }
    }
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

/// The number of pairs for each verdict on the real change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kinds {
    pub different: usize,
    pub unchanged: usize,
    pub not_measurable: usize,
    /// Pairs without a figure.
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
