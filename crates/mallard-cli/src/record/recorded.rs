//! Reads from the notes of a trace what is known about the recorded program: its file, command
//! line, and environment.

use mallard_measure::error::Failure;
use mallard_measure::mallocs::{base, probe, shown, Allocator};
use mallard_measure::output::shell::quoted_words;
use mallard_trace::manifest::Manifest;
use mallard_trace::run_notes::SystemText;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Returns the words of the command line. `None` if the trace does not contain them.
pub fn words(manifest: &Manifest) -> Option<Vec<OsString>> {
    let words = manifest.notes.arguments.as_ref()?;
    let words: Vec<OsString> = words.iter().map(|word| word.0.clone()).collect();
    (!words.is_empty()).then_some(words)
}

/// Returns the command line, quoted for a shell. The command line of an imported trace is returned
/// as it was imported.
pub fn command_line(manifest: &Manifest) -> Option<String> {
    let words = words(manifest)?;
    match (manifest.imported_from(), &words[..]) {
        (Some(_), [line]) => Some(line.to_string_lossy().into_owned()),
        _ => Some(quoted_words(&words)),
    }
}

/// Returns the path in a note, such as the path of the program.
pub fn path(note: &Option<SystemText>) -> Option<PathBuf> {
    note.as_ref().map(|path| PathBuf::from(&path.0))
}

/// Returns the environment variables in the trace.
pub fn variables(manifest: &Manifest) -> impl Iterator<Item = (String, OsString)> + '_ {
    let variables = manifest.notes.environment.iter().flatten();
    variables.map(|(name, value)| (name.clone(), value.0.clone()))
}

/// Returns the allocator of a recorded program, which is the malloc that the program was linked
/// with, or `base`.
pub fn base_of(trace: &mallard_trace::Trace) -> Result<Allocator, Failure> {
    let modules = trace.table(&mallard_trace::tables::schema::MODULES)?.texts("path")?;
    let base = base();
    let linked = modules.iter().map(Path::new).find(|path| probe::is_malloc(&shown(path)));
    Ok(match linked.filter(|path| base.name == "glibc" && path.exists()) {
        Some(path) => Allocator {
            name: shown(path),
            library: Some(path.to_path_buf()),
            environment: Vec::new(),
            as_started: false,
        },
        None => base,
    })
}
