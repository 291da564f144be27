//! Runs the rounds of a measurement.

use super::measured::{LeftOut, Measured};
use super::outputs;
use super::race::{most, Standing, RACE_FROM, ROUNDS_TO_CHOOSE, ROUNDS_TO_DROP};
use super::runs::Runs;
use super::subject::{ending, Figures, Run, Stop, Subject, Turn};
use crate::clock::{self, Moment};
use crate::error::status::MALLARD_FAILED;
use crate::error::Failure;
use crate::output::progress::Work;
use crate::output::units::{budget, time};
use crate::process::child::Seen;
use crate::process::load::WAITING_LOAD;
use crate::verdict::fresh::{rounds_needed, WINNERS_MAX};
use crate::verdict::{self, Verdict, Why};
use fastrand::Rng;
use std::time::Duration;

/// The number of rounds from which the measurement may end early, before the budget is used up.
const ROUNDS_GOOD: usize = 15;
/// The maximum number of rounds. Further rounds would make no interval noticeably narrower.
const ROUNDS_MAX: usize = 400;
/// The maximum length in bytes of the environment variable that moves the stack. The length exceeds
/// a page.
const PADDING_MAX: usize = 4096 + 256;
/// A run that takes this many times as long as the first run is killed.
const PATIENCE: u32 = 10;
/// A run that takes less time than this is not killed.
const PATIENCE_MIN: Duration = Duration::from_secs(10);
/// The budget divided by this number is reserved for confirmation runs of the best candidates.
const FRESH_PART: u32 = 4;
/// Confirmation runs start only if there is time for this many rounds more than a verdict needs.
const FRESH_SPARE: usize = 2;
/// The measurement includes settings of the base's malloc only if the budget allows this many times
/// as many runs as a verdict needs. Most settings have no effect, so other candidates are more
/// important.
const SETTINGS_SPARE: u32 = 2;
/// The number of runs in a confirmation round of one candidate: the base, its control and the
/// candidate.
const FRESH_RUNS: usize = 3;
/// The share of the budget, as a divisor, by which necessary confirmation rounds may exceed the
/// budget. If confirmation were cut off because the last runs were slower, all earlier runs would
/// be useless.
const OVERTIME_PART: u32 = 10;
/// The share of the remaining budget, as a divisor, that selection rounds may use if candidates are
/// dropped early. The rest is for confirmation rounds.
const CHOICE_PART: u32 = 2;

/// The settings of a measurement.
pub struct Plan {
    /// The time after which no more runs begin, except confirmation rounds that a verdict needs
    /// (see `OVERTIME_PART`).
    pub budget: Duration,
    /// A run that takes longer is killed. `None` limits the first run to the budget, and the others
    /// to a multiple of the first run's time.
    pub timeout: Option<Duration>,
    /// Whether the outputs and statuses of runs may differ.
    pub ignores_output: bool,
    /// The minimum difference that counts, as a share of the base.
    pub min_gain: f64,
    /// Whether candidates that cannot win are dropped early.
    pub drops: bool,
    /// The candidates that are never dropped early and always have confirmation runs, such as a
    /// plan and its control.
    pub kept: Vec<usize>,
    /// Pairs of a candidate and its separate control. A control runs only in confirmation rounds,
    /// together with its candidate. The best of these candidates always has confirmation runs,
    /// because its saving is measured only against its control.
    pub controls: Vec<(usize, usize)>,
    /// The seed of the random numbers.
    pub seed: u64,
    /// Shows progress; `None` if nothing is shown.
    pub progress: Option<Work>,
}

/// A running measurement.
struct Measurement<'a> {
    runner: &'a dyn Runs,
    base: &'a Subject,
    candidates: &'a [Subject],
    plan: &'a Plan,
    rng: Rng,
    begin: Moment,
    /// The first run of the base.
    first: Run,
    out: Measured,
    /// The duration of the last run in each column.
    took: Vec<Duration>,
    /// Whether candidates are dropped early.
    races: bool,
    /// The half-width of the widest confidence interval, as last computed.
    known: Option<f64>,
}

