//! Tests which allocators `./x bench report` compares with each other, and which results count.

use crate::fixture::{self, line, report, row, section, Tree, PAGE, SHORT};
use serde_json::{json, Value};

/// Makes results of one case, one for each malloc.
fn mallocs(case: &str, metric: &str, figures: [f64; 3]) -> Vec<Value> {
    let names = ["glibc-2.36", "mimalloc-3.6.0", "mallard/malloc"];
    let of = |(who, figure): (&str, f64)| row("malloc", case, who, metric, figure);
    names.into_iter().zip(figures).map(of).collect()
}

#[test]
fn the_page_begins_with_malloc_against_malloc() {
    let program = |figures: [f64; 3]| {
        let rows = mallocs("lua", "cpu_seconds", figures).into_iter();
        rows.map(|mut r| {
            r["suite"] = json!("programs");
            r
        })
    };
    let mut rows = mallocs("pair/64B", "ns_per_op", [10.0, 5.0, 2.0]);
    rows.extend(program([1.0, 0.9, 0.95]));
    rows.extend(lakos_row());
    let (_, text) = report(&rows);
    let lead = text.find("\n## Malloc against malloc\n").unwrap();
    assert!(lead < text.find("\n## Test CPU, 4 CPUs\n").unwrap(), "{text}");
    let titles = line(&text[lead..], "| malloc |");
    assert!(
        titles.starts_with("| malloc | programs: time | calls: mean of the families |"),
        "{titles}"
    );
    assert!(line(&text[lead..], "| mallard/malloc").starts_with("| mallard/malloc | 0.95 | 0.20 |"));
    // The malloc that is best in whole programs comes first in the table.
    assert!(text.find("| mimalloc-3.6.0 | 0.90") < text.find("| mallard/malloc | 0.95"), "{text}");
}

fn lakos_row() -> Vec<Value> {
    vec![row("lakos1", "DS1/2^6", "glibc-2.36/AS1", "ns_per_op", 1.0)]
}

#[test]
fn benchmark_families_have_equal_weight_with_and_without_the_family_of_paired_calls() {
    let mut rows = mallocs("bulk/10kx64B/malloc", "ns_per_op", [10.0, 10.0, 10.0]);
    for bytes in ["16B", "64B", "1KiB", "2KiB"] {
        rows.extend(mallocs(&format!("pair/{bytes}"), "ns_per_op", [16.0, 16.0, 1.0]));
    }
    let (_, text) = report(&rows);
    // The mean is over the two families (1 and 1/16), and not over the five cases (one 1 and four
    // 1/16).
    let ours = line(&text, "| mallard/malloc |");
    assert!(ours.starts_with("| mallard/malloc | 0.25 | 1.00 | 0.062 | 1.00 |"), "{ours}");
    let peer = line(section(&text, "Against the peers"), "| mimalloc-3.6.0");
    assert!(peer.contains("| 4 / 1 / 0 | 0.25 |"), "{peer}");
}

#[test]
fn a_multithreaded_case_counts_once_by_its_cpu_time() {
    let threaded = |metric: &str, figures: [f64; 3]| {
        let rows = mallocs("threads/larson/T4", metric, figures).into_iter();
        rows.map(|mut r| {
            r["threads"] = json!(4);
            r
        })
    };
    let mut rows: Vec<Value> = threaded("ns_per_op", [10.0, 10.0, 1.0]).collect();
    rows.extend(threaded("cpu_ns_per_op", [10.0, 10.0, 5.0]));
    let (_, text) = report(&rows);
    assert!(line(&text, "| mallard/malloc |").starts_with("| mallard/malloc | 0.50 | 0.50 |"));
    let peer = line(section(&text, "Against the peers"), "| mimalloc-3.6.0");
    assert!(peer.contains("| 1 / 0 / 0 | 0.50 |"), "{peer}");
}

#[test]
fn a_malloc_is_not_compared_with_a_local_allocator() {
    let rows = [
        ("glibc-2.36/AS1", 10.0),
        ("mimalloc-2.0.9/AS1", 8.0),
        ("libstdc++-pmr-12/AS9", 4.0),
        ("mallard/AS9", 2.0),
        ("mallard/malloc/AS1", 7.0),
    ]
    .map(|(who, ns)| row("lakos3", "T=2^30/M=2^15/S=2^10", who, "ns_per_op", ns));
    let (_, text) = report(&rows);
    let peers = section(&text, "Against the peers");
    assert!(line(peers, "| mimalloc-2.0.9").contains("| 1 / 0 / 0 | 0.88 |"), "{peers}");
    assert!(line(peers, "| libstdc++-pmr-12").contains("| 1 / 0 / 0 | 0.50 |"), "{peers}");
    let answer = line(section(&text, "Which one, and when not"), "| Long-running, blocks freed");
    assert!(answer.ends_with("| 0.50 of libstdc++-pmr-12/AS9 |"), "{answer}");
}

