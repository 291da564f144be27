//! Tests `mallard run`, `try` and `verify` with real programs, and with a malloc that fails on request
//! (`programs/malloc.c`).
//!
//! Most tests need a C compiler. `./x test` runs them.

use crate::support::{until, Folder, Ran, MALLARD, USABLE};
use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use serde_json::Value;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// A program that allocates 20,000 blocks and prints their number.
const BLOCKS: &str = r#"
#include <stdio.h>
#include <stdlib.h>
int main(void) {
    long sum = 0;
    for (int i = 0; i < 20000; ++i) {
        char* volatile p = malloc(i % 100 + 1);
        *p = 1;
        sum += *p;
        free(p);
    }
    printf("%ld\n", sum);
    return 0;
}
"#;

struct Trial {
    folder: Folder,
}

impl Trial {
    /// Makes a directory with the tests' malloc, `libmine.so`, and a program.
    fn new(source: &str) -> Trial {
        let folder = Folder::new();
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/malloc.c");
        folder.compile_file("libmine.so", &file, &["-shared", "-fPIC", "-O1", "-D_GNU_SOURCE"]);
        folder.compile("program", source, &[]);
        Trial { folder }
    }

    /// Runs `mallard try` and returns its JSON object.
    fn measured(&self, options: &[&str], program: &[&str]) -> Value {
        let ran = self.folder.mallard(&[&["try", "--json"], options, &["--"], program].concat());
        assert_eq!(ran.status(), 0, "{}", ran.errors());
        serde_json::from_str(&ran.out()).unwrap()
    }
}

/// Returns the candidate with this name.
fn candidate<'a>(result: &'a Value, name: &str) -> &'a Value {
    let all = result["candidates"].as_array().unwrap();
    all.iter().find(|c| c["name"] == name).unwrap_or_else(|| panic!("{name} is not in {result}"))
}

#[test]
#[ignore = "needs a C compiler; ./x test runs it"]
fn a_malloc_that_needs_more_time_and_memory_has_two_losses() {
    // The tests' malloc frees nothing. A peak below that of mallard itself, which is 4 MiB in a
    // debug build, cannot be measured.
    let trial = Trial::new(&BLOCKS.replace("20000", "80000"));
    let options = ["--budget", "8s", "-a", "mine=./libmine.so,WRONG=slow"];
    let result = trial.measured(&options, &["./program"]);
    let mine = candidate(&result, "mine,WRONG=slow");
    assert_eq!(mine["cpu"]["verdict"], "loss", "{result}");
    assert!(mine["cpu"]["saving"].as_f64().unwrap() < -1.0, "{result}");
    assert_eq!(mine["memory"]["verdict"], "loss", "{result}");
    assert!(mine["library"].as_str().unwrap().ends_with("libmine.so"));
    assert_eq!(mine["environment"]["WRONG"], "slow");
    assert_eq!(result["base"]["name"], "glibc");
    assert!(result["blocks"].as_u64().unwrap() >= 6, "{result}");
    assert!(result["seed"].is_u64() && result["base"]["control_cpu"]["saving"].is_f64());
    assert!(mine["peak_rss_bytes"].as_f64() > result["base"]["peak_rss_bytes"].as_f64());
}

#[test]
#[ignore = "needs a C compiler; ./x test runs it"]
fn a_malloc_that_changes_the_output_is_detected() {
    let trial = Trial::new(USABLE);
    let options = ["--budget", "4s", "-a", "mine=./libmine.so", "-a", "glibc:arenas=1"];
    let result = trial.measured(&options, &["./program"]);
    let mine = candidate(&result, "mine");
    assert_eq!(mine["broken"], "line 2 of its output is '20', instead of '24'");
    assert!(mine["cpu"].is_null() && mine["cpu_ns"].is_null(), "{result}");
    assert!(candidate(&result, "glibc:arenas=1")["cpu"]["verdict"].is_string());

    let text = trial.folder.mallard(&[
        "try",
        "--budget",
        "4s",
        "-a",
        "mine=./libmine.so",
        "--",
        "./program",
    ]);
    assert!(text.out().contains("mine breaks the program: line 2"), "{}", text.out());
    let accepted = ["--ignore-output", "--budget", "4s", "-a", "mine=./libmine.so"];
    assert!(candidate(&trial.measured(&accepted, &["./program"]), "mine")["broken"].is_null());
}

