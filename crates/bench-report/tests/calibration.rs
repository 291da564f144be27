//! Tests the page docs/calibration.md. The expected counts were computed by hand.

use crate::fixture::{self, line, row, section, Tree};
use serde_json::{json, Value};

const PAGE: &str = "docs/calibration.md";

/// A result: a change with its 95 % interval and its verdict. A negative change is a saving.
type Change = (f64, f64, f64, &'static str);

/// One pair of a program and an allocator.
struct Pair {
    program: &'static str,
    allocator: &'static str,
    real: Change,
    replayed: Change,
    predicted: (f64, f64),
    /// Changes of peak memory in KiB, in reality and in the replay, and the real peak.
    peak: (f64, f64, f64),
}

fn figure(pair: &Pair, metric: &str, (median, low, high, verdict): Change) -> Value {
    let mut row = row("calibration", pair.program, pair.allocator, metric, median);
    (row["low"], row["high"], row["verdict"]) = (json!(low), json!(high), json!(verdict));
    row
}

fn rows_of(pair: &Pair) -> Vec<Value> {
    let (low, high) = pair.predicted;
    let (real_peak, replayed_peak, peak) = pair.peak;
    let of_peak = |kib: f64| (kib, kib - 1.0, kib + 1.0, "loss");
    vec![
        figure(pair, "real_cpu_percent", pair.real),
        figure(pair, "replayed_cpu_percent", pair.replayed),
        figure(pair, "predicted_cpu_percent", ((low + high) / 2.0, low, high, "")),
        figure(pair, "real_peak_change_kib", of_peak(real_peak)),
        figure(pair, "replayed_peak_change_kib", of_peak(replayed_peak)),
        row("calibration", pair.program, pair.allocator, "real_peak_kib", peak),
    ]
}

fn glibc(program: &str, seconds: f64, recorded: f64, faults: f64) -> [Value; 5] {
    [
        ("real_cpu_seconds", seconds),
        ("replayed_cpu_seconds", recorded),
        ("real_peak_kib", 90000.0),
        ("real_page_faults", 1000.0),
        ("replayed_page_faults", faults),
    ]
    .map(|(metric, value)| row("calibration", program, "glibc", metric, value))
}

/// Returns seven pairs. The comment of each states which of the page's questions have the answer
/// yes, and which have no.
fn pairs() -> Vec<Pair> {
    let pair = |program, allocator, real, replayed, predicted, peak| Pair {
        program,
        allocator,
        real,
        replayed,
        predicted,
        peak,
    };
    vec![
        // All answers are yes: for sign, call, interval and peak.
        pair(
            "perl",
            "mallard",
            (-10.0, -11.0, -9.0, "gain"),
            (-8.0, -8.5, -7.5, "gain"),
            (-20.0, -6.0),
            (1000.0, 2000.0, 100000.0),
        ),
        // The sign is right, but the replay has no verdict. The peak is off by 4000 KiB, which is 4
        // % of the peak.
        pair(
            "perl",
            "mimalloc",
            (6.0, 5.0, 7.0, "loss"),
            (1.0, -1.0, 3.0, "not measurable"),
            (-2.0, 4.0),
            (0.0, 4000.0, 100000.0),
        ),
        // A gain of 4 % is judged a loss, so the sign is wrong. The peak is off by 6000 KiB, which
        // is 6 % of the peak.
        pair(
            "perl",
            "jemalloc",
            (-4.0, -5.0, -3.0, "gain"),
            (3.0, 2.5, 3.5, "loss"),
            (1.0, 9.0),
            (0.0, -6000.0, 100000.0),
        ),
        // The gain is 1.5 %. The page asks about the sign only above 2 %, and about the verdict
        // only above 5 %.
        pair(
            "lua",
            "mallard",
            (-1.5, -1.9, -1.1, "gain"),
            (1.0, 0.5, 1.5, "no difference"),
            (-3.0, 3.0),
            (0.0, 2048.0, 100.0),
        ),
        // Nothing changes, and the verdict of the replay is no difference.
        pair(
            "lua",
            "mimalloc",
            (0.1, -0.5, 0.5, "no difference"),
            (0.2, -0.1, 0.5, "no difference"),
            (-1.0, 1.0),
            (0.0, 2049.0, 100.0),
        ),
        // Nothing changes, but the verdict of the replay is a gain. The predicted interval misses
        // the real change by 0.5 percentage points, but the interval of the real change overlaps
        // the predicted one.
        pair(
            "lua",
            "jemalloc",
            (0.0, -1.0, 1.0, "no difference"),
            (-3.0, -3.5, -2.5, "gain"),
            (-9.0, -0.5),
            (0.0, 0.0, 100.0),
        ),
        // The real change is not measurable, so the page asks only about interval and peak.
        pair(
            "git",
            "mallard",
            (-3.0, -9.0, 3.0, "not measurable"),
            (-2.0, -3.0, -1.0, "gain"),
            (-7.0, -1.0),
            (0.0, 0.0, 100.0),
        ),
    ]
}

fn all_rows() -> Vec<Value> {
    let mut rows: Vec<Value> = pairs().iter().flat_map(rows_of).collect();
    rows.extend(glibc("perl", 1.0, 1.05, 1500.0));
    rows.extend(glibc("lua", 1.0, 1.5, 2500.0));
    rows
}

fn page(rows: &[Value]) -> String {
    let tree = Tree::with(rows);
    tree.run(&["report"]).ok();
    tree.read(PAGE)
}

#[test]
fn the_calibration_counts_equal_those_computed_by_hand() {
    let text = page(&all_rows());
    let counts = section(&text, "How often the replay is right");
    for (start, cells) in [
        ("| the measured CPU time gain or loss is above 2 %", "| 3 | 2 | 66 % | 100 % |"),
        ("| the measured CPU time gain or loss is above 5 %", "| 2 | 1 | 50 % | 95 % |"),
        ("| the measurement finds no CPU time difference", "| 2 | 1 | 50 % | 100 % |"),
        ("| the measurement finds a CPU time gain or loss", "| 4 | 2 | 50 % | 80 % |"),
        ("| any measured CPU time saving", "| 7 | 4 | 57 % | 80 % |"),
        ("| any measured peak memory saving", "| 7 | 5 | 71 % | 80 % |"),
    ] {
        let found = line(counts, start);
        assert!(found.ends_with(cells), "{found}");
    }
    let sentence =
        "Measured CPU time for 7 program/malloc pairs: gain or loss: 4; no difference: 2; \
                    not measurable: 1; no figure: 0.";
    assert!(counts.replace('\n', " ").contains(sentence), "{counts}");
}

#[test]
fn a_cell_shows_the_measured_the_replayed_and_the_predicted_saving() {
    let text = page(&all_rows());
    let cpu = line(section(&text, "CPU time"), "| perl");
    assert!(cpu.contains("| **+10.0 / +8.0 (+6.0 to +20.0)** |"), "{cpu}");
    assert!(cpu.contains("| **-6.0 / -1.0? (-4.0 to +2.0)** |"), "{cpu}");
    let git = line(section(&text, "CPU time"), "| git");
    assert_eq!(git, "| git | +3.0? / +2.0 (+1.0 to +7.0) |  |  |");
    let memory = line(section(&text, "Peak memory"), "| perl");
    assert!(memory.starts_with("| perl | **-1.0 / -2.0** | **0 / -3.9** |"), "{memory}");
}

#[test]
fn missed_pairs_are_listed_with_their_known_causes() {
    let text = page(&all_rows());
    let misses = section(&text, "Wrong predictions");
    assert_eq!(misses.lines().filter(|l| l.starts_with("| ")).count() - 1, 4, "{misses}");
    let unsigned = line(misses, "| perl | jemalloc |");
    assert!(unsigned.contains("| sign, interval, peak memory |"), "{unsigned}");
    assert!(
        unsigned.contains("the measured saving is 5.0 percentage points outside"),
        "{unsigned}"
    );
    assert!(unsigned.contains("0 MiB (peak: 97.7 MiB); in the replay: +5.9 MiB"), "{unsigned}");
    let uncalled = line(misses, "| perl | mimalloc |");
    assert!(uncalled.contains("| verdict, interval |"), "{uncalled}");
    let called = line(misses, "| lua | jemalloc |");
    assert!(called.contains("| verdict, interval |"), "{called}");
    assert!(called.contains("overlaps the predicted interval"), "{called}");
    assert!(called.contains("needs 1.50 times its measured CPU time"), "{called}");
    assert!(
        called.contains("2,500 page faults under glibc, and the whole program 1,000"),
        "{called}"
    );
    assert!(!unsigned.contains("page faults"), "{unsigned}");
    let peak = line(misses, "| lua | mimalloc |");
    assert!(peak.contains("| peak memory |") && !peak.contains("1.50 times"), "{peak}");
}

#[test]
fn manually_recorded_reasons_are_shown() {
    let tree = Tree::with(&all_rows());
    let reasons = "suite,part,reason,source\n\
        calibration,perl/jemalloc,\"its arenas are \"\"far\"\" apart\",perf\n\
        calibration,lua,something else,perf\n";
    tree.write("bench/published/reasons.csv", reasons);
    tree.run(&["report"]).ok();
    let text = tree.read(PAGE);
    let misses = section(&text, "Wrong predictions");
    assert!(line(misses, "| perl | jemalloc |").contains("; its arenas are \"far\" apart |"));
    assert!(line(misses, "| lua | jemalloc |").contains("; something else |"));
    assert!(!line(misses, "| perl | mimalloc |").contains("arenas"));
}

#[test]
fn a_pair_without_a_figure_is_listed_with_its_reason() {
    let mut rows = all_rows();
    let mut broken = row("calibration", "git", "jemalloc", "real_cpu_percent", f64::NAN);
    broken["why"] = json!("broken: ended by signal 11 (SIGSEGV)");
    rows.push(broken);
    let text = page(&rows);
    let missing = line(section(&text, "Wrong predictions"), "| git | jemalloc |");
    assert!(missing.contains("| no figure | - | - |"), "{missing}");
    assert!(missing.contains("measured: broken: ended by signal 11 (SIGSEGV)"), "{missing}");
    assert!(
        section(&text, "How often the replay is right")
            .replace('\n', " ")
            .contains("no figure: 1."),
        "{text}"
    );
}

#[test]
fn the_html_page_has_a_calibration_chart_and_the_benchmark_page_has_none() {
    let pages = |rows: &[Value]| {
        let tree = Tree::with(rows);
        tree.run(&["report"]).ok();
        (tree.read("docs/performance.md"), tree.read("build/performance.html"))
    };
    let (text, html) = pages(&[all_rows(), fixture::a_part()].concat());
    let (text_without, html_without) = pages(&fixture::a_part());
    assert_eq!(text, text_without);
    let chart = "data-chart=\"calibration\"";
    assert_eq!((html.matches(chart).count(), html_without.matches(chart).count()), (1, 0));
    assert!(!html.contains("All of calibration"), "calibration has a table of its own");
}

/// Makes results about the changed source of a program. They are savings as shares: measured,
/// predicted by a replay, measured in the program with a plan, and shown in the recommendation.
fn change(program: &str, real: f64, predictions: [(&str, f64, f64); 3]) -> Vec<Value> {
    let measured = [("measured_saving", real - 0.01, real + 0.01)];
    let all = measured.into_iter().chain(predictions);
    all.map(|(metric, low, high)| {
        let mut row = row("advise", program, "advised", metric, (low + high) / 2.0);
        (row["low"], row["high"]) = (json!(low), json!(high));
        row["variant"] = json!("convert AS4 in parse");
        row
    })
    .collect()
}

fn predictions(
    replay: (f64, f64),
    in_program: (f64, f64),
    card: (f64, f64),
) -> [(&'static str, f64, f64); 3] {
    [
        ("replayed_saving", replay.0, replay.1),
        ("in_program_saving", in_program.0, in_program.1),
        ("predicted_saving", card.0, card.1),
    ]
}

#[test]
fn the_page_begins_with_how_often_predictions_were_right() {
    let rows = [
        change("cmark", 0.25, predictions((0.1, 0.9), (0.22, 0.24), (0.22, 0.4))),
        change("lru_cache", 0.36, predictions((0.05, 0.2), (0.18, 0.22), (0.2, 0.35))),
        all_rows(),
    ];
    let text = page(&rows.concat());
    let beginning = text.replace("\n  ", " ");
    let conclusions: Vec<&str> = beginning.lines().filter(|l| l.starts_with("- ")).collect();
    let source = "- **A source change**, such as an arena or a pool: for 1 of 2 changes, the changed program's saving is \
                  in the interval that `mallard advise` predicts (median width: 18 percentage points). For 1 of 2 \
                  changes, it is in the interval that a replay alone predicts (median width: 80 percentage points).";
    let mallocs = "- **Another malloc, on Test CPU, 4 CPUs:** 2 of 4 measured CPU time gains and losses are in the \
                   interval that `mallard replay` predicts (median width: 7 percentage points). The replay has the \
                   right sign for 2 of 3 gains and losses above 2 %. The replayed peak memory saving is wrong by at most 5 % of the peak (2 MiB, if \
                   that is more) for 5 of 7 program/malloc pairs.";
    assert_eq!(conclusions, [source, mallocs], "{text}");
    assert!(text.find("\n- **").unwrap() < text.find("All figures on this page").unwrap());
    let table = section(&text, "Source changes");
    let inside = "| cmark | convert AS4 in parse | **+10.0 to +90.0** | +23.0 (+22.0 to +24.0) | **+22.0 to +40.0** | \
                  +25.0 (+24.0 to +26.0) |";
    assert_eq!(line(table, "| cmark"), inside);
    let outside = line(table, "| lru_cache");
    assert!(
        outside.contains("| +5.0 to +20.0 | +20.0 (+18.0 to +22.0) | +20.0 to +35.0 |"),
        "{outside}"
    );
    assert!(section(&text, "CPU time").contains("| perl"), "{text}");
}

#[test]
fn a_change_that_advise_did_not_measure_has_no_prediction() {
    let text = page(&change("words", 0.1, predictions((0.0, 0.2), (0.0, 0.1), (0.05, 0.2)))[..1]);
    assert!(
        line(section(&text, "Source changes"), "| words").contains("| - | - | - | +10.0"),
        "{text}"
    );
    assert!(!text.contains("median width"), "{text}");
    assert!(!text.contains("How often the replay is right"), "no malloc was measured: {text}");
}

#[test]
fn without_results_the_page_explains_how_to_measure() {
    let text = page(&fixture::a_part());
    assert!(text.starts_with("<!-- Generated from the results"), "{text}");
    assert!(text.contains("Nothing was measured yet."), "{text}");
    assert!(text.contains("./x bench calibration --json"), "{text}");
}

#[test]
fn each_machine_has_its_own_counts() {
    let mut elsewhere = all_rows();
    elsewhere.truncate(6);
    for row in &mut elsewhere {
        row["machine"] = json!("Other CPU, 2 CPUs, L1d 48 KiB");
    }
    let text = page(&[all_rows(), elsewhere].concat());
    let other = text.split("\n## Other CPU, 2 CPUs\n").nth(1).unwrap();
    assert!(line(other, "| the measured CPU time gain or loss is above 2 %")
        .ends_with("| 1 | 1 | 100 % | 100 % |"));
    assert!(section(other, "Wrong predictions").contains("None."), "{other}");
}

#[test]
fn a_vertical_bar_in_a_command_does_not_break_the_table() {
    let mut rows = all_rows();
    for row in &mut rows {
        row["command"] = json!("./x bench calibration --case perl|lua");
    }
    let text = page(&rows);
    let run = line(section(&text, "How it was measured"), "| calibration |");
    assert!(run.contains("--case perl\\|lua` |"), "{run}");
}

#[test]
fn changes_against_glibc_are_not_compared_by_ratio() {
    let tree = Tree::new();
    let (before, after) = (all_rows(), all_rows());
    tree.write("a.jsonl", &fixture::lines(&before));
    tree.write("b.jsonl", &fixture::lines(&after));
    let text = tree.run(&["compare", "a.jsonl", "b.jsonl", "--json"]).ok();
    assert!(!text.contains("cpu_percent") && !text.contains("change_kib"), "{text}");
}
