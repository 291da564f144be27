//! Tests that a trace can be made or read without paths, arguments, environment and host.

use crate::support::golden;
use mallard_trace::import::{import, Options};
use mallard_trace::tables::schema::{MODULES, PROCESSES};
use mallard_trace::{RunNotes, Trace};

#[test]
fn a_redacted_trace_contains_file_names_instead_of_paths() {
    let notes = serde_json::json!({
        "program": "/home/me/secret/app", "arguments": ["app", "--key", "k"], "host": "pad",
        "folder": "/home/me", "environment": {"A": "b"}, "peak_rss": 7, "cpu": "EPYC", "warnings": ["text"]
    });
    let notes: RunNotes = serde_json::from_value(notes).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let stream = folder.path().join("a.stream");
    std::fs::write(&stream, golden()).unwrap();
    let import_to = |name: &str, redact| {
        let options = Options { redact, notes: notes.clone(), ..Options::default() };
        import(&stream, &folder.path().join(name), &options, &mut |_| ()).unwrap()
    };
    for trace in [import_to("a.mallard", true), import_to("b.mallard", false).redacted()] {
        let texts = |schema, column| trace.table(schema).unwrap().texts(column).unwrap();
        assert_eq!(texts(&MODULES, "path"), ["orders of the day"]);
        assert_eq!(texts(&PROCESSES, "path"), ["orders"]);
        let kept = serde_json::json!(trace.manifest().notes);
        let expected = serde_json::json!({
            "program": "app", "peak_rss": 7, "cpu": "EPYC",
            "redacted": ["paths", "arguments", "environment", "host"]
        });
        assert_eq!(kept, expected);
    }
    let whole = Trace::open(&folder.path().join("b.mallard")).unwrap();
    assert!(whole.table(&MODULES).unwrap().texts("path").unwrap()[0].starts_with("/usr/bin/"));
}
