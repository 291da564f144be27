//! Tests `mallard record --pid`, which records a program that allocates in threads while the
//! program runs. Afterwards, the program continues.

use crate::support::{length, skip, until, Folder, Ran, MALLARD};
use nix::sys::ptrace;
use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};

const PROGRAMS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs");

/// A running program that executes the commands which the test sends.
struct Program {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Program {
    fn start(folder: &Folder, threads: usize, bind_now: bool) -> Program {
        let source = |name: &str| Path::new(PROGRAMS).join(name);
        let program = match folder.path("attached").exists() {
            true => folder.path("attached").to_str().unwrap().to_string(),
            false => folder.compile_file(
                "attached",
                &source("attached.c"),
                &["-O1", "-D_GNU_SOURCE", "-pthread", "-ldl", "-Wl,-z,lazy"],
            ),
        };
        let plugin = folder.path("plugin.so");
        if !plugin.exists() {
            folder.compile_file("plugin.so", &source("attached_plugin.c"), &["-shared", "-fPIC"]);
        }
        let mut command = folder.command(&program);
        command.arg(threads.to_string()).arg(plugin);
        if bind_now {
            command.env("LD_BIND_NOW", "1");
        }
        Program::run(command)
    }

    /// Starts a command that runs the program.
    fn run(mut command: Command) -> Program {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let to = child.stdin.take().unwrap();
        let from = BufReader::new(child.stdout.take().unwrap());
        let mut program = Program { child, to, from };
        assert_eq!(program.line(), "ready");
        program
    }

    fn id(&self) -> String {
        self.child.id().to_string()
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.from.read_line(&mut line).unwrap();
        line.trim_end().to_string()
    }

    fn tell(&mut self, what: &str) {
        writeln!(self.to, "{what}").unwrap();
    }

    fn ask(&mut self, what: &str) -> String {
        self.tell(what);
        self.line()
    }

    /// Returns the checksums of the function pointer entries of each module that is loaded from the
    /// start.
    fn entries(&mut self) -> Vec<String> {
        let line = self.ask("entries");
        let entries: Vec<String> = line.split_whitespace().map(String::from).collect();
        assert!(entries[0].starts_with("program="), "{entries:?}");
        entries
    }

    fn end(mut self) {
        assert_eq!(self.ask("end"), "failed 0");
        assert_eq!(self.child.wait().unwrap().code(), Some(3));
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A running `mallard record --pid`, which records a program until it is told to stop.
struct Recorder {
    child: Child,
    errors: BufReader<ChildStderr>,
    text: String,
}

impl Recorder {
    /// Starts the recording, and returns when it has begun.
    fn start(folder: &Folder, program: &Program, name: &str) -> Recorder {
        let mut child = folder
            .command(MALLARD)
            .args(["record", "--pid", &program.id(), "--force", "-o", name])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        let mut text = String::new();
        errors.read_line(&mut text).unwrap();
        assert!(text.contains(") until Ctrl-C"), "{text}");
        Recorder { child, errors, text }
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).unwrap();
    }

    /// Waits for the end of the command, and returns its messages.
    fn finish(mut self) -> String {
        self.errors.read_to_string(&mut self.text).unwrap();
        let status = self.child.wait().unwrap();
        assert_eq!(status.code(), Some(0), "{}", self.text);
        self.text
    }
}

/// Returns why no running process can be recorded here. `None` if recording is possible.
pub fn obstacle() -> Option<&'static str> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    if !status.lines().any(|line| line == "Seccomp:\t0") {
        return Some("a system call filter (seccomp) is in force here");
    }
    let restricted = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope");
    // With ptrace_scope 1, recording works, because the test's program permits every process to
    // trace it.
    if restricted.is_ok_and(|scope| scope.trim() > "1") {
        return Some("the system forbids ptrace: /proc/sys/kernel/yama/ptrace_scope is 2 or 3");
    }
    let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
    let seized = ptrace::seize(Pid::from_raw(child.id() as i32), ptrace::Options::empty());
    child.kill().unwrap();
    child.wait().unwrap();
    seized.is_err().then_some("the system refuses ptrace")
}

fn record(folder: &Folder, process: &str, options: &[&str]) -> Ran {
    folder.mallard(&[&["record", "--pid", process], options].concat())
}

