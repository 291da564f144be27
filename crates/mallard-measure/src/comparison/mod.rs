//! `mallard try`: runs a program under several mallocs, interleaved, and prints which malloc the
//! program should use.
//!
//! `report` judges the measurements, `shown` prints them, and `sentence` writes the result in one
//! sentence. `verify` compares two programs in the same way, and `run` runs a program under another
//! malloc.

mod answer;
mod options;
mod plan;
mod report;
pub mod run;
mod sentence;
mod shown;
pub mod verify;

use crate::comparison::run::refuse_unswitchable;
use crate::error::Failure;
use crate::mallocs::applied::{AppliedPlan, Applies};
use crate::mallocs::wanted::{Wanted, SYNTAX};
use crate::mallocs::{self, probe, Allocator};
use crate::output::shell::{as_called, own_assignments, quoted_path, quoted_words};
use crate::output::terminal::{plain_table, say, write};
use crate::process::starter;
use crate::process::{allocates_by, find_program};
use crate::rounds::host::Host;
use crate::rounds::subject::Subject;
pub use options::Conditions;
pub use options::Options;
use plan::{Planned, CONTROL, PLAN};
pub use report::{floor, Report, Row, Words};
use serde_json::json;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Runs a program under several mallocs alternately, and reports which one it should use.
///
/// The program is not rebuilt. It runs many times, and its output is compared with that of the
/// first run: an allocator under which the output differs is reported. stdin is empty unless
/// --stdin or a redirection names a file. Mallocs that cannot win are dropped after a few runs, and
/// the last two to four have most of the budget. CPU time includes processes that the program waits
/// for. Peak RSS is that of the largest process. Differences below --min-gain do not count. CPU
/// time and memory have separate verdicts: gain, loss, no difference or not measurable.
#[derive(clap::Args)]
pub struct Command {
    /// An allocator to try; may be repeated. By default all that are installed: see --list.
    /// Environment variables may follow: jemalloc,MALLOC_CONF=narenas:1
    #[arg(short, long, value_name = SYNTAX)]
    pub allocator: Vec<Wanted>,
    /// A plan that `mallard plan make` has made. The plan is compared with the mallocs and with a
    /// control, which makes the same decisions but allocates all blocks with malloc. The difference
    /// is what the plan's arenas and pools save.
    #[arg(long, value_name = "FILE")]
    pub plan: Option<PathBuf>,
    /// How the program is measured.
    #[command(flatten)]
    pub options: Options,
    /// Runs every malloc equally often. Without this option, mallocs that cannot win are dropped
    /// early, and the others have most of the budget.
    #[arg(long)]
    keep_all: bool,
    /// Lists the known allocators, and which of them are installed. Runs no program.
    #[arg(long)]
    list: bool,
    /// First installs mimalloc, jemalloc and tcmalloc with apt-get, unless they are installed. Uses
    /// sudo if you are not root.
    #[arg(long)]
    install: bool,
    /// The program and its arguments.
    #[arg(
        required_unless_present_any = ["list", "install"],
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "PROG ARGS"
    )]
    program: Vec<OsString>,
}

impl Command {
    /// Returns the program and its arguments. Empty if the user only asked for a list of mallocs.
    pub fn program(&self) -> &[OsString] {
        &self.program
    }

    /// Measures, and prints the result. `record` is the command that shows where a program
    /// allocates. `add` may add the findings of a recording to the report.
    pub fn run(
        self,
        record: &str,
        add: impl FnOnce(&Command, &mut Report),
    ) -> Result<ExitCode, Failure> {
        starter::prepare();
        if self.install {
            mallocs::install::install()?;
        }
        if self.list || self.program.is_empty() {
            return list(self.options.timing.json);
        }
        let path = find_program(&self.program[0], "mallard try --")?;
        let findings = refuse_unswitchable(&path)?;
        let allocates_by = allocates_by(&findings);
        let mut notes: Vec<String> = findings.into_iter().map(|finding| finding.what).collect();
        let base = base(&path, &mut notes);
        let candidates = self.candidates(&base, &mut notes)?;
        let subject = |allocator: &Allocator| Subject {
            name: allocator.name.clone(),
            path: path.clone(),
            words: self.program.clone(),
            variables: allocator.variables(&path),
            library: allocator.library.clone(),
            is_setting: self.allocator.is_empty() && mallocs::acts_by_pages(&allocator.name),
        };
        let mut subjects: Vec<Subject> = candidates.iter().map(subject).collect();
        let plan = self.plan.as_deref().map(AppliedPlan::find).transpose()?;
        let planned = plan.map(|plan| add_plan(plan, &subject(&base), &base, &mut subjects));
        let kept: Vec<usize> = planned.iter().flat_map(|of| [of.plan, of.control]).collect();
        let mut host = Host::now();
        let drops = !self.keep_all;
        let (measured, seed) = self.options.measure(&subject(&base), &subjects, drops, &kept)?;
        notes.extend(host.notes());
        let mut report = Report::new(subject(&base), subjects, measured, &self.options, seed);
        report.planned = planned;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let program = quoted_words(&self.program);
        report.words = Words { program, name, allocates_by, ..Words::default() };
        add(&self, &mut report);
        report.notes.extend(notes);
        report.next = self.next(&report, record);
        report.show(&self.options)?;
        Ok(report.status())
    }

