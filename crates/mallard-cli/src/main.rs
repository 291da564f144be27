//! The command `mallard`: which allocator a program should use, and what it would gain.
#![deny(missing_docs, unsafe_code)]

mod bench;
mod error;

use clap::error::ErrorKind;
use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Which allocator a program should use, and what it would gain.
#[derive(Parser)]
#[command(name = "mallard", version, disable_help_subcommand = true)]
struct Command {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// What benchmarks measured: as a page, in the terminal, and one run beside another
    #[command(subcommand)]
    Bench(bench::Command),
}

fn main() -> ExitCode {
    let command = match Command::try_parse() {
        Ok(command) => command,
        Err(error) => return usage(&error),
    };
    let result = match command.what {
        What::Bench(command) => bench::run(command),
    };
    result.unwrap_or_else(|failure| {
        eprintln!("{failure}");
        ExitCode::from(2)
    })
}

/// Help goes out as clap has it; a mistake in three lines, like every other error.
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
            // Up to the empty line is what happened; on lines of their own, what is missing.
            let what: Vec<&str> =
                text.lines().take_while(|l| !l.is_empty()).map(str::trim).collect();
            let what = what.join(" ");
            let what = what.strip_prefix("error: ").unwrap_or(&what).to_string();
            eprintln!(
                "{}",
                error::Failure::new(what, "nothing was done", format!("{} --help", command_line()))
            );
            ExitCode::from(2)
        }
    }
}

/// `mallard` and the subcommands that were typed, for a help line.
fn command_line() -> String {
    let words = std::env::args().skip(1);
    let known = words.take_while(|w| ["bench", "report", "show", "compare"].contains(&w.as_str()));
    std::iter::once("mallard".to_string()).chain(known).collect::<Vec<_>>().join(" ")
}
