//! `mallard try`: runs a program under several mallocs in turns, and says which one it should use.
//!
//! `report` shows the measurements, and `sentence` sums the result up. `verify` compares two programs
//! in the same way, and `kept` keeps the result in a trace.

#[cfg(feature = "recordings")]
mod kept;
mod options;
mod report;
mod sentence;
pub mod verify;

use crate::allocators::{self, probe, Allocator, Wanted, SYNTAX};
use crate::error::Failure;
use crate::output::shell::{as_called, own_assignments, quoted_words};
use crate::output::terminal::{plain_table, say};
use crate::record::find_program;
#[cfg(feature = "recordings")]
use crate::record::{names, shares};
#[cfg(feature = "recordings")]
use crate::replay;
use crate::run::refuse_unswitchable;
use crate::starter;
use crate::turns::host::Host;
use crate::turns::subject::Subject;
#[cfg(feature = "recordings")]
use mallard_trace::Trace;
pub use options::Conditions;
use options::Options;
pub use report::floor;
use report::{Report, Words};
use serde_json::json;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The command that shows where a program allocates. Without the feature `recordings`, the text names
/// the command in a checkout.
const RECORD: &str = if cfg!(feature = "recordings") { "mallard record --" } else { "./x demo --" };

/// A replay beside a trial has the budget of the trial divided by this number.
const REPLAY_PART: u32 = 4;

/// Runs a program under several mallocs in turns, and says which one it should use.
///
/// The program is not rebuilt. It runs many times, and its output is compared with that of the
/// first run: an allocator under which the output differs is reported. stdin is empty unless
/// --stdin or a redirection names a file. Mallocs that cannot win are dropped after a few runs, and
/// the last two to four have most of the budget. CPU time includes processes that the program waits
/// for. Peak RSS is that of the largest process. A difference counts from --min-gain on; CPU time and memory have a verdict
/// each: gain, loss, no difference or not measurable.
#[derive(clap::Args)]
pub struct Command {
    /// An allocator to try; may be repeated. By default all that are installed: see --list.
    /// Variables of the environment may follow: jemalloc,MALLOC_CONF=narenas:1
    #[arg(short, long, value_name = SYNTAX)]
    allocator: Vec<Wanted>,
    /// A recording of the program. The recording tells how much CPU time any allocator could save
    /// at most. The recording is also replayed, which takes a quarter of the budget in addition, to
    /// tell which share of the measured savings a replay would have found.
    #[cfg(feature = "recordings")]
    #[arg(long, value_name = "NAME")]
    trace: Option<PathBuf>,
    #[command(flatten)]
    options: Options,
    /// Gives every malloc the same number of runs. Without this option, the mallocs that cannot win are
    /// dropped early, and the others have most of the budget.
    #[arg(long)]
    keep_all: bool,
    /// Lists the allocators that are known, and tells which are installed. Runs no program.
    #[arg(long)]
    list: bool,
    /// The program and its arguments.
    #[arg(
        required_unless_present = "list",
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "PROG ARGS"
    )]
    program: Vec<OsString>,
}

impl Command {
    /// Measures, and shows the result.
    pub fn run(self) -> Result<ExitCode, Failure> {
        starter::prepare();
        if self.list {
            return list(self.options.timing.json);
        }
        let path = find_program(&self.program[0], "mallard try --")?;
        let mut notes: Vec<String> =
            refuse_unswitchable(&path)?.into_iter().map(|finding| finding.what).collect();
        #[cfg(feature = "recordings")]
        let trace =
            self.trace.as_ref().map(|name| Trace::open(&names::trace_of(name))).transpose()?;
        let base = base(&path, &mut notes);
        let candidates = self.candidates(&base, &mut notes)?;
        let subject = |allocator: &Allocator| Subject {
            name: allocator.name.clone(),
            path: path.clone(),
            words: self.program.clone(),
            variables: allocator.variables(&path),
            library: allocator.library.clone(),
        };
        let subjects: Vec<Subject> = candidates.iter().map(subject).collect();
        let mut host = Host::now();
        let (measured, seed) = self.options.measure(&subject(&base), &subjects, !self.keep_all)?;
        notes.extend(host.notes());
        let mut report = Report::new(subject(&base), subjects, measured, &self.options, seed);
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        report.words = Words { program: quoted_words(&self.program), name, ..Words::default() };
        #[cfg(feature = "recordings")]
        if let Some(trace) = &trace {
            self.compare_with(trace, &mut report);
        }
        report.notes.extend(notes);
        report.next = self.next(&report);
        report.show(&self.options)?;
        Ok(report.status())
    }

