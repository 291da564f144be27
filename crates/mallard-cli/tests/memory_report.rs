//! Tests `mallard report` with traces that the tests make: the content of the object, the written
//! files, and the errors for traces that are corrupt or incomplete.

use crate::streams::lives::lives;
use crate::streams::{self, call, StreamOf};
use crate::support::{length, Folder, Ran, MALLARD};
use mallard_trace::format::{flag, op, Header, Record, FLAGS_SHIFT, RECORD_BYTES};
use mallard_trace::import::{import, Options};
use mallard_trace::tables::schema;
use mallard_trace::Trace;
use serde_json::Value;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;

/// Makes the trace a.mallard from a stream.
fn folder_with(stream: &[u8]) -> (Folder, Trace) {
    let folder = Folder::new();
    fs::write(folder.path("a.stream"), stream).unwrap();
    let (from, to) = (folder.path("a.stream"), folder.path("a.mallard"));
    let trace = import(&from, &to, &Options::default(), &mut |_| ()).unwrap();
    (folder, trace)
}

/// Returns the object of the report.
fn object(folder: &Folder) -> Value {
    let ran = folder.mallard(&["report", "a", "--json"]);
    assert_eq!(ran.status(), 0, "{}", ran.errors());
    serde_json::from_str(&ran.out()).unwrap()
}

fn object_of(stream: &[u8]) -> Value {
    object(&folder_with(stream).0)
}

fn numbers(value: &Value) -> Vec<i64> {
    value.as_array().unwrap().iter().map(|number| number.as_i64().unwrap()).collect()
}

fn sum(value: &Value) -> i64 {
    numbers(value).iter().sum()
}

fn notes(object: &Value) -> String {
    object["method"]["notes"].to_string()
}

/// Returns the names of the functions of a node, the innermost first.
fn functions(object: &Value, node: i64) -> Vec<String> {
    let (up, frames) = (numbers(&object["stacks"]["up"]), numbers(&object["stacks"]["frame"]));
    let names = numbers(&object["frames"]["func"]);
    let mut node = node as usize;
    let mut functions = Vec::new();
    while node != 0 {
        let name = names[frames[node] as usize] as usize;
        functions.push(object["strings"][name].as_str().unwrap().to_string());
        node -= up[node] as usize;
    }
    functions
}

/// Checks that each subtree of the call stacks is contiguous, so that the parent of a node is the
/// node before it, or an ancestor of that node.
fn check_order(object: &Value) {
    let up = numbers(&object["stacks"]["up"]);
    assert_eq!(up[0], 0);
    let mut path: Vec<i64> = vec![0];
    for (node, up) in up.iter().enumerate().skip(1) {
        let parent = node as i64 - up;
        while *path.last().expect("a parent that is above") != parent {
            path.pop();
        }
        path.push(node as i64);
    }
}

/// Decodes a text in base64.
fn decoded(text: &Value) -> Vec<u8> {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.decode(text.as_str().unwrap()).unwrap()
}

#[test]
fn the_report_lists_the_sites_of_the_trace_with_their_call_stacks() {
    for seed in 0..5 {
        let (folder, trace) = folder_with(&lives(seed, 400).stream);
        let object = object(&folder);
        check_order(&object);
        let sites = &object["sites"];
        let rows = trace.sites().unwrap();
        assert_eq!((numbers(&sites["node"]).len(), &sites["rest"]), (rows.len(), &Value::from(-1)));
        let stacks = trace.stacks().unwrap();
        let mut expected: Vec<(Vec<String>, i64, i64, i64)> = rows
            .iter()
            .map(|row| {
                let names = stacks.functions(row.stack);
                let names = names.iter().map(|f| f.function.to_string()).collect();
                (names, row.bytes, row.allocs, row.at_peak_bytes)
            })
            .collect();
        let columns = ["node", "bytes", "count", "peak"].map(|name| numbers(&sites[name]));
        let mut found: Vec<_> = (0..rows.len())
            .map(|i| {
                (functions(&object, columns[0][i]), columns[1][i], columns[2][i], columns[3][i])
            })
            .collect();
        expected.sort();
        found.sort();
        assert_eq!(found, expected, "seed {seed}");
    }
}

