//! Remarks for the reader of an exported file: what the trace lacks.

use crate::output::units::count;
use mallard_trace::manifest::Manifest;

/// Sentences about what the trace lacks.
pub fn of(manifest: &Manifest) -> Vec<String> {
    let mut remarks: Vec<String> = manifest.origin().into_iter().collect();
    if manifest.counts.events == 0 {
        remarks.push("the trace has no event".to_string());
    }
    match manifest.losses.all() {
        0 => {}
        1 => remarks.push("1 event is missing in the trace".to_string()),
        lost => remarks.push(format!("{} events are missing in the trace", count(lost))),
    }
    if manifest.stream.ending != "complete" {
        remarks.push(format!("the stream of the trace is {}", manifest.stream.ending));
    }
    if manifest.stream.sample_bytes > 0 {
        remarks.push("the figures are estimates from samples".to_string());
    }
    remarks
}
