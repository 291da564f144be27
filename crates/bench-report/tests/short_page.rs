//! Tests the short page of `./x bench report`, docs/performance.md, and the chart of the README.
//! Each test computes the expected figures from the results.

use crate::fixture::{everything, line, lines, row, Tree, SHORT};
use crate::skip;
use serde_json::{json, Value};

const ZEN: &str = "Test CPU, 4 CPUs, L1d 32 KiB";
const LAKE: &str = "Other CPU, 2 CPUs, L1d 48 KiB";

fn on(machine: &str, mut row: Value) -> Value {
    row["machine"] = json!(machine);
    row
}

/// Makes results about CPU time and peak memory of one program, under some mallocs.
fn program(machine: &str, case: &str, figures: &[(&str, f64, f64)]) -> Vec<Value> {
    let of = |&(who, seconds, kib): &(&str, f64, f64)| {
        [("cpu_seconds", seconds), ("peak_rss_kib", kib)]
            .map(|(metric, figure)| on(machine, row("programs", case, who, metric, figure)))
    };
    figures.iter().flat_map(of).collect()
}

fn page(rows: &[Value]) -> (Tree, String) {
    let tree = Tree::with(rows);
    tree.run(&["report"]).ok();
    let text = tree.read(SHORT);
    (tree, text)
}

/// Makes results of two programs on two machines. jemalloc has two versions.
fn programs() -> Vec<Value> {
    let mut rows = Vec::new();
    for machine in [ZEN, LAKE] {
        for (case, jemalloc) in [("lua", 9.0), ("redis", 8.0)] {
            rows.extend(program(
                machine,
                case,
                &[
                    ("glibc-2.36", 10.0, 1000.0),
                    ("mallard/malloc", if case == "lua" { 5.0 } else { 20.0 }, 900.0),
                    ("jemalloc-5.3.0", 9.5, 1200.0),
                    ("jemalloc-5.3.1", jemalloc, 1100.0),
                ],
            ));
        }
    }
    rows
}

#[test]
fn programs_have_geometric_means_of_time_and_memory() {
    let (_, text) = page(&programs());
    let mean = |factors: [f64; 2]| format!("{:.2}", (factors[0] * factors[1]).sqrt());
    let (ours, peer) = (mean([0.5, 2.0]), mean([0.9, 0.8]));
    let of = |who: &str| line(&text, &format!("| {who} |")).replace("**", "");
    assert_eq!(of("Mallard"), format!("| Mallard | {ours} | 0.90 | {ours} | 0.90 |"));
    assert_eq!(of("jemalloc 5.3.1"), format!("| jemalloc 5.3.1 | {peer} | 1.10 | {peer} | 1.10 |"));
    // The malloc that needs the least time comes first, and its figure is marked.
    assert!(line(&text, "| jemalloc 5.3.1 |").contains(&format!("**{peer}**")), "{text}");
    assert!(text.find("| jemalloc 5.3.1 |") < text.find("| Mallard |"), "{text}");
}

#[test]
fn each_program_has_the_time_and_the_memory_of_each_malloc() {
    let (_, text) = page(&programs());
    assert!(line(&text, "| program |").contains("| jemalloc 5.3.1 | Mallard |"), "{text}");
    assert!(line(&text, "| lua |").contains("| 0.90 / 1.10 | **0.50 / 0.90** |"), "{text}");
    assert!(line(&text, "| redis |").contains("| **0.80 / 1.10** | 2.00 / 0.90 |"), "{text}");
}

#[test]
fn of_two_versions_of_a_library_the_faster_one_is_shown() {
    let (_, text) = page(&programs());
    assert!(!text.contains("| jemalloc 5.3.0 |"), "{text}");
    assert!(text.replace('\n', " ").contains("The HTML page also has jemalloc 5.3.0."), "{text}");
}

#[test]
fn a_malloc_that_most_machines_did_not_measure_is_omitted() {
    let mut rows = programs();
    let third = "Third CPU, 8 CPUs, L1d 64 KiB";
    rows.extend(program(third, "lua", &[("glibc-2.36", 1.0, 9.0), ("mallard/malloc", 1.0, 9.0)]));
    rows.extend(program(third, "lua", &[("snmalloc-0.7.6", 0.1, 1.0)]));
    let (_, text) = page(&rows);
    assert!(!text.contains("| snmalloc"), "{text}");
    assert!(text.contains("| jemalloc 5.3.1 |"), "{text}");
}

