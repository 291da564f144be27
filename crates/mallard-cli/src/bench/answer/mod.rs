//! What the rows say: nothing here is written by hand but the questions.

pub mod decision;
pub mod headline;
pub mod losses;
pub mod mallocs;
pub mod situations;
pub mod standing;
pub mod summaries;
pub mod talk;

use super::experiment::Experiment;
use super::noise::{verdict, Bounds, Range, Verdict};
use super::row::Row;
use super::table::{facet, number, times, FACETS};

pub const NOT_MEASURED: &str = "not measured";

/// `3.1× (2.0 to 6.3)`
pub fn range_of_times(range: Option<Range>) -> String {
    range.map_or(NOT_MEASURED.to_string(), |r| match (number(r.least), number(r.most)) {
        (least, most) if least == most => times(r.median),
        (least, most) => format!("{} ({least} to {most})", times(r.median)),
    })
}

/// `1 cell`, `2 cells`
pub fn cells(count: usize) -> String {
    format!("{count} cell{}", if count == 1 { "" } else { "s" })
}

/// Whether a row is slower than another beyond noise.
pub fn is_slower(than: &Row, row: &Row) -> bool {
    verdict(than, row, Bounds::default()) == Some(Verdict::Slower)
}

/// `a; b and 3 more`
pub fn named(names: &[String], most: usize) -> String {
    let shown = names.iter().take(most).cloned().collect::<Vec<_>>().join("; ");
    match names.len().saturating_sub(most) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// The experiments that count once: no other variant of one whose correction is there.
pub fn counted<'a>(all: &[&'a Experiment]) -> Vec<&'a Experiment> {
    let key = |e: &Experiment| (e.suite.clone(), e.case.clone(), e.metric.clone(), e.threads);
    let corrected: std::collections::HashSet<_> =
        all.iter().filter(|e| e.variant == "corrected").map(|e| key(e)).collect();
    let counts = |e: &&&Experiment| {
        facet(&e.variant).is_empty() || e.variant == FACETS[0] || !corrected.contains(&key(e))
    };
    all.iter().filter(counts).copied().collect()
}
