//! Tests the advice of `mallard advise` on real programs, and its text.
//!
//! The tests need the recorder, the replayer (MALLARD_RECORDER and MALLARD_REPLAY have their paths)
//! and a C compiler. `./x test` builds both and runs them. No test depends on how much time
//! something takes. If a verdict depends on time, the test accepts each possible verdict.

use crate::support::replayed::{Replayed, DOCUMENTS};
use crate::support::{until, Folder, MALLARD};
use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use serde_json::Value;
use std::fs;
use std::process::Stdio;

/// A program that computes without calling malloc, except in the C library.
const NUMERIC: &str = r#"
#include <stdio.h>
int main(void) {
    double sum = 0;
    for (int i = 1; i < 60000000; ++i) sum += 1.0 / i;
    printf("%.3f\n", sum);
    return 0;
}
"#;

/// A program that parses 400 documents of different sizes, and frees the nodes of a document at its
/// end.
const PARSER: &str = r#"
#include <stdio.h>
#include <stdlib.h>
struct node { struct node* next; long value; };
__attribute__((noinline)) static struct node* make_node(long value) {
    struct node* n = malloc(sizeof *n);
    n->value = value;
    return n;
}
__attribute__((noinline)) static long parse_document(int size) {
    struct node* first = 0;
    for (int i = 0; i < size; ++i) {
        struct node* node = make_node(i);
        node->next = first;
        first = node;
    }
    long sum = 0;
    while (first != 0) {
        struct node* next = first->next;
        sum += first->value;
        free(first);
        first = next;
    }
    return sum;
}
int main(void) {
    long sum = 0;
    for (int i = 0; i < 400; ++i) sum += parse_document(500 + i % 7 * 100);
    printf("%ld\n", sum);
    return 0;
}
"#;

/// Returns a program with four functions like `parse_document`, each of which parses other
/// documents.
fn several_parsers() -> String {
    let (functions, main) = PARSER.split_once("int main").unwrap();
    let (includes, functions) = functions.split_at(functions.find("struct node").unwrap());
    let of = |name: &str| {
        let names = ["make_node", "parse_document", "struct node"];
        names.iter().fold(functions.to_string(), |all, of| all.replace(of, &format!("{of}_{name}")))
    };
    let names = ["a", "b", "c", "d"];
    let calls = names.map(|name| format!("parse_document_{name}(500 + i % 7 * 100)")).join(" + ");
    let main = main.replace("parse_document(500 + i % 7 * 100)", &calls).replace("400", "100");
    format!("{includes}{}int main{main}", names.map(of).join(""))
}

/// A program with its own malloc, which five functions call for objects of different sizes.
const OWN_MALLOC: &str = r#"
#include <stdlib.h>
__attribute__((noinline)) static void* my_malloc(size_t bytes) { void* volatile p = malloc(bytes); return p; }
#define MAKER(name, bytes) \
    __attribute__((noinline)) static void* name(void) { void* volatile p = my_malloc(bytes); return p; }
MAKER(make_node, 24) MAKER(make_name, 40) MAKER(make_text, 80) MAKER(make_list, 120) MAKER(make_table, 400)
int main(void) {
    for (int i = 0; i < 20000; ++i) {
        void* all[5] = {make_node(), make_name(), make_text(), make_list(), make_table()};
        for (int k = 0; k < 5; ++k) free(all[k]);
    }
    return 0;
}
"#;

/// A program whose function `keep_all` keeps two blocks from each of six functions, and frees all
/// other blocks.
const KEEPER: &str = r#"
#include <stdlib.h>
static void* volatile kept[12];
#define MAKER(name) __attribute__((noinline)) static void* name(void) { void* volatile p = malloc(40); return p; }
MAKER(first) MAKER(second) MAKER(third) MAKER(fourth) MAKER(fifth) MAKER(sixth)
__attribute__((noinline)) static void keep_all(int at) {
    kept[at] = first(); kept[at + 1] = second(); kept[at + 2] = third();
    kept[at + 3] = fourth(); kept[at + 4] = fifth(); kept[at + 5] = sixth();
    for (int i = 0; i < 50; ++i) free(first());
}
int main(void) {
    keep_all(0);
    keep_all(6);
    return kept[3] == 0;
}
"#;

