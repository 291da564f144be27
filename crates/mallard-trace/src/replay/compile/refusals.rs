//! Makes the errors of a compilation.

use super::super::compiled::RuleResult;
use super::super::plan::Rule;
use super::super::strategy::Strategy;
use crate::error::{Error, ErrorKind, Result};
use crate::threads::Process;
use crate::trace::Trace;
use std::io;
use std::path::Path;

/// Returns the error for a trace without events, or without events of the wanted process.
pub(super) fn no_events(trace: &Trace, process: Option<i32>) -> Result<Error> {
    let name = trace.folder().display();
    let (what, help) = match process {
        Some(process) => (
            format!("the trace {name} has no events of the process {process}"),
            format!("the processes are {}", Process::list(trace)?),
        ),
        None => (
            format!("the trace {name} has no events"),
            "record a program that allocates: mallard record -o NAME -- PROGRAM".to_string(),
        ),
    };
    Ok(Error::new(ErrorKind::Missing, what, "nothing was replayed", help))
}

/// Returns the error for a file that cannot be written.
pub(super) fn refused(to: &Path, error: &io::Error) -> Error {
    Error::new(
        ErrorKind::System,
        format!("cannot write the op stream {}: {error}", to.display()),
        "nothing was replayed; the trace is unchanged",
        "make room on the disk: an op stream has 16 bytes for each event",
    )
}

/// Returns the error for a corrupt trace in which two blocks have the same ID.
pub(super) fn damaged(alloc: i64) -> Error {
    let what = format!("the trace is corrupt: two blocks have the ID {alloc}");
    Error::damaged(what, "nothing was replayed")
}

/// Returns the error for a rule whose wink-out would free blocks that are still used afterwards.
pub(super) fn escapes(plan: &str, number: usize, rule: &Rule, result: &RuleResult) -> Error {
    let from = result.escape_from.as_deref().unwrap_or("?");
    let foreign = match result.foreign_escapes {
        0 => String::new(),
        n => format!(", {n} freed by another thread"),
    };
    let unfinished = match result.unfinished {
        0 => String::new(),
        1 => " (1 of its instances never ends)".to_string(),
        n => format!(" ({n} of its instances never end)"),
    };
    let (blocks, are) = if result.escapes == 1 { ("block", "is") } else { ("blocks", "are") };
    let normal = Strategy::new(rule.strategy.number() - 1).map_or(String::new(), |s| s.to_string());
    Error::new(
        ErrorKind::Refused,
        format!(
            "{plan}: rule {number} winks out {} {} of {} that {} used afterwards{foreign}, for \
             example of {from}{unfinished}",
            result.escapes, blocks, rule.scope, are
        ),
        "nothing was replayed",
        format!(
            "use {normal}, which frees each block, or a larger region; --unsafe replays it anyway"
        ),
    )
}

/// Returns the error for a trace with more blocks in use than an op stream has slots.
pub(super) fn too_many_blocks() -> Error {
    Error::new(
        ErrorKind::Refused,
        "the trace has more than 2^32 blocks in use at the same time",
        "nothing was replayed",
        "record a part of the run: mallard record --window FROM..TO -o NAME -- PROGRAM",
    )
}