#[test]
fn the_figures_in_the_report_data_are_consistent() {
    let (folder, trace) = folder_with(&lives(7, 2000).stream);
    let object = object(&folder);
    let whole = &trace.manifest().totals.sites;
    let (totals, sites) = (&object["totals"], &object["sites"]);
    let all = [("bytes", whole.bytes), ("count", whole.allocs), ("short", whole.short_lived)];
    for (name, expected) in all.into_iter().chain([
        ("never", whole.live_bytes),
        ("cross", whole.cross_thread_frees),
        ("frees", whole.frees),
        ("peak", whole.peak_bytes),
    ]) {
        assert_eq!(sum(&sites[name]), expected, "{name}");
    }
    assert_eq!(totals["peak_bytes"], whole.peak_bytes);
    assert_eq!(sum(&object["heat"]["all"]), whole.allocs);
    assert_eq!(sum(&object["threads"]["allocs"]), whole.allocs);
    assert_eq!(sum(&object["threads"]["frees"]), whole.frees);
    let frees: i64 = numbers(&object["frees"]).chunks(3).map(|triple| triple[2]).sum();
    assert_eq!(frees, whole.frees);
    let live = numbers(&object["time"]["live"]);
    assert_eq!(live.iter().max(), Some(&whole.peak_bytes));
    assert_eq!(live.last(), Some(&whole.live_bytes));
    let detail = &object["detail"];
    let last: i64 =
        detail["live"].as_array().unwrap().iter().map(|live| *numbers(live).last().unwrap()).sum();
    assert_eq!(last, whole.live_bytes);
    // Each decoded map has one byte for each cell.
    let map = &object["map"];
    let cells = map["cells"].as_u64().unwrap() as usize;
    assert!(map["fill"].as_array().unwrap().iter().all(|fill| decoded(fill).len() == cells));
    for runs in detail["map"].as_array().unwrap() {
        let pairs = decoded(runs);
        let count: usize = pairs.chunks(2).map(|pair| usize::from(pair[0])).sum();
        assert!(pairs.is_empty() || count == cells, "{count} of {cells}");
    }
}

#[test]
fn each_summary_sentence_has_figures_and_one_names_the_function_with_the_most_memory_at_the_peak() {
    let mut stream = StreamOf::new();
    stream.text(op::NAME, 1000, 7, 0, 0, "parse_unit");
    let event = |op, t, addr, size, number| mallard_trace::format::Record {
        t,
        addr,
        what: mallard_trace::format::pack(size, 4, op, 0),
        stack: number,
        dur: 0,
    };
    for i in 0..10 {
        stream.0.record(&event(op::ALLOCATE, 1000 + i, 4096 * (i + 1), 1024, 7)).unwrap();
    }
    stream.0.record(&event(op::DEALLOCATE, 1_001_000, 4096, 0, 7)).unwrap();
    let object = object_of(&stream.finish());
    let sentences: Vec<&str> =
        object["sentences"].as_array().unwrap().iter().map(|s| s.as_str().unwrap()).collect();
    assert_eq!(
        sentences,
        [
            "In 1.0 ms, the program allocated 10 KiB in 10 blocks, half of them at most 1.0 KiB large.",
            "At most 10 KiB were in use at the same time, after 9 ns; `parse_unit` held 100 % of that.",
            "0.0 % of the blocks were freed before their thread allocated another; 90 % were never \
             freed (9.0 KiB, most of it by `parse_unit`).",
            "Half of the freed blocks lived at most 1.0 ms, and 99 % at most 1.0 ms.",
        ]
    );
}

#[test]
fn traces_with_no_event_or_a_single_event_produce_a_report_page() {
    let (folder, _) = folder_with(&StreamOf::new().finish());
    let empty = object(&folder);
    assert_eq!(empty["sentences"][0], "The program allocated nothing while it was recorded.");
    assert_eq!((numbers(&empty["time"]["live"]), sum(&empty["heat"]["all"])), (vec![0], 0));
    assert_eq!(folder.mallard(&["report", "a"]).status(), 0);

    let mut stream = StreamOf::new();
    stream.piece(1, &[call(op::MALLOC, 1000, 0x1000, 100, 0, &[0x10])]);
    let (folder, _) = folder_with(&stream.finish());
    let single = object(&folder);
    let first = single["sentences"][0].as_str().unwrap();
    assert!(first.contains("allocated 100 B in 1 block."), "{first}");
    assert_eq!(numbers(&single["sites"]["bytes"]), [100]);
    assert_eq!(folder.mallard(&["report", "a.mallard"]).status(), 0);
}

