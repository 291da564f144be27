//! Reads the advice on a program, which `mallard advise` saves in the directory of the trace.

use mallard_trace::Trace;
use serde_json::Value;
use std::fs;

/// The name of the file with the stored advice.
pub const FILE: &str = "advice.json";
/// The name of the file with what `mallard verify --trace` measured.
pub const VERIFIED: &str = "verified.json";
/// The version of the advice's JSON keys that a page can show.
const VERSION: u64 = 1;
/// The maximum size of the file. `mallard advise` writes no larger file.
const BYTES_MAX: u64 = 32 << 20;
/// The maximum number of changes from the matrix that a page lists.
const CHANGES_MAX: usize = 400;
/// The JSON members of the advice that a page shows unchanged.
const SHOWN: [&str; 14] = [
    "program",
    "verdict",
    "sentence",
    "min_gain",
    "budget_s",
    "took_s",
    "interrupted",
    "noisy",
    "bound",
    "cards",
    "forced",
    "undecided",
    "validity",
    "notes",
];

/// The advice of a trace.
#[derive(Default)]
pub struct Advice {
    /// The advice without the regions. `None` if there is no readable advice.
    pub shown: Option<Value>,
    /// The regions of the advice.
    pub regions: Vec<Value>,
    /// Notes on the advice for the reader.
    pub notes: Vec<String>,
}

impl Advice {
    /// Reads the advice of a trace. Corrupt advice leads to a note, and the report is still made.
    pub fn read(trace: &Trace) -> Advice {
        let path = trace.folder().join(FILE);
        match fs::metadata(&path) {
            Err(_) => return Advice::default(), // there is no saved advice
            Ok(meta) if meta.len() > BYTES_MAX => return Advice::unread("the file is too large"),
            Ok(_) => {}
        }
        let mut advice = match fs::read_to_string(&path) {
            Ok(text) => Advice::of(&text),
            Err(error) => Advice::unread(&error.to_string().to_lowercase()),
        };
        if let (Some(shown), Some(verified)) = (&mut advice.shown, verified(trace)) {
            shown["verified"] = verified;
        }
        advice
    }

    /// Parses a text of `mallard advise --json`.
    fn of(text: &str) -> Advice {
        let mut whole: Value = match serde_json::from_str(text) {
            Ok(whole) => whole,
            Err(_) => return Advice::unread("the file is not JSON"),
        };
        match whole["version"].as_u64() {
            Some(VERSION) => {}
            Some(version) => return Advice::unread(&format!("the file has version {version}")),
            None => return Advice::unread("the file has no version number"),
        }
        let regions = list(whole["regions"].take());
        let mut shown = serde_json::Map::new();
        for key in SHOWN {
            shown.insert(key.to_string(), whole[key].take());
        }
        let mut notes = Vec::new();
        let mut matrix = list(whole["matrix"].take());
        if matrix.len() > CHANGES_MAX {
            notes.push(format!(
                "The page lists {CHANGES_MAX} of the {} changes of the advice.",
                matrix.len()
            ));
            matrix.truncate(CHANGES_MAX); // measured changes come first
        }
        shown.insert("matrix".to_string(), Value::Array(matrix));
        Advice { shown: Some(without_nulls(Value::Object(shown))), regions, notes }
    }

    fn unread(why: &str) -> Advice {
        let note = format!(
            "The advice on the program could not be read: {why}. `mallard advise` makes a new one."
        );
        Advice { notes: vec![note], ..Advice::default() }
    }
}

/// Returns the result that `mallard verify --trace` measured. The page shows this result on the
/// card with the same title.
fn verified(trace: &Trace) -> Option<Value> {
    let path = trace.folder().join(VERIFIED);
    let is_small = fs::metadata(&path).is_ok_and(|meta| meta.len() < BYTES_MAX);
    let text = is_small.then(|| fs::read_to_string(&path).ok()).flatten()?;
    let verified: Value = serde_json::from_str(&text).ok()?;
    (verified["version"].as_u64() == Some(VERSION)).then(|| without_nulls(verified))
}

fn list(value: Value) -> Vec<Value> {
    match value {
        Value::Array(all) => all,
        _ => Vec::new(),
    }
}

/// Returns a value without the members that are null, to keep the page small.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let kept = members.into_iter().filter(|(_, value)| !value.is_null());
            kept.map(|(key, value)| (key, without_nulls(value))).collect()
        }
        Value::Array(all) => all.into_iter().map(without_nulls).collect(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn regions_and_null_members_are_removed_from_saved_advice() {
        let text = json!({"version": 1, "verdict": "leave", "cards": [{"title": "a", "how": null}],
            "matrix": [{"name": "AS4", "low": null}], "regions": [{"shown": "f"}], "sites": [1]});
        let advice = Advice::of(&text.to_string());
        let shown = advice.shown.unwrap();
        assert_eq!(shown["cards"], json!([{"title": "a"}]));
        assert_eq!(
            (&shown["matrix"], &shown["verdict"]),
            (&json!([{"name": "AS4"}]), &json!("leave"))
        );
        assert_eq!(advice.regions, [json!({"shown": "f"})]);
        assert!(shown.get("sites").is_none() && shown.get("regions").is_none());
        assert!(advice.notes.is_empty());
    }

    #[test]
    fn unreadable_advice_becomes_a_note_in_the_report() {
        for (text, why) in [
            ("", "not JSON"),
            ("[1", "not JSON"),
            ("[]", "no version"),
            ("{\"version\":2}", "has version 2"),
        ] {
            let advice = Advice::of(text);
            assert!(advice.shown.is_none() && advice.notes[0].contains(why), "{:?}", advice.notes);
        }
    }

    #[test]
    fn missing_or_mistyped_parts_of_saved_advice_are_empty_in_the_report() {
        let advice = Advice::of(r#"{"version":1,"regions":7,"matrix":"x"}"#);
        assert_eq!((advice.shown.unwrap()["matrix"].clone(), advice.regions), (json!([]), vec![]));
    }

    #[test]
    fn a_long_list_of_changes_is_truncated_with_a_note() {
        let matrix: Vec<_> = (0..500).map(|n| json!({"name": n})).collect();
        let advice = Advice::of(&json!({"version": 1, "matrix": matrix}).to_string());
        assert_eq!(advice.shown.unwrap()["matrix"].as_array().unwrap().len(), CHANGES_MAX);
        assert!(advice.notes[0].contains("400 of the 500"), "{:?}", advice.notes);
    }
}
