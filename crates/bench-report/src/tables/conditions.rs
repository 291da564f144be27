//! Describes in words the conditions under which figures were measured.

use crate::rows::row::Row;
use std::collections::BTreeSet;

/// Describes the conditions, for example `work divided by 2^5 to 2^9, 12 of 66 figures of one run`.
/// Empty if no work was divided and every figure is a median of several runs.
pub fn words<'a>(rows: impl IntoIterator<Item = &'a Row>) -> String {
    let rows: Vec<&Row> = rows.into_iter().filter(|r| !r.metric.ends_with("rss_kib")).collect();
    let divided: BTreeSet<u32> = rows.iter().map(|r| r.divided_by()).collect();
    let mut parts = Vec::new();
    match (divided.first(), divided.last()) {
        (Some(&least), Some(&most)) if least == most && most > 0 => {
            parts.push(format!("work divided by 2^{most}"));
        }
        (Some(0), Some(&most)) if most > 0 => parts.push(format!("work divided by up to 2^{most}")),
        (Some(&least), Some(&most)) if most > 0 => {
            parts.push(format!("work divided by 2^{least} to 2^{most}"));
        }
        _ => {}
    }
    let figures = rows.iter().filter(|r| r.median.is_some()).count();
    match rows.iter().filter(|r| r.is_of_one_run()).count() {
        0 => {}
        single if single == figures => parts.push("of one run".to_string()),
        single => parts.push(format!("{single} of {figures} figures of one run")),
    }
    parts.join(", ")
}

/// Returns the conditions as a sentence. `None` if there are no special conditions.
pub fn sentence<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Option<String> {
    let words = words(rows);
    let first = words.chars().next()?.to_uppercase();
    Some(format!("{first}{}.", &words[1..]))
}

/// Returns `text; conditions`, or `text` if there are no special conditions.
pub fn after<'a>(text: String, rows: impl IntoIterator<Item = &'a Row>) -> String {
    match words(rows) {
        words if words.is_empty() => text,
        words => format!("{text}; {words}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(command: &str, runs: u64, metric: &str) -> Row {
        serde_json::from_value(serde_json::json!({"suite": "s", "case": "c", "contender": "x",
            "metric": metric, "median": 1, "runs": runs, "command": command}))
        .unwrap()
    }

    #[test]
    fn reduced_workloads_and_single_runs_are_mentioned() {
        let all = [row("x --less 7", 1, "ns_per_op"), row("x --less 9", 3, "ns_per_op")];
        assert_eq!(words(&all), "work divided by 2^7 to 2^9, 1 of 2 figures of one run");
        assert_eq!(words(&all[..1]), "work divided by 2^7, of one run");
        let whole = [row("x", 9, "ns_per_op"), row("x --less 4", 9, "ns_per_op")];
        assert_eq!(words(&whole), "work divided by up to 2^4");
        assert_eq!(sentence(&all[..1]).unwrap(), "Work divided by 2^7, of one run.");
    }

    #[test]
    fn full_workloads_with_many_runs_are_not_mentioned() {
        let whole = [row("x", 9, "ns_per_op"), row("x", 1, "peak_rss_kib")];
        assert_eq!((words(&whole).as_str(), sentence(&whole)), ("", None));
        assert_eq!(after("2.0".into(), &whole), "2.0");
    }
}