/// Returns the minimum number of runs after which a measurement that drops candidates early can
/// have a winner. It needs a warm-up run of each candidate, selection rounds, and confirmation
/// rounds. If the number `plans` of candidates with controls is not 0, a confirmation round runs
/// the best plan, its control, and the best other candidate.
pub fn race_runs(candidates: usize, plans: usize) -> u32 {
    let others = usize::from(candidates > plans);
    let is_chosen = plans == 0 || candidates > 1 + others;
    let choice = if is_chosen { (candidates + 2) * ROUNDS_TO_CHOOSE } else { 0 };
    let (fresh, winners) =
        if plans == 0 { (FRESH_RUNS, 1) } else { (FRESH_RUNS + 1 + others, 1 + others) };
    let spare = usize::from(is_chosen && winners == 1);
    (candidates + 2 + choice + fresh * (rounds_needed(winners) + spare)) as u32
}

/// Returns the indices of all candidates except `some`.
fn others(candidates: usize, some: &[usize]) -> Vec<usize> {
    (0..candidates).filter(|index| !some.contains(index)).collect()
}

/// Runs the base and the candidates, interleaved, until the differences are known precisely enough,
/// the budget is used up, or the user interrupts the measurement.
pub fn measure(
    runner: &dyn Runs,
    base: &Subject,
    candidates: &[Subject],
    plan: &Plan,
) -> Result<Measured, Failure> {
    let mut rng = Rng::with_seed(plan.seed);
    let begin = Moment::now();
    if let Some(progress) = &plan.progress {
        progress.say(&format!("the first run of {}", base.name));
    }
    let most = clock::limit(plan.budget);
    let limit = plan.timeout.map_or(most, |timeout| timeout.min(most));
    let turn = Turn { padding: rng.usize(..PADDING_MAX), limit, watches: true };
    let first = match runner.run(base, turn) {
        Ok(first) => first,
        Err(Stop::Interrupted) => {
            return Ok(Measured { interrupted: true, ..Measured::nothing(candidates.len()) });
        }
        Err(Stop::TooLong) => return Err(too_long(plan)),
        Err(Stop::Broken(how)) => return Err(base_fails(&how)),
        Err(Stop::LoadHangs(how)) => return Err(load_hangs(how)),
        Err(Stop::Failed(failure)) => return Err(failure),
    };
    let refusal = runner.explain(&first, base).filter(|_| !plan.ignores_output);
    if let Some(failure) = refusal {
        return Err(failure);
    }
    let controls: Vec<usize> = plan.controls.iter().map(|&(_, control)| control).collect();
    let nothing = Measured::nothing_of(&others(candidates.len(), &controls), candidates.len());
    let out = Measured { status: first.status, first: first.took, ..nothing };
    let took = vec![first.took; candidates.len() + 2];
    let (races, known) = (false, None);
    let mut measurement =
        Measurement { runner, base, candidates, plan, rng, begin, first, out, took, races, known };
    measurement.fit_into_budget()?;
    let all = measurement
        .warm_up()
        .and_then(|()| measurement.choose())
        .and_then(|()| measurement.fresh_rounds());
    match all {
        Ok(()) => {}
        Err(Stop::Interrupted) => measurement.out.interrupted = true,
        Err(Stop::Failed(failure)) => return Err(failure),
        Err(Stop::TooLong) => return Err(base_fails("it ran for too long, and was killed")),
        Err(Stop::Broken(how)) => return Err(base_fails(&how)),
        Err(Stop::LoadHangs(how)) => return Err(load_hangs(how)),
    }
    Ok(measurement.out)
}