#[test]
#[ignore = "needs a C compiler; ./x test runs it"]
fn a_malloc_that_crashes_the_program_is_detected() {
    let trial = Trial::new(BLOCKS);
    let result = trial.measured(
        &["--budget", "4s", "--ignore-output", "-a", "mine=./libmine.so,WRONG=abort"],
        &["./program"],
    );
    let broken = candidate(&result, "mine,WRONG=abort")["broken"].as_str().unwrap().to_string();
    assert!(broken.contains("ended by signal 6 (SIGABRT)"), "{broken}");
}

#[test]
#[ignore = "needs a C compiler; ./x test runs it"]
fn a_malloc_under_which_the_program_hangs_is_detected() {
    let trial = Trial::new(BLOCKS);
    let result =
        trial.measured(&["--budget", "12s", "-a", "mine=./libmine.so,WRONG=hang"], &["./program"]);
    let broken = candidate(&result, "mine,WRONG=hang")["broken"].as_str().unwrap().to_string();
    assert!(broken.contains("it hangs: a run was killed after 10 s"), "{broken}");
}

#[test]
#[ignore = "needs a C compiler; ./x test runs it"]
fn a_malloc_that_prints_more_than_fits_into_a_pipe_is_accepted() {
    let trial = Trial::new(BLOCKS);
    let run = ["run", "-a", "mine=./libmine.so,CHATTY=1", "--", "./program"];
    let ran = trial.folder.mallard(&run);
    assert_eq!((ran.status(), ran.out().as_str()), (0, "20000\n"));
    assert!(ran.errors().starts_with("statistics"), "{}", ran.errors());
}

#[test]
#[ignore = "needs a C compiler; ./x test runs it"]
fn a_malloc_in_ld_preload_is_used_as_the_baseline() {
    let trial = Trial::new(USABLE);
    let command =
        ["try", "--json", "--budget", "4s", "--ignore-output", "-a", "glibc", "--", "./program"];
    let ran = trial
        .folder
        .command(MALLARD)
        .args(command)
        .env("LD_PRELOAD", trial.folder.path("libmine.so"))
        .output()
        .unwrap();
    let ran = Ran(ran);
    let result: Value =
        serde_json::from_str(&ran.out()).unwrap_or_else(|_| panic!("{}", ran.errors()));
    assert_eq!(result["base"]["name"], "libmine.so");
    let notes = result["notes"].to_string();
    assert!(notes.contains("the base is libmine.so, not glibc"), "{notes}");
    assert!(candidate(&result, "glibc")["environment"]["LD_PRELOAD"].is_null());
}

#[test]
#[ignore = "needs a C compiler; ./x test runs it"]
fn the_best_of_several_mallocs_is_measured_again_by_confirmation_runs() {
    let trial = Trial::new(BLOCKS);
    let measure = |candidates: &[&str], format: &[&str]| {
        let options = [&["try", "--budget", "8s"], candidates, format].concat();
        let mut command = trial.folder.command(MALLARD);
        command.args([&options[..], &["--", "./program"]].concat()).env("WRONG", "slow");
        // Calls mallard by its path as `./x try` does, because no mallard is in PATH.
        command.arg0(MALLARD).env("LD_PRELOAD", trial.folder.path("libmine.so"));
        Ran(command.output().unwrap())
    };
    let several = ["-a", "glibc", "-a", "mine=./libmine.so,WRONG=no"];
    let ran = measure(&several, &["--json"]);
    let result: Value =
        serde_json::from_str(&ran.out()).unwrap_or_else(|_| panic!("{}", ran.errors()));
    let fresh = |name| &candidate(&result, name)["fresh"];
    for name in ["glibc", "mine,WRONG=no"] {
        assert_eq!(fresh(name)["verdict"], "gain", "{result}");
        assert!(fresh(name)["blocks"].as_u64().unwrap() >= 7, "{result}");
    }
    let saving = |name| candidate(&result, name)["cpu"]["saving"].as_f64().unwrap();
    let best =
        ["glibc", "mine,WRONG=no"].into_iter().max_by(|a, b| saving(a).total_cmp(&saving(b)));
    let says = result["sentence"].as_str().unwrap();
    assert!(says.starts_with(&format!("Under {}, program needs", best.unwrap())), "{says}");
    let text = measure(&several, &[]).out();
    assert!(text.contains(" confirmation runs of each after the choice: "), "{text}");

    // With one candidate, there was no choice, so there are no confirmation runs.
    let text = measure(&["-a", "glibc"], &[]).out();
    assert!(!text.contains("confirmation runs"), "{text}");
    // The next command works as it is printed, because it has the path of this mallard, which is
    // not in PATH.
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
    let typed = if MALLARD.chars().all(plain) { MALLARD.into() } else { format!("'{MALLARD}'") };
    let next = format!("  next: {typed} run --allocator glibc -- ./program\n");
    assert!(text.contains(&next), "{text}");
}

