//! Estimates of the saving of a change in three parts, and the share of a real saving that a replay
//! explains.

use super::paired::{Differences, Interval};
use serde::{Serialize, Serializer};

/// The number of equally likely values that stand for a distribution.
const VALUES: usize = 200;

/// The saving of a change, in three parts with different causes. The parts are never added up, because
/// they are not independent and one of them may be unknown.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// The work of the allocator itself.
    pub allocator_work: Part,
    /// The work of the kernel for pages that are touched.
    pub pages: Part,
    /// The time that the program's own accesses gain or lose because blocks are at other addresses.
    pub locality: Part,
}

/// One part of an estimate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Part {
    /// The saving of this part, as a share of the base.
    Saves(Interval),
    /// Nothing is known of this part.
    NotEstimated,
}

impl Serialize for Part {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Part::Saves(interval) => interval.serialize(serializer),
            Part::NotEstimated => serializer.serialize_str("not estimated"),
        }
    }
}

/// The share of a real saving that a replay finds, with its 95 % interval. If the share is 0.8, the
/// replay shows 8 % where the program saves 10 %. `None` if the interval of the real saving
/// contains 0, because then there is no saving to explain.
///
/// The savings of replay and program are shares of two different times. `replayed` is the time of
/// the replay's base divided by the time of the program's base, and converts one into the other.
/// Replay and program ran independently, so each likely median of the replay is divided by each
/// likely median of the program.
pub fn share_explained(
    replay: &Differences,
    replayed: f64,
    real: &Differences,
) -> Option<Interval> {
    if !real.interval().excludes_zero() {
        return None;
    }
    let values = |of: &Differences| -> Vec<f64> {
        let medians = of.medians();
        (0..VALUES).map(|i| medians.quantile((i as f64 + 0.5) / VALUES as f64)).collect()
    };
    let (found, saved) = (values(replay), values(real));
    let mut shares: Vec<f64> =
        saved.iter().flat_map(|saved| found.iter().map(move |f| f * replayed / saved)).collect();
    // A median is 0 by a rare chance. The quotient of two such medians, 0 / 0, tells nothing.
    shares.retain(|share| !share.is_nan());
    shares.sort_by(f64::total_cmp);
    let at = |share: f64| shares.get((share * shares.len() as f64) as usize).copied();
    Some(Interval {
        saving: replay.interval().saving * replayed / real.interval().saving,
        low: at(0.025)?,
        high: at(0.975)?,
    })
}
