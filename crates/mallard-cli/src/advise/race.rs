//! Races all mallocs and the best plans against each other, in interleaved runs of the program.

use super::budget::{Budget, PLANS_MAX};
use super::candidate::{dropped, Kind, Name};
use super::measured::Measured;
use super::proposals::kind_of;
use super::reason::Reason;
use super::runs::{run_all, run_once, Raced, Runs, WithPlan, SHARE};
use mallard_measure::mallocs::Allocator;
use mallard_measure::rounds::measure::race_runs;
use mallard_measure::rounds::timing::Timing;
use std::time::Duration;

/// The maximum share of the remaining budget for a race of all mallocs, if plans are replayed
/// afterwards.
const RACE_SHARE: f64 = 0.5;
/// If plans are replayed afterwards, a race may take this many times the minimum time in which it
/// can have a winner.
const RACE_SPARE: f64 = 1.3;

/// The part of the budget that a race reserves for later steps.
#[derive(Clone, Copy, Default)]
pub struct Kept {
    /// The time for runs after the race that complete the results of each plan.
    pub always: Duration,
    /// The time for another step. This time is not reserved if the rest would be too short for any
    /// race.
    pub if_possible: Duration,
}

/// Runs the program under all mallocs and with all plans, interleaved. The best plan and the best
/// malloc then run again, together with the control of the plan. If replays measure plans
/// afterwards (`has_plans`), the race takes at most half of the remaining budget, or its minimum
/// time if that is longer. Otherwise, the race takes the whole remaining budget except `kept`.
pub fn race(
    former: &Measured,
    mallocs: &[Allocator],
    plans: &[WithPlan],
    (has_plans, kept): (bool, Kept),
    runs: &Runs,
    budget: &Budget,
    timing: &Timing,
) -> Raced {
    let nothing =
        || Raced { found: former.nothing(), plans: vec![None; plans.len()], has_run: false };
    if mallocs.is_empty() && plans.is_empty()
        || former.cannot_run().is_some()
        || budget.is_interrupted()
    {
        return nothing();
    }
    let most = time_of_race(budget.left(), kept.always);
    // If this run fails or takes too long, `try_mallocs` records why, and then chooses fewer
    // mallocs.
    let step = budget.step("running the program once");
    let Ok(run) = run_once(runs, most / race_runs(1, 0)) else { return nothing() };
    drop(step);
    // The settings of glibc come last, because they are the first to be left out.
    let mut sorted = mallocs.to_vec();
    sorted.sort_by_key(|of| kind_of(&of.name) != Kind::Malloc);
    let races = smaller_races(counts(&sorted), plans.len());
    let largest = largest_race(&races, run.took, budget.left(), kept);
    let Some((who, most)) = largest else { return nothing() };
    let (mallocs, left_out) = sorted.split_at(who.0);
    let plans = &plans[..who.1];
    let left_out = left_out.iter().map(|of| {
        let name = Name::Allocator(of.name.clone());
        dropped(name, kind_of(&of.name), None, Reason::NoTimeToMeasure)
    });
    let needed = time_needed(who, run.took);
    let half = budget.left().mul_f64(RACE_SHARE);
    // If only replays measure the plans, the race leaves more time to the replays.
    let time = match has_plans && plans.is_empty() {
        true => needed.max(half.min(needed.mul_f64(RACE_SPARE))).min(most),
        false => most.max(needed),
    };
    let mut raced = budget.share(|| run_all(former, mallocs, plans, runs, &timing.part(time)));
    raced.found.dropped.extend(left_out);
    raced
}

/// Returns the time for a race that reserves `kept` of the remaining budget `left`.
fn time_of_race(left: Duration, kept: Duration) -> Duration {
    left.saturating_sub(kept).mul_f64(SHARE)
}

/// Returns the minimum time of a race of some mallocs and plans, if a run of the program takes
/// `run`.
fn time_needed((mallocs, plans): (usize, usize), run: Duration) -> Duration {
    run * race_runs(mallocs + plans, plans)
}

