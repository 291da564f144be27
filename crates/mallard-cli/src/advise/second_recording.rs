//! Compares a second recording of the program with the first before wink-out is recommended. If a
//! region ends differently in another run, wink-out would free blocks that are still in use. The
//! second recording comes from the user (`--again`), or this command records the program again if
//! the budget allows that. Without a second recording, no card recommends wink-out.

use super::budget::{Budget, RECORDING_PART};
use super::candidate::{dropped, Candidate, Dropped, Kind};
use super::facts::read::{program_name, validity};
use super::measured::{Measured, RECORDINGS_MIN};
use super::reason::{Difference, Doubt, NoSecond, Note, Reason};
use crate::look;
use crate::output::debuginfod::Debuginfod;
use crate::record::{self, Follow, ServerWork};
use mallard_measure::comparison::Conditions;
use mallard_measure::error::status::{MALLARD_FAILED, USAGE};
use mallard_measure::error::Failure;
use mallard_measure::process::launch::{Out, Streams};
use mallard_trace::regions::{self, Limits, Region};
use mallard_trace::Trace;
use std::ffi::OsString;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A second recording takes at most this many times as long as the first.
const SPARE: f64 = 1.3;
/// Recording a program and finding its regions is assumed to take TIMES times the wall time of the
/// recorded run, plus NS_PER_EVENT ns for each event. Three programs of tests/known needed 1 times
/// the wall time plus 500 ns for each event, on two cores.
const TIMES: f64 = 2.0;
const NS_PER_EVENT: f64 = 800.0;
/// The maximum difference between two recordings in the number of instances or of calls, as a
/// share.
const DIFFERENCE_MAX: f64 = 0.01;

/// The program to record again, and how it runs.
pub struct Again<'a> {
    /// The command line.
    pub words: &'a [OsString],
    /// The conditions of each run.
    pub conditions: &'a Conditions,
    /// Which processes are recorded.
    pub follow: &'a [Follow],
    /// How to give a server its load.
    pub work: &'a ServerWork,
    /// Whether debug information is fetched.
    pub debuginfod: Debuginfod,
}

/// How a second recording was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Made {
    /// The same program was recorded with the same arguments, so each region must have the same
    /// number of instances.
    Again,
    /// The input may differ, because the user made the recording, or because the load of a server
    /// was repeated for a given time.
    Otherwise,
}

/// Returns the time for a second recording of the program. The time is estimated if this command
/// did not make the first recording.
pub fn time_needed(former: &Measured) -> Duration {
    let program = &former.facts.program;
    let ns = program.wall_ns * TIMES + program.calls as f64 * NS_PER_EVENT;
    let first = former.facts.recorded_in.map(|first| first.mul_f64(SPARE));
    first.unwrap_or(Duration::from_nanos(ns as u64))
}

/// Returns whether wink-out needs a second recording, and any plan with wink-out saves enough.
fn is_worth_it(former: &Measured) -> bool {
    let min_gain = former.facts.min_gain;
    let is_open =
        |of: &Candidate| winks_out(of) && (of.gains(min_gain) || of.gains_memory(min_gain));
    former.recordings < RECORDINGS_MIN && former.candidates.iter().any(is_open)
}

/// Opens the user's second recording. Returns an error if the second recording is the same as
/// `first`, or if it is a recording of another program.
pub fn open(first: &Trace, name: &Path) -> Result<Trace, Failure> {
    let trace = look::open(name)?;
    let folder = |of: &Trace| of.folder().canonicalize().ok();
    let [here, there] = [first, &trace].map(|of| program_name(of.manifest()));
    let (what, with) = match (here, there) {
        _ if folder(&trace) == folder(first) => {
            (format!("--again names the same recording, {}", name.display()), "another input")
        }
        (Some(here), Some(there)) if here != there => {
            (format!("--again names a recording of {there}, not of {here}"), "the same program")
        }
        _ => return Ok(trace),
    };
    let help = format!("mallard record -o ANOTHER -- PROG ARGS, with {with}");
    Err(Failure::new(what, "nothing was measured", help).with_status(USAGE))
}

/// Drops the plans with wink-out that the user's second recording contradicts. A second recording
/// that does not show the whole run cannot confirm a plan.
pub fn compare_with(second: &Trace, former: &Measured) -> Result<Measured, Failure> {
    let Some(lack) = validity(second.manifest()).into_iter().next() else {
        return Ok(compare(former, &regions_of(second)?, Made::Otherwise));
    };
    let why = NoSecond::NoProof(second.folder().to_path_buf(), lack);
    Ok(Measured { notes: vec![Note::Again(why.clone())], ..leave_out(former, why) })
}

