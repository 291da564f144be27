//! Runs the program itself under other mallocs.
//!
//! A replay repeats the calls of the program but not its accesses to memory, so the replay cannot see
//! locality. Runs of the program under another malloc see every effect. So all installed mallocs race in
//! the program, together with the plans that can be applied in the program. If the program is too long for such
//! a race, a replay chooses the mallocs, and their runs replace the results of the replay.

use super::budget::{Budget, PLANS_MAX, SHARE_BEFORE_RUNS, TRIED_MAX};
use super::candidate::{dropped, By, Candidate, Kind, Name};
use super::measured::{noise, Measured};
use super::proposals::{is_memory_at_stake, kind_of};
use super::reason::{CannotRun, Note, Question, Reason, What};
use mallard_measure::clock;
use mallard_measure::comparison::run::refuse_unswitchable;
use mallard_measure::comparison::{base, floor};
use mallard_measure::error::Failure;
use mallard_measure::mallocs::Allocator;
use mallard_measure::process::find_program;
use mallard_measure::rounds::measure::{measure, race_runs, Plan};
use mallard_measure::rounds::measured::Measured as Rounds;
use mallard_measure::rounds::subject::{Figures, Run, Runner, Stop, Subject, Turn};
use mallard_measure::rounds::timing::Timing;
use mallard_measure::verdict::fresh::rounds_needed;
use mallard_measure::verdict::{margin, Judgement, Verdict, Why, ROUNDS_MIN};
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

/// The share of the remaining budget for runs. The rest is for cards and files.
const SHARE: f64 = 0.95;
/// The largest share of the remaining budget for a race of all mallocs, if plans are replayed afterwards.
const RACE_SHARE: f64 = 0.5;
/// A race may take this many times as long as the smallest one that has a winner, if plans are replayed
/// afterwards.
const RACE_SPARE: f64 = 1.3;

/// How to run the program.
pub struct Runs<'a> {
    /// The command line.
    pub words: &'a [OsString],
    /// Runs the program as the user wants, with its load if it is a server.
    pub runner: &'a Runner,
    /// Whether outputs may differ between runs.
    pub ignores_output: bool,
}

/// The program with a plan in force, and its control, which makes the same decisions and leaves all blocks to
/// malloc.
pub struct WithPlan {
    /// The program with the plan.
    pub serves: Subject,
    /// The control.
    pub control: Subject,
}

/// What a race of mallocs and plans has found.
pub struct Raced {
    /// What the race has found of the mallocs.
    pub found: Measured,
    /// What it has found of each plan: `None` if the plan breaks the program. The last plans are missing if there was
    /// no time for them.
    pub plans: Vec<Option<Ran>>,
    /// Whether the program ran often enough. It does not run if the budget is too small for the race, or if the
    /// program cannot run.
    pub has_run: bool,
}

/// What runs have shown of a plan.
#[derive(Clone, Debug)]
pub struct Ran {
    /// The saving of CPU time, compared with the program without the plan.
    pub as_it_is: Judgement,
    /// The saving of CPU time, compared with the control. `None` if the control did not run, because other plans
    /// or the time left no room for it.
    pub beside_control: Option<Judgement>,
    /// The smallest difference that is known to be none.
    pub margin: f64,
    /// The saving of resident memory.
    pub memory: Judgement,
    /// The peak of the resident memory without and with the plan.
    pub peak_bytes: (u64, u64),
}

/// The part of the budget that a race leaves for what follows.
#[derive(Clone, Copy, Default)]
pub struct Kept {
    /// For runs without which nothing that the race shows of a plan is complete.
    pub always: Duration,
    /// For a step that is left out if there would be no time for any race.
    pub if_possible: Duration,
}

/// Runs the program under all mallocs, and with all plans, in turns. The best plan and the best malloc then run
/// again, the plan beside its control. If replays measure plans afterwards (`has_plans`), the race takes at most half
/// of the remaining budget, or as much as the smallest race needs; otherwise all but `kept`.
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
    // Whatever keeps this run from its end is noted by `try_mallocs`, which then chooses fewer mallocs.
    let step = budget.step("running the program once");
    let Ok(run) = run_once(runs, most / race_runs(1, 0)) else { return nothing() };
    drop(step);
    // The settings of glibc come last.
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
    // Plans that only replays measure leave more of the time to those.
    let time = match has_plans && plans.is_empty() {
        true => needed.max(half.min(needed.mul_f64(RACE_SPARE))).min(most),
        false => most.max(needed),
    };
    let mut raced = budget.share(|| run_all(former, mallocs, plans, runs, &timing.part(time)));
    raced.found.dropped.extend(left_out);
    raced
}