/// Returns the largest race for which there is time, and the time that it may take.
fn largest_race(
    races: &[(usize, usize)],
    run: Duration,
    left: Duration,
    kept: Kept,
) -> Option<((usize, usize), Duration)> {
    [kept.always + kept.if_possible, kept.always].into_iter().find_map(|kept| {
        let most = time_of_race(left, kept);
        let fits = |of: &(usize, usize)| time_needed(*of, run) <= most;
        races.iter().copied().find(fits).map(|of| (of, most))
    })
}

/// Returns the maximum number of plans for which there may be time in a race, at least 1. More
/// plans need not be prepared.
pub fn plans_with_time(run: Option<Duration>, mallocs: &[Allocator], left: Duration) -> usize {
    let Some(run) = run else { return PLANS_MAX };
    let races = smaller_races(counts(mallocs), PLANS_MAX);
    let largest = largest_race(&races, run, left, Kept::default());
    largest.map_or(1, |((_, plans), _)| plans.max(1))
}

/// Returns the number of mallocs with the settings of glibc, and without these settings.
fn counts(mallocs: &[Allocator]) -> (usize, usize) {
    let is_malloc = |of: &&Allocator| kind_of(&of.name) == Kind::Malloc;
    (mallocs.len(), mallocs.iter().filter(is_malloc).count())
}

/// Returns the possible sizes of a race as numbers of mallocs and plans, the largest race first.
/// `all` counts the mallocs and the settings of glibc, and `others` only the mallocs. A race that
/// is too long first loses the settings, and then the least promising plans and mallocs.
fn smaller_races((all, others): (usize, usize), plans: usize) -> Vec<(usize, usize)> {
    let most = |mallocs: usize, of: usize| (others.min(mallocs), plans.min(of));
    vec![(all, plans), (others, plans), most(others, 2), most(3, 2), most(2, 1), most(1, 1)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_race_reserves_time_for_a_second_recording_only_if_the_budget_suffices_for_both() {
        let races = smaller_races((6, 4), 1);
        let [run, timed, recording] = [1.0, 1.5, 10.0].map(Duration::from_secs_f64);
        let kept = Kept { always: timed, if_possible: recording };
        let of = |seconds| largest_race(&races, run, Duration::from_secs(seconds), kept);
        // One malloc and one plan take 39 runs.
        let time = |seconds, kept| time_of_race(Duration::from_secs(seconds), kept);
        assert_eq!(of(53), Some(((1, 1), time(53, timed + recording))));
        assert_eq!(of(43), Some(((1, 1), time(43, timed))));
        assert_eq!(of(42), None);
        assert!(of(150).is_some_and(|(who, _)| who == (6, 1)), "{:?}", of(150));
    }

    #[test]
    fn only_as_many_plans_are_prepared_as_the_budget_can_run() {
        let [short, long] = [0.1, 1.0].map(|run| Some(Duration::from_secs_f64(run)));
        let of = |run| plans_with_time(run, &mallocs(), Duration::from_secs(50));
        assert_eq!([of(short), of(long), of(None)], [PLANS_MAX, 1, PLANS_MAX]);
        assert_eq!(plans_with_time(long, &mallocs(), Duration::from_secs(5)), 1);
    }

    /// Returns four mallocs and two settings of glibc.
    fn mallocs() -> Vec<Allocator> {
        let names = ["a", "b", "c", "d", "glibc:arenas=1", "glibc:tcache=1000"];
        names.map(|name| Allocator { name: name.into(), ..Allocator::default() }).to_vec()
    }

    #[test]
    fn a_race_with_too_little_time_omits_settings_then_plans_then_mallocs() {
        let all = [(10, 3), (4, 3), (4, 2), (3, 2), (2, 1), (1, 1)];
        assert_eq!(smaller_races((10, 4), 3), all);
        assert_eq!(smaller_races((1, 0), 1), [(1, 1), (0, 1), (0, 1), (0, 1), (0, 1), (0, 1)]);
    }
}
