//! Compares two benchmark results that have only a median and a range. Their runs were not
//! interleaved, so a paired test with probabilities is not possible.

use crate::rows::row::Row;
use mallard_measure::verdict::Verdict;

/// The minimum difference at which two medians count as different.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// The bound if both results have a spread and the spreads do not overlap.
    pub percent: f64,
    /// The bound if a result comes from one run, because the noise of such a result is unknown.
    pub single_run_percent: f64,
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds { percent: 3.0, single_run_percent: 10.0 }
    }
}

/// Compares the result `to` with the result `from`. A lower figure is a gain. The verdict is "not
/// measurable" if a result has no figure.
///
/// The results differ if the distance of their medians exceeds the bound and their ranges do not
/// overlap. If a result comes from one run, only the medians count.
pub fn verdict(from: &Row, to: &Row, bounds: Bounds) -> Verdict {
    let (Some(a), Some(b)) = (from.median, to.median) else {
        return Verdict::NotMeasurable;
    };
    let single = of_one_run(from) || of_one_run(to);
    let bound = if single { bounds.single_run_percent.max(bounds.percent) } else { bounds.percent };
    let apart = if a == 0.0 && b == 0.0 { 0.0 } else { a.max(b) / a.min(b) - 1.0 };
    let overlap = from.low() <= to.high() && to.low() <= from.high();
    // Adds 1e-9, because figures have four digits, so that 103 does not count as more than 3 %
    // above 100.
    if (overlap && !single) || apart <= bound / 100.0 + 1e-9 {
        Verdict::NoDifference
    } else if b < a {
        Verdict::Gain
    } else {
        Verdict::Loss
    }
}

/// Returns whether the result has no spread. This also holds for a ratio of sums, although it is
/// computed from many runs.
fn of_one_run(row: &Row) -> bool {
    row.runs <= 1 || row.metric.starts_with("ratio_to_")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(median: f64, low: f64, high: f64, runs: u64) -> Row {
        serde_json::from_value(serde_json::json!({"suite": "s", "case": "c", "contender": "x",
            "metric": "ns_per_op", "median": median, "low": low, "high": high, "runs": runs}))
        .unwrap()
    }

    fn of(a: Row, b: Row) -> Verdict {
        verdict(&a, &b, Bounds::default())
    }

    #[test]
    fn figures_that_differ_by_more_than_the_threshold_are_different() {
        assert_eq!(of(row(10.0, 9.8, 10.2, 9), row(11.0, 10.8, 11.2, 9)), Verdict::Loss);
        assert_eq!(of(row(11.0, 10.8, 11.2, 9), row(10.0, 9.8, 10.2, 9)), Verdict::Gain);
    }

    #[test]
    fn figures_with_overlapping_ranges_are_not_different() {
        assert_eq!(of(row(10.0, 9.0, 14.0, 9), row(13.0, 12.0, 15.0, 9)), Verdict::NoDifference);
    }

    #[test]
    fn medians_within_the_threshold_are_not_different() {
        assert_eq!(
            of(row(100.0, 99.9, 100.1, 9), row(103.0, 102.9, 103.1, 9)),
            Verdict::NoDifference
        );
        assert_eq!(of(row(100.0, 99.9, 100.1, 9), row(103.1, 103.0, 103.2, 9)), Verdict::Loss);
    }

    #[test]
    fn figures_of_a_single_run_need_a_larger_difference() {
        assert_eq!(
            of(row(100.0, 100.0, 100.0, 1), row(109.0, 109.0, 109.0, 1)),
            Verdict::NoDifference
        );
        assert_eq!(of(row(100.0, 100.0, 100.0, 1), row(111.0, 111.0, 111.0, 1)), Verdict::Loss);
    }

    #[test]
    fn zero_is_a_valid_figure() {
        assert_eq!(of(row(0.0, 0.0, 0.0, 9), row(0.0, 0.0, 0.0, 9)), Verdict::NoDifference);
        assert_eq!(of(row(0.0, 0.0, 0.0, 9), row(1.0, 1.0, 1.0, 9)), Verdict::Loss);
    }

    #[test]
    fn a_result_without_a_figure_is_not_measurable() {
        let mut failed = row(10.0, 10.0, 10.0, 1);
        failed.median = None;
        assert_eq!(of(row(10.0, 9.8, 10.2, 9), failed), Verdict::NotMeasurable);
    }
}
