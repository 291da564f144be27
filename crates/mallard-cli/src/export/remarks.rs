//! Writes remarks for the reader of an exported file about what the trace lacks.

use crate::output::missing::{incomplete, losses};
use mallard_trace::manifest::Manifest;

/// Returns sentences about what the trace lacks.
pub fn of(manifest: &Manifest) -> Vec<String> {
    let mut remarks: Vec<String> = manifest.origin().into_iter().collect();
    if manifest.counts.events == 0 {
        remarks.push("the trace has no event".to_string());
    }
    remarks.extend(losses(manifest).iter().map(|what| format!("the trace lacks {what}")));
    remarks.extend(incomplete(manifest));
    if manifest.stream.sample_bytes > 0 {
        remarks.push("the figures are estimates from samples".to_string());
    }
    remarks
}
