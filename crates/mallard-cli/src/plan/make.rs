//! Implements `mallard plan make`, which makes a plan from rules and a recording.

use crate::look::open;
use crate::output::file::write_whole;
use crate::record::recorded::command_line;
use mallard_measure::error::Failure;
use mallard_measure::output::shell::{as_called, quoted_path};
use mallard_measure::output::terminal::{plain_table, say, write};
use mallard_measure::output::units::{bytes, count, percent};
use mallard_trace::names::short;
use mallard_trace::plan::{make, Made, PlanRule, Rules, Served};
use mallard_trace::Trace;
use serde_json::{json, Value};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Makes a plan from rules and a recording of the program.
///
/// RULES is a TOML file with rules, as `mallard replay --plan` reads it:
///
///     [[rule]]
///     region = "parse_document"     # with everything that it calls
///     strategy = "arena"            # arena, pool, multipool, multipool over arena, malloc
///
/// Instead of a region, a rule has a site (a function that allocates), functions (a regular
/// expression, as for `mallard sites --filter`), a stack (an ID in `mallard sites --json`), or none
/// of these for all blocks.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Command {
    /// The recording.
    #[arg(value_name = "NAME")]
    name: PathBuf,
    /// The file with the rules.
    #[arg(value_name = "RULES")]
    rules: PathBuf,
    /// The file of the plan. By default it is RULES with the ending .plan.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Overwrites the plan if it exists.
    #[arg(long)]
    force: bool,
    /// Writes the result as a JSON object.
    #[arg(long)]
    json: bool,
}

impl Command {
    /// Makes the plan, and prints which recorded blocks its rules would have served.
    pub fn run(self) -> Result<ExitCode, Failure> {
        let trace = open(&self.name)?;
        let rules = Rules::read(&self.rules)?;
        let made = make(&trace, &rules)?;
        let file = self.output.clone().unwrap_or_else(|| self.rules.with_extension("plan"));
        let content = made.plan.to_bytes();
        write_whole(&file, self.force, |to| Ok(to.write_all(&content)?))?;
        if file == Path::new("-") {
            return Ok(ExitCode::SUCCESS);
        }
        if self.json {
            write(&format!("{}\n", as_json(&file, &made)))?;
        } else {
            say(&text(&file, &made, &trace))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn rules_of(made: &Made) -> impl Iterator<Item = (&PlanRule, &Served)> {
    made.plan.rules.iter().zip(&made.served)
}

fn text(file: &Path, made: &Made, trace: &Trace) -> String {
    let all: u64 = made.served.iter().map(|served| served.blocks).sum();
    let share = |blocks: u64| match made.blocks {
        0 => "-".to_string(),
        whole => percent(blocks as f64 / whole as f64),
    };
    let line = |(rule, served): (&PlanRule, &Served)| {
        vec![
            short(&rule.shown()),
            rule.allocator.words().to_string(),
            count(served.blocks),
            share(served.blocks),
            bytes(served.bytes),
            bytes(rule.peak_bytes),
            bytes(rule.block_bytes.into()),
            count(served.stacks as u64),
        ]
    };
    let titles = [
        "rule",
        "allocator",
        "blocks",
        "share",
        "bytes",
        "at most in use",
        "largest block",
        "call stacks",
    ];
    let table = plain_table(&titles, rules_of(made).map(line));
    let mut text = format!(
        "{}: {} of {} recorded blocks ({}) come from local allocators\n\n{table}\n",
        file.display(),
        count(all),
        count(made.blocks),
        share(all)
    );
    text.extend(made.notes.iter().map(|note| format!("  note: {}\n", as_called(note))));
    let program = command_line(trace.manifest()).unwrap_or_else(|| "PROG ARGS".to_string());
    let next = format!("mallard try --plan {} -- {program}", quoted_path(file));
    text + &format!("  next: {}\n", as_called(&next))
}

fn as_json(file: &Path, made: &Made) -> Value {
    let rule = |(rule, served): (&PlanRule, &Served)| {
        json!({
            "name": rule.shown(),
            "allocator": rule.allocator.words(),
            "block_bytes": rule.block_bytes,
            "peak_bytes": rule.peak_bytes,
            "blocks": served.blocks,
            "bytes": served.bytes,
            "call_stacks": served.stacks,
        })
    };
    json!({
        "file": file,
        "rules": rules_of(made).map(rule).collect::<Vec<_>>(),
        "blocks": made.blocks,
        "modules": made.plan.modules.len(),
        "callers": made.plan.callers.len(),
        "call_stacks": made.plan.stacks.len(),
        "ranges": made.plan.ranges.len(),
        "notes": made.notes,
    })
}
