//! `mallard advise`: which allocator to use, where, what the program gains, and the proof.
//!
//! `evidence` has the types for everything that is known of a program. `gather` reads the trace,
//! `screen` drops candidates that cannot have a gain, and `measure` plays the others: a play is one
//! replay of the trace. `ranking` decides which of them come first if the budget is too small for all.
//! `bare` runs the program without the recorder, for its CPU time, `real` runs it under promising
//! mallocs, and `again` records it a second time before wink-out is advised. `force` plays a strategy
//! that the user asks for. `budget` limits the time of these steps.
//!
//! `rules` proposes plans that are worth a play. `card` makes the advice, and `code` the code of each
//! change. `show` prints the result, and `sarif` writes cards for tools of code review. `typed` repeats
//! the options of the user in the commands that cards propose. `stages` notes what each step cost.

mod again;
mod bare;
mod budget;
pub mod card;
mod code;
pub mod evidence;
mod force;
mod gather;
#[cfg(test)]
mod keys;
mod measure;
mod ranking;
mod real;
pub mod rules;
pub mod sarif;
mod screen;
mod show;
mod stages;
mod typed;

use crate::error::status::USAGE;
use crate::error::Failure;
use crate::look;
use crate::output::shell::quoted;
use crate::record::{
    self, find_program, follow, other_processes, part, unrecorded, Follow, Out, ServerWork, Streams,
};
use crate::starter;
use crate::trial::Conditions;
use crate::turns::host::Host;
use crate::turns::subject::Runner;
use crate::turns::timing::{interrupt, interrupted, Timing};
use again::Again;
use budget::Budget;
use evidence::Evidence;
use mallard_trace::replay::Strategy;
use mallard_trace::Trace;
use real::Runs;
use serde_json::Value;
use show::Advice;
use stages::Stages;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use typed::Typed;

/// The help for --budget.
const BUDGET: &str =
    "The time for all that follows the recording of PROG, a second recording included. \
    The first recording takes as long as PROG does, in addition";
/// If more than this share of the CPU time was not recorded, the recorded calls tell little.
const MOSTLY: f64 = 0.5;

/// Advises which allocator a program should use, where, and what the program would gain.
///
/// Reads a recording, or records PROG first, then looks for regions and structures that could have an
/// allocator of their own, plays them beside other mallocs, and runs the program itself where another
/// malloc is at stake. PROG may run many times, as under `mallard try`. Most programs should keep the
/// allocator that they have: then the advice is to leave it, with the largest saving that is
/// possible. The advice is also written into the folder of the trace, as advice.json, unless earlier
/// advice there decides more.
#[derive(clap::Args)]
#[command(mut_arg("budget", |arg| arg.default_value("2m").help(BUDGET)))]
#[command(override_usage = "mallard advise [OPTIONS] <NAME>\n       \
                            mallard advise [OPTIONS] -- <PROG ARGS>...")]
pub struct Command {
    /// The trace.
    #[arg(value_name = "NAME", required_unless_present = "program", conflicts_with = "program")]
    name: Option<PathBuf>,
    /// The trace to write if PROG is recorded. By default it has the name of the program, with a
    /// number if there is one already.
    #[arg(short = 'o', long = "output", value_name = "NAME", requires = "program")]
    output: Option<PathBuf>,
    /// Records processes that the program starts as well: by fork, or also by exec.
    #[arg(long, value_enum, value_delimiter = ',')]
    follow: Vec<Follow>,
    /// Looks at this function alone, however little it allocates.
    #[arg(long, value_name = "FUNCTION")]
    region: Option<String>,
    /// Plays this strategy, AS1 to AS14, whatever the evidence says, and names the blocks that would
    /// be used after their end: for the function of --region, or else for the whole program.
    #[arg(long, value_name = "STRATEGY", value_parser = strategy)]
    force: Option<Strategy>,
    /// Another recording of the program, with another input. A card advises a wink-out only
    /// if no block outlived its call there either. By default, the program is recorded again.
    #[arg(long, value_name = "NAME")]
    again: Option<PathBuf>,
    /// Does not run the program again.
    #[arg(long)]
    no_try: bool,
    /// Writes the cards in the format SARIF, which tools for reviews show beside the code.
    #[arg(long, conflicts_with = "json")]
    sarif: bool,
    #[command(flatten)]
    conditions: Conditions,
    #[command(flatten)]
    work: ServerWork,
    #[command(flatten)]
    timing: Timing,
    /// The program to record, and its arguments.
    #[arg(last = true, value_name = "PROG ARGS")]
    program: Vec<OsString>,
}