    /// Adds the facts that a recording tells about the measured savings.
    #[cfg(feature = "recordings")]
    fn compare_with(&self, trace: &Trace, report: &mut Report) {
        // A load may do other work than the recorded one.
        let cpu_ns = Some(report.measured.median_of_all(0, |figures| figures.cpu_ns));
        let cpu_ns = cpu_ns.filter(|ns| *ns > 0.0 && !self.options.is_server());
        match shares(trace.manifest(), cpu_ns) {
            Ok(shares) => report.bound = Some(shares.calls + shares.faults),
            Err(why) => report.notes.extend(why.map(unknown_bound)),
        }
        if !report.measured.interrupted {
            let timing = &self.options.timing;
            let budget = timing.budget / REPLAY_PART;
            match replay::savings(trace, &self.allocator, budget, timing.quiet) {
                Ok(savings) => report.explain(&savings),
                Err(why) => report.notes.push(format!("nothing was replayed: {}", why.what())),
            }
        }
    }

    /// The allocators that are compared with the base.
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
        let (mut found, missing) = allocators::installed();
        // Settings of glibc change nothing in a program that has another malloc.
        let is_idle = |name: &str| base.name != "glibc" && name.starts_with("glibc:");
        found.retain(|allocator| allocator.name != base.name && !is_idle(&allocator.name));
        notes.extend(allocators::note_of_missing(&missing));
        Ok(found)
    }

    /// The command to type next.
    fn next(&self, report: &Report) -> String {
        let program = quoted_words(&self.program);
        if let Some(best) = report.best() {
            return format!("{}mallard run --allocator {best} -- {program}", own_assignments());
        }
        if let Some(more) = report.more_time(&self.options) {
            return more;
        }
        format!("{}{RECORD} {program}, which shows where it allocates", own_assignments())
    }
}

/// A note that a program is linked with a malloc of its own.
pub fn linked_with(own: &str) -> String {
    format!("the program is linked with {own}: the base is that, not glibc")
}

/// A note that a recording does not tell how much a malloc can save.
#[cfg(feature = "recordings")]
fn unknown_bound(why: String) -> String {
    format!("the recording does not tell how much CPU time a malloc can save at most: {why}")
}

/// The malloc of the program when it runs without mallard.
pub fn base(path: &Path, notes: &mut Vec<String>) -> Allocator {
    let base = allocators::base();
    if base.name != "glibc" {
        notes.push(format!("LD_PRELOAD is set: the base is {}, not glibc", base.name));
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

/// Prints the known allocators.
fn list(is_json: bool) -> Result<ExitCode, Failure> {
    let (found, missing) = allocators::installed();
    let library = |name: &str| found.iter().find(|a| a.name == name).map(|a| a.library.clone());
    let why = |name: &str| missing.iter().find(|(n, _)| n == name).map(|(_, why)| why);
    if is_json {
        let line = |entry: &allocators::Entry| {
            json!({
                "name": entry.name,
                "about": entry.about,
                "installed": library(&entry.name).is_some(),
                "library": library(&entry.name).flatten(),
                "missing": why(&entry.name).map(|why| json!({ "what": why.what(), "help": why.help() })),
            })
        };
        let all: Vec<_> = allocators::list().iter().map(line).collect();
        say(&format!("{}\n", json!(all)))?;
    } else {
        let line = |entry: &allocators::Entry| {
            let state = why(&entry.name).map_or("installed".into(), |why| why.help().to_string());
            vec![entry.name.clone(), entry.about.clone(), state]
        };
        let mut table =
            plain_table(&["name", "allocator", "state"], allocators::list().iter().map(line));
        for column in table.column_iter_mut() {
            column.set_cell_alignment(comfy_table::CellAlignment::Left);
        }
        say(&format!("{table}\n  next: {}\n", as_called("mallard try -- PROG ARGS")))?;
    }
    Ok(ExitCode::SUCCESS)
}
