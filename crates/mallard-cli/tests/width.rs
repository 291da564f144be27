//! Tests that the command's output for people fits into 80 columns.

use crate::support::{Folder, Ran, MALLARD};
use std::path::Path;
use std::process::Stdio;

const WIDTH: usize = 80;

/// Runs mallard as a user does whose output goes to a pipe.
fn mallard(folder: &Path, arguments: &[&str]) -> Ran {
    let mut command = Folder::new().command(MALLARD);
    command.env_remove("MALLARD_RUN_TAKES");
    command.current_dir(folder).env_remove("COLUMNS").args(arguments).stdin(Stdio::null());
    Ran(command.output().unwrap())
}

/// Returns the lines of a text that are too wide, except commands and paths that stand alone on a
/// line.
fn wide(text: &str) -> Vec<&str> {
    let is_alone = |line: &str| {
        let line = line.trim_start();
        let line = ["next: ", "help: ", "program  ", "do  ", "check  "]
            .into_iter()
            .find_map(|name| line.strip_prefix(name))
            .unwrap_or(line)
            .trim_start();
        let is_path = line.starts_with('/') && !line.contains(' ');
        let is_command = ["mallard ", "sh -c ", "./", "cd ", "--allocator "]
            .iter()
            .any(|begin| line.starts_with(begin));
        is_path || is_command && !line.ends_with([',', ';', ':'])
    };
    text.lines().filter(|line| line.chars().count() > WIDTH && !is_alone(line)).collect()
}

/// Checks that the output of a subcommand fits.
#[track_caller]
fn fits(folder: &Path, arguments: &[&str]) -> Ran {
    let ran = mallard(folder, arguments);
    let text = ran.out() + &ran.errors();
    assert!(!text.trim().is_empty(), "{arguments:?} prints nothing");
    assert_eq!(wide(&text), [] as [&str; 0], "{arguments:?}:\n{text}");
    ran
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn all_text_fits_80_columns() {
    let folder = Folder::new();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/long_names.cpp");
    folder.compile_file("a_program_with_a_long_name", &source, &["-std=c++20", "-pthread"]);
    let at = folder.path("");
    let program = "./a_program_with_a_long_name";
    let words =
        ["--", program, "an argument with spaces, and more of it than one line has room for"];
    let with_program = |arguments: &[&'static str]| [arguments, &words[..]].concat();
    fits(&at, &with_program(&["record", "-o", "a"]));
    fits(&at, &["record", "--keep-stream", "-o", "b", "--", program]);
    for arguments in [
        &["stats", "a"][..],
        &["stats", "a", "--explain"],
        &["sites", "a"],
        &["sites", "a", "--full", "--top", "0", "--depth", "0"],
        &["sites", "--explain"],
        &["diff", "a", "b"],
        &["diff", "a", "b", "--full", "--top", "0", "--depth", "0", "--gate", "peak<+5%"],
        &["report", "a"],
        &["import", "b.stream", "-o", "c"],
        &["export", "a", "--to", "pprof", "-o", "a.pb.gz"],
        &["export", "a", "--fleet", "all"],
        &["replay", "a", "--budget", "3s"],
        &["replay", "a", "--budget", "3s", "--strategy", "AS1,AS4,AS14"],
        &["replay", "a", "--strategy", "AS4", "--write", "a.ops"],
        &["advise", "a", "--no-try", "--budget", "8s"],
        &["try", "--list"],
        &["doctor", program],
    ] {
        fits(&at, arguments);
    }
    fits(&at, &with_program(&["advise", "--budget", "8s", "-o", "d"]));
    fits(&at, &with_program(&["try", "--budget", "5s"]));
    let before = "./a_program_with_a_long_name before";
    fits(&at, &["verify", "--budget", "5s", "--before", before, "--after", program]);
}

#[test]
fn errors_fit_80_columns() {
    let folder = Folder::new();
    let at = folder.path("");
    for arguments in [
        &["stats", "nothing"][..],
        &["stats"],
        &["sites", "--filter", "(", "nothing"],
        &["diff", "nothing", "nothing else"],
        &["record", "--", "/no/such/program"],
        &["record", "--for", "1s", "--", "true"],
        &["advise", "nothing"],
        &["try", "--budget", "1s", "--", "/no/such/program"],
        &["try", "--allocator", "a_malloc_that_nobody_has_written", "--", "true"],
        &["replay", "nothing"],
        &["import", "nothing"],
        &["query", "nothing", "SELECT 1"],
        &["stats", "--no-such-option"],
    ] {
        assert_ne!(fits(&at, arguments).status(), 0);
    }
}

#[test]
fn help_fits_80_columns() {
    let folder = Folder::new();
    for name in [
        "try",
        "verify",
        "run",
        "record",
        "stats",
        "sites",
        "diff",
        "report",
        "advise",
        "replay",
        "import",
        "query",
        "export",
        "doctor",
        "plan",
        "completions",
    ] {
        fits(&folder.path(""), &[name, "--help"]);
    }
    fits(&folder.path(""), &["--help"]);
}
