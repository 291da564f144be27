//! Implements `mallard query`, which runs SQL queries on the tables of a trace or of a fleet, with
//! the program `duckdb`.

mod json;
mod program;
mod session;
mod views;

use crate::export::fleet::Fleet;
use crate::look::open;
use mallard_measure::error::status::UNREADABLE;
use mallard_measure::error::tell;
use mallard_measure::error::Failure;
use mallard_measure::parse::bytes;
use program::Program;
use session::{Format, Session};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use views::Views;

/// Queries a trace with SQL.
///
/// DuckDB runs the query. The tables of the trace are views: events, allocs (the blocks), sites,
/// stacks, frames, modules, mappings, processes, threads, samples, memory, cpu and regions. Without
/// SQL, the command opens the shell of DuckDB. DuckDB reads and writes files only in the directory
/// of the trace, unless --unlocked is given.
#[derive(clap::Args)]
pub struct Command {
    /// The trace, and the SQL; - reads the SQL from stdin. With --fleet, only the SQL.
    #[arg(value_names = ["NAME", "SQL"], num_args = 0..=2)]
    words: Vec<String>,
    /// Queries all runs in this directory, which `mallard export --fleet` has written.
    #[arg(long, value_name = "ROOT")]
    fleet: Option<PathBuf>,
    /// Reads the SQL from a file.
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Writes an array of JSON objects, one for each row.
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Writes comma-separated values.
    #[arg(long)]
    csv: bool,
    /// The maximum of memory that DuckDB uses, 80 % of all by default; further data go to files.
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    memory: Option<u64>,
    /// Lets the SQL read and write any file.
    #[arg(long)]
    unlocked: bool,
}

impl Command {
    /// Starts DuckDB, and returns when it exits.
    pub fn run(self) -> Result<ExitCode, Failure> {
        let (name, sql) = self.name_and_sql()?;
        if name.is_none() && self.fleet.is_none() {
            return Err(no_name());
        }
        let sql = self.sql(sql)?;
        // DuckDB writes data that do not fit into memory to this directory. Tables that DuckDB
        // cannot read are copied there.
        let scratch = tempfile::Builder::new().prefix("mallard-query.").tempdir();
        let scratch = scratch.map_err(|error| no_folder(&error))?;
        let (program, views) = match (&self.fleet, &name) {
            (Some(root), _) => {
                let fleet = Fleet::open(root)?;
                (Program::find()?, Views::of_fleet(&fleet)?)
            }
            (None, name) => {
                let trace = open(Path::new(name.as_deref().unwrap_or_default()))?;
                let program = Program::find()?;
                let is_copied = !program.reads_all() && needs_events(sql.as_deref());
                let copy = is_copied.then_some(scratch.path());
                let regions = needs_regions(sql.as_deref())
                    .then(|| mallard_trace::regions::file(&trace, scratch.path()));
                let views = Views::of_trace(&trace, copy, regions)?;
                (program, views)
            }
        };
        for damaged in &views.damaged {
            tell(damaged);
        }
        let session = Session {
            program: &program.path,
            views: &views,
            scratch: scratch.path(),
            format: self.format(),
            memory: self.memory,
            is_locked: !self.unlocked,
            is_fleet: self.fleet.is_some(),
        };
        session.run(sql)
    }

    fn format(&self) -> Format {
        match (self.json, self.csv) {
            (true, _) => Format::Json,
            (_, true) => Format::Csv,
            _ => Format::Table,
        }
    }

    /// Splits the words of the command line into the name of a trace and SQL. With a fleet, there
    /// is no name.
    fn name_and_sql(&self) -> Result<(Option<String>, Option<String>), Failure> {
        let mut words = self.words.iter().cloned();
        let name = if self.fleet.is_none() { words.next() } else { None };
        let sql = words.next();
        match words.next() {
            None => Ok((name, sql)),
            Some(word) => Err(Failure::new(
                format!("there is an extra argument: '{word}'"),
                "nothing was read",
                "mallard query --fleet ROOT 'SQL', with the SQL in quotes",
            )),
        }
    }

    /// Returns the SQL from the command line, a file or stdin. `None` if the user will type SQL in
    /// the shell.
    fn sql(&self, word: Option<String>) -> Result<Option<String>, Failure> {
        if word.is_some() && self.file.is_some() {
            return Err(Failure::new(
                "SQL is given twice, as an argument and by --file",
                "nothing was read",
                "leave one of them out",
            ));
        }
        let is_stdin = word.as_deref() == Some("-") || self.file.as_deref() == Some(Path::new("-"));
        match (&self.file, word) {
            (Some(path), _) if !is_stdin => match std::fs::read_to_string(path) {
                Ok(text) => Ok(Some(text)),
                Err(error) => Err(unreadable(&path.display().to_string(), &error)),
            },
            (None, Some(text)) if !is_stdin => Ok(Some(text)),
            (None, None) if std::io::stdin().is_terminal() => Ok(None),
            _ => match std::io::read_to_string(std::io::stdin()) {
                Ok(text) => Ok(Some(text)),
                Err(error) => Err(unreadable("stdin", &error)),
            },
        }
    }
}

/// Returns whether a query may read the events. Such a query names the events, or the blocks, which
/// are derived from the events.
fn needs_events(sql: Option<&str>) -> bool {
    let Some(sql) = sql else { return true };
    let sql = sql.to_ascii_lowercase();
    sql.contains("events") || sql.contains("allocs")
}

/// Returns whether a query may read the regions. Only for such a query are the regions found.
fn needs_regions(sql: Option<&str>) -> bool {
    sql.is_none_or(|sql| sql.to_ascii_lowercase().contains("regions"))
}

fn unreadable(place: &str, error: &std::io::Error) -> Failure {
    Failure::new(
        format!("cannot read SQL from {place}: {}", error.to_string().to_lowercase()),
        "no query was run",
        "mallard query NAME --file FILE, or mallard query NAME - for stdin",
    )
}

fn no_name() -> Failure {
    Failure::new(
        "no trace was named",
        "nothing was read",
        "mallard query NAME 'SELECT * FROM sites', for a trace of mallard record",
    )
}

fn no_folder(error: &std::io::Error) -> Failure {
    let error = error.to_string().to_lowercase();
    Failure::new(
        format!("cannot create a directory for data that does not fit into memory: {error}"),
        "no query was run",
        "df -h /tmp, or set TMPDIR",
    )
    .with_status(UNREADABLE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_query_about_events_or_blocks_reads_the_event_table() {
        assert!(needs_events(None));
        assert!(needs_events(Some("SELECT count(*) FROM Events")));
        assert!(needs_events(Some("FROM ALLOCS")));
        assert!(!needs_events(Some("SELECT * FROM sites")));
    }

    #[test]
    fn regions_are_computed_only_for_a_query_about_regions_or_for_the_shell() {
        assert!(needs_regions(None) && needs_regions(Some("FROM Regions")));
        assert!(!needs_regions(Some("SELECT * FROM sites")));
    }
}
