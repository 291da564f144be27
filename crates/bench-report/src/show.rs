//! `./x bench show SUITE`: prints the tables of a suite in the terminal.

use crate::rows::experiment::Machine;
use crate::rows::locate;
use crate::tables::layout;
use crate::text;
use mallard_measure::error::Failure;
use mallard_measure::output::terminal;
use regex::Regex;
use std::path::PathBuf;
use std::process::ExitCode;

/// Prints the tables of a suite, with published figures beside ours
#[derive(clap::Args)]
pub struct Show {
    /// Name of the suite, such as lakos1, seeds or pool
    suite: String,
    /// Files or folders of rows [default: results/]
    rows: Vec<PathBuf>,
    /// Print only tables whose titles match, such as `DS7.*corrected`
    #[arg(long, value_name = "REGEX")]
    only: Option<Regex>,
}

impl Show {
    pub fn run(self) -> Result<ExitCode, Failure> {
        let root = locate::root()?;
        let rows = locate::rows(&root, &self.rows)?;
        let published = locate::published(&root)?;
        let machines = Machine::all(&rows);
        let mut text = String::new();
        for machine in machines.iter().filter(|m| m.has(&self.suite)) {
            text += &format!("{}: {}\n\n", self.suite, machine.name);
            for table in layout::tables(machine, &published, &self.suite) {
                if self.only.as_ref().is_none_or(|o| o.is_match(&table.title)) {
                    text += &text::render(&table);
                    text.push('\n');
                }
            }
        }
        if text.is_empty() {
            let mut suites: Vec<&str> = machines.iter().flat_map(|m| m.suites()).collect();
            suites.sort_unstable();
            suites.dedup();
            return Err(Failure::new(
                format!("no rows of suite '{}'", self.suite),
                format!("there are rows of: {}", suites.join(" ")),
                "./x bench SUITE --json > results/MACHINE/SUITE.jsonl",
            ));
        }
        terminal::say(&text)?;
        Ok(ExitCode::SUCCESS)
    }
}
