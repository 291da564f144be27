//! Implements `mallard plan`, which makes plans from recordings, shows plans, and reports which
//! blocks a plan would serve. A plan allocates the blocks of some call stacks from arenas and
//! pools, in an unchanged program.
//!
//! `make` compiles rules with a recording, and `show` prints a compiled plan. `check` runs a
//! program under a plan and reads the library's report, for which `report` has the types. `run` is
//! `mallard run`, which rejects a corrupt plan before the program starts.

mod check;
mod make;
mod report;
pub mod run;
mod show;

use clap::Subcommand;
use mallard_measure::error::status::UNREADABLE;
use mallard_measure::error::Failure;
use mallard_measure::mallocs::probe;
use mallard_trace::plan::{names_in, CompiledPlan, PlanModule};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;

/// Makes and shows plans, which apply arenas and pools in a program that is not changed.
///
/// A plan assigns blocks of a program to arenas or pools, by their call stacks. `mallard run
/// --plan` applies a plan, and `mallard try --plan` compares it with other mallocs.
/// docs/guide/plans.md has an example.
#[derive(clap::Args)]
pub struct Command {
    #[command(subcommand)]
    command: Commands,
}

#[derive(Subcommand)]
enum Commands {
    Make(make::Command),
    Show(show::Command),
    Check(check::Command),
}

impl Command {
    /// Runs the subcommand.
    pub fn run(self) -> Result<ExitCode, Failure> {
        match self.command {
            Commands::Make(command) => command.run(),
            Commands::Show(command) => command.run(),
            Commands::Check(command) => command.run(),
        }
    }
}

/// Reads a compiled plan. Returns an error if the file is no plan or is corrupt. Without this
/// check, the program would run without the plan.
pub fn must_be_whole(file: &Path) -> Result<CompiledPlan, Failure> {
    Ok(CompiledPlan::read(file)?)
}

/// Returns an error if a file is no valid plan, or if the program at `path` is another build than
/// the program of the plan. Otherwise, returns the names of the libraries that are other builds
/// than those of the plan.
pub fn must_fit(file: &Path, path: &Path) -> Result<BTreeSet<String>, Failure> {
    let plan = must_be_whole(file)?;
    let misfits = misfits(&plan, path);
    let program = plan.modules.iter().find(|module| module.is_program);
    match program.filter(|module| misfits.contains(&*module.shown())) {
        None => Ok(misfits),
        Some(_) => Err(Failure::new(
            format!(
                "{} is not the build for which the plan {} was made",
                path.display(),
                file.display()
            ),
            "nothing was started",
            "mallard record -- PROG ARGS, and then mallard plan make, with this build",
        )
        .with_status(UNREADABLE)),
    }
}

/// Returns the names of the plan's modules that differ in their build from the program at `path`
/// and its libraries.
pub fn misfits(plan: &CompiledPlan, path: &Path) -> BTreeSet<String> {
    let mut files = probe::libraries(path);
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    files.push((name, path.to_path_buf()));
    let is_misfit = |module: &&PlanModule| {
        let file = files.iter().find(|(name, _)| *name == module.shown());
        file.is_some_and(|(_, file)| names_in(module, file, &[]).is_none())
    };
    plan.modules.iter().filter(is_misfit).map(|module| module.shown().into_owned()).collect()
}
