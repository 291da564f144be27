//! Runs the program itself under the mallocs that a replay finds promising.
//!
//! A replay repeats the calls of the program but not its accesses to memory, so the replay cannot see
//! locality. Runs of the program under another malloc see every effect, and their results replace those
//! of the replay.

use super::budget::Budget;
use super::evidence::{By, Candidate, Evidence, Kind};
use super::measure::{kind_of, SHARE_BEFORE_RUNS};
use super::screen::{dropped, is_memory_at_stake};
use crate::allocators::{Allocator, Wanted};
use crate::error::Failure;
use crate::output::units::{plural, time};
use crate::record::find_program;
use crate::run::refuse_unswitchable;
use crate::trial::{base, floor};
use crate::turns::blocks::{measure, Plan};
use crate::turns::measured::Measured;
use crate::turns::subject::{Run, Runner, Stop, Subject, Turn};
use crate::turns::timing::Timing;
use crate::verdict::fresh::blocks_needed;
use crate::verdict::{margin, Judgement, Verdict, Why, BLOCKS_MIN};
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

/// The greatest number of mallocs that are tried.
pub const TRIED_MAX: usize = 3;
/// The share of the remaining budget for runs. The rest is for cards and files.
const SHARE: f64 = 0.95;

/// How to run the program.
pub struct Runs<'a> {
    /// The command line.
    pub words: &'a [OsString],
    /// Runs the program as the user wants, with its load if it is a server.
    pub runner: &'a Runner,
    /// Whether outputs may differ between runs.
    pub ignores_output: bool,
}

/// Runs the program under the most promising mallocs in turns. The results of the runs replace those of
/// the replay. `unplayed` are mallocs that no replay has compared.
pub fn try_mallocs(
    evidence: &mut Evidence,
    unplayed: &[String],
    runs: &Runs,
    budget: &Budget,
    timing: &Timing,
) -> Result<(), Failure> {
    let mut promising = promising(evidence);
    promising.extend(unplayed.iter().take(TRIED_MAX).cloned());
    if promising.is_empty() || budget.is_interrupted() {
        return Ok(());
    }
    let step = budget.step("running the program once");
    let run = match run_once(runs, budget.left() / 3) {
        Ok(run) => run.took,
        Err(Stop::Interrupted) => return Ok(()),
        Err(Stop::TooLong) => {
            let run = Duration::from_nanos(evidence.program.wall_ns.max(1e5) as u64);
            too_little(evidence, budget, run);
            return Ok(());
        }
        Err(Stop::Broken(how) | Stop::LoadHangs(how)) => {
            fails(evidence, &how);
            return Ok(());
        }
        Err(Stop::Failed(failure)) => {
            fails(evidence, failure.what());
            return Ok(());
        }
    };
    drop(step);
    let time = budget.left().mul_f64(SHARE);
    let is_enough = |count: &usize| run * ((count + 2) * blocks(*count)) as u32 <= time;
    let Some(count) = (1..=promising.len()).rev().find(is_enough) else {
        too_little(evidence, budget, run);
        return Ok(());
    };
    let chosen: Vec<String> = promising.into_iter().take(count).collect();
    match run_all(evidence, &chosen, runs, &timing.part(time)) {
        Ok(()) => Ok(()),
        Err(failure) => {
            fails(evidence, &format!("{}; {}", failure.what(), failure.help()));
            Ok(())
        }
    }
}

/// Notes that the program cannot be measured. The results of the replay stay.
fn fails(evidence: &mut Evidence, why: &str) {
    let what = "what another malloc saves in the program itself";
    evidence.undecided.push(format!("{what}: {why}"));
    evidence.program.cannot_run.get_or_insert(why.to_string());
}

/// Runs the program once, without the recorder. A run that takes longer than `limit` is killed.
pub fn run_once(runs: &Runs, limit: Duration) -> Result<Run, Stop> {
    let path = find_program(&runs.words[0], "mallard advise --")?;
    let own = base(&path, &mut Vec::new());
    let turn = Turn { padding: 0, limit, watches: false };
    runs.runner.run_once(&subject(&path, runs.words, &own), turn)
}

/// The number of blocks of runs that a trial of some mallocs needs: one to warm up, some for a verdict,
/// and as many fresh blocks if there are several mallocs.
fn blocks(count: usize) -> usize {
    let fresh = if count > 1 { blocks_needed(count) } else { 0 };
    1 + blocks_needed(count) + fresh
}

/// Notes that the budget is too small for enough runs of the program. The results of the replay stay.
fn too_little(evidence: &mut Evidence, budget: &Budget, run: Duration) {
    let runs = 3 * blocks(1) as u32;
    let what = format!(
        "what another malloc saves in the program itself: one run takes {}, and a measurement has at \
         least {runs} runs",
        time(run.as_nanos() as f64)
    );
    evidence.lacks_budget(what, budget.needed(run * runs, (1.0 - SHARE_BEFORE_RUNS) * SHARE));
}

