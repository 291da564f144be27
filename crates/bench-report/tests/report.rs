//! Tests `./x bench report`, namely the content of the pages, and what happens on errors.

use crate::fixture::{
    self, a_part, elsewhere, everything, line, report, row, section, Pages, Tree, PAGE, SHORT,
};
use crate::skip;
use serde_json::{json, Value};
use std::fs;
use std::os::unix::fs::PermissionsExt;

#[test]
fn the_first_line_contains_the_command_that_generates_the_page() {
    let first = Pages::of_a_part().text.lines().next().unwrap();
    assert!(first.contains("Generated") && first.contains("./x bench report"), "{first}");
}

#[test]
fn every_table_has_its_columns_and_the_page_has_a_limited_length() {
    let text = &Pages::of_everything().text;
    let mut columns = None;
    for line in text.lines() {
        let count = line.replace("\\|", "").matches('|').count();
        if !line.starts_with('|') {
            columns = None;
        } else if let Some(expected) = columns {
            assert_eq!(count, expected, "{line}");
        } else {
            columns = Some(count);
        }
    }
    let lines = text.lines().count();
    assert!((150..=500).contains(&lines), "{lines} lines");
}

#[test]
fn the_same_results_produce_the_same_page() {
    let tree = Tree::with(&a_part());
    tree.run(&["report"]).ok();
    let files = ["docs/performance.md", PAGE, "build/performance.html", "docs/images/mallocs.svg"];
    let before: Vec<_> = files.iter().map(|f| fs::read(tree.path(f)).ok()).collect();
    tree.run(&["report"]).ok();
    let after: Vec<_> = files.iter().map(|f| fs::read(tree.path(f)).ok()).collect();
    assert!(before == after && before[..3].iter().all(Option::is_some));
}

#[test]
fn the_recommendation_names_the_fastest_strategy_its_gain_and_its_losses() {
    let figures = |ns1: f64, ns3: f64, ns7: f64| {
        move |size: u32| {
            let case = format!("DS1/2^{size}");
            [("glibc-2.36/AS1", ns1), ("mallard/AS3", ns3), ("mallard/AS7", ns7)]
                .map(|(who, ns)| row("lakos1", &case, who, "ns_per_op", ns))
        }
    };
    let mut rows: Vec<Value> = (6..10).flat_map(figures(10.0, 2.5, 20.0)).collect();
    rows.extend(figures(10.0, 12.5, 20.0)(10)); // Mallard loses in this one case
    let (_, text) = report(&rows);
    let answer = line(
        section(&text, "Which one, and when not"),
        "| Built once, freed whole: flat, of numbers",
    );
    assert!(answer.contains("**AS3 (arena, type parameter)**"), "{answer}");
    assert!(answer.contains("4.00× (0.80 to 4.00), 5 cells"), "{answer}");
    assert!(answer.contains("a loss to glibc in 1 of 5 cells: DS1/2^10"), "{answer}");
    assert!(answer.contains("not AS7 (0.50×)"), "{answer}");
    let headline = line(section(&text, "The talk's five benchmarks"), "| I: growing");
    assert!(headline.contains("in 1: DS1/2^10 0.80×"), "{headline}");
    assert!(headline.contains("5; 5 of the talk's 132"), "{headline}");
}

#[test]
fn without_a_gain_the_global_allocator_is_recommended() {
    let rows = [("glibc-2.36/AS1", 10.0), ("mallard/AS3", 10.1)]
        .map(|(who, ns)| row("lakos1", "DS2/2^6", who, "ns_per_op", ns));
    let (_, text) = report(&rows);
    let answer = line(
        section(&text, "Which one, and when not"),
        "| Built once, freed whole: flat, of strings",
    );
    assert!(answer.contains("the global allocator; the best local one is AS3"), "{answer}");
}

#[test]
fn a_strategy_that_runs_out_of_memory_is_not_recommended() {
    let rows = [("glibc-2.36/AS1", 10.0), ("mallard/AS3", 1.0), ("mallard/AS7", 5.0)]
        .map(|(who, ns)| row("lakos3", "T=2^30/M=2^15/S=2^10", who, "ns_per_op", ns));
    let fails = [("glibc-2.36/AS1", 10.0), ("mallard/AS3", f64::NAN), ("mallard/AS7", 5.0)]
        .map(|(who, ns)| row("lakos3", "T=2^35/M=2^15/S=2^10", who, "ns_per_op", ns));
    let (_, text) = report(&[rows, fails].concat());
    let answer = line(section(&text, "Which one, and when not"), "| Long-running, blocks freed");
    assert!(answer.contains("**AS7"), "{answer}");
    assert!(answer.contains("AS3 (10.0×, out of memory in 1 of 2)"), "{answer}");
}

