//! Tests `./x bench show SUITE`, which prints the tables of a suite in the terminal.

use crate::fixture::{self, a_part, Tree};

#[test]
fn each_published_suite_is_shown_in_the_published_layout() {
    let tree = Tree::with(&a_part());
    let text = tree.run(&["show", "lakos1", "--only", "DS7.*corrected, ns_per_op$"]).ok();
    assert!(text.contains("DS7 vector<unordered_set<int>>: corrected, ns_per_op"), "{text}");
    for title in ["AS1 ", "AS14 ", "best local"] {
        assert!(text.contains(title), "{text}");
    }
    let sizes = text.lines().filter(|l| l.trim_start().starts_with("2^")).count();
    assert_eq!(sizes, 3, "{text}");
    assert!(text.contains("in parentheses: published"), "{text}");

    let text = tree.run(&["show", "lakos2", "--only", "faithful"]).ok();
    for title in [
        "without local allocators (AS1)",
        "with local allocators (AS7)",
        "ratio, without / with (AS7)",
        "Diffusion",
    ] {
        assert!(text.contains(title), "{text}");
    }
    let text = tree.run(&["show", "lakos3"]).ok();
    assert!(
        text.contains("per cent of AS1") && text.contains("FAIL") && text.contains("AS3+reset"),
        "{text}"
    );
    let text = tree.run(&["show", "lakos4"]).ok();
    assert!(text.contains("remote/S=2^6/W=4, 4 threads"), "{text}");
    let text = tree.run(&["show", "lakos5"]).ok();
    assert!(text.contains("freed=1/8"), "{text}");
}

#[test]
fn published_figures_are_shown_next_to_measured_ones() {
    let tree = Tree::with(&a_part());
    // In Lakos's talk, all elements take 1.20 s, which is 8.94 ns for each element.
    assert!(tree.run(&["show", "lakos1", "--only", "^DS1 .*ns_per_op$"]).ok().contains("(8.94)"));
    assert!(tree.run(&["show", "lakos3"]).ok().contains("(440.0)"));
    let text = tree.run(&["show", "seeds"]).ok();
    assert!(text.contains("pbr/malloc, ns") && text.contains("(75.5)"), "{text}");
}

#[test]
fn any_suite_can_be_shown_from_any_file() {
    let tree = Tree::new();
    tree.write("build/rows.jsonl", &fixture::lines(&a_part()));
    let text = tree.run(&["show", "pool", "build/rows.jsonl"]).ok();
    assert!(text.contains(" inline-list\n") && text.contains("Mallard / peer"), "{text}");
    assert!(text.contains("./x bench pool --json, commit 1234567"), "{text}");
}

#[test]
fn a_suite_without_results_is_an_error_that_lists_the_suites_with_results() {
    let tree = Tree::with(&a_part());
    tree.run(&["show", "lakos9"]).fails("no rows of suite 'lakos9'");
}

/// Returns the width of the widest table line, in a terminal with this number of columns.
fn widest(tree: &Tree, columns: &str, arguments: &[&str]) -> usize {
    let text = tree.run_in(columns, arguments).out();
    text.lines().map(|line| line.chars().count()).max().unwrap()
}

#[test]
fn tables_fit_80_columns_or_a_wider_terminal() {
    let tree = Tree::with(&fixture::everything());
    for suite in ["lakos1", "lakos2", "seeds", "pool", "malloc"] {
        assert!(widest(&tree, "10", &["show", suite]) <= 80, "{suite}");
    }
    assert!(widest(&tree, "80", &["compare", "results", "results"]) <= 80);
    assert!((81..=120).contains(&widest(&tree, "120", &["show", "lakos1"])));
}
