//! The command `mallard`, which finds out which allocator a program should use, and how much the
//! program would save.
//!
//! Each subcommand is a separate module with a type that clap parses and that has `run(self) ->
//! Result<ExitCode, Failure>`. A new subcommand needs the module and one line in `commands!` below.
//! `mallard_measure` runs and compares programs, `mallard_trace` reads and writes recordings, and
//! `mallard_page` makes HTML pages.
#![deny(missing_docs, unsafe_code)]

mod advise;
mod completions;
mod diff;
mod doctor;
mod export;
mod growth;
mod import;
mod look;
mod output;
mod plan;
mod query;
mod record;
mod replay;
mod report;
mod top;
mod trial;

use clap::{Parser, Subcommand};
use mallard_measure::error::Failure;
use mallard_measure::{command, mallocs};
use std::process::ExitCode;

/// Declares the subcommands of `mallard`, each with its attributes, its variant and its type.
macro_rules! commands {
    ($($(#[$meta:meta])* $variant:ident($command:ty),)*) => {
        #[derive(Subcommand)]
        enum Subcommands {
            $($(#[$meta])* $variant($command),)*
        }

        impl Subcommands {
            fn run(self) -> Result<ExitCode, Failure> {
                match self {
                    $(Subcommands::$variant(command) => command.run(),)*
                }
            }
        }
    };
}

commands! {
    Try(trial::Try),
    Verify(trial::Verify),
    Run(plan::run::Run),
    Plan(plan::Command),
    #[command(hide = true)]
    WhoseMalloc(mallocs::probe::WhoseMalloc),
    Record(growth::Command),
    Top(top::Command),
    Stats(look::stats::Command),
    Sites(look::sites::Command),
    Diff(diff::Command),
    Report(report::Command),
    Advise(advise::Command),
    Replay(replay::Command),
    Import(import::Command),
    Query(query::Command),
    Export(export::Command),
    Doctor(doctor::Command),
    Completions(completions::Completions),
    #[command(hide = true)]
    Pages(completions::Pages),
}

/// Finds out which allocator a program should use, and how much the program would gain.
#[derive(Parser)]
#[command(name = "mallard", version, disable_help_subcommand = true, max_term_width = 80)]
struct Mallard {
    #[command(subcommand)]
    command: Subcommands,
}

fn main() -> ExitCode {
    command::start(|mallard: Mallard| mallard.command.run())
}
