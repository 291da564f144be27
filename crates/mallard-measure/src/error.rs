//! Errors of the command. Each error has three lines: what happened, what the state is, and what to
//! type next.

use crate::output::width::{fitted, width};
use std::fmt;
use std::io::Write;

/// Writes a text for people to stderr, wrapped to the width of the terminal. Errors are ignored as
/// in [`tell_as_is`].
pub fn tell(text: impl fmt::Display) {
    tell_as_is(fitted(&text.to_string(), width()));
}

/// Writes a line to stderr. If stderr cannot be written, the line is lost and the status of the
/// command stays as it is, because there is no other place for a message.
pub fn tell_as_is(line: impl fmt::Display) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// The reason why a command failed.
#[derive(Debug)]
pub struct Failure {
    what: String,
    state: String,
    help: String,
    status: u8,
}

/// Exit statuses. Those from 125 on are the same as in `timeout` of coreutils. They differ from
/// most statuses of recorded programs.
pub mod status {
    /// The arguments are invalid.
    pub const USAGE: u8 = 2;
    /// A file cannot be read, or the command cannot do what the user asked for.
    pub const UNREADABLE: u8 = 3;
    /// Mallard itself failed.
    pub const MALLARD_FAILED: u8 = 125;
    /// The program cannot be recorded.
    pub const CANNOT_RECORD: u8 = 126;
    /// There is no such program.
    pub const NOT_FOUND: u8 = 127;
}

impl Failure {
    /// Makes an error. All parts are in lower case, without a full stop. `help` is what the user
    /// should type next.
    pub fn new(what: impl Into<String>, state: impl Into<String>, help: impl Into<String>) -> Self {
        Failure { what: what.into(), state: state.into(), help: help.into(), status: status::USAGE }
    }

    /// Returns the same error with `status` instead of the exit status 2.
    pub fn with_status(self, status: u8) -> Self {
        Failure { status, ..self }
    }

    /// Returns the same error with another text for what to type next.
    pub fn with_help(self, help: impl Into<String>) -> Self {
        Failure { help: help.into(), ..self }
    }

    /// Returns the first line, which describes what happened.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// Returns the last line, which describes what to type next.
    pub fn help(&self) -> &str {
        &self.help
    }

    /// Returns the exit status of the command.
    pub fn status(&self) -> u8 {
        self.status
    }
}

/// Converts an error of another crate, which consists of the same three parts.
impl<E: Into<[String; 3]>> From<E> for Failure {
    fn from(error: E) -> Failure {
        let [what, state, help] = error.into();
        Failure::new(what, state, help).with_status(status::UNREADABLE)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "mallard: {}\n  {}\n  help: {}", self.what, self.state, self.help)
    }
}
