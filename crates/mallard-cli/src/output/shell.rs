//! Words as a shell needs them, for commands that the user is asked to type.

use std::ffi::OsString;
use std::path::Path;

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

/// A command line, or a note with a command, in which the first `mallard` is as the user called this process: the
/// word itself, or a path if the user typed one, because then PATH may have no `mallard`. The command may stand
/// at the beginning, after assignments of variables, or after a semicolon.
pub fn as_called(line: &str) -> String {
    let name = std::env::args_os().next().and_then(|name| name.into_string().ok());
    let path = name.filter(|name| name.ends_with("/mallard"));
    path.map_or(line.to_string(), |path| called(line, &quoted(&path)))
}

fn called(line: &str, name: &str) -> String {
    let begins_with_assignment = line.split(' ').next().is_some_and(|word| word.contains('='));
    let is_command = |&(at, _): &(usize, &str)| {
        let front = &line[..at];
        front.is_empty() || front.ends_with("; ") || begins_with_assignment && front.ends_with(' ')
    };
    match line.match_indices("mallard ").find(is_command) {
        Some((at, word)) => format!("{}{name} {}", &line[..at], &line[at + word.len()..]),
        None => line.to_string(),
    }
}

/// A word as a shell needs it.
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./=:,+@%^".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_string();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// The words of a command line as a shell needs them.
pub fn quoted_words(words: &[OsString]) -> String {
    words.iter().map(|word| quoted(&word.to_string_lossy())).collect::<Vec<_>>().join(" ")
}

/// A path as a shell needs it. A path that begins with a dash becomes `./-x`, because commands take
/// `-x` for an option.
pub fn quoted_path(path: &Path) -> String {
    let shown = path.to_string_lossy();
    match shown.starts_with('-') {
        true => quoted(&format!("./{shown}")),
        false => quoted(&shown),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_to_type_names_mallard_as_the_user_called_it() {
        let shown = |line| called(line, "bin/mallard");
        assert_eq!(shown("mallard report x"), "bin/mallard report x");
        assert_eq!(
            shown("A=b C=d mallard try -- mallard -"),
            "A=b C=d bin/mallard try -- mallard -"
        );
        assert_eq!(shown("mallard-replay FILE"), "mallard-replay FILE");
        assert_eq!(shown("open mallard report"), "open mallard report");
        assert_eq!(shown("A='x y' B=/mallard mallard -a"), "A='x y' B=/mallard bin/mallard -a");
        assert_eq!(shown("none here; mallard try --list"), "none here; bin/mallard try --list");
    }

    #[test]
    fn a_path_is_quoted_so_that_no_command_takes_it_for_an_option() {
        let quoted = ["a/b.mallard", "sp ace", "-.mallard", "-a;b", "it's"]
            .map(|path| quoted_path(Path::new(path)));
        assert_eq!(quoted, ["a/b.mallard", "'sp ace'", "./-.mallard", "'./-a;b'", r"'it'\''s'"]);
    }
}