/// The time for a race that leaves `kept` of what is left of the budget.
fn time_of_race(left: Duration, kept: Duration) -> Duration {
    left.saturating_sub(kept).mul_f64(SHARE)
}

/// The time of a race of some mallocs and plans, if a run of the program takes `run`.
fn time_needed((mallocs, plans): (usize, usize), run: Duration) -> Duration {
    run * race_runs(mallocs + plans, plans)
}

/// The largest race for which there is time, and this time.
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

/// The greatest number of plans for which there may be time in a race, at least 1. More need not be prepared.
pub fn plans_with_time(run: Option<Duration>, mallocs: &[Allocator], left: Duration) -> usize {
    let Some(run) = run else { return PLANS_MAX };
    let races = smaller_races(counts(mallocs), PLANS_MAX);
    let largest = largest_race(&races, run, left, Kept::default());
    largest.map_or(1, |((_, plans), _)| plans.max(1))
}

/// The number of mallocs with the settings of glibc among them, and without.
fn counts(mallocs: &[Allocator]) -> (usize, usize) {
    let is_malloc = |of: &&Allocator| kind_of(&of.name) == Kind::Malloc;
    (mallocs.len(), mallocs.iter().filter(is_malloc).count())
}

/// How many mallocs and plans race, the largest race first. `all` counts the mallocs and the settings of glibc, of
/// which `others` are mallocs. If there is no time for all, the settings are left out first, then the least promising
/// plans and mallocs.
fn smaller_races((all, others): (usize, usize), plans: usize) -> Vec<(usize, usize)> {
    let most = |mallocs: usize, of: usize| (others.min(mallocs), plans.min(of));
    vec![(all, plans), (others, plans), most(others, 2), most(3, 2), most(2, 1), most(1, 1)]
}

/// The mallocs of a race that a replay may still decide about: those whose runs vary too much, and all of
/// them if memory is at stake, because runs do not show the memory after the peak.
pub fn left_open(former: &Measured, mallocs: &[Allocator]) -> Vec<Allocator> {
    let all = is_memory_at_stake(&former.facts);
    let of =
        |malloc: &&Allocator| former.candidates.iter().find(|of| of.name.short() == malloc.name);
    let is_open = |malloc: &&Allocator| {
        of(malloc).is_some_and(|of| all || of.cpu.verdict == Verdict::NotMeasurable)
    };
    mallocs.iter().filter(is_open).cloned().collect()
}

/// Runs the program under the most promising mallocs in turns. The results of the runs replace those of
/// the replay. `unplayed` are mallocs that no replay has compared.
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

/// The program cannot be measured. The results of the replay stay.
fn fails(former: &Measured, how: String) -> Measured {
    let questions = vec![What::RunsFail(how.clone()).into()];
    Measured { questions, runs_failed: Some(CannotRun::Fails(how)), ..former.nothing() }
}

/// Runs the program once, without the recorder. A run that takes longer than `limit` is killed.
pub fn run_once(runs: &Runs, limit: Duration) -> Result<Run, Stop> {
    let turn = Turn { padding: 0, limit: clock::limit(limit), watches: false };
    runs.runner.run_once(&bare(runs)?.1, turn)
}

/// The program as it is, with the malloc that it has.
pub fn bare(runs: &Runs) -> Result<(Allocator, Subject), Failure> {
    let path = find_program(&runs.words[0], "mallard advise --")?;
    let own = base(&path, &mut Vec::new());
    let subject = subject(&path, runs.words, &own);
    Ok((own, subject))
}

/// The number of rounds that a trial of some mallocs needs: one to warm up, some for a verdict,
/// and as many fresh rounds if there are several mallocs.
fn rounds_of_trial(count: usize) -> usize {
    let fresh = if count > 1 { rounds_needed(count) } else { 0 };
    1 + rounds_needed(count) + fresh
}

/// The budget is too small for enough runs of the program. The results of the replay stay.
fn too_little(former: &Measured, budget: &Budget, run: Duration) -> Measured {
    let runs = 3 * rounds_of_trial(1) as u32;
    let needed = budget.needed(run * runs, (1.0 - SHARE_BEFORE_RUNS) * SHARE);
    let question = Question { what: What::LongRun(run, runs), needed: Some(needed) };
    Measured { questions: vec![question], ..former.nothing() }
}

/// The mallocs and variables to try, the most promising first. A candidate must be able to reach the
/// least gain (or to save memory, if that is needed) and to save as much as the best plan. Candidates
/// that the replay rules out are not tried, because runs of the program vary more than replays.
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

