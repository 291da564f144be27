//! Writes this repository's own pages about benchmarks, and compares benchmark results, for `./x
//! bench report`, `show` and `compare`. This command needs a checkout of the repository, and is not
//! installed.
#![deny(missing_docs, unsafe_code)]

mod compare;
mod html;
mod markdown;
mod report;
mod rows;
mod show;
mod statistics;
mod tables;
mod text;
mod unpaired;

use clap::Parser;
use mallard_measure::command;
use std::process::ExitCode;

/// Shows what benchmarks measured: as a page, in the terminal, and one run beside another.
#[derive(Parser)]
#[command(name = "./x bench", disable_help_subcommand = true, max_term_width = 80)]
enum Bench {
    Report(report::Report),
    Show(show::Show),
    Compare(compare::Compare),
}

fn main() -> ExitCode {
    command::start(|bench: Bench| match bench {
        Bench::Report(report) => report.run(),
        Bench::Show(show) => show.run(),
        Bench::Compare(compare) => compare.run(),
    })
}
