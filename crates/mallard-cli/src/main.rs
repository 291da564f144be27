//! The command `mallard`: tells which allocator a program should use, and how much the program
//! would gain.
//!
//! Each subcommand is a separate module with a type that clap parses and that has
//! `run(self) -> Result<ExitCode, Failure>`. A new subcommand needs the module and one line in
//! `commands!` below. Shared pieces: `rows` (benchmark rows), `tables`, `statistics`, `output`
//! (terminal, Markdown, HTML) and `error`.
#![deny(missing_docs, unsafe_code)]
// Without recordings, parts of shared modules have no use.
#![cfg_attr(not(feature = "recordings"), allow(dead_code, unused_imports))]

#[cfg(feature = "recordings")]
mod advise;
mod allocators;
#[cfg(feature = "recordings")]
mod bench;
#[cfg(feature = "recordings")]
mod diff;
#[cfg(feature = "recordings")]
mod doctor;
mod error;
#[cfg(feature = "recordings")]
mod export;
#[cfg(feature = "recordings")]
mod import;
#[cfg(feature = "recordings")]
mod look;
mod output;
#[cfg(feature = "recordings")]
mod pages;
mod panics;
mod parse;
mod parts;
mod preload;
#[cfg(feature = "recordings")]
mod query;
mod record;
#[cfg(feature = "recordings")]
mod replay;
#[cfg(feature = "recordings")]
mod report;
#[cfg(feature = "recordings")]
mod rows;
mod run;
mod starter;
#[cfg(feature = "recordings")]
mod statistics;
#[cfg(feature = "recordings")]
mod tables;
mod trial;
mod turns;
mod verdict;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};
use error::tell;
use error::Failure;
use output::shell::as_called;
use std::process::ExitCode;

/// Declares the subcommands of `mallard`: attributes, variant and type. A build without the feature
/// `recordings` has only the subcommands that measure or run a program.
macro_rules! commands {
    (
        always: { $($(#[$meta:meta])* $variant:ident($command:ty),)* }
        recordings: { $($(#[$more_meta:meta])* $more:ident($more_command:ty),)* }
    ) => {
        #[derive(Subcommand)]
        enum Subcommands {
            $($(#[$meta])* $variant($command),)*
            $(#[cfg(feature = "recordings")] $(#[$more_meta])* $more($more_command),)*
        }

        impl Subcommands {
            fn run(self) -> Result<ExitCode, Failure> {
                match self {
                    $(Subcommands::$variant(command) => command.run(),)*
                    $(#[cfg(feature = "recordings")] Subcommands::$more(command) => command.run(),)*
                }
            }
        }
    };
}

commands! {
    always: {
        Try(trial::Command),
        Verify(trial::verify::Command),
        Run(run::Command),
        #[command(hide = true)]
        WhoseMalloc(allocators::probe::WhoseMalloc),
    }
    recordings: {
        Record(record::Command),
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
        Completions(pages::Completions),
        #[command(hide = true)]
        Pages(pages::Pages),
        /// What benchmarks measured: as a page, in the terminal, and one run beside another
        #[command(subcommand)]
        Bench(bench::Command),
    }
}

/// Tells which allocator a program should use, and how much the program would gain.
#[derive(Parser)]
#[command(name = "mallard", version, disable_help_subcommand = true)]
struct Mallard {
    #[command(subcommand)]
    command: Subcommands,
}

fn main() -> ExitCode {
    let mallard = match Mallard::try_parse() {
        Ok(mallard) => mallard,
        Err(error) => return usage(&error),
    };
    // At the limit of file sizes (ulimit -f), the signal ends the process. With a handler, the write
    // fails instead. A recorded program gets the default action, because exec removes handlers.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Default::default());
    let status = panics::without(|| mallard.command.run()).unwrap_or_else(fail);
    preload::remove_links();
    status
}

/// Prints an error. Returns its exit status.
fn fail(failure: Failure) -> ExitCode {
    let help = as_called(failure.help());
    let status = failure.status();
    tell(failure.with_help(help));
    ExitCode::from(status)
}

/// Prints help in clap's format, and a usage error in three lines like every other error.
fn usage(error: &clap::Error) -> ExitCode {
    use ErrorKind::{DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand, DisplayVersion};
    match error.kind() {
        DisplayHelp | DisplayVersion => {
            let _ = error.print();
            ExitCode::SUCCESS
        }
        DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            ExitCode::from(2)
        }
        _ => {
            let text = error.to_string();
            // In clap's text, the part before the first empty line says what is wrong. Its lines
            // are joined into one.
            let what: Vec<&str> =
                text.lines().take_while(|l| !l.is_empty()).map(str::trim).collect();
            let what = what.join(" ");
            let what = what.strip_prefix("error: ").unwrap_or(&what).to_string();
            let help = format!("{} --help", typed_subcommands());
            fail(Failure::new(what, "nothing was done", help))
        }
    }
}

/// `mallard` and the subcommands that the user typed, for a help line: `mallard bench compare`.
fn typed_subcommands() -> String {
    let mut text = "mallard".to_string();
    let mut command = Mallard::command();
    for word in std::env::args().skip(1) {
        let Some(subcommand) = command.find_subcommand(&word).cloned() else { break };
        text += " ";
        text += &word;
        command = subcommand;
    }
    text
}
