//! Runs the program itself under other mallocs, and with plans applied.
//!
//! A replay repeats the calls of the program but not its accesses to memory, so a replay cannot
//! show effects of locality. Runs of the program show every effect.

use super::candidate::{dropped, By, Candidate, Name};
use super::measured::{noise, Measured};
use super::proposals::kind_of;
use super::reason::{CannotRun, Note, Reason, What};
use mallard_measure::clock;
use mallard_measure::comparison::run::refuse_unswitchable;
use mallard_measure::comparison::{base, floor};
use mallard_measure::error::Failure;
use mallard_measure::mallocs::{acts_by_pages, Allocator};
use mallard_measure::process::find_program;
use mallard_measure::rounds::measure::{measure, Plan};
use mallard_measure::rounds::measured::{LeftOut, Measured as Rounds};
use mallard_measure::rounds::subject::{Figures, Run, Runner, Stop, Subject, Turn};
use mallard_measure::rounds::timing::Timing;
use mallard_measure::verdict::{margin, Judgement, Why, ROUNDS_MIN};
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

/// The share of the remaining budget for runs. The rest is for making cards and writing files.
pub const SHARE: f64 = 0.95;

/// How to run the program.
pub struct Runs<'a> {
    /// The command line.
    pub words: &'a [OsString],
    /// Runs the program as the user wants, with its load if it is a server.
    pub runner: &'a Runner,
    /// Whether outputs may differ between runs.
    pub ignores_output: bool,
}

/// The program with a plan applied, and the control of the plan. The control decides about each
/// block as the plan does, but allocates all blocks from malloc.
pub struct WithPlan {
    /// The program with the plan.
    pub serves: Subject,
    /// The control: the same plan, but all blocks come from malloc.
    pub control: Subject,
}

/// The results of a race of mallocs and plans.
pub struct Raced {
    /// The results for the mallocs.
    pub found: Measured,
    /// The result for each plan, or `None` if the plan breaks the program. The last plans are
    /// missing if there was no time for them.
    pub plans: Vec<Option<Ran>>,
    /// Whether the program ran often enough. The program does not run if it cannot run again, or if
    /// the budget is too small for the race.
    pub has_run: bool,
}

/// The results of runs with a plan applied.
#[derive(Clone, Debug)]
pub struct Ran {
    /// The saving of CPU time, compared with the program without the plan.
    pub as_it_is: Judgement,
    /// The saving of CPU time, compared with the control. `None` if the control did not run,
    /// because another plan was better or the time was too short.
    pub beside_control: Option<Judgement>,
    /// The amount by which noise widens the interval of the saving.
    pub margin: f64,
    /// The saving of resident memory.
    pub memory: Judgement,
    /// The peak of the resident memory without and with the plan.
    pub peak_bytes: (u64, u64),
}

/// Runs the program once, without the recorder. A run that takes longer than `limit` is killed.
pub fn run_once(runs: &Runs, limit: Duration) -> Result<Run, Stop> {
    let turn = Turn { padding: 0, limit: clock::limit(limit), watches: false };
    runs.runner.run_once(&bare(runs)?.1, turn)
}

/// Returns the unchanged program and its malloc.
pub fn bare(runs: &Runs) -> Result<(Allocator, Subject), Failure> {
    let path = find_program(&runs.words[0], "mallard advise --")?;
    let own = base(&path, &mut Vec::new());
    let subject = subject(&path, runs.words, &own);
    Ok((own, subject))
}

/// Runs the program under some mallocs and with some plans, interleaved.
pub fn run_all(
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

/// Returns the result if the program cannot be measured. The results of replays stay valid.
pub fn fails(former: &Measured, how: String) -> Measured {
    let questions = vec![What::RunsFail(how.clone()).into()];
    Measured { questions, runs_failed: Some(CannotRun::Fails(how)), ..former.nothing() }
}

/// Runs the program in rounds. Also returns notes, some of which the recording may have, too.
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
        is_setting: acts_by_pages(&allocator.name),
    }
}

/// Returns pairs of indices among the subjects: the index of each plan, and the index of its
/// control.
fn pairs(mallocs: usize, plans: usize) -> Vec<(usize, usize)> {
    (mallocs..mallocs + plans).map(|plan| (plan, plan + plans)).collect()
}

/// Makes candidates from the runs under each malloc.
fn found(former: &Measured, mallocs: &[Allocator], rounds: &Rounds) -> Measured {
    let mut found = Measured { interrupted: rounds.interrupted, ..former.nothing() };
    let named = |malloc: &Allocator| Name::Allocator(malloc.name.clone());
    let lost = |malloc: &Allocator, why| dropped(named(malloc), kind_of(&malloc.name), None, why);
    let broken = mallocs.iter().zip(&rounds.broken);
    let broken =
        broken.filter_map(|(malloc, why)| Some(lost(malloc, Reason::Breaks(why.clone()?))));
    found.dropped.extend(broken);
    let left_out = mallocs.iter().zip(&rounds.left_out).filter_map(|(malloc, why)| {
        let why = match why.as_ref()? {
            LeftOut::NoEffect => Reason::NoEffect,
            LeftOut::NoTime => Reason::NoTimeToMeasure,
        };
        Some(lost(malloc, why))
    });
    found.dropped.extend(left_out);
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
    // A new process begins as a copy of its parent. If the copy is larger than the program, the
    // peak RSS is that of the copy. In this case, the memory results of the replay are kept.
    let is_above_floor = rounds.median_of_all(0, |f| f.peak_rss) > 1.1 * floor();
    let of_mallocs = alive.into_iter().enumerate().filter(|(_, column)| *column < mallocs.len());
    for (place, column) in of_mallocs {
        let name = named(&mallocs[column]);
        let cpu = cpu.candidates[place].clone();
        let why = match cpu.why {
            Some(Why::DroppedEarly { runs }) => Some(Reason::LosesRace(runs)),
            Some(Why::NotRunAgain { runs }) => Some(Reason::NotRunAgain(runs)),
            _ => None,
        };
        if let Some(why) = why {
            found.dropped.push(lost(&mallocs[column], why));
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

/// Returns the results of the runs with each plan. In `rounds`, `mallocs` mallocs come first, then
/// the plans, then the controls of the plans.
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

/// Returns the results of confirmation runs of a plan and its control. `None` if there are too few
/// runs.
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

/// Returns whether the runs are enough to judge the mallocs, because there are enough rounds, or
/// because all mallocs break the program.
fn says_enough(rounds: &Rounds) -> bool {
    rounds.alive().is_empty() || rounds.all_rounds() >= ROUNDS_MIN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_too_few_runs_replays_decide_about_mallocs_unless_all_break_the_program() {
        let mut measured = Rounds::nothing(2);
        assert!(!says_enough(&measured));
        measured.broken = vec![Some("it hangs".to_string()); 2];
        assert!(says_enough(&measured));
        let mut measured = Rounds::nothing(2);
        measured.columns = vec![vec![Default::default(); ROUNDS_MIN]; 4];
        assert!(says_enough(&measured));
    }
}
