//! Tests `mallard top`, which shows live what a program allocates.

use crate::attach::obstacle;
use crate::support::{skip, until, Folder, MALLARD};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};

/// A running command, and the lines that it writes to stdout.
struct Command {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Command {
    fn start(folder: &Folder, program: &str, arguments: &[&str]) -> Command {
        let mut command = folder.command(program);
        command.args(arguments).env("TERM", "xterm").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Command { child, lines }
    }

    /// Reads lines until one contains `text`.
    fn line_with(&mut self, text: &str) -> String {
        loop {
            let mut line = String::new();
            let length = self.lines.read_line(&mut line).unwrap();
            assert!(length > 0, "no line has '{text}'");
            if line.contains(text) {
                return line;
            }
        }
    }

    /// Reads what a screen shows until the new bytes contain `text`.
    fn screen_with(&mut self, text: &str) {
        let (mut shown, mut byte) = (Vec::new(), [0]);
        while !String::from_utf8_lossy(&shown).contains(text) {
            self.lines.read_exact(&mut byte).unwrap_or_else(|_| {
                panic!("'{text}' is not on the screen: {}", String::from_utf8_lossy(&shown))
            });
            shown.extend(byte);
        }
    }

    fn press(&mut self, keys: &str) {
        self.child.stdin.as_mut().unwrap().write_all(keys.as_bytes()).unwrap();
    }