impl Measurement<'_> {
    /// Leaves out settings if the budget is small. Fails if the budget does not allow a single
    /// round.
    fn fit_into_budget(&mut self) -> Result<(), Failure> {
        if self.first.took * (SETTINGS_SPARE * self.runs_needed()) > self.plan.budget {
            let settings =
                self.candidates.iter().map(|of| of.is_setting.then_some(LeftOut::NoTime));
            self.out.left_out = settings.collect();
        }
        let round = self.out.alive().len() as u32 + 2;
        if self.first.took * (2 * round) <= self.plan.budget {
            return Ok(());
        }
        let runs = self.runs_needed();
        let what = format!(
            "a budget of {} is too small: one run takes {}, and a verdict needs {runs} runs",
            shown(self.plan.budget),
            shown(self.first.took)
        );
        let enough = budget(self.first.took * runs);
        let help = format!("--budget {enough}, or {}", self.runner.less_work());
        Err(Failure::new(what, "nothing was measured", help).with_status(MALLARD_FAILED))
    }

    /// Returns the minimum number of runs after which there can be a verdict. The measurement needs
    /// a warm-up run of each candidate, and then the rounds for a verdict. If candidates are
    /// dropped early, the first of these rounds runs all candidates, and the others run one.
    fn runs_needed(&self) -> u32 {
        let all = self.out.alive().len();
        let rounds = match self.races_with(all) {
            true => all + 2 + self.fresh_runs() * (rounds_needed(1) + 1),
            false => (all + 2) * rounds_needed(self.runner.compared(&self.out)),
        };
        (all + 2 + rounds) as u32
    }

    /// Returns the number of runs in a confirmation round of one candidate and of the candidates
    /// that always run. If some candidates have controls, the round also runs the best of these
    /// candidates with its control, in addition to the best of the other candidates.
    fn fresh_runs(&self) -> usize {
        let more = if self.plan.controls.is_empty() { 0 } else { 2 };
        FRESH_RUNS + self.plan.kept.len() + more
    }

    /// Returns how many candidates must have confirmation rounds before there can be a verdict, in
    /// a measurement that drops candidates early.
    fn needed_winners(&self) -> usize {
        if self.plan.controls.is_empty() {
            1
        } else {
            2
        }
    }

    /// Returns whether some of the running candidates should be dropped early. If all candidates
    /// may have confirmation rounds, none is dropped. Candidates with a control need confirmation
    /// rounds for their result, so their presence always leads to early dropping.
    fn races_with(&self, running: usize) -> bool {
        self.plan.drops && (running > WINNERS_MAX || !self.plan.controls.is_empty())
    }

    /// Runs each subject once without measuring it. This fills file caches and shows which
    /// candidates break the program. A second run of the base shows whether its output is always
    /// the same. Also leaves out settings that have no effect.
    fn warm_up(&mut self) -> Result<(), Stop> {
        let again = self.run(1, false)?;
        if let Some(difference) = self.difference(&again) {
            return Err(Stop::Failed(varies(&difference)));
        }
        for index in self.out.alive() {
            self.say(&format!("the first run of {}", self.candidates[index].name));
            let run = self.run(index + 2, true);
            let figures = self.accept(index, run)?;
            let bases = [&self.first.figures, &again.figures];
            let has_no_effect = self.candidates[index].is_setting
                && figures.is_some_and(|of| {
                    bases.iter().any(|base| of.shows_no_effect(base, self.plan.min_gain))
                });
            self.out.left_out[index] = has_no_effect.then_some(LeftOut::NoEffect);
        }
        Ok(())
    }

    /// Runs the selection rounds, which find the best candidates.
    fn choose(&mut self) -> Result<(), Stop> {
        let running = self.out.running();
        self.races = self.races_with(running.len());
        let with_control = running.iter().filter(|&&index| self.has_control(index)).count();
        match self.races {
            // The candidate with a control and the best other candidate have confirmation rounds in
            // any case.
            true if with_control == 1 && running.len() <= self.needed_winners() => Ok(()),
            true => self.race(),
            false => self.rounds(FRESH_PART, 0),
        }
    }

    /// Runs rounds in which candidates are dropped early. Stops when the differences are known
    /// precisely enough, or when the time for selection is used up.
    fn race(&mut self) -> Result<(), Stop> {
        let begin = self.elapsed();
        let rest = self.plan.budget.saturating_sub(begin);
        let all = self.out.running().len();
        let mut next_look = ROUNDS_GOOD;
        while self.out.rounds() < ROUNDS_MAX {
            self.say_rest();
            self.round()?;
            let done = self.out.rounds();
            if self.out.running().is_empty() {
                return Ok(());
            }
            let choice = self.time_to_choose(rest);
            let taken = (self.elapsed() - begin).as_secs_f64() / choice.as_secs_f64().max(1e-9);
            if done >= ROUNDS_TO_DROP && taken >= RACE_FROM {
                self.drop_all_but(most(all, taken));
            }
            if self.is_known(&mut next_look) {
                return Ok(());
            }
            if self.elapsed() + self.round_time() > begin + choice {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Returns how long the selection rounds, which find the best candidates, may last. This is
    /// `rest` divided by `CHOICE_PART`, or more for the first rounds. Confirmation rounds of one
    /// candidate always remain possible.
    fn time_to_choose(&self, rest: Duration) -> Duration {
        let run = self.took.iter().sum::<Duration>() / self.took.len() as u32;
        let rounds = (rounds_needed(1) + 1).max(rounds_needed(self.needed_winners()));
        let fresh = run * (self.fresh_runs() * rounds) as u32;
        let most = rest.saturating_sub(fresh);
        match self.out.rounds() < ROUNDS_TO_CHOOSE {
            true => most,
            false => most.min(rest / CHOICE_PART),
        }
    }

    /// Drops candidates that are clearly worse than the best. While more than `most` candidates
    /// run, also drops candidates that are probably worse.
    fn drop_all_but(&mut self, most: usize) {
        let done = self.out.rounds();
        let standing = Standing::of(&self.out, self.plan.min_gain);
        let best_with_control = standing.order.iter().find(|&&index| self.has_control(index));
        for index in standing.dropped(most) {
            if !self.plan.kept.contains(&index) && best_with_control != Some(&index) {
                self.out.dropped[index] = Some(Why::DroppedEarly { runs: done });
            }
        }
    }

    fn has_control(&self, index: usize) -> bool {
        self.plan.controls.iter().any(|&(candidate, _)| candidate == index)
    }

    /// Runs rounds until the differences are known precisely enough or the budget is used up. Once
    /// verdicts are possible, reserves the budget divided by `kept_part` (0 reserves nothing) for
    /// confirmation rounds. The first `needed` rounds may exceed the budget by a small share.
    fn rounds(&mut self, kept_part: u32, needed: usize) -> Result<(), Stop> {
        let mut next_look = ROUNDS_GOOD;
        while self.out.rounds() < ROUNDS_MAX {
            self.say_rest();
            self.round()?;
            let done = self.out.rounds();
            if self.out.alive().is_empty() {
                return Ok(());
            }
            if self.is_known(&mut next_look) {
                return Ok(());
            }
            let compared = self.runner.compared(&self.out);
            let keeps = kept_part > 0 && compared > 1 && done >= rounds_needed(compared);
            let kept = if keeps { self.plan.budget / kept_part } else { Duration::ZERO };
            let more =
                if done < needed { self.plan.budget / OVERTIME_PART } else { Duration::ZERO };
            if self.elapsed() + self.round_time() + kept > self.plan.budget + more {
                self.out.ran_out = true;
                return Ok(());
            }
        }
        Ok(())
    }

    /// Returns whether the differences are known precisely enough. Computes the answer only after
    /// `next_look` rounds, and then increases `next_look`.
    fn is_known(&mut self, next_look: &mut usize) -> bool {
        let done = self.out.rounds();
        if done < *next_look {
            return false;
        }
        self.known = Some(verdict::half_width(&self.out.metric(|f| f.cpu_ns)));
        *next_look = done + (done / 4).max(3);
        self.runner.is_known(&self.out)
    }

    /// Runs the best candidates and the base again. The new rounds are independent of the rounds in
    /// which these candidates were chosen.
    fn fresh_rounds(&mut self) -> Result<(), Stop> {
        let mut winners = self.winners();
        if winners.is_empty() {
            return Ok(());
        }
        while !winners.is_empty() && !self.is_affordable(&winners) {
            winners.pop();
        }
        self.out.lacks_fresh = winners.is_empty();
        if winners.is_empty() {
            // If there is no time for confirmation rounds, further selection rounds may still
            // decide.
            return if self.races { self.rounds(0, 0) } else { Ok(()) };
        }
        let some = self.needed_for(&winners);
        if self.races {
            self.drop_the_undecided(&[&winners[..], &self.plan.kept].concat());
        }
        let fresh = Measured::nothing_of(&some, self.candidates.len());
        let chosen = std::mem::replace(&mut self.out, fresh);
        self.known = None;
        let needed = rounds_needed(winners.len());
        let ended = self.rounds(0, needed);
        let fresh = std::mem::replace(&mut self.out, chosen);
        self.out.lacks_fresh = fresh.rounds() < needed;
        self.out.add_fresh(&some, fresh);
        ended
    }

    /// Returns the candidates that should have confirmation rounds, the best first.
    fn winners(&self) -> Vec<usize> {
        if self.races {
            let standing = Standing::of(&self.out, self.plan.min_gain);
            return standing.finalists(&self.out, self.plan.min_gain, &|of| self.has_control(of));
        }
        let mut winners = self.runner.winners(&self.out, self.plan.min_gain);
        winners.truncate(WINNERS_MAX);
        winners
    }

    /// Returns the candidates that run in the confirmation rounds of `winners`. These always
    /// include a plan and its control, because the two are compared with each other.
    fn needed_for(&self, winners: &[usize]) -> Vec<usize> {
        let mut needed = self.runner.needed_for(winners);
        let running = self.out.running();
        let kept = self.plan.kept.iter().copied().filter(|index| running.contains(index));
        let with = |index: &usize| winners.contains(index);
        let controls = self.plan.controls.iter().filter(|(candidate, _)| with(candidate));
        let more = kept.chain(controls.map(|&(_, control)| control));
        let more: Vec<usize> = more.filter(|index| !needed.contains(index)).collect();
        needed.extend(more);
        needed
    }

    /// Marks the candidates that have no verdict and are not in `kept` as dropped.
    fn drop_the_undecided(&mut self, kept: &[usize]) {
        let runs = self.out.rounds();
        let judged = self.out.judge(|f| f.cpu_ns, self.plan.min_gain).candidates;
        for (index, of) in self.out.alive().into_iter().zip(judged) {
            let is_open = of.verdict == Verdict::NotMeasurable && !kept.contains(&index);
            if is_open && self.out.dropped[index].is_none() {
                self.out.dropped[index] = Some(Why::NotRunAgain { runs });
            }
        }
    }

    /// Returns whether the rest of the budget is enough for confirmation runs of some candidates.
    fn is_affordable(&self, winners: &[usize]) -> bool {
        let some = self.needed_for(winners);
        let round: Duration =
            self.took[..2].iter().chain(some.iter().map(|i| &self.took[i + 2])).sum();
        // If candidates are dropped early, there is no verdict without confirmation rounds. The
        // first confirmed candidates therefore need no spare time.
        let is_needed = winners.len() <= self.needed_winners();
        let spare = if self.races && is_needed { 0 } else { FRESH_SPARE };
        let rounds = rounds_needed(winners.len()) + spare;
        self.elapsed() + round * rounds as u32 <= self.plan.budget
    }

    /// Runs each column once, in random order.
    fn round(&mut self) -> Result<(), Stop> {
        let mut order: Vec<usize> =
            (0..2).chain(self.out.running().iter().map(|i| i + 2)).collect();
        self.rng.shuffle(&mut order);
        let mut figures = vec![None; self.candidates.len() + 2];
        for column in order {
            let run = self.run(column, false);
            figures[column] = match column {
                0 | 1 => {
                    let run = run?;
                    if let Some(difference) = self.difference(&run) {
                        return Err(Stop::Failed(varies(&difference)));
                    }
                    Some(run.figures)
                }
                _ => self.accept(column - 2, run)?,
            };
        }
        for (column, figures) in figures.into_iter().enumerate() {
            let is_over =
                |i: usize| self.out.dropped[i].is_some() || self.out.left_out[i].is_some();
            if column < 2 || !is_over(column - 2) {
                self.out.columns[column].push(figures.unwrap_or_default());
            }
        }
        Ok(())
    }

    fn run(&mut self, column: usize, watches: bool) -> Result<Run, Stop> {
        let subject = if column < 2 { self.base } else { &self.candidates[column - 2] };
        let limit = self.patience();
        let padding = self.rng.usize(..PADDING_MAX);
        let run = self.runner.run(subject, Turn { padding, limit, watches })?;
        self.took[column] = run.took;
        Ok(run)
    }

    /// Returns the time after which a run is killed.
    fn patience(&self) -> Duration {
        self.plan.timeout.unwrap_or((self.first.took * PATIENCE).max(PATIENCE_MIN))
    }

    /// Returns the figures of a candidate's run. If the run failed or its output differs, records
    /// that the candidate breaks the program, and returns `None`.
    fn accept(&mut self, index: usize, run: Result<Run, Stop>) -> Result<Option<Figures>, Stop> {
        let why = match run {
            Ok(run) if run.seen == Seen::No => {
                "its library was not loaded into the program".to_string()
            }
            Ok(run) => match self.difference(&run) {
                None => return Ok(Some(run.figures)),
                Some(difference) => difference,
            },
            Err(Stop::TooLong) => format!(
                "it hangs: a run was killed after {}, and the first one took {}",
                shown(self.patience()),
                shown(self.first.took)
            ),
            Err(Stop::Broken(how) | Stop::LoadHangs(how)) => how,
            Err(stop) => return Err(stop),
        };
        self.out.broken[index] = Some(why);
        Ok(None)
    }

    /// Describes how a run differs from the first run of the base. Returns `None` if there is no
    /// difference.
    fn difference(&self, run: &Run) -> Option<String> {
        let first = &self.first;
        if is_crash(run.status) && !is_crash(first.status) {
            return Some(ending(run.status, &run.output));
        }
        if self.plan.ignores_output {
            return None;
        }
        if run.status != first.status {
            let now = ending(run.status, &run.output);
            return Some(format!(
                "{now}, instead of {}",
                ending(first.status, &Default::default())
            ));
        }
        outputs::difference(&first.output, &run.output)
    }

    fn round_time(&self) -> Duration {
        let running = self.out.running();
        self.took[..2].iter().chain(running.iter().map(|i| &self.took[i + 2])).sum()
    }

    fn elapsed(&self) -> Duration {
        self.runner.elapsed(self.begin)
    }

    fn say(&self, text: &str) {
        if let Some(progress) = &self.plan.progress {
            progress.say(text);
        }
    }

    fn say_rest(&self) {
        let rest = self.plan.budget.saturating_sub(self.elapsed());
        let known = match self.known {
            Some(width) => format!(", known within ±{:.1} %", width * 100.0),
            None => String::new(),
        };
        self.say(&format!(
            "round {} with {} runs, at most {} left{known}",
            self.out.rounds() + 1,
            self.out.running().len() + 2,
            shown(rest)
        ));
    }
}

fn is_crash(status: i32) -> bool {
    nix::libc::WIFSIGNALED(status)
}

/// Formats a time for a message.
pub fn shown(duration: Duration) -> String {
    time(duration.as_nanos() as f64)
}

/// Returns the error for a program that exceeds its time limit.
fn too_long(plan: &Plan) -> Failure {
    let (what, help) = match plan.timeout.filter(|timeout| *timeout <= plan.budget) {
        Some(timeout) => (
            format!("the program did not end within {}, the time of --timeout", shown(timeout)),
            "a longer --timeout, or less work; for a server, --load CMD",
        ),
        None => (
            format!("one run takes longer than the budget of {}", shown(plan.budget)),
            "--budget with about 20 times the time of one run, or less work; for a server, --load CMD",
        ),
    };
    let state = "the program was killed, and nothing was measured";
    Failure::new(what, state, help).with_status(MALLARD_FAILED)
}

fn base_fails(how: &str) -> Failure {
    let what = format!("the program fails under its own malloc: {how}");
    Failure::new(what, "nothing was compared", "run it without mallard to see the error")
        .with_status(MALLARD_FAILED)
}

/// Returns the error for a load that exceeds its time limit while the program runs under the base's
/// malloc.
fn load_hangs(how: String) -> Failure {
    let state = "the program was killed, and nothing was compared";
    Failure::new(how, state, WAITING_LOAD).with_status(MALLARD_FAILED)
}

fn varies(difference: &str) -> Failure {
    let what = format!("two runs under the same malloc differ: {difference}");
    let state =
        "the measurement was stopped, because a malloc that breaks the program could not be detected";
    let help = "--ignore-output, if the program prints times or random numbers";
    Failure::new(what, state, help).with_status(MALLARD_FAILED)
}
