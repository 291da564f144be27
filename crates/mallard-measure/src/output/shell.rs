//! Quotes words for a shell, in commands that the user is asked to type.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Prefixes of environment variables that change how programs allocate. LD_PRELOAD is not among
/// them, because it selects another malloc.
const VARIABLES: [&str; 5] =
    ["MALLOC_", "GLIBC_TUNABLES", "PYTHONMALLOC", "MIMALLOC_", "TCMALLOC_"];

/// The longest command line that is shown, in bytes.
const COMMAND_BYTES_MAX: usize = 2000;

/// Returns whether a variable of the environment changes how programs allocate.
pub fn concerns_malloc(name: &str) -> bool {
    VARIABLES.iter().any(|prefix| name.starts_with(prefix))
}

/// Returns the variables that change how programs allocate, quoted for a shell, to put in front of
/// a command: `PYTHONMALLOC=malloc `. Empty if there are none.
pub fn assignments(variables: impl Iterator<Item = (String, OsString)>) -> String {
    let mut all: Vec<_> = variables.filter(|(name, _)| concerns_malloc(name)).collect();
    all.sort();
    all.iter().map(|(name, value)| format!("{name}={} ", quoted(value))).collect()
}

/// Returns the assignments of such variables in the environment of this process.
pub fn own_assignments() -> String {
    assignments(
        std::env::vars_os().map(|(name, value)| (name.to_string_lossy().into_owned(), value)),
    )
}

/// Replaces the first `mallard` in a command line, or in a note with a command, by the path that
/// the user typed to start this process, because `mallard` may not be in PATH. Changes nothing if
/// the user typed `mallard` without a path. The command may be at the beginning of the line, after
/// variable assignments, or after a semicolon.
pub fn as_called(line: &str) -> String {
    let name = std::env::args_os().next();
    let is_own = |path: &OsString| {
        [&b"/mallard"[..], b"/mallard-try"].iter().any(|end| path.as_bytes().ends_with(end))
    };
    let path = name.filter(is_own);
    path.map_or(line.to_string(), |path| called(line, &quoted(&path)))
}

fn called(line: &str, name: &str) -> String {
    if let Some((folder, command)) = line.split_once(" && ").filter(|_| line.starts_with("cd ")) {
        return format!("{folder} && {}", called(command, name));
    }
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

/// Quotes a word for a shell. A word with control characters, or with bytes that are not UTF-8,
/// gets the form $'a\nb', which bash, ksh and zsh understand.
pub fn quoted(word: impl AsRef<OsStr>) -> String {
    let word = word.as_ref();
    let is_plain = |c: char| c.is_alphanumeric() || "-_./=:,+@%^".contains(c);
    match word.to_str() {
        Some(text) if !text.is_empty() && text.chars().all(is_plain) => text.to_string(),
        Some(text) if !text.contains(char::is_control) => {
            format!("'{}'", text.replace('\'', "'\\''"))
        }
        _ => format!("$'{}'", escaped(word.as_bytes())),
    }
}

/// Escapes bytes for a text between $' and '.
fn escaped(bytes: &[u8]) -> String {
    let octal = |byte: &u8| format!("\\{byte:03o}");
    let letter = |c: char| match c {
        '\n' => "\\n".to_string(),
        '\t' => "\\t".to_string(),
        '\'' | '\\' => format!("\\{c}"),
        c if c.is_control() => c.encode_utf8(&mut [0; 4]).as_bytes().iter().map(octal).collect(),
        c => c.to_string(),
    };
    let chunk = |chunk: std::str::Utf8Chunk| {
        let valid = chunk.valid().chars().map(letter);
        valid.chain(chunk.invalid().iter().map(octal)).collect::<String>()
    };
    bytes.utf8_chunks().map(chunk).collect()
}

/// Quotes the words of a command line for a shell. A very long command line is shortened to the
/// program and the word `ARGS`.
pub fn quoted_words(words: &[OsString]) -> String {
    let line = words.iter().map(quoted).collect::<Vec<_>>().join(" ");
    match words.first() {
        Some(program) if line.len() > COMMAND_BYTES_MAX => format!("{} ARGS", quoted(program)),
        _ => line,
    }
}

/// Quotes a path for a shell. A path that begins with a dash becomes `./-x`, because commands would
/// parse `-x` as an option.
pub fn quoted_path(path: &Path) -> String {
    match path.as_os_str().as_bytes().starts_with(b"-") {
        true => quoted(Path::new(".").join(path)),
        false => quoted(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_very_long_command_line_is_truncated() {
        let words = |number: usize| vec![OsString::from("cc"); number];
        assert_eq!(
            quoted_words(&words(600)),
            words(600).join(&OsString::from(" ")).to_str().unwrap()
        );
        assert_eq!(quoted_words(&words(60_000)), "cc ARGS");
    }

    #[test]
    fn a_suggested_command_names_mallard_as_the_user_called_it() {
        let shown = |line| called(line, "bin/mallard");
        let in_folder = shown("cd 'a b' && X=1 mallard run -- a");
        assert_eq!(in_folder, "cd 'a b' && X=1 bin/mallard run -- a");
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
    fn a_path_is_quoted_so_that_no_command_mistakes_it_for_an_option() {
        let quoted = ["a/b.mallard", "sp ace", "-.mallard", "-a;b", "it's"]
            .map(|path| quoted_path(Path::new(path)));
        assert_eq!(quoted, ["a/b.mallard", "'sp ace'", "./-.mallard", "'./-a;b'", r"'it'\''s'"]);
    }

    /// Returns the words into which a shell splits a command line. Each word is followed by a zero
    /// byte.
    fn read_by_shell(line: &str) -> Vec<u8> {
        let script = format!("printf '%s\\0' {line}");
        let ran = std::process::Command::new("bash").args(["-c", &script]).output().unwrap();
        assert!(ran.status.success(), "{line}");
        ran.stdout
    }

    #[test]
    fn a_shell_reads_each_quoted_word_unchanged() {
        let words: [&[u8]; 12] = [
            b"plain",
            b"",
            b"sp ace",
            b"it's",
            b"a\nb",
            b"a\tb\\n'",
            b"\xff",
            b"gr\xc3",
            b"$(x) `y` \"z\" !",
            "\u{fc} \u{85}7".as_bytes(),
            b"\x1b[0m1",
            b"*?[]{}~#;&|<>",
        ];
        for word in words {
            let read = read_by_shell(&quoted(OsStr::from_bytes(word)));
            assert_eq!(read, [word, b"\0"].concat(), "{}", quoted(OsStr::from_bytes(word)));
            assert!(!quoted(OsStr::from_bytes(word)).contains('\n'));
        }
        let all = words.map(|word| OsStr::from_bytes(word).to_os_string());
        assert_eq!(read_by_shell(&quoted_words(&all)), [words.join(&0), vec![0]].concat());
        assert_eq!(
            read_by_shell(&quoted_path(Path::new(OsStr::from_bytes(b"-\xff")))),
            b"./-\xff\0"
        );
    }
}
