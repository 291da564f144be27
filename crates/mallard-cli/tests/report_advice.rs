//! Tests how `mallard report` shows the advice in the directory of a trace, and the regions of a
//! trace without advice.

use crate::streams::{call, StreamOf};
use crate::support::Folder;
use mallard_trace::format::op;
use mallard_trace::import::{import, Options};
use mallard_trace::regions::{find, Limits};
use mallard_trace::Trace;
use serde_json::{json, Value};
use std::fs;

const DOCUMENTS: u64 = 40;

/// Makes the trace a.mallard. In each of 40 calls, a function allocates two blocks and frees them.
/// In every tenth call, one more block stays.
fn folder_with_regions() -> (Folder, Trace) {
    let mut events = Vec::new();
    for document in 0..DOCUMENTS {
        let (t, addr) = (1000 + document * 1000, 0x10_0000 + document * 0x1000);
        // A stack is encoded as the number of frames that it shares with the stack before it, and
        // its new frames. Only 0x10 is shared, because each stack comes from another call of the
        // function 0x20.
        let (kept, frames): (u16, &[u64]) =
            if document == 0 { (0, &[0x10, 0x20]) } else { (1, &[0x20]) };
        events.push(call(op::MALLOC, t, addr, 64, kept, frames));
        events.push(call(op::MALLOC, t + 10, addr + 0x100, 100, 2, &[0x30]));
        if document % 10 == 0 {
            events.push(call(op::MALLOC, t + 20, addr + 0x200, 8, 3, &[]));
        }
        events.push(call(op::FREE, t + 30, addr + 0x100, 0, 2, &[]));
        events.push(call(op::FREE, t + 40, addr, 0, 2, &[]));
        events.push(call(op::MALLOC, t + 50, addr + 0x300, 8, 1, &[]));
    }
    let mut stream = StreamOf::new();
    stream.piece(1, &events);
    let folder = Folder::new();
    fs::write(folder.path("a.stream"), stream.finish()).unwrap();
    let (from, to) = (folder.path("a.stream"), folder.path("a.mallard"));
    let trace = import(&from, &to, &Options::default(), &mut |_| ()).unwrap();
    (folder, trace)
}

fn object(folder: &Folder) -> Value {
    let ran = folder.mallard(&["report", "a", "--json"]);
    assert_eq!(ran.status(), 0, "{}", ran.errors());
    serde_json::from_str(&ran.out()).unwrap()
}

fn sum(column: &Value) -> u64 {
    column.as_array().unwrap().iter().map(|number| number.as_u64().unwrap()).sum()
}

#[test]
fn a_report_without_advice_shows_regions_computed_from_the_events() {
    let (folder, trace) = folder_with_regions();
    let found = find(&trace, Limits::default()).unwrap().all;
    let object = object(&folder);
    assert_eq!(object["advice"], Value::Null);
    let shown = object["regions"].as_array().unwrap();
    assert!(!shown.is_empty());
    assert_eq!(shown.len(), found.len());
    for (shown, found) in shown.iter().zip(&found) {
        assert_eq!(shown["name"], found.shown);
        assert_eq!(shown["instances"], found.instances);
        assert_eq!(shown["escapes"], found.escapes);
        assert_eq!(shown["lanes"]["t0"].as_array().unwrap().len(), found.lanes.len());
        let of_lanes: u64 = found.lanes.iter().map(|lane| lane.escapes).sum();
        assert_eq!(sum(&shown["lanes"]["escapes"]), of_lanes);
    }
    let documents = shown.iter().find(|of| of["instances"] == DOCUMENTS).expect("the documents");
    assert_eq!(documents["escapes"], 4);
}

#[test]
fn a_report_shows_the_saved_advice_with_the_regions_that_it_used() {
    let (folder, trace) = folder_with_regions();
    let advice = json!({"version": 1, "verdict": "leave", "sentence": "Leave it.",
        "cards": [{"title": "Leave it", "how": null}], "matrix": [],
        "regions": [{"shown": "</script><img onerror>", "instances": 3, "lanes": [
            {"thread": 1, "t0": 5, "t1": 9, "blocks": 2, "bytes": 64, "escapes": 1, "teardown_ns": 1.0}]}]});
    fs::write(trace.folder().join("advice.json"), advice.to_string()).unwrap();
    let object = object(&folder);
    assert_eq!(object["advice"]["cards"], json!([{"title": "Leave it"}]));
    let region = &object["regions"][0];
    assert_eq!((&region["instances"], &region["lanes"]["took"]), (&json!(3), &json!([4])));
    let page = folder.mallard(&["report", "a", "-o", "-"]).out();
    assert!(page.contains("\\u003c/script>\\u003cimg onerror>") && !page.contains("<img onerror"));
}