/// The mallocs and variables to try, the most promising first. A candidate must be able to reach the
/// least gain (or to save memory, if that is needed) and to save as much as the best plan. Candidates
/// that the replay rules out are not tried, because runs of the program vary more than replays.
fn promising(evidence: &Evidence) -> Vec<String> {
    let of_plans = evidence.candidates.iter().filter(|of| of.kind == Kind::Strategy);
    let gains = of_plans.filter(|of| of.cpu.verdict == Verdict::Gain).map(|of| of.cpu.saving);
    let best_plan = gains.fold(0.0, f64::max);
    let reach = |of: &Candidate| of.expected.map_or(f64::NEG_INFINITY, |(_, high)| high);
    let saves_memory = |of: &Candidate| {
        let (memory, _) = of.memory_saving();
        is_memory_at_stake(evidence) && memory.verdict == Verdict::Gain && of.cpu.low > -0.05
    };
    let may_gain = |of: &Candidate| {
        let is_open = of.cpu.why == Some(Why::ThreadsMeet);
        let reaches = reach(of) >= evidence.min_gain.max(best_plan);
        !of.cannot_gain(evidence.min_gain) && (is_open || reaches)
    };
    let is_promising =
        |of: &Candidate| of.kind != Kind::Strategy && (may_gain(of) || saves_memory(of));
    let mut found: Vec<&Candidate> =
        evidence.candidates.iter().filter(|c| is_promising(c)).collect();
    let key = |of: &Candidate| {
        // For a candidate that saves memory, memory counts as much as CPU time.
        if saves_memory(of) {
            of.cpu.saving.max(of.memory_saving().0.saving)
        } else {
            of.cpu.saving
        }
    };
    found.sort_by(|a, b| key(b).total_cmp(&key(a)));
    found.into_iter().take(TRIED_MAX).map(|of| of.name.clone()).collect()
}

fn run_all(
    evidence: &mut Evidence,
    chosen: &[String],
    runs: &Runs,
    timing: &Timing,
) -> Result<(), Failure> {
    let path = find_program(&runs.words[0], "mallard advise --")?;
    let findings = refuse_unswitchable(&path)?;
    // The recording has found the same.
    let mut notes: Vec<String> = findings.into_iter().map(|finding| finding.what).collect();
    let own = base(&path, &mut notes);
    notes.retain(|note| !evidence.notes.contains(note));
    evidence.notes.extend(notes);
    let named = |name: &String| -> Result<Allocator, Failure> {
        let wanted: Wanted = name
            .parse()
            .map_err(|why: String| Failure::new(why, "nothing was tried", "mallard try --list"))?;
        wanted.find()
    };
    let mallocs: Vec<Allocator> = chosen.iter().map(named).collect::<Result<_, _>>()?;
    let of = |allocator: &Allocator| subject(&path, runs.words, allocator);
    let subjects: Vec<Subject> = mallocs.iter().map(of).collect();
    let plan = Plan { ignores_output: runs.ignores_output, ..timing.plan() };
    let measured = measure(runs.runner, &of(&own), &subjects, &plan)?;
    take_over(evidence, chosen, &measured);
    Ok(())
}

fn subject(path: &Path, words: &[OsString], allocator: &Allocator) -> Subject {
    Subject {
        name: allocator.name.clone(),
        path: path.to_path_buf(),
        words: words.to_vec(),
        variables: allocator.variables(path),
        library: allocator.library.clone(),
    }
}

