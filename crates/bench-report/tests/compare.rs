//! Tests `./x bench compare`: verdicts, counts and exit statuses.

use crate::fixture::{self, lines, row, Tree};
use serde_json::{json, Value};

fn compare(a: &[Value], b: &[Value], more: &[&str]) -> fixture::Ran {
    let tree = Tree::new();
    tree.write("a.jsonl", &lines(a));
    tree.write("b.jsonl", &lines(b));
    tree.run(&[&["compare", "a.jsonl", "b.jsonl"], more].concat())
}

fn pool(figure: f64) -> Value {
    row("pool", "pair/64B", "mallard/none", "ns_per_op", figure)
}

#[test]
fn identical_results_have_no_difference() {
    let ran = compare(&[pool(10.0)], &[pool(10.0)], &[]);
    assert!(ran.out().contains("0 gain, 0 loss, 1 no difference"), "{}", ran.out());
    assert_eq!(ran.status(), 0);
}

#[test]
fn a_loss_is_named_and_gives_exit_status_1() {
    let ran = compare(&[pool(10.0)], &[pool(12.0)], &[]);
    assert!(ran.out().contains("pool pair/64B ns_per_op mallard/none"), "{}", ran.out());
    assert!(ran.out().contains("1.200"), "{}", ran.out());
    assert_eq!(ran.status(), 1);
}

#[test]
fn a_gain_gives_exit_status_0() {
    let ran = compare(&[pool(12.0)], &[pool(10.0)], &[]);
    assert!(ran.out().contains("1 gain, 0 loss"), "{}", ran.out());
    assert_eq!(ran.status(), 0);
}

#[test]
fn a_higher_threshold_hides_more_differences() {
    assert_eq!(compare(&[pool(10.0)], &[pool(12.0)], &["--threshold", "25"]).status(), 0);
}

#[test]
fn results_of_single_runs_differ_only_beyond_ten_percent() {
    let single = |figure: f64| {
        let mut r = pool(figure);
        (r["low"], r["high"], r["runs"]) = (json!(figure), json!(figure), json!(1));
        r
    };
    assert_eq!(compare(&[single(10.0)], &[single(10.9)], &[]).status(), 0);
    assert_eq!(compare(&[single(10.0)], &[single(11.2)], &[]).status(), 1);
}

#[test]
fn the_order_of_fields_and_the_machine_do_not_matter() {
    let mut other = pool(10.0);
    other["machine"] = json!("another");
    let ran = compare(&[pool(10.0)], &[other], &[]);
    assert!(ran.out().contains("different machines"), "{}", ran.out());
    assert_eq!(ran.status(), 0);
}

#[test]
fn results_that_only_one_side_has_are_counted_and_named() {
    let other = row("pool", "burst/24", "mallard/none", "ns_per_op", 3.0);
    let ran = compare(&[pool(10.0), other.clone()], &[pool(10.0)], &[]);
    assert!(ran.out().contains("1 only before, 0 only after"), "{}", ran.out());
    assert!(ran.out().contains("pool burst/24 ns_per_op mallard/none"), "{}", ran.out());
    let ran = compare(&[pool(10.0)], &[pool(10.0), other], &[]);
    assert!(ran.out().contains("0 only before, 1 only after"), "{}", ran.out());
}

#[test]
fn a_missing_figure_counts_as_a_loss() {
    let ran = compare(&[pool(10.0)], &[pool(f64::NAN)], &[]);
    assert!(ran.out().contains("no figure any more"), "{}", ran.out());
    assert_eq!(ran.status(), 1);
    assert_eq!(compare(&[pool(f64::NAN)], &[pool(10.0)], &[]).status(), 0);
}

#[test]
fn filters_select_allocators_and_metrics() {
    let peer = |figure: f64| row("pool", "pair/64B", "boost-pool-1.74", "ns_per_op", figure);
    let (a, b) = ([pool(10.0), peer(10.0)], [pool(10.0), peer(20.0)]);
    assert_eq!(compare(&a, &b, &[]).status(), 1);
    assert_eq!(compare(&a, &b, &["--contender", "^mallard/"]).status(), 0);
    compare(&a, &b, &["--metric", "rss"]).fails("have no row in common");
}