fn strategy(text: &str) -> Result<Strategy, String> {
    text.parse().map_err(|()| "a strategy is one of AS1 to AS14".to_string())
}

impl Command {
    /// Records if necessary, measures, and shows the advice.
    pub fn run(mut self) -> Result<ExitCode, Failure> {
        starter::prepare();
        if let Some(program) = self.program.first() {
            find_program(program, "mallard advise --")?;
            self.conditions = self.conditions.with_stdin()?;
        }
        // What --again names must be readable before the program runs.
        self.again.as_deref().map(look::open).transpose()?;
        let mut stages = Stages::default();
        let recorded = stages.time("record", || self.record())?;
        let name = recorded.as_ref().map(|recorded| &recorded.trace).or(self.name.as_ref());
        let Some(name) = name else {
            let help = "mallard advise -- PROG ARGS";
            return Err(Failure::new("no trace and no program is named", "nothing was done", help)
                .with_status(USAGE));
        };
        let trace = look::open(name)?;
        let recorded_stdin = trace.manifest().notes.get("stdin").and_then(Value::as_str);
        self.conditions.stdin = self.conditions.stdin.or(recorded_stdin.map(PathBuf::from));
        gather::restore_environment(trace.manifest());
        self.work = std::mem::take(&mut self.work).or_as_recorded(trace.manifest());
        let runner = self.timing.runner()?;
        if let Some(recorded) = &recorded {
            // From here on, a signal ends the measurement, and what was found is shown.
            recorded.ends_by_signals.store(false, Ordering::Relaxed);
            if let Some(signal) = recorded.interrupted_by {
                interrupt(&runner, signal);
            }
        }
        let budget = Budget::begin(self.timing.budget, runner, self.timing.quiet);
        let mut host = Host::now();
        let mut evidence = stages.time("regions", || self.evidence(&trace, &budget))?;
        if budget.is_interrupted() {
            let of_recording = recorded.as_ref().and_then(|recorded| recorded.interrupted_by);
            let note = match of_recording {
                Some(_) => "the recording was interrupted, and shows the run until then",
                None => "the command was interrupted before it measured anything",
            };
            evidence.notes.push(note.to_string());
        } else if let Some(strategy) = self.force {
            let timing = self.timing.part(budget.left());
            let region =
                self.region.as_ref().and_then(|_| force::truest(&evidence.regions)).cloned();
            let runner = &budget.runner;
            stages.time("force", || {
                force::force(&trace, &mut evidence, strategy, region.as_ref(), runner, &timing)
            })?;
        } else {
            self.measure(&trace, &mut evidence, &budget, &mut stages)?;
        }
        evidence.interrupted |= budget.is_interrupted();
        budget.propose(&mut evidence);
        evidence.notes.extend(host.notes());
        let mut advice = Advice::new(&evidence, &budget, &stages);
        advice.save(trace.folder(), &mut std::io::stderr());
        advice.show(&self.timing, self.sarif)?;
        Ok(match evidence.interrupted {
            true => interrupted(),
            false => ExitCode::SUCCESS,
        })
    }

    /// A runner of the program, with its load.
    fn runner(&self, plain: Runner) -> Runner {
        Runner {
            load: self.work.load.clone(),
            repeated_for: self.work.repeated_for,
            ..self.conditions.runner(plain)
        }
    }

    /// Records the program, if one is named.
    fn record(&self) -> Result<Option<record::Recorded>, Failure> {
        if self.program.is_empty() {
            return Ok(None);
        }
        self.conditions.set_up(Runner::default())?;
        let is_read_by_programs = self.timing.json || self.sarif;
        let streams = Streams {
            stdin: self.conditions.stdin_of_recording(),
            // The result of this command goes to stdout, so the program must not write there.
            out: if is_read_by_programs { Out::Stderr } else { Out::Same },
        };
        let output = self.output.clone();
        let command = record::Command::of(&self.program, output, &self.follow, &self.work, streams);
        Ok(Some(command.record()?.1))
    }

