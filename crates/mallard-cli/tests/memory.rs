//! Tests how `mallard record` and `stats` divide the resident memory of real programs into parts.
//!
//! The tests need `libmallard-record.so`, whose path is in MALLARD_RECORDER, and a C compiler. `./x
//! test` builds the recorder and runs them.

use crate::support::Folder;
use mallard_trace::residency::{rows, split, Cause, Row};
use mallard_trace::tables::schema::SAMPLES;
use mallard_trace::Trace;
use std::path::Path;

/// Records one of the programs in `programs/memory`.
fn recorded(name: &str, compiler: &[&str]) -> (Folder, Trace) {
    let folder = Folder::new();
    let file = format!("tests/programs/memory/{name}.c");
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let program = folder.compile_file(name, &file, compiler);
    let ran = folder.mallard(&["record", "-o", name, "--", &program]);
    assert_eq!(ran.status(), 0, "{}", ran.errors());
    let trace = Trace::open(&folder.path(&format!("{name}.mallard"))).unwrap();
    (folder, trace)
}

/// Returns two distances for each moment, as shares of the resident memory: how far the sum of the
/// parts is from the resident memory, and how far the live part is from the live bytes of all
/// sites. The programs write to all memory that they allocate, so the second distance shows whether
/// blocks and pages were read at the same time.
fn distances(trace: &Trace) -> Vec<(f64, f64)> {
    let samples = trace.table(&SAMPLES).unwrap();
    let column = |name| samples.i64s(name).unwrap();
    let (times, resident, live) = (column("t_ns"), column("rss"), column("live_bytes"));
    let distance = |row: Row| {
        let sample = times.iter().position(|&t_ns| t_ns == row.t_ns).expect("a sample");
        let parts = row.parts.named();
        assert!(parts.iter().all(|&(_, bytes)| bytes >= 0), "{row:?}");
        let sum: i64 = parts.iter().map(|&(_, bytes)| bytes).sum();
        let share = |bytes: i64| bytes.abs() as f64 / resident[sample] as f64;
        (share(sum - resident[sample]), share(row.parts.live - live[sample]))
    };
    rows(trace).unwrap().into_iter().map(distance).collect()
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn memory_reports_name_the_cause_for_four_programs_and_their_parts_add_up() {
    let mut distances_of_all = Vec::new();
    for (name, cause, sentence) in [
        ("leak", Cause::Growing, "a leak"),
        ("fragment", Cause::Fragmented, ": fragmentation"),
        ("keep", Cause::Kept, ": kept by the allocator"),
        ("use", Cause::Used, ": used"),
    ] {
        let (folder, trace) = recorded(name, &[]);
        let memory = &trace.manifest().memory;
        assert_eq!(memory.cause, cause, "{name}: {memory:?}");
        assert!(memory.share > 0.3, "{name}: {memory:?}");
        assert_eq!(memory.rounding, "glibc");
        let stats = folder.mallard(&["stats", name]).out();
        assert!(stats.contains(sentence), "{stats}");
        assert_eq!(stats.contains("only growing"), name == "leak", "{stats}");
        assert_eq!(stats.contains("forget"), name == "leak", "{stats}");
        distances_of_all.extend(distances(&trace));
    }
    let number = distances_of_all.len();
    assert!(number >= 200, "only {number} moments");
    let worst = distances_of_all.iter().fold((0.0f64, 0.0f64), |worst, distance| {
        (worst.0.max(distance.0), worst.1.max(distance.1))
    });
    assert!(worst.0 < 0.05, "{worst:?}");
    // While a program grows quickly, the samples of the system and the events are not from exactly
    // the same moment.
    let near = distances_of_all.iter().filter(|distance| distance.1 < 0.05).count();
    assert!(near * 100 >= number * 95, "{near} of {number}");
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn the_parts_of_resident_memory_match_what_the_program_did() {
    const MIB: i64 = 1 << 20;
    let near = |bytes: i64, expected: i64| (bytes - expected).abs() < expected / 10;
    // The program has 60,000 blocks of 1,000 bytes, and 8 bytes of rounding for each.
    let (_folder, trace) = recorded("use", &[]);
    // At half of the duration, the program only reads. At the peak, it may have begun to free
    // blocks.
    let half = split(&trace, &[trace.manifest().totals.duration_ns / 2]).unwrap();
    assert!(near(half.live[0], 60_000_000) && near(half.rounding[0], 480_000), "{half:?}");
    assert!(half.fragmented[0] + half.kept[0] < 2 * MIB, "{half:?}");
    // 15,000 of 240,000 blocks of 200 bytes stay. glibc uses 208 bytes for each.
    let (_folder, trace) = recorded("fragment", &[]);
    let end = trace.manifest().memory.end.parts;
    assert!(near(end.live, 3_000_000) && near(end.fragmented, 47_000_000), "{end:?}");
    // The array of addresses is a static variable of the program.
    assert!(near(end.stacks, 240_000 * 8), "{end:?}");
    // Nothing changes after the last event, so the two moments are equal.
    let duration = trace.manifest().totals.duration_ns;
    let moments: Vec<i64> = rows(&trace).unwrap().iter().map(|row| row.t_ns).collect();
    let split = split(&trace, &moments).unwrap();
    for at in (0..moments.len()).filter(|&at| moments[at] > duration) {
        assert_eq!(split.live[at], end.live);
    }
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn the_memory_of_the_recorder_is_not_attributed_to_the_program() {
    let (folder, trace) = recorded("use", &[]);
    let recorder = trace.manifest().memory.peak.parts.recorder as u64;
    let all = trace.manifest().notes.peak_rss.unwrap();
    assert!(recorder > 0 && recorder < all, "{recorder} of {all}");
    let report = folder.mallard(&["report", "--json", "use"]).out();
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    let shown = report["totals"]["peak_rss"].as_u64().unwrap();
    assert!(shown > 60_000_000 && shown <= all - recorder + (1 << 20), "{shown} of {all}");
    let sentences = report["sentences"].to_string();
    assert!(sentences.contains(", without the recorder: "), "{sentences}");
    let stats = folder.mallard(&["stats", "use"]).out();
    assert!(stats.contains(", of which the recorder uses "), "{stats}");
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn a_sampled_recording_reports_that_it_cannot_show_where_memory_is() {
    let folder = Folder::new();
    let perl = ["--", "perl", "-e", "my @a = map { 'x' x 100 } 1..50000"];
    let ran = folder.mallard(&[&["record", "-o", "some", "--sample", "16KiB"], &perl[..]].concat());
    assert_eq!(ran.status(), 0, "{}", ran.errors());
    let stats = folder.mallard(&["stats", "some"]).out();
    assert!(stats.contains("where it is     unknown: only some blocks were recorded"), "{stats}");
    let trace = Trace::open(&folder.path("some.mallard")).unwrap();
    assert!(split(&trace, &[0, 1]).unwrap().is_empty());
}
