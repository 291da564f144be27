//! Tests `mallard advise` with traces and programs that give little or wrong evidence.
//!
//! The tests need the recorder, the replayer (MALLARD_RECORDER and MALLARD_REPLAY have their paths)
//! and a C compiler. `./x test` builds both and runs them.

use crate::support::replayed::Replayed;
use crate::support::{orders, skip, Folder, Ran, MALLARD};
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

/// A program that frees blocks of 100 and 200 bytes together, many times.
const BLOCKS: &str = r#"
#include <stdlib.h>
static void* volatile p;
__attribute__((noinline)) static void work(int size) {
    for (int i = 0; i < 100; ++i) { p = malloc(size); free(p); }
}
int main(void) {
    for (int i = 0; i < 2000; ++i) work(i % 2 ? 100 : 200);
    return 0;
}
"#;

/// Returns the output of `mallard advise --json` for a trace in the directory.
fn advice(folder: &Folder, options: &[&str]) -> Value {
    let ran = folder.mallard(&[&["advise", "--json"], options].concat());
    assert_eq!(ran.status(), 0, "{}", ran.errors());
    serde_json::from_str(&ran.out()).unwrap_or_else(|e| panic!("{e}: {}", ran.out()))
}

/// Returns the output of `mallard advise --json` for a program that is recorded first.
fn of_program(source: &str, options: &[&str]) -> Value {
    let folder = Folder::new();
    folder.compile("program", source, &["-O1", "-pthread"]);
    advice(&folder, &[options, &["--", "./program"]].concat())
}