#[test]
fn less_decisive_advice_does_not_replace_saved_advice_and_reports_it() {
    let (folder, trace) = folder_with_regions();
    let earlier =
        json!({"version": 1, "verdict": "leave", "sentence": "Leave it.", "interrupted": false});
    fs::write(trace.folder().join("advice.json"), earlier.to_string()).unwrap();
    let ran = folder.mallard(&["advise", "a", "--no-try", "--budget", "1ms"]);
    assert_eq!(ran.status(), 0, "{}", ran.errors());
    assert!(ran.out().contains("It is not decided whether"), "{}", ran.out());
    let command = "; mallard report a.mallard shows it";
    let is_note = |line: &str| line.starts_with("  note: the earlier") && line.ends_with(command);
    assert!(ran.out().lines().any(is_note), "{}", ran.out());
    assert_eq!(object(&folder)["advice"]["sentence"], "Leave it.");
}

#[test]
fn results_of_verify_are_saved_with_the_advice_and_shown_in_the_report() {
    let (folder, trace) = folder_with_regions();
    let verify = ["verify", "--trace", "a", "--before", "true 1", "--after", "true 2"];
    let verify = [&verify[..], &["--budget", "2s"]].concat();
    folder.mallard(&verify).refuses(3, "has no advice with a card 1");
    let decided = json!({"version": 1, "cards": [{"title": "An arena"}, {"title": "A pool"}]});
    fs::write(trace.folder().join("advice.json"), decided.to_string()).unwrap();
    folder
        .mallard(&[&verify[..], &["--card", "3"]].concat())
        .refuses(3, "has no advice with a card 3");
    assert_eq!(object(&folder)["advice"]["verified"], Value::Null);
    let ran = folder.mallard(&verify); // on a busy machine, even equal programs may differ
    assert!(ran.status() <= 1, "{}", ran.errors());
    let verified = &object(&folder)["advice"]["verified"];
    assert_eq!((&verified["card"], &verified["after"]), (&json!("An arena"), &json!("true 2")));
    assert!(verified["cpu"]["verdict"].is_string() && verified["runs"].is_u64(), "{verified}");
    assert!(verified["peak_rss_bytes"][1].is_number(), "{verified}");
    // Undecided advice predicts nothing. It does not even predict that nothing can be saved.
    let advice = json!({"version": 1, "cards": [{"title": "Not decided", "action": "undecided"}]});
    fs::write(trace.folder().join("advice.json"), advice.to_string()).unwrap();
    let ran = folder.mallard(&verify);
    assert!(ran.out().contains("note: the advice is undecided and predicts"), "{}", ran.out());
    fs::write(trace.folder().join("advice.json"), decided.to_string()).unwrap();
    // A corrupt result does not hide the advice.
    fs::write(trace.folder().join("verified.json"), "{").unwrap();
    let advice = &object(&folder)["advice"];
    assert_eq!(
        (&advice["verified"], &advice["cards"][1]["title"]),
        (&Value::Null, &json!("A pool"))
    );
}

#[test]
fn corrupt_or_newer_advice_becomes_a_note_on_the_page() {
    let (folder, trace) = folder_with_regions();
    for (text, why) in [
        ("{\"version\": 1, \"cards\"", "the file is not JSON"),
        ("{\"version\": 7}", "the file has version 7"),
        ("\u{0}", "the file is not JSON"),
    ] {
        fs::write(trace.folder().join("advice.json"), text).unwrap();
        let object = object(&folder);
        assert_eq!(object["advice"], Value::Null);
        let notes = object["method"]["notes"].to_string();
        assert!(notes.contains(why) && notes.contains("mallard advise"), "{notes}");
        assert!(!object["regions"].as_array().unwrap().is_empty());
    }
}
