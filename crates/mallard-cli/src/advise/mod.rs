//! `mallard advise` recommends an allocator. It prints which allocator to use, in which part of the
//! program, how much it saves, and the measurements that show the saving.
//!
//! The command works in four steps. Each step makes a new value from the value of the step before,
//! and changes no earlier value:
//!
//! 1. [`facts`]: what the recording shows. `facts::read` reads the trace, and `facts::baseline`
//!    adds the CPU time of runs without the recorder.
//! 2. [`proposals`]: what to measure. `rules` propose plans. Plans and mallocs that cannot save
//!    enough are dropped.
//! 3. [`measured`]: what measurements show. `screening` chooses plans. `race` runs the program with
//!    these plans and under other mallocs, and runs the best plan also against its control. `runs`
//!    has the code for these runs. `in_program` adds what only a change of the source can save.
//!    `replays` measures plans that cannot be applied in the program. `ranking` orders these plans
//!    in case the budget is too small for all. `preparation` compiles the recorded calls for
//!    `screening` and `replays`. If runs of the program are too long for a race, `trial` runs the
//!    program under a few mallocs. `second_recording` records the program again before wink-out is
//!    recommended. `force` replays a strategy that the user asks for.
//! 4. [`card`]: what is recommended. `card::advice` decides, and the other modules of `card` write
//!    the text. `code` has the code for each change.
//!
//! `reason` has all reasons, doubts and notes as values, and `words` turns them into sentences.
//! `show` prints the result, and `sarif` writes cards for code review tools. `options` has the
//! options of the user, and repeats them in the commands that cards propose. `budget` limits the
//! time of the steps, and `stages` records the time and the memory of each step.

mod budget;
mod candidate;
pub mod card;
mod code;
mod facts;
mod force;
mod in_program;
#[cfg(test)]
mod keys;
mod measured;
mod options;
mod preparation;
mod proposals;
mod race;
mod ranking;
mod reason;
mod replays;
pub mod rules;
mod runs;
pub mod sarif;
mod screening;
mod second_recording;
mod show;
mod stages;
mod trial;
mod words;

use crate::look;
use crate::record::{self, own_allocator};
use budget::{Budget, MOST, PLANS_MAX};
use facts::{baseline, read, region, Facts};
use in_program::Plans;
use mallard_measure::clock::Moment;
use mallard_measure::error::status::USAGE;
use mallard_measure::error::{tell, Failure};
use mallard_measure::mallocs::Allocator;
use mallard_measure::output::units::{plural, time};
use mallard_measure::process::find_program;
use mallard_measure::process::installed::PLAN;
use mallard_measure::process::launch::{Out, Streams};
use mallard_measure::process::starter;
use mallard_measure::rounds::host::Host;
use mallard_measure::rounds::subject::Runner;
use mallard_measure::rounds::timing::{interrupt, interrupted, Timing};
use mallard_trace::Trace;
use measured::Measured;
use options::Options;
use proposals::{proposals, Proposal};
use reason::{NoSecond, Note};
use runs::Runs;
use second_recording::Again;
use show::Output;
use stages::Stages;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering;

/// The help text of --budget.
const BUDGET: &str = "The time limit for everything after the first recording of PROG, including \
    a second recording. By default the time of 150 runs of PROG, but at least 30 s \
    and at most 5 min";

/// Advises which allocator a program should use, where, and what the program would gain.
///
/// Reads a recording, or records PROG first, then looks for functions and data structures that
/// could have a separate allocator, and runs the unchanged PROG with such allocators, and under
/// other mallocs. If PROG cannot run again, replays of the recording estimate the savings. PROG may
/// run many times, as under `mallard try`. Most programs should keep the allocator that they have:
/// then the advice is to leave it, with the largest saving that is possible. The advice is also
/// stored in the directory of the trace, as advice.json, unless earlier advice there is more
/// conclusive.
#[derive(clap::Args)]
#[command(mut_arg("budget", |arg| arg.help(BUDGET)))]
#[command(override_usage = "mallard advise [OPTIONS] <NAME>\n       \
                            mallard advise [OPTIONS] -- <PROG ARGS>...\n       \
                            mallard advise [OPTIONS] --pid <PID> [--for <TIME>]")]
