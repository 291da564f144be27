//! Implements `mallard plan check`, which runs a program under a plan, and reports which blocks
//! each rule would serve.

use super::report::{self, Process, Rule};
use super::{misfits, must_be_whole};
use mallard_measure::comparison::run::refuse_unswitchable;
use mallard_measure::error::status::MALLARD_FAILED;
use mallard_measure::error::{tell, tell_as_is, Failure};
use mallard_measure::mallocs::applied::{AppliedPlan, Applies};
use mallard_measure::mallocs::Allocator;
use mallard_measure::output::shell::{as_called, quoted_path, quoted_words};
use mallard_measure::output::terminal::plain_table;
use mallard_measure::output::units::{bytes, count, percent};
use mallard_measure::process::find_program;
use mallard_measure::process::launch::{Running, Streams};
use mallard_measure::process::starter;
use mallard_trace::names::short;
use mallard_trace::plan::{CompiledPlan, PlanRule};
use serde_json::json;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// The maximum time of each wait for the end of the program.
const WAIT: Duration = Duration::from_secs(3600);

/// Runs a program under a plan, and reports which blocks each rule would serve.
///
/// The plan is evaluated for each block, but all blocks come from the program's malloc. At the end,
/// the command reports which blocks each rule would have served, how many blocks have call stacks
/// that the plan does not have, and which modules of the plan are missing or are other builds. The
/// exit status is that of the program.
#[derive(clap::Args)]
pub struct Command {
    /// The plan.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Serves the blocks from the plan's arenas and pools too, as `mallard run --plan` does.
    #[arg(long)]
    serve: bool,
    /// Writes the result as one line of JSON. Like the text, it goes to stderr.
    #[arg(long)]
    json: bool,
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
    /// Runs the program, and returns its exit status.
    pub fn run(self) -> Result<ExitCode, Failure> {
        starter::prepare();
        let plan = must_be_whole(&self.file)?;
        let path = find_program(&self.program[0], "mallard plan check FILE --")?;
        refuse_unswitchable(&path)?;
        let misfits = misfits(&plan, &path);
        let applied = AppliedPlan::find(&self.file)?;
        let folder = tempfile::Builder::new().prefix("mallard-plan-").tempdir().map_err(|e| {
            let what =
                format!("cannot create a temporary directory: {}", e.to_string().to_lowercase());
            Failure::new(what, "the program was not started", "TMPDIR=/path/with/room")
                .with_status(MALLARD_FAILED)
        })?;
        let to = folder.path().join("report");
        let applies = if self.serve { Applies::Serves } else { Applies::Control };
        let mut variables = applied.variables(&Allocator::as_started("malloc"), &path, applies);
        variables.push(("MALLARD_PLAN_REPORT".into(), Some(to.clone().into())));
        let (name, arguments) = (&self.program[0], &self.program[1..]);
        let streams = Streams::default();
        let mut running = Running::start_with(&path, name, arguments, &variables, &streams)?;
        let failed = |e: std::io::Error| {
            let what = format!("cannot wait for the program: {e}");
            Failure::new(what, "the program may still run", "ps").with_status(MALLARD_FAILED)
        };
        while !running.wait(WAIT).map_err(failed)? {}
        let ended = running.reap().map_err(failed)?;
        let processes = report::read(&std::fs::read_to_string(&to).unwrap_or_default());
        if self.json {
            let text = std::fs::read_to_string(&to).unwrap_or_default();
            let lines = text.lines().filter_map(|line| serde_json::from_str(line).ok());
            let lines: Vec<serde_json::Value> = lines.collect();
            tell_as_is(
                json!({ "plan": self.file, "processes": lines, "status": ended.exit_code() }),
            );
        } else if processes.is_empty() {
            tell(self.no_report());
        } else {
            processes.iter().for_each(|process| tell(self.text(process, &plan, &misfits)));
        }
        Ok(ExitCode::from(ended.exit_code()))
    }

    fn no_report(&self) -> Failure {
        Failure::new(
            format!(
                "{} ran, but the library that applies the plan has reported nothing",
                quoted_words(&self.program)
            ),
            "the program was killed, called _exit, or is not the program of the plan",
            format!("mallard plan show {}, which names the program", quoted_path(&self.file)),
        )
    }

    fn text(&self, process: &Process, plan: &CompiledPlan, misfits: &BTreeSet<String>) -> String {
        let all = process.blocks();
        let share = |blocks: u64| match all {
            None | Some(0) => "-".to_string(),
            Some(all) => percent(blocks as f64 / all as f64),
        };
        let line = |(rule, of): (&Rule, &PlanRule)| {
            vec![
                short(&of.shown()),
                of.allocator.words().to_string(),
                count(rule.blocks),
                share(rule.blocks),
                bytes(rule.bytes),
                bytes(rule.peak_bytes),
                count(rule.large),
                count(rule.refused),
            ]
        };
        let titles =
            ["rule", "allocator", "blocks", "share", "bytes", "peak", "too large", "beyond peak"];
        let table = plain_table(&titles, process.rules.iter().zip(&plan.rules).map(line));
        let verb = if process.control { "would serve" } else { "served" };
        let of_all = all.map_or(String::new(), |all| format!(" of {}", count(all)));
        let mut text = format!(
            "{} (process {}): the plan {verb} {}{of_all} blocks\n\n{table}\n",
            process.program,
            process.process,
            count(process.served()),
        );
        if process.unknown_blocks > 0 {
            text += &format!(
                "  {} blocks have call stacks that the recording does not have\n",
                count(process.unknown_blocks)
            );
        }
        let missing: BTreeSet<&String> = process.modules_missing.iter().chain(misfits).collect();
        for module in &missing {
            text += &format!(
                "  {module} is missing, or is another build than the recorded one, so malloc serves \
                 its call stacks\n"
            );
        }
        let file = quoted_path(&self.file);
        let next = match process.served() {
            0 if missing.is_empty() => format!("mallard plan show {file}"),
            0 => "mallard record and mallard plan make again, with this build".to_string(),
            _ => format!("mallard try --plan {file} -- {}", quoted_words(&self.program)),
        };
        text + &format!("  next: {}", as_called(&next))
    }
}
