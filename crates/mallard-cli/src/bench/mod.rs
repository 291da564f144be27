//! `mallard bench`: rows of benchmarks as answers.

mod answer;
mod charts;
mod compare;
mod conditions;
mod experiment;
mod history;
mod html;
mod layout;
mod like;
mod markdown;
mod natural;
mod noise;
mod place;
mod published;
mod report;
mod row;
mod sections;
mod show;
mod strategy;
mod table;
mod terminal;

use crate::error::Failure;
use std::process::ExitCode;

/// The commands over rows.
#[derive(clap::Subcommand)]
pub enum Command {
    Report(report::Report),
    Show(show::Show),
    Compare(compare::Compare),
}

/// Runs one; its status.
pub fn run(command: Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Report(report) => report.run(),
        Command::Show(show) => show.run(),
        Command::Compare(compare) => compare.run(),
    }
}
