//! Finds the libraries of allocators.

use super::{Entry, Kind};
use crate::error::status::MALLARD_FAILED;
use crate::error::Failure;
use crate::output::shell::quoted_path;
use crate::process::installed::{in_builds, library_folders, malloc, must_be_library};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Finds the library of an entry of the list; `None` for glibc.
pub fn of(entry: &Entry) -> Result<Option<PathBuf>, Failure> {
    let name = entry.libraries().next().unwrap_or_default();
    let found = match entry.kind {
        Kind::Libc | Kind::Tunable | Kind::Known => return Ok(None),
        Kind::Debian => entry.libraries().find_map(in_system),
        Kind::Crate => first(in_builds("bench/peers/release", name)).or(in_system(name)),
        Kind::Mallard => match std::env::var_os("MALLARD_MALLOC") {
            Some(path) => return named(Path::new(&path)).map(Some),
            None => first(malloc(name).places()),
        },
    };
    found.map(Some).ok_or_else(|| {
        let help = match entry.kind {
            Kind::Debian => "mallard try --install".to_string(),
            Kind::Crate => format!(
                "./x bench programs --smoke builds it in a checkout, or --allocator {0}=/path/to/lib{0}.so",
                entry.name.split('-').next().unwrap_or_default()
            ),
            _ => malloc(name).help(),
        };
        let what = format!("the library of {} was not found: {name}", entry.name);
        Failure::new(what, "nothing was started", help).with_status(MALLARD_FAILED)
    })
}

/// Finds a library that the user has named by a path, or by a name that the dynamic linker finds.
pub fn named(library: &Path) -> Result<PathBuf, Failure> {
    let (shown, pasted) = (library.display(), quoted_path(library));
    let is_path = library.components().count() > 1 || library.is_file();
    let refused = |why: String| {
        let help = if is_path {
            format!("ls -lL {pasted}; file -L {pasted}")
        } else {
            format!("give the path of the library, or apt-file search {shown}")
        };
        Failure::new(format!("{shown} cannot be preloaded: {why}"), "nothing was started", help)
            .with_status(MALLARD_FAILED)
    };
    if !is_path {
        let found = in_system(&library.to_string_lossy());
        return found
            .ok_or_else(|| refused("the dynamic linker finds no such library".to_string()));
    }
    let path = std::path::absolute(library).unwrap_or_else(|_| library.to_path_buf());
    let whole = path.canonicalize().and_then(must_be_library);
    whole.map_err(|e| refused(e.to_string().to_lowercase()))?;
    Ok(path)
}

/// Finds a library by its name in the cache of the dynamic linker, or in the usual directories.
fn in_system(name: &str) -> Option<PathBuf> {
    let cached = cache().iter().find(|(known, _)| known == name).map(|(_, path)| path.clone());
    let listed = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let usual = ["/usr/local", "/usr"]
        .into_iter()
        .flat_map(|prefix| library_folders().map(|folder| Path::new(prefix).join(folder)));
    let folders = std::env::split_paths(&listed).chain(usual);
    first(
        std::iter::empty()
            .chain(cached)
            .chain(folders.filter(|folder| folder.is_absolute()).map(|folder| folder.join(name))),
    )
}

fn first(paths: impl IntoIterator<Item = PathBuf>) -> Option<PathBuf> {
    paths.into_iter().find(|path| path.canonicalize().and_then(must_be_library).is_ok())
}

/// Returns the names and paths in the cache of the dynamic linker.
fn cache() -> &'static [(String, PathBuf)] {
    static CACHE: OnceLock<Vec<(String, PathBuf)>> = OnceLock::new();
    CACHE.get_or_init(|| {
        let run = |program| Command::new(program).arg("-p").output().ok();
        let Some(output) = run("ldconfig").or_else(|| run("/sbin/ldconfig")) else {
            return Vec::new();
        };
        parse_cache(&String::from_utf8_lossy(&output.stdout))
    })
}

fn parse_cache(text: &str) -> Vec<(String, PathBuf)> {
    let lines = text.lines().filter_map(|line| line.trim().split_once(" => "));
    // Lines without an architecture in parentheses are libraries for 32-bit programs.
    let lines = lines.filter(|(name, _)| name.contains("64"));
    let first_word = |name: &str| name.split(' ').next().unwrap_or_default().to_string();
    lines.map(|(name, path)| (first_word(name), PathBuf::from(path))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_of_the_dynamic_linker_is_read() {
        let text = "2 libs found in cache\n\
            \tlibjemalloc.so.2 (libc6,x86-64) => /lib/x86_64-linux-gnu/libjemalloc.so.2\n\
            \tlibold.so.1 (libc6) => /lib/i386-linux-gnu/libold.so.1\n";
        let path = PathBuf::from("/lib/x86_64-linux-gnu/libjemalloc.so.2");
        assert_eq!(parse_cache(text), [("libjemalloc.so.2".to_string(), path)]);
    }

    #[test]
    fn a_file_that_cannot_be_preloaded_is_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let text = folder.path().join("libtext.so");
        std::fs::write(&text, "text").unwrap();
        assert!(named(&text).unwrap_err().what().contains("it is not a library"));
        let missing = folder.path().join("libmissing.so");
        assert!(named(&missing).unwrap_err().what().contains("no such file"));
        assert!(named(Path::new("libnosuch.so.7"))
            .unwrap_err()
            .what()
            .contains("finds no such library"));
    }
}