#[test]
fn a_mean_over_fewer_programs_than_the_others_is_not_shown() {
    let mut rows = programs();
    rows.extend(program(ZEN, "git", &[("glibc-2.36", 1.0, 9.0), ("mallard/malloc", 1.0, 9.0)]));
    let (_, text) = page(&rows);
    let peer = line(&text, "| jemalloc 5.3.1 |").replace("**", "");
    // The first machine has results of a third program (git), but none of jemalloc for git. So the
    // page has no mean of jemalloc for this machine.
    assert!(peer.starts_with("| jemalloc 5.3.1 |  |  | 0.85 |"), "{peer}");
}

#[test]
fn three_sentences_explain_programs_calls_and_losses() {
    let calls = [("glibc-2.36", 8.0), ("mallard/malloc", 2.0), ("jemalloc-5.3.1", 1.0)]
        .map(|(who, ns)| row("malloc", "pair/64B", who, "ns_per_op", ns));
    let (_, text) = page(&[programs(), calls.to_vec()].concat());
    let sentences: Vec<&str> = text.split("\n- ").skip(1).collect();
    assert_eq!(sentences.len(), 3, "{text}");
    let said = text.replace("\n  ", " ");
    assert!(
        said.contains("programs need 1.00 times the CPU time and 0.90 times the peak memory"),
        "{said}"
    );
    assert!(said.contains("means of 2 programs on each of 2 machines"), "{said}");
    assert!(said.contains("Programs need less time with jemalloc 5.3.0 on Test"), "{said}");
    assert!(
        said.contains("; the time is equal, to two digits, with glibc 2.36 on Test CPU, 4 CPUs"),
        "{said}"
    );
    assert!(said.contains("alone needs 0.25 times the time that it needs with glibc"), "{said}");
    // redis loses on both machines, and so does the only case about calls of malloc.
    let losses = "loses 2 of 4 program times, 0 of 4 program memory peaks and 1 of 1 call times.";
    assert!(said.contains(losses), "{said}");
}

#[test]
fn losses_are_grouped_and_noise_is_not_a_loss() {
    let mut rows = programs();
    for (case, ns) in [("pair/a", 2.0), ("pair/b", 1.03), ("pair/c", 0.5)] {
        rows.push(row("pool", case, "mallard/none", "ns_per_op", ns));
        rows.push(row("pool", case, "boost-pool-1.74", "ns_per_op", 1.0));
        rows.push(row("pool", case, "limit/inline-list", "ns_per_op", 0.1));
    }
    let (_, text) = page(&rows);
    let losses = &text[text.find("\n## Where Mallard loses\n").unwrap()..];
    let pools = line(losses, "| pools: blocks of one size | time |");
    assert!(
        pools
            .contains("| 1 of 3 | 2.00 times (at most 2.00 times) | pair/a: boost-pool 1.74, Test"),
        "{pools}"
    );
    let programs = line(losses, "| whole programs | time |");
    assert!(
        programs.contains("| 2 of 4 | 2.50 times (at most 2.50 times) | redis: jemalloc 5.3.1"),
        "{programs}"
    );
    assert!(losses.find("| whole programs") < losses.find("| pools:"), "{losses}");
}

#[test]
fn local_allocators_are_compared_only_with_local_allocators() {
    let rows = [
        ("glibc-2.36", 10.0),
        ("jemalloc-5.3.1", 8.0),
        ("boost-pool-1.74", 4.0),
        ("foonathan-0.7.2/node", 5.0),
        ("plf-1.0/colony", 50.0),
        ("mallard/none", 2.0),
    ]
    .map(|(who, ns)| row("pool", "pair/64B", who, "ns_per_op", ns));
    let (_, text) = page(&rows);
    let pool = line(&text, "| blocks of one size, freed one by one |");
    assert!(pool.ends_with("| pool | 0.50 boost-pool 1.74, 0.40 foonathan 0.7.2/node |"), "{pool}");
    assert!(!text.contains("jemalloc"), "{text}");
}

#[test]
fn machines_are_shown_under_their_common_names() {
    let tree = Tree::with(&programs());
    tree.write(
        "results/machines.csv",
        &format!("machine,name,known_by\n\"{ZEN}\",Zen 3,family 25\n\"{LAKE}\",Ice Lake,its L2\n"),
    );
    tree.run(&["report"]).ok();
    let text = tree.read(SHORT);
    assert!(line(&text, "| malloc |")
        .contains("| Zen 3: programs, time | Zen 3: programs, peak memory | Ice Lake: prog"));
    assert!(line(&text, "| Zen 3 |").contains(&format!("| {ZEN} | family 25 |")), "{text}");
    let html = tree.html();
    assert!(html.contains("<option value=\"0\" title=\"Test CPU, 4 CPUs\">Zen 3</option>"));
    assert!(html.contains("<h2>Zen 3: Test CPU, 4 CPUs</h2>"));
    tree.write("results/machines.csv", "machine,title\na,b\n");
    tree.run(&["report"]).fails("machines.csv");
    assert_eq!(tree.read(SHORT), text, "a failed report changes no page");
}

