//! Tests the results of `mallard replay` for real programs.
//!
//! The tests need the recorder, the replayer (MALLARD_RECORDER and MALLARD_REPLAY have their paths)
//! and a C compiler. `./x test` builds both and runs them.

use crate::support::replayed::{compile_own_malloc, player, Replayed, DOCUMENTS};
use crate::support::{until, Ran, MALLARD};
use mallard_trace::tables::schema::EVENTS;
use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use serde_json::Value;
use std::fs;
use std::process::Stdio;

/// A program that keeps 8 MiB in blocks of 1 KiB, and then frees them.
const KEEPS: &str = r#"
#include <stdlib.h>
static char* volatile kept[8192];
int main(void) {
    for (int i = 0; i < 8192; ++i) { kept[i] = malloc(1024); *kept[i] = 1; }
    for (int i = 0; i < 8192; ++i) free(kept[i]);
    return 0;
}
"#;

/// A program that makes every kind of allocation call.
const ALL_CALLS: &str = r#"
#include <malloc.h>
#include <stdlib.h>
static void* volatile p;
int main(void) {
    p = calloc(10, 7);
    p = realloc(p, 5000);
    p = realloc(p, 20);
    free(p);
    p = aligned_alloc(64, 640);
    free(p);
    void* q = 0;
    if (posix_memalign(&q, 4096, 100) != 0) return 1;
    p = q;
    free(p);
    p = malloc(0);
    free(p);
    free(0);
    p = malloc((size_t)1 << 62);
    return p != 0;
}
"#;

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn a_replay_repeats_the_recorded_calls() {
    let replayed = Replayed::new(ALL_CALLS);
    let events = replayed.trace().table(&EVENTS).unwrap().i64s("op").unwrap().len() as u64;
    let result = replayed.json(&["--allocator", "glibc:arenas=1"]);
    assert_eq!(result["calls"], events, "{result}");
    assert_eq!(result["validity"].as_array().unwrap().len(), 0, "{result}");
    assert!(result["candidates"][0]["broken"].is_null(), "{result}");
    replayed.write("run.ops", &[]);
    let played = player(&replayed.folder, &["run.ops"]);
    assert_eq!(played["calls"], events);
    // The allocation of 2^62 bytes fails in the replay as it did in the program.
    assert_eq!((&played["failures"], &played["successes"]), (&Value::from(0), &Value::from(0)));
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn the_result_in_json_has_times_memory_verdicts_and_parts() {
    let replayed = Replayed::new(DOCUMENTS);
    let result = replayed.json(&["--allocator", "glibc:tcache=1000", "--strategy", "AS7,AS9,AS2"]);
    for key in ["program_cpu_ns", "ops", "calls", "live_peak_bytes", "blocks", "seed", "min_gain"] {
        assert!(result[key].is_number(), "{key}: {result}");
    }
    assert_eq!((&result["threads"], &result["interrupted"]), (&1.into(), &false.into()));
    let base = &result["base"];
    assert_eq!(base["name"], "glibc");
    for key in ["calls_cpu_ns", "cpu_ns", "system_ns", "heap_peak_bytes", "page_faults"] {
        assert!(base[key].is_number(), "{key}: {base}");
    }
    assert!(base["calls_cpu_ns"].as_f64() < base["cpu_ns"].as_f64(), "the player is left out");
    assert!(base["control_cpu"]["saving"].is_number() && base["control_memory"].is_object());
    let names: Vec<&str> = result["candidates"]
        .as_array()
        .unwrap()
        .iter()
        .map(|candidate| {
            for metric in ["cpu", "memory"] {
                let verdict = candidate[metric]["verdict"].as_str().unwrap();
                let known = ["gain", "loss", "no difference", "not measurable"];
                assert!(known.contains(&verdict), "{candidate}");
            }
            assert_eq!(candidate["parts"]["locality"], "not estimated");
            assert!(
                candidate["predicted"]["low"].as_f64() < candidate["predicted"]["high"].as_f64()
            );
            candidate["name"].as_str().unwrap()
        })
        .collect();
    assert_eq!(names, ["glibc:tcache=1000", "AS7", "AS9", "AS2"]);
    let of = |at: usize| &result["candidates"][at];
    // AS9 makes the same calls as AS7, but through an abstract base class. AS2 makes the same calls
    // as AS1, the base.
    assert_eq!((&of(1)["measured_as"], &of(1)["virtual_calls"]), (&Value::Null, &0.into()));
    assert_eq!((&of(2)["measured_as"], &of(2)["cpu_ns"]), (&"AS7".into(), &of(1)["cpu_ns"]));
    assert_eq!((&of(3)["measured_as"], &of(3)["cpu_ns"]), (&"AS1".into(), &base["cpu_ns"]));
    for at in [2, 3] {
        assert_eq!(of(at)["virtual_calls"], result["calls"]);
        assert!(of(at)["virtual_call_ns"][1].as_f64() >= of(at)["virtual_call_ns"][0].as_f64());
    }
    assert!(of(0)["account"].is_null() && of(1)["account"]["counted"]["peak_bytes"].is_number());
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn all_strategies_are_in_one_results_table() {
    let replayed = Replayed::new(DOCUMENTS);
    let ran = replayed.replay(&["--strategy", "all", "--budget", "3s", "--unsafe"]);
    assert_eq!(ran.status(), 0, "{}", ran.errors());
    for number in 1..=14 {
        let name = format!(" AS{number} ");
        let rows = ran.out().lines().filter(|line| line.starts_with(&name)).count();
        assert_eq!(rows, 1, "{name} in {}", ran.out());
    }
    assert!(ran.out().contains("virtual calls through the abstract base"));
    assert!(ran.out().contains("  next: mallard "), "{}", ran.out());
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn the_heap_peak_of_a_replay_is_near_the_peak_of_the_bytes_in_use() {
    let replayed = Replayed::new(KEEPS);
    let peak = |options: &[&str]| {
        let result = replayed.json(&[&["--allocator", "glibc:arenas=1"], options].concat());
        assert_eq!(result["live_peak_bytes"], 8192 * 1024, "{result}");
        result["base"]["heap_peak_bytes"].as_f64().unwrap() / (8192.0 * 1024.0)
    };
    let touched = peak(&[]);
    assert!((0.95..1.15).contains(&touched), "{touched} times the bytes in use");
    // Every page of the heap contains a header of a block, so --touch none changes little here.
    let whole = peak(&["--touch", "all"]);
    assert!((0.95..1.15).contains(&whole), "{whole} times the bytes in use");
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn two_replays_of_a_plan_make_the_same_calls() {
    let replayed = Replayed::new(DOCUMENTS);
    let written = |name: &str, options: &[&str]| {
        replayed.write(name, options);
        fs::read(replayed.folder.path(name)).unwrap()
    };
    let hashes = |name: &str| player(&replayed.folder, &["--hash", name])["hashes"].clone();
    for options in [&[][..], &["--strategy", "AS7"], &["--strategy", "AS11"]] {
        assert!(written("a.ops", options) == written("b.ops", options), "{options:?}");
        assert_eq!(hashes("a.ops"), hashes("a.ops"));
        assert_eq!(hashes("a.ops"), hashes("b.ops"));
    }
    written("plain.ops", &[]);
    written("region.ops", &["--plan", &replayed.plan(REGION)]);
    assert_ne!(hashes("plain.ops"), hashes("region.ops"));
}

/// Each document has a separate arena, which returns the memory of all blocks together.
const REGION: &str = "[[rule]]
region = \"parse_document\"
strategy = \"AS4\"
ends = \"drained\"
";

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn the_predicted_bytes_of_a_plan_equal_those_counted_in_the_replay() {
    let replayed = Replayed::new(DOCUMENTS);
    let region = replayed.plan(REGION);
    let whole = ["AS3", "AS7", "AS11"].map(|strategy| ["--strategy", strategy]);
    let mut all: Vec<[&str; 2]> = whole.to_vec();
    all.push(["--plan", &region]);
    for options in all {
        replayed.write("run.ops", &options);
        let account = player(&replayed.folder, &["--account", "run.ops"]);
        let play = player(&replayed.folder, &["run.ops"]);
        let (counted, played) = (&account["counted"], &play["counted"]);
        assert_eq!(counted["peak_bytes"], played["peak_bytes"], "{options:?}");
        assert_eq!(counted["rules"], played["rules"], "{options:?}");
        assert!(counted["peak_bytes"].as_u64() >= account["requested_peak_bytes"].as_u64());
    }
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn with_wink_out_the_peak_memory_equals_that_with_individual_frees() {
    let replayed = Replayed::new(DOCUMENTS);
    let peak = |strategy: &str| {
        replayed.write("run.ops", &["--strategy", strategy]);
        player(&replayed.folder, &["--account", "run.ops"])["counted"]["peak_bytes"].clone()
    };
    for (frees, winks) in [("AS3", "AS4"), ("AS7", "AS8"), ("AS11", "AS12")] {
        assert_eq!(peak(frees), peak(winks), "{winks}");
    }
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn a_plan_chooses_allocators_for_a_region_a_site_and_a_call_stack() {
    let replayed = Replayed::new(DOCUMENTS);
    let config = replayed.stack_of(&["make_name", "load_config"]);
    let rules = "[[rule]]\nsite = \"make_name\"\nstrategy = \"AS7\"\n";
    let plan = replayed.plan(&format!(
        "{REGION}{rules}[[rule]]\nstack = {config}\nstrategy = \"AS3\"\nfirst_chunk = 65536\n"
    ));
    let result = replayed.json(&["--plan", &plan]);
    let candidate = &result["candidates"][0];
    assert_eq!(candidate["name"], "plan");
    let account = &candidate["account"];
    let of = |rule: usize, key: &str| account["rules"][rule][key].as_u64().unwrap();
    // The region contains 50 documents of 200 nodes and a name. The 10 names of the configuration
    // are outside.
    assert_eq!([of(0, "instances"), of(0, "blocks"), of(0, "peak_bytes_max")], [50, 10_000, 4800]);
    assert_eq!([of(1, "instances"), of(1, "blocks")], [1, 50]);
    assert_eq!([of(2, "instances"), of(2, "blocks")], [1, 10]);
    assert_eq!([of(0, "escapes"), of(0, "bytes")], [0, 240_000]);
    let chunks = account["counted"]["rules"][2]["peak_bytes"].as_u64().unwrap();
    assert!((65536..66560).contains(&chunks), "{chunks}");

    let text = replayed.replay(&["--plan", &plan, "--budget", "1s"]).out();
    assert!(
        text.contains("plan, rule 1: 10,000 blocks in 50 instances, at most 4.7 KiB"),
        "{text}"
    );
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn an_allocator_that_crashes_in_a_replay_does_not_affect_the_figures_of_others() {
    let replayed = Replayed::new(DOCUMENTS);
    compile_own_malloc(&replayed.folder, "libmine.so", &[]);
    let options = ["-a", "mine=./libmine.so,WRONG=abort", "-a", "mine=./libmine.so"];
    let result = replayed.json(&options);
    let [wrong, right] = [0, 1].map(|at| &result["candidates"][at]);
    let why = wrong["broken"].as_str().unwrap();
    assert!(why.contains("ended by signal 6 (SIGABRT)"), "{why}");
    assert!(wrong["cpu"].is_null() && wrong["memory"].is_null(), "{wrong}");
    assert!(right["broken"].is_null() && right["cpu"]["verdict"].is_string(), "{right}");
    let text = replayed.replay(&[&options[..], &["--budget", "1s"]].concat()).out();
    assert!(text.contains("mine,WRONG=abort: ended by signal 6"), "{text}");
    let alone = replayed.replay(&["-a", "mine=./libmine.so,WRONG=abort", "--budget", "1s"]).out();
    assert!(alone.contains("Nothing could be compared: the only candidate failed."), "{alone}");
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn the_best_of_several_allocators_are_replayed_again_by_the_same_replayer() {
    let replayed = Replayed::new(DOCUMENTS);
    compile_own_malloc(&replayed.folder, "libmine.so", &[]);
    let words = ["replay", "recorded", "--json", "--budget", "20s", "-a", "glibc"];
    let own = ["-a", "mine=./libmine.so,WRONG=no", "--strategy", "AS3,AS1"];
    let mut command = replayed.folder.command(MALLARD);
    command.args([&words[..], &own].concat()).env("WRONG", "slow");
    let ran = Ran(command.env("LD_PRELOAD", replayed.folder.path("libmine.so")).output().unwrap());
    let result: Value =
        serde_json::from_str(&ran.out()).unwrap_or_else(|_| panic!("{}", ran.errors()));
    let of = |at: usize| &result["candidates"][at];
    for at in [0, 1, 2] {
        assert_eq!(of(at)["fresh"]["verdict"], "gain", "{result}");
        assert!(of(at)["fresh"]["blocks"].as_u64().unwrap() >= 7, "{result}");
    }
    assert!(of(3)["fresh"].is_null(), "AS1 makes the calls of the base: {result}");
    let says = result["sentence"].as_str().unwrap();
    assert!(says.contains("would need"), "{says}");
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn an_interrupted_replay_prints_what_was_measured() {
    let replayed = Replayed::new(DOCUMENTS);
    // A malloc that writes a character to a file when a process loads it.
    let log = "#include <fcntl.h>\n#include <unistd.h>\n\
        __attribute__((constructor)) static void note(void) {\n\
        int file = open(\"plays\", O_WRONLY | O_CREAT | O_APPEND, 0600);\n\
        if (write(file, \"+\", 1) != 1) _exit(1);\nclose(file); }\n";
    fs::write(replayed.folder.path("log.h"), log).unwrap();
    compile_own_malloc(&replayed.folder, "liblog.so", &["-include", "log.h"]);
    let mallard = replayed
        .folder
        .command(MALLARD)
        .args(["replay", "recorded", "--budget", "5m", "-a", "log=./liblog.so"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let plays = || fs::read(replayed.folder.path("plays")).unwrap_or_default().len();
    until("the eighth play", || (plays() >= 8).then_some(()));
    kill(Pid::from_raw(mallard.id() as i32), Signal::SIGINT).unwrap();
    let ran = Ran(mallard.wait_with_output().unwrap());
    assert_eq!(ran.status(), 130, "{}", ran.errors());
    assert!(ran.out().contains("glibc again"), "{}", ran.out());
    assert!(ran.out().contains("(Interrupted after"), "{}", ran.out());
}

/// A program with four threads that exist at the same time and all allocate.
const THREADS: &str = r#"
#include <pthread.h>
#include <stdlib.h>
static pthread_barrier_t all_run;
static void* work(void* x) {
    pthread_barrier_wait(&all_run);
    for (int i = 0; i < 500; ++i) { void* volatile p = malloc(100); free(p); }
    pthread_barrier_wait(&all_run);
    return x;
}
int main(void) {
    pthread_t threads[4];
    pthread_barrier_init(&all_run, 0, 4);
    for (int i = 0; i < 4; ++i) pthread_create(threads + i, 0, work, 0);
    for (int i = 0; i < 4; ++i) pthread_join(threads[i], 0);
    return 0;
}
"#;

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn contention_is_not_measurable_with_fewer_cores_than_threads() {
    let replayed = Replayed::new(THREADS);
    let on_one_core = |options: &[&str]| {
        let words = ["-c", "0", MALLARD, "replay", "recorded", "--budget", "1s"];
        let mut command = replayed.folder.command("taskset");
        Ran(command.args(words).args(["-a", "glibc:arenas=1"]).args(options).output().unwrap())
    };
    let ran = on_one_core(&["--json"]);
    let result: Value =
        serde_json::from_str(&ran.out()).unwrap_or_else(|_| panic!("{}", ran.errors()));
    // Five threads existed at the same time. The recording machine had as many processors as this
    // one.
    let processors = std::thread::available_parallelism().unwrap().get();
    assert_eq!(result["threads"], 5.min(processors));
    assert_eq!(result["cores"], 1);
    assert_eq!(result["contention"], "not measurable");
    assert!(result["base"]["wall_ns"].is_null(), "{result}");
    assert!(result["candidates"][0]["wall_ns"].is_null(), "{result}");
    assert!(result["base"]["cpu_ns"].is_number(), "{result}");
    let text = on_one_core(&[]).out();
    assert!(text.contains("contention is not measurable here"), "{text}");
    assert!(!text.contains("wall"), "{text}");

    replayed.write("run.ops", &[]);
    let hashes = || player(&replayed.folder, &["--hash", "run.ops"])["hashes"].clone();
    let first = hashes();
    assert_eq!(first.as_array().unwrap().len(), 5);
    assert_eq!(first, hashes(), "each thread makes the same calls");
}