#[test]
fn unmeasured_situations_are_listed() {
    let (_, text) = report(&[row("pool", "pair/64B", "mallard/none", "ns_per_op", 1.0)]);
    assert!(
        section(&text, "Which one, and when not").contains("Not measured: Built once"),
        "{text}"
    );
    assert!(section(&text, "The talk's decision tables, measured")
        .contains("local monotonic: not measured"));
    assert!(line(section(&text, "The talk's five benchmarks"), "| II").contains("not measured"));
    assert!(section(&text, "Benchmark II: locality").contains("Not measured on this machine"));
}

#[test]
fn unmeasured_sections_of_additional_machines_are_omitted() {
    let pool = [row("pool", "pair/64B", "mallard/none", "ns_per_op", 1.0)];
    let (_, text) = report(&[a_part(), elsewhere(&pool)].concat());
    let (of_first, of_other) = text.split_once("\n## Other CPU, 2 CPUs\n").unwrap();
    for title in ["The talk's five benchmarks", "Benchmark II: locality"] {
        assert!(of_first.contains(&format!("\n### {title}\n")), "{title}: {text}");
        assert!(!of_other.contains(&format!("\n### {title}\n")), "{title}: {text}");
    }
}

#[test]
fn decision_table_cells_show_measured_and_published_figures() {
    let decision = section(&Pages::of_everything().text, "The talk's decision tables, measured");
    let u = line(decision, "| U:");
    assert!(
        u.contains("local multipool: holds. ") && u.contains("local monotonic: holds. "),
        "{u}"
    );
    assert_eq!(u.matches("(talk ").count(), 4, "{u}");
    assert!(line(decision, "| L:").contains("a joke on the slide"));
}

#[test]
fn table_cells_are_counted_as_won_tied_or_lost() {
    let three = |case: &str, ours: f64| {
        [("mimalloc-2.0.9", 10.0), ("mallard/malloc", ours)]
            .map(|(who, ns)| row("malloc", case, who, "ns_per_op", ns))
    };
    let (_, text) = report(&[three("a", 5.0), three("b", 10.1), three("c", 20.0)].concat());
    let peers = line(section(&text, "Against the peers"), "| mimalloc-2.0.9");
    assert!(peers.contains("| 1 / 1 / 1 | 1.00 |"), "{peers}");
}

#[test]
fn every_loss_of_more_than_a_tenth_is_listed_with_its_ratio() {
    let Pages { text, html } = Pages::of_a_part();
    let losses = section(text, "Where Mallard loses");
    assert!(
        line(losses, "| pool | ns_per_op |").contains("lost/64B 2.00 boost-pool-1.74"),
        "{losses}"
    );
    // Counts independently of the report which results lose to others of the same kind by more than
    // 10 %.
    let kind = |who: &str| match who.rsplit_once("/AS") {
        Some((_, number)) => number.to_string(),
        None if ["glibc-", "mimalloc-", "mallard/malloc"].iter().any(|m| who.starts_with(m)) => {
            "malloc".to_string()
        }
        None => "local".to_string(),
    };
    let mut best: std::collections::HashMap<String, [f64; 2]> = Default::default();
    for r in a_part() {
        let who = r["contender"].as_str().unwrap();
        let (Some(median), false) = (r["median"].as_f64(), who.starts_with("limit/")) else {
            continue;
        };
        if r["metric"] == "degradation" || who.ends_with("+reset") {
            continue;
        }
        let of = [&r["suite"], &r["case"], &r["variant"], &r["metric"], &r["threads"]];
        let slot = &mut best.entry(format!("{of:?} {}", kind(who))).or_insert([f64::MAX; 2])
            [usize::from(who.starts_with("mallard/"))];
        *slot = slot.min(median);
    }
    let both = best.values().filter(|b| b.iter().all(|f| *f < f64::MAX));
    let lost = both.clone().filter(|b| b[1] / b[0] > 1.1).count();
    let sentence = format!("in {lost} of {} figures", both.count());
    assert!(losses.replace('\n', " ").contains(&sentence), "{sentence}: {losses}");
    let table = html.split("aria-label=\"Every figure lost by more than 10 %\"").nth(1).unwrap();
    let listed = table.split("</table>").next().unwrap();
    assert_eq!(listed.matches("<tr").count(), lost + 1);
}

#[test]
fn a_theoretical_bound_is_not_a_competitor() {
    let rows = [("limit/inline-list", 0.5), ("boost-pool-1.74", 3.0), ("mallard/none", 1.0)]
        .map(|(who, ns)| row("pool", "pair/64B", who, "ns_per_op", ns));
    let (_, text) = report(&rows);
    let losses = section(&text, "Where Mallard loses").replace('\n', " ");
    assert!(losses.contains("in 0 of 1 figures"), "{text}");
    assert!(!section(&text, "Against the peers").contains("limit/inline"));
}

