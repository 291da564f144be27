//! Implements `mallard doctor`, which reports in advance whether a program can be recorded, and
//! what the trace will lack.

use mallard_measure::error::status::CANNOT_RECORD;
use mallard_measure::error::Failure;
use mallard_measure::output::shell::{as_called, quoted, quoted_path};
use mallard_measure::output::terminal::{say, write};
use mallard_measure::process::installed::RECORDER;
use mallard_measure::process::proc::{self, Process};
use mallard_measure::process::program::script;
use mallard_measure::process::{examine, find_program};
use mallard_record::ticks;
use serde::Serialize;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

/// Checks whether programs can be recorded on this system, and whether PROG can be recorded.
///
/// Runs no program. The exit status is 0 if recording will work, and 126 if not.
#[derive(clap::Args)]
pub struct Command {
    /// Writes the findings as JSON.
    #[arg(long)]
    json: bool,
    /// The program that is to be recorded.
    #[arg(value_name = "PROG")]
    program: Option<OsString>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Verdict {
    Ok,
    Warning,
    Refused,
}

#[derive(Serialize)]
struct Check {
    verdict: Verdict,
    what: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    help: String,
}

fn ok(what: impl Into<String>) -> Check {
    Check { verdict: Verdict::Ok, what: what.into(), help: String::new() }
}

fn warning(what: impl Into<String>, help: impl Into<String>) -> Check {
    Check { verdict: Verdict::Warning, what: what.into(), help: help.into() }
}

fn refused(what: impl Into<String>, help: impl Into<String>) -> Check {
    Check { verdict: Verdict::Refused, what: what.into(), help: help.into() }
}

impl Command {
    /// Prints the findings.
    pub fn run(self) -> Result<ExitCode, Failure> {
        let mut checks = vec![recorder(), clock(), processes(), disk()];
        checks.extend(seccomp());
        if let Some(name) = &self.program {
            checks.extend(program(&find_program(name, "mallard doctor")?));
        }
        if self.json {
            write(&format!("{}\n", serde_json::to_string(&checks).expect("plain values")))?;
        } else {
            say(&checks.iter().map(line).collect::<String>())?;
        }
        let works = checks.iter().all(|check| check.verdict != Verdict::Refused);
        if works && !self.json {
            let name = self.program.unwrap_or_else(|| "PROG".into());
            let next = format!("mallard record -- {}", quoted(name));
            say(&format!("next: {}\n", as_called(&next)))?;
        }
        Ok(if works { ExitCode::SUCCESS } else { ExitCode::from(CANNOT_RECORD) })
    }
}

fn line(check: &Check) -> String {
    let mark = match check.verdict {
        Verdict::Ok => "ok      ",
        Verdict::Warning => "warning ",
        Verdict::Refused => "no      ",
    };
    let help = match check.help.as_str() {
        "" => String::new(),
        help => format!("          help: {}\n", as_called(help)),
    };
    format!("{mark}  {}\n{help}", check.what)
}

fn recorder() -> Check {
    match RECORDER.find("nothing was started") {
        Ok(path) => ok(format!("the recorder is {}", path.display())),
        Err(failure) => refused(failure.what(), failure.help()),
    }
}

fn clock() -> Check {
    if ticks::has_constant_counter() {
        ok("calls are timed with the processor's time stamp counter")
    } else {
        warning(
            "the time stamp counter is not constant here, so calls are timed with CLOCK_MONOTONIC",
            "you need not do anything; recording is slower here",
        )
    }
}

/// Checks whether a program can open the ring, which is the memory that it shares with mallard.
fn processes() -> Check {
    if proc::is_mounted() {
        ok("/proc is readable")
    } else {
        refused(
            "/proc is not mounted: a program cannot open the memory that it shares with mallard",
            "mount -t proc proc /proc",
        )
    }
}

fn disk() -> Check {
    const ENOUGH: u64 = 1 << 30;
    let Ok(stat) = nix::sys::statvfs::statvfs(".") else {
        return warning("the current directory cannot be examined", "write elsewhere with -o");
    };
    let free = stat.blocks_available() * stat.fragment_size();
    let shown = mallard_measure::output::units::bytes(free);
    if free < ENOUGH {
        warning(
            format!("{shown} are free in this directory; a busy program fills 1 GiB in 20 seconds"),
            "write elsewhere with -o, or limit with --max-size",
        )
    } else {
        ok(format!("{shown} are free in this directory"))
    }
}

fn seccomp() -> Option<Check> {
    let mode = proc::status(Process::This, "Seccomp:")?;
    (mode != "0").then(|| {
        ok("system calls are filtered here (seccomp), as in containers; recording needs open, mmap, madvise and nanosleep")
    })
}

fn program(path: &Path) -> Vec<Check> {
    let shown = path.display();
    let findings = match examine(path) {
        Ok(findings) => findings,
        Err(error) => {
            return vec![warning(
                format!("{shown} cannot be read: {error}"),
                format!("ls -l {}", quoted_path(path)),
            )]
        }
    };
    let mut checks: Vec<Check> = findings
        .into_iter()
        .chain(script(path))
        .map(|finding| {
            let what = format!("{shown}: {}", finding.what);
            if finding.refuses {
                refused(what, finding.help)
            } else {
                warning(what, finding.help)
            }
        })
        .collect();
    if checks.iter().all(|check| check.verdict != Verdict::Refused) {
        checks.push(ok(format!("{shown} can be recorded")));
    }
    checks
}
