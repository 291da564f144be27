//! Tests `mallard diff` with streams that the tests write, and with real programs.

use crate::support::{seeds, Folder};
use mallard_trace::format::{clock, op, pack, pack_stack, Header, Record, RECORD_BYTES};
use mallard_trace::import::{import, Options};
use mallard_trace::stream::{Compression, Writer};
use mallard_trace::RunNotes;
use serde_json::{json, Value};
use std::collections::BTreeMap;
use std::fs;

const MODULE_START: u64 = 0x40_0000;

/// A simulated program, which consists of its blocks and notes about it.
struct Program<'a> {
    /// For each block: return addresses, outermost first; size; whether it is freed immediately.
    blocks: &'a [(&'a [u64], u64, bool)],
    program: &'a str,
    sample_bytes: u64,
    build_id: &'a str,
}

impl Default for Program<'_> {
    fn default() -> Self {
        Program { blocks: &[], program: "/bin/a", sample_bytes: 0, build_id: "01" }
    }
}

impl Program<'_> {
    /// Makes the trace of the program. All code is in one module without symbols.
    fn trace(&self, folder: &Folder, name: &str) {
        let header = Header {
            clock_hz: 1_000_000_000,
            start: 1000,
            start_unix: 0,
            clock: clock::MONOTONIC,
            pid: 1,
            sample_bytes: self.sample_bytes,
        };
        let mut writer = Writer::new(Vec::new(), &header, Compression::None).unwrap();
        let start = Record { stack: 1, ..Record::new(op::PROCESS, 1000, 1, 0) };
        writer.text(start, &format!("start {}", self.program)).unwrap();
        let module = Record { stack: 1, ..Record::new(op::MODULE, 1000, MODULE_START, 0) };
        writer.text(module, &format!("500000 0 {} /lib/liba.so", self.build_id)).unwrap();
        for (at, (frames, size, is_freed)) in (0u64..).zip(self.blocks) {
            let (t, addr) = (2000 + 10 * at, 0x1000_0000 + 0x1000 * at);
            let mut events = event(op::MALLOC, t, addr, *size, frames);
            if *is_freed {
                events.extend(event(op::FREE, t + 5, addr, 0, frames));
            }
            writer.piece(1, 0, &events).unwrap();
        }
        let stream = folder.path("made.stream");
        fs::write(&stream, writer.finish(1 << 40).unwrap()).unwrap();
        let notes = RunNotes {
            program: Some(self.program.into()),
            arguments: Some(vec!["a".into()]),
            ..RunNotes::default()
        };
        let options = Options { force: true, notes, ..Options::default() };
        import(&stream, &folder.path(name), &options, &mut |_| ()).unwrap();
    }
}

/// Encodes an event of malloc's family with its whole call stack.
fn event(op: u8, t: u64, addr: u64, size: u64, frames: &[u64]) -> Vec<u8> {
    let stack = pack_stack(0, frames.len() as u16);
    let record = Record { t, addr, what: pack(size, 4, op, 0), stack, dur: 0 };
    let mut bytes = record.to_bytes().to_vec();
    bytes.extend(frames.iter().flat_map(|frame| (MODULE_START + frame).to_ne_bytes()));
    bytes.resize(bytes.len().next_multiple_of(RECORD_BYTES), 0);
    bytes
}

fn diff(folder: &Folder, options: &[&str]) -> Value {
    let arguments = [&["diff", "before.mallard", "after.mallard", "--json"], options].concat();
    let ran = folder.mallard(&arguments);
    assert_eq!(ran.status(), 0, "{}", ran.errors());
    serde_json::from_str(&ran.out()).unwrap()
}

/// Returns a random number (splitmix64).
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// Returns blocks at random call stacks.
fn random_blocks(state: &mut u64) -> Vec<(Vec<u64>, u64, bool)> {
    let number = next(state) % 60;
    let mut block = || {
        let depth = next(state) % 4;
        let frames = (0..depth).map(|_| 0x10 + next(state) % 3).collect();
        (frames, next(state) % 500, next(state) % 2 == 0)
    };
    (0..number).map(|_| block()).collect()
}

/// Computes the expected result, which is the bytes, blocks, leaked bytes and calls for each call
/// stack.
fn model(blocks: &[(Vec<u64>, u64, bool)]) -> BTreeMap<Vec<u64>, [i64; 4]> {
    let mut sums: BTreeMap<Vec<u64>, [i64; 4]> = BTreeMap::new();
    for (frames, size, is_freed) in blocks {
        let size = *size as i64;
        let sum = sums.entry(frames.clone()).or_default();
        sum[0] += size;
        sum[1] += 1;
        sum[2] += if *is_freed { 0 } else { size };
        sum[3] += if *is_freed { 2 } else { 1 };
    }
    sums
}

