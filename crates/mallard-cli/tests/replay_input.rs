//! Tests `mallard replay` with plans, traces, allocators and budgets that it can use only partly or
//! not at all.
//!
//! The tests need the recorder, the replayer (MALLARD_RECORDER and MALLARD_REPLAY have their paths)
//! and a C compiler. `./x test` builds both and runs them.

use crate::support::replayed::{player, Replayed, DOCUMENTS};
use crate::support::{skip, Folder, Ran, MALLARD};
use std::fs;
use std::path::Path;

/// Returns the rule of a region.
fn region(function: &str, strategy: &str, ends: &str) -> String {
    format!("[[rule]]\nregion = \"{function}\"\nstrategy = \"{strategy}\"\nends = \"{ends}\"\n")
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn plans_that_do_not_match_the_trace_are_rejected() {
    let replayed = Replayed::new(DOCUMENTS);
    let refuse = |plan: &str, what: &str, help: &str| {
        let ran = replayed.replay(&["--plan", &replayed.plan(plan)]);
        ran.refuses(3, what);
        assert!(ran.errors().contains(help), "{help} is not in: {}", ran.errors());
    };
    let known = "did you mean \"parse_document\"?";
    refuse(&region("parse_documnet", "AS3", "drained"), "the function parse_documnet", known);
    let site = "[[rule]]\nsite = \"make_name\"\nstrategy = \"AS7\"\n";
    refuse(&site.replace("name", "nmae"), "no call stack has an allocation", "\"make_name\"?");
    refuse(
        &site.replace("site = \"make_name\"", "stack = 4000000000"),
        "the trace does not",
        "sites",
    );
    refuse(&site.repeat(2), "rules 1 and 2 are both for the site make_name", "remove rule 1 or");
    refuse(&region("parse_document", "AS3", "exact"), "needs exact ends", "ends = \"drained\"");
    refuse("defualt = \"malloc\"", "plan.toml has the unknown key `defualt`", "`default`?");
    replayed.replay(&["--plan", "none.toml"]).refuses(3, "cannot read the plan none.toml");
    let other = replayed.plan("default = \"nonsense\"\n");
    replayed.replay(&["--plan", &other]).refuses(125, "there is no allocator 'nonsense'");
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn a_plan_that_winks_out_blocks_in_use_is_rejected_unless_forced() {
    let replayed = Replayed::new(DOCUMENTS);
    // One name of the configuration is never freed.
    let plan = replayed.plan(&region("load_config", "AS4", "drained"));
    let refused = replayed.replay(&["--plan", &plan]);
    refused.refuses(3, "winks out 1 block of the region load_config that is used afterwards");
    assert!(refused.errors().contains("for example of make_name"), "{}", refused.errors());
    assert!(refused.errors().contains("help: use AS3"), "{}", refused.errors());
    let result = replayed.json(&["--plan", &plan, "--unsafe"]);
    assert_eq!(result["candidates"][0]["account"]["rules"][0]["escapes"], 1, "{result}");
    let notes = result["notes"].to_string();
    assert!(notes.contains("a program with this plan would be incorrect"), "{notes}");
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn a_region_that_never_ends_is_replayed_with_a_note() {
    let replayed = Replayed::new(DOCUMENTS);
    let result = |ends: &str| {
        let result = replayed.json(&["--plan", &replayed.plan(&region("main", "AS3", ends))]);
        assert_eq!(result["candidates"][0]["account"]["rules"][0]["escapes"], 1, "{result}");
        result["notes"].to_string()
    };
    // `main` has a block in use at the end, so its region is never drained. But the end of its
    // thread is certain.
    let (drained, sure) = (result("drained"), result("sure"));
    assert!(drained.contains("not end before the recording does"), "{drained}");
    assert!(!sure.contains("not end before the recording does"), "{sure}");
}

/// A program that allocates 1000 blocks before a pause and 1000 after it, and then frees all of
/// them.
const PAUSE: &str = r#"
#include <stdlib.h>
#include <unistd.h>
static void* volatile kept[2000];
int main(void) {
    for (int i = 0; i < 1000; ++i) kept[i] = malloc(100);
    usleep(1000000);
    for (int i = 1000; i < 2000; ++i) kept[i] = malloc(100);
    for (int i = 0; i < 2000; ++i) free(kept[i]);
    return 0;
}
"#;

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn a_replay_of_a_partial_recording_reports_what_is_missing() {
    let replayed = Replayed::recorded(PAUSE, &["--window", "500ms.."]);
    let result = replayed.json(&["-a", "glibc:arenas=1"]);
    assert_eq!(result["calls"], 2000, "{result}");
    let notes = result["notes"].to_string();
    assert!(notes.contains("the recording covers only 0.5s.."), "{notes}");
    assert!(notes.contains("1000 frees and reallocs of blocks whose allocation is not"), "{notes}");
    assert_eq!(result["live_peak_bytes"], 100_000, "{result}");
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn a_truncated_recording_is_replayed_up_to_its_end() {
    let source = "#include <stdlib.h>\nint main(void) {\n\
        for (int i = 0; i < 500000; ++i) { void* volatile p = malloc(100); free(p); }\n\
        return 0; }";
    let replayed = Replayed::recorded(source, &["--max-size", "64KiB"]);
    let result = replayed.json(&["-a", "glibc:arenas=1"]);
    assert!(result["calls"].as_u64().unwrap() < 1_000_000, "{result}");
    let notes = result["notes"].to_string();
    assert!(notes.contains("more than the 64 KiB of --max-size"), "{notes}");
    assert_eq!(result["validity"].as_array().unwrap().len(), 1, "{result}");
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn sampled_recordings_are_rejected_unless_the_user_allows_them() {
    let replayed = Replayed::recorded(DOCUMENTS, &["--sample", "4096"]);
    replayed.replay(&[]).refuses(3, "the trace is sampled");
    let result = replayed.json(&["-a", "glibc:arenas=1", "--allow-samples"]);
    let notes = result["notes"].to_string();
    assert!(notes.contains("about one block for each 4096 bytes"), "{notes}");
    assert!(result["calls"].as_u64().unwrap() < 2000, "{result}");
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn unusable_allocators_files_and_replayers_are_rejected() {
    let replayed = Replayed::new(DOCUMENTS);
    let folder = &replayed.folder;
    let refuse = |options: &[&str], status, what: &str| {
        replayed.replay(options).refuses(status, what);
    };
    refuse(&["-a", "nonsense"], 125, "there is no allocator 'nonsense'");
    refuse(&["-a", "mine=./missing.so"], 125, "cannot be preloaded");
    refuse(&["--process", "77"], 3, "77");
    refuse(&["--write", "a.ops", "--strategy", "AS3,AS7"], 2, "one plan or one strategy");
    refuse(&["--write", "no/such/folder/a.ops"], 3, "cannot write the op stream");
    refuse(&["--write", "recorded.mallard"], 3, "cannot write the op stream");
    assert!(!folder.path("a.ops").exists());
    let mut without_player = folder.command(MALLARD);
    let ran = without_player.args(["replay", "recorded"]).env("MALLARD_REPLAY", "/nonexistent");
    Ran(ran.output().unwrap()).refuses(125, "/nonexistent, which MALLARD_REPLAY names");
    folder.compile("player", "int main(void) { return 3; }", &[]);
    let mut other_player = folder.command(MALLARD);
    let ran = other_player.args(["replay", "recorded"]).env("MALLARD_REPLAY", "player");
    Ran(ran.output().unwrap()).refuses(125, "the replayer failed");
}

#[test]
fn invalid_arguments_are_rejected() {
    let folder = Folder::new();
    let refuse = |options: &[&str], status, what| {
        folder.mallard(&[&["replay", "none"], options].concat()).refuses(status, what);
    };
    refuse(&[], 3, "there is no trace");
    refuse(&["--strategy", "AS15"], 2, "AS1 to AS14");
    refuse(&["--touch", "half"], 2, "");
    refuse(&["--pace", "0.5"], 2, "the pace must be");
    refuse(&["--litter", "1.5"], 2, "the value must be a share");
    refuse(&["--budget", "soon"], 2, "the time");
    refuse(&["--write", "a.ops", "-a", "glibc"], 2, "");
    refuse(&["--quite"], 2, "unexpected argument '--quite'");
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn the_error_for_a_budget_that_is_too_small_mentions_the_replay() {
    let replayed = Replayed::recorded(PAUSE, &[]);
    let words = ["replay", "recorded", "--pace", "real", "-a", "glibc", "--budget"];
    let paced = |budget| replayed.folder.mallard_in_time(&[&words[..], &[budget]].concat());
    let longer = paced("100ms");
    longer.refuses(125, "a replay under glibc takes longer than 100 ms");
    let small = paced("3s");
    small.refuses(125, "a budget of 3.0 s is too small");
    for ran in [longer, small] {
        assert!(ran.errors().contains("record a part of the run"), "{}", ran.errors());
        assert!(!ran.errors().contains("the program"), "{}", ran.errors());
    }
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn a_replay_that_runs_out_of_memory_reports_it() {
    let source = "#include <stdlib.h>\nstatic void* volatile p;\n\
        int main(void) { p = malloc((size_t)8 << 30); return p == 0; }";
    let replayed = Replayed::new(source);
    let script = format!("ulimit -v 4000000; exec '{MALLARD}' replay recorded -a glibc:arenas=1");
    let ran = Ran(replayed.folder.command("sh").args(["-c", &script]).output().unwrap());
    ran.refuses(125, "1 call fails that succeeded in the program");
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn a_full_temporary_directory_leaves_the_trace_unchanged() {
    let replayed = Replayed::new(DOCUMENTS);
    let folder = &replayed.folder;
    fs::create_dir(folder.path("small")).unwrap();
    let before = files(&folder.path("recorded.mallard"));
    // The script mounts a file system of 64 KiB in a mount namespace.
    let script = format!(
        "mount -t tmpfs -o size=64k tmpfs small || exit 77; TMPDIR=small '{MALLARD}' replay recorded; \
         status=$?; ls -A small; exit $status"
    );
    let ran = Ran(folder.command("unshare").args(["-rm", "sh", "-c", &script]).output().unwrap());
    if ran.errors().contains("mount:") || ran.errors().contains("unshare:") {
        return skip("no mount namespace");
    }
    ran.refuses(3, "cannot write the op stream");
    assert!(ran.errors().contains("the trace is unchanged"), "{}", ran.errors());
    assert_eq!(ran.out(), "", "nothing is left in the temporary folder");
    assert_eq!(files(&folder.path("recorded.mallard")), before);
    let missing =
        folder.command(MALLARD).args(["replay", "recorded"]).env("TMPDIR", "/none").output();
    Ran(missing.unwrap()).refuses(125, "cannot create a temporary directory");
}

/// Returns the names and contents of the files in a directory.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut all: Vec<_> = entries
        .filter(|path| path.is_file())
        .map(|path| (path.display().to_string(), fs::read(&path).unwrap()))
        .collect();
    all.sort();
    assert!(!all.is_empty());
    all
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn a_saved_op_stream_can_be_replayed_by_the_replayer_alone() {
    let replayed = Replayed::new(DOCUMENTS);
    let shown = replayed.write("run.ops", &["--strategy", "AS7"]);
    assert!(shown.starts_with("run.ops: 20,119 calls of 1 thread, at most 4.8 KiB"), "{shown}");
    assert!(shown.contains("  next: mallard-replay run.ops"), "{shown}");
    assert_eq!(player(&replayed.folder, &["run.ops"])["targets"], 2);
    // The file is replaced, and there is no other new file next to it.
    replayed.write("run.ops", &[]);
    assert_eq!(player(&replayed.folder, &["run.ops"])["targets"], 1);
    let names = fs::read_dir(replayed.folder.0.path()).unwrap();
    assert_eq!(names.count(), 4, "a program, its source, the trace and the op stream");
}