pub struct Command {
    /// The trace.
    #[arg(
        value_name = "NAME",
        required_unless_present_any = ["program", "pid"],
        conflicts_with_all = ["program", "pid"]
    )]
    name: Option<PathBuf>,
    /// The trace to write if PROG or a process is recorded. By default it has the name of the program, with
    /// a number if there is one already.
    #[arg(short = 'o', long = "output", value_name = "NAME", conflicts_with = "name")]
    output: Option<PathBuf>,
    /// Records the running process with this ID, for the time of --for or until Ctrl-C, and then
    /// advises. Afterwards, the process runs on as before. Its program is not run again, so replays
    /// of the recorded calls estimate the savings.
    #[arg(
        short = 'p',
        long,
        value_name = "PID",
        value_parser = clap::value_parser!(u32).range(1..),
        group = record::WORK,
        conflicts_with_all = ["program", "load", "timeout", "follow", "setup", "stdin", "ignore_output", "again"]
    )]
    pid: Option<u32>,
    #[command(flatten)]
    options: Options,
    /// The program to record, and its arguments.
    #[arg(last = true, value_name = "PROG ARGS")]
    program: Vec<OsString>,
}

impl Command {
    /// Records the program if necessary, measures, and prints the advice.
    pub fn run(mut self) -> Result<ExitCode, Failure> {
        // `prepare` fixes the directory in which programs start, so `open` must change the
        // directory before that.
        let named = self.name.clone().map(|name| self.open(&name)).transpose()?;
        starter::prepare();
        if let Some(program) = self.program.first() {
            find_program(program, "mallard advise --")?;
            self.options.conditions = self.options.conditions.with_stdin()?;
        }
        // Return an error before the program runs if the trace that --again names is unreadable.
        self.options.again.as_deref().map(look::open).transpose()?;
        let mut stages = Stages::default();
        let begin = Moment::now();
        let recorded = stages.time("record", || self.record())?;
        let mut trace = match (named, &recorded) {
            (Some(trace), _) => trace,
            (None, Some(recorded)) => look::open(&recorded.trace)?,
            (None, None) => {
                let (what, help) =
                    ("you named neither a trace nor a program", "mallard advise -- PROG ARGS");
                return Err(Failure::new(what, "nothing was done", help).with_status(USAGE));
            }
        };
        if recorded.is_none() {
            trace = self.options.debuginfod.name(trace);
        }
        let recorded_stdin = record::recorded::path(&trace.manifest().notes.stdin);
        self.options.conditions.stdin = self.options.conditions.stdin.or(recorded_stdin);
        self.options.work = std::mem::take(&mut self.options.work).or_as_recorded(trace.manifest());
        let runner = self.options.timing.runner()?;
        if let Some(recorded) = &recorded {
            // From here on, a signal stops the measurement, and mallard still prints the results so
            // far.
            recorded.ends_by_signals.store(false, Ordering::Relaxed);
            // The user ends the recording of a running process by Ctrl-C.
            if let Some(signal) = recorded.interrupted_by.filter(|_| self.pid.is_none()) {
                interrupt(&runner, signal);
            }
        }
        let Timing { budget: of_user, quiet, .. } = self.options.timing;
        let budget = Budget::begin(of_user.unwrap_or(MOST), runner, quiet);
        let mut host = Host::now();
        let read = || {
            let _step = budget.step("looking for regions");
            read::facts(&trace, &self.options, &self.program)
        };
        let looks = Moment::now();
        let facts = stages.time("regions", read)?;
        let recorded_in = recorded.as_ref().map(|_| begin.elapsed());
        let mut facts = Facts { recorded_in, looked_for: looks.elapsed(), ..facts };
        let is_stopped = budget.is_interrupted();
        let measures = self.options.force.is_none() && !is_stopped;
        let other = self.options.again.as_ref().filter(|_| measures);
        let other = other
            .map(|name| {
                let other = second_recording::open(&trace, name)?;
                Ok::<_, Failure>(self.options.debuginfod.name(other))
            })
            .transpose()?;
        let words = match self.program.is_empty() {
            false => Some(self.program.clone()),
            true => record::recorded::words(trace.manifest()),
        };
        let runner = self.runner(budget.runner.clone());
        let ignores_output = self.options.conditions.ignore_output;
        let runs = words.as_ref().map(|words| Runs { words, runner: &runner, ignores_output });
        if let (Some(runs), true) = (&runs, measures) {
            facts = stages.time("cpu", || baseline::measured(&trace, facts, runs, &budget));
        }
        let budget = match of_user {
            Some(_) => budget,
            None => budget.of_runs(facts.program.run_takes),
        };
        let begun = Measured::begin(facts);
        let measured = if is_stopped {
            let of_recording = recorded.as_ref().filter(|_| self.pid.is_none());
            let of_recording = of_recording.and_then(|recorded| recorded.interrupted_by);
            let note = of_recording.map_or(Note::NothingMeasured, |_| Note::RecordingInterrupted);
            begun.and(Measured { notes: vec![note], ..begun.nothing() })
        } else if let Some(strategy) = self.options.force {
            let timing = self.options.timing.part(budget.left());
            let of_user = self.options.region.as_ref();
            let of_region = of_user.and_then(|_| region::truest(&begun.facts.regions));
            let force =
                || force::force(&trace, &begun, strategy, of_region, &budget.runner, &timing);
            begun.and(stages.time("force", force)?)
        } else {
            self.measure(&trace, begun, other, runs, &budget, &mut stages)?
        };
        let end = Measured {
            notes: host.notes().into_iter().map(Note::Said).collect(),
            interrupted: budget.is_interrupted(),
            ..measured.nothing()
        };
        let measured = measured.and(end);
        let proposed = budget.proposed(&measured);
        let measured = Measured { proposed, ..measured };
        let mut output = Output::new(&measured, &budget, &stages);
        output.save(trace.folder(), &mut std::io::stderr());
        output.show(&self.options.timing, self.options.sarif)?;
        Ok(match measured.interrupted {
            true => interrupted(),
            false => ExitCode::SUCCESS,
        })
    }

