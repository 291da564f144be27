//! `mallard verify`: compares two programs, or a program before and after a change.

use super::options::Options;
use super::report::{Report, Words};
use crate::error::Failure;
use crate::output::shell::{own_assignments, quoted_words};
use crate::process::find_program;
use crate::process::starter;
use crate::rounds::host::Host;
use crate::rounds::subject::Subject;
use std::ffi::OsString;
use std::process::ExitCode;

/// Compares CPU time and memory of a program before and after a change.
///
/// Both commands run alternately, as `mallard try` runs a program under several mallocs. The exit
/// status is 1 if AFTER has a loss in CPU time or memory, or another output or status than BEFORE,
/// and otherwise 0.
#[derive(clap::Args)]
pub struct Command {
    /// The command before the change. A shell runs the command if it has quotes, variables, pipes
    /// or other shell syntax.
    #[arg(long, value_name = "CMD")]
    before: String,
    /// The command after the change.
    #[arg(long, value_name = "CMD")]
    after: String,
    #[command(flatten)]
    options: Options,
}

/// A finished comparison of two commands.
pub struct Compared {
    /// The command before the change.
    pub before: String,
    /// The command after the change.
    pub after: String,
    /// The result, as `--json` prints it.
    pub result: serde_json::Value,
    /// The exit status.
    pub status: ExitCode,
}

impl Command {
    /// Measures, and prints the result. `record` is the command that shows where a program
    /// allocates. `add` may add notes to the report.
    pub fn run(self, record: &str, add: impl FnOnce(&mut Report)) -> Result<Compared, Failure> {
        starter::prepare();
        let before = subject("before", &self.before)?;
        let after = subject("after", &self.after)?;
        let mut host = Host::now();
        let (measured, seed) =
            self.options.measure(&before, std::slice::from_ref(&after), false, &[])?;
        let mut report = Report::new(before, vec![after.clone()], measured, &self.options, seed);
        report.words = Words {
            kind: "program",
            program: self.after.clone(),
            breaks: "behaves differently",
            is_pair: true,
            ..Words::default()
        };
        report.notes.extend(host.notes());
        add(&mut report);
        report.next = self.next(&report, &after, record);
        report.show(&self.options)?;
        let status = if report.has_loss() { ExitCode::FAILURE } else { report.status() };
        let result = report.json();
        Ok(Compared { before: self.before, after: self.after, result, status })
    }

    fn next(&self, report: &Report, after: &Subject, record: &str) -> String {
        if report.rows()[0].broken.is_some() {
            return format!(
                "{}{}, the command of --after by itself",
                own_assignments(),
                self.after
            );
        }
        if let Some(more) = report.more_time(&self.options) {
            return more;
        }
        format!(
            "{}{record} {}, which shows where it allocates",
            own_assignments(),
            quoted_words(&after.words)
        )
    }
}

/// Makes a subject of a command line.
fn subject(name: &str, command: &str) -> Result<Subject, Failure> {
    let words: Vec<OsString> = match needs_shell(command) {
        true => ["/bin/sh", "-c", command].map(OsString::from).to_vec(),
        false => command.split_whitespace().map(OsString::from).collect(),
    };
    let Some(program) = words.first() else {
        let what = format!("the command of --{name} is empty");
        return Err(Failure::new(what, "nothing was started", "mallard verify --help"));
    };
    let path = find_program(program, &format!("mallard verify --{name}"))?;
    Ok(Subject {
        name: name.to_string(),
        path,
        words,
        variables: Vec::new(),
        library: None,
        is_setting: false,
    })
}

/// Returns whether a command line has characters that are special in a shell.
fn needs_shell(command: &str) -> bool {
    command.contains(|c: char| "'\"\\$`|&;<>()*?[]#~{}!\n".contains(c))
        || command.split_whitespace().next().is_some_and(|word| word.contains('='))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_is_used_only_for_commands_with_shell_syntax() {
        let words = |command| subject("after", command).unwrap().words;
        assert_eq!(words("true  a -b"), ["true", "a", "-b"]);
        assert_eq!(words("true | cat")[..2], ["/bin/sh", "-c"]);
        assert_eq!(words("A=1 true")[2], "A=1 true");
    }

    #[test]
    fn an_empty_command_is_rejected() {
        assert!(subject("before", " ")
            .unwrap_err()
            .what()
            .contains("the command of --before is empty"));
        assert_eq!(subject("before", "no-such-program").unwrap_err().status(), 127);
    }
}
