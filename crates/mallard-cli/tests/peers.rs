//! Tests that other programs can read the files of `mallard export`, and that `mallard import` can
//! read files of heaptrack. The programs are Go's pprof, the page of speedscope, the library of
//! Perfetto, and heaptrack.
//!
//! The tests need the recorder (MALLARD_RECORDER has its path), a C++ compiler, and these programs.
//! MALLARD_SPEEDSCOPE is the directory with the page of speedscope, and MALLARD_PERFETTO is a
//! Python with the package perfetto. `./x test` provides all of them.

use crate::in_browser::in_browser;
use crate::support::Folder;
use mallard_trace::names::{is_wrapper, short};
use serde_json::Value;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// A program with twelve functions that allocate different numbers of bytes and blocks, two of them
/// through containers.
const PROGRAM: &str = r#"
#include <map>
#include <string>
#include <vector>
static char* volatile last;
static volatile unsigned long sum;
#define ALLOCATE(NAME, TIMES, BYTES) \
    __attribute__((noinline)) void NAME() { \
        for (int i = 0; i < TIMES; ++i) { last = new char[BYTES]; delete[] last; } \
    }
ALLOCATE(read_orders, 100, 9000)
ALLOCATE(parse_orders, 1500, 400)
ALLOCATE(sort_orders, 40, 11000)
ALLOCATE(find_customers, 350, 1000)
ALLOCATE(add_prices, 260, 1100)
ALLOCATE(print_bills, 1200, 180)
ALLOCATE(write_log, 190, 900)
ALLOCATE(send_mails, 130, 1000)
ALLOCATE(close_files, 70, 1300)
__attribute__((noinline)) void count_words() {
    std::vector<int> numbers;
    for (int i = 0; i < 9000; ++i) numbers.push_back(i);
    sum = sum + numbers.size();
}
__attribute__((noinline)) void index_names() {
    std::map<std::string, int> index;
    for (int i = 0; i < 2000; ++i) index["a name that is too long for a string itself " + std::to_string(i)] = i;
    sum = sum + index.size();
}
__attribute__((noinline)) char* keep(int bytes) { return new char[bytes]; }
__attribute__((noinline)) void leak() { for (int i = 0; i < 50; ++i) keep(1000 + i)[0] = 1; }
int main() {
    read_orders(); parse_orders(); sort_orders(); find_customers(); add_prices(); print_bills();
    write_log(); send_mails(); close_files(); count_words(); index_names(); leak();
}
"#;

/// Makes a directory with the trace `recorded.mallard` of [`PROGRAM`].
fn recorded() -> Folder {
    let folder = Folder::new();
    let source = folder.path("program.cpp");
    std::fs::write(&source, PROGRAM).unwrap();
    folder.compile_file("program", &source, &["-O1"]);
    let ran = folder.mallard(&["record", "-o", "recorded", "--", "./program"]);
    assert_eq!(ran.status(), 0, "{}", ran.errors());
    folder
}

