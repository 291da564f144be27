//! Tests the formats of `mallard export` that show call stacks. The tests compare each exported
//! file with the output of `mallard sites --json` for the same trace.

use crate::support::proto::Message;
use crate::support::Folder;
use flate2::read::GzDecoder;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::Read;
use std::path::Path;

/// A program in heaptrack's interpreted form, in which functions may have any names. `inner` was
/// inlined into `outer (int)`, which `ma;in` calls. `plain` calls malloc through a wrapper.
const NAMES: &[u8] = b"v 10400 3\nX app\ns 6 /bin/a\ns 5 ma;in\ns b outer (int)\ns 5 inner\n\
    s 5 a.cpp\ns 9 no\xff UTF-8\ns 1b operator new(unsigned long)\ns 5 plain\n\
    i 1000 1 2 5 1\ni 2000 1 4 5 a 3 5 14\ni 3000 1 6\ni 4000 0 7\ni 5000 1 8\n\
    t 1 0\nt 2 1\nt 3 1\nt 5 1\nt 4 4\na 64 2\n+ 0\na 32 3\n+ 1\n- 1\nc a\n+ 1\na 8 5\n+ 2\n- 2\n+ 2\n- 0\nc 14\n";

/// Makes a directory with the trace `names.mallard`.
fn names() -> Folder {
    imported("names", NAMES)
}

fn imported(name: &str, bytes: &[u8]) -> Folder {
    let folder = Folder::new();
    fs::write(folder.path(name), bytes).unwrap();
    let ran = folder.mallard(&["import", name]);
    assert_eq!(ran.status(), 0, "{}", ran.errors());
    folder
}

/// Makes a directory with the trace `orders.mallard` from the golden stream, which lacks some
/// events.
fn orders() -> Folder {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec/trace_format.golden");
    let folder = Folder::new();
    fs::copy(golden, folder.path("orders.stream")).unwrap();
    assert_eq!(folder.mallard(&["import", "orders.stream"]).status(), 0);
    folder
}

fn sites(folder: &Folder, trace: &str) -> Vec<Value> {
    let text = folder.mallard(&["sites", trace, "--json", "--top", "0"]).out();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn sum(sites: &[Value], column: &str) -> i64 {
    sites.iter().map(|site| site[column].as_i64().unwrap()).sum()
}

/// The weights, each with the column of the table `sites` from which it is computed.
const WEIGHTS: [(&str, &str); 6] = [
    ("bytes", "bytes"),
    ("blocks", "allocs"),
    ("peak", "at_peak_bytes"),
    ("short", "short_lived"),
    ("never", "live_bytes"),
    ("cross", "cross_thread_frees"),
];

/// Returns what `mallard export` writes to stdout.
fn exported(folder: &Folder, trace: &str, format: &str, more: &[&str]) -> Vec<u8> {
    let begin = ["export", trace, "--format", format, "-o", "-"];
    let ran = folder.mallard(&[&begin[..], more].concat());
    assert_eq!(ran.status(), 0, "{}", ran.errors());
    ran.0.stdout
}

#[test]
fn folded_stacks_have_a_line_for_each_call_stack() {
    let folder = names();
    let text = String::from_utf8(exported(&folder, "names", "folded", &[])).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines,
        ["ma:in;no\u{fffd} UTF-8 100", "ma:in;outer ;inner 100", "ma:in;plain 16"],
        "{text}"
    );
    let full = String::from_utf8(exported(&folder, "names", "folded", &["--full"])).unwrap();
    assert!(full.contains("ma:in;outer (int);inner 100\n"), "{full}");
    assert!(full.contains("ma:in;plain;operator new(unsigned long) 16\n"), "{full}");
}

#[test]
fn the_totals_of_folded_stacks_equal_those_of_the_sites() {
    for (folder, trace) in [(names(), "names"), (orders(), "orders")] {
        let sites = sites(&folder, trace);
        for (weight, column) in WEIGHTS {
            let text = exported(&folder, trace, "folded", &["--weight", weight]);
            let text = String::from_utf8(text).unwrap();
            let numbers = text.lines().map(|line| line.rsplit_once(' ').unwrap().1);
            let numbers: Vec<i64> = numbers.map(|number| number.parse().unwrap()).collect();
            assert_eq!(numbers.iter().sum::<i64>(), sum(&sites, column), "{trace} {weight}");
            assert!(numbers.iter().all(|&number| number > 0), "{text}");
        }
    }
}

/// Decompresses and parses a profile of pprof.
fn profile(bytes: &[u8]) -> Message {
    let mut plain = Vec::new();
    GzDecoder::new(bytes).read_to_end(&mut plain).unwrap();
    Message::parse(&plain)
}

