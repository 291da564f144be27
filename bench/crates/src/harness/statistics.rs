//! Summarises repeated measurements as a median and a spread.

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    pub median: f64,
    /// The 10th percentile of the samples. (`high` is the 90th.) With fewer than ten samples, `low`
    /// and `high` are the smallest and the largest.
    pub low: f64,
    pub high: f64,
    pub runs: usize,
}

/// Summarises samples. Requires at least one sample.
pub fn summarise(samples: &[f64]) -> Summary {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let median = if sorted.len() % 2 == 1 {
        sorted[middle]
    } else {
        (sorted[middle - 1] + sorted[middle]) / 2.0
    };
    Summary {
        median,
        low: percentile(&sorted, 0.1),
        high: percentile(&sorted, 0.9),
        runs: sorted.len(),
    }
}

/// Returns the value at the nearest rank of a slice that is sorted and not empty.
pub fn percentile<T: Copy>(sorted: &[T], fraction: f64) -> T {
    let rank = (fraction * sorted.len() as f64).ceil().max(1.0) as usize;
    sorted[(rank - 1).min(sorted.len() - 1)]
}