/// Runs another program in the directory. Returns what it printed.
fn run(folder: &Folder, program: &str, arguments: &[&str]) -> String {
    let output = folder.command(program).args(arguments).stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{program} {arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the path of a tool that `./x test` names in the environment.
fn tool(name: &str) -> PathBuf {
    PathBuf::from(std::env::var_os(name).unwrap_or_else(|| panic!("{name} is not set")))
}

/// Returns the sums of a column by function, the largest first. The function of a call stack is the
/// innermost one that does more than pass an allocation on.
fn functions(folder: &Folder, column: &str) -> Vec<(String, i64)> {
    let mut sums: HashMap<String, i64> = HashMap::new();
    for line in folder.mallard(&["sites", "recorded", "--json", "--top", "0"]).out().lines() {
        let site: Value = serde_json::from_str(line).unwrap();
        let functions = site["functions"].as_array().unwrap();
        let names = || functions.iter().map(|f| f["function"].as_str().unwrap());
        let name = names().find(|name| !is_wrapper(name)).or(names().next()).unwrap();
        *sums.entry(short(name)).or_default() += site[column].as_i64().unwrap();
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|&(_, bytes)| -bytes);
    sums
}

#[test]
#[ignore = "needs the recorder and go; ./x test has them"]
fn pprof_lists_the_same_functions_in_the_same_order() {
    let folder = recorded();
    let ran = folder.mallard(&["export", "recorded", "--format", "pprof"]);
    assert_eq!(ran.status(), 0, "{}", ran.errors());
    for (column, kind) in
        [("bytes", "alloc_space"), ("allocs", "alloc_objects"), ("live_bytes", "inuse_space")]
    {
        let kind = format!("-sample_index={kind}");
        let all = "-nodefraction=0"; // otherwise pprof drops functions below 0.5 %
        let arguments = ["tool", "pprof", "-top", "-nodecount=10", all, "-unit=B", &kind];
        let text = run(&folder, "go", &[&arguments[..], &["recorded.pb.gz"]].concat());
        let table = text.lines().skip_while(|line| !line.contains("flat%")).skip(1);
        let expected = functions(&folder, column);
        let total: i64 = expected.iter().map(|(_, bytes)| bytes).sum();
        let sums: HashMap<String, i64> = expected.iter().cloned().collect();
        let expected = expected.into_iter().filter(|(_, bytes)| *bytes > 0).take(10);
        let mut lines = 0;
        for (line, (name, bytes)) in table.zip(expected) {
            // The columns are flat, flat%, sum%, cum, cum%, name.
            let words: Vec<&str> = line.split_whitespace().collect();
            let share: f64 = words[1].trim_end_matches('%').parse().unwrap();
            let shown = words[5..].join(" ").replace(" (inline)", "");
            // Functions with equal sums may be in any order.
            assert_eq!(sums.get(&shown), Some(&bytes), "{shown} in the place of {name}: {text}");
            assert!((share - 100.0 * bytes as f64 / total as f64).abs() < 0.1, "{name}: {text}");
            lines += 1;
        }
        assert!(lines >= if column == "live_bytes" { 1 } else { 10 }, "{text}");
    }
    let raw = run(&folder, "go", &["tool", "pprof", "-raw", "recorded.pb.gz"]);
    assert!(raw.contains("/program"), "a mapping: {raw}");
}

#[test]
#[ignore = "needs the recorder, chromium, chromium-driver, python3-selenium and speedscope; ./x test has them"]
fn speedscope_opens_an_exported_file() {
    let folder = recorded();
    let arguments = ["export", "recorded", "--format", "speedscope", "--weight", "peak"];
    assert_eq!(folder.mallard(&arguments).status(), 0);
    let words = [&tool("MALLARD_SPEEDSCOPE"), &folder.path("recorded.speedscope.json")];
    let Some(said) = in_browser("speedscope.py", &words.map(PathBuf::as_path)) else { return };
    assert!(said.matches("ok    ").count() >= 4, "{said}");
}

#[test]
#[ignore = "needs the recorder and Perfetto's Python package; ./x test has them"]
fn perfetto_reads_an_exported_file() {
    let folder = recorded();
    assert_eq!(folder.mallard(&["export", "recorded", "--format", "perfetto"]).status(), 0);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/read_perfetto.py");
    let python = tool("MALLARD_PERFETTO");
    let text =
        run(&folder, python.to_str().unwrap(), &[script.to_str().unwrap(), "recorded.pftrace"]);
    let read: Value = serde_json::from_str(&text).unwrap();
    let totals = &folder.manifest("recorded.mallard")["totals"]["sites"];
    assert_eq!(read["unknown_fields"], 0, "{read}");
    assert_eq!(read["allocated"], totals["bytes"], "{read}");
    assert_eq!(read["at_peak"], totals["peak_bytes"], "{read}");
    assert_eq!(read["live_max"], totals["peak_bytes"], "{read}");
    assert!(read["functions"].to_string().contains("index_names"), "{read}");
    assert_eq!(read["broken_references"], 0, "{read}");
}

/// Returns the figures that heaptrack_print prints: calls, bytes at the peak, and bytes that
/// leaked. heaptrack_print rounds bytes to 3 digits or more, with a unit of 1,000.
fn printed(folder: &Folder, file: &str) -> (i64, f64, f64) {
    let arguments =
        ["--disable-builtin-suppressions", "--disable-embedded-suppressions", "-a0", "-p0", "-T0"];
    let text = run(folder, "heaptrack_print", &[&arguments[..], &["-f", file]].concat());
    let after = |title: &str| -> String {
        let line = text.lines().find_map(|line| line.strip_prefix(title)).expect(title);
        line.trim().split([' ', '(']).next().unwrap().to_string()
    };
    let bytes = |title: &str| -> f64 {
        let text = after(title);
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let factor = match &text[digits.len()..] {
            "B" | "" => 1.0,
            "K" => 1e3,
            "M" => 1e6,
            "G" => 1e9,
            unit => panic!("the unit {unit} in {text}"),
        };
        digits.parse::<f64>().unwrap() * factor
    };
    let calls = after("calls to allocation functions:").parse().unwrap();
    (calls, bytes("peak heap memory consumption:"), bytes("total memory leaked:"))
}

#[test]
#[ignore = "needs heaptrack; ./x test has it"]
fn heaptrack_and_mallard_stats_agree_on_calls_peak_and_leaked_bytes() {
    let folder = Folder::new();
    let script = "my %h; $h{$_} = $_ x 10 for 1..20000; my @a = sort keys %h; print scalar @a";
    run(&folder, "heaptrack", &["-r", "-o", "trace", "perl", "-e", script]);
    // heaptrack uses the same command to interpret a raw file.
    let interpret = "zstd -dc trace.raw.zst | /usr/lib/heaptrack/libexec/heaptrack_interpret | zstd -q > whole.zst";
    run(&folder, "sh", &["-c", interpret]);
    let (calls, peak, leaked) = printed(&folder, "whole.zst");
    assert!(calls > 20_000);
    for file in ["trace.raw.zst", "whole.zst"] {
        let ran = folder.mallard(&["import", file, "--force"]);
        assert_eq!(ran.status(), 0, "{}", ran.errors());
        assert!(ran.errors().contains("imported from heaptrack"), "{}", ran.errors());
        let name = file.split('.').next().unwrap();
        let manifest = folder.manifest(&format!("{name}.mallard"));
        assert_eq!(manifest["counts"]["allocations"], calls, "{file}");
        let totals = &manifest["totals"]["sites"];
        for (ours, theirs) in [(&totals["peak_bytes"], peak), (&totals["live_bytes"], leaked)] {
            let ours = ours.as_f64().unwrap();
            assert!((ours - theirs).abs() <= 0.005 * ours, "{file}: {ours} and {theirs}");
        }
        let stats = folder.mallard(&["stats", name]).out();
        assert!(stats.contains("no threads, no lifetimes finer than 10 ms"), "{stats}");
        assert!(!stats.contains("by another thread"), "{stats}");
        let sites = folder.mallard(&["sites", name, "--top", "3", "--depth", "0"]).out();
        assert!(sites.contains("Perl_"), "{sites}");
    }
}
