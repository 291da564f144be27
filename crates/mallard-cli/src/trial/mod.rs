//! Implements `mallard try` and `mallard verify`, which add the findings of a recording to their
//! reports.

mod kept;

use crate::plan::must_fit;
use crate::record::{names, shares};
use crate::replay;
use kept::Advised;
use mallard_measure::comparison::{self, verify, Report};
use mallard_measure::error::Failure;
use mallard_measure::process::find_program;
use mallard_trace::Trace;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;

/// The command that shows where a program allocates.
const RECORD: &str = "mallard record --";

/// The budget of a replay is the budget of the trial divided by this number.
const REPLAY_PART: u32 = 4;

// Clap shows the doc comment of `comparison::Command` as the description of the command.
#[derive(clap::Args)]
pub struct Try {
    #[command(flatten)]
    command: comparison::Command,
    /// A recording of the program. The recording shows how much CPU time any allocator could save
    /// at most. The recording is also replayed, which takes an additional quarter of the budget,
    /// to find out which share of the measured savings a replay predicts.
    #[arg(long, value_name = "NAME")]
    trace: Option<PathBuf>,
}

impl Try {
    /// Measures, and prints the result.
    pub fn run(self) -> Result<ExitCode, Failure> {
        let open = |name: &PathBuf| Trace::open(&names::trace_of(name));
        let trace = self.trace.as_ref().map(open).transpose()?;
        let misfits = self.misfits()?;
        self.command.run(RECORD, |command, report| {
            let note = |library| {
                format!("{library} is another build than that of the plan, so malloc serves its call stacks")
            };
            report.notes.extend(misfits.into_iter().map(note));
            if let Some(trace) = trace {
                compare_with(&trace, command, report);
            }
        })
    }

    /// Rejects a plan that is corrupt or that belongs to another build of the program. Returns the
    /// libraries that differ in their build from those of the plan.
    fn misfits(&self) -> Result<BTreeSet<String>, Failure> {
        match (&self.command.plan, self.command.program()) {
            (Some(file), [program, ..]) => {
                must_fit(file, &find_program(program, "mallard try --")?)
            }
            _ => Ok(BTreeSet::new()),
        }
    }
}

/// Adds what a recording shows about the measured savings.
fn compare_with(trace: &Trace, command: &comparison::Command, report: &mut Report) {
    // The load of a server may differ from the recorded load, so its CPU time is not used.
    let cpu_ns = Some(report.measured.median_of_all(0, |figures| figures.cpu_ns));
    let cpu_ns = cpu_ns.filter(|ns| *ns > 0.0 && !command.options.is_server());
    match shares(trace.manifest(), cpu_ns) {
        Ok(shares) => report.bound = Some(shares.calls + shares.faults),
        Err(why) => report.notes.extend(why.map(unknown_bound)),
    }
    if !report.measured.interrupted {
        let timing = &command.options.timing;
        let budget = timing.budget() / REPLAY_PART;
        match replay::savings(trace, &command.allocator, budget, timing.quiet) {
            Ok(savings) => report.explain(&savings.of, savings.program_ns),
            Err(why) => report.notes.push(format!("nothing was replayed: {}", why.what())),
        }
    }
}

/// Returns a note that the recording does not show how much CPU time a malloc can save at most.
fn unknown_bound(why: String) -> String {
    format!("the recording does not show how much CPU time a malloc can save at most: {why}")
}

// Clap shows the doc comment of `verify::Command` as the description of the command.
#[derive(clap::Args)]
pub struct Verify {
    #[command(flatten)]
    command: verify::Command,
    /// The trace whose advice AFTER implements. A note says whether the measured saving is in the
    /// predicted interval. The result is stored in the trace, and `mallard report` shows it next to
    /// the prediction.
    #[arg(long, value_name = "NAME")]
    trace: Option<PathBuf>,
    /// The recommendation that AFTER implements: 1 is the first that `mallard advise` printed.
    #[arg(long, value_name = "NUMBER", default_value_t = 1, requires = "trace")]
    card: usize,
}

impl Verify {
    /// Measures, and prints the result.
    pub fn run(self) -> Result<ExitCode, Failure> {
        let advised = self.trace.as_deref().map(|name| Advised::of(name, self.card)).transpose()?;
        let compared = self.command.run(RECORD, |report| {
            let beside = |advised: &Advised| advised.beside(&report.json()["candidates"][0]["cpu"]);
            let note = advised.as_ref().map(beside);
            report.notes.extend(note);
        })?;
        if let Some(advised) = advised {
            advised.keep(&compared.before, &compared.after, &compared.result)?;
        }
        Ok(compared.status)
    }
}
