//! Makes a trace from an event stream.

mod folder;
mod known;
mod ledger_thread;
mod marks;
mod reading;
mod rows;
mod samples;

use crate::error::Result;
use crate::manifest::{Manifest, Stream, Totals, SCHEMA};
use crate::run_notes::RunNotes;
use crate::site_row::SiteRow;
use crate::stream::{Ending, Reader};
use crate::symbols::{self, Lookup};
use crate::tables::Tables;
use crate::trace::Trace;
pub(crate) use folder::parent_of;
use folder::Folder;
pub(crate) use known::{Known, KnownFrame};
pub use reading::Progress;
use reading::Reading;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The options of an import.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Whether to replace an existing trace of the same name.
    pub force: bool,
    /// Directories with debug information that are searched before /usr/lib/debug, by build-id and
    /// by the path of the program.
    pub debug_folders: Vec<PathBuf>,
    /// Whether to name functions `module+0x…` without looking up their real names.
    pub without_symbols: bool,
    /// The maximum time for fetching missing debug information. The program debuginfod-find fetches
    /// it from the servers that DEBUGINFOD_URLS names. With `None`, nothing is fetched.
    pub fetch_for: Option<Duration>,
    /// Whether to leave out paths, arguments, environment and host, as [`Manifest::redact`]
    /// describes. The file name at the end of a path is kept.
    pub redact: bool,
    /// Maximum number of records to read.
    pub records_max: Option<u64>,
    /// Notes about the recorded run, for the entry `notes` of the manifest.
    pub notes: RunNotes,
}

/// Makes a trace from the event stream in a file, as the new directory `to`. If an error occurs,
/// `to` stays as it was: missing, or the earlier trace.
pub fn import(
    stream: &Path,
    to: &Path,
    options: &Options,
    progress: &mut dyn FnMut(Progress),
) -> Result<Trace> {
    let reader = Reader::open(stream)?.with_records_max(options.records_max.unwrap_or(u64::MAX));
    import_from(reader, to, options, progress)
}

/// Does the same as [`import`] for a stream from any reader.
pub fn import_from<R: Read>(
    reader: Reader<R>,
    to: &Path,
    options: &Options,
    progress: &mut dyn FnMut(Progress),
) -> Result<Trace> {
    import_known(reader, to, options, None, progress)
}

/// Does the same as [`import_from`]. `known` has the functions of the frames if another program has
/// already looked them up.
pub(crate) fn import_known<R: Read>(
    mut reader: Reader<R>,
    to: &Path,
    options: &Options,
    known: Option<Known>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Trace> {
    let folder = Folder::new(to, options.force)?;
    let has_addresses = known.is_none();
    let mut reading = Reading::new(reader.header(), Tables::new(folder.path()), has_addresses);
    reading.read(&mut reader, progress)?;
    let cpu_ns = options.notes.recorded_cpu_ns.and_then(|ns| i64::try_from(ns).ok());
    let read = reading.finish(cpu_ns)?;
    let memory = read.memory();

    let mut tables = Tables::new(folder.path());
    if options.redact {
        tables.redact();
    }
    read.write_small_tables(&mut tables);
    let (modules, frames) = read.modules.into_frames();
    progress(Progress::Symbols(frames.len()));
    let (modules, frames, symbols) = match known {
        Some(known) => known.resolve(frames),
        None => {
            let folders = (!options.without_symbols).then_some(options.debug_folders.as_slice());
            let lookup = Lookup { folders, fetch_for: options.fetch_for };
            let mut fetching = |number, of| progress(Progress::Fetching(number, of));
            let symbols = symbols::look_up(&modules, &frames, lookup, &mut fetching);
            (modules, frames, symbols)
        }
    };
    rows::frames(&mut tables, &modules, &frames, &symbols);

    progress(Progress::Sites(read.sites.sites.len()));
    let cpu = read.cpu;
    let threads = read.threads.iter().filter(|thread| thread.events > 0).count();
    let (mut site_rows, mut whole) = crate::site_measures::rows(read.sites, &cpu, threads);
    if !has_addresses {
        site_rows.iter_mut().chain([&mut whole]).for_each(SiteRow::forget_addresses);
    }
    rows::sites(&mut tables, &site_rows);
    let mut written = read.written;
    written.extend(tables.finish()?);

    let header = reader.header();
    let mut manifest = Manifest {
        format: Manifest::format(),
        schema: SCHEMA,
        tool: format!("mallard {}", env!("CARGO_PKG_VERSION")),
        stream: Stream {
            version: crate::format::VERSION,
            clock: header.clock,
            clock_hz: header.clock_hz,
            start_unix: header.start_unix,
            pid: header.pid,
            sample_bytes: header.sample_bytes,
            records: reader.records(),
            ending: describe(reader.ending()),
        },
        losses: read.losses,
        counts: read.counts,
        repairs: read.repairs,
        totals: Totals {
            duration_ns: read.duration_ns,
            cpu_ns: cpu.total_ns,
            sites: whole,
            site_count: site_rows.len() as u64,
            stacks: read.tree.nodes() as u64,
            frames: frames.len() as u64,
            threads: threads as u64,
            processes: read.processes.len() as u64,
        },
        memory,
        tables: written,
        notes: options.notes.clone(),
    };
    if options.redact {
        manifest.redact();
    }
    folder.finish(&manifest)?;
    Trace::open(to)
}

fn describe(ending: Option<&Ending>) -> String {
    match ending {
        Some(Ending::Complete { .. }) => "complete".to_string(),
        Some(Ending::Damaged(why)) => format!("damaged: {why}"),
        Some(Ending::Cut) | None => "cut".to_string(),
    }
}