/// Records why there is no second recording, if wink-out needs one. Keeps an earlier reason.
pub fn leave_out(former: &Measured, why: NoSecond) -> Measured {
    let why = is_worth_it(former).then_some(why);
    Measured { no_second: former.no_second.clone().or(why), ..former.nothing() }
}

/// Records the program again if a plan with wink-out has a gain, and drops the plans with wink-out
/// that the second recording contradicts.
pub fn check(again: &Again, former: &Measured, budget: &Budget) -> Result<Measured, Failure> {
    if !is_worth_it(former) || budget.is_interrupted() {
        return Ok(former.nothing());
    }
    let needed = time_needed(former);
    if needed > budget.left() {
        let second_needs = Some(budget.needed(needed * RECORDING_PART, 1.0));
        budget.miss(needed);
        return Ok(Measured { second_needs, ..leave_out(former, NoSecond::NoTime) });
    }
    let step = budget.step("recording the program a second time");
    let found = record_again(again, budget);
    drop(step);
    Ok(match found {
        Ok((found, calls)) if former.facts.program.runs_do_the_same => Measured {
            doubt: other_calls(former.facts.program.calls, calls),
            ..compare(former, &found, Made::Again)
        },
        Ok((found, _)) => compare(former, &found, Made::Otherwise),
        Err(failure) => {
            let why = NoSecond::Fails(failure.what().to_string());
            Measured { no_second: Some(why), ..former.nothing() }
        }
    })
}

fn winks_out(of: &Candidate) -> bool {
    let rules = of.plan.iter().flat_map(|plan| &plan.rules);
    rules.into_iter().any(|rule| rule.strategy.winks_out())
}

/// Records the program again, and returns the regions and the number of calls. The recording itself
/// is deleted.
fn record_again(again: &Again, budget: &Budget) -> Result<(Vec<Region>, u64), Failure> {
    let folder = tempfile::Builder::new().prefix("mallard-advise-").tempdir().map_err(|e| {
        let what = format!("cannot create a temporary directory: {}", e.to_string().to_lowercase());
        Failure::new(what, "nothing was recorded", "TMPDIR=/path/with/room mallard advise ...")
            .with_status(MALLARD_FAILED)
    })?;
    again.conditions.set_up(budget.runner.clone())?;
    let streams = Streams { stdin: again.conditions.stdin_of_recording(), out: Out::Nowhere };
    let name = Some(folder.path().join("again"));
    let &Again { words, follow, work, debuginfod, .. } = again;
    let command = record::Command::of(words, name, follow, work, streams, debuginfod);
    let (_, recorded) = command.record()?;
    recorded.ends_by_signals.store(false, Ordering::Relaxed);
    let trace = Trace::open(&recorded.trace)?;
    match validity(trace.manifest()).first() {
        Some(lack) => {
            Err(Failure::new(lack.to_string(), "the program was recorded", "a larger --budget"))
        }
        None => Ok((regions_of(&trace)?, trace.manifest().counts.events)),
    }
}

/// Returns a doubt if the number of calls differs by more than 1 %, because the program then did
/// not do the same again.
fn other_calls(first: u64, second: u64) -> Option<Doubt> {
    let is_other = first.abs_diff(second) as f64 > DIFFERENCE_MAX * first.max(second) as f64;
    is_other.then_some(Doubt::OtherCalls { first, second })
}

/// Finds all regions of a trace, however little they allocate.
fn regions_of(trace: &Trace) -> Result<Vec<Region>, Failure> {
    let limits = Limits { least_share: 0.0, regions: usize::MAX, ..Limits::default() };
    Ok(regions::find(trace, limits)?.all)
}

/// Drops the plans with wink-out whose region differs in the second recording.
fn compare(former: &Measured, found: &[Region], made: Made) -> Measured {
    let contradicted = |of: &Candidate| {
        let region = of.region.and_then(|place| former.facts.regions.get(place))?;
        let why = Reason::Contradicted(difference(region, found, made)?);
        Some(dropped(of.name.clone(), Kind::Strategy, of.region, why))
    };
    let winked_out = former.candidates.iter().filter(|of| winks_out(of));
    let mut dropped: Vec<Dropped> = winked_out.filter_map(contradicted).collect();
    dropped.sort_by_key(|of| of.region);
    Measured { recordings: RECORDINGS_MIN, dropped, ..former.nothing() }
}

