//! Tests `mallard try` and `verify` with programs, arguments and budgets that they cannot use.

use crate::support::Folder;
use std::fs;

#[test]
fn a_program_that_fails_without_a_terminal_or_input_is_rejected() {
    let folder = Folder::new();
    let run = |options: &[&str], script: &str| {
        let options = [&["try", "--budget", "3s", "-a", "glibc"], options].concat();
        folder.mallard(&[&options[..], &["--", "sh", "-c", script]].concat())
    };
    let terminal = "test -t 1 || { echo 'stdout is not a terminal' >&2; exit 1; }";
    let refused = run(&[], terminal);
    refused
        .refuses(125, "the program needs a terminal, and has none here: stdout is not a terminal");
    assert!(refused.errors().contains("script -qec"), "{}", refused.errors());
    assert_eq!(run(&["--ignore-output"], terminal).status(), 0);

    let input = "read line || { echo 'nothing on standard input' >&2; exit 1; }";
    let refused = run(&[], input);
    refused.refuses(125, "the program fails without input, and stdin is empty: nothing on");
    assert!(refused.errors().contains("--stdin FILE"), "{}", refused.errors());
    fs::write(folder.path("text"), "some text\n").unwrap();
    assert_eq!(run(&["--stdin", "text"], input).status(), 0);
}

#[test]
fn a_program_that_leaves_a_daemon_is_rejected_and_the_daemon_is_killed() {
    let folder = Folder::new();
    let run = |options: &[&str], program: &[&str]| {
        let options = [&["try", "--budget", "10s", "-a", "glibc"], options, &["--"]].concat();
        folder.mallard(&[&options[..], program].concat())
    };
    // The number distinguishes these daemons from those of another run of this test.
    let seconds = format!("1234.{}", std::process::id());
    let in_group = format!("sleep {seconds} & exit 0");
    // The first daemon has a separate session. The second one is in the process group of the
    // program.
    let daemons: [&[&str]; 2] = [&["setsid", "-f", "sleep", &seconds], &["sh", "-c", &in_group]];
    for daemon in daemons {
        let refused = run(&[], daemon);
        refused.refuses(125, "the program exits while a process that it started still runs: s");
        assert!(refused.errors().contains("--load"), "{}", refused.errors());
        assert_eq!(run(&["--ignore-output"], daemon).status(), 0);
    }
    let ends = format!("sleep\0{seconds}\0");
    let is_daemon = |line: &[u8]| line.ends_with(ends.as_bytes());
    for process in fs::read_dir("/proc").unwrap().flatten() {
        let line = fs::read(process.path().join("cmdline")).unwrap_or_default();
        assert!(!is_daemon(&line), "{} runs on", process.path().display());
    }
    // A process that ends soon after its parent does not count as a daemon.
    assert_eq!(run(&[], &["sh", "-c", "sleep 0.05 & exit 0"]).status(), 0);
}

#[test]
fn a_program_that_hangs_is_killed_after_the_timeout() {
    let folder = Folder::new();
    let refused = folder.mallard(&[
        "try",
        "--timeout",
        "300ms",
        "-a",
        "glibc",
        "--",
        "sh",
        "-c",
        "setsid sleep 30",
    ]);
    refused.refuses(125, "the program did not end within 300 ms, the time of --timeout");
    assert!(refused.errors().contains("nothing was measured"), "{}", refused.errors());
    folder.mallard(&["try", "--timeout", "soon", "--", "true"]).refuses(2, "the time");
}

#[test]
fn a_program_that_fails_in_every_run_is_measured_with_a_note() {
    let folder = Folder::new();
    for (script, how) in [("exit 3", "status 3"), ("kill -SEGV $$", "ended by signal 11")] {
        let words = ["try", "--budget", "2s", "-a", "glibc", "--", "sh", "-c", script];
        let ran = folder.mallard(&words);
        assert_eq!(ran.status(), 0, "{}", ran.errors());
        let note = format!("note: the program fails in every run: {how}");
        assert!(ran.out().contains(&note), "{}", ran.out());
        let last = ran.out().lines().last().unwrap_or_default().to_string();
        assert!(last.starts_with("Every run of sh ") && last.contains(how), "{last}");
    }
}

#[test]
fn a_directory_is_rejected_as_a_program() {
    let folder = Folder::new();
    folder.mallard(&["try", "-a", "glibc", "--", "/usr"]).refuses(126, "/usr is a directory");
}

#[test]
fn invalid_arguments_are_rejected() {
    let folder = Folder::new();
    folder.mallard(&["try"]).refuses(2, "");
    folder.mallard(&["run", "--", "true"]).refuses(2, "--allocator");
    folder.mallard(&["try", "-a", "mine=", "--", "true"]).refuses(2, "an allocator is NAME");
    folder.mallard(&["try", "--min-gain", "much", "--", "true"]).refuses(2, "the share must");
    folder.mallard(&["try", "--budget", "soon", "--", "true"]).refuses(2, "the time");
    folder.mallard(&["try", "--for", "3s", "--", "true"]).refuses(2, "--load");
    folder.mallard(&["try", "--quite", "--", "true"]).refuses(2, "there is no option '--quite'");
    let refused = folder.mallard(&["try", "-a", "glibc", "--stdin", "missing", "--", "true"]);
    refused.refuses(2, "cannot read missing, which --stdin names");
    folder
        .mallard(&["verify", "--before", "true", "--after", " "])
        .refuses(2, "the command of --after is empty");
    folder
        .mallard(&["verify", "--before", "no-such-one", "--after", "true"])
        .refuses(127, "there is no");
}

#[test]
fn a_budget_that_is_too_small_is_rejected_with_a_sufficient_one() {
    let folder = Folder::new();
    let try_sleep = |budget, seconds| {
        folder.mallard_in_time(&["try", "--budget", budget, "-a", "glibc", "--", "sleep", seconds])
    };
    let refused = try_sleep("1s", "0.4");
    refused.refuses(125, "a budget of 1.0 s is too small");
    // 3 runs warm up, and 6 rounds of 3 runs decide. Together they take 8.4 s.
    assert!(refused.errors().contains("a verdict needs 21 runs"), "{}", refused.errors());
    assert!(refused.errors().contains("help: --budget 10s, or "), "{}", refused.errors());
    try_sleep("0.3s", "30").refuses(125, "one run takes longer than the budget of 300 ms");
}

#[test]
fn a_program_with_varying_output_needs_the_option_ignore_output() {
    let folder = Folder::new();
    let program = ["-a", "glibc", "--", "sh", "-c", "echo $$"];
    let refused = folder.mallard(&[&["try"], &program[..]].concat());
    refused.refuses(125, "two runs under the same malloc differ: line 1");
    assert!(refused.errors().contains("help: --ignore-output"), "{}", refused.errors());
    let accepted = [&["try", "--budget", "3s", "--ignore-output"], &program[..]].concat();
    assert_eq!(folder.mallard(&accepted).status(), 0);
}