/// A program whose function `next_line`, marked as a region, keeps its line until the next call.
/// The last call for a file frees the last line.
const MARKED: &str = r#"
#include <mallard/trace/region.h>
#include <stdlib.h>
static void* volatile line;
__attribute__((noinline)) static void next_line(int left) {
    mallard_region_begin("next_line");
    free(line);
    line = left > 0 ? malloc(40) : 0;
    mallard_region_end("next_line");
}
__attribute__((noinline)) static void read_file(int count) {
    void* volatile buffers[60];
    for (int i = 0; i < 60; ++i) buffers[i] = malloc(4000);
    for (int i = 0; i < count; ++i) next_line(count - 1 - i);
    for (int i = 0; i < 60; ++i) free(buffers[i]);
}
int main(void) {
    for (int i = 0; i < 40; ++i) read_file(30);
    return 0;
}
"#;

/// Compiles a program, and returns the directory.
fn program(source: &str) -> Folder {
    let folder = Folder::new();
    folder.compile("program", source, &["-O1"]);
    folder
}

/// Runs `mallard advise --json` on the program in a directory, and returns the resulting object.
fn advised(folder: &Folder, options: &[&str]) -> Value {
    let command = [&["advise", "--json"], options, &["--", "./program"]].concat();
    let ran = folder.mallard(&command);
    assert_eq!(ran.status(), 0, "{}", ran.errors());
    serde_json::from_str(&ran.out()).unwrap_or_else(|e| panic!("{e}: {}", ran.out()))
}