    /// Opens a trace, and changes to the directory in which the program was recorded. Also makes
    /// the file names that the user typed absolute, because they are relative to the previous
    /// working directory.
    fn open(&mut self, name: &Path) -> Result<Trace, Failure> {
        let here = std::env::current_dir().unwrap_or_default();
        let trace = look::open(name)?;
        self.options.folder = read::return_to(trace.manifest());
        if self.options.folder.is_none() {
            return Ok(trace);
        }
        for name in
            [&mut self.options.again, &mut self.options.conditions.stdin].into_iter().flatten()
        {
            *name = here.join(&*name);
        }
        look::open(&here.join(name))
    }

    /// Adds the conditions of the user, and the load of a server, to a runner.
    fn runner(&self, plain: Runner) -> Runner {
        Runner {
            load: self.options.work.load.clone(),
            repeated_for: self.options.work.repeated_for,
            ..self.options.conditions.runner(plain)
        }
    }

    /// Records the program or the process, if the user named one.
    fn record(&self) -> Result<Option<record::Recorded>, Failure> {
        if let Some(process) = self.pid {
            return self.record_running(process).map(Some);
        }
        if self.program.is_empty() {
            return Ok(None);
        }
        self.options.conditions.set_up(Runner::default())?;
        let is_read_by_programs = self.options.timing.json || self.options.sarif;
        let streams = Streams {
            stdin: self.options.conditions.stdin_of_recording(),
            // With --json or --sarif, stdout has only the result of this command, so the program
            // writes to stderr.
            out: if is_read_by_programs { Out::Stderr } else { Out::Same },
        };
        let output = self.output.clone();
        let command = record::Command::of(
            &self.program,
            output,
            &self.options.follow,
            &self.options.work,
            streams,
            self.options.debuginfod,
        );
        Ok(Some(command.record()?.1))
    }

    /// Records a process that runs already.
    fn record_running(&self, process: u32) -> Result<record::Recorded, Failure> {
        let (output, work) = (self.output.clone(), &self.options.work);
        let debuginfod = self.options.debuginfod;
        let quiet = self.options.timing.quiet;
        let command = record::Command::of_process(process, output, work, debuginfod, quiet);
        Ok(command.record()?.1)
    }

