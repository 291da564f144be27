//! Tests `mallard record` and `mallard advise` with a server to which `--load` sends work.
//!
//! The tests need the recorder, the replayer (MALLARD_RECORDER and MALLARD_REPLAY have their paths)
//! and a C compiler. `./x test` builds both and runs them.

use crate::support::{until, Folder, MALLARD};
use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use serde_json::Value;
use std::fs;

/// A server that reads a file as a request, allocates 1,000 blocks for it, and answers by writing
/// another file.
const SERVER: &str = r#"
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
static void* volatile p;
static void answer(void) {
    for (int i = 0; i < 1000; ++i) { p = malloc(i + 16); free(p); }
    unlink("request");
    close(creat("answer", 0600));
}
int main(void) {
    close(creat("ready", 0600));
    for (;; usleep(1000)) if (access("request", F_OK) == 0) answer();
}
"#;

/// The load, which makes one request.
const REQUEST: &str =
    "test -e ready && touch request && until test -e answer; do sleep 0.01; done; rm answer";

fn server() -> Folder {
    let folder = Folder::new();
    folder.compile("server", SERVER, &["-O1"]);
    folder
}

/// Records the server with one request. Returns what `mallard record` printed.
fn recorded() -> (Folder, String) {
    let folder = server();
    let ran = folder.mallard(&["record", "-o", "served", "--load", REQUEST, "--", "./server"]);
    assert_eq!(ran.status(), 0, "{}", ran.errors());
    (folder, ran.errors())
}

fn note(folder: &Folder, name: &str) -> Value {
    folder.manifest("served.mallard")["notes"][name].clone()
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn a_server_is_recorded_during_its_load_and_then_stopped() {
    let (folder, said) = recorded();
    assert!(said.contains("the load ran 1 time\n"), "{said}");
    assert_eq!((note(&folder, "loads"), note(&folder, "load")), (1.into(), REQUEST.into()));
    assert_eq!(note(&folder, "status"), 15, "SIGTERM ends the server");
    assert_eq!(folder.manifest("served.mallard")["counts"]["allocations"], 1000);
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn a_load_is_repeated_for_some_time() {
    let folder = server();
    let load = ["record", "-o", "served", "--load", REQUEST, "--for", "500ms", "--", "./server"];
    let ran = folder.mallard(&load);
    assert_eq!(ran.status(), 0, "{}", ran.errors());
    let loads = note(&folder, "loads").as_u64().unwrap();
    assert!(loads > 1, "{loads}");
    assert_eq!(folder.manifest("served.mallard")["counts"]["allocations"], 1000 * loads);
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn a_failing_load_stops_the_server_and_the_recorded_events_are_kept() {
    let folder = server();
    let load = ["--load", "test -e served-once || { touch served-once; exit 0; }; exit 3"];
    let options =
        [&["record", "--quiet", "-o", "served", "--for", "1m"], &load[..], &["--", "./server"]];
    let ran = folder.mallard(&options.concat());
    ran.refuses(125, "the load failed: status 3");
    assert!(ran.errors().contains("sh -c 'test -e served-once"), "{}", ran.errors());
    assert!(folder.path("served.mallard/manifest.json").exists(), "{}", ran.errors());
    let ended = ["record", "--quiet", "-o", "short", "--load", "false", "--", "true"];
    folder.mallard(&ended).refuses(125, "the program ended before its load finished");
    folder.mallard(&["record", "--for", "3s", "--", "true"]).refuses(2, "--load");
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn a_load_that_does_not_finish_is_killed_and_the_recording_is_kept() {
    let folder = server();
    let load = format!("{REQUEST} && sleep 1000000");
    let options = ["record", "--quiet", "-o", "served", "--timeout", "2s", "--load", &load];
    let ran = folder.mallard(&[&options[..], &["--", "./server"]].concat());
    ran.refuses(125, "the load did not end within 2.0 s, and was killed");
    let errors = ran.errors();
    assert!(errors.contains("its events until then are in served.mallard"), "{errors}");
    assert!(errors.contains("help: ") && errors.contains("a longer --timeout"), "{errors}");
    assert_eq!(folder.manifest("served.mallard")["counts"]["allocations"], 1000);
    // The timeout applies to each run of the load, and not to all runs together.
    let options = ["record", "--quiet", "-o", "short", "--timeout", "2s", "--for", "3s"];
    let ran = folder.mallard(&[&options[..], &["--load", REQUEST, "--", "./server"]].concat());
    assert_eq!(ran.status(), 0, "{}", ran.errors());
    folder.mallard(&["record", "--timeout", "3s", "--", "true"]).refuses(2, "--load");
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn advice_on_a_server_runs_it_with_its_load() {
    let folder = server();
    let options = ["advise", "--json", "--budget", "40s", "-o", "served"];
    let load = ["--load", REQUEST, "--", "./server"];
    let ran = folder.mallard(&[&options[..], &load[..]].concat());
    assert_eq!(ran.status(), 0, "{}", ran.errors());
    let advice: Value = serde_json::from_str(&ran.out()).unwrap();
    assert!(!advice["notes"].to_string().contains("ended by signal"), "{advice}");
    assert_eq!(advice["run"]["cpu_by"], "runs", "{advice}");
    // The trace contains the command of `--load`, so the option is not repeated here.
    fs::remove_file(folder.path("ready")).unwrap();
    let ran = folder.mallard(&["advise", "--json", "--budget", "40s", "served"]);
    assert_eq!(ran.status(), 0, "{}", ran.errors());
    let again: Value = serde_json::from_str(&ran.out()).unwrap();
    assert_eq!(again["run"]["cpu_by"], "runs", "{again}");
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn a_server_that_was_started_by_a_script_is_stopped_too() {
    let folder = server();
    fs::write(folder.path("start.sh"), "./server; true\n").unwrap();
    let follow = ["record", "-o", "served", "--follow", "fork,exec", "--load", REQUEST];
    let ran = folder.mallard(&[&follow[..], &["--", "sh", "start.sh"]].concat());
    assert_eq!(ran.status(), 0, "{}", ran.errors());
    let counted = &folder.manifest("served.mallard")["counts"]["allocations"];
    assert!(counted.as_u64().unwrap() >= 1000, "{counted}");
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn a_signal_to_mallard_stops_the_server_and_the_load() {
    let folder = server();
    let options = ["record", "--quiet", "-o", "served", "--load", "touch begun; sleep 1000000"];
    let mut command = folder.command(MALLARD);
    let mut recording = command.args(options).args(["--", "./server"]).spawn().unwrap();
    until("the load", || folder.path("begun").exists().then_some(()));
    kill(Pid::from_raw(recording.id() as i32), Signal::SIGTERM).unwrap();
    let status = until("the end of server and load", || recording.try_wait().unwrap());
    assert_eq!(status.code(), Some(128 + 15), "the status of the server");
    assert!(folder.path("served.mallard").exists());
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn a_server_runs_in_the_directory_in_which_it_was_recorded() {
    let (folder, _) = recorded();
    fs::remove_file(folder.path("ready")).unwrap();
    let other = Folder::new();
    let trace = folder.path("served.mallard").display().to_string();
    let ran = other.mallard(&["advise", "--json", "--budget", "40s", &trace]);
    assert_eq!(ran.status(), 0, "{}", ran.errors());
    let advice: Value = serde_json::from_str(&ran.out()).unwrap();
    assert_eq!(advice["run"]["cpu_by"], "runs", "{advice}");
    assert!(folder.path("ready").exists() && !other.path("ready").exists());
}
