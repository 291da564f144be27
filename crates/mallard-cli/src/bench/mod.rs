//! `mallard bench`: rows of benchmarks as answers.

mod compare;
mod experiment;
mod layout;
mod natural;
mod noise;
mod place;
mod published;
mod row;
mod show;
mod strategy;
mod table;
mod terminal;

use crate::error::Failure;
use std::process::ExitCode;

/// The commands over rows.
#[derive(clap::Subcommand)]
pub enum Command {
    Show(show::Show),
    Compare(compare::Compare),
}

/// Runs one; its status.
pub fn run(command: Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Show(show) => show.run(),
        Command::Compare(compare) => compare.run(),
    }
}