    /// Returns the allocators to compare with the base.
    fn candidates(
        &self,
        base: &Allocator,
        notes: &mut Vec<String>,
    ) -> Result<Vec<Allocator>, Failure> {
        if !self.allocator.is_empty() {
            let found: Vec<Allocator> =
                self.allocator.iter().map(Wanted::find).collect::<Result<_, _>>()?;
            found.iter().try_for_each(probe::check)?;
            return Ok(found);
        }
        let (mut found, missing) = mallocs::installed();
        // A program that has another malloc ignores the settings of glibc's malloc.
        let is_idle = |name: &str| base.name != "glibc" && name.starts_with("glibc:");
        found.retain(|allocator| allocator.name != base.name && !is_idle(&allocator.name));
        notes.extend(mallocs::note_of_missing(&missing));
        Ok(found)
    }

    /// Returns the command that the user should type next.
    fn next(&self, report: &Report, record: &str) -> String {
        let program = quoted_words(&self.program);
        let best = report.best();
        if let Some(file) = self.plan.as_ref().filter(|_| best.as_deref() == Some(PLAN)) {
            let file = quoted_path(file);
            return format!("{}mallard run --plan {file} -- {program}", own_assignments());
        }
        if let Some(best) = best {
            return format!("{}mallard run --allocator {best} -- {program}", own_assignments());
        }
        if report.words.allocates_by.is_some() {
            return "a build that has the malloc of the system".to_string();
        }
        if let Some(more) = report.more_time(&self.options) {
            return more;
        }
        format!("{}{record} {program}, which shows where it allocates", own_assignments())
    }
}

/// Adds a plan and its control to the candidates. `bare` is the program without the plan.
fn add_plan(
    plan: AppliedPlan,
    bare: &Subject,
    base: &Allocator,
    candidates: &mut Vec<Subject>,
) -> Planned {
    let first = candidates.len();
    for (name, applies) in [(PLAN, Applies::Serves), (CONTROL, Applies::Control)] {
        let mut variables = plan.variables(base, &bare.path, applies);
        // The reports of the library would count as a difference in the output of the program.
        variables.extend(["MALLARD_STATS", "MALLARD_PLAN_REPORT"].map(|name| (name.into(), None)));
        candidates.push(Subject {
            name: name.to_string(),
            variables,
            library: Some(plan.library.clone()),
            ..bare.clone()
        });
    }
    Planned { file: plan.file, plan: first, control: first + 1 }
}

/// Returns a note that a program is linked with its own malloc.
pub fn linked_with(own: &str) -> String {
    format!("the program is linked with {own}, so {own} is the base, not glibc")
}

/// Returns the malloc that the program has when it runs without mallard.
pub fn base(path: &Path, notes: &mut Vec<String>) -> Allocator {
    let base = mallocs::base();
    if base.name != "glibc" {
        notes.push(format!("LD_PRELOAD is set, so the base is {}, not glibc", base.name));
    } else if let Some(own) = probe::linked_malloc(path) {
        notes.push(linked_with(&own));
        return Allocator::as_started(&own);
    }
    for name in
        ["GLIBC_TUNABLES", "MALLOC_ARENA_MAX", "MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_"]
    {
        if let Some(value) = std::env::var_os(name) {
            notes.push(format!(
                "{name}={} is set in every run of the base",
                value.to_string_lossy()
            ));
        }
    }
    base
}

/// Prints the mallocs that Mallard knows.
fn list(is_json: bool) -> Result<ExitCode, Failure> {
    let (found, missing) = mallocs::installed();
    let library = |name: &str| found.iter().find(|a| a.name == name).map(|a| a.library.clone());
    let why = |name: &str| missing.iter().find(|(n, _)| n == name).map(|(_, why)| why);
    if is_json {
        let line = |entry: &mallocs::Entry| {
            json!({
                "name": entry.name,
                "about": entry.about,
                "installed": library(&entry.name).is_some(),
                "library": library(&entry.name).flatten(),
                "missing": why(&entry.name).map(|why| json!({ "what": why.what(), "help": why.help() })),
            })
        };
        let all: Vec<_> = mallocs::list().map(line).collect();
        write(&format!("{}\n", json!(all)))?;
    } else {
        let line = |entry: &mallocs::Entry| {
            let state = why(&entry.name).map_or("installed".into(), |why| why.help().to_string());
            vec![entry.name.clone(), entry.about.clone(), state]
        };
        let titles = ["name", "allocator", "state"];
        let table = plain_table(&titles, mallocs::list().map(line)).left();
        say(&format!("{table}\n  next: {}\n", as_called("mallard try -- PROG ARGS")))?;
    }
    Ok(ExitCode::SUCCESS)
}
