//! Writes the tables of one run, and moves all of them into the fleet at the end.

use super::{names, Fleet, Key};
use mallard_measure::error::status::UNREADABLE;
use mallard_measure::error::Failure;
use mallard_measure::output::shell::quoted_path;
use mallard_trace::allocs;
use mallard_trace::tables::schema::{ALL, ALLOCS, EVENTS};
use mallard_trace::tables::{Schema, Style, Tables};
use mallard_trace::Trace;
use nix::fcntl::{Flock, FlockArg};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A trace to add to a fleet.
pub struct Addition<'a> {
    pub trace: &'a Trace,
    pub key: Key,
    /// Whether to add the tables of the events and the blocks, too.
    pub events: bool,
    /// Whether to replace the same run if the fleet already has it.
    pub force: bool,
}

/// The size of the tables that were added to a fleet.
pub struct Added {
    /// Bytes of all files.
    pub bytes: u64,
    /// The number of tables.
    pub tables: usize,
}

/// Adds a trace to the fleet in a directory. If anything fails, the fleet is unchanged.
pub fn add(root: &Path, addition: &Addition) -> Result<Added, Failure> {
    let fleet = Fleet::open_or_make(root)?;
    addition.must_be_new(&fleet)?;
    let refused = |error: &io::Error| unwritable(&fleet, error);
    let place = tempfile::Builder::new()
        .prefix(".mallard.")
        .suffix(".part")
        .tempdir_in(root)
        .map_err(|error| refused(&error))?;
    let written = addition.write(&fleet, &place)?;
    // Two exports of the same run may reach this point at the same time. The lock lets only one of them
    // move its files.
    let lock = File::options()
        .create(true)
        .append(true)
        .open(root.join(".mallard.lock"))
        .and_then(|file| Ok(Flock::lock(file, FlockArg::LockExclusive).map_err(|(_, e)| e)?))
        .map_err(|error| refused(&error))?;
    addition.must_be_new(&fleet)?;
    let mut moves = Moves::default();
    if let Err(error) = addition.place(&fleet, &place, &mut moves) {
        moves.undo();
        return Err(refused(&error));
    }
    drop(lock);
    Ok(written)
}

impl Addition<'_> {
    fn must_be_new(&self, fleet: &Fleet) -> Result<(), Failure> {
        let (root, run) = (fleet.root().display(), &self.key.run);
        if let Some(other) = fleet.elsewhere(&self.key) {
            return Err(Failure::new(
                format!("the run {run} is in {root} already, as {}", other.display()),
                "nothing was written, because IDs of blocks and call stacks are valid only within one run",
                "name this run with --run",
            )
            .with_status(UNREADABLE));
        }
        if fleet.has(&self.key) && !self.force {
            return Err(Failure::new(
                format!("the run {run} of {} is in {root} already", self.key.service),
                "nothing was written",
                "add --force to replace the run, or name another with --run",
            )
            .with_status(UNREADABLE));
        }
        Ok(())
    }

    /// Returns the tables in the order in which they are moved. The sites come last, because the
    /// fleet has a run as soon as it has the run's sites.
    fn tables(&self) -> impl Iterator<Item = &'static Schema> {
        let blocks = self.events.then_some(&ALLOCS);
        let events = self.events;
        let is_wanted = move |schema: &&'static Schema| events || schema.name != EVENTS.name;
        blocks.into_iter().chain(ALL.into_iter().filter(is_wanted))
    }

    /// Writes all tables into the directory `place`.
    fn write(&self, fleet: &Fleet, place: &TempDir) -> Result<Added, Failure> {
        let mut tables = Tables::with_style(place.path(), Style::Portable);
        let mut rows = || -> Result<(), Failure> {
            for schema in self.tables() {
                self.write_table(schema, &mut tables)?;
            }
            Ok(())
        };
        let read = rows();
        let written = tables
            .finish()
            .map_err(|error| unwritable(fleet, &io::Error::other(error.what().to_string())));
        // A write error also stops the reading. The write error explains more than the read error,
        // so the write error is returned first.
        let written = written?;
        read?;
        Ok(Added { bytes: written.iter().map(|table| table.bytes).sum(), tables: written.len() })
    }

    fn write_table(&self, schema: &'static Schema, tables: &mut Tables) -> Result<(), Failure> {
        if schema.name == ALLOCS.name {
            let events = self.trace.table(&EVENTS)?;
            allocs::derive(&events, &mut |columns| tables.write(&ALLOCS, columns))?;
            return Ok(());
        }
        Ok(self.trace.copy(schema, tables)?)
    }

    /// Moves the tables into the fleet, and the tables that they replace into the directory
    /// `place`.
    fn place(&self, fleet: &Fleet, place: &TempDir, moves: &mut Moves) -> io::Result<()> {
        let old = place.path().join("old");
        fs::create_dir(&old)?;
        for table in names() {
            let run = fleet.root().join(table).join(self.key.folder());
            if run.exists() {
                moves.rename(run, old.join(table))?;
            }
        }
        for schema in self.tables() {
            let run = fleet.root().join(schema.name).join(self.key.folder());
            let from = place.path().join(schema.name);
            if !schema.has_parts {
                // A table in a single file becomes a directory with one part.
                fs::create_dir(&from)?;
                fs::rename(from.with_extension("parquet"), from.join("part-0000.parquet"))?;
            }
            fs::create_dir_all(run.parent().expect("a folder of keys"))?;
            moves.rename(from, run)?;
        }
        Ok(())
    }
}

/// The old and the new paths of renamed directories, in the order of renaming.
#[derive(Default)]
struct Moves(Vec<(PathBuf, PathBuf)>);

impl Moves {
    fn rename(&mut self, from: PathBuf, to: PathBuf) -> io::Result<()> {
        fs::rename(&from, &to)?;
        self.0.push((from, to));
        Ok(())
    }

    /// Renames the directories back.
    fn undo(self) {
        for (from, to) in self.0.into_iter().rev() {
            // If renaming back fails too, nothing else can be done.
            let _ = fs::rename(to, from);
        }
    }
}

fn unwritable(fleet: &Fleet, error: &io::Error) -> Failure {
    let (shown, root) = (fleet.root().display(), quoted_path(fleet.root()));
    Failure::new(
        format!("cannot add to the fleet {shown}: {}", error.to_string().to_lowercase()),
        "the fleet is unchanged",
        format!("make room on the disk: df -h {root}; or ls -ld {root}"),
    )
    .with_status(UNREADABLE)
}
