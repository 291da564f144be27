//! `mallard run`: runs a program under another malloc, or with a plan.

use crate::error::status::CANNOT_RECORD;
use crate::error::tell;
use crate::error::Failure;
use crate::mallocs::applied::{AppliedPlan, Applies};
use crate::mallocs::wanted::{Wanted, SYNTAX};
use crate::mallocs::{probe, set, Allocator};
use crate::process::launch::refused;
use crate::process::program::Finding;
use crate::process::{examine, find_program};
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Runs a program under another malloc, or with a plan.
///
/// The program is not rebuilt. It replaces this process, so terminal, signals and exit status are
/// those of the program. The status is 125 if the allocator is missing or does not work, 126 if
/// PROG cannot run under another malloc, and 127 if there is no PROG.
#[derive(clap::Args)]
#[command(
    override_usage = "mallard run [OPTIONS] --allocator <NAME> <PROG ARGS>...\n       mallard run [OPTIONS] --plan <FILE> <PROG ARGS>..."
)]
pub struct Command {
    /// The allocator: one that `mallard try --list` names, such as glibc, mallard, mimalloc,
    /// jemalloc or tcmalloc, or any library with a malloc (NAME=LIBRARY). Environment
    /// variables may follow: jemalloc,MALLOC_CONF=narenas:1
    #[arg(short, long, value_name = SYNTAX, required_unless_present = "plan")]
    allocator: Option<Wanted>,
    /// A plan that `mallard plan make` has made: blocks of its call stacks come from the plan's
    /// arenas and pools, and all others from the malloc of the program, or of --allocator. With
    /// MALLARD_STATS=1 in the environment, the program reports at its end which blocks each rule
    /// has served.
    #[arg(long, value_name = "FILE")]
    pub plan: Option<PathBuf>,
    /// Ends the program at its start with status 125 if the plan cannot be used, or is of another
    /// build. Without this option the program runs without the plan, and prints a warning.
    #[arg(long, requires = "plan")]
    strict: bool,
    /// Writes nothing but errors.
    #[arg(short, long)]
    quiet: bool,
    /// The program and its arguments.
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "PROG ARGS"
    )]
    program: Vec<OsString>,
}

impl Command {
    /// Replaces this process by the program.
    pub fn run(self) -> Result<ExitCode, Failure> {
        let path = find_program(&self.program[0], "mallard run --allocator NAME --")?;
        let allocator = match &self.allocator {
            Some(wanted) => wanted.find()?,
            None => Allocator::as_started("malloc"),
        };
        if self.allocator.is_some() {
            probe::check(&allocator)?;
        }
        let plan = self.plan.as_deref().map(AppliedPlan::find).transpose()?;
        for warning in refuse_unswitchable(&path)? {
            if !self.quiet {
                let what = format!("{}: {}", path.display(), warning.what);
                tell(Failure::new(what, "the program runs anyway", warning.help));
            }
        }
        let mut command = std::process::Command::new(&path);
        command.arg0(&self.program[0]).args(&self.program[1..]);
        let variables = match &plan {
            Some(plan) => plan.variables(&allocator, &path, Applies::Serves),
            None => allocator.variables(&path),
        };
        set(&mut command, variables);
        if self.strict {
            command.env("MALLARD_PLAN_STRICT", "1");
        }
        Err(refused(&path, &command.exec()))
    }
}

/// Rejects a program into which no malloc can be preloaded. Returns other findings about the
/// program.
pub fn refuse_unswitchable(path: &Path) -> Result<Vec<Finding>, Failure> {
    // If the file is unreadable, the start of the program fails later and prints why.
    let findings = examine(path).unwrap_or_default();
    match findings.iter().find(|finding| finding.refuses) {
        Some(finding) => {
            let what =
                format!("{} cannot run under another malloc: {}", path.display(), finding.what);
            let failure = Failure::new(what, "the program was not started", finding.help.clone());
            Err(failure.with_status(CANNOT_RECORD))
        }
        None => Ok(findings),
    }
}
