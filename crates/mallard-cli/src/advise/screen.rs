//! Drops candidates that cannot have a gain, before anything is played. The trace tells the upper limit
//! of what a candidate can save.

use super::evidence::{Dropped, Evidence, Kind};
use crate::output::units::percent;
use mallard_trace::residency::Parts;

/// Another malloc may be worth a change for memory alone if the program's malloc holds this share of
/// the resident memory in addition to live blocks.
const HELD_SHARE: f64 = 0.15;
/// The malloc must also hold at least this many bytes in addition to live blocks.
const HELD_BYTES: i64 = 8 << 20;

/// The upper limit of the saving in a region, or in the whole program. `None` if it is unknown.
pub fn most(evidence: &Evidence, region: Option<usize>) -> Option<f64> {
    let bound = &evidence.bound;
    let Some(region) = region else {
        return Some((bound.calls? + bound.faults?).min(1.0));
    };
    let region = &evidence.regions[region];
    let cpu = evidence.program.cpu_ns?.max(1.0);
    let all_bytes = (evidence.program.totals.bytes as f64).max(1.0);
    let pages = bound.faults? * (region.bytes as f64 / all_bytes).min(1.0);
    // The time of a region's calls is estimated from a sample, and may come out above the time of
    // all calls of the program.
    let calls = (region.call_ns / cpu).min(bound.calls?);
    Some((calls + region.teardown_ns / cpu + pages).min(1.0))
}

/// Why a candidate that cannot reach the least gain is not measured. `None` if it is measured.
pub fn why_not(evidence: &Evidence, region: Option<usize>) -> Option<String> {
    let most = most(evidence, region)?;
    let what = match region {
        Some(_) => "calls, pages and frees at its end",
        None => "calls and pages",
    };
    (most < evidence.min_gain).then(|| {
        format!(
            "{what} take at most {} of the CPU time, so it cannot save more, locality aside",
            percent(most)
        )
    })
}

/// Whether another malloc may save memory, because the malloc of the program holds much memory in
/// addition to live blocks.
pub fn is_memory_at_stake(evidence: &Evidence) -> bool {
    let summary = &evidence.memory.summary;
    let holds = |parts: &Parts| {
        let held = parts.fragmented + parts.kept + parts.rounding;
        let all = (parts.resident - parts.recorder).max(1);
        held >= HELD_BYTES && held as f64 >= HELD_SHARE * all as f64
    };
    summary.moments > 0 && (holds(&summary.peak.parts) || holds(&summary.mean.parts))
}

/// Why no malloc is measured; `None` if mallocs are measured.
pub fn why_no_malloc(evidence: &Evidence) -> Option<String> {
    why_not(evidence, None).filter(|_| !is_memory_at_stake(evidence))
}

/// A candidate that is not measured.
pub fn dropped(name: &str, kind: Kind, region: Option<usize>, why: impl Into<String>) -> Dropped {
    Dropped { name: name.to_string(), kind, region, why: why.into() }
}
