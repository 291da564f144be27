//! The names of a trace: the folder NAME.mallard, and NAME.stream while the program runs.

use crate::error::status::MALLARD_FAILED;
use crate::error::Failure;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// Where a recording is written.
#[derive(Debug)]
pub struct Names {
    /// The folder of tables.
    pub trace: PathBuf,
    /// The events, while the program runs.
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

    fn is_free(&self) -> bool {
        !self.trace.exists() && !self.stream.exists()
    }

    /// The error for a stream that cannot be created or written.
    pub fn unwritable(&self, error: &io::Error) -> Failure {
        let folder = match self.stream.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let shown = folder.display();
        let help = match error.kind() {
            ErrorKind::NotFound if !folder.exists() => format!("mkdir -p {shown}"),
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => format!("df -h {shown}"),
            _ => format!("ls -ld {shown}, or write elsewhere with -o"),
        };
        let what =
            format!("cannot write {}: {}", self.stream.display(), error.to_string().to_lowercase());
        Failure::new(what, "the program was not started", help).with_status(MALLARD_FAILED)
    }

    /// Removes the stream, which is not needed any more.
    pub fn remove_stream(&self) {
        let _ = std::fs::remove_file(&self.stream); // a stream that stays harms nothing
    }
}

/// The name without `.mallard`.
fn stem_of(name: &Path) -> PathBuf {
    if name.extension().is_some_and(|extension| extension == "mallard") {
        name.with_extension("")
    } else {
        name.to_path_buf()
    }
}

/// The folder NAME.mallard for a name with or without `.mallard`.
pub fn trace_of(name: &Path) -> PathBuf {
    Names::of(&stem_of(name)).trace
}

/// Chooses the names. Without `wanted`, takes the name of the program, and a number if that name is
/// used.
pub fn choose(wanted: Option<&Path>, program: &Path, force: bool) -> Result<Names, Failure> {
    let Some(wanted) = wanted else {
        let name = PathBuf::from(program.file_name().unwrap_or("program".as_ref()));
        return Ok((1u32..)
            .map(|number| match number {
                1 => Names::of(&name),
                _ => Names::of(Path::new(&format!("{}.{number}", name.display()))),
            })
            .find(Names::is_free)
            .expect("fewer than 2^32 traces"));
    };
    let names = Names::of(&stem_of(wanted));
    // Only a trace is ever replaced, so that a mistyped name does not destroy a folder of the user.
    let is_other =
        names.trace.exists() && !names.trace.join(mallard_trace::manifest::FILE).is_file();
    if force && is_other {
        return Err(Failure::new(
            format!("{} exists already, and is no trace", names.trace.display()),
            "the program was not started, and nothing was overwritten",
            "choose another name with -o",
        )
        .with_status(MALLARD_FAILED));
    }
    if force || names.is_free() {
        return Ok(names);
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
    fn a_name_may_end_in_mallard_or_not() {
        for wanted in ["dir/app", "dir/app.mallard"] {
            let names = choose(Some(Path::new(wanted)), Path::new("/bin/x"), false).unwrap();
            assert_eq!(names.trace, Path::new("dir/app.mallard"));
            assert_eq!(names.stream, Path::new("dir/app.stream"));
        }
    }

    #[test]
    fn an_existing_trace_is_refused_without_force() {
        let folder = tempfile::tempdir().unwrap();
        let wanted = folder.path().join("app");
        std::fs::create_dir(folder.path().join("app.mallard")).unwrap();
        let refused = choose(Some(&wanted), Path::new("x"), false).unwrap_err();
        assert_eq!(refused.status(), 125);
        assert!(refused.to_string().contains("--force"), "{refused}");
        let refused = choose(Some(&wanted), Path::new("x"), true).unwrap_err();
        assert!(refused.to_string().contains("is no trace"), "{refused}");
        std::fs::write(folder.path().join("app.mallard/manifest.json"), "{}").unwrap();
        assert!(choose(Some(&wanted), Path::new("x"), true).is_ok());
    }
}