    /// Prints how many runs the budget allows, for a user who waits.
    fn say_what_budget_allows(&self, all: &Measured, mallocs: usize, budget: &Budget) {
        let Some(run) = all.facts.program.run_takes.filter(|_| !self.options.timing.quiet) else {
            return;
        };
        let runs = budget.left().as_secs_f64() / run.as_secs_f64().max(1e-3);
        tell(format!(
            "mallard: a run of {} takes {}, so the budget allows about {}, divided among {} or settings \
             and at most {}",
            all.facts.program.name,
            time(run.as_nanos() as f64),
            plural(runs as u64, "run"),
            plural(mallocs as u64, "malloc"),
            plural(PLANS_MAX as u64, "plan")
        ));
    }

    /// Chooses the plans with which the program will run, and compiles these plans. Returns `None`
    /// if no plan can be applied.
    fn plans(
        &self,
        trace: &Trace,
        former: &Measured,
        (plans, mallocs): (&[Proposal], &[Allocator]),
        runs: &Runs,
        budget: &Budget,
    ) -> Result<Option<(Measured, Plans)>, Failure> {
        if plans.is_empty() || PLAN.find("").is_err() {
            return Ok(None);
        }
        let run = former.facts.program.run_takes;
        let most = race::plans_with_time(run, mallocs, budget.left());
        let screened = screening::screen(trace, former, plans, most, budget)?;
        let compiled = Plans::compile(trace, screened.groups, runs);
        Ok(compiled.map(|plans| (screened.found, plans)))
    }

    /// Measures the proposed plans and mallocs in runs of the program if that is possible, and
    /// otherwise by replays.
    fn measure(
        &self,
        trace: &Trace,
        begun: Measured,
        other: Option<Trace>,
        runs: Option<Runs>,
        budget: &Budget,
        stages: &mut Stages,
    ) -> Result<Measured, Failure> {
        if begun.facts.is_broken || own_allocator(trace.manifest()).is_some() {
            return Ok(begun);
        }
        let timing = &self.options.timing;
        let proposals = proposals(&begun.facts);
        let (plans, mallocs) = (&proposals.plans, &proposals.mallocs);
        let mut all = begun.and(begun.of_proposals(&proposals));
        self.say_what_budget_allows(&all, proposals.mallocs.len(), budget);
        let applied = match runs.as_ref().filter(|_| all.cannot_run().is_none()) {
            Some(runs) => {
                let plan = || self.plans(trace, &all, (plans, mallocs), runs, budget);
                stages.time("screen", plan)?
            }
            None => None,
        };
        let (mut raced, mut is_settled) = (false, false);
        if let Some(runs) = &runs {
            let (subjects, time) = match &applied {
                Some((_, plans)) => {
                    (plans.subjects(), (false, plans.time_after_race(&all, budget)))
                }
                None => (Vec::new(), (!plans.is_empty(), race::Kept::default())),
            };
            let race = || race::race(&all, mallocs, &subjects, time, runs, budget, timing);
            let race = stages.time("race", race);
            (all, raced) = (all.and(race.found), race.has_run);
            // If the program did not run in a race, replays measure all plans, even the plans that
            // screening has dropped.
            if let Some((screened, plans)) = applied.filter(|_| raced) {
                all = all.and(screened);
                let settle = || plans.settle(&all, race.plans, trace, runs, budget);
                let found = stages.time("plans", settle);
                all = all.and(found);
                is_settled = true;
            }
        }
        let to_play = if raced { trial::left_open(&all, mallocs) } else { mallocs.clone() };
        // Plans with which the program ran need no replay.
        let to_replay: &[Proposal] = if is_settled { &[] } else { plans };
        let play = || replays::measure(trace, &all, to_replay, &to_play, budget, timing);
        let replays = stages.time("replay", play)?;
        all = all.and(replays.found);
        if let Some(other) = &other {
            all = all.and(second_recording::compare_with(other, &all)?);
        }
        if let Some(why) = all.cannot_run() {
            let why = NoSecond::NotRun(why.clone());
            return Ok(all.and(second_recording::leave_out(&all, why)));
        }
        let Some(runs) = runs else { return Ok(all) };
        let Options { conditions, follow, work, debuginfod, .. } = &self.options;
        let again = Again { words: runs.words, conditions, follow, work, debuginfod: *debuginfod };
        all = all.and(stages.time("again", || second_recording::check(&again, &all, budget))?);
        if !raced {
            let unplayed = &replays.unplayed;
            let run = || trial::try_mallocs(&all, mallocs, unplayed, &runs, budget, timing);
            all = all.and(stages.time("try", run));
        }
        Ok(all)
    }
}