#[test]
fn the_totals_of_a_pprof_profile_equal_those_of_the_sites() {
    for (folder, trace) in [(names(), "names"), (orders(), "orders")] {
        let profile = profile(&exported(&folder, trace, "pprof", &["--weight", "never"]));
        let strings = profile.texts(6);
        assert_eq!(strings[0], "");
        let types: Vec<&str> = profile
            .messages(1)
            .iter()
            .map(|value_type| strings[value_type.number(1) as usize].as_str())
            .collect();
        let sites = sites(&folder, trace);
        let columns = [
            ("alloc_objects", "allocs"),
            ("alloc_space", "bytes"),
            ("inuse_objects", "live_allocs"),
            ("inuse_space", "live_bytes"),
            ("peak_space", "at_peak_bytes"),
            ("short_lived_objects", "short_lived"),
            ("cross_thread_objects", "cross_thread_frees"),
        ];
        for (name, column) in columns {
            let index = types.iter().position(|known| *known == name).expect(name);
            let values =
                profile.messages(2).iter().map(|s| s.numbers(2)[index] as i64).sum::<i64>();
            assert_eq!(values, sum(&sites, column), "{trace} {name}");
        }
        assert_eq!(types.len(), columns.len());
        assert_eq!(strings[profile.number(14) as usize], "inuse_space");
    }
}

#[test]
fn a_pprof_location_has_a_line_for_each_inlined_function() {
    let folder = names();
    let profile = profile(&exported(&folder, "names", "pprof", &["--full"]));
    let strings = profile.texts(6);
    let names: HashMap<u64, &str> = profile
        .messages(5)
        .iter()
        .map(|function| (function.number(1), strings[function.number(2) as usize].as_str()))
        .collect();
    let locations: HashMap<u64, Message> =
        profile.messages(4).into_iter().map(|location| (location.number(1), location)).collect();
    let mut stacks: Vec<Vec<Vec<(&str, u64)>>> = Vec::new();
    for sample in profile.messages(2) {
        let location = |id: u64| -> Vec<(&str, u64)> {
            let lines = locations[&id].messages(4);
            lines.iter().map(|line| (names[&line.number(1)], line.number(2))).collect()
        };
        stacks.push(sample.numbers(1).into_iter().map(location).collect());
    }
    let inner = vec![("inner", 10), ("outer (int)", 20)];
    assert!(stacks.contains(&vec![inner, vec![("ma;in", 1)]]), "{stacks:?}");
    let wrapper = vec![("operator new(unsigned long)", 0)];
    assert!(stacks.contains(&vec![wrapper, vec![("plain", 0)], vec![("ma;in", 1)]]), "{stacks:?}");
}

#[test]
fn a_speedscope_file_has_a_profile_for_each_weight() {
    for (folder, trace) in [(names(), "names"), (orders(), "orders")] {
        let bytes = exported(&folder, trace, "speedscope", &["--weight", "peak"]);
        let file: Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(file["$schema"], "https://www.speedscope.app/file-format-schema.json");
        assert_eq!(file["activeProfileIndex"], 2);
        let frames = file["shared"]["frames"].as_array().unwrap();
        let sites = sites(&folder, trace);
        let profiles = file["profiles"].as_array().unwrap();
        assert_eq!(profiles.len(), WEIGHTS.len());
        for (profile, (weight, column)) in profiles.iter().zip(WEIGHTS) {
            let weights = profile["weights"].as_array().unwrap();
            let samples = profile["samples"].as_array().unwrap();
            let total: i64 = weights.iter().map(|weight| weight.as_i64().unwrap()).sum();
            assert_eq!(total, sum(&sites, column), "{trace} {weight}");
            assert_eq!(profile["endValue"], total);
            assert_eq!(samples.len(), weights.len());
            let mut indices = samples.iter().flat_map(|sample| sample.as_array().unwrap());
            assert!(indices.all(|index| (index.as_u64().unwrap() as usize) < frames.len()));
        }
    }
    let folder = names();
    let file: Value =
        serde_json::from_slice(&exported(&folder, "names", "speedscope", &[])).unwrap();
    let frames = file["shared"]["frames"].as_array().unwrap();
    let inner = frames.iter().find(|frame| frame["name"] == "inner").unwrap();
    assert_eq!((inner["file"].as_str(), inner["line"].as_i64()), (Some("a.cpp"), Some(10)));
}

