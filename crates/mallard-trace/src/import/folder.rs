//! Makes the directory of a trace. The directory has a temporary name in the same parent directory,
//! and is renamed when it is complete.

use crate::error::{help_to_write, Error, ErrorKind, Result};
use crate::manifest::{Manifest, FILE};
use rustix::fs::{renameat_with, RenameFlags, CWD};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A directory that becomes a trace when `finish` renames it. Before that, dropping this value
/// removes the directory.
pub(super) struct Folder {
    place: TempDir,
    to: PathBuf,
    force: bool,
}

impl Folder {
    /// Makes the directory. Fails if `to` exists and must not be replaced.
    pub fn new(to: &Path, force: bool) -> Result<Folder> {
        let parent = parent_of(to)?;
        if to.symlink_metadata().is_ok() {
            // Replaces only a directory that is a trace, so that a mistyped name never deletes
            // anything else.
            if !force || !to.join(FILE).is_file() {
                return Err(exists(to, force));
            }
        }
        let name = to.file_name().unwrap_or_default().to_string_lossy();
        let place = tempfile::Builder::new()
            .prefix(&format!(".{name}."))
            .suffix(".part")
            .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .tempdir_in(parent)
            .map_err(|error| refused(to, &error))?;
        Ok(Folder { place, to: to.to_path_buf(), force })
    }

    pub fn path(&self) -> &Path {
        self.place.path()
    }

    /// Writes the manifest, and renames the directory to its final name.
    pub fn finish(self, manifest: &Manifest) -> Result<()> {
        let write = || -> io::Result<()> {
            let mut file = File::create_new(self.path().join(FILE))?;
            serde_json::to_writer_pretty(&mut file, manifest)?;
            file.write_all(b"\n")?;
            file.sync_all()
        };
        write().map_err(|error| refused(&self.to, &error))?;
        match renameat_with(CWD, self.path(), CWD, &self.to, RenameFlags::NOREPLACE) {
            Ok(()) => {
                // The directory has its final name now, so dropping `place` must not remove it.
                let _ = self.place.keep();
                Ok(())
            }
            Err(rustix::io::Errno::EXIST) if self.force => self.replace(),
            Err(rustix::io::Errno::EXIST) => Err(exists(&self.to, false)),
            Err(error) => self.rename_plainly(error),
        }
    }

    /// Exchanges the old trace with the new trace, then removes the old trace.
    fn replace(self) -> Result<()> {
        renameat_with(CWD, self.path(), CWD, &self.to, RenameFlags::EXCHANGE)
            .map_err(|error| refused(&self.to, &error.into()))?;
        self.place.close().map_err(|error| {
            Error::new(
                ErrorKind::System,
                format!("cannot remove the old {}: {error}", self.to.display()),
                "the new trace is complete",
                "remove the directory next to it whose name begins with a dot",
            )
        })
    }

    /// Renames the directory with a plain rename, if the file system supports neither
    /// `RENAME_NOREPLACE` nor `RENAME_EXCHANGE`.
    fn rename_plainly(self, error: rustix::io::Errno) -> Result<()> {
        use rustix::io::Errno;
        if !matches!(error, Errno::INVAL | Errno::NOSYS) {
            return Err(refused(&self.to, &error.into()));
        }
        if self.to.symlink_metadata().is_ok() {
            if !self.force {
                return Err(exists(&self.to, false));
            }
            fs::remove_dir_all(&self.to).map_err(|error| refused(&self.to, &error))?;
        }
        fs::rename(self.path(), &self.to).map_err(|error| refused(&self.to, &error))?;
        let _ = self.place.keep();
        Ok(())
    }
}

/// Returns the parent directory of `to`. Fails if the parent does not exist.
pub(crate) fn parent_of(to: &Path) -> Result<&Path> {
    let parent = to.parent().filter(|parent| *parent != Path::new(""));
    let parent = parent.unwrap_or(Path::new("."));
    if parent.is_dir() {
        return Ok(parent);
    }
    let folder = parent.display();
    Err(Error::new(
        ErrorKind::System,
        format!("cannot write {}: there is no directory {folder}", to.display()),
        "nothing was written",
        format!("mkdir -p {folder}"),
    ))
}

fn exists(to: &Path, force: bool) -> Error {
    let name = to.display();
    let (what, help) = if force {
        (format!("{name} exists and is not a trace"), "name another place with -o".to_string())
    } else {
        (
            format!("{name} exists"),
            "name another place with -o, or replace it with --force".to_string(),
        )
    };
    Error::new(ErrorKind::Exists, what, "nothing was written", help)
}

fn refused(to: &Path, error: &io::Error) -> Error {
    Error::new(
        ErrorKind::System,
        format!("cannot write {}: {error}", to.display()),
        "no trace was written, not even a part of it; the event log is unchanged",
        help_to_write(error),
    )
}
