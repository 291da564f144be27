//! Implements `mallard export --fleet`, which adds a trace to the tables of many runs of many
//! services.
//!
//! The files of a fleet are `TABLE/service=S/date=D/run=R/part-*.parquet` in a directory. The name
//! of the table comes before the keys, because Spark reads each table from one directory.

mod key;
pub mod write;

pub use key::{date, name, Key};

use mallard_measure::error::status::UNREADABLE;
use mallard_measure::error::Failure;
use mallard_measure::output::shell::quoted_path;
use mallard_trace::tables::schema::{ALL, ALLOCS};
use std::fs;
use std::path::{Path, PathBuf};

/// A directory with the tables of many runs.
pub struct Fleet {
    root: PathBuf,
}

impl Fleet {
    /// Opens a fleet. Fails if the directory has another layout.
    pub fn open(root: &Path) -> Result<Fleet, Failure> {
        let fleet = Fleet { root: root.to_path_buf() };
        if !root.is_dir() {
            return Err(Failure::new(
                format!("there is no directory {}", root.display()),
                "nothing was read",
                format!("mallard export NAME --fleet {} --service S", quoted_path(root)),
            )
            .with_status(UNREADABLE));
        }
        fleet.check()?;
        Ok(fleet)
    }

    /// Opens a fleet, or makes an empty one.
    fn open_or_make(root: &Path) -> Result<Fleet, Failure> {
        match fs::create_dir(root) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(Failure::new(
                format!("cannot make {}: {}", root.display(), error.to_string().to_lowercase()),
                "nothing was written",
                format!("mkdir -p {}", quoted_path(root)),
            )
            .with_status(UNREADABLE)),
            _ => Fleet::open(root),
        }
    }

    /// Returns the directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the names of the tables that at least one run has.
    pub fn tables(&self) -> Vec<&'static str> {
        names().filter(|table| self.root.join(table).is_dir()).collect()
    }

    /// Returns whether the fleet has a run.
    fn has(&self, key: &Key) -> bool {
        self.root.join("sites").join(key.folder()).exists()
    }

    /// Finds the same run under another service or date.
    fn elsewhere(&self, key: &Key) -> Option<PathBuf> {
        let services = folders(&self.root.join("sites"));
        let runs = services
            .flat_map(|service| folders(&service))
            .map(|date| date.join(format!("run={}", key.run)));
        let own = self.root.join("sites").join(key.folder());
        runs.filter(|run| *run != own).find(|run| run.exists())
    }

    /// Fails if the directory contains anything except the tables of a fleet. An empty directory
    /// passes.
    fn check(&self) -> Result<(), Failure> {
        for entry in entries(&self.root) {
            let is_table = names().any(|name| entry.file_name().is_some_and(|n| n == name));
            if !is_table || !entry.is_dir() {
                return Err(self.other_layout(&entry));
            }
            for service in entries(&entry) {
                let name = service.file_name().unwrap_or_default().to_string_lossy();
                if !name.starts_with("service=") || !service.is_dir() {
                    return Err(self.other_layout(&service));
                }
            }
        }
        Ok(())
    }

    fn other_layout(&self, entry: &Path) -> Failure {
        Failure::new(
            format!("{} is not a fleet: it contains {}", self.root.display(), entry.display()),
            "a fleet contains only TABLE/service=S/date=D/run=R; nothing was written",
            "name a new directory, or one that mallard export --fleet has written",
        )
        .with_status(UNREADABLE)
    }
}

/// Returns the names of all tables of a fleet.
fn names() -> impl Iterator<Item = &'static str> {
    ALL.iter().chain(&[&ALLOCS]).map(|schema| schema.name)
}

/// Returns the paths in a directory, except names that begin with a dot.
fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter(|entry| !entry.file_name().as_encoded_bytes().starts_with(b"."))
        .map(|entry| entry.path())
}

fn folders(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    entries(folder).filter(|path| path.is_dir())
}
