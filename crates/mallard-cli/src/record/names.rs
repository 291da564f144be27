//! The paths of a trace: the directory NAME.mallard, and the file NAME.stream while the program
//! runs.

use crate::output::file::help_to_write;
use mallard_measure::error::status::MALLARD_FAILED;
use mallard_measure::error::Failure;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// The paths to which a recording is written.
#[derive(Debug)]
pub struct Names {
    /// The directory of tables.
    pub trace: PathBuf,
    /// The file of events, which exists while the program runs.
    pub stream: PathBuf,
}

impl Names {
    fn of(stem: &Path) -> Names {
        let with = |extension: &str| {
            let mut name = stem.as_os_str().to_owned();
            name.push(extension);
            PathBuf::from(name)
        };
        Names { trace: with(".mallard"), stream: with(".stream") }
    }

    /// Creates the stream file, which reserves the name for this recording. `None` if the name is
    /// used, even by a recording that began at the same time.
    fn claim(&self) -> Result<Option<File>, Failure> {
        if self.trace.exists() {
            return Ok(None);
        }
        match File::create_new(&self.stream) {
            // Another recording may have finished since the check above. Its trace appears before
            // its stream is removed.
            Ok(_) if self.trace.exists() => {
                self.remove_stream();
                Ok(None)
            }
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(None),
            Err(error) => Err(self.unwritable(&error)),
        }
    }

    /// Returns the error for a stream that cannot be created or written.
    pub fn unwritable(&self, error: &io::Error) -> Failure {
        let help = help_to_write(&self.stream, error);
        let what =
            format!("cannot write {}: {}", self.stream.display(), error.to_string().to_lowercase());
        Failure::new(what, "the program was not started", help).with_status(MALLARD_FAILED)
    }

    /// Removes the stream, which is no longer needed.
    pub fn remove_stream(&self) {
        let _ = std::fs::remove_file(&self.stream); // a stream file that stays does no harm
    }
}

/// Returns the name without `.mallard`.
fn stem_of(name: &Path) -> PathBuf {
    if name.extension().is_some_and(|extension| extension == "mallard") {
        name.with_extension("")
    } else {
        name.to_path_buf()
    }
}

/// Returns the directory NAME.mallard for a name with or without `.mallard`.
pub fn trace_of(name: &Path) -> PathBuf {
    Names::of(&stem_of(name)).trace
}

/// Chooses the names, and creates the stream file. Without `wanted`, uses the name of the program,
/// with a number if that name is used.
pub fn claim(wanted: Option<&Path>, program: &Path, force: bool) -> Result<(Names, File), Failure> {
    let Some(wanted) = wanted else {
        let name = PathBuf::from(program.file_name().unwrap_or("program".as_ref()));
        return (1u32..)
            .map(|number| match number {
                1 => Names::of(&name),
                _ => Names::of(Path::new(&format!("{}.{number}", name.display()))),
            })
            .find_map(|names| Some((names.claim().transpose()?, names)))
            .map(|(file, names)| Ok((names, file?)))
            .expect("fewer than 2^32 traces");
    };
    let names = Names::of(&stem_of(wanted));
    // Only a trace is ever replaced, so that a mistyped name does not destroy a directory of the
    // user.
    let is_other =
        names.trace.exists() && !names.trace.join(mallard_trace::manifest::FILE).is_file();
    if force && is_other {
        return Err(Failure::new(
            format!("{} exists already, and is not a trace", names.trace.display()),
            "the program was not started, and nothing was overwritten",
            "choose another name with -o",
        )
        .with_status(MALLARD_FAILED));
    }
    let file = match force {
        true => Some(File::create(&names.stream).map_err(|error| names.unwritable(&error))?),
        false => names.claim()?,
    };
    if let Some(file) = file {
        return Ok((names, file));
    }
    let there = if names.trace.exists() { &names.trace } else { &names.stream };
    Err(Failure::new(
        format!("{} exists already", there.display()),
        "the program was not started, and nothing was overwritten",
        "add --force, or choose another name with -o",
    )
    .with_status(MALLARD_FAILED))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_name_may_end_in_dot_mallard_or_not() {
        let folder = tempfile::tempdir().unwrap();
        for wanted in ["app", "app.mallard"].map(|name| folder.path().join(name)) {
            let (names, _) = claim(Some(&wanted), Path::new("/bin/x"), false).unwrap();
            assert_eq!(names.trace, folder.path().join("app.mallard"));
            assert_eq!(names.stream, folder.path().join("app.stream"));
            names.remove_stream();
        }
    }

    #[test]
    fn an_existing_trace_is_not_overwritten_without_force() {
        let folder = tempfile::tempdir().unwrap();
        let wanted = folder.path().join("app");
        std::fs::create_dir(folder.path().join("app.mallard")).unwrap();
        let refused = claim(Some(&wanted), Path::new("x"), false).unwrap_err();
        assert_eq!(refused.status(), 125);
        assert!(refused.to_string().contains("--force"), "{refused}");
        let refused = claim(Some(&wanted), Path::new("x"), true).unwrap_err();
        assert!(refused.to_string().contains("is not a trace"), "{refused}");
        std::fs::write(folder.path().join("app.mallard/manifest.json"), "{}").unwrap();
        assert!(claim(Some(&wanted), Path::new("x"), true).is_ok());
    }

    #[test]
    fn a_trace_name_is_taken_while_its_event_log_exists() {
        let folder = tempfile::tempdir().unwrap();
        let wanted = folder.path().join("app");
        let (names, _) = claim(Some(&wanted), Path::new("x"), false).unwrap();
        let refused = claim(Some(&wanted), Path::new("x"), false).unwrap_err();
        assert!(refused.what().ends_with("app.stream exists already"), "{refused}");
        names.remove_stream();
        assert!(claim(Some(&wanted), Path::new("x"), false).is_ok());
    }
}
