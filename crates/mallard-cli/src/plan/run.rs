//! Implements `mallard run`, which checks the plan, and runs the program.

use super::must_be_whole;
use mallard_measure::comparison;
use mallard_measure::error::Failure;
use std::process::ExitCode;

// This struct has no doc comment, so that clap shows the doc comment of `comparison::run::Command`
// as the description of the command.
#[derive(clap::Args)]
pub struct Run {
    #[command(flatten)]
    command: comparison::run::Command,
}

impl Run {
    /// Replaces this process by the program.
    pub fn run(self) -> Result<ExitCode, Failure> {
        if let Some(file) = &self.command.plan {
            must_be_whole(file)?;
        }
        self.command.run()
    }
}