#[test]
#[ignore = "needs a C compiler; ./x test runs it"]
fn mallocs_that_cannot_win_are_dropped_early_and_their_results_are_shown() {
    let trial = Trial::new(BLOCKS);
    let losers = ["mine=./libmine.so,WRONG=slow,N=1", "mine=./libmine.so,WRONG=slow,N=2"];
    let mut options = vec!["--budget", "5s", "-a", "glibc:arenas=1", "-a", "glibc:trim=1GiB"];
    losers.iter().for_each(|loser| options.extend(["-a", loser]));
    let result = trial.measured(&options, &["./program"]);
    for name in ["mine,WRONG=slow,N=1", "mine,WRONG=slow,N=2"] {
        let of = candidate(&result, name);
        let runs = of["dropped_after"].as_u64().unwrap();
        assert!(runs >= 2 && of["runs"] == runs && of["fresh"].is_null(), "{result}");
        assert!(of["cpu"]["saving"].as_f64().unwrap() < -1.0, "{result}");
        assert!(of["cpu"]["low"].is_f64() && of["memory"]["saving"].is_f64(), "{result}");
    }
    for name in ["glibc:arenas=1", "glibc:trim=1GiB"] {
        let of = candidate(&result, name);
        assert!(of["dropped_after"].is_null(), "{result}");
        assert!(of["runs"].as_u64() > candidate(&result, "mine,WRONG=slow,N=1")["runs"].as_u64());
    }
    let arguments = [&["try"], &options[..], &["--", "./program"]].concat();
    let text = trial.folder.mallard(&arguments).out();
    let row = text.lines().find(|line| line.contains("mine,WRONG=slow,N=1")).unwrap();
    assert!(row.contains("dropped after "), "{text}");
}

#[test]
fn glibc_settings_that_change_neither_page_faults_nor_memory_are_omitted() {
    // All blocks are freed together, so glibc returns the end of its heap to the system each time.
    let trial = Trial::new(
        r#"
        #include <stdio.h>
        #include <stdlib.h>
        #include <string.h>
        int main(void) {
            static char* blocks[100];
            for (int round = 0; round < 5; ++round) {
                for (int i = 0; i < 100; ++i)
                    blocks[i] = memset(malloc(60000), round, 60000);
                for (int i = 0; i < 100; ++i)
                    free(blocks[i]);
            }
            puts("done");
        }"#,
    );
    let result = trial.measured(&["--budget", "8s"], &["./program"]);
    let is_left_out = |name: &str| {
        let row = candidate(&result, name);
        assert_eq!(row["has_no_effect"], row["cpu"].is_null(), "{row}");
        row["has_no_effect"].as_bool().unwrap()
    };
    assert!(is_left_out("glibc:arenas=1") && is_left_out("glibc:mmap=32MiB"), "{result}");
    assert!(!is_left_out("glibc:trim=1GiB"), "{result}");
    // A setting that the user names is measured in any case.
    let named = trial.measured(&["--budget", "3s", "-a", "glibc:arenas=1"], &["./program"]);
    assert_eq!(candidate(&named, "glibc:arenas=1")["has_no_effect"], false);
}

#[test]
fn the_last_line_is_one_sentence_with_the_result() {
    let folder = Folder::new();
    let out = folder.mallard(&["try", "--budget", "2s", "-a", "glibc", "--", "true"]).out();
    let lines: Vec<&str> = out.lines().rev().collect();
    assert!(lines[0].ends_with('.') && !lines[0].starts_with(' '), "{out}");
    assert!(lines[1].is_empty() && lines[2].starts_with("  next: "), "{out}");
}

