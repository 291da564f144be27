//! Writes a file atomically, so that a reader sees either the old content or all of the new
//! content.

use mallard_measure::error::status::UNREADABLE;
use mallard_measure::error::Failure;
use mallard_measure::output::shell::quoted_path;
use nix::libc;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The reason why the content of a file could not be written.
#[derive(Debug)]
pub enum Trouble {
    /// The system rejected the write.
    System(io::Error),
    /// The content cannot be made.
    Content(Failure),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Trouble {
        Trouble::System(error)
    }
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Trouble {
        Trouble::Content(failure)
    }
}

impl From<mallard_trace::Error> for Trouble {
    fn from(error: mallard_trace::Error) -> Trouble {
        Trouble::Content(error.into())
    }
}

/// Writes a file, or stdout if the path is `-`. The content first goes to a temporary file next to
/// `path`. An existing file is replaced only with `force`, and stays unchanged if anything fails.
pub fn write_whole(
    path: &Path,
    force: bool,
    fill: impl FnOnce(&mut dyn Write) -> Result<(), Trouble>,
) -> Result<(), Failure> {
    if path == Path::new("-") {
        return fill_stdout(fill);
    }
    if !force && path.symlink_metadata().is_ok() {
        return Err(exists(path));
    }
    let refused = |error: &io::Error| unwritable(path, error);
    let mut file = tempfile::Builder::new()
        .prefix(".mallard.")
        .suffix(".part")
        .permissions(PermissionsExt::from_mode(0o666))
        .tempfile_in(folder_of(path))
        .map_err(|error| refused(&error))?;
    let mut buffer = BufWriter::new(file.as_file_mut());
    let filled = fill(&mut buffer).and_then(|()| Ok(buffer.flush()?));
    drop(buffer);
    filled.and_then(|()| Ok(file.as_file().sync_all()?)).map_err(|trouble| match trouble {
        Trouble::System(error) => refused(&error),
        Trouble::Content(failure) => failure,
    })?;
    let persisted = if force { file.persist(path) } else { file.persist_noclobber(path) };
    persisted.map(drop).map_err(|error| match error.error.kind() {
        io::ErrorKind::AlreadyExists => exists(path),
        _ => refused(&error.error),
    })
}

/// Returns the directory that contains the file of a path.
fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent.to_path_buf(),
        _ => PathBuf::from("."),
    }
}

/// Writes to stdout. A closed pipe, for example to `head`, is not an error.
fn fill_stdout(fill: impl FnOnce(&mut dyn Write) -> Result<(), Trouble>) -> Result<(), Failure> {
    let mut out = BufWriter::new(io::stdout().lock());
    let filled = fill(&mut out).and_then(|()| Ok(out.flush()?));
    // Discards the bytes that could not be written. Otherwise, dropping `out` would try to write
    // these bytes again.
    let _ = out.into_parts();
    match filled {
        Ok(()) => Ok(()),
        Err(Trouble::Content(failure)) => Err(failure),
        Err(Trouble::System(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(Trouble::System(error)) => Err(unwritable(Path::new("stdout"), &error)),
    }
}

fn exists(path: &Path) -> Failure {
    Failure::new(
        format!("{} exists already", path.display()),
        "nothing was overwritten",
        "add --force, or choose another name with -o",
    )
    .with_status(UNREADABLE)
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    Failure::new(
        format!("cannot write {}: {}", path.display(), error.to_string().to_lowercase()),
        "nothing was written, and what was there before is unchanged",
        help_to_write(path, error),
    )
    .with_status(UNREADABLE)
}

/// Returns what the user can do if the system rejects the writing of a file.
pub fn help_to_write(path: &Path, error: &io::Error) -> String {
    let folder = folder_of(path);
    let pasted = quoted_path(&folder);
    match error.kind() {
        io::ErrorKind::NotFound if !folder.exists() => format!("mkdir -p {pasted}"),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => format!("df -h {pasted}"),
        _ if matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE)) => {
            "ulimit -n: mallard needs a few more open files".to_string()
        }
        _ => format!("ls -ld {pasted}, or write elsewhere with -o"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_file_is_replaced_only_with_force() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let text =
            |text: &'static str| move |to: &mut dyn Write| Ok(to.write_all(text.as_bytes())?);
        write_whole(&path, false, text("one")).unwrap();
        let refused = write_whole(&path, false, text("two")).unwrap_err();
        assert!(refused.to_string().contains("--force"), "{refused}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "one");
        write_whole(&path, true, text("three")).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "three");
    }

    #[test]
    fn a_file_is_unchanged_if_its_new_content_cannot_be_produced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "old").unwrap();
        let full = |to: &mut dyn Write| {
            to.write_all(b"half")?;
            Err(Trouble::System(io::ErrorKind::StorageFull.into()))
        };
        let refused = write_whole(&path, true, full).unwrap_err();
        assert!(refused.to_string().contains("df -h"), "{refused}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
