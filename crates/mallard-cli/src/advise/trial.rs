//! Runs the program under the mallocs that a replay found promising. This happens if runs are too
//! long for a race of all mallocs. The results of the runs replace those of the replay.

use super::budget::{Budget, SHARE_BEFORE_RUNS, TRIED_MAX};
use super::candidate::{Candidate, Kind};
use super::measured::Measured;
use super::proposals::is_memory_at_stake;
use super::reason::{Question, What};
use super::runs::{fails, run_all, run_once, Runs, SHARE};
use mallard_measure::mallocs::Allocator;
use mallard_measure::rounds::subject::Stop;
use mallard_measure::rounds::timing::Timing;
use mallard_measure::verdict::fresh::rounds_needed;
use mallard_measure::verdict::{Verdict, Why};
use std::time::Duration;

/// Returns the mallocs of a race that a replay may still decide about, which are the mallocs whose
/// runs vary too much. If another malloc may save memory, returns all mallocs that ran, because
/// runs do not show the memory after the peak.
pub fn left_open(former: &Measured, mallocs: &[Allocator]) -> Vec<Allocator> {
    let all = is_memory_at_stake(&former.facts);
    let of =
        |malloc: &&Allocator| former.candidates.iter().find(|of| of.name.short() == malloc.name);
    let is_open = |malloc: &&Allocator| {
        of(malloc).is_some_and(|of| all || of.cpu.verdict == Verdict::NotMeasurable)
    };
    mallocs.iter().filter(is_open).cloned().collect()
}

/// Runs the program under the most promising mallocs, interleaved. The results of the runs replace
/// those of the replay. `unplayed` are mallocs that were not replayed.
pub fn try_mallocs(
    former: &Measured,
    mallocs: &[Allocator],
    unplayed: &[String],
    runs: &Runs,
    budget: &Budget,
    timing: &Timing,
) -> Measured {
    let mut promising = promising(former);
    promising.extend(unplayed.iter().take(TRIED_MAX).cloned());
    if promising.is_empty() || budget.is_interrupted() {
        return former.nothing();
    }
    let step = budget.step("running the program once");
    let run = match run_once(runs, budget.left() / 3) {
        Ok(run) => run.took,
        Err(Stop::Interrupted) => return former.nothing(),
        Err(Stop::TooLong) => {
            let run = Duration::from_nanos(former.facts.program.wall_ns.max(1e5) as u64);
            return too_little(former, budget, run);
        }
        Err(Stop::Broken(how) | Stop::LoadHangs(how)) => return fails(former, how),
        Err(Stop::Failed(failure)) => return fails(former, failure.what().to_string()),
    };
    drop(step);
    let time = budget.left().mul_f64(SHARE);
    let is_enough = |count: &usize| run * ((count + 2) * rounds_of_trial(*count)) as u32 <= time;
    let Some(count) = (1..=promising.len()).rev().find(is_enough) else {
        return too_little(former, budget, run);
    };
    let named = |name: &String| mallocs.iter().find(|malloc| malloc.name == *name).cloned();
    let chosen: Vec<Allocator> = promising.iter().take(count).filter_map(named).collect();
    run_all(former, &chosen, &[], runs, &timing.part(time)).found
}

/// Returns the number of rounds for a trial of `count` mallocs. A trial has one warm-up round and
/// some rounds for a verdict. With several mallocs, there are as many confirmation rounds.
fn rounds_of_trial(count: usize) -> usize {
    let fresh = if count > 1 { rounds_needed(count) } else { 0 };
    1 + rounds_needed(count) + fresh
}

/// Records that the budget is too small for enough runs of the program. The results of the replay
/// remain valid.
fn too_little(former: &Measured, budget: &Budget, run: Duration) -> Measured {
    let runs = 3 * rounds_of_trial(1) as u32;
    let needed = budget.needed(run * runs, (1.0 - SHARE_BEFORE_RUNS) * SHARE);
    let question = Question { what: What::LongRun(run, runs), needed: Some(needed) };
    Measured { questions: vec![question], ..former.nothing() }
}

/// Returns the mallocs and variables to try, the most promising first. Each must be able to reach
/// the minimum gain and to save as much as the best plan, or must save memory if memory is at
/// stake. Candidates that the replay rules out are not tried, because runs of the program vary more
/// than replays.
fn promising(former: &Measured) -> Vec<String> {
    let of_plans = former.candidates.iter().filter(|of| of.kind == Kind::Strategy);
    let gains = of_plans.filter(|of| of.cpu.verdict == Verdict::Gain).map(|of| of.cpu.saving);
    let best_plan = gains.fold(0.0, f64::max);
    let reach = |of: &Candidate| of.expected.map_or(f64::NEG_INFINITY, |(_, high)| high);
    let saves_memory = |of: &Candidate| {
        let (memory, _) = of.memory_saving();
        is_memory_at_stake(&former.facts) && memory.verdict == Verdict::Gain && of.cpu.low > -0.05
    };
    let may_gain = |of: &Candidate| {
        let is_open = of.cpu.why == Some(Why::ThreadsMeet);
        let reaches = reach(of) >= former.facts.min_gain.max(best_plan);
        !of.cannot_gain(former.facts.min_gain) && (is_open || reaches)
    };
    let is_promising =
        |of: &Candidate| of.kind != Kind::Strategy && (may_gain(of) || saves_memory(of));
    let mut found: Vec<&Candidate> = former.candidates.iter().filter(|c| is_promising(c)).collect();
    let key = |of: &Candidate| {
        // For a candidate that saves memory, memory counts as much as CPU time.
        if saves_memory(of) {
            of.cpu.saving.max(of.memory_saving().0.saving)
        } else {
            of.cpu.saving
        }
    };
    found.sort_by(|a, b| key(b).total_cmp(&key(a)));
    found.into_iter().take(TRIED_MAX).map(|of| of.name.to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advise::candidate::By;
    use crate::advise::rules::sample::{self, whole};
    use mallard_measure::verdict::Judgement;

    fn replayed(name: &str, saving: f64, verdict: Verdict, why: Option<Why>) -> Candidate {
        let none = (0.0, Verdict::NoDifference);
        let of = whole(name, Kind::Malloc, (saving, verdict), none);
        let expected = Some((saving / 1.1 - 0.01, saving / 0.4 + 0.01));
        Candidate { by: By::Replay, expected, cpu: Judgement { why, ..of.cpu }, ..of }
    }

    fn tried(candidates: Vec<Candidate>) -> Vec<String> {
        promising(&Measured { candidates, ..sample::program() })
    }

    #[test]
    fn candidates_that_a_replay_rules_out_are_not_run() {
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
    fn a_replay_may_decide_about_mallocs_whose_runs_vary_too_much() {
        let malloc = |name: &str| Allocator::as_started(name);
        let mallocs = ["a", "b", "c"].map(malloc).to_vec();
        let tried = |name, verdict| whole(name, Kind::Malloc, (0.1, verdict), (0.0, verdict));
        let candidates = vec![tried("a", Verdict::NotMeasurable), tried("b", Verdict::Gain)];
        let open = |evidence: &Measured| {
            let all = left_open(evidence, &mallocs).into_iter().map(|malloc| malloc.name);
            all.collect::<Vec<_>>()
        };
        let evidence = Measured { candidates: candidates.clone(), ..sample::program() };
        assert_eq!(open(&evidence), ["a"]);
        let mut fragmented = Measured { candidates, ..sample::fragmented() };
        assert_eq!(open(&fragmented), ["a", "b"]);
        fragmented.candidates.clear(); // the program works under no malloc but its own
        assert!(open(&fragmented).is_empty());
    }
}
