//! Computes means and ranges of figures.

/// Returns the geometric mean of the positive values. `None` if no value is positive.
pub fn geometric_mean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let logs: Vec<f64> = values.into_iter().filter(|v| *v > 0.0).map(f64::ln).collect();
    (!logs.is_empty()).then(|| (logs.iter().sum::<f64>() / logs.len() as f64).exp())
}

/// The median, the smallest and the largest of some figures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    pub median: f64,
    pub least: f64,
    pub most: f64,
    pub count: usize,
}

impl Range {
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Range> {
        let mut all: Vec<f64> = values.into_iter().collect();
        all.sort_by(f64::total_cmp);
        let count = all.len();
        let middle = (*all.get(count.checked_sub(1)? / 2)? + all[count / 2]) / 2.0;
        Some(Range { median: middle, least: all[0], most: all[count - 1], count })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_a_range_is_computed() {
        assert_eq!(Range::of([3.0, 1.0, 2.0]).unwrap().median, 2.0);
        assert_eq!(Range::of([1.0, 2.0]).unwrap().median, 1.5);
        assert_eq!(Range::of([]), None);
    }
}
