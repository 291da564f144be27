//! Tests the runner through its command line.

use std::collections::HashSet;
use std::process::{Command, Output};

fn run(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mallard-bench-crates"));
    command.args(arguments).output().expect("it starts")
}

fn lines(output: &Output) -> Vec<serde_json::Value> {
    let text = String::from_utf8(output.stdout.clone()).expect("rows are text");
    text.lines().map(|l| serde_json::from_str(l).expect("a line is a row")).collect()
}

#[test]
fn every_benchmark_case_runs_once() {
    let output = run(&["--smoke", "--json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut places = HashSet::new();
    for row in lines(&output) {
        assert_eq!(row["suite"], "crates");
        assert!(row["machine"].as_str().expect("text").contains(", rustc "));
        let has_figure = row["median"].as_f64().is_some_and(|m| m.is_finite() && m >= 0.0);
        assert!(has_figure || row["why"].is_string(), "{row}");
        let place = ["case", "variant", "contender", "metric"].map(|f| row[f].to_string());
        assert!(places.insert(place), "twice: {row}");
    }
}

#[test]
fn every_benchmark_case_compares_mallard_with_a_competitor() {
    let mut cases: Vec<(String, bool, bool)> = Vec::new();
    for row in lines(&run(&["--smoke", "--json"])) {
        let case = format!("{} {}", row["case"], row["variant"]);
        let is_ours = row["contender"].as_str().expect("text").starts_with("mallard/");
        if !cases.iter().any(|c| c.0 == case) {
            cases.push((case.clone(), false, false));
        }
        let found = cases.iter_mut().find(|c| c.0 == case).expect("it is there");
        found.1 |= is_ours && row["median"].is_number();
        found.2 |= !is_ours && row["median"].is_number();
    }
    let lonely: Vec<_> = cases.iter().filter(|c| !c.1 || !c.2).collect();
    assert!(lonely.is_empty(), "{lonely:?}");
}

#[test]
fn memory_is_measured_in_a_separate_process() {
    let output = run(&["--short", "--json", "--case", "^fastalloc/bulk/10$", "--runs", "2"]);
    let rows = lines(&output);
    let of = |metric: &str| rows.iter().filter(|r| r["metric"] == metric).count();
    assert_eq!(of("ns_per_op"), of("peak_rss_kib"));
    assert_eq!(of("ns_per_op"), of("after_rss_kib"));
    assert!(rows.iter().filter(|r| r["metric"] == "ns_per_op").all(|r| r["runs"] == 2));
}

#[test]
fn a_competitor_can_be_excluded() {
    let output = run(&["--smoke", "--json", "--case", "bulk/10$", "--contender", "^slab"]);
    assert!(lines(&output).iter().all(|r| r["contender"].as_str().unwrap().starts_with("slab-")));
}

#[test]
fn a_filter_that_matches_nothing_is_an_error_with_a_hint() {
    let output = run(&["--smoke", "--case", "nothing"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "mallard-bench-crates: no case and competitor match\n  nothing was run\n  \
         help: `./x bench crates --list` shows the cases\n"
    );
}

#[test]
fn the_list_contains_every_benchmark_case() {
    let text = String::from_utf8(run(&["--list"]).stdout).expect("text");
    for case in ["fastalloc/i32/1000", "bumpalo/alloc/small", "slotmap/growth/1000000"] {
        assert!(text.contains(case), "{case}");
    }
}