#[test]
fn lost_events_sampling_and_a_truncated_event_log_are_mentioned() {
    let mut stream = StreamOf::new();
    stream.piece(1, &[call(op::FREE, 1001, 0x1000, 0, 0, &[0x10])]);
    stream.record(op::LOST, 1002, mallard_trace::format::loss::FULL, 0);
    let lost = object_of(&stream.finish());
    assert_eq!(
        lost["method"]["losses"][0].as_str().map(|what| &what[..31]),
        Some("the allocations of 1 block that")
    );

    let mut stream = StreamOf::new();
    let mut cut = call(op::MALLOC, 1001, 0x1000, 100, 0, &[0x10]);
    let mut record = Record::from_bytes(&cut);
    record.what |= u64::from(flag::STACK_CUT) << FLAGS_SHIFT;
    cut[..RECORD_BYTES].copy_from_slice(&record.to_bytes());
    stream.piece(1, &[cut]);
    let incomplete = object_of(&stream.finish());
    assert_eq!(incomplete["method"]["losses"][0], "1 call stack lacks outer functions");

    let header = Header { sample_bytes: 1000, ..streams::header() };
    let mut stream = StreamOf::with(&header);
    stream.piece(1, &[call(op::MALLOC, 1001, 0x1000, 100, 0, &[0x10])]);
    let sampled = object_of(&stream.finish());
    assert_eq!(sampled["method"]["sampled_bytes"], 1000);
    assert!(notes(&sampled).contains("Only samples were recorded"), "{}", notes(&sampled));
    assert_eq!(sampled["bound"], "");

    let whole = lives(3, 300).stream;
    let cut = object_of(&whole[..whole.len() - 100]);
    assert_eq!(cut["method"]["stream"], "cut");
    assert!(notes(&cut).contains("The recording is incomplete"), "{}", notes(&cut));
}

#[test]
fn each_corrupt_table_is_an_error_and_no_page_is_written() {
    let (folder, trace) = folder_with(&lives(1, 300).stream);
    for table in ["events/part-0000", "sites", "stacks", "frames", "modules", "threads", "samples"]
    {
        let path = trace.folder().join(format!("{table}.parquet"));
        let whole = fs::read(&path).unwrap();
        fs::write(&path, &whole[..whole.len() / 2]).unwrap();
        folder.mallard(&["report", "a"]).refuses(3, "is corrupt");
        fs::remove_file(&path).unwrap();
        if !["modules", "samples"].contains(&table) {
            // The file must exist, because the manifest counts rows in this table.
            folder.mallard(&["report", "a"]).refuses(3, "the file is missing");
        }
        fs::write(&path, whole).unwrap();
    }
    assert!(!folder.path("a.html").exists());
    assert_eq!(folder.mallard(&["report", "a"]).status(), 0);
}

#[test]
fn arbitrary_bytes_in_a_table_produce_a_page_or_a_three_line_error() {
    let (folder, trace) = folder_with(&lives(2, 300).stream);
    let mut random = streams::Random(1);
    for _ in 0..length(60) {
        let table = schema::ALL[random.below(schema::ALL.len())];
        let part = if table.has_parts { "/part-0000" } else { "" };
        let path = trace.folder().join(format!("{}{part}.parquet", table.name));
        let whole = fs::read(&path).unwrap();
        let mut bytes = whole.clone();
        for _ in 0..=random.below(4) {
            let at = random.below(bytes.len());
            bytes[at] = random.below(256) as u8;
        }
        fs::write(&path, bytes).unwrap();
        let ran = folder.mallard(&["report", "a", "-o", "-"]);
        if ran.status() != 0 {
            ran.refuses(3, "corrupt");
        }
        fs::write(&path, whole).unwrap();
    }
}

#[test]
fn traces_of_a_newer_version_and_missing_traces_are_errors() {
    let (folder, trace) = folder_with(&StreamOf::new().finish());
    let manifest = trace.folder().join("manifest.json");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, text.replacen("\"schema\": 1", "\"schema\": 9", 1)).unwrap();
    folder.mallard(&["report", "a"]).refuses(3, "has version 9 of the tables");
    folder.mallard(&["report", "b"]).refuses(3, "there is no trace");
}

