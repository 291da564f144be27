//! Estimates the saving of a change in three parts, and the share of a real saving that a replay
//! explains.

use super::paired::{Differences, Interval};
use serde::{Serialize, Serializer};

/// The saving of a change, divided into three parts with different causes. The parts are never
/// added up, because they depend on each other and because one of them may be unknown.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// The CPU time of the allocator itself.
    pub allocator_work: Part,
    /// The CPU time that the kernel needs for page faults.
    pub pages: Part,
    /// The CPU time that the program saves or loses because its blocks are at other addresses.
    pub locality: Part,
}

/// One part of an estimate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Part {
    /// The saving of this part, as a share of the base.
    Saves(Interval),
    /// Nothing is known about this part.
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

/// Returns the share of a program's real saving that a replay shows, with its 95 % interval. If the
/// share is 0.8, the replay shows a saving of 8 % where the program saves 10 %. Returns `None` if
/// the interval of the real saving contains 0, because then there may be no saving to explain.
///
/// The savings of replay and program are shares of two different times. `replayed`, the time of the
/// replay's base divided by the time of the program's base, converts one share into the other.
/// Replay and program ran independently, so the interval of the quotient follows from both
/// intervals (Fieller 1954).
pub fn share_explained(
    replay: &Differences,
    replayed: f64,
    real: &Differences,
) -> Option<Interval> {
    let (found, saved) = (replay.interval(), real.interval());
    let (f, s) = (found.saving * replayed, saved.saving);
    let half_squared = |of: Interval, scale: f64| (of.half_width() * scale).powi(2);
    let found_squared = f * f - half_squared(found, replayed);
    let saved_squared = s * s - half_squared(saved, 1.0);
    if !saved.excludes_zero() || !s.is_finite() || saved_squared <= 0.0 {
        return None;
    }
    let middle = f * s / saved_squared;
    let half = ((f * s).powi(2) - found_squared * saved_squared).max(0.0).sqrt() / saved_squared;
    Some(Interval { saving: f / s, low: middle - half, high: middle + half })
}