#[test]
fn tuned_variants_have_a_separate_table() {
    let rows = [
        ("glibc-2.36/AS1", 10.0),
        ("libstdc++-pmr-12/AS7", 4.0),
        ("mallard/AS7", 5.0),
        ("mallard/AS7+fifo", 1.0),
    ]
    .map(|(who, ns)| row("lakos3", "T=2^30/M=2^15/S=2^10", who, "ns_per_op", ns));
    let (_, text) = report(&rows);
    let which = section(&text, "Which one, and when not");
    let start = "| Long-running, blocks freed and allocated again (III) |";
    let defaults = &which[..which.find("**Tuned variants").unwrap()];
    let answer = line(defaults, start);
    assert!(answer.contains("**AS7 (") && answer.contains("1.25 of libstdc++"), "{answer}");
    let tuned = line(&which[which.find("**Tuned variants").unwrap()..], start);
    assert!(tuned.contains("mallard/AS7+fifo | 10.0×, 1 cell | 0.20 |"), "{tuned}");
    assert!(
        line(section(&text, "Against the peers"), "| libstdc++").contains("| 0 / 0 / 1 | 1.25 |")
    );
}

#[test]
fn reduced_workloads_and_single_runs_are_mentioned_next_to_the_figure() {
    let mut rows = [("glibc-2.36/AS1", 10.0), ("mallard/AS3", 2.0)]
        .map(|(who, ns)| row("lakos1", "DS1/2^6", who, "ns_per_op", ns));
    for r in &mut rows {
        r["command"] = json!("./x bench lakos1 --less 7 --runs 1 --json");
        r["runs"] = json!(1);
    }
    let (tree, text) = report(&rows);
    let words = "work divided by 2^7, of one run";
    let which = section(&text, "Which one, and when not");
    assert!(line(which, "| Built once, freed whole: flat, of numbers").contains(words), "{which}");
    assert!(line(section(&text, "The talk's five benchmarks"), "| I:").contains(words));
    assert!(line(section(&text, "The talk's decision tables, measured"), "| U:").contains(words));
    assert!(section(&text, "Benchmark I: growing").contains("Work divided by 2^7, of one run."));
    let html = tree.html();
    let all = html.split("All of lakos1").nth(2).unwrap();
    assert!(all.contains("Work divided by 2^7, of one run."));
}

#[test]
fn a_computed_failure_is_marked_as_computed() {
    let mut rows = [("glibc-2.36/AS1", 10.0), ("mallard/AS3", f64::NAN), ("mallard/AS7", 5.0)]
        .map(|(who, ns)| row("lakos3", "T=2^35/M=2^15/S=2^10", who, "ns_per_op", ns))
        .to_vec();
    rows[1]["why"] = json!("FAIL, computed and not run: it would hold no less than 16777216 KiB");
    rows.push(row("lakos3", "T=2^30/M=2^15/S=2^10", "mallard/AS3", "ns_per_op", 5.0));
    rows.push(row("lakos3", "T=2^30/M=2^15/S=2^10", "glibc-2.36/AS1", "ns_per_op", 5.0));
    let (tree, text) = report(&rows);
    let shares = section(&text, "Benchmark III: blocks freed and allocated again");
    assert!(line(shares, "| AS3 ").contains("1, 1 of them computed and not run"), "{shares}");
    assert!(text.contains("out of memory in 1 of 2, 1 computed and not run"), "{text}");
    let ran = tree.run(&["show", "lakos3"]);
    assert!(ran.out().contains("FAIL, computed"), "{}", ran.out());
}

#[test]
fn results_of_uncommitted_code_are_skipped_with_a_warning() {
    let mut rows = mallocs("pair/64B", "ns_per_op", [10.0, 5.0, 2.0]);
    let mut dirty = mallocs("pair/64B", "ns_per_op", [10.0, 5.0, 1.0]).pop().unwrap();
    dirty["commit"] = json!("1234567-dirty");
    rows.push(dirty);
    let tree = Tree::with(&rows);
    let ran = tree.run(&["report"]);
    assert_eq!(ran.status(), 0);
    assert!(
        ran.err().contains("1 rows were measured in a tree with uncommitted changes"),
        "{}",
        ran.err()
    );
    assert!(line(&tree.read(PAGE), "| mallard/malloc |").contains("| 0.20 |"));
}

#[test]
fn a_commit_missing_from_the_repository_is_mentioned_next_to_its_results() {
    let tree = Tree::new();
    let git = |words: &[&str]| {
        let who = ["-c", "user.name=n", "-c", "user.email=e"];
        let ran = std::process::Command::new("git")
            .args(who)
            .args(words)
            .current_dir(tree.folder.path())
            .output()
            .unwrap();
        assert!(ran.status.success(), "git {words:?}");
        String::from_utf8(ran.stdout).unwrap().trim().to_string()
    };
    git(&["init", "-q"]);
    git(&["commit", "-q", "--allow-empty", "-m", "First"]);
    let mut rows = mallocs("pair/64B", "ns_per_op", [10.0, 5.0, 2.0]);
    rows[0]["commit"] = json!(git(&["rev-parse", "--short", "HEAD"]));
    tree.write("results/test/rows.jsonl", &fixture::lines(&rows));
    tree.run(&["report"]).ok();
    let text = tree.read(PAGE).replace('\n', " ");
    let said =
        "2 of this machine's 3 results were measured at commits that are not in this repository's \
         history (1234567)";
    assert!(text.contains(said), "{text}");
    assert_eq!(text.matches("1234567 (not in this repository)").count(), 1, "{text}");
    assert!(tree.read(SHORT).replace('\n', " ").contains("1234567 (not in this repository)."));
    // Outside a repository, commits are not checked.
    let (_, text) = report(&rows);
    assert!(!text.contains("not in this repository"), "{text}");
}
