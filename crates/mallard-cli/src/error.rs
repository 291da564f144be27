//! Errors of the command. Each error has three lines: what happened, the state, and what to type next.

use std::fmt;

/// The reason why a command failed.
#[derive(Debug)]
pub struct Failure {
    what: String,
    state: String,
    help: String,
}

impl Failure {
    /// Makes an error. All parts are in lower case, without a full stop. `help` is what to type next.
    pub fn new(what: impl Into<String>, state: impl Into<String>, help: impl Into<String>) -> Self {
        Failure { what: what.into(), state: state.into(), help: help.into() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "mallard: {}\n  {}\n  help: {}", self.what, self.state, self.help)
    }
}
