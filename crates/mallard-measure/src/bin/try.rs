//! The command for `./x try`, with the subcommands of `mallard` that need no recording. `./x try`
//! builds it while the user waits, in a third of the time of the whole command.
#![deny(unsafe_code)]

use clap::{Parser, Subcommand};
use mallard_measure::mallocs::probe::WhoseMalloc;
use mallard_measure::{command, comparison};
use std::process::ExitCode;

/// The command that shows where a program allocates.
const RECORD: &str = "./x demo --";

/// Finds out which malloc a program should use, and how much the program would gain.
#[derive(Parser)]
#[command(name = "mallard", version, disable_help_subcommand = true, max_term_width = 80)]
struct Mallard {
    #[command(subcommand)]
    command: Subcommands,
}

#[derive(Subcommand)]
enum Subcommands {
    Try(comparison::Command),
    Verify(comparison::verify::Command),
    Run(comparison::run::Command),
    #[command(hide = true)]
    WhoseMalloc(WhoseMalloc),
}

fn main() -> ExitCode {
    command::start(|mallard: Mallard| match mallard.command {
        Subcommands::Try(command) => command.run(RECORD, |_, _| ()),
        Subcommands::Verify(command) => Ok(command.run(RECORD, |_| ())?.status),
        Subcommands::Run(command) => command.run(),
        Subcommands::WhoseMalloc(command) => command.run(),
    })
}