#[test]
fn diff_computes_the_same_numbers_as_a_model_for_random_traces() {
    let folder = Folder::new();
    for seed in seeds(20) {
        let mut state = seed;
        let mut sums = Vec::new();
        for name in ["before.mallard", "after.mallard"] {
            let blocks = random_blocks(&mut state);
            let borrowed: Vec<(&[u64], u64, bool)> =
                blocks.iter().map(|(f, size, freed)| (f.as_slice(), *size, *freed)).collect();
            Program { blocks: &borrowed, ..Program::default() }.trace(&folder, name);
            sums.push(model(&blocks));
        }
        let found = diff(&folder, &["--top", "0", "--sort", "bytes"]);
        let mut listed = BTreeMap::new();
        let mut last = u64::MAX;
        for site in found["changed"].as_array().unwrap() {
            let frames: Vec<u64> = site["functions"]
                .as_array()
                .unwrap()
                .iter()
                .rev()
                .map(|f| f["function"].as_str().unwrap().strip_prefix("liba.so+0x").unwrap())
                .map(|offset| u64::from_str_radix(offset, 16).unwrap())
                .collect();
            let numbers = |of: &str| {
                ["bytes", "blocks", "leaked", "calls"].map(|name| site[of][name].as_i64().unwrap())
            };
            let change = site["change"]["bytes"].as_i64().unwrap().unsigned_abs();
            assert!(change <= last, "{site}");
            last = change;
            let state = site["state"].as_str().unwrap().to_string();
            listed.insert(frames, (state, numbers("before"), numbers("after")));
        }
        let mut expected = BTreeMap::new();
        for frames in sums[0].keys().chain(sums[1].keys()) {
            let (before, after) = (sums[0].get(frames), sums[1].get(frames));
            let bytes = |sum: Option<&[i64; 4]>| sum.map_or(0, |sum| sum[0]);
            let state = match (before, after) {
                (None, _) => "new",
                (_, None) => "gone",
                _ if bytes(after) > bytes(before) => "grown",
                _ if bytes(after) < bytes(before) => "shrunk",
                _ => continue,
            };
            let numbers = |sum: Option<&[i64; 4]>| sum.copied().unwrap_or_default();
            expected.insert(frames.clone(), (state.to_string(), numbers(before), numbers(after)));
        }
        assert_eq!(listed, expected, "seed {seed}");
        let all: std::collections::BTreeSet<_> = sums[0].keys().chain(sums[1].keys()).collect();
        assert_eq!(found["sites"]["all"], all.len(), "seed {seed}");
    }
}

#[test]
fn gates_pass_or_report_which_one_failed_and_by_how_much() {
    let folder = Folder::new();
    Program { blocks: &[(&[1], 1000, false)], ..Program::default() }
        .trace(&folder, "before.mallard");
    Program { blocks: &[(&[1], 1000, false), (&[2], 100, false)], ..Program::default() }
        .trace(&folder, "after.mallard");
    let gates = |gates: &[&str]| {
        let gates: Vec<&str> = gates.iter().flat_map(|gate| ["--gate", gate]).collect();
        folder.mallard(&[&["diff", "before", "after"], &gates[..]].concat())
    };
    let passed = gates(&["peak<+11%", "leaked<=+100", "blocks<+2"]);
    assert_eq!(passed.status(), 0, "{}", passed.errors());
    assert!(passed.out().contains("gate leaked<=+100 passed: leaked grew by 100 B (10 %)"));
    let failed = gates(&["leaked<=+100", "peak<+5%", "blocks<=+0"]);
    failed.refuses(1, "peak<+5% failed: peak grew by 100 B (10 %), from 1000 B to 1.1 KiB");
    assert!(failed.errors().contains("; blocks<=+0 failed"), "{}", failed.errors());
    assert!(failed.errors().contains("--sort peak"), "{}", failed.errors());
    assert!(failed.out().contains("gate peak<+5% failed"), "{}", failed.out());
    gates(&["peak<5%"]).refuses(2, "is not a valid gate: the limit needs a sign");
    gates(&["size<+5%"]).refuses(2, "there is no figure 'size'");
    // These streams contain no CPU time.
    gates(&["time<+5%"]).refuses(3, "does not contain time");
    gates(&["rss<+5%"]).refuses(3, "does not contain rss");
}

