//! Implements `mallard replay --write FILE`, which writes an op stream to a file. The command
//! `mallard-replay` alone can then replay the file.

use super::Command;
use mallard_measure::error::Failure;
use mallard_measure::output::shell::quoted_path;
use mallard_measure::output::terminal::say;
use mallard_measure::output::units::{bytes, plural};
use mallard_trace::replay::{compile, Plan};
use mallard_trace::Trace;
use std::path::Path;
use std::process::ExitCode;

impl Command {
    /// Writes the op stream of the only plan or strategy, or of the recorded calls.
    pub(super) fn write_stream(&self, trace: &Trace, to: &Path) -> Result<ExitCode, Failure> {
        let compiled = compile(trace, &self.only_plan()?, &self.compiling.options(), to)?;
        let mut text = format!(
            "{}: {} of {}, at most {} in use\n",
            to.display(),
            plural(compiled.calls, "call"),
            plural(u64::from(compiled.threads), "thread"),
            bytes(compiled.live_peak)
        );
        if !self.timing.quiet {
            text.extend(compiled.validity.iter().map(|v| format!("  note: {v}\n")));
        }
        say(&format!("{text}  next: mallard-replay {}\n", quoted_path(to)))?;
        Ok(ExitCode::SUCCESS)
    }

    /// Returns the plan that the user has named, by its file or by a strategy.
    fn only_plan(&self) -> Result<Plan, Failure> {
        let mut strategies = self.strategies();
        match (self.plan.as_slice(), strategies.next(), strategies.next()) {
            ([], None, _) => Ok(Plan::default()),
            ([], Some(strategy), None) => Ok(Plan::of_strategy(strategy)),
            ([file], None, _) => Ok(Plan::read(file)?),
            _ => Err(Failure::new(
                "--write takes one plan or one strategy, because an op stream has the calls of only one",
                "nothing was written",
                "mallard replay NAME --plan FILE --write FILE",
            )),
        }
    }
}
