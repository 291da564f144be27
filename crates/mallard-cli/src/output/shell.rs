//! Words as a shell needs them, for commands that the user is asked to type.

use std::ffi::OsString;

/// The names of variables of the environment that change how programs allocate begin with these words.
/// LD_PRELOAD is not among them: it names a malloc of its own.
const VARIABLES: [&str; 5] =
    ["MALLOC_", "GLIBC_TUNABLES", "PYTHONMALLOC", "MIMALLOC_", "TCMALLOC_"];

/// Whether a variable of the environment changes how programs allocate.
pub fn concerns_malloc(name: &str) -> bool {
    VARIABLES.iter().any(|prefix| name.starts_with(prefix))
}

/// The variables that change how programs allocate, as a shell needs them in front of a command:
/// `PYTHONMALLOC=malloc `. Empty if there is none.
pub fn assignments(variables: impl Iterator<Item = (String, String)>) -> String {
    let mut all: Vec<_> = variables.filter(|(name, _)| concerns_malloc(name)).collect();
    all.sort();
    all.iter().map(|(name, value)| format!("{name}={} ", quoted(value))).collect()
}

/// The assignments of the variables of this process.
pub fn own_assignments() -> String {
    let text = |text: OsString| text.to_string_lossy().into_owned();
    assignments(std::env::vars_os().map(|(name, value)| (text(name), text(value))))
}

/// A word as a shell needs it.
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./=:,+@%^".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_string();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}