#[test]
fn traces_that_are_not_fully_comparable_are_compared_with_a_note() {
    let folder = Folder::new();
    let blocks: &[(&[u64], u64, bool)] = &[(&[1], 1000, false)];
    Program { blocks, ..Program::default() }.trace(&folder, "before.mallard");
    let compare = |after: Program| {
        after.trace(&folder, "after.mallard");
        let ran = folder.mallard(&["diff", "before", "after"]);
        assert_eq!(ran.status(), 0, "{}", ran.errors());
        ran.out()
    };
    let same = compare(Program { blocks, program: "/other/folder/a", ..Program::default() });
    assert!(same.contains("no call stack of 1 differs in bytes"), "{same}");
    assert!(!same.contains("note:"), "{same}");
    let other = compare(Program { blocks, program: "/bin/b", ..Program::default() });
    assert!(other.contains("note: the programs are different: a and b"), "{other}");
    let sampled = compare(Program { blocks, sample_bytes: 64, ..Program::default() });
    assert!(sampled.contains("every block and one block every 64 bytes"), "{sampled}");
    // In another build, offsets are different and have no meaning. All code without names in a
    // module counts as one function.
    let moved = Program { blocks: &[(&[9], 1000, false)], build_id: "02", ..Program::default() };
    let moved = compare(moved);
    assert!(moved.contains("no call stack of 1 differs"), "{moved}");
}

#[test]
fn empty_tiny_or_corrupt_traces_give_a_table_or_an_error() {
    let folder = Folder::new();
    Program::default().trace(&folder, "before.mallard");
    Program { blocks: &[(&[], 5, true)], ..Program::default() }.trace(&folder, "after.mallard");
    let one = folder.mallard(&["diff", "before", "after"]);
    assert_eq!(one.status(), 0, "{}", one.errors());
    assert!(one.out().contains("1 new, 0 gone, 0 grown, 0 shrunk"), "{}", one.out());
    assert!(one.out().contains("(no call stack)"), "{}", one.out());
    let none = folder.mallard(&["diff", "before", "before"]);
    assert!(none.out().contains("no call stack of 0 differs in bytes"), "{}", none.out());

    folder.mallard(&["diff", "before", "missing"]).refuses(3, "there is no trace missing.mallard");
    folder.mallard(&["diff", "before"]).refuses(2, "");
    let sites = folder.path("after.mallard/sites.parquet");
    let whole = fs::read(&sites).unwrap();
    fs::write(&sites, &whole[..whole.len() / 2]).unwrap();
    folder.mallard(&["diff", "before", "after"]).refuses(3, "sites.parquet is corrupt");
    let manifest = folder.path("after.mallard/manifest.json");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, text.replacen("\"schema\": 1", "\"schema\": 99", 1)).unwrap();
    folder.mallard(&["diff", "before", "after"]).refuses(3, "has version 99 of the tables");
}

/// A program whose allocations depend only on its argument.
const DETERMINISTIC: &str = r#"
#include <stdlib.h>
#include <string.h>
static void* all[1000];
__attribute__((noinline)) static void* make(size_t n)
{
    void* volatile p = malloc(n);
    memset(p, 1, n);
    return p;
}
__attribute__((noinline)) static void* more(size_t n) { void* volatile p = make(n); return p; }
int main(int argc, char** argv)
{
    (void)argv;
    for (int round = 0; round < 20; ++round) {
        for (int i = 0; i < 1000; ++i)
            all[i] = i % 3 == 0 ? more(i + 1) : make(i + 1);
        for (int i = round; i < 1000; ++i)
            free(all[i]);
    }
    if (argc > 1)
        more(100000);
    return 0;
}
"#;

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn two_traces_of_a_deterministic_program_have_equal_counts() {
    let folder = Folder::new();
    let program = folder.compile("same", DETERMINISTIC, &[]);
    for name in ["before", "after", "more"] {
        let arguments = ["record", "-q", "-o", name, "--", &program, "x"];
        let arguments = &arguments[..if name == "more" { 7 } else { 6 }];
        assert_eq!(folder.mallard(arguments).status(), 0);
    }
    for metric in ["bytes", "blocks", "peak", "leaked", "calls"] {
        let found = diff(&folder, &["--sort", metric]);
        assert_eq!(found["sites"]["changed"], 0, "{found}");
        assert_eq!(found["before"][metric], found["after"][metric], "{found}");
        assert_eq!(found["notes"], json!([]));
    }
    let gate = ["diff", "before", "after", "--gate", "bytes<=+0", "--gate", "rss<+50%"];
    assert_eq!(folder.mallard(&gate).status(), 0);
    let more = folder.mallard(&["diff", "before", "more", "--gate", "leaked<+50KiB"]);
    more.refuses(1, "leaked<+50KiB failed: leaked grew by 98 KiB");
    assert!(more.out().contains("had different arguments"), "{}", more.out());
    assert!(more.out().contains("more  same.c:"), "{}", more.out());
}