#[test]
fn names_with_html_tags_or_invalid_utf_8_are_shown_as_text() {
    let mut stream = StreamOf::new();
    stream.thread(1, 1);
    stream.text(op::NAME, 1000, 7, 0, 0, "</script><img onerror>");
    let record = mallard_trace::format::Record {
        t: 1001,
        addr: 4096,
        what: mallard_trace::format::pack(64, 4, op::ALLOCATE, 0),
        stack: 7,
        dur: 0,
    };
    stream.piece(1, &[call(op::MALLOC, 1001, 0x1000, 100, 0, &[0x10])]);
    stream.0.record(&record).unwrap();
    let mut bytes = stream.finish();
    let at = bytes.windows(6).position(|window| window == b"worker").unwrap();
    bytes[at + 1] = 0xff;
    let (folder, trace) = folder_with(&bytes);
    let named = folder.0.path().join(OsStr::from_bytes(b"n\xe4me.mallard"));
    fs::rename(trace.folder(), &named).unwrap();
    let report = folder.command(MALLARD).arg("report").arg(&named).stdin(Stdio::null()).output();
    let ran = Ran(report.unwrap());
    assert_eq!(ran.status(), 0, "{}", ran.errors());
    let page = fs::read(folder.0.path().join(OsStr::from_bytes(b"n\xe4me.html"))).unwrap();
    let page = String::from_utf8(page).expect("a page in UTF-8");
    assert!(page.contains("\\u003c/script>\\u003cimg onerror>"));
    assert!(!page.contains("<img onerror") && page.contains("w\u{fffd}rker"));
}

#[test]
fn sites_beyond_the_maximum_of_a_page_are_summed_up() {
    const COUNT: u64 = 120_000;
    let mut stream = StreamOf::new();
    let mut events = Vec::new();
    for site in 0..COUNT {
        let frames = [0x1000 + site % 50, 0x10_0000 + site % 5000, 0x100_0000 + site * 16];
        let (t, addr) = (1000 + site * 100, 0x10_0000 + site * 64);
        events.push(call(op::MALLOC, t, addr, 1 + site % 60, 0, &frames));
    }
    for part in events.chunks(1000) {
        stream.piece(1, part);
    }
    let (folder, trace) = folder_with(&stream.finish());
    let object = object(&folder);
    let sites = &object["sites"];
    let whole = &trace.manifest().totals.sites;
    assert_eq!((sum(&sites["bytes"]), sum(&sites["count"])), (whole.bytes, whole.allocs));
    let listed = numbers(&sites["node"]).len();
    assert!((20_000..100_001).contains(&listed), "{listed}");
    assert_eq!(sites["rest"], listed as i64 - 1);
    assert!(notes(&object).contains("of 120,000 call stacks are listed"), "{}", notes(&object));
    assert_eq!(folder.mallard(&["report", "a"]).status(), 0);
    let size = fs::metadata(folder.path("a.html")).unwrap().len();
    assert!((3_000_000..5_000_000).contains(&size), "{size}");
}

#[test]
fn only_mallard_reports_are_overwritten() {
    let (folder, _) = folder_with(&lives(1, 100).stream);
    let made = folder.mallard(&["report", "a"]);
    assert!(made.out().contains("a.html (") && made.out().contains("next: "), "{}", made.out());
    assert_eq!(folder.mallard(&["report", "a"]).status(), 0);
    fs::write(folder.path("a.html"), "mine").unwrap();
    folder.mallard(&["report", "a"]).refuses(2, "exists and is not a report of mallard");
    assert_eq!(fs::read_to_string(folder.path("a.html")).unwrap(), "mine");
    assert_eq!(folder.mallard(&["report", "a", "--force"]).status(), 0);
    folder.mallard(&["report", "a", "-o", "."]).refuses(2, "is a directory");
    folder.mallard(&["report", "a", "-o", "no/such/b.html"]).refuses(3, "cannot write");
    let page = folder.mallard(&["report", "a", "-o", "-"]).out();
    assert_eq!(page.trim_end(), fs::read_to_string(folder.path("a.html")).unwrap().trim_end());
}

#[test]
fn a_full_disk_keeps_the_old_file() {
    let (folder, _) = folder_with(&lives(1, 2000).stream);
    assert_eq!(folder.mallard(&["report", "a"]).status(), 0);
    let before = fs::read(folder.path("a.html")).unwrap();
    let files = || fs::read_dir(folder.0.path()).unwrap().count();
    let count = files();
    // With a limit of 1 or 2 KiB for files, writing fails as on a full disk.
    let script = format!("trap '' XFSZ; ulimit -f 2; exec '{MALLARD}' report a");
    let ran = Ran(folder.command("sh").args(["-c", &script]).output().unwrap());
    ran.refuses(3, "cannot write");
    assert!(ran.errors().contains("what was there before is unchanged"), "{}", ran.errors());
    assert_eq!((fs::read(folder.path("a.html")).unwrap(), files()), (before, count));
}

#[test]
fn the_same_trace_produces_the_same_page() {
    let (folder, _) = folder_with(&lives(4, 2000).stream);
    let page = || folder.mallard(&["report", "a", "-o", "-"]).out();
    assert_eq!(page(), page());
}
