//! Compares a second recording of the program before wink-out is advised. A region that ends
//! differently in another run must not lose its blocks at its end. The second recording comes from the
//! user (`--again`), or the program is recorded again if the budget allows it. Without a second
//! recording, no card asks for wink-out.

use super::budget::Budget;
use super::evidence::{Candidate, Evidence, Kind};
use super::gather;
use super::measure::RECORDING_PART;
use super::screen::dropped;
use crate::error::status::{MALLARD_FAILED, USAGE};
use crate::error::Failure;
use crate::look;
use crate::output::units::plural;
use crate::record::{self, Follow, Out, ServerWork, Streams};
use crate::trial::Conditions;
use mallard_trace::regions::{self, Limits, Region};
use mallard_trace::Trace;
use std::ffi::OsString;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Recording a program and finding its regions takes at most TIMES times the recorded time, plus
/// NS_PER_EVENT for each event. Measured with three programs of tests/known on two cores: 1 time, plus
/// 500 ns.
const TIMES: f64 = 2.0;
const NS_PER_EVENT: f64 = 800.0;
/// The greatest difference between the numbers of instances in two recordings, as a share.
const DIFFERENCE_MAX: f64 = 0.01;

/// The program to record again, and how it runs.
pub struct Again<'a> {
    /// The command line.
    pub words: &'a [OsString],
    /// The conditions of each run.
    pub conditions: &'a Conditions,
    /// Which processes are recorded.
    pub follow: &'a [Follow],
    /// The work of a server.
    pub work: &'a ServerWork,
}

/// How a second recording was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Made {
    /// The same program with the same arguments: each region has the same number of instances.
    Again,
    /// The input may differ: the user made the recording, or the load of a server was repeated for some
    /// time.
    Otherwise,
}

/// The time that a second recording of the program takes.
pub fn time_needed(evidence: &Evidence) -> Duration {
    let ns = evidence.program.wall_ns * TIMES + evidence.program.calls as f64 * NS_PER_EVENT;
    Duration::from_nanos(ns as u64)
}

/// Whether any plan with wink-out saves enough.
fn is_worth_it(evidence: &Evidence) -> bool {
    let min_gain = evidence.min_gain;
    let is_open =
        |of: &Candidate| winks_out(of) && (of.gains(min_gain) || of.gains_memory(min_gain));
    evidence.candidates.iter().any(is_open)
}

