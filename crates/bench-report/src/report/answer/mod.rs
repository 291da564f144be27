//! Answers the questions of the report. Everything except the questions is computed from benchmark
//! results.

pub mod decision;
pub mod headline;
pub mod losses;
pub mod mallocs;
pub mod situations;
pub mod standing;
pub mod summaries;
pub mod talk;

use crate::rows::row::Row;
use crate::statistics::Range;
use crate::tables::{number, times};
use crate::unpaired::{verdict, Bounds};
use mallard_measure::verdict::Verdict;

pub const NOT_MEASURED: &str = "not measured";

/// Formats the median and the range of some factors: `3.1× (2.0 to 6.3)`.
pub fn range_of_times(range: Option<Range>) -> String {
    range.map_or(NOT_MEASURED.to_string(), |r| match (number(r.least), number(r.most)) {
        (least, most) if least == most => times(r.median),
        (least, most) => format!("{} ({least} to {most})", times(r.median)),
    })
}

/// Formats a number of cells: `1 cell`, `2 cells`.
pub fn cells(count: usize) -> String {
    format!("{count} cell{}", if count == 1 { "" } else { "s" })
}

/// Returns whether a result is a loss compared with the result `base`.
pub fn is_loss(base: &Row, row: &Row) -> bool {
    verdict(base, row, Bounds::default()) == Verdict::Loss
}

/// Formats the first `most` names and the number of omitted names: `a; b and 3 more`.
pub fn named(names: &[String], most: usize) -> String {
    let shown = names.iter().take(most).cloned().collect::<Vec<_>>().join("; ");
    match names.len().saturating_sub(most) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