#[test]
fn a_gain_below_the_published_gain_is_shown_with_its_reason() {
    let tree = Tree::with(&everything());
    tree.write("bench/published/reasons.csv", "suite,part,reason\nlakos1,DS7,because of seven\n");
    tree.run(&["report"]).ok();
    let text = tree.read(PAGE);
    let ds7 = line(section(&text, "Benchmark I: growing"), "| DS7 ");
    assert!(ds7.contains("in 11 of 11 sizes"), "{ds7}");
    assert!(ds7.contains("AS1 itself is 5.0") && ds7.contains("because of seven"), "{ds7}");
}

#[test]
fn machines_have_separate_sections() {
    let rows = a_part();
    let tree = Tree::with(&[rows.clone(), elsewhere(&rows)].concat());
    tree.run(&["report"]).ok();
    let text = tree.read(PAGE);
    assert!(text.contains("\n## Test CPU, 4 CPUs\n") && text.contains("\n## Other CPU, 2 CPUs\n"));
    let alone = &Pages::of_a_part().text;
    // The sections of the first machine are the same as in a report of that machine alone.
    let first = |text: &str| {
        let from = text.split("\n## Test CPU, 4 CPUs\n").nth(1).unwrap();
        from.split("\n## ").next().unwrap().to_string()
    };
    assert_eq!(first(&text).trim_end(), first(alone).trim_end());
}

#[test]
fn the_machine_with_the_most_published_figures_is_first() {
    let rows = a_part();
    let fewer = elsewhere(&rows[..1]);
    let tree = Tree::with(&[fewer, rows].concat());
    tree.run(&["report"]).ok();
    let text = tree.read(PAGE);
    assert!(text.find("\n## Test CPU, 4 CPUs\n") < text.find("\n## Other CPU, 2 CPUs\n"));
    assert!(text.contains("\n## Other CPU, 2 CPUs\n"));
}

#[test]
fn machines_with_one_processor_are_distinguished_by_their_caches() {
    let on = |machine: &str| {
        let mut r = row("pool", "pair", "mallard/none", "ns_per_op", 5.0);
        r["machine"] = json!(machine);
        r
    };
    let (_, text) = report(&[
        on("Test CPU, 4 CPUs, L1d 32 KiB, L2 1024 KiB, Linux 6.1, g++ 12.2.0"),
        on("Test CPU, 4 CPUs, L1d 32 KiB, L2 512 KiB, Linux 6.1, g++ 12.2.0"),
        on("Other CPU, 4 CPUs, L1d 32 KiB, L2 512 KiB, Linux 6.1, g++ 12.2.0"),
    ]);
    for title in [
        "Test CPU, 4 CPUs, L1d 32 KiB, L2 1024 KiB",
        "Test CPU, 4 CPUs, L1d 32 KiB, L2 512 KiB",
        "Other CPU, 4 CPUs",
    ] {
        assert!(text.contains(&format!("\n## {title}\n")), "{title}: {text}");
    }
}

#[test]
fn cpp_and_rust_results_from_one_machine_are_in_one_section() {
    let on = |mut r: serde_json::Value, compiler: &str| {
        r["machine"] = json!(format!("Test CPU, 4 CPUs, L1d 32 KiB, Linux 6.1, {compiler}"));
        r
    };
    let figure = |suite: &str, contender: &str| row(suite, "pair", contender, "ns_per_op", 5.0);
    let rows = [
        on(figure("crates", "mallard/ObjectPool"), "rustc 1.95.0"),
        on(figure("pool", "mallard/none"), "g++ 12.2.0"),
        on(figure("pool", "mallard/other"), "clang 16.0.6"),
    ];
    let (_, text) = report(&rows);
    assert_eq!(text.matches("\n## Test CPU, 4 CPUs").count(), 2, "{text}");
}

#[test]
fn published_figures_of_crates_are_shown_next_to_the_same_case() {
    let (_, text) = report(&[
        row("crates", "bumpalo/allocate/u8", "mallard/Arena", "ns_per_op", 1.0),
        row("crates", "bumpalo/allocate/u8", "bumpalo-3.20.4", "ns_per_op", 2.0),
    ]);
    let own = section(&text, "Rust: Mallard's crate compared with others");
    let cells = line(own, "| bumpalo/allocate/u8");
    assert!(cells.contains("bumpalo/Bump 1.66, blink-alloc/BlinkAlloc 2.01"), "{cells}");
    assert!(cells.contains("mallard/Arena 1.00 | bumpalo-3.20.4 2.00 | 0.50"), "{cells}");
}