/// Opens the user's second recording. It has to be another one than `first`, of the same program.
pub fn open(first: &Trace, name: &Path) -> Result<Trace, Failure> {
    let trace = look::open(name)?;
    let folder = |of: &Trace| of.folder().canonicalize().ok();
    let [here, there] = [first, &trace].map(|of| gather::program_name(of.manifest()));
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

/// Drops the plans with wink-out that the user's second recording contradicts. A recording that does not
/// show the whole run is no proof.
pub fn compare_with(second: &Trace, evidence: &mut Evidence) -> Result<(), Failure> {
    match gather::validity(second.manifest()).first() {
        Some(lack) => {
            let why = format!("{} is no proof: {lack}", second.folder().display());
            evidence.notes.push(format!("--again: {why}"));
            leave_out(evidence, why);
        }
        None => compare(evidence, &regions_of(second)?, Made::Otherwise),
    }
    Ok(())
}

/// Notes why there is no second recording, if wink-out needs one. An earlier reason stays.
pub fn leave_out(evidence: &mut Evidence, why: String) {
    if evidence.recordings < 2 && is_worth_it(evidence) {
        evidence.not_again.get_or_insert(why);
    }
}

/// Records the program again if a plan with wink-out has a gain, and drops the plans with wink-out
/// that the second recording contradicts.
pub fn check(again: &Again, evidence: &mut Evidence, budget: &Budget) -> Result<(), Failure> {
    if evidence.recordings > 1 || !is_worth_it(evidence) || budget.is_interrupted() {
        return Ok(());
    }
    let needed = time_needed(evidence);
    if needed > budget.left() {
        evidence.recording_needs = Some(budget.needed(needed * RECORDING_PART, 1.0));
        evidence.not_again.get_or_insert("the budget was too small for one".to_string());
        budget.miss(needed);
        return Ok(());
    }
    let step = budget.step("recording the program a second time");
    let found = record_again(again, budget);
    drop(step);
    let made = match evidence.program.runs_do_the_same {
        true => Made::Again,
        false => Made::Otherwise,
    };
    match found {
        Ok(found) => compare(evidence, &found, made),
        Err(failure) => {
            let why = format!("the program could not be recorded again: {}", failure.what());
            evidence.not_again = Some(why);
        }
    }
    Ok(())
}

fn winks_out(of: &Candidate) -> bool {
    let rules = of.plan.iter().flat_map(|plan| &plan.rules);
    rules.into_iter().any(|rule| rule.strategy.winks_out())
}

/// Records the program again and returns the regions. The recording itself is not kept.
fn record_again(again: &Again, budget: &Budget) -> Result<Vec<Region>, Failure> {
    let folder = tempfile::Builder::new().prefix("mallard-advise-").tempdir().map_err(|e| {
        let what = format!("cannot make a temporary folder: {}", e.to_string().to_lowercase());
        Failure::new(what, "nothing was recorded", "TMPDIR=/path/with/room mallard advise ...")
            .with_status(MALLARD_FAILED)
    })?;
    again.conditions.set_up(budget.runner.clone())?;
    let streams = Streams { stdin: again.conditions.stdin_of_recording(), out: Out::Nowhere };
    let name = Some(folder.path().join("again"));
    let (_, recorded) =
        record::Command::of(again.words, name, again.follow, again.work, streams).record()?;
    recorded.ends_by_signals.store(false, Ordering::Relaxed);
    let trace = Trace::open(&recorded.trace)?;
    match gather::validity(trace.manifest()).first() {
        Some(lack) => Err(Failure::new(lack, "the program was recorded", "a larger --budget")),
        None => regions_of(&trace),
    }
}

/// All regions of a trace, however little they allocate.
fn regions_of(trace: &Trace) -> Result<Vec<Region>, Failure> {
    let limits = Limits { least_share: 0.0, regions: usize::MAX, ..Limits::default() };
    Ok(regions::find(trace, limits)?.all)
}

/// Drops the plans with wink-out whose region differs in the second recording.
fn compare(evidence: &mut Evidence, found: &[Region], made: Made) {
    evidence.recordings = 2;
    evidence.not_again = None;
    for place in 0..evidence.regions.len() {
        let Some(why) = difference(&evidence.regions[place], found, made) else { continue };
        evidence.unsteady.push(place);
        let is_it = |of: &Candidate| of.region == Some(place) && winks_out(of);
        for of in evidence.candidates.iter().filter(|of| is_it(of)) {
            let why = format!("in a second recording of the program {why}");
            evidence.dropped.push(dropped(&of.name, Kind::Strategy, Some(place), why));
        }
        evidence.candidates.retain(|of| !is_it(of));
    }
}

/// How a region differs in the other recording. `None` if the regions agree.
fn difference(region: &Region, found: &[Region], made: Made) -> Option<String> {
    let is_it = |other: &&Region| other.function == region.function && other.ends == region.ends;
    let Some(other) = found.iter().find(is_it) else {
        return Some("it has no such region".to_string());
    };
    if other.escapes > region.escapes {
        return Some(format!("its calls leave {} in use", plural(other.escapes, "block")));
    }
    let differs = |a: u64, b: u64| a.abs_diff(b) as f64 > DIFFERENCE_MAX * a.max(b) as f64;
    if made == Made::Again && differs(region.instances, other.instances) {
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
    use crate::advise::rules::sample;

    fn region(instances: u64, escapes: u64) -> Region {
        Region { function: "f".to_string(), instances, escapes, ..Region::default() }
    }

    #[test]
    fn a_region_that_differs_in_another_recording_is_recognised() {
        let of = |other: &[Region]| difference(&region(100, 0), other, Made::Again);
        assert_eq!(of(&[region(100, 0)]), None);
        assert_eq!(of(&[region(101, 0)]), None);
        assert_eq!(of(&[region(90, 0)]).unwrap(), "it has 90 instances instead of 100");
        assert_eq!(of(&[region(100, 2)]).unwrap(), "its calls leave 2 blocks in use");
        assert_eq!(of(&[]).unwrap(), "it has no such region");
    }

    #[test]
    fn a_recording_of_another_input_may_have_other_instances_but_no_escapes() {
        let of = |other: &[Region]| difference(&region(100, 0), other, Made::Otherwise);
        assert_eq!(of(&[region(7, 0)]), None);
        assert_eq!(of(&[region(7, 1)]).unwrap(), "its calls leave 1 block in use");
    }

    #[test]
    fn a_plan_with_wink_out_is_dropped_if_the_second_recording_contradicts_it() {
        let mut evidence = Evidence { recordings: 1, ..sample::document() };
        let same = evidence.regions.clone();
        compare(&mut evidence, &same, Made::Again);
        assert_eq!((evidence.recordings, evidence.candidates.len()), (2, 4));
        let escapes = Region { escapes: 3, ..sample::region() };
        compare(&mut evidence, &[escapes], Made::Again);
        assert!(evidence.candidates.iter().all(|of| !winks_out(of)));
        assert_eq!((evidence.candidates.len(), evidence.dropped.len()), (2, 2));
        let why = &evidence.dropped[0].why;
        assert!(why.contains("second recording") && why.contains("3 blocks"), "{why}");
    }

    #[test]
    fn a_missing_second_recording_is_noted_only_if_wink_out_saves_enough() {
        let mut evidence = Evidence { recordings: 1, ..sample::document() };
        leave_out(&mut evidence, "--no-try was given".to_string());
        leave_out(&mut evidence, "a later reason".to_string());
        assert_eq!(evidence.not_again.as_deref(), Some("--no-try was given"));
        let same = evidence.regions.clone();
        compare(&mut evidence, &same, Made::Again);
        assert_eq!(evidence.not_again, None);
        let mut nothing = Evidence { recordings: 1, ..sample::nothing() };
        leave_out(&mut nothing, "--no-try was given".to_string());
        assert_eq!(nothing.not_again, None);
    }

    #[test]
    fn a_program_that_runs_for_hours_is_recorded_again_only_if_the_budget_is_in_hours() {
        const HOURS: f64 = 3.0 * 3600e9;
        let mut evidence = Evidence { recordings: 1, ..sample::document() };
        evidence.program.wall_ns = HOURS;
        let budget = Budget::begin(Duration::from_secs(120), Default::default(), true);
        // A program that cannot be started would be an error.
        let words = ["/no/such/program".into()];
        let (conditions, work) = (Conditions::default(), ServerWork::default());
        let again = Again { words: &words, conditions: &conditions, follow: &[], work: &work };
        check(&again, &mut evidence, &budget).unwrap();
        budget.propose(&mut evidence);
        let why = evidence.not_again.unwrap();
        let expected = "the budget was too small for one: --budget 1189m is probably enough";
        assert_eq!(why, expected);
        assert_eq!(evidence.recordings, 1);
    }
}