/// Returns the texts of a list, joined.
fn texts(list: &Value) -> String {
    let texts = list.as_array().unwrap().iter().map(|text| text.as_str().unwrap());
    texts.collect::<Vec<_>>().join("\n")
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn a_sampled_recording_is_not_replayed() {
    let sampled = Replayed::recorded(BLOCKS, &["--sample", "4096"]);
    let advice = advice(&sampled.folder, &["recorded", "--budget", "3s", "--no-try"]);
    assert!(texts(&advice["validity"]).contains("sampled"), "{advice}");
    assert!(texts(&advice["undecided"]).contains("nothing was replayed"), "{advice}");
    assert_eq!(advice["verdict"], "undecided", "{advice}");
    assert!(advice["bound"]["share"].is_null(), "{advice}");
    let of_region = ["advise", "recorded", "--region", "work"];
    sampled.folder.mallard(&of_region).refuses(3, "samples do not show regions");
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn advice_on_a_partial_recording_says_that_it_is_partial() {
    let windowed = Replayed::recorded(BLOCKS, &["--window", "0s..10s"]);
    let advice = advice(&windowed.folder, &["recorded", "--budget", "3s", "--no-try"]);
    assert!(texts(&advice["validity"]).contains("the trace covers only"), "{advice}");
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn a_truncated_event_log_does_not_lead_to_advice_to_keep_the_allocator() {
    let few = BLOCKS.replace("2000", "20");
    let kept = Replayed::recorded(&few, &["--keep-stream"]);
    let stream = std::fs::read(kept.folder.path("recorded.stream")).unwrap();
    std::fs::write(kept.folder.path("cut.stream"), &stream[..stream.len() - 16]).unwrap();
    let imported = kept.folder.mallard(&["import", "cut.stream"]);
    assert_eq!(imported.status(), 0, "{}", imported.errors());
    let advice = advice(&kept.folder, &["cut", "--budget", "3s"]);
    assert_eq!(advice["verdict"], "undecided", "{advice}");
    assert!(advice["sentence"].as_str().unwrap().contains("not complete (cut)"), "{advice}");
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn a_window_without_events_does_not_lead_to_advice_to_keep_the_allocator() {
    let windowed = Replayed::recorded(BLOCKS, &["--window", "100s.."]);
    let advice = advice(&windowed.folder, &["recorded", "--budget", "3s", "--no-try"]);
    assert_eq!(advice["verdict"], "undecided", "{advice}");
    assert_eq!(advice["next"], "mallard record -- ./program", "{advice}");
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn unrecorded_programs_are_named_with_the_command_that_records_them() {
    let folder = Folder::new();
    folder.compile("program", &BLOCKS.replace("2000", "20000"), &["-O1"]);
    let options = ["--budget", "3s", "--no-try", "--", "env", "./program"];
    let advice = advice(&folder, &options);
    assert_eq!(advice["verdict"], "undecided", "{advice}");
    assert!(texts(&advice["validity"]).contains("were not recorded"), "{advice}");
    let again = "mallard advise --no-try --follow fork,exec -- env ./program";
    assert_eq!(advice["next"], again, "{advice}");
    assert!(advice["sentence"].as_str().unwrap().contains(again), "{advice}");
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn no_change_is_recommended_for_a_program_that_allocates_nothing() {
    let advice = of_program("int main(void) { return 0; }", &["--budget", "3s"]);
    assert_eq!(advice["verdict"], "leave", "{advice}");
    assert_eq!(advice["regions"].as_array().unwrap().len(), 0, "{advice}");
    assert!(texts(&advice["notes"]).contains("mostly to start the process"), "{advice}");
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn a_program_that_crashes_gets_advice_from_its_recording_and_is_not_run_again() {
    let crash = BLOCKS.replace("return 0;", "abort();");
    let advice = of_program(&crash, &["--budget", "4s"]);
    assert_eq!(advice["run"]["failure"], "was ended by signal 6 (SIGABRT)", "{advice}");
    let tried = advice["matrix"].as_array().unwrap().iter().any(|row| row["measured_by"] == "try");
    assert!(!tried, "{advice}");
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn the_first_and_the_last_line_report_that_the_recorded_run_failed() {
    let folder = Folder::new();
    for (end, failure) in [
        ("kill(getpid(), SIGSEGV);", "was ended by signal 11 (SIGSEGV)"),
        ("return 3;", "ended with status 3"),
    ] {
        let source =
            format!("#include <signal.h>\n#include <unistd.h>\nint main(void) {{ {end} }}");
        folder.compile("program", &source, &[]);
        let ran = folder.mallard(&["advise", "-q", "--budget", "3s", "--", "./program"]);
        assert_eq!(ran.status(), 0, "{}", ran.errors());
        let text = ran.out();
        let first = format!("program {failure}: ");
        assert!(text.lines().any(|line| line.starts_with(&first)), "{text}");
        let last = text.lines().last().unwrap();
        let run = format!("The recorded run of program {failure}, ");
        assert!(last.starts_with(&run), "{text}");
        // If a signal ended the run, that is no reason to recommend keeping the allocator.
        let is_decided = !last.contains("It is not decided");
        assert_eq!(is_decided, end == "return 3;", "{text}");
    }
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn output_that_differs_between_runs_is_reported() {
    let random = r#"
        #include <stdio.h>
        #include <stdlib.h>
        #include <unistd.h>
        static void* volatile p;
        int main(void) {
            for (int i = 0; i < 1000000; ++i) { p = malloc(i % 5000 + 16); free(p); }
            printf("%d\n", (int)getpid());
            return 0;
        }
    "#;
    let advice = of_program(random, &["--budget", "5s"]);
    let tried = advice["matrix"].as_array().unwrap().iter().any(|row| row["measured_by"] == "try");
    assert!(!tried, "{advice}");
    // Whether another malloc may help depends on the machine. If it may help, the program ran more
    // than once, unless the machine is so busy that the budget was too small.
    let undecided = texts(&advice["undecided"]);
    let is_named = undecided.contains("two runs under the same malloc differ");
    let had_no_time = undecided.contains("--budget");
    let at_stake = undecided.contains("in the program itself");
    assert!(is_named || had_no_time || !at_stake, "{advice}");
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn with_a_budget_that_is_too_small_the_advice_lists_what_is_undecided() {
    let replayed = Replayed::new(BLOCKS);
    let advice = advice(&replayed.folder, &["recorded", "--budget", "20ms", "--min-gain", "0%"]);
    assert_eq!(advice["verdict"], "undecided", "{advice}");
    let undecided = texts(&advice["undecided"]);
    assert!(undecided.contains("takes"), "{advice}");
    // Each sentence and the command name the same budget, which is larger than the given budget.
    let text = ["sentence", "undecided", "next"].map(|key| advice[key].to_string()).join(" ");
    let named = |part: &str| part.split([' ', ';', '"']).next().unwrap().to_string();
    let budgets: Vec<String> = text.split("--budget ").skip(1).map(named).collect();
    assert!(budgets.len() >= 3 && budgets.iter().all(|of| *of == budgets[0]), "{advice}");
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn the_suggested_command_can_be_pasted_and_repeats_the_options_of_the_user() {
    let folder = Folder::new();
    std::fs::write(folder.path("my input"), "7\n").unwrap();
    folder.compile("program", BLOCKS, &["-O1"]);
    let options = ["--budget", "20ms", "--min-gain", "0%", "--stdin", "my input", "-o", "my run"];
    let first = advice(&folder, &[&options[..], &["--", "./program"]].concat());
    assert_eq!(first["verdict"], "undecided", "{first}");
    let next = first["next"].as_str().unwrap();
    let options = "'my run.mallard' --stdin 'my input' --min-gain 0% --budget ";
    assert!(next.contains(options), "{next}");
    let pasted = next.replacen("mallard", &format!("'{MALLARD}'"), 1);
    let ran = Ran(folder.command("sh").args(["-c", &format!("{pasted} --json")]).output().unwrap());
    assert_eq!(ran.status(), 0, "{}", ran.errors());
    let second: Value = serde_json::from_str(&ran.out()).unwrap();
    assert_eq!((&second["min_gain"], &second["name"]), (&0.0.into(), &first["name"]));
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn on_a_busy_machine_the_advice_states_its_uncertainty() {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let stop = Arc::new(AtomicBool::new(false));
    let busy: Vec<_> = (0..3 * cores)
        .map(|_| {
            let stop = stop.clone();
            std::thread::spawn(move || while !stop.load(Ordering::Relaxed) {})
        })
        .collect();
    let folder = Folder::new();
    folder.compile("program", BLOCKS, &["-O1"]);
    let ran = folder.mallard(&["advise", "--budget", "5s", "-o", "run", "--", "./program"]);
    stop.store(true, Ordering::Relaxed);
    for thread in busy {
        thread.join().unwrap();
    }
    assert_eq!(ran.status(), 0, "{}", ran.errors());
    let kept = std::fs::read_to_string(folder.path("run.mallard/advice.json")).unwrap();
    let advice: Value = serde_json::from_str(&kept).unwrap();
    let sentence = advice["sentence"].as_str().unwrap();
    assert_eq!(ran.out().lines().last(), Some(sentence), "{}", ran.out());
    assert_eq!(advice["noisy"], advice["noise"].is_number(), "{advice}");
    let known = ["leave", "undecided", "change"];
    assert!(known.contains(&advice["verdict"].as_str().unwrap()), "{advice}");
    // If the verdict is undecided, the output has a reason and a command.
    if advice["verdict"] == "undecided" {
        assert!(sentence.starts_with("It is not decided whether program"), "{sentence}");
        assert!(advice["next"].as_str().unwrap().starts_with("mallard "), "{advice}");
    }
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn if_the_budget_ends_during_a_run_the_findings_so_far_are_printed() {
    let long = BLOCKS
        .replace("#include <stdlib.h>", "#include <stdlib.h>\n#include <unistd.h>")
        .replace("return 0;", "sleep(4); return 0;");
    let folder = Folder::new();
    folder.compile("program", &long, &["-O1"]);
    let ran = folder.mallard_in_time(&["advise", "--json", "--budget", "3s", "--", "./program"]);
    let advice: Value =
        serde_json::from_str(&ran.out()).unwrap_or_else(|e| panic!("{e}: {}", ran.errors()));
    assert_eq!(advice["interrupted"], false, "{advice}");
    let tried = advice["matrix"].as_array().unwrap().iter().any(|row| row["measured_by"] == "try");
    assert!(!tried, "{advice}");
    assert!(advice["took_s"].as_f64().unwrap() < 60.0, "{advice}");
    // A candidate that no replay has ruled out stays undecided, and the advice names a sufficient
    // budget.
    let undecided = texts(&advice["undecided"]);
    assert!(undecided.is_empty() || undecided.contains("--budget "), "{advice}");
    let bound = &advice["bound"];
    assert!(bound["share"].is_number() || bound["unknown"].is_string(), "{advice}");
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn a_recorded_server_is_run_under_mallocs_with_its_recorded_load() {
    let server = r#"
        #include <signal.h>
        #include <stdio.h>
        #include <stdlib.h>
        #include <unistd.h>
        static volatile sig_atomic_t ended;
        static void end(int n) { (void)n; ended = 1; }
        static void* volatile p;
        int main(void) {
            signal(SIGTERM, end);
            signal(SIGUSR1, end);
            fclose(fopen("ready", "w"));
            for (int i = 0; i < 200000; ++i) { p = malloc(i % 3000 + 16); free(p); }
            for (int i = 0; i < 100 && !ended; ++i) usleep(10000);
            return 0;
        }
    "#;
    let served = Replayed::new(server);
    let folder = &served.folder;
    let load = ["--load", "test -e ready", "--budget", "4s"];
    let advice = advice(folder, &[&["recorded"], &load[..]].concat());
    let known = ["leave", "undecided", "change"];
    assert!(known.contains(&advice["verdict"].as_str().unwrap()), "{advice}");
    assert_eq!(advice["run"]["recordings"], 1, "{advice}");
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn a_program_whose_file_no_longer_exists_is_not_run_again() {
    let replayed = Replayed::new(BLOCKS);
    std::fs::remove_file(replayed.folder.path("program")).unwrap();
    let ran = replayed.folder.mallard(&["advise", "recorded", "--budget", "3s"]);
    assert_eq!(ran.status(), 0, "{}", ran.errors());
    assert!(ran.out().contains("the program was not run again: there is no "), "{}", ran.out());
}

#[test]
fn advice_on_an_imported_trace_of_another_tool_runs_no_program() {
    let folder = Folder::new();
    std::fs::write(folder.path("app"), "v 10400 3\nX true\nc a\n").unwrap();
    let imported = folder.mallard(&["import", "app"]);
    assert_eq!(imported.status(), 0, "{}", imported.errors());
    let ran = folder.mallard(&["advise", "app", "--budget", "3s"]);
    assert_eq!(ran.status(), 0, "{}", ran.errors());
    assert!(ran.out().contains("the trace was imported from heaptrack"), "{}", ran.out());
    assert!(ran.out().contains("the trace has no threads"), "{}", ran.out());
}

#[test]
fn missing_events_are_reported() {
    let folder = orders();
    let advice = advice(&folder, &["orders", "--budget", "3s"]);
    assert!(texts(&advice["validity"]).contains("lacks 2 events"), "{advice}");
    let known = ["leave", "undecided", "change"];
    assert!(known.contains(&advice["verdict"].as_str().unwrap()), "{advice}");
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn functions_without_symbols_are_named_by_module_and_offset() {
    let folder = Folder::new();
    folder.compile("program", BLOCKS, &["-O1", "-s"]);
    let ran = folder.mallard(&["advise", "--json", "--budget", "4s", "--", "./program"]);
    assert_eq!(ran.status(), 0, "{}", ran.errors());
    let advice: Value = serde_json::from_str(&ran.out()).unwrap();
    let regions = advice["regions"].as_array().unwrap();
    assert!(!regions.is_empty(), "{advice}");
    for region in regions {
        assert!(region["function"].as_str().unwrap().contains("+0x"), "{region}");
    }
    assert!(texts(&advice["notes"]).contains("the functions have no names"), "{advice}");
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn the_stdin_and_setup_options_apply_to_each_run() {
    let folder = Folder::new();
    std::fs::write(folder.path("in"), "7\n").unwrap();
    let source = r#"
        #include <stdio.h>
        int main(void) { int n = 0; if (scanf("%d", &n) != 1 || remove("flag") != 0) return 9;
            printf("%d\n", n); return 0; }
    "#;
    folder.compile("program", source, &[]);
    let options = ["--setup", "touch flag", "--stdin", "in", "--budget", "3s"];
    let ran = folder.mallard(&[&["advise"], &options[..], &["--", "./program"]].concat());
    assert_eq!(ran.status(), 0, "{}", ran.errors());
    assert!(ran.out().starts_with("7\n"), "{}", ran.out());
    let missing = ["advise", "--stdin", "no-such-file", "--", "./program"];
    folder.mallard(&missing).refuses(125, "cannot read no-such-file");
    let failing = ["advise", "--setup", "false", "--", "./program"];
    folder.mallard(&failing).refuses(125, "the setup 'false' failed");
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn each_run_has_the_stdin_the_environment_and_the_directory_of_the_recording() {
    let folder = Folder::new();
    let source = r#"
        #include <stdio.h>
        #include <stdlib.h>
        int main(void) {
            int input = getchar();
            FILE* file = fopen("runs", "a");
            const char* set = getenv("PYTHONMALLOC");
            const char* of_user = getenv("DUCKS");
            fprintf(file, "%d %s %s\n", input, set ? set : "none", of_user ? of_user : "none");
            return fclose(file);
        }
    "#;
    folder.compile("program", source, &[]);
    std::fs::write(folder.path("in"), "A").unwrap();
    let run = |options: &[&str]| {
        let input = std::fs::File::open(folder.path("in")).unwrap();
        let mut command = folder.command(MALLARD);
        let command = command.args(options).env("PYTHONMALLOC", "malloc").env("DUCKS", "7 8");
        let command = command.stdin(input);
        assert_eq!(Ran(command.output().unwrap()).status(), 0);
    };
    let runs = || std::fs::read_to_string(folder.path("runs")).unwrap();
    run(&["advise", "--budget", "6s", "--", "./program"]);
    let advised = runs().lines().count();
    assert!(advised > 1 && runs() == "65 malloc 7 8\n".repeat(advised), "{}", runs());
    run(&["record", "-o", "recorded", "--", "./program"]);
    let ran = folder.mallard(&["advise", "--budget", "6s", "recorded"]);
    let all = runs().lines().count();
    assert!(
        all > advised + 1 && runs() == "65 malloc 7 8\n".repeat(all),
        "{}\n{}",
        runs(),
        ran.out()
    );

    // The advice also works in another directory, with other environment variables.
    let elsewhere = folder.path("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let mut command = folder.command(MALLARD);
    let words = ["advise", "--budget", "6s", "../recorded"];
    let command = command.args(words).env("DUCKS", "9").current_dir(&elsewhere);
    let advised = Ran(command.output().unwrap());
    assert_eq!(advised.status(), 0, "{}", advised.errors());
    let more = runs().lines().count();
    assert!(more > all && runs() == "65 malloc 7 8\n".repeat(more), "{}", runs());
    assert!(folder.path("recorded.mallard/advice.json").exists());
}

#[test]
fn a_pipe_as_stdin_is_rejected() {
    let folder = Folder::new();
    let command = format!("echo 7 | '{MALLARD}' advise -- true");
    let refused = Ran(folder.command("sh").args(["-c", &command]).output().unwrap());
    refused.refuses(2, "stdin is a pipe, which only one run of the program can read");
    assert!(refused.errors().contains("--stdin FILE"), "{}", refused.errors());
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn an_installed_command_finds_its_files_relative_to_itself() {
    let folder = Folder::new();
    let parts = folder.path("prefix/lib/mallard");
    std::fs::create_dir_all(folder.path("prefix/bin")).unwrap();
    std::fs::create_dir_all(&parts).unwrap();
    let installed = folder.path("prefix/bin/mallard");
    std::fs::copy(MALLARD, &installed).unwrap();
    folder.compile("program", BLOCKS, &["-O1"]);
    let advise = || {
        let mut command = folder.command(installed.to_str().unwrap());
        for variable in ["MALLARD_RECORDER", "MALLARD_REPLAY", "MALLARD_MALLOC"] {
            command.env_remove(variable);
        }
        let words = ["advise", "--budget", "3s", "--no-try", "--json", "--", "./program"];
        Ran(command.args(words).output().unwrap())
    };
    assert!(advise().errors().contains("libmallard-record.so"), "{}", advise().errors());
    for variable in ["MALLARD_RECORDER", "MALLARD_REPLAY"] {
        let built = std::path::PathBuf::from(std::env::var(variable).unwrap());
        std::fs::copy(&built, parts.join(built.file_name().unwrap())).unwrap();
    }
    let ran = advise();
    assert_eq!(ran.status(), 0, "{}", ran.errors());
    let advice: Value = serde_json::from_str(&ran.out()).unwrap();
    assert!(advice["regions"].as_array().is_some_and(|all| !all.is_empty()), "{advice}");
    assert!(!advice["matrix"].as_array().unwrap().is_empty(), "{advice}");
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn no_cpu_share_is_invented_for_a_program_with_a_built_in_malloc() {
    const LIBRARY: &str = "libtcmalloc_minimal.so.4";
    let folder = Folder::new();
    let source = r#"
        char* volatile block;
        int main() {
            for (int i = 0; i < 300000; ++i) { block = new char[i % 500 + 1]; delete[] block; }
        }
    "#;
    std::fs::write(folder.path("program.cpp"), source).unwrap();
    let words = ["program.cpp", "-O1", "-o", "program", "-Wl,--no-as-needed"];
    let library = format!("-l:{LIBRARY}");
    let built = folder.command("g++").args(words).arg(library).output().unwrap();
    if !built.status.success() {
        return skip(&format!("no {LIBRARY}"));
    }
    let advice = advice(&folder, &["--no-try", "--budget", "3s", "--", "./program"]);
    assert!(texts(&advice["notes"]).contains(&format!("linked with {LIBRARY}")), "{advice}");
    let bound = &advice["bound"];
    // The calls of its operator new and delete are timed. The program may be too short for a share
    // to be known, but the share is never 0.
    let unknown = bound["unknown"].as_str().unwrap_or_default();
    assert!(!unknown.contains("were timed"), "{advice}");
    assert!(!unknown.is_empty() || bound["calls"].as_f64() > Some(0.02), "{advice}");
    let tried = folder.mallard(&["try", "--json", "--budget", "3s", "--", "./program"]).out();
    assert!(!tried.contains("\"glibc:"), "{tried}");
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn a_program_that_the_recorder_breaks_gets_no_advice() {
    let source = r#"
        #define _GNU_SOURCE
        #include <stdio.h>
        #include <stdlib.h>
        #include <string.h>
        static void* volatile p;
        int main(void) {
            char line[4096];
            int is_recorded = 0;
            FILE* maps = fopen("/proc/self/maps", "r");
            while (fgets(line, sizeof line, maps)) is_recorded |= strstr(line, "mallard-record") != 0;
            for (int i = 0; i < 20000; ++i) { p = malloc(i % 2 ? 100 : 200); free(p); }
            return is_recorded ? 3 : 0;
        }
    "#;
    let advice = of_program(source, &["--budget", "6s"]);
    assert_eq!(advice["verdict"], "undecided", "{advice}");
    let sentence = advice["sentence"].as_str().unwrap();
    assert!(sentence.contains("without the recorder, program succeeded"), "{advice}");
    assert!(advice["matrix"].as_array().unwrap().is_empty(), "{advice}");
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn a_warning_of_the_recording_is_repeated_in_the_advice() {
    let folder = Folder::new();
    folder.compile("program", BLOCKS, &["-O1"]);
    let advise = format!("ulimit -v 8000000; '{MALLARD}' advise --no-try --budget 3s -- ./program");
    let ran = Ran(folder.command("sh").args(["-c", &advise]).output().unwrap());
    assert_eq!(ran.status(), 0, "{}", ran.errors());
    assert!(
        ran.out().contains("note: the program may use 7.6 GiB of address space"),
        "{}",
        ran.out()
    );
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn a_program_with_a_built_in_allocator_gets_no_bound_and_no_verdict() {
    let allocator = r#"
        #include <stddef.h>
        static char memory[1 << 20];
        static size_t used;
        void* mi_malloc(size_t bytes) { used = (used + bytes) % 4096; return memory + used; }
    "#;
    let declared = "#include <stddef.h>\nvoid* mi_malloc(size_t bytes);\n";
    let program = BLOCKS
        .replace("int main(void) {", "int main(void) { char* volatile q = mi_malloc(8); *q = 1;");
    let folder = Folder::new();
    folder.compile("libown.so", allocator, &["-O1", "-shared", "-fPIC"]);
    // The program contains the allocator in its own file, or is linked with a library that contains
    // it.
    let linked = ["-O1", "-L.", "-lown", "-Wl,-rpath,$ORIGIN"];
    folder.compile("contains", &format!("{allocator}{program}"), &["-O1"]);
    folder.compile("imports", &format!("{declared}{program}"), &linked);
    for name in ["contains", "imports"] {
        let path = format!("./{name}");
        let recorded = folder.mallard(&["record", "--force", "-o", "t", "--", &path]).errors();
        assert!(recorded.contains("its own allocator (mi_malloc)"), "{recorded}");
        assert!(!recorded.contains("no allocator can save more"), "{recorded}");
        assert!(
            recorded.contains("took is unknown: the program has its own allocator"),
            "{recorded}"
        );
        let stats = folder.mallard(&["stats", "t"]).out();
        assert!(stats.contains("only a part     the program has its own allocator"), "{stats}");
        // The setting has no effect. On a busy machine, it may seem to save 2 %, but not half of
        // the time.
        let options = ["--budget", "2s", "--min-gain", "50%", "-a", "glibc:arenas=1"];
        let tried = [&["try", "--json"], &options[..], &["--", &path]].concat();
        let tried: Value = serde_json::from_str(&folder.mallard(&tried).out()).unwrap();
        let sentence = tried["sentence"].as_str().unwrap();
        let what = format!("The mallocs were not tested: {name} has its own allocator, mi_malloc");
        assert!(sentence.starts_with(&what), "{tried}");
        let advice = advice(&folder, &["t", "--budget", "3s"]);
        assert_eq!(advice["verdict"], "undecided", "{advice}");
        assert!(advice["sentence"].as_str().unwrap().contains("(mi_malloc)"), "{advice}");
        assert!(advice["bound"]["share"].is_null(), "{advice}");
        assert!(
            texts(&advice["notes"]).contains(&format!("{name} has its own allocator")),
            "{advice}"
        );
        let evidence = texts(&advice["cards"][0]["evidence"]);
        assert_eq!(evidence.matches("whose calls are not recorded").count(), 1, "{advice}");
    }
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn a_process_that_does_less_than_half_of_the_work_does_not_represent_all() {
    let folder = Folder::new();
    folder.compile("program", &BLOCKS.replace("2000", "20"), &["-O1"]);
    let script = "./program; ./program; ./program; ./program; true";
    let options = ["--budget", "3s", "--no-try", "--follow", "fork,exec", "--", "sh", "-c", script];
    let advice = advice(&folder, &options);
    assert_eq!(advice["verdict"], "undecided", "{advice}");
    assert!(texts(&advice["undecided"]).contains("of the work, was analysed"), "{advice}");
}
