//! Runs DuckDB once.

use super::json::{with_json_values, without_line_numbers};
use super::views::{quoted, Views};
use mallard_measure::error::status::{UNREADABLE, USAGE};
use mallard_measure::error::tell_as_is;
use mallard_measure::error::Failure;
use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io::{self, IsTerminal, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};

/// The output format of the rows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Table,
    Json,
    Csv,
}

/// The settings for a run of DuckDB.
pub struct Session<'a> {
    pub program: &'a Path,
    pub views: &'a Views,
    /// A directory for data that do not fit into memory.
    pub scratch: &'a Path,
    pub format: Format,
    /// The limit of DuckDB's memory in bytes.
    pub memory: Option<u64>,
    /// Whether the SQL can access only files in the directories of the views.
    pub is_locked: bool,
    pub is_fleet: bool,
}

impl Session<'_> {
    /// Starts DuckDB, and returns when it has exited. Without SQL, the shell of DuckDB opens.
    pub fn run(self, sql: Option<String>) -> Result<ExitCode, Failure> {
        let sql = sql.map(|sql| match self.format {
            Format::Json => with_json_values(&sql),
            Format::Table | Format::Csv => sql,
        });
        let mut command = match sql {
            Some(_) => self.batch(),
            None => self.shell(),
        };
        // SIGINT is caught and not passed on, because the terminal also sends it to DuckDB. The
        // shell of DuckDB then stops only the query.
        let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM]).map_err(|e| self.no_start(&e))?;
        let mut child = command.spawn().map_err(|e| self.no_start(&e))?;
        let process = Pid::from_raw(child.id() as i32);
        let handle = signals.handle();
        let passing_on = std::thread::spawn(move || {
            for signal in signals.forever().filter(|&signal| signal != SIGINT) {
                // The signal cannot be sent if DuckDB has already exited.
                let _ = Signal::try_from(signal).map(|signal| kill(process, signal));
            }
        });
        let ended = converse(&mut child, sql);
        handle.close();
        let _ = passing_on.join();
        let (status, words) = ended.map_err(|e| self.no_start(&e))?;
        self.result(status, &words)
    }

    fn shell(&self) -> Command {
        let mut command = Command::new(self.program);
        self.add_statements(&mut command);
        command
            .arg("-cmd")
            .arg(".print The tables of the trace are views: SHOW TABLES; .quit leaves");
        command
    }

    /// Makes the command for one query. DuckDB ignores the user's settings file, so that a query
    /// gives the same result on every machine.
    fn batch(&self) -> Command {
        let mut command = Command::new(self.program);
        command.args(["-no-init", "-batch", "-bail"]);
        self.add_statements(&mut command);
        for words in self.output() {
            command.arg("-cmd").arg(words);
        }
        command.stdin(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Adds the statements that DuckDB runs before the SQL of the user.
    fn add_statements(&self, command: &mut Command) {
        let mut first =
            format!("SET temp_directory = {};", quoted(&self.scratch.to_string_lossy()));
        if let Some(bytes) = self.memory {
            first += &format!(" SET memory_limit = '{bytes}B';");
        }
        if self.is_locked {
            let folders: Vec<String> = self.views.folders.iter().map(|f| quoted(f)).collect();
            let folders = folders.join(", ");
            first += &format!(" SET allowed_directories = [{folders}];");
            first += " SET enable_external_access = false;";
        }
        for text in [&first].into_iter().chain(&self.views.statements) {
            command.arg("-cmd").arg(text);
        }
        if self.is_locked {
            // Safe mode locks the settings (lock_configuration) and disables the shell's own
            // commands for files and programs.
            command.args(["-cmd", ".safe_mode"]);
        }
    }

    /// Returns the shell commands that select the format of the output.
    fn output(&self) -> Vec<&str> {
        match self.format {
            Format::Json => vec![".mode json"],
            Format::Csv => vec![".mode csv", ".nullvalue \"\""],
            // By default DuckDB shows 40 rows of a table and truncates long lines.
            Format::Table if io::stdout().is_terminal() => vec![".maxrows 10000000"],
            // The output of DESCRIBE has colours unless they are turned off.
            Format::Table => vec![".maxrows 10000000", ".maxwidth 1000000", ".highlight off"],
        }
    }

    fn no_start(&self, error: &io::Error) -> Failure {
        let (shown, error) = (self.program.display(), error.to_string().to_lowercase());
        Failure::new(
            format!("{shown} cannot be started: {error}"),
            "no query was run",
            format!("{shown} -version; or MALLARD_DUCKDB=/path/to/another/duckdb"),
        )
        .with_status(UNREADABLE)
    }

    /// Converts the exit status of DuckDB into an exit status of this command or an error.
    fn result(&self, status: ExitStatus, words: &str) -> Result<ExitCode, Failure> {
        match status.signal() {
            // SIGPIPE means that the reader of the rows has exited, as `head` does. SIGINT means
            // that the user has stopped the query.
            Some(signal) if signal == Signal::SIGPIPE as i32 => return Ok(ExitCode::SUCCESS),
            Some(signal) if signal == SIGINT => return Ok(ExitCode::from(130)),
            Some(signal) => return Err(killed(signal, self.memory)),
            None => {}
        }
        if !status.success() && !words.is_empty() {
            return Err(self.refusal(words.trim()));
        }
        let _ = io::stderr().write_all(words.as_bytes()); // nothing depends on a warning
        Ok(match status.code() {
            Some(0) if self.views.damaged.is_empty() => ExitCode::SUCCESS,
            Some(0) | None => ExitCode::from(UNREADABLE),
            Some(code) => ExitCode::from(code as u8),
        })
    }

    /// Converts an error message of DuckDB into a failure.
    fn refusal(&self, words: &str) -> Failure {
        // The lines after the first show where the error is.
        let (what, place) = words.split_once('\n').unwrap_or((words, ""));
        if !place.is_empty() {
            let place = place.trim_matches('\n');
            match self.format {
                Format::Json => tell_as_is(without_line_numbers(place)),
                Format::Table | Format::Csv => tell_as_is(place),
            }
        }
        let (status, state, help) = self.meaning(words);
        Failure::new(format!("DuckDB: {what}"), state, help).with_status(status)
    }

    /// Returns the exit status, the text on what was done, and the help for an error message of
    /// DuckDB.
    fn meaning(&self, words: &str) -> (u8, &'static str, &'static str) {
        let says = |part: &&str| words.contains(*part);
        let damages = ["Failed to read file", "No magic bytes", "IO Error", "INTERNAL Error"];
        let lacks = ["name events does", "name allocs does"];
        if says(&"Out of Memory Error") {
            let help =
                "a larger --memory; or fewer rows, or threads: SET threads = 1 with --unlocked";
            return (UNREADABLE, "the query needs more memory; the trace is unchanged", help);
        }
        if says(&"Permission Error") && self.is_locked {
            let state = "a query can access only the files of the trace; nothing was changed";
            return (USAGE, state, "mallard query --unlocked");
        }
        if damages.iter().any(says) {
            let help = "copy the trace again, or record again: mallard record -o NAME -- PROGRAM";
            return (UNREADABLE, "the query has no result", help);
        }
        if self.is_fleet && lacks.iter().any(says) {
            let help = "mallard export NAME --fleet ROOT --service S --events";
            return (USAGE, "no run of the fleet was added with its events", help);
        }
        let help = "mallard query NAME 'SHOW TABLES'; then 'DESCRIBE sites'";
        (USAGE, "the query has no result; the trace is unchanged", help)
    }
}

/// Writes the SQL to DuckDB and waits until DuckDB exits. Returns the status and the text that
/// DuckDB wrote to stderr.
fn converse(child: &mut Child, sql: Option<String>) -> io::Result<(ExitStatus, String)> {
    let writer = child.stdin.take().zip(sql).map(|(mut stdin, sql)| {
        std::thread::spawn(move || {
            // A failed write is ignored, because DuckDB may exit before it has read all SQL.
            let _ = stdin.write_all(sql.as_bytes());
        })
    });
    let mut words = Vec::new();
    if let Some(mut stderr) = child.stderr.take() {
        stderr.read_to_end(&mut words)?;
    }
    let status = child.wait()?;
    if let Some(writer) = writer {
        let _ = writer.join();
    }
    Ok((status, String::from_utf8_lossy(&words).into_owned()))
}

fn killed(signal: i32, memory: Option<u64>) -> Failure {
    let name = Signal::try_from(signal).map_or("unknown", |signal| signal.as_str());
    let help = match memory {
        None if signal == Signal::SIGKILL as i32 => {
            "mallard query --memory 1GiB, if the system had no memory left"
        }
        _ => "start the query again",
    };
    Failure::new(
        format!("signal {signal}, {name}, ended DuckDB"),
        "the query has no result, or only a part; the trace is unchanged",
        help,
    )
    .with_status(UNREADABLE)
}