#[test]
fn new_results_replace_old_ones_of_the_same_case() {
    let old = row("malloc", "a", "mallard/malloc", "ns_per_op", 99.0);
    let new = row("malloc", "a", "mallard/malloc", "ns_per_op", 5.0);
    let peer = row("malloc", "a", "mimalloc-2.0.9", "ns_per_op", 10.0);
    let (_, text) = report(&[old, peer, new]);
    assert!(
        line(section(&text, "Against the peers"), "| mimalloc").contains("| 1 / 0 / 0 | 0.50 |")
    );
}

#[test]
fn the_page_is_one_file_that_loads_no_other_file() {
    let (tree, _) = report(&a_part());
    let html = tree.read("build/performance.html");
    for asking in ["src=\"http", "href=\"http", "@import", "url(http", "//cdn", "<iframe"] {
        assert!(!html.contains(asking), "{asking}");
    }
    assert!(html.contains("default-src 'none'"));
}

#[test]
fn names_in_results_cannot_break_the_page() {
    let mut hostile =
        row("pool", "pair/</script><script>alert(1)</script>|x", "mallard/<b>", "ns_per_op", 1.0);
    hostile["machine"] = json!("<img src=x onerror=alert(1)> | CPU");
    let (tree, text) = report(&[hostile]);
    let html = tree.html();
    assert!(
        !html.contains("<script>alert")
            && !html.contains("<img src=x")
            && !html.contains("mallard/<b>")
    );
    assert!(!text.contains("<img src=x") && !tree.read(SHORT).contains("<img src=x"), "{text}");
}

#[test]
fn a_failed_write_keeps_the_previous_page() {
    let tree = Tree::with(&a_part());
    tree.run(&["report"]).ok();
    let before = tree.read(PAGE);
    // A directory with the name of the page makes the page unwritable. File permissions would not
    // stop root.
    fs::create_dir(tree.path("taken")).unwrap();
    fs::create_dir(tree.path("taken/performance.html")).unwrap();
    tree.run(&["report", "--out", "taken"]).fails("cannot write taken/performance.html");
    tree.write("file", "");
    tree.run(&["report", "--out", "file"]).fails("cannot write file/performance.html");
    assert_eq!(tree.read(PAGE), before);
    let left: Vec<_> = fs::read_dir(tree.path("taken")).unwrap().collect();
    assert_eq!(left.len(), 1, "a temporary file is left");
}

#[test]
fn a_full_disk_keeps_the_previous_page() {
    // Mounts a file system of 64 KiB, if this user may mount one. The page is larger than that.
    let tree = Tree::with(&a_part());
    tree.write("small/x", "");
    let small = tree.path("small");
    let mounted = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"])
        .arg(&small)
        .output()
        .is_ok_and(|o| o.status.success());
    if !mounted {
        return skip("this user cannot mount a file system");
    }
    fs::write(small.join("performance.html"), "before").unwrap();
    let ran = tree.run(&["report", "--out", "small"]);
    let (kept, files) =
        (fs::read_to_string(small.join("performance.html")), fs::read_dir(&small).unwrap().count());
    std::process::Command::new("umount").arg(&small).status().unwrap();
    ran.fails("no space left on device");
    assert!(ran.err().contains("the page from before is as it was"), "{}", ran.err());
    assert_eq!((kept.unwrap().as_str(), files), ("before", 1));
}

#[test]
fn the_pages_are_readable_by_everyone() {
    let (tree, _) = report(&a_part());
    for page in [PAGE, "build/performance.html"] {
        assert_eq!(fs::metadata(tree.path(page)).unwrap().permissions().mode() & 0o777, 0o644);
    }
}

#[test]
fn invalid_input_is_reported_and_no_page_is_written() {
    let tree = Tree::new();
    tree.write("results/m/rows.jsonl", "{\"suite\":1}\n{}\n");
    tree.run(&["report"]).fails("results/m/rows.jsonl:1: not a row");
    tree.run(&["report", "missing.jsonl"]).fails("cannot read missing.jsonl");
    tree.write("empty.jsonl", "");
    tree.run(&["report", "empty.jsonl"]).fails("there are no rows");
    tree.write("good.jsonl", &fixture::lines(&[row("pool", "a", "mallard/x", "ns_per_op", 1.0)]));
    tree.write("bench/published/lakos_benchmark4.csv", "log2_I,log2_S\n1,2\n");
    tree.run(&["report", "good.jsonl"]).fails("lakos_benchmark4.csv:1: no column W");
    assert!(!tree.path(PAGE).exists());
}
