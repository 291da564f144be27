//! Extends `mallard record`: a recording of a running process ends with a list of the call stacks
//! whose allocations since the start of the recording are still in use.

use crate::look::sites;
use crate::record;
use mallard_measure::error::Failure;
use mallard_measure::output::terminal::say;
use std::path::Path;
use std::process::ExitCode;

#[derive(clap::Args)]
pub struct Command {
    #[command(flatten)]
    recording: record::Command,
}

impl Command {
    pub fn run(self) -> Result<ExitCode, Failure> {
        self.recording.with_growth(print_growth).run()
    }
}

fn print_growth(trace: &Path) -> Result<(), Failure> {
    say("what was allocated since the recording began, and is still in use (leaked):\n")?;
    sites::Command::of_leaked(trace).run().map(drop)
}