#[test]
#[ignore = "needs a C compiler; ./x test runs it"]
fn unusable_programs_and_allocators_are_rejected() {
    let trial = Trial::new(BLOCKS);
    let folder = &trial.folder;
    let refuse = |allocator: &str, program: &str, status, what| {
        folder.mallard(&["run", "-a", allocator, "--", program]).refuses(status, what);
        folder.mallard(&["try", "-a", allocator, "--", program]).refuses(status, what);
    };
    folder.compile("fixed", BLOCKS, &["-static"]);
    let own = "#include <stddef.h>\nvoid* malloc(size_t n) { (void)n; return 0; }\nint main(void) { return 0; }";
    folder.compile("own", own, &[]);
    fs::write(folder.path("text.so"), "text").unwrap();
    folder.compile("libnone.so", "int nothing;", &["-shared", "-fPIC"]);
    refuse("glibc", "./fixed", 126, "linked statically");
    refuse("glibc", "./own", 126, "its own malloc");
    refuse("glibc", "no-such-program", 127, "there is no program");
    refuse("nonsense", "./program", 125, "there is no allocator 'nonsense'");
    refuse("mine=./missing.so", "./program", 125, "cannot be preloaded");
    refuse("mine=./text.so", "./program", 125, "it is not a library");
    refuse("none=./libnone.so", "./program", 125, "none has no effect when it is preloaded");
    refuse(
        "glibc,GLIBC_TUNABLES=glibc.malloc.speed=9",
        "./program",
        125,
        "does not know the setting glibc.malloc.speed",
    );
}

#[test]
#[ignore = "needs a C compiler; ./x test runs it"]
fn a_missing_library_names_the_command_that_installs_it() {
    let ran = Folder::new().mallard(&["try", "--list", "--json"]);
    let list: Value = serde_json::from_str(&ran.out()).unwrap();
    for entry in list.as_array().unwrap() {
        let name = entry["name"].as_str().unwrap();
        let help = entry["missing"]["help"].as_str().unwrap_or_default();
        assert_eq!(entry["installed"] == true, help.is_empty(), "{entry}");
        if ["mimalloc", "jemalloc", "tcmalloc"].contains(&name) && entry["installed"] == false {
            assert_eq!(help, "mallard try --install", "{entry}");
        }
        // Settings of glibc are checked with the C library of this machine.
        assert!(!name.starts_with("glibc") || entry["installed"] == true, "{entry}");
    }
}

#[test]
fn each_run_gets_the_same_stdin_which_is_empty_by_default() {
    let folder = Folder::new();
    fs::write(folder.path("text"), "some text\n").unwrap();
    let script = "read line; test \"$line\" = 'some text'";
    let status = |options: &[&str]| {
        let options = [&["try", "--json", "--budget", "3s", "-a", "glibc"], options].concat();
        let ran = folder.mallard(&[&options[..], &["--", "sh", "-c", script]].concat());
        serde_json::from_str::<Value>(&ran.out()).unwrap()["notes"].to_string()
    };
    assert!(!status(&["--stdin", "text"]).contains("fails in every run"));
    assert!(status(&[]).contains("fails in every run: status 1"));
    let redirected = |from: &str| {
        let command = format!("{from} '{MALLARD}' try --budget 3s -a glibc -- sh -c 'read line'");
        Ran(folder.command("sh").args(["-c", &command]).output().unwrap())
    };
    assert!(!redirected("< text").out().contains("fails in every run"));
    redirected("echo 7 |").refuses(2, "stdin is a pipe");
}

#[test]
fn the_setup_command_runs_before_each_run() {
    let folder = Folder::new();
    // The program fails in its second run, unless the setup runs before.
    let script = "mv fresh used && echo moved";
    let command =
        ["try", "--json", "--budget", "3s", "-a", "glibc", "--setup", "touch fresh", "--"];
    let ran = folder.mallard(&[&command[..], &["sh", "-c", script]].concat());
    let result: Value = serde_json::from_str(&ran.out()).unwrap();
    assert!(result["candidates"][0]["broken"].is_null(), "{result}");
    assert!(!result["notes"].to_string().contains("fails in every run"), "{result}");
    let failing = ["try", "--setup", "exit 3", "-a", "glibc", "--", "true"];
    folder.mallard(&failing).refuses(125, "the setup 'exit 3' failed: status 3");
}