/// Runs the program under some mallocs, and with some plans, in turns.
fn run_all(
    former: &Measured,
    mallocs: &[Allocator],
    plans: &[WithPlan],
    runs: &Runs,
    timing: &Timing,
) -> Raced {
    match rounds(mallocs, plans, runs, timing) {
        Ok((rounds, notes)) => Raced {
            found: Measured { notes, ..found(former, mallocs, &rounds) },
            plans: of_plans(former, mallocs.len(), plans.len(), &rounds),
            has_run: says_enough(&rounds),
        },
        Err(failure) => Raced {
            found: fails(former, format!("{}; {}", failure.what(), failure.help())),
            plans: vec![None; plans.len()],
            has_run: false,
        },
    }
}

/// What the runs show of each plan. The plans come after `mallocs` mallocs, and their controls after the plans.
fn of_plans(former: &Measured, mallocs: usize, plans: usize, rounds: &Rounds) -> Vec<Option<Ran>> {
    let alive = rounds.alive();
    if rounds.all_rounds() == 0 || alive.is_empty() {
        return vec![None; plans];
    }
    let min_gain = former.facts.min_gain;
    let (cpu, _) = rounds.settle(|f| f.cpu_ns, min_gain);
    let (memory, _) = rounds.settle(|f| f.peak_rss, min_gain);
    let controls = pairs(mallocs, plans);
    let against = rounds.fresh.as_deref().map(|fresh| fresh.against_controls(&controls));
    let of = |plan: usize| {
        let place = alive.iter().position(|&at| at == mallocs + plan)?;
        let peak = |column: usize| rounds.median_of_all(column, |f| f.peak_rss) as u64;
        let raced = Ran {
            as_it_is: cpu.candidates[place].clone(),
            beside_control: None,
            margin: margin(&cpu.control, min_gain),
            memory: memory.candidates[place].clone(),
            peak_bytes: (peak(0), peak(mallocs + plan + 2)),
        };
        Some(
            against
                .as_ref()
                .and_then(|of| beside_control(of, plan, &raced, min_gain))
                .unwrap_or(raced),
        )
    };
    (0..plans).map(of).collect()
}

/// What fresh runs of a plan beside its control show. `None` if there are too few.
fn beside_control(against: &Rounds, plan: usize, raced: &Ran, min_gain: f64) -> Option<Ran> {
    let place = against.alive().iter().position(|&at| at == plan)?;
    if against.rounds() < ROUNDS_MIN {
        return None;
    }
    let [cpu, memory] = [(|f| f.cpu_ns) as fn(&Figures) -> f64, |f| f.peak_rss]
        .map(|figure| against.judge(figure, min_gain));
    let peak = |column: usize| against.median(column, |f| f.peak_rss) as u64;
    Some(Ran {
        as_it_is: raced.as_it_is.clone(),
        beside_control: Some(cpu.candidates[place].clone()),
        margin: margin(&cpu.control, min_gain),
        memory: memory.candidates[place].clone(),
        peak_bytes: (peak(0), peak(plan + 2)),
    })
}

/// The places of plans and of their controls among what runs.
fn pairs(mallocs: usize, plans: usize) -> Vec<(usize, usize)> {
    (mallocs..mallocs + plans).map(|plan| (plan, plan + plans)).collect()
}

/// Whether the runs tell something of each malloc: there are enough of them, or all mallocs break the program.
fn says_enough(rounds: &Rounds) -> bool {
    rounds.alive().is_empty() || rounds.all_rounds() >= ROUNDS_MIN
}

