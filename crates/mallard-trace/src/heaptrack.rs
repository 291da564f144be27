//! Imports a file of the profiler heaptrack. The file is either a raw file of `heaptrack -r`, which
//! has addresses, or an interpreted file, which has the names of functions instead.
//!
//! Both kinds are text with one line for each event, uncompressed or compressed with zstd or gzip.
//! Numbers are hexadecimal. [`crate::manifest::lack`] lists what such a file lacks compared with a
//! recording of Mallard.

mod convert;
mod input;
mod modules;
mod tables;

use crate::error::{help_to_write, Error, ErrorKind, Result};
use crate::import::{import_known, parent_of, Options, Progress};
use crate::manifest::lack;
use crate::run_notes::RunNotes;
use crate::stream::Reader;
use crate::trace::Trace;
use convert::{Converter, STEP_NS, VERSION_MAX};
use input::{Fault, Lines};
use std::fs::File;
use std::io::Seek;
use std::path::Path;

/// Returns whether a file was written by heaptrack, judged by its first bytes.
pub fn is_heaptrack(path: &Path) -> bool {
    input::begins_with(path, b"v ")
}

/// Makes a trace from a heaptrack file, as the new directory `to`. If an error occurs, `to` stays
/// as it was: missing, or the earlier trace.
pub fn import(
    file: &Path,
    to: &Path,
    options: &Options,
    progress: &mut dyn FnMut(Progress),
) -> Result<Trace> {
    let spool = spool_beside(to)?;
    let mut converter = Converter::new(spool.try_clone().map_err(|error| no_room(to, &error))?)
        .map_err(|error| no_room(to, &error))?;
    let mut lines = Lines::open(file)?;
    let error_of = |fault, lines: &Lines| match fault {
        Fault::Line(why) => lines.damaged(&why),
        Fault::Newer(version) => newer(file, version),
        Fault::Write(error) => no_room(to, &error),
    };
    while let Some(line) = lines.next_line()? {
        converter.line(line).map_err(|fault| error_of(fault, &lines))?;
        if lines.number() % (1 << 19) == 0 {
            progress(Progress::Records(lines.number()));
        }
    }
    let read = converter.finish().map_err(|fault| error_of(fault, &lines))?;

    let mut options = options.clone();
    options.notes = notes(&read, options.notes);
    let mut spool = spool;
    spool.rewind().map_err(|error| no_room(to, &error))?;
    let reader = Reader::new(spool, &file.display().to_string())?;
    import_known(reader, to, &options, read.known, progress)
}

/// Returns the manifest entries about the origin of the trace.
fn notes(read: &convert::Read, known: RunNotes) -> RunNotes {
    let mut lacks = vec![lack::THREADS, lack::TIMES, lack::FREE_STACKS];
    if read.known.is_some() {
        lacks.push(lack::ADDRESSES);
    }
    if read.was_attached {
        lacks.push(lack::BEGINNING);
    }
    RunNotes {
        imported_from: Some(read.writer.clone()),
        lacks: Some(lacks.into_iter().map(String::from).collect()),
        time_step_ns: Some(STEP_NS),
        arguments: read.command.clone().map(|line| vec![line.into()]).or(known.arguments),
        peak_rss: read.peak_rss.or(known.peak_rss),
        ..known
    }
}

/// Makes an unnamed temporary file in the directory in which the trace will be.
fn spool_beside(to: &Path) -> Result<File> {
    let parent = parent_of(to)?;
    tempfile::tempfile_in(parent).map_err(|error| no_room(to, &error))
}

fn no_room(to: &Path, error: &std::io::Error) -> Error {
    Error::new(
        ErrorKind::System,
        format!("cannot write {}: {error}", to.display()),
        "no trace was written, not even a part of it; the heaptrack file is unchanged",
        help_to_write(error),
    )
}

fn newer(file: &Path, version: u64) -> Error {
    Error::new(
        ErrorKind::Newer,
        format!(
            "{} has version {version} of heaptrack's format, but this command reads 1 to {}",
            file.display(),
            VERSION_MAX
        ),
        "nothing was written",
        "mallard record -- PROGRAM, which records more, or a newer mallard",
    )
}