/// Returns how a region differs in the other recording. `None` if both recordings agree.
fn difference(region: &Region, found: &[Region], made: Made) -> Option<Difference> {
    let is_it = |other: &&Region| other.function == region.function && other.ends == region.ends;
    let Some(other) = found.iter().find(is_it) else {
        return Some(Difference::NoRegion);
    };
    if other.escapes > region.escapes {
        return Some(Difference::Escapes(other.escapes));
    }
    let differs = |a: u64, b: u64| a.abs_diff(b) as f64 > DIFFERENCE_MAX * a.max(b) as f64;
    if made == Made::Again && differs(region.instances, other.instances) {
        return Some(Difference::Instances { now: other.instances, before: region.instances });
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advise::reason::CannotRun;
    use crate::advise::rules::sample;

    fn region(instances: u64, escapes: u64) -> Region {
        Region { function: "f".to_string(), instances, escapes, ..Region::default() }
    }

    #[test]
    fn a_region_that_differs_in_another_recording_is_recognised() {
        let of = |other: &[Region]| difference(&region(100, 0), other, Made::Again);
        assert_eq!(of(&[region(100, 0)]), None);
        assert_eq!(of(&[region(101, 0)]), None);
        assert_eq!(of(&[region(90, 0)]), Some(Difference::Instances { now: 90, before: 100 }));
        assert_eq!(of(&[region(100, 2)]), Some(Difference::Escapes(2)));
        assert_eq!(of(&[]), Some(Difference::NoRegion));
    }

    #[test]
    fn a_recording_with_another_input_may_have_other_instances_but_no_escapes() {
        let of = |other: &[Region]| difference(&region(100, 0), other, Made::Otherwise);
        assert_eq!(of(&[region(7, 0)]), None);
        assert_eq!(of(&[region(7, 1)]), Some(Difference::Escapes(1)));
    }

    #[test]
    fn a_plan_with_wink_out_is_dropped_if_the_second_recording_contradicts_it() {
        let evidence = Measured { recordings: 1, ..sample::document() };
        let with = |evidence: &Measured, found: &[Region]| {
            evidence.and(compare(evidence, found, Made::Again))
        };
        let evidence = with(&evidence, &evidence.facts.regions);
        assert_eq!((evidence.recordings, evidence.candidates.len()), (2, 4));
        let evidence = with(&evidence, &[Region { escapes: 3, ..sample::region() }]);
        assert!(evidence.candidates.iter().all(|of| !winks_out(of)));
        assert_eq!((evidence.candidates.len(), evidence.dropped.len()), (2, 2));
        let why = evidence.dropped[0].why.to_string();
        assert!(why.contains("second recording") && why.contains("3 blocks"), "{why}");
    }

    #[test]
    fn a_different_call_count_in_the_second_recording_makes_the_advice_doubtful() {
        let doubt = |calls| other_calls(100_000, calls).map(|doubt| doubt.to_string());
        assert_eq!((doubt(100_900), doubt(99_100)), (None, None));
        let expected = "100,000 calls of malloc and free, the second has 90,000";
        assert!(doubt(90_000).unwrap().contains(expected), "{:?}", doubt(90_000));
    }

    #[test]
    fn a_missing_second_recording_is_noted_only_if_wink_out_saves_enough() {
        let without = |evidence: &Measured, why| evidence.and(leave_out(evidence, why));
        let evidence = Measured { recordings: 1, ..sample::document() };
        let evidence = without(&evidence, NoSecond::NotRun(CannotRun::NotAsked));
        let evidence = without(&evidence, NoSecond::NoTime);
        let why = evidence.no_second.as_ref().unwrap().to_string();
        assert!(why.contains("--no-try was given"), "{why}");
        let second = compare(&evidence, &evidence.facts.regions, Made::Again);
        assert_eq!(evidence.and(second).no_second, None);
        let nothing = Measured { recordings: 1, ..sample::nothing() };
        assert_eq!(without(&nothing, NoSecond::NoTime).no_second, None);
    }

    #[test]
    fn a_program_that_runs_for_hours_is_recorded_again_only_if_the_budget_is_in_hours() {
        const HOURS: f64 = 3.0 * 3600e9;
        let mut evidence = Measured { recordings: 1, ..sample::document() };
        evidence.facts_mut().program.wall_ns = HOURS;
        let budget = Budget::begin(Duration::from_secs(120), Default::default(), true);
        // Running this program would return an error, because the program does not exist.
        let words = ["/no/such/program".into()];
        let (conditions, work) = (Conditions::default(), ServerWork::default());
        let again = Again {
            words: &words,
            conditions: &conditions,
            follow: &[],
            work: &work,
            debuginfod: Debuginfod::default(),
        };
        let mut evidence = evidence.and(check(&again, &evidence, &budget).unwrap());
        evidence.proposed = budget.proposed(&evidence);
        let why = evidence.no_second_recording().unwrap().to_string();
        let expected = "the budget was too small for one: --budget 793m is probably enough";
        assert!(why.ends_with(expected), "{why}");
        assert_eq!(evidence.recordings, 1);
    }
}