/// Runs the program in rounds. Also returns notes, some of which the recording may have too.
fn rounds(
    mallocs: &[Allocator],
    plans: &[WithPlan],
    runs: &Runs,
    timing: &Timing,
) -> Result<(Rounds, Vec<Note>), Failure> {
    let path = find_program(&runs.words[0], "mallard advise --")?;
    let findings = refuse_unswitchable(&path)?;
    let mut of_base = Vec::new();
    let own = base(&path, &mut of_base);
    let findings = findings.into_iter().map(|finding| Note::of_warning(finding.what));
    let notes = findings.chain(of_base.into_iter().map(Note::Said)).collect();
    let of = |allocator: &Allocator| subject(&path, runs.words, allocator);
    let served = plans.iter().map(|of| of.serves.clone());
    let controls = plans.iter().map(|of| of.control.clone());
    let subjects: Vec<Subject> = mallocs.iter().map(of).chain(served).chain(controls).collect();
    let controls = pairs(mallocs.len(), plans.len());
    let plan = Plan { ignores_output: runs.ignores_output, controls, ..timing.plan() };
    Ok((measure(runs.runner, &of(&own), &subjects, &plan)?, notes))
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

/// What the runs show of each malloc.
fn found(former: &Measured, mallocs: &[Allocator], rounds: &Rounds) -> Measured {
    let mut found = Measured { interrupted: rounds.interrupted, ..former.nothing() };
    let named = |malloc: &Allocator| Name::Allocator(malloc.name.clone());
    let lost = |malloc: &Allocator, why| dropped(named(malloc), kind_of(&malloc.name), None, why);
    let broken = mallocs.iter().zip(&rounds.broken);
    let broken =
        broken.filter_map(|(malloc, why)| Some(lost(malloc, Reason::Breaks(why.clone()?))));
    found.dropped.extend(broken);
    let alive = rounds.alive();
    if alive.is_empty() || mallocs.is_empty() {
        return found;
    }
    if rounds.all_rounds() < ROUNDS_MIN {
        found.questions.push(What::TooFewRuns.into());
        return found;
    }
    let min_gain = former.facts.min_gain;
    let (cpu, _) = rounds.settle(|f| f.cpu_ns, min_gain);
    let (memory, _) = rounds.settle(|f| f.peak_rss, min_gain);
    let margin = margin(&cpu.control, min_gain);
    found.noise = noise(&cpu.control);
    let peak = |column: usize| rounds.median_of_all(column, |f| f.peak_rss) as u64;
    // A new process begins as a copy of its maker. If the copy is larger than the program, the peaks are
    // those of the copy. In this case, the memory that the replay found stays.
    let is_above_floor = rounds.median_of_all(0, |f| f.peak_rss) > 1.1 * floor();
    let of_mallocs = alive.into_iter().enumerate().filter(|(_, column)| *column < mallocs.len());
    for (place, column) in of_mallocs {
        let name = named(&mallocs[column]);
        let cpu = cpu.candidates[place].clone();
        if let Some(Why::DroppedEarly { runs }) = cpu.why {
            found.dropped.push(lost(&mallocs[column], Reason::LosesRace(runs)));
            continue;
        }
        let tried = Candidate {
            kind: kind_of(&mallocs[column].name),
            name,
            rule: None,
            plan: None,
            region: None,
            site: None,
            by: By::Try,
            expected: Some((cpu.low, cpu.high)),
            predicted: None,
            cpu,
            margin,
            replayed: None,
            allocator: None,
            pages: None,
            memory_by: By::Try,
            memory: memory.candidates[place].clone(),
            peak_bytes: (peak(0), peak(column + 2)),
            memory_at_end: None,
            end_bytes: (0, 0),
            account: None,
            in_program: None,
        };
        let known = former.candidates.iter().find(|of| of.name == tried.name && !is_above_floor);
        found.candidates.push(match known {
            None => tried,
            Some(of) => {
                let (memory, peak_bytes) = (of.memory.clone(), of.peak_bytes);
                Candidate { memory_by: By::Replay, memory, peak_bytes, ..tried }
            }
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advise::rules::sample::{self, whole};

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
    fn a_race_leaves_time_for_a_second_recording_only_if_it_fits_as_well() {
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
    fn no_more_plans_are_prepared_than_have_time_to_run() {
        let [short, long] = [0.1, 1.0].map(|run| Some(Duration::from_secs_f64(run)));
        let of = |run| plans_with_time(run, &mallocs(), Duration::from_secs(50));
        assert_eq!([of(short), of(long), of(None)], [PLANS_MAX, 1, PLANS_MAX]);
        assert_eq!(plans_with_time(long, &mallocs(), Duration::from_secs(5)), 1);
    }

    /// Four mallocs and two settings of glibc.
    fn mallocs() -> Vec<Allocator> {
        let names = ["a", "b", "c", "d", "glibc:arenas=1", "glibc:tcache=1000"];
        names.map(|name| Allocator { name: name.into(), ..Allocator::default() }).to_vec()
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
    fn a_race_without_time_for_all_leaves_out_settings_then_plans_then_mallocs() {
        let all = [(10, 3), (4, 3), (4, 2), (3, 2), (2, 1), (1, 1)];
        assert_eq!(smaller_races((10, 4), 3), all);
        assert_eq!(smaller_races((1, 0), 1), [(1, 1), (0, 1), (0, 1), (0, 1), (0, 1), (0, 1)]);
    }

    #[test]
    fn too_few_runs_leave_mallocs_to_a_replay_unless_all_break_the_program() {
        let mut measured = Rounds::nothing(2);
        assert!(!says_enough(&measured));
        measured.broken = vec![Some("it hangs".to_string()); 2];
        assert!(says_enough(&measured));
        let mut measured = Rounds::nothing(2);
        measured.columns = vec![vec![Default::default(); ROUNDS_MIN]; 4];
        assert!(says_enough(&measured));
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
        fragmented.candidates.clear(); // the program works under none of them
        assert!(open(&fragmented).is_empty());
    }
}