#[test]
fn verify_fails_if_the_change_saves_too_little_or_alters_the_output() {
    let folder = Folder::new();
    let verify = |before: &str, after: &str| {
        let budget = ["verify", "--budget", "30s", "--min-gain", "60%"];
        folder.mallard(&[&budget, &["--before", before, "--after", after][..]].concat())
    };
    let work = |count| format!("i=0; while [ $i -lt {count} ]; do i=$((i+1)); done");
    let worse = verify(&work(2000), &work(40000));
    assert_eq!(worse.status(), 1, "{}{}", worse.out(), worse.errors());
    assert!(worse.out().contains("more CPU time"), "{}", worse.out());
    let better = verify(&work(40000), &work(2000));
    assert_eq!(better.status(), 0, "{}{}", better.out(), better.errors());
    assert!(better.out().contains("less CPU time"), "{}", better.out());
    let next = "  next: mallard record -- /bin/sh -c 'i=0; while [ $i -lt 2000 ]; do";
    assert!(better.out().contains(next), "{}", better.out());
    let other = verify("echo a", "echo b");
    assert_eq!(other.status(), 1, "{}", other.out());
    assert!(other.out().contains("after behaves differently: line 1"), "{}", other.out());
    assert!(
        other.out().contains("next: echo b, the command of --after by itself"),
        "{}",
        other.out()
    );
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn a_recording_shows_how_much_another_malloc_could_save_at_most() {
    let folder = Folder::new();
    // The long loop makes the share of the allocations small, so that it is known even where
    // recording slows calls down.
    let work = "my ($s, %h); $h{$_} = $_ for 1..20000; $s += $_ for 1..3e6";
    let program = ["--", "perl", "-e", work];
    let recorded = folder.mallard(&[&["record", "-o", "run"], &program[..]].concat());
    assert_eq!(recorded.status(), 0, "{}", recorded.errors());
    let command = ["try", "--json", "--budget", "4s", "-a", "glibc", "--trace", "run"];
    let ran = folder.mallard(&[&command, &program[..]].concat());
    let result: Value =
        serde_json::from_str(&ran.out()).unwrap_or_else(|_| panic!("{}", ran.errors()));
    let bound = result["bound"].as_f64().unwrap();
    assert!(bound > 0.0 && bound < 0.5, "{result}");
    assert!(result["sentence"].as_str().unwrap().contains("no malloc can save more"), "{result}");
    let part = ["record", "-o", "part", "--window", "100s..", "--", "true"];
    assert_eq!(folder.mallard(&part).status(), 0);
    let command = ["try", "--budget", "2s", "-a", "glibc", "--trace", "part", "--", "true"];
    let ran = folder.mallard(&command);
    // The measurement is printed, although the recording contains no bound.
    assert_eq!(ran.status(), 0, "{}", ran.errors());
    for note in ["only 100s.. of the run", "nothing was replayed: the trace part.mallard"] {
        assert!(ran.out().contains(note), "{}", ran.out());
    }
    folder.mallard(&["try", "--trace", "none", "--", "true"]).refuses(3, "there is no trace");
}

/// Answers each connection with a line.
const SERVER: &str = "
import socket, sys
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(('127.0.0.1', int(sys.argv[1])))
s.listen()
while True:
    c = s.accept()[0]
    c.sendall(b'hello\\n')
    c.close()
";

#[test]
#[ignore = "needs Python; ./x test runs it"]
fn a_server_is_measured_while_a_load_uses_it() {
    let folder = Folder::new();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    fs::write(folder.path("server.py"), SERVER).unwrap();
    let load = format!(
        "/usr/bin/python3 -IS -c 'import socket; c = socket.create_connection((\"127.0.0.1\", {port})); print(c.recv(99))'"
    );
    let port = port.to_string();
    let server = ["/usr/bin/python3", "-IS", "server.py", &port];
    let measured = |options: &[&str]| {
        let options = [&["try", "--json", "-a", "glibc", "--load", &load], options].concat();
        let ran = folder.mallard_in_time(&[&options[..], &["--"], &server].concat());
        assert_eq!(ran.status(), 0, "{}", ran.errors());
        serde_json::from_str::<Value>(&ran.out()).unwrap()
    };
    let once = measured(&["--budget", "5s"]);
    assert!(once["base"]["cpu_ns"].as_f64().unwrap() > 0.0, "{once}");
    assert!(once["candidates"][0]["broken"].is_null(), "{once}");
    // The server starts once for all loads, so the figure of each load contains only a part of the
    // start.
    let repeated = measured(&["--budget", "8s", "--for", "500ms"]);
    assert!(
        repeated["base"]["cpu_ns"].as_f64() < once["base"]["cpu_ns"].as_f64(),
        "{repeated} {once}"
    );
    let ended = ["try", "-a", "glibc", "--load", "false", "--", "true"];
    folder.mallard(&ended).refuses(125, "it ended before its load finished");
}

#[test]
fn a_load_that_does_not_finish_is_reported_as_the_cause() {
    let load = ["--budget", "2s", "-a", "glibc", "--load", "sleep 60", "--", "sleep", "60"];
    let refused = Folder::new().mallard_in_time(&[&["try"], &load[..]].concat());
    refused.refuses(125, "the load did not end within 2.0 s, and was killed");
    assert!(refused.errors().contains("--load 'until READY"), "{}", refused.errors());
}

#[test]
fn an_interrupted_trial_prints_what_was_measured_and_leaves_no_process() {
    let folder = Folder::new();
    let script = "echo $$ >> pids; sleep 0.05; echo done";
    let mallard = folder
        .command(MALLARD)
        .args(["try", "--budget", "5m", "-a", "glibc", "--", "sh", "-c", script])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let runs = || fs::read_to_string(folder.path("pids")).unwrap_or_default().lines().count();
    // Wait for the three runs that are not measured, and for three complete rounds of three runs.
    until("three rounds", || (runs() > 3 + 3 * 3).then_some(()));
    kill(Pid::from_raw(mallard.id() as i32), Signal::SIGINT).unwrap();
    let ran = Ran(mallard.wait_with_output().unwrap());
    assert_eq!(ran.status(), 130, "{}", ran.errors());
    assert!(ran.out().contains("glibc again"), "{}", ran.out());
    assert!(ran.out().contains("(Interrupted after"), "{}", ran.out());
    let pids = fs::read_to_string(folder.path("pids")).unwrap();
    let last = Pid::from_raw(pids.lines().last().unwrap().parse().unwrap());
    assert!(kill(last, None).is_err(), "{last} runs on");
}

#[test]
fn the_help_fits_80_columns_and_a_failed_write_of_it_is_an_error() {
    let folder = Folder::new();
    for command in ["--help", "try --help", "advise --help", "record --help", "verify --help"] {
        let help = folder.mallard(&command.split(' ').collect::<Vec<_>>()).out();
        assert!(help.contains("Usage: "), "{command}: {help}");
        let wide: Vec<&str> = help.lines().filter(|line| line.chars().count() > 80).collect();
        assert!(wide.is_empty(), "{command}: {wide:?}");
    }
    let script = ["-c", "\"$0\" --help > /dev/full", MALLARD];
    let full = folder.command("sh").args(script).output().unwrap();
    let errors = String::from_utf8_lossy(&full.stderr);
    assert_eq!(full.status.code(), Some(3), "{errors}");
    assert!(errors.contains("cannot write to stdout: no space left"), "{errors}");
}

#[test]
fn the_commands_have_man_pages() {
    let folder = Folder::new();
    assert_eq!(folder.mallard(&["pages", "share"]).status(), 0);
    for name in ["run", "try", "verify"] {
        assert!(folder.path(&format!("share/man/man1/mallard-{name}.1")).exists(), "{name}");
    }
    let help = Command::new(MALLARD).args(["try", "--help"]).output().unwrap();
    let help = String::from_utf8_lossy(&help.stdout).into_owned();
    assert!(help.contains("--ignore-output") && help.contains("NAME[=LIBRARY]"), "{help}");
    assert!(!String::from_utf8_lossy(
        &Command::new(MALLARD).arg("--help").output().unwrap().stdout
    )
    .contains("whose-malloc"));
}