    /// Closes stdin, and returns the exit status, the rest of stdout, and stderr.
    fn finish(mut self) -> (Option<i32>, String, String) {
        drop(self.child.stdin.take());
        let (mut out, mut errors) = (String::new(), String::new());
        self.lines.read_to_string(&mut out).unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        (self.child.wait().unwrap().code(), out, errors)
    }
}

fn growing(folder: &Folder) -> String {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/growing.c");
    folder.compile_file("growing", &source, &["-g", "-O1"])
}

/// Starts the program, and returns it with its process id when it has begun.
fn running(folder: &Folder) -> (Command, String) {
    let mut running = Command::start(folder, &growing(folder), &[]);
    running.line_with("ready");
    let process = running.child.id().to_string();
    (running, process)
}

/// Counts the files in the directory whose name ends with an extension.
fn files(folder: &Folder, extension: &str) -> usize {
    let entries = std::fs::read_dir(folder.0.path()).unwrap();
    entries
        .filter(|entry| {
            entry.as_ref().unwrap().path().extension().is_some_and(|of| of == extension)
        })
        .count()
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn top_writes_lines_to_a_pipe_and_saves_nothing_unasked() {
    let folder = Folder::new();
    let program = growing(&folder);
    let words = ["top", "--interval", "50ms", "--", &program];
    let mut top = Command::start(&folder, MALLARD, &words);
    let line = top.line_with("keep_orders  growing.c:");
    assert!(line.contains(" in use in ") && line.contains(" resident; "), "{line}");
    let (status, _, errors) = top.finish();
    assert_eq!(status, Some(3), "{errors}");
    assert!(errors.contains("ready"), "the output of the program goes to stderr: {errors}");
    assert!(errors.contains("the recording was not saved"), "{errors}");
    assert_eq!((files(&folder, "stream"), files(&folder, "mallard")), (0, 0));
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn top_shows_a_running_process_as_json_and_saves_a_recording() {
    if let Some(why) = obstacle() {
        return skip(why);
    }
    let folder = Folder::new();
    let (running, process) = running(&folder);
    let options = ["--for", "1s", "--interval", "100ms", "--json", "--sort", "growth", "-o", "a"];
    let ran = folder.mallard(&[&["top", "--pid", &process], &options[..]].concat());
    assert_eq!(ran.status(), 0, "{}", ran.errors());
    let out = ran.out();
    let last: Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
    let first = &last["functions"][0];
    assert!(first["name"].as_str().unwrap().starts_with("keep_orders"), "{last}");
    assert_eq!(first["stack"].as_array().unwrap().len(), 2 + 3, "{last}");
    assert!(first["live_bytes"].as_u64() > Some(10_000) && first["growth"].as_f64() > Some(1e4));
    assert!(last["resident_bytes"].as_u64() > Some(1 << 20), "{last}");
    assert_eq!(last["threads"].as_array().unwrap().len(), 1, "{last}");
    let sites = folder.mallard(&["sites", "a", "--filter", "keep_orders"]);
    assert!(sites.out().contains("keep_orders"), "{}", sites.out());
    assert_eq!(running.finish().0, Some(3));
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn the_view_goes_on_when_the_event_log_is_full() {
    let folder = Folder::new();
    let program = growing(&folder);
    let options = ["--interval", "50ms", "--max-size", "64KiB", "--json", "-o", "full"];
    let mut top =
        Command::start(&folder, MALLARD, &[&["top"], &options[..], &["--", &program]].concat());
    let log = folder.path("full.stream");
    until("the event log is full", || {
        std::fs::metadata(&log).ok().filter(|file| file.len() > 64 << 10)
    });
    let blocks = |line: String| {
        serde_json::from_str::<Value>(&line).unwrap()["live_blocks"].as_u64().unwrap()
    };
    let full = blocks(top.line_with("keep_orders"));
    while blocks(top.line_with("keep_orders")) < full + 100 {}
    let (status, _, errors) = top.finish();
    assert_eq!(status, Some(3), "{errors}");
    let stats = folder.mallard(&["stats", "full"]).out();
    assert!(stats.contains("max-size"), "{stats}");
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn memory_and_threads_of_ended_processes_are_not_counted() {
    let folder = Folder::new();
    let source = r#"
        #include <pthread.h>
        #include <stdlib.h>
        #include <string.h>
        #include <sys/wait.h>
        #include <unistd.h>
        static void* volatile kept;
        static void* work(void* bytes) { kept = malloc((size_t)bytes); return NULL; }
        int main(void) {
            for (int i = 0; i < 5; ++i) {
                if (fork() == 0) {
                    kept = memset(malloc(4 << 20), 1, 4 << 20);
                    usleep(20000);
                    _exit(0);
                }
                wait(NULL);
                pthread_t thread;
                pthread_create(&thread, NULL, work, (void*)100);
                pthread_join(thread, NULL);
            }
            kept = malloc(1000);
            return 0;
        }"#;
    let program = folder.compile("children", source, &["-pthread"]);
    let words = ["top", "--json", "--interval", "10ms", "--follow", "fork", "--", &program];
    let ran = folder.mallard(&words);
    assert_eq!(ran.status(), 0, "{}", ran.errors());
    let values: Vec<Value> =
        ran.out().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let live = |value: &Value| value["live_bytes"].as_u64().unwrap();
    assert!(values.iter().any(|value| live(value) > 4 << 20), "{}", ran.out());
    let last = values.last().unwrap();
    assert!(live(last) < 1 << 20, "{last}");
    assert!(last["thread_count"].as_u64() <= Some(1), "{last}");
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn an_exec_replaces_the_memory_of_the_process() {
    let folder = Folder::new();
    let source = r#"
        #include <stdlib.h>
        #include <unistd.h>
        int main(int argc, char** argv) {
            void* volatile kept = NULL;
            for (int i = 0; i < (argc > 1 ? 1 : 2000); ++i)
                kept = malloc(1000);
            return argc > 1 || kept == NULL ? 0 : execl(argv[0], argv[0], "again", NULL);
        }"#;
    let program = folder.compile("again", source, &[]);
    let ran = folder.mallard(&["top", "--json", "--follow", "exec", "--", &program]);
    assert_eq!(ran.status(), 0, "{}", ran.errors());
    let out = ran.out();
    let last: Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
    assert!(last["live_bytes"].as_u64() < Some(200_000), "{last}");
    assert!(last["functions"][0]["name"].as_str().unwrap().starts_with("main  again.c:"), "{last}");
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn a_pipe_that_nobody_reads_does_not_stop_the_program() {
    let folder = Folder::new();
    let program = growing(&folder);
    let log = folder.path("slow.stream");
    let options = ["top", "--json", "--interval", "1ms", "-o", "slow", "--", &program];
    let mut top = Command::start(&folder, MALLARD, &options);
    top.line_with("keep_orders");
    // The pipe has room for 64 KiB, and a line has 1 KiB.
    let events = 40 << 10;
    until("the program goes on", || std::fs::metadata(&log).ok().filter(|of| of.len() > events));
    drop(top.child.stdin.take());
    until("mallard ends", || top.child.try_wait().unwrap());
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn top_detaches_when_its_pipe_is_closed() {
    if let Some(why) = obstacle() {
        return skip(why);
    }
    let folder = Folder::new();
    let (running, process) = running(&folder);
    let mut top =
        Command::start(&folder, MALLARD, &["top", "--pid", &process, "--interval", "50ms"]);
    top.line_with("in use");
    let Command { mut child, lines } = top;
    drop(lines);
    let mut errors = String::new();
    child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{errors}");
    assert!(errors.contains("runs on as before; the recording was not saved"), "{errors}");
    assert_eq!(running.finish().0, Some(3));
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn keys_change_the_screen_save_the_recording_and_quit() {
    if std::process::Command::new("script").arg("--version").output().is_err() {
        return skip("the program `script` is not installed");
    }
    let folder = Folder::new();
    let program = growing(&folder);
    let words = format!("stty rows 24 cols 80; {MALLARD} top --interval 50ms {program} forever");
    let mut top = Command::start(&folder, "script", &["-qec", &words, "/dev/null"]);
    top.screen_with("keep_orders");
    top.press("t");
    top.screen_with("THREAD");
    top.press("s");
    top.screen_with("growing.mallard");
    top.press("/nothing\r");
    top.screen_with("remove)");
    top.press("q");
    let (status, out, _) = top.finish();
    assert_eq!(status, Some(128 + 15), "{out}");
    assert!(out.contains("ended by signal 15"), "{out}");
    assert_eq!((files(&folder, "stream"), files(&folder, "mallard")), (0, 1));
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn q_twice_kills_a_program_that_ignores_sigterm() {
    if std::process::Command::new("script").arg("--version").output().is_err() {
        return skip("the program `script` is not installed");
    }
    let folder = Folder::new();
    let source = r#"
        #include <signal.h>
        #include <stdlib.h>
        #include <unistd.h>
        static void* volatile kept;
        int main(void) {
            signal(SIGTERM, SIG_IGN);
            for (;; usleep(1000))
                kept = malloc(10);
        }"#;
    let program = folder.compile("stubborn", source, &[]);
    let words = format!("stty rows 24 cols 80; {MALLARD} top --interval 50ms {program}");
    let mut top = Command::start(&folder, "script", &["-qec", &words, "/dev/null"]);
    top.screen_with("stubborn.c");
    top.press("q");
    top.screen_with("kills");
    top.press("q");
    let (status, out, _) = top.finish();
    assert_eq!(status, Some(128 + 9), "{out}");
    assert!(out.contains("\u{1b}[?1049l"), "the terminal is restored: {out}");
}

#[test]
fn top_without_a_program_says_what_to_type() {
    let folder = Folder::new();
    folder.mallard(&["top"]).refuses(2, "PROG ARGS");
    folder.mallard(&["top", "--for", "1s", "--", "true"]).refuses(2, "--for");
    folder.mallard(&["top", "--sort", "size", "--", "true"]).refuses(2, "size");
}
