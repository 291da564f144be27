//! `mallard bench`: compares rows of benchmarks and reports them.

mod compare;
mod report;
mod show;

use crate::error::Failure;
use std::process::ExitCode;

/// The subcommands of `mallard bench`.
#[derive(clap::Subcommand)]
pub enum Command {
    Report(report::Report),
    Show(show::Show),
    Compare(compare::Compare),
}

impl Command {
    /// Runs the subcommand and returns its exit status.
    pub fn run(self) -> Result<ExitCode, Failure> {
        match self {
            Command::Report(report) => report.run(),
            Command::Show(show) => show.run(),
            Command::Compare(compare) => compare.run(),
        }
    }
}