#[test]
fn a_perfetto_trace_has_counters_threads_and_the_heap() {
    for (folder, trace) in [(names(), "names"), (orders(), "orders")] {
        let file = Message::parse(&exported(&folder, trace, "perfetto", &[]));
        let packets = file.messages(1);
        assert_eq!(packets[0].number(13), 1, "the sequence begins");
        assert!(packets.iter().all(|packet| packet.number(10) == 1));
        let tracks: Vec<Message> = packets.iter().flat_map(|packet| packet.messages(60)).collect();
        let named = |name: &str| {
            let track = tracks.iter().find(|track| track.texts(2) == [name]);
            track.expect(name).number(1)
        };
        let values = |track: u64| -> Vec<u64> {
            let events = packets.iter().flat_map(|packet| packet.messages(11));
            events.filter(|e| e.number(11) == track).map(|e| e.number(30)).collect()
        };
        let text = fs::read_to_string(folder.path(&format!("{trace}.mallard/manifest.json")));
        let manifest: Value = serde_json::from_str(&text.unwrap()).unwrap();
        let totals = &manifest["totals"]["sites"];
        let live = values(named("live bytes"));
        assert_eq!(live.iter().max().copied(), totals["peak_bytes"].as_u64());
        assert_eq!(live.last().copied(), totals["live_bytes"].as_u64());
        assert!(tracks.iter().any(|track| !track.messages(4).is_empty()), "a thread");
        let sites = sites(&folder, trace);
        let mut allocated: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for dump in packets.iter().flat_map(|p| p.messages(37)).flat_map(|p| p.messages(5)) {
            let sums = allocated.entry(dump.texts(11)[0].clone()).or_default();
            for sample in dump.messages(2) {
                sums.0 += sample.number(2);
                sums.1 += sample.number(3);
            }
        }
        let (bytes, leaked) = (sum(&sites, "bytes") as u64, sum(&sites, "live_bytes") as u64);
        assert_eq!(allocated["malloc"], (bytes, bytes - leaked));
        assert_eq!(allocated["malloc at the peak"], (sum(&sites, "at_peak_bytes") as u64, 0));
    }
}

#[test]
fn an_export_reports_what_its_trace_lacks() {
    let folder = orders();
    for (format, file) in [
        ("folded", "orders.folded"),
        ("pprof", "orders.pb.gz"),
        ("speedscope", "orders.speedscope.json"),
        ("perfetto", "orders.pftrace"),
    ] {
        let ran = folder.mallard(&["export", "orders", "--format", format]);
        assert_eq!(ran.status(), 0, "{}", ran.errors());
        assert!(folder.path(file).is_file(), "{file}");
        assert!(ran.errors().contains("lacks 2 events"), "{}", ran.errors());
        assert!(ran.errors().contains("next: "), "{}", ran.errors());
    }
    let comments = profile(&fs::read(folder.path("orders.pb.gz")).unwrap());
    let strings = comments.texts(6);
    let comments: Vec<&String> =
        comments.numbers(13).iter().map(|&index| &strings[index as usize]).collect();
    assert!(comments.iter().any(|comment| comment.contains("lacks 2 events")));
    let origin = names().mallard(&["export", "names", "--format", "folded"]).errors();
    assert!(origin.contains("imported from heaptrack 1.4.0: no threads"), "{origin}");
}

#[test]
fn a_trace_without_events_is_exported_without_call_stacks() {
    let folder = imported("empty", b"v 10400 3\nX true\nc a\n");
    assert!(exported(&folder, "empty", "folded", &[]).is_empty());
    assert!(profile(&exported(&folder, "empty", "pprof", &[])).messages(2).is_empty());
    let file: Value =
        serde_json::from_slice(&exported(&folder, "empty", "speedscope", &[])).unwrap();
    assert_eq!(file["profiles"][0]["endValue"], 0);
    assert!(!exported(&folder, "empty", "perfetto", &[]).is_empty());
    let ran = folder.mallard(&["export", "empty", "--format", "folded"]);
    assert!(ran.errors().contains("the trace has no event"), "{}", ran.errors());
}

#[test]
fn a_corrupt_table_is_an_error_and_leaves_no_export_file() {
    let folder = names();
    fs::write(folder.path("names.mallard/stacks.parquet"), "no table").unwrap();
    for format in ["folded", "pprof", "speedscope", "perfetto"] {
        folder.mallard(&["export", "names", "--format", format]).refuses(3, "is corrupt");
    }
    let files = fs::read_dir(folder.0.path()).unwrap().count();
    assert_eq!(files, 2, "the file of heaptrack and the trace");
    folder.mallard(&["export", "names", "--format", "folded", "--weight", "w"]).refuses(2, "'w'");
}
