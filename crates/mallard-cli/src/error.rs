//! The three lines of an error: what happened, what state things are in, what to type.

use std::fmt;

/// Why a command did not do what was asked.
#[derive(Debug)]
pub struct Failure {
    what: String,
    state: String,
    help: String,
}

impl Failure {
    /// Lower case, without a full stop; `help` is what to type next.
    pub fn new(what: impl Into<String>, state: impl Into<String>, help: impl Into<String>) -> Self {
        Failure { what: what.into(), state: state.into(), help: help.into() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "mallard: {}\n  {}\n  help: {}", self.what, self.state, self.help)
    }
}