/// Returns the bytes of the sites whose call stack contains a function.
fn bytes_of(folder: &Folder, name: &str, function: &str) -> u64 {
    let sites = folder.mallard(&["sites", name, "--json", "--top", "0", "--filter", function]);
    assert_eq!(sites.status(), 0, "{}", sites.errors());
    let bytes =
        |line: &str| serde_json::from_str::<Value>(line).unwrap()["bytes"].as_u64().unwrap();
    sites.out().lines().map(bytes).sum()
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn a_running_process_is_recorded_and_continues_unchanged() {
    if let Some(why) = obstacle() {
        return skip(why);
    }
    for (bind_now, threads) in [(false, 4), (true, 64)] {
        let folder = Folder::new();
        let mut program = Program::start(&folder, threads, bind_now);
        let before = program.entries();
        let ran = record(&folder, &program.id(), &["--for", "300ms", "-o", "a", "--verbose"]);
        assert_eq!(ran.status(), 0, "{}", ran.errors());
        assert!(ran.errors().contains("runs on as before"), "{}", ran.errors());
        assert!(ran.errors().contains("the recording began in a process"), "{}", ran.errors());
        assert!(ran.errors().contains("the longest stop of a thread was"), "{}", ran.errors());
        assert!(ran.out().contains("grow_in_worker"), "{}", ran.out());
        assert!(bytes_of(&folder, "a", "grow_in_worker") > 10_000);
        let manifest = folder.manifest("a.mallard");
        assert!(manifest["notes"]["attached_after"].as_f64().is_some(), "{manifest}");
        assert!(manifest["counts"]["unknown_frees"].as_u64() > Some(0), "{manifest}");
        assert!(manifest["totals"]["threads"].as_u64() >= Some(threads as u64), "{manifest}");
        let stats = folder.mallard(&["stats", "a"]).out();
        assert!(stats.contains("known by their frees only"), "{stats}");
        assert_eq!(folder.mallard(&["report", "a"]).status(), 0);
        let page = std::fs::read_to_string(folder.path("a.html")).unwrap();
        assert!(page.contains("known by their frees only"));
        assert_eq!(program.entries(), before);
        program.end();
    }
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn a_module_that_is_loaded_during_the_recording_is_recorded() {
    if let Some(why) = obstacle() {
        return skip(why);
    }
    let folder = Folder::new();
    let mut program = Program::start(&folder, 1, false);
    let before = program.entries();
    let recorder = Recorder::start(&folder, &program, "a");
    assert_eq!(program.ask("plugin"), "plugin ran");
    recorder.signal(Signal::SIGINT);
    let errors = recorder.finish();
    assert!(errors.contains("runs on as before"), "{errors}");
    assert_eq!(bytes_of(&folder, "a", "plugin_allocates"), 77_770);
    let after = program.entries();
    assert!(before.iter().all(|entry| after.contains(entry)), "{before:?}\n{after:?}");
    assert_eq!(after.len(), before.len() + 1);
    // The recording changes the entries of the plugin, and restores them at the end.
    let ran = record(&folder, &program.id(), &["--for", "50ms", "-o", "b"]);
    assert_eq!(ran.status(), 0, "{}", ran.errors());
    assert_eq!(program.entries(), after);
    program.end();
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn a_process_can_be_recorded_many_times() {
    if let Some(why) = obstacle() {
        return skip(why);
    }
    let folder = Folder::new();
    let mut program = Program::start(&folder, 8, true);
    let before = program.entries();
    let times = length(1000);
    let mut longest: f64 = 0.0;
    let mut mappings = 0;
    for time in 0..times {
        let options = ["--for", "1ms", "-o", "a", "--force", "--json", "--no-symbols"];
        let ran = record(&folder, &program.id(), &options);
        assert_eq!(ran.status(), 0, "{time}: {}", ran.errors());
        let summary: Value = serde_json::from_str(ran.errors().trim()).unwrap();
        longest = longest.max(summary["longest_stop_seconds"].as_f64().unwrap());
        assert_eq!(program.entries(), before, "{time}");
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", program.id())).unwrap();
        let count = maps.lines().count();
        if time == 10 {
            mappings = count;
        }
        // Threads that allocate may map memory, but no recording leaves a mapping behind.
        assert!(time <= 10 || count <= mappings + 16, "{count} mappings, {mappings} before");
    }
    println!("longest stop in {times} recordings: {:.2} ms", longest * 1e3);
    program.end();
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn an_idle_process_is_recorded() {
    if let Some(why) = obstacle() {
        return skip(why);
    }
    let folder = Folder::new();
    let mut program = Program::start(&folder, 0, false); // the program waits for a line
    let before = program.entries();
    let recorder = Recorder::start(&folder, &program, "a");
    assert_eq!(program.ask("plugin"), "plugin ran");
    recorder.signal(Signal::SIGTERM);
    recorder.finish();
    assert_eq!(bytes_of(&folder, "a", "plugin_allocates"), 77_770);
    let after = program.entries();
    assert!(before.iter().all(|entry| after.contains(entry)), "{before:?}\n{after:?}");
    program.end();
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn if_mallard_is_killed_the_attached_process_continues_unchanged() {
    if let Some(why) = obstacle() {
        return skip(why);
    }
    let folder = Folder::new();
    let mut program = Program::start(&folder, 4, true);
    let before = program.entries();
    let mut recorder = Recorder::start(&folder, &program, "a");
    let during = program.entries();
    assert_ne!(during, before);
    recorder.signal(Signal::SIGKILL);
    recorder.child.wait().unwrap();
    until("the entries are as before", || (program.entries() == before).then_some(()));
    // The recorder becomes inactive when the threads have left it.
    let ran = until("another recording begins", || {
        let ran = record(&folder, &program.id(), &["--for", "50ms", "-o", "b", "--force"]);
        (!ran.errors().contains("is recorded already")).then_some(ran)
    });
    assert_eq!(ran.status(), 0, "{}", ran.errors());
    assert_eq!(program.entries(), before);
    program.end();
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn a_second_simultaneous_recording_of_a_process_is_rejected() {
    if let Some(why) = obstacle() {
        return skip(why);
    }
    let folder = Folder::new();
    let program = Program::start(&folder, 2, false);
    let recorder = Recorder::start(&folder, &program, "a");
    record(&folder, &program.id(), &["-o", "b"]).refuses(126, "is recorded already");
    assert!(!folder.path("b.stream").exists());
    recorder.signal(Signal::SIGINT);
    recorder.finish();
    program.end();
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn an_attached_recording_ends_when_the_process_exits_or_executes_another_program() {
    if let Some(why) = obstacle() {
        return skip(why);
    }
    let folder = Folder::new();
    let program = Program::start(&folder, 4, false);
    let recorder = Recorder::start(&folder, &program, "a");
    let id = program.id();
    program.end();
    let errors = recorder.finish();
    assert!(errors.contains(&format!("process {id} has ended")), "{errors}");
    assert!(bytes_of(&folder, "a", "grow_in_worker") > 0);

    let mut program = Program::start(&folder, 4, false);
    let recorder = Recorder::start(&folder, &program, "b");
    assert_eq!(program.ask("exec"), "ready");
    let errors = recorder.finish();
    assert!(errors.contains("has executed another program"), "{errors}");
    program.end();

    let mut program = Program::start(&folder, 4, false);
    let recorder = Recorder::start(&folder, &program, "c");
    program.child.kill().unwrap();
    program.child.wait().unwrap();
    let errors = recorder.finish();
    assert!(errors.contains("has ended"), "{errors}");
}

/// A server that allocates and frees for each request, and keeps 16 KiB for every 16th one.
const LEAKING: &str = r#"
    #include <stdio.h>
    #include <stdlib.h>
    #include <string.h>
    #include <sys/prctl.h>
    #include <unistd.h>
    __attribute__((noinline)) void keep_a_session(void) { memset(malloc(16384), 1, 16384); }
    __attribute__((noinline)) void serve_a_request(int number) {
        void* volatile blocks[64];
        for (int i = 0; i < 64; ++i) blocks[i] = malloc(16 + (i + number) % 100);
        for (int i = 0; i < 64; ++i) free(blocks[i]);
    }
    int main(void) {
        prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
        puts("ready");
        fflush(stdout);
        for (int number = 0;; ++number) {
            serve_a_request(number);
            if (number % 16 == 0) keep_a_session();
            if (number % 16 == 0) usleep(1000);
        }
    }
"#;

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn advice_on_a_running_process_names_its_leak_and_does_not_run_its_program() {
    if let Some(why) = obstacle() {
        return skip(why);
    }
    let folder = Folder::new();
    let server = folder.compile("server", LEAKING, &["-O1"]);
    let program = Program::run(folder.command(&server));
    let id = program.id();
    let options = ["advise", "--pid", &id, "--budget", "5s", "--json", "-o", "a"];
    let ran = folder.mallard(&[&options[..], &["--for", "1500ms"]].concat());
    assert_eq!(ran.status(), 0, "{}", ran.errors());
    assert!(ran.errors().contains(") for 1.5 s"), "{}", ran.errors());
    let advice: Value = serde_json::from_str(&ran.out()).unwrap();
    let cards = advice["cards"].as_array().unwrap();
    let leak = cards.iter().find(|card| card["rule"] == "leak");
    assert!(leak.is_some_and(|leak| leak["site"]["function"] == "keep_a_session"), "{cards:?}");
    let cannot_run = advice["run"]["cannot_run"].as_str().unwrap_or_default();
    assert!(cannot_run.contains("a process that was already running"), "{cannot_run}");
    let whole = "the recording began in a process that was already running";
    assert!(advice["validity"].to_string().contains(whole), "{}", advice["validity"]);
    // Blocks that are older than the recording look like free memory.
    assert!(!advice["cards"].to_string().contains("without live blocks"), "{cards:?}");
    assert!(!folder.path("server.mallard").exists());

    // Ctrl-C ends the recording, and the advice follows.
    let options = ["advise", "--pid", &id, "--budget", "5s", "--json", "-o", "b"];
    let mut command = folder.command(MALLARD);
    let mut child =
        command.args(options).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    errors.read_line(&mut line).unwrap();
    assert!(line.contains("until Ctrl-C"), "{line}");
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(0));
    let advice: Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!(advice["interrupted"], false);
    assert!(folder.path("b.mallard").exists());

    for options in [&["a"][..], &["--", "true"], &["--follow", "fork"], &["--setup", "true"]] {
        assert_eq!(folder.mallard(&[&["advise", "--pid", &id], options].concat()).status(), 2);
    }
    folder.mallard(&["advise", "--pid", "4194305"]).refuses(127, "there is no process 4194305");
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn a_child_that_is_forked_during_the_recording_is_not_recorded() {
    if let Some(why) = obstacle() {
        return skip(why);
    }
    let folder = Folder::new();
    let mut program = Program::start(&folder, 4, false);
    let recorder = Recorder::start(&folder, &program, "a");
    for _ in 0..20 {
        assert_eq!(program.ask("fork"), "child 5");
    }
    recorder.signal(Signal::SIGINT);
    recorder.finish();
    assert_eq!(folder.manifest("a.mallard")["totals"]["processes"], 1);
    program.end();
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn a_process_that_cannot_be_recorded_is_rejected_with_a_reason() {
    let folder = Folder::new();
    record(&folder, "4194305", &[]).refuses(127, "there is no process 4194305");
    for options in [&["--", "true"][..], &["--load", "true"], &["--follow", "fork"]] {
        assert_eq!(record(&folder, "1", options).status(), 2);
    }
    assert_eq!(folder.mallard(&["record", "--for", "1s", "--", "true"]).status(), 2);

    let mut child = folder.command("true").spawn().unwrap();
    let zombie = child.id().to_string();
    let stat = format!("/proc/{zombie}/stat");
    until("a zombie", || std::fs::read_to_string(&stat).unwrap().contains(") Z ").then_some(()));
    record(&folder, &zombie, &[]).refuses(126, "it is a zombie until process");
    child.wait().unwrap();

    let waits = "#include <unistd.h>\nint main(void) { pause(); return 0; }";
    let fixed = folder.compile("fixed", waits, &["-static"]);
    let mut running = folder.command(&fixed).spawn().unwrap();
    record(&folder, &running.id().to_string(), &[]).refuses(126, "is linked statically");
    running.kill().unwrap();
    running.wait().unwrap();

    let script = "$| = 1; print qq($$\\n); sleep 1000";
    let mut recording = folder
        .command(MALLARD)
        .args(["record", "-q", "-o", "p", "--", "perl", "-e", script])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut id = String::new();
    BufReader::new(recording.stdout.take().unwrap()).read_line(&mut id).unwrap();
    let id = id.trim();
    record(&folder, id, &[]).refuses(126, "is recorded already");
    kill(Pid::from_raw(recording.id() as i32), Signal::SIGTERM).unwrap();
    recording.wait().unwrap();
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn a_process_that_is_traced_or_stopped_by_another_process_is_rejected() {
    if let Some(why) = obstacle() {
        return skip(why);
    }
    let folder = Folder::new();
    let source = r#"
        #include <stdio.h>
        #include <stdlib.h>
        #include <sys/ptrace.h>
        #include <unistd.h>
        int main(int count, char** arguments) {
            long failed = ptrace(PTRACE_SEIZE, atoi(arguments[1]), 0, 0);
            printf("%ld\n", failed);
            fflush(stdout);
            getchar();
            return count == 0;
        }
    "#;
    let tracer = folder.compile("tracer", source, &[]);
    let program = Program::start(&folder, 1, false);
    let mut command = folder.command(&tracer);
    let mut tracer =
        command.arg(program.id()).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(tracer.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "0\n");
    let by = format!("is traced by process {} (tracer)", tracer.id());
    record(&folder, &program.id(), &[]).refuses(126, &by);
    drop(tracer.stdin.take());
    tracer.wait().unwrap();

    let id = Pid::from_raw(program.child.id() as i32);
    kill(id, Signal::SIGSTOP).unwrap();
    let stat = format!("/proc/{}/stat", program.id());
    until("a stop", || std::fs::read_to_string(&stat).unwrap().contains(") T ").then_some(()));
    record(&folder, &program.id(), &[]).refuses(126, "is stopped by a signal");
    kill(id, Signal::SIGCONT).unwrap();
    program.end();
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn a_process_in_other_namespaces_is_recorded() {
    if let Some(why) = obstacle() {
        return skip(why);
    }
    let folder = Folder::new();
    let alone = ["-m", "-p", "-f", "--mount-proc"];
    let can_unshare = folder.command("unshare").args(alone).arg("true").status();
    if !can_unshare.is_ok_and(|status| status.success()) {
        return skip("unshare cannot make namespaces here");
    }
    Program::start(&folder, 0, false).end(); // starts the program once, which compiles it
    let mut command = folder.command("unshare");
    let (program, plugin) = (folder.path("attached"), folder.path("plugin.so"));
    command.args(alone).arg(program).arg("4").arg(plugin);
    let mut program = Program::run(command);
    let children = format!("/proc/{0}/task/{0}/children", program.id());
    let id = std::fs::read_to_string(children).unwrap().trim().to_string();
    let before = program.entries();
    for _ in 0..2 {
        let ran = record(&folder, &id, &["--for", "100ms", "-o", "a", "--force"]);
        assert_eq!(ran.status(), 0, "{}", ran.errors());
        assert!(bytes_of(&folder, "a", "grow_in_worker") > 0);
        assert_eq!(program.entries(), before);
    }
    program.end();
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn a_process_with_a_seccomp_filter_is_recorded_if_the_filter_permits_it() {
    if let Some(why) = obstacle() {
        return skip(why);
    }
    let folder = Folder::new();
    let source = r#"
        #include <linux/filter.h>
        #include <linux/seccomp.h>
        #include <stdlib.h>
        #include <sys/prctl.h>
        #include <sys/syscall.h>
        #include <unistd.h>
        int main(int count, char** arguments) {
            struct sock_filter filter[] = {
                {BPF_LD | BPF_W | BPF_ABS, 0, 0, 0},
                {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, count > 1 ? SYS_socketpair : 4000},
                {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_KILL_PROCESS},
                {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
            };
            struct sock_fprog program = {4, filter};
            prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
            if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
                return 1;
            write(1, "ready\n", 6);
            for (;;) {
                free(malloc(100));
                usleep(100);
            }
        }
    "#;
    let program = folder.compile("filtered", source, &[]);
    for forbids in [false, true] {
        let mut command = folder.command(&program);
        if forbids {
            command.arg("forbids");
        }
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        let ran =
            record(&folder, &child.id().to_string(), &["--for", "50ms", "-o", "a", "--force"]);
        let errors = ran.errors();
        match (nix::unistd::geteuid().is_root(), forbids) {
            (false, _) => ran.refuses(126, "which only root can read"),
            (true, true) => ran.refuses(126, "that forbids socketpair"),
            (true, false) if errors.contains("only root can read") => {} // the filter cannot be read
            (true, false) => assert_eq!(ran.status(), 0, "{errors}"),
        }
        assert!(child.try_wait().unwrap().is_none(), "the program runs on");
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn a_process_of_another_user_is_rejected() {
    let folder = Folder::new();
    let as_nobody = ["--reuid", "65534", "--clear-groups"];
    let can_run = folder.command("setpriv").args(as_nobody).arg(MALLARD).arg("--version").output();
    if !can_run.is_ok_and(|output| output.status.success()) {
        return skip("no other user may run mallard");
    }
    let mut child = folder.command("sleep").arg("1000").spawn().unwrap();
    let mut command = folder.command("setpriv");
    command.args(as_nobody).arg(MALLARD).args(["record", "--pid", &child.id().to_string()]);
    Ran(command.output().unwrap()).refuses(126, "belongs to another user (0)");
    child.kill().unwrap();
    child.wait().unwrap();
}
