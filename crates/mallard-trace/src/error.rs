//! Errors. Each has three lines: what happened, what state the files are in, and what to type next.

use rustix::io::Errno;
use std::fmt;
use std::io;

/// The category of an error, for callers that handle some errors differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The operating system failed to read or write a file.
    System,
    /// The file is neither an event stream nor a trace.
    Foreign,
    /// The stream was written on a machine with the other byte order.
    ByteOrder,
    /// A newer version of Mallard wrote the stream or the trace.
    Newer,
    /// The file ends before its first record.
    Truncated,
    /// The file is corrupt.
    Damaged,
    /// The trace exists, and the caller did not ask to overwrite it.
    Exists,
    /// There is no such file or trace.
    Missing,
    /// A replay plan is invalid, or does not fit the trace.
    Plan,
    /// The trace or the plan cannot be replayed, or only with an option that forces the replay.
    Refused,
}

/// The reason why a stream or a trace could not be read or written.
#[derive(Debug, Clone)]
pub struct Error {
    kind: ErrorKind,
    what: String,
    state: String,
    help: String,
}

/// The result of reading or writing a stream or a trace.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Makes an error. All parts are in lower case, without a full stop. `help` is what the user
    /// should type next.
    pub fn new(
        kind: ErrorKind,
        what: impl Into<String>,
        state: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        Error { kind, what: what.into(), state: state.into(), help: help.into() }
    }

    /// Makes an error about a trace whose content is inconsistent.
    pub(crate) fn damaged(what: impl Into<String>, state: &str) -> Self {
        let help = "copy the trace again, or record again: mallard record -o NAME -- PROGRAM";
        Error::new(ErrorKind::Damaged, what, state, help)
    }

    /// Returns the category of the error.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns the first line: what happened.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// Returns the second line: the state after the error, such as "nothing was written".
    pub fn state(&self) -> &str {
        &self.state
    }

    /// Returns the third line: what to type next.
    pub fn help(&self) -> &str {
        &self.help
    }
}

/// Returns what to type next if the system fails to write a file of a trace.
pub(crate) fn help_to_write(error: &io::Error) -> &'static str {
    let is_limit = |limit: Errno| error.raw_os_error() == Some(limit.raw_os_error());
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "make room on the disk, or name another place with -o"
        }
        _ if is_limit(Errno::MFILE) || is_limit(Errno::NFILE) => {
            "ulimit -n: mallard needs a few more open files"
        }
        _ => "name another place with -o",
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "mallard: {}\n  {}\n  help: {}", self.what, self.state, self.help)
    }
}

impl std::error::Error for Error {}

/// The three lines of an error: what happened, the state, and what to type next.
impl From<Error> for [String; 3] {
    fn from(error: Error) -> Self {
        [error.what, error.state, error.help]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_for_a_failed_write_depends_on_the_cause() {
        let help = |cause: Errno| help_to_write(&cause.into());
        assert!(help(Errno::NOSPC).starts_with("make room on the disk"));
        assert!(help(Errno::DQUOT).starts_with("make room on the disk"));
        assert!(help(Errno::MFILE).starts_with("ulimit -n"));
        assert_eq!(help(Errno::ACCESS), "name another place with -o");
    }
}
