//! Records the program a second time before wink-out is advised, if the budget allows it: a region
//! that ends differently in another run must not lose its blocks at its end. Without a second
//! recording, a note says so.

use super::budget::Budget;
use super::evidence::{Candidate, Evidence, Kind};
use super::screen::dropped;
use crate::error::status::MALLARD_FAILED;
use crate::error::Failure;
use crate::record::{self, Follow, Out, Streams};
use crate::trial::Conditions;
use mallard_trace::regions::{self, Limits, Region};
use mallard_trace::Trace;
use std::ffi::OsString;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Recording and reading a trace takes this many times the recorded time, and this for each event.
const TIMES: f64 = 2.0;
const NS_PER_EVENT: f64 = 3000.0;
/// How much the instances of two recordings may differ, as a share.
const DIFFERENCE_MAX: f64 = 0.01;

/// The program, and how it is run.
pub struct Again<'a> {
    /// The command line.
    pub words: &'a [OsString],
    /// The conditions of each run.
    pub conditions: &'a Conditions,
    /// Which processes are recorded.
    pub follow: &'a [Follow],
}

/// Records the program again if a plan with wink-out has a gain, and drops the plans with wink-out
/// that the second recording contradicts.
pub fn check(again: &Again, evidence: &mut Evidence, budget: &Budget) -> Result<(), Failure> {
    let min_gain = evidence.min_gain;
    let is_open =
        |of: &Candidate| winks_out(of) && (of.gains(min_gain) || of.gains_memory(min_gain));
    if !evidence.candidates.iter().any(is_open) || budget.is_interrupted() {
        return Ok(());
    }
    let ns = evidence.program.wall_ns * TIMES + evidence.program.calls as f64 * NS_PER_EVENT;
    if Duration::from_nanos(ns as u64) > budget.left() {
        evidence.notes.push(
            "the budget was too small to record the program a second time, which shows whether \
             regions end alike in each run"
                .to_string(),
        );
        return Ok(());
    }
    let step = budget.step("recording the program a second time");
    let found = record_again(again, budget);
    drop(step);
    match found {
        Ok(found) => compare(evidence, &found),
        Err(failure) => {
            let what = format!("the program was not recorded a second time: {}", failure.what());
            evidence.notes.push(what);
        }
    }
    Ok(())
}

fn winks_out(of: &Candidate) -> bool {
    let rules = of.plan.iter().flat_map(|plan| &plan.rules);
    rules.into_iter().any(|rule| rule.strategy.winks_out())
}

/// The regions of another recording, which is not kept.
fn record_again(again: &Again, budget: &Budget) -> Result<Vec<Region>, Failure> {
    let folder = tempfile::Builder::new().prefix("mallard-advise-").tempdir().map_err(|e| {
        let what = format!("cannot make a temporary folder: {}", e.to_string().to_lowercase());
        Failure::new(what, "nothing was recorded", "TMPDIR=/path/with/room mallard advise ...")
            .with_status(MALLARD_FAILED)
    })?;
    again.conditions.set_up(budget.runner.clone())?;
    let streams = Streams { stdin: again.conditions.stdin.clone(), out: Out::Nowhere };
    let name = Some(folder.path().join("again"));
    let (_, recorded) = record::Command::of(again.words, name, again.follow, streams).record()?;
    recorded.ends_by_signals.store(false, Ordering::Relaxed);
    let trace = Trace::open(&recorded.trace)?;
    Ok(regions::find(&trace, Limits { least_share: 0.0, ..Limits::default() })?.all)
}

/// Drops the plans with wink-out whose region differs in the second recording.
fn compare(evidence: &mut Evidence, found: &[Region]) {
    evidence.recordings = 2;
    for place in 0..evidence.regions.len() {
        let Some(why) = difference(&evidence.regions[place], found) else { continue };
        evidence.unsteady.push(place);
        let is_it = |of: &Candidate| of.region == Some(place) && winks_out(of);
        for of in evidence.candidates.iter().filter(|of| is_it(of)) {
            let why = format!("in a second recording of the program {why}");
            evidence.dropped.push(dropped(&of.name, Kind::Strategy, Some(place), why));
        }
        evidence.candidates.retain(|of| !is_it(of));
    }
}

/// How a region differs in another recording, if it does.
fn difference(region: &Region, found: &[Region]) -> Option<String> {
    let is_it = |other: &&Region| other.function == region.function && other.ends == region.ends;
    let Some(other) = found.iter().find(is_it) else {
        return Some("it has no such region".to_string());
    };
    if other.escapes > region.escapes {
        return Some(format!("{} blocks outlive it", other.escapes));
    }
    let differs = |a: u64, b: u64| a.abs_diff(b) as f64 > DIFFERENCE_MAX * a.max(b) as f64;
    if differs(region.instances, other.instances) {
        return Some(format!(
            "it has {} instances instead of {}",
            other.instances, region.instances
        ));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(instances: u64, escapes: u64) -> Region {
        Region { function: "f".to_string(), instances, escapes, ..Region::default() }
    }

    #[test]
    fn a_region_that_differs_in_another_recording_is_recognised() {
        let of = |other: &[Region]| difference(&region(100, 0), other);
        assert_eq!(of(&[region(100, 0)]), None);
        assert_eq!(of(&[region(101, 0)]), None);
        assert_eq!(of(&[region(90, 0)]).unwrap(), "it has 90 instances instead of 100");
        assert_eq!(of(&[region(100, 2)]).unwrap(), "2 blocks outlive it");
        assert_eq!(of(&[]).unwrap(), "it has no such region");
    }
}