/// Replaces the results of the replay by those of the runs.
fn take_over(evidence: &mut Evidence, chosen: &[String], measured: &Measured) {
    evidence.interrupted |= measured.interrupted;
    if measured.all_blocks() < BLOCKS_MIN {
        let what = "what another malloc saves in the program itself: too few runs";
        evidence.undecided.push(what.to_string());
        return;
    }
    let min_gain = evidence.min_gain;
    let (cpu, _) = measured.settle(|f| f.cpu_ns, min_gain);
    let (memory, _) = measured.settle(|f| f.peak_rss, min_gain);
    let margin = margin(&cpu.control, min_gain);
    evidence.add_noise(&cpu.control);
    let alive = measured.alive();
    let peak = |column: usize| measured.median_of_all(column, |f| f.peak_rss) as u64;
    // A new process begins as a copy of its maker. If the copy is larger than the program, the peaks are
    // those of the copy. In this case, the memory that the replay found stays.
    let is_above_floor = measured.median_of_all(0, |f| f.peak_rss) > 1.1 * floor();
    for (column, name) in chosen.iter().enumerate() {
        let known = evidence.candidates.iter().position(|of| of.name == *name);
        let known = known.map(|place| evidence.candidates.remove(place));
        let Some(place) = alive.iter().position(|&alive| alive == column) else {
            let why = measured.broken[column].clone().unwrap_or_default();
            let why = format!("it breaks the program: {why}");
            evidence.dropped.push(dropped(name, kind_of(name), None, why));
            continue;
        };
        let cpu = cpu.candidates[place].clone();
        if let Some(of) = known.as_ref().filter(|of| says_more(of, &cpu, min_gain)) {
            evidence.notes.push(too_varied(of, &cpu));
            evidence.candidates.push(of.clone());
            continue;
        }
        if let Some(Why::DroppedEarly { runs }) = cpu.why {
            let runs = plural(runs as u64, "run");
            let why = format!("it was dropped after {runs} of the program: others saved more");
            evidence.dropped.push(dropped(name, kind_of(name), None, why));
            continue;
        }
        let replayed = known.as_ref().filter(|_| !is_above_floor);
        evidence.candidates.push(Candidate {
            name: name.clone(),
            kind: kind_of(name),
            rule: None,
            plan: None,
            region: None,
            site: None,
            by: By::Try,
            expected: Some((cpu.low, cpu.high)),
            predicted: known.as_ref().and_then(|of| of.expected),
            cpu,
            margin,
            replayed: known.as_ref().map(|of| of.cpu.clone()),
            allocator: known.as_ref().and_then(|of| of.allocator.clone()),
            pages: known.as_ref().and_then(|of| of.pages.clone()),
            memory_by: if replayed.is_some() { By::Replay } else { By::Try },
            memory: replayed.map_or(memory.candidates[place].clone(), |of| of.memory.clone()),
            peak_bytes: replayed.map_or((peak(0), peak(column + 2)), |of| of.peak_bytes),
            memory_at_end: known.as_ref().and_then(|of| of.memory_at_end.clone()),
            end_bytes: known.as_ref().map_or((0, 0), |of| of.end_bytes),
            account: None,
        });
    }
}

/// Whether the replay of a candidate says more than the runs: the replay rules out a gain, but the runs
/// do not decide.
fn says_more(replayed: &Candidate, tried: &Judgement, min_gain: f64) -> bool {
    tried.verdict == Verdict::NotMeasurable && replayed.cannot_gain(min_gain)
}

/// A note that runs of the program do not decide about a malloc, but the replay does.
fn too_varied(of: &Candidate, tried: &Judgement) -> String {
    let why = tried.why.map_or(String::new(), |why| format!(" ({why})"));
    format!(
        "runs of the program under {} vary too much to decide{why}: what is said of its CPU time is \
         from the replay",
        of.name
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advise::rules::sample::{self, judged, whole};

    fn replayed(name: &str, saving: f64, verdict: Verdict, why: Option<Why>) -> Candidate {
        let none = (0.0, Verdict::NoDifference);
        let of = whole(name, Kind::Malloc, (saving, verdict), none);
        let expected = Some((saving / 1.1 - 0.01, saving / 0.4 + 0.01));
        Candidate { by: By::Replay, expected, cpu: Judgement { why, ..of.cpu }, ..of }
    }

    fn tried(candidates: Vec<Candidate>) -> Vec<String> {
        promising(&Evidence { candidates, ..sample::program() })
    }

    #[test]
    fn candidates_that_a_replay_rules_out_are_not_tried() {
        let wide = Some(Why::IntervalTooWide);
        let none = [
            replayed("a", 0.015, Verdict::NoDifference, None),
            replayed("b", -0.05, Verdict::Loss, None),
            replayed("c", 0.005, Verdict::NotMeasurable, wide),
        ];
        assert!(tried(none.to_vec()).is_empty());
        let some = [
            replayed("d", 0.03, Verdict::Gain, None),
            replayed("e", 0.05, Verdict::NotMeasurable, wide),
            replayed("f", -0.3, Verdict::NotMeasurable, Some(Why::ThreadsMeet)),
        ];
        assert_eq!(tried(some.to_vec()), ["e", "d", "f"]);
    }

    #[test]
    fn a_candidate_that_a_replay_rules_out_stays_ruled_out_if_runs_decide_nothing() {
        let open = judged(0.05, Verdict::NotMeasurable);
        let says = |of: Candidate, tried: &Judgement| says_more(&of, tried, 0.02);
        let ruled_out = || replayed("a", 0.011, Verdict::NoDifference, None);
        assert!(says(ruled_out(), &open));
        assert!(!says(ruled_out(), &judged(0.05, Verdict::Gain)));
        assert!(!says(replayed("b", 0.04, Verdict::Gain, None), &open));
        let meet = Some(Why::ThreadsMeet);
        assert!(!says(replayed("c", 0.0, Verdict::NotMeasurable, meet), &open));
    }
}
