//! Tests `mallard advise` with incomplete input: a recording of a part of the run, and a command
//! that the user interrupts.
//!
//! The tests need the recorder, the replayer (MALLARD_RECORDER and MALLARD_REPLAY have their paths)
//! and a C compiler. `./x test` builds both and runs them.

use crate::support::replayed::Replayed;
use crate::support::{until, Folder, MALLARD};
use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use serde_json::Value;
use std::fs;
use std::process::Stdio;

/// A program that makes 20 pairs of malloc and free in each millisecond of its CPU time, for 1.5 s of CPU
/// time. So the calls for each second of CPU time are the same however busy the machine is.
const STEADY: &str = r#"
#include <stdlib.h>
#include <time.h>
static void* volatile p;
__attribute__((noinline)) static void work(void) {
    for (int i = 0; i < 20; ++i) { p = malloc(100); free(p); }
}
int main(void) {
    for (clock_t next = 0; next < 3 * CLOCKS_PER_SEC / 2; next += CLOCKS_PER_SEC / 1000) {
        while (clock() < next) {}
        work();
    }
    return 0;
}
"#;

fn advice(folder: &Folder, options: &[&str]) -> Value {
    let ran = folder.mallard(&[&["advise", "--json"], options].concat());
    assert_eq!(ran.status(), 0, "{}", ran.errors());
    serde_json::from_str(&ran.out()).unwrap_or_else(|e| panic!("{e}: {}", ran.out()))
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn savings_in_a_partial_recording_are_relative_to_the_cpu_time_of_that_part() {
    // The number of calls per second of CPU time is about the same in the part and in the whole
    // run.
    let calls = |options: &[&str]| {
        let play = ["--json", "--budget", "5s", "--strategy", "AS7"];
        let ran = Replayed::recorded(STEADY, options).replay(&play);
        let of: Value =
            serde_json::from_str(&ran.out()).unwrap_or_else(|e| panic!("{e}: {}", ran.errors()));
        let cpu = of["program_cpu_ns"].as_f64().unwrap_or_else(|| panic!("{of}"));
        of["calls"].as_f64().unwrap() / cpu
    };
    let ratio = calls(&["--window", "0.4s..1s"]) / calls(&[]);
    assert!((0.6..1.6).contains(&ratio), "{ratio}");
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn a_part_with_an_unknown_share_of_the_cpu_time_is_not_replayed() {
    // The recording stops soon after the start.
    let part = Replayed::recorded(STEADY, &["--max-size", "1KiB"]);
    let advice = advice(&part.folder, &["recorded", "--budget", "3s", "--no-try"]);
    let undecided = advice["undecided"].to_string();
    assert!(undecided.contains("nothing was replayed, because the CPU time"), "{advice}");
    assert_eq!(advice["verdict"], "undecided");
    let rows = advice["matrix"].as_array().unwrap();
    assert!(rows.iter().all(|row| row["measured_by"] != "replay"), "{advice}");
}

/// Returns whether a process handles a signal, so that the signal does not kill it.
fn handles(process: u32, signal: Signal) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask & (1 << (signal as i32 - 1)) != 0
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn interrupted_advice_on_a_complete_recording_does_not_call_the_recording_interrupted() {
    let recorded = Replayed::new(STEADY);
    let mut command = recorded.folder.command(MALLARD);
    command.args(["advise", "recorded", "--budget", "60s", "--json"]).stdout(Stdio::piped());
    let child = command.stderr(Stdio::piped()).spawn().unwrap();
    until("a handler of signals", || handles(child.id(), Signal::SIGHUP).then_some(()));
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(130), "{}", String::from_utf8_lossy(&ended.stderr));
    let advice: Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!(advice["interrupted"], true);
    let notes = advice["notes"].to_string();
    assert!(!notes.contains("the recording was interrupted"), "{notes}");
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn a_finding_of_both_the_recording_and_a_run_is_printed_once() {
    // Most of the CPU time is spent in a shell that is not recorded, so mallocs are compared only
    // by runs.
    let script = "import subprocess\nsubprocess.run(['sh', '-c', \
                  'i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done'])";
    let folder = Folder::new();
    let python = ["--", "/usr/bin/python3", "-c", script];
    let advice = advice(&folder, &[&["--budget", "6s"], &python[..]].concat());
    assert_eq!(advice["notes"].to_string().matches("its own arenas").count(), 1, "{advice}");
}
