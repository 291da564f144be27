//! Writes to the terminal.

use super::columns::Columns;
use super::width::{fitted, width};
use crate::error::status::UNREADABLE;
use crate::error::Failure;
use std::io::{ErrorKind, Write};

/// Writes a text for people to stdout, wrapped to the width of the terminal. Returns the same
/// errors as [`write`].
pub fn say(text: &str) -> Result<(), Failure> {
    write(&fitted(text, width()))
}

/// Writes a text for programs, such as JSON, to stdout unchanged. A full disk is an error, but a
/// closed pipe is not, because a reader such as `head` may stop early.
pub fn write(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => Err(Failure::new(
            format!("cannot write to stdout: {}", e.to_string().to_lowercase()),
            "not everything was written",
            "df -h .",
        )
        .with_status(UNREADABLE)),
        _ => Ok(()),
    }
}

/// Makes a text table without a frame. The first column has names.
pub fn plain_table(titles: &[&str], lines: impl IntoIterator<Item = Vec<String>>) -> Columns {
    let titles = titles.iter().map(ToString::to_string).collect();
    let row = |line: Vec<String>| line.into_iter().map(comfy_table::Cell::new).collect();
    Columns::new(titles, lines.into_iter().map(row).collect(), 1)
}