    /// Reads the evidence of the trace.
    fn evidence(&self, trace: &Trace, budget: &Budget) -> Result<Evidence, Failure> {
        let _step = budget.step("looking for regions");
        let mut evidence = gather::gather(trace, &self.work)?;
        evidence.min_gain = self.timing.min_gain;
        evidence.typed = Typed::of(self);
        let program = &mut evidence.program;
        if !self.program.is_empty() {
            let words = self.program.iter().map(|word| quoted(&word.to_string_lossy()));
            program.command = Some(words.collect::<Vec<_>>().join(" "));
            program.cannot_run = gather::crash(trace.manifest(), &self.work);
        }
        if self.no_try {
            program.cannot_run = Some("--no-try was given".to_string());
        }
        if let Some(function) = &self.region {
            evidence.regions = force::regions_of(trace, function)?;
        }
        if gather::crash(trace.manifest(), &self.work).is_some() {
            let doubt = "a signal ended the recorded run, which shows only the work until then";
            evidence.doubts.push(doubt.to_string());
        }
        evidence.doubts.extend(gather::other_processes(trace)?);
        if part(trace.manifest()).is_some() {
            self.miss_a_part(trace, &mut evidence);
        }
        Ok(evidence)
    }

    /// Notes that allocators may save something in the part of the run that was not recorded, and the
    /// command that records the whole run.
    fn miss_a_part(&self, trace: &Trace, evidence: &mut Evidence) {
        let manifest = trace.manifest();
        let others = other_processes(manifest, &evidence.program.name);
        let option = others.as_ref().and_then(|_| follow(manifest));
        evidence.is_mostly_missing = unrecorded(manifest).is_some_and(|share| share > MOSTLY);
        if let (Some(what), None) = (&others, option) {
            evidence.doubts.insert(0, what.clone()); // to record it again does not help
            return;
        }
        let follow = option.map_or(String::new(), |option| format!("{option} "));
        let program = evidence.program.command.as_deref().unwrap_or("PROG ARGS");
        let again = match self.program.is_empty() {
            true => {
                let load = evidence.typed.load();
                evidence.typed.run(&format!("mallard record {follow}{load}-- {program}"))
            }
            false => evidence.typed.advise("", &format!("{follow}-- {program}")),
        };
        let what = others.or_else(|| part(manifest)).unwrap_or_default();
        evidence.doubts.insert(0, format!("{what}; the whole run is recorded by {again}"));
        evidence.records_all = Some(again);
    }

    /// Plays what the rules propose, and runs the program itself where another malloc may help.
    fn measure(
        &self,
        trace: &Trace,
        evidence: &mut Evidence,
        budget: &Budget,
        stages: &mut Stages,
    ) -> Result<(), Failure> {
        let other = self.again.as_ref().map(|name| again::open(trace, name)).transpose()?;
        let words = match self.program.is_empty() {
            false => Some(self.program.clone()),
            true => gather::words(trace.manifest())
                .map(|words| words.into_iter().map(OsString::from).collect()),
        };
        let runner = self.runner(budget.runner.clone());
        let ignores_output = self.conditions.ignore_output;
        let runs = words.as_ref().map(|words| Runs { words, runner: &runner, ignores_output });
        if let Some(runs) = &runs {
            stages.time("cpu", || bare::measure_cpu(trace, evidence, runs, budget));
        }
        if evidence.is_broken {
            return Ok(());
        }
        let proposals = rules::plans(evidence);
        let play = || measure::measure(trace, evidence, proposals, budget, &self.timing);
        let unplayed = stages.time("replay", play)?;
        if let Some(other) = &other {
            again::compare_with(other, evidence)?;
        }
        if let Some(why) = evidence.program.cannot_run.clone() {
            let help = "--again names one that you make";
            again::leave_out(evidence, format!("the program was not run again ({why}): {help}"));
            return Ok(());
        }
        match runs {
            Some(runs) => {
                let again = || self.record_again(runs.words, evidence, budget);
                stages.time("again", again)?;
                let try_all =
                    || real::try_mallocs(evidence, &unplayed, &runs, budget, &self.timing);
                stages.time("try", try_all)
            }
            None => Ok(()),
        }
    }

    /// Records the program a second time if wink-out may help.
    fn record_again(
        &self,
        words: &[OsString],
        evidence: &mut Evidence,
        budget: &Budget,
    ) -> Result<(), Failure> {
        let (conditions, follow, work) = (&self.conditions, &self.follow, &self.work);
        again::check(&Again { words, conditions, follow, work }, evidence, budget)
    }
}
