//! Implements `mallard diff`, which prints the changes from one trace to another.

mod gate;
mod metrics;
mod notes;
mod report;
mod sites;

use crate::look::open;
use gate::Gate;
use mallard_measure::error::status::UNREADABLE;
use mallard_measure::error::Failure;
use mallard_measure::output::shell::quoted_path;
use mallard_measure::output::terminal::{say, write};
use mallard_trace::Trace;
use metrics::{of_program, Metric};
use report::{Difference, Shown};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The exit status if a gate fails.
const GATE_FAILED: u8 = 1;

/// Compares two traces, and lists which call stacks are new, gone, grown or shrunk.
///
/// Call stacks are the same if their functions and modules have the same names. The exit status is 1
/// if a gate fails, so that a build can stop.
#[derive(clap::Args)]
pub struct Command {
    /// The trace before a change.
    #[arg(value_name = "BEFORE")]
    before: PathBuf,
    /// The trace after the change.
    #[arg(value_name = "AFTER")]
    after: PathBuf,
    /// Fails if a figure of the program changes more than this limit, such as 'peak<+5%', 'leaked<=+0'
    /// or 'rss<+2MiB'. The figures are bytes, blocks, peak, leaked, calls, rss and time. May be given
    /// several times.
    #[arg(long = "gate", value_name = "GATE")]
    gates: Vec<String>,
    /// What the list is ordered by, the largest change first.
    #[arg(long, value_enum, default_value = "bytes")]
    sort: Metric,
    /// How many call stacks are listed; 0 for all.
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
    /// How many functions of each call stack are listed; 0 for all.
    #[arg(long, value_name = "N", default_value_t = 4)]
    depth: usize,
    /// Also lists functions that only pass an allocation on, and shows names in full.
    #[arg(long)]
    full: bool,
    /// Writes one JSON object.
    #[arg(long)]
    json: bool,
}

impl Command {
    /// Prints the differences and checks the gates.
    pub fn run(self) -> Result<ExitCode, Failure> {
        let gates = self.gates.iter().map(|text| parsed(text)).collect::<Result<Vec<_>, _>>()?;
        let (before, after) = (open(&self.before)?, open(&self.after)?);
        for gate in &gates {
            must_have(&before, &self.before, gate)?;
            must_have(&after, &self.after, gate)?;
        }
        let difference = Difference {
            sites: report::ordered(sites::matched(&before, &after)?, self.sort),
            notes: notes::of(before.manifest(), after.manifest()),
            gates,
            before,
            after,
        };
        let shown = Shown { sort: self.sort, top: self.top, depth: self.depth, is_full: self.full };
        if self.json {
            write(&format!("{}\n", difference.json(&shown)))?;
        } else {
            say(&difference.text(&shown))?;
        }
        match difference.failed() {
            None => Ok(ExitCode::SUCCESS),
            Some(failed) => {
                let help = format!(
                    "mallard diff {} {} --sort {} --top 40, which lists what has changed",
                    quoted_path(&self.before),
                    quoted_path(&self.after),
                    failed.sort
                );
                let state = "both traces are unchanged";
                Err(Failure::new(failed.what, state, help).with_status(GATE_FAILED))
            }
        }
    }
}

fn parsed(text: &str) -> Result<Gate, Failure> {
    text.parse().map_err(|why| {
        let what = format!("'{text}' is not a valid gate: {why}");
        Failure::new(what, "nothing was compared", "mallard diff --help")
    })
}

/// Returns an error if a trace lacks the number of a gate, because such a gate can neither pass nor
/// fail.
fn must_have(trace: &Trace, name: &Path, gate: &Gate) -> Result<(), Failure> {
    if of_program(trace.manifest(), gate.metric).is_some() {
        return Ok(());
    }
    let what = format!(
        "{} does not contain {}, so gate {gate} cannot be checked",
        name.display(),
        gate.metric.name()
    );
    let help = "record the program again: mallard record -o NAME -- PROGRAM";
    Err(Failure::new(what, "nothing was compared", help).with_status(UNREADABLE))
}