#[test]
fn the_mean_of_a_benchmark_suite_is_geometric() {
    let other = |figure: f64| row("pool", "burst/24", "mallard/none", "ns_per_op", figure);
    let ran = compare(&[pool(10.0), other(10.0)], &[pool(20.0), other(5.0)], &[]);
    let mean = ran.out().lines().find(|l| l.trim_start().starts_with("pool  ")).map(str::to_string);
    assert!(mean.unwrap().ends_with(" 1.000"), "{}", ran.out());
}

#[test]
fn the_json_output_contains_the_same_data_as_the_tables() {
    let ran = compare(&[pool(10.0)], &[pool(12.0)], &["--json"]);
    let json: Value = serde_json::from_str(&ran.out()).unwrap();
    assert_eq!(json["loss"], 1);
    assert_eq!(json["rows"][0]["verdict"], "loss");
    assert_eq!(json["rows"][0]["ratio"], 1.2);
    assert_eq!(json["means"][0]["suite"], "pool");
    assert_eq!(ran.status(), 1);
}

#[test]
fn directories_can_be_compared() {
    let tree = Tree::new();
    tree.write("a/machine/pool.jsonl", &lines(&[pool(10.0)]));
    tree.write("b/pool.jsonl", &lines(&[pool(10.0)]));
    tree.run(&["compare", "a", "b"]).ok();
}

#[test]
fn inputs_that_cannot_be_compared_give_status_2_and_a_reason() {
    let tree = Tree::new();
    tree.write("a.jsonl", &lines(&[pool(10.0)]));
    tree.write("other.jsonl", &lines(&[row("arena", "x", "y", "ns_per_op", 1.0)]));
    tree.write(
        "bad.jsonl",
        &format!("{}{{\"suite\":\n{}", lines(&[pool(1.0)]), lines(&[pool(1.0)])),
    );
    tree.write("empty/x.txt", "");
    tree.run(&["compare", "a.jsonl", "missing.jsonl"]).fails("cannot read missing.jsonl");
    tree.run(&["compare", "a.jsonl", "bad.jsonl"]).fails("bad.jsonl:2: not a row");
    tree.run(&["compare", "a.jsonl", "other.jsonl"]).fails("have no row in common");
    tree.run(&["compare", "a.jsonl", "empty"]).fails("no file of rows");
    tree.run(&["compare", "a.jsonl", "a.jsonl", "--threshold", "-1"]).fails("percentage");
    tree.run(&["compare", "a.jsonl", "a.jsonl", "--metric", "("]).fails("regex");
    tree.run(&["compare", "a.jsonl"]).fails("required arguments");
    tree.run(&["compared"]).fails("unrecognized subcommand");
}

#[test]
fn an_incomplete_result_is_skipped_with_a_warning() {
    let tree = Tree::new();
    let whole = lines(&[pool(10.0)]);
    tree.write("a.jsonl", &whole);
    tree.write("b.jsonl", &format!("{whole}{}", &whole[..50]));
    let ran = tree.run(&["compare", "a.jsonl", "b.jsonl"]);
    assert!(ran.err().contains("b.jsonl:2: the file ends in the middle of a row"), "{}", ran.err());
    assert_eq!(ran.status(), 0);
}

#[test]
fn a_closed_pipe_is_not_an_error_and_a_full_disk_is() {
    let tree = Tree::new();
    tree.write("a.jsonl", &lines(&[pool(10.0)]));
    let run = |to: &str| {
        let script = format!("\"$0\" compare a.jsonl a.jsonl {to}");
        let mut shell = std::process::Command::new("sh");
        shell
            .args(["-c", &script, env!("CARGO_BIN_EXE_bench-report")])
            .current_dir(tree.folder.path());
        shell.output().unwrap()
    };
    let stopped = run("| true");
    assert!(stopped.stderr.is_empty(), "{}", String::from_utf8_lossy(&stopped.stderr));
    let full = run("> /dev/full");
    assert_eq!(full.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&full.stderr).contains("cannot write to stdout: no space left"));
}