#[test]
fn a_machine_with_two_kernels_has_one_line() {
    let mut rows = programs();
    let count = rows.len() / 2;
    for row in rows.iter_mut().filter(|row| row["machine"] == ZEN).take(2) {
        row["machine"] = json!(format!("{ZEN}, Linux 6.1"));
    }
    let tree = Tree::with(&rows);
    let names = format!("machine,name,known_by\n\"{ZEN}\",Zen 3,family 25\n");
    tree.write("results/machines.csv", &names);
    tree.run(&["report"]).ok();
    let text = tree.read(SHORT);
    let machines = text.split("## Machines").nth(1).unwrap();
    let expected = format!("| Zen 3 | {ZEN} | family 25 | 1 | {count} |");
    assert!(machines.contains(&expected), "{machines}");
    assert_eq!(machines.matches("Zen 3").count(), 1, "{machines}");
}

#[test]
fn the_page_stays_short_with_results_of_every_suite() {
    let (tree, text) = page(&[everything(), programs()].concat());
    let lines = text.lines().count();
    assert!((30..=100).contains(&lines), "{lines} lines: {text}");
    for name in text.split('`').skip(1).step_by(2).filter(|n| n.starts_with("build/")) {
        assert!(tree.path(name).exists(), "{name}");
    }
    for unexplained in ["AS5", "AS9", "DS1", "2^"] {
        assert!(!text.contains(unexplained), "{unexplained}: {text}");
    }
}

#[test]
fn both_pages_stay_small_with_all_results_in_the_repository() {
    let Some(tree) = Tree::of_repository() else {
        return skip("no folder results");
    };
    tree.run(&["report"]).ok();
    // In the repository, the page also lists commits that are missing from the history.
    let kept = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(SHORT);
    for text in [tree.read(SHORT), std::fs::read_to_string(kept).unwrap()] {
        let lines = text.lines().count();
        assert!((30..=110).contains(&lines), "{SHORT} has {lines} lines");
    }
    let html = tree.read("build/performance.html");
    assert!(html.len() < 3_000_000, "build/performance.html has {} bytes", html.len());
    assert!(html.contains("lakos1") && html.contains("programs"));
}

#[test]
fn without_results_of_mallocs_the_page_says_so_and_has_no_chart() {
    let (tree, text) = page(&[row("pool", "pair", "mallard/none", "ns_per_op", 1.0)]);
    assert!(text.contains("- Mallard was not yet compared with another malloc."), "{text}");
    assert!(!text.contains("## Malloc against malloc") && !text.contains("## Where Mallard loses"));
    assert!(!tree.path("docs/images/mallocs.svg").exists());
}

#[test]
fn the_chart_has_a_bar_for_each_malloc_and_lists_the_losses() {
    let calls = [("glibc-2.36", 8.0), ("mallard/malloc", 2.0), ("jemalloc-5.3.1", 1.6)]
        .map(|(who, ns)| row("malloc", "pair/64B", who, "ns_per_op", ns));
    let (tree, _) = page(&[programs(), calls.to_vec()].concat());
    let svg = tree.read("docs/images/mallocs.svg");
    assert!(svg.starts_with("<svg xmlns=") && svg.trim_end().ends_with("</svg>"), "{svg}");
    assert_eq!(svg.matches("<rect class=\"bar").count(), 3 * 3, "{svg}");
    assert_eq!(svg.matches("<rect class=\"bar our\"").count(), 3, "{svg}");
    for figure in [">1.00<", ">0.90<", ">0.85<", ">0.25<", ">0.20<"] {
        assert!(svg.contains(figure), "{figure}: {svg}");
    }
    assert!(
        svg.contains(
            "loses to the best other malloc in 2 of 4 program times, 0 of 4 program memory peaks"
        ),
        "{svg}"
    );
    assert!(svg.contains("prefers-color-scheme: dark") && !svg.contains("NaN"), "{svg}");
}

#[test]
fn compressed_results_produce_the_same_pages() {
    let rows = lines(&programs());
    let (plain, compressed) = (Tree::new(), Tree::new());
    plain.write("results/m/programs.jsonl", &rows);
    compressed.write("results/m/other.txt", "");
    let bytes = zstd::encode_all(rows.as_bytes(), 19).unwrap();
    std::fs::write(compressed.path("results/m/programs.jsonl.zst"), bytes).unwrap();
    for tree in [&plain, &compressed] {
        tree.run(&["report"]).ok();
    }
    assert_eq!(plain.read(SHORT), compressed.read(SHORT));
    std::fs::write(compressed.path("results/m/programs.jsonl.zst"), "no zstd").unwrap();
    compressed.run(&["report"]).fails("cannot read");
}