fn rows(advice: &Value) -> &Vec<Value> {
    advice["matrix"].as_array().unwrap()
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn a_program_that_hardly_allocates_gets_no_recommendation_and_an_upper_bound_as_proof() {
    let advice = advised(&program(NUMERIC), &["--budget", "20s"]);
    assert_eq!(advice["verdict"], "leave", "{advice}");
    assert_eq!(advice["cards"][0]["action"], "leave", "{advice}");
    let share = advice["bound"]["share"].as_f64().unwrap();
    assert!((0.0..0.02).contains(&share), "{advice}");
    // Nothing was measured, because no change can have a gain.
    assert!(rows(&advice).iter().all(|row| row["dropped"].is_string()), "{advice}");
    assert!(advice["took_s"].as_f64().unwrap() < 20.0, "{advice}");
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn a_region_is_found_and_its_replay_is_compared_with_mallocs() {
    let advice = advised(&program(PARSER), &["--budget", "6s"]);
    let regions = advice["regions"].as_array().unwrap();
    let is_it = |region: &&Value| region["shown"] == "parse_document";
    let region = regions.iter().find(is_it).unwrap_or_else(|| panic!("{advice}"));
    assert_eq!(region["instances"], 400, "{region}");
    assert_eq!(region["escapes"], 0, "{region}");
    assert_eq!(region["inputs"], 7, "{region}");
    let has = |kind: &str| rows(&advice).iter().any(|row| row["kind"] == kind);
    assert!(has("strategy") && has("malloc") && has("variable"), "{advice}");
    // Each line of the matrix was measured, or has a reason why it was not measured.
    for row in rows(&advice) {
        assert_ne!(row["saving"].is_number(), row["dropped"].is_string(), "{row}");
    }
    let known = ["change", "leave", "undecided"];
    assert!(known.contains(&advice["verdict"].as_str().unwrap()), "{advice}");
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn plans_run_in_a_program_without_symbols() {
    let folder = Folder::new();
    folder.compile("program", PARSER, &["-O1", "-s"]);
    let advice = advised(&folder, &["--budget", "12s"]);
    let is_plan = |row: &&Value| row["kind"] == "strategy";
    let plans: Vec<&Value> = rows(&advice).iter().filter(is_plan).collect();
    assert!(plans.iter().all(|row| row["label"].as_str().unwrap().contains("program+0x")));
    for kind in [" in ", " for "] {
        let is_of = |row: &&&Value| row["label"].as_str().unwrap().contains(kind);
        assert!(plans.iter().any(|row| is_of(&row)), "{kind}: {advice}");
    }
    let why = |row: &&Value| row["dropped"].as_str().unwrap_or_default().to_string();
    assert!(!plans.iter().any(|row| why(row).contains("cannot be applied")), "{advice}");
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn each_plan_has_one_result_whatever_the_budget_is() {
    let folder = program(&several_parsers());
    folder.mallard(&["record", "-o", "run", "--", "./program"]);
    let plans = |budget: &str| {
        let ran = folder.mallard(&["advise", "run", "--json", "--budget", budget]);
        let advice: Value = serde_json::from_str(&ran.out()).unwrap();
        let is_plan = |row: &&Value| row["kind"] == "strategy";
        let label = |row: &Value| row["label"].as_str().unwrap().to_string();
        let mut plans: Vec<String> = rows(&advice).iter().filter(is_plan).map(label).collect();
        plans.sort();
        assert!(plans.windows(2).all(|two| two[0] != two[1]), "{plans:?}");
        plans
    };
    let all = plans("12s");
    assert!(all.len() >= 8, "{all:?}");
    // The first budget is enough for few runs, and the second for none. The output has a line for
    // each strategy for the function of the first recommendation.
    for budget in ["3s", "200ms"] {
        let others = plans(budget);
        assert!(all.iter().all(|plan| others.contains(plan)), "{budget}: {all:?} {others:?}");
    }
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn the_measured_memory_of_a_program_excludes_that_of_the_mallard_command() {
    let mark = "int main(void) {
        struct rusage own;
        getrusage(RUSAGE_SELF, &own);
        FILE* peaks = fopen(\"peaks\", \"a\"); fprintf(peaks, \"%ld\\n\", own.ru_maxrss); fclose(peaks);";
    let source = PARSER.replacen("int main(void) {", mark, 1);
    let folder = program(&format!("#include <sys/resource.h>\n{source}"));
    advised(&folder, &["--budget", "4s"]);
    // The command itself needs some 100 MiB after it has read the recording, and must not count as
    // the program's peak.
    let peaks = fs::read_to_string(folder.path("peaks")).unwrap();
    let peaks: Vec<u64> = peaks.lines().map(|kib| kib.parse().unwrap()).collect();
    assert!(peaks.len() >= 2 && peaks.iter().all(|&kib| kib < 10 << 10), "{peaks:?} KiB");
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn no_pool_is_proposed_for_a_malloc_that_the_program_defines() {
    let advice = advised(&program(OWN_MALLOC), &["--budget", "4s", "--no-try"]);
    let sites = advice["sites"].as_array().unwrap();
    assert!(sites.iter().any(|site| site["function"] == "my_malloc"), "{advice}");
    let is_of_it = |row: &&Value| row["label"].as_str().unwrap().contains("my_malloc");
    assert_eq!(rows(&advice).iter().find(is_of_it), None);
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn a_block_that_a_c_library_function_allocates_is_attributed_to_the_caller() {
    let source = "#include <stdlib.h>\n#include <string.h>\n
        __attribute__((noinline)) static char* copy(const char* text) { char* p = strdup(text); *p = 'd'; return p; }
        int main(void) { for (int i = 0; i < 90000; ++i) free(copy(\"a text of a duck\")); return 0; }";
    let advice = advised(&program(source), &["--budget", "4s", "--no-try"]);
    let site = &advice["sites"][0];
    let function = site["function"].as_str().unwrap();
    assert!(function.ends_with("strdup") || function.contains("libc.so"), "{site}");
    assert_eq!(site["owner"], "copy", "{site}");
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn the_json_of_the_advice_has_the_documented_keys() {
    let advice = advised(&program(PARSER), &["--budget", "4s", "-o", "named"]);
    for key in ["name", "program", "verdict", "sentence", "next"] {
        assert!(advice[key].is_string(), "{key}: {advice}");
    }
    assert_eq!((&advice["version"], &advice["name"]), (&1.into(), &"named.mallard".into()));
    assert_eq!(advice["program"], "./program");
    for key in ["min_gain", "budget_s", "took_s"] {
        assert!(advice[key].is_number(), "{key}: {advice}");
    }
    // In a program that does little but allocate, recording slows the calls down.
    for key in ["share", "calls", "replayed", "faults", "teardown", "unknown"] {
        assert!(advice["bound"].get(key).is_some(), "{key}: {advice}");
    }
    for key in ["cards", "matrix", "regions", "undecided", "notes", "validity"] {
        assert!(advice[key].is_array(), "{key}: {advice}");
    }
    let stages = advice["stages"].as_array().unwrap();
    let names: Vec<_> = stages.iter().map(|stage| stage["name"].as_str().unwrap()).collect();
    assert_eq!(names[..3], ["record", "regions", "cpu"]);
    // On a busy machine, the budget is too small for some of the other steps.
    let others = ["screen", "race", "plans", "replay", "again", "try"];
    let places = names[3..].iter().map(|name| others.iter().position(|of| of == name));
    assert!(places.clone().all(|place| place.is_some()) && places.is_sorted(), "{names:?}");
    for key in ["seconds", "peak_rss_kib"] {
        assert!(stages.iter().all(|stage| stage[key].as_f64() > Some(0.0)), "{key}: {advice}");
    }
    assert_eq!(advice["interrupted"], false);
    let card = &advice["cards"][0];
    for key in ["rule", "action", "title"] {
        assert!(card[key].is_string(), "{key}: {card}");
    }
    for key in ["evidence", "hazards", "why_not"] {
        assert!(card[key].is_array(), "{key}: {card}");
    }
    let row = &rows(&advice)[0];
    for key in
        ["name", "kind", "region", "saving", "low", "high", "verdict", "peak_bytes", "dropped"]
    {
        assert!(row.get(key).is_some(), "{key}: {row}");
    }
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn the_advice_is_saved_in_the_directory_of_the_trace() {
    let folder = program(NUMERIC);
    let advice = advised(&folder, &["--budget", "4s", "-o", "run"]);
    let kept = folder.path("run.mallard/advice.json");
    let read: Value = serde_json::from_str(&fs::read_to_string(&kept).unwrap()).unwrap();
    assert_eq!(read["cards"], advice["cards"]);
    // The advice is printed even if it cannot be saved. A directory with the name of the file
    // prevents writing, even for root.
    fs::remove_file(&kept).unwrap();
    fs::create_dir(&kept).unwrap();
    fs::write(kept.join("file"), "").unwrap();
    let ran = folder.mallard(&["advise", "run", "--budget", "4s"]);
    assert_eq!(ran.status(), 0, "{}", ran.errors());
    assert!(ran.errors().contains("the advice could not be saved"), "{}", ran.errors());
    assert!(!ran.out().is_empty());
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn the_output_of_the_program_is_not_mixed_into_the_json() {
    let folder = program("#include <stdio.h>\nint main(void) { puts(\"{\"); return 3; }");
    let ran = folder.mallard(&["advise", "--json", "--budget", "4s", "--", "./program"]);
    assert_eq!(ran.status(), 0, "{}", ran.errors());
    let advice: Value = serde_json::from_str(&ran.out()).unwrap();
    assert_eq!(advice["program"], "./program");
    assert!(ran.errors().lines().any(|line| line == "{"), "{}", ran.errors());
    // Without --json, stdout has the program's output, followed by the advice.
    let ran = folder.mallard(&["advise", "--budget", "4s", "--", "./program"]);
    assert!(ran.out().starts_with("{\n"), "{}", ran.out());
    // The last line is a sentence, and follows an empty line.
    let out = ran.out();
    let lines: Vec<&str> = out.lines().collect();
    let [.., next, empty, sentence] = lines[..] else { panic!("{out}") };
    assert!(next.starts_with("  next: mallard ") && empty.is_empty(), "{out}");
    assert!(sentence.contains("program") && sentence.ends_with('.'), "{out}");
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn sarif_output_attaches_each_recommendation_to_its_source_line() {
    let folder = program(PARSER);
    let command = ["advise", "--sarif", "--budget", "4s", "-o", "run", "--", "./program"];
    let ran = folder.mallard(&command);
    assert_eq!(ran.status(), 0, "{}", ran.errors());
    let log: Value = serde_json::from_str(&ran.out()).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(log["version"], "2.1.0", "{log}");
    assert_eq!(log["runs"][0]["tool"]["driver"]["name"], "mallard advise", "{log}");
    let kept = fs::read_to_string(folder.path("run.mallard/advice.json")).unwrap();
    let kept: Value = serde_json::from_str(&kept).unwrap();
    let is_change =
        |card: &&Value| !["leave", "undecided"].contains(&card["action"].as_str().unwrap());
    let changes: Vec<&Value> = kept["cards"].as_array().unwrap().iter().filter(is_change).collect();
    let results = log["runs"][0]["results"].as_array().unwrap();
    for card in &changes {
        assert!(results.iter().any(|result| result["ruleId"] == card["rule"]), "{card} {log}");
    }
}

/// Returns the number of recommendations of wink-out, which is freeing memory without running
/// destructors.
fn wink_outs(advice: &Value) -> usize {
    let names = ["AS4", "AS6", "AS8", "AS10", "AS12", "AS14"];
    let strategy = |card: &Value| card["strategy"].as_str().unwrap_or_default().to_string();
    let cards = advice["cards"].as_array().unwrap();
    cards.iter().filter(|card| names.contains(&strategy(card).as_str())).count()
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn wink_out_is_not_recommended_without_a_second_recording() {
    let advice = advised(&program(PARSER), &["--budget", "4s", "--no-try"]);
    assert_eq!(advice["run"]["cpu_by"], "recording", "{advice}");
    assert_eq!(advice["run"]["recordings"], 1, "{advice}");
    assert_eq!(wink_outs(&advice), 0, "{advice}");
    // If AS4 has a gain, the output explains why AS4 is not recommended.
    let least = advice["min_gain"].as_f64().unwrap();
    let saves = |row: &Value| row["saving"].as_f64().is_some_and(|saving| saving >= least);
    let gains = |row: &Value| row["name"] == "AS4" && row["verdict"] == "gain" && saves(row);
    if rows(&advice).iter().any(gains) {
        assert!(
            advice["cards"].to_string().contains("needs a second recording"),
            "{:#}",
            advice["cards"]
        );
    }
    let advice = advised(&program(PARSER), &["--budget", "6s"]);
    assert!(wink_outs(&advice) == 0 || advice["run"]["recordings"] == 2, "{advice}");
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn wink_out_is_not_recommended_if_blocks_escape_in_the_second_run() {
    // In the second run and all later runs, the program keeps one node of each document.
    let keeps = PARSER
        .replacen("struct node {", "static int again;\nstatic void* volatile kept;\nstruct node {", 1)
        .replace("    long sum = 0;\n    while", "    if (again) kept = make_node(1);\n    long sum = 0;\n    while")
        .replace("int main(void) {", "int main(void) {\n    again = fopen(\"seen\", \"r\") != 0;\n    fopen(\"seen\", \"w\");");
    assert!(keeps.contains("if (again)"), "{keeps}");
    let folder = program(&keeps);
    let advice = advised(&folder, &["--budget", "6s", "-o", "first"]);
    assert_eq!(wink_outs(&advice), 0, "{advice}");
    // The user may name the second recording. After this, the directory contains both recordings.
    let ran = folder.mallard(&["record", "-o", "second", "--", "./program"]);
    assert_eq!(ran.status(), 0, "{}", ran.errors());
    let command = ["advise", "first", "--again", "second", "--no-try", "--budget", "4s", "--json"];
    let ran = folder.mallard(&command);
    assert_eq!(ran.status(), 0, "{}", ran.errors());
    let advice: Value = serde_json::from_str(&ran.out()).unwrap();
    assert_eq!(advice["run"]["recordings"], 2, "{advice}");
    assert_eq!(wink_outs(&advice), 0, "{advice}");
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn a_second_recording_must_be_another_complete_run_of_the_same_program() {
    let folder = program(PARSER);
    folder.compile("other", NUMERIC, &["-O1"]);
    for options in [
        &["-o", "first", "--", "./program"][..],
        &["-o", "part", "--window", "0s..10s", "--", "./program"],
        &["-o", "other", "--", "./other"],
    ] {
        let ran = folder.mallard(&[&["record", "-q"], options].concat());
        assert_eq!(ran.status(), 0, "{}", ran.errors());
    }
    let advise = |again: &str| {
        let options = ["--no-try", "--budget", "4s", "--json"];
        folder.mallard(&[&["advise", "first", "--again", again], &options[..]].concat())
    };
    advise("first").refuses(2, "--again names the same recording");
    advise("other").refuses(2, "--again names a recording of other, not of program");
    let ran = advise("part");
    assert_eq!(ran.status(), 0, "{}", ran.errors());
    let advice: Value = serde_json::from_str(&ran.out()).unwrap();
    assert_eq!((&advice["run"]["recordings"], wink_outs(&advice)), (&1.into(), 0), "{advice}");
    assert!(advice["notes"].to_string().contains("part.mallard proves nothing"), "{advice}");
    // Only a wink-out that saves enough needs a second recording.
    let least = advice["min_gain"].as_f64().unwrap();
    let saves = |row: &Value| row["saving"].as_f64().is_some_and(|saving| saving >= least);
    let gains = |row: &Value| row["name"] == "AS4" && row["verdict"] == "gain" && saves(row);
    let is_named = advice["cards"].to_string().contains("part.mallard proves nothing");
    assert!(is_named || !rows(&advice).iter().any(gains), "{advice}");
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn a_forced_strategy_names_the_blocks_that_would_dangle() {
    let replayed = Replayed::new(DOCUMENTS);
    let wish = ["advise", "recorded", "--budget", "4s", "--region", "load_config"];
    let folder = &replayed.folder;
    let ran = folder.mallard(&[&wish[..], &["--force", "AS4", "--json"]].concat());
    assert_eq!(ran.status(), 0, "{}", ran.errors());
    let advice: Value = serde_json::from_str(&ran.out()).unwrap();
    let forced = &advice["forced"];
    assert_eq!(forced["dangling"], 1, "{forced}");
    assert_eq!(forced["sites"][0]["function"], "make_name", "{forced}");
    let text = folder.mallard(&[&wish[..], &["--force", "AS4"]].concat()).out();
    assert!(text.contains("A program with it would be incorrect: 1 block would be used"), "{text}");
    assert!(text.contains("  1 block, 110 B, of make_name"), "{text}");
    // AS3 does not wink out, so no block is used after its memory was freed.
    let text = folder.mallard(&[&wish[..], &["--force", "AS3"]].concat()).out();
    assert!(text.contains("With AS3 in load_config") && !text.contains("wrong"), "{text}");
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn dangling_blocks_of_more_functions_than_are_named_are_counted() {
    let replayed = Replayed::new(KEEPER);
    let wish = ["advise", "recorded", "--budget", "3s", "--region", "keep_all", "--force", "AS4"];
    let text = replayed.folder.mallard(&wish).out();
    assert!(text.contains("12 blocks would be used"), "{text}");
    assert!(text.contains("  and 2 more blocks of other functions"), "{text}");
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn a_forced_strategy_frees_its_memory_at_the_end_of_the_marked_calls() {
    let include = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/../../include");
    let folder = Folder::new();
    folder.compile("program", MARKED, &["-O1", include]);
    let ran = folder.mallard(&["record", "-q", "-o", "recorded", "--", "./program"]);
    assert_eq!(ran.status(), 0, "{}", ran.errors());
    let wish = ["advise", "recorded", "--budget", "3s", "--force", "AS4", "--json"];
    let ran = folder.mallard(&[&wish[..], &["--region", "next_line"]].concat());
    assert_eq!(ran.status(), 0, "{}", ran.errors());
    let advice: Value = serde_json::from_str(&ran.out()).unwrap();
    // In call stacks without marks, all calls for one file look like one call that keeps nothing.
    let escapes = |region: &Value| (region["ends"].clone(), region["escapes"].clone());
    let twins: Vec<_> = advice["regions"].as_array().unwrap().iter().map(escapes).collect();
    assert!(twins.contains(&("drained".into(), 0.into())), "{twins:?}");
    assert_eq!(advice["forced"]["dangling"], 40 * 29, "{}", advice["forced"]);
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn the_result_of_a_forced_strategy_does_not_replace_saved_advice() {
    let replayed = Replayed::new(DOCUMENTS);
    let folder = &replayed.folder;
    let wish = ["advise", "recorded", "--budget", "3s", "--region", "load_config", "--force"];
    let json = |options: &[&str]| -> Value {
        let ran = folder.mallard(options);
        assert_eq!(ran.status(), 0, "{}", ran.errors());
        serde_json::from_str(&ran.out()).unwrap()
    };
    let kept = || json(&["report", "recorded", "--json"])["advice"].clone();
    let of_as3 = json(&[&wish[..], &["AS3", "--json"]].concat());
    assert_eq!((&of_as3["verdict"], &of_as3["sentence"]), (&"forced".into(), &Value::Null));
    assert!(of_as3["cards"].as_array().unwrap().is_empty(), "{of_as3}");
    assert!(of_as3["next"].as_str().unwrap().starts_with("mallard report"), "{of_as3}");
    json(&[&wish[..], &["AS4", "--json"]].concat());
    assert_eq!(kept()["forced"]["name"], "AS4 in load_config");
    json(&["advise", "recorded", "--budget", "3s", "--no-try", "--json"]);
    let real = kept();
    assert_eq!(real["forced"], Value::Null, "{real}");
    let log = json(&[&wish[..], &["AS4", "--sarif"]].concat());
    let result = &log["runs"][0]["results"][0];
    assert_eq!((&result["ruleId"], &result["level"]), (&"forced".into(), &"warning".into()));
    assert_eq!(kept(), real);
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn forcing_a_strategy_on_a_function_that_is_not_a_region_is_an_error() {
    let replayed = Replayed::new(DOCUMENTS);
    let ran = replayed.folder.mallard(&["advise", "recorded", "--region", "parse"]);
    ran.refuses(3, "the trace has no region for the function parse");
    assert!(ran.errors().contains("--region 'parse_document'"), "{}", ran.errors());
    // If no name contains the word, the error lists the functions that allocate most.
    let ran = replayed.folder.mallard(&["advise", "recorded", "--region", "nosuch"]);
    ran.refuses(3, "the trace has no region for the function nosuch");
    assert!(ran.errors().contains("'parse_document'"), "{}", ran.errors());
    let ran = replayed.folder.mallard(&["advise", "recorded", "--region", "parse_document"]);
    assert_eq!(ran.status(), 0, "{}", ran.errors());
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn an_interrupted_run_saves_and_prints_what_was_found() {
    let replayed = Replayed::new(PARSER);
    let folder = &replayed.folder;
    let mut command = folder.command(MALLARD);
    let temporary = folder.path("temporary");
    fs::create_dir(&temporary).unwrap();
    command.env("TMPDIR", &temporary);
    command.args(["advise", "recorded", "--budget", "60s", "--json"]).stdout(Stdio::piped());
    let child = command.stderr(Stdio::piped()).spawn().unwrap();
    // Op streams are compiled into a temporary directory. When the directory exists, replays have
    // begun.
    until("an op stream", || fs::read_dir(&temporary).unwrap().next()).unwrap();
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(130), "{}", String::from_utf8_lossy(&ended.stderr));
    let advice: Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!(advice["interrupted"], true, "{advice}");
    assert!(!advice["regions"].as_array().unwrap().is_empty(), "{advice}");
    says_that_it_was_interrupted(&advice);
    let kept = fs::read_to_string(folder.path("recorded.mallard/advice.json")).unwrap();
    let kept: Value = serde_json::from_str(&kept).unwrap();
    assert_eq!(kept["interrupted"], true);
}

/// Checks the text of an advice that was interrupted.
fn says_that_it_was_interrupted(advice: &Value) {
    assert_eq!(advice["interrupted"], true, "{advice}");
    let next = advice["next"].as_str().unwrap();
    assert!(next.starts_with("mallard advise "), "{next}");
    let sentence = advice["sentence"].as_str().unwrap();
    let is_open = advice["verdict"] == "undecided";
    assert!(!is_open || sentence.contains("the measurement was interrupted"), "{sentence}");
}

/// Runs a command, interrupts it by a signal when the file `runs` has some lines, and returns the
/// advice and the exit status.
fn interrupted(folder: &Folder, program: &[&str], lines: usize, signal: Signal) -> (Value, i32) {
    let mut command = folder.command(MALLARD);
    command.args(["advise", "--budget", "60s", "--json", "-o", "run", "--"]).args(program);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let count = || fs::read_to_string(folder.path("runs")).map_or(0, |text| text.lines().count());
    until("a run of the program", || (count() >= lines).then_some(()));
    kill(Pid::from_raw(child.id() as i32), signal).unwrap();
    let ended = child.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&ended.stderr);
    let advice = serde_json::from_slice(&ended.stdout).unwrap_or_else(|e| panic!("{e}: {errors}"));
    (advice, ended.status.code().unwrap())
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn an_interrupted_recording_gets_no_measurements_but_a_report_of_its_findings() {
    // The program runs until a signal ends it. It restores the default actions, because a shell
    // makes its background processes ignore SIGINT.
    let mark = "int main(void) {\n    signal(SIGINT, SIG_DFL); signal(SIGHUP, SIG_DFL);\n    FILE* runs = fopen(\"runs\", \"a\"); fputs(\"x\\n\", runs); fclose(runs);";
    let endless = PARSER.replacen("int main(void) {", mark, 1).replacen("i < 400", "i >= 0", 1);
    let endless = format!("#include <signal.h>\n{endless}");
    for (signal, status) in [(Signal::SIGINT, 130), (Signal::SIGHUP, 129)] {
        let folder = program(&endless);
        let (advice, ended) = interrupted(&folder, &["./program"], 1, signal);
        assert_eq!(ended, status, "{advice}");
        says_that_it_was_interrupted(&advice);
        assert!(advice["notes"].to_string().contains("the recording was interrupted"), "{advice}");
        // The program did not run again.
        assert_eq!(fs::read_to_string(folder.path("runs")).unwrap(), "x\n");
        assert_eq!(advice["matrix"].as_array().unwrap().len(), 0, "{advice}");
    }
}

#[test]
#[ignore = "needs the recorder and the player; ./x test has them"]
fn interrupted_runs_under_other_mallocs_give_the_exit_status_of_the_signal() {
    // Most of the CPU time is spent in a program that is not recorded, so no call is replayed.
    let folder = program(PARSER);
    let script = "echo x >> runs; for i in 1 2 3 4 5; do ./program; done";
    let (advice, ended) = interrupted(&folder, &["sh", "-c", script], 10, Signal::SIGTERM);
    assert_eq!(ended, 143, "{advice}");
    let stages = advice["stages"].as_array().unwrap();
    assert!(stages.iter().any(|stage| stage["name"] == "race"), "{advice}");
    says_that_it_was_interrupted(&advice);
}

#[test]
fn either_a_trace_or_a_program_must_be_given() {
    let folder = Folder::new();
    folder.mallard(&["advise"]).refuses(2, "required");
    folder.mallard(&["advise", "a", "--", "true"]).refuses(2, "cannot be used with");
    folder.mallard(&["advise", "--force", "AS15", "a"]).refuses(2, "AS1 to AS14");
    folder.mallard(&["advise", "no-such-trace"]).refuses(3, "no-such-trace");
    // The program does not run if --again names no recording.
    let missing = ["advise", "--again", "missing", "--", "touch", "ran"];
    folder.mallard(&missing).refuses(3, "missing");
    assert!(!folder.path("ran").exists());
    let refused = folder.mallard(&["advise", "--", "/tmp"]);
    refused.refuses(126, "/tmp is a directory");
    assert!(refused.errors().contains("help: name a program: mallard advise -- PROG"));
}
