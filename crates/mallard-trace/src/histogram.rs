//! Counts sizes and lifetimes in buckets.

use std::sync::LazyLock;

/// The largest size in bytes whose bucket is a size class of Mallard. Larger sizes have logarithmic
/// buckets.
const CLASS_BYTES_MAX: u64 = 32768;
/// Number of logarithmic buckets for each power of two.
const STEPS: u64 = 4;

/// The upper bounds of the size classes, from spec/size_classes.csv.
static CLASSES: LazyLock<Vec<u64>> = LazyLock::new(|| {
    let table = include_str!("../../../spec/size_classes.csv");
    let bytes = |line: &str| line.split(',').nth(1).and_then(|bytes| bytes.parse().ok());
    table.lines().filter_map(bytes).collect()
});

/// Index of the size class, for each size in units of 8 bytes, rounded up.
static CLASS_OF: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let class = |size: u64| CLASSES.partition_point(|&bytes| bytes < size) as u8;
    (0..=CLASS_BYTES_MAX / 8).map(|units| class(units * 8)).collect()
});

/// Returns the bucket of a size. A larger size never has a smaller bucket number.
#[inline]
pub fn size_bucket(size: u64) -> u16 {
    if size <= CLASS_BYTES_MAX {
        u16::from(CLASS_OF[size.div_ceil(8) as usize])
    } else {
        CLASSES.len() as u16 + log_bucket(size) - log_bucket(CLASS_BYTES_MAX)
    }
}

/// Returns the largest size in a bucket.
pub fn size_bound(bucket: u16) -> u64 {
    let beyond = CLASSES.len() as u16;
    match CLASSES.get(usize::from(bucket)) {
        Some(&bytes) => bytes,
        None => log_bound(bucket - beyond + log_bucket(CLASS_BYTES_MAX)),
    }
}

/// Returns the logarithmic bucket of a number. Each power of two has four buckets, so the bound of
/// a bucket is at most 25 % above the numbers in it.
#[inline]
pub fn log_bucket(number: u64) -> u16 {
    if number < STEPS {
        return number as u16;
    }
    let log = u64::from(number.ilog2());
    ((log - 1) * STEPS + (number >> (log - 2)) % STEPS) as u16
}

/// Returns the largest number in a logarithmic bucket.
pub fn log_bound(bucket: u16) -> u64 {
    let bucket = u64::from(bucket);
    if bucket < STEPS {
        return bucket;
    }
    let log = bucket / STEPS + 1;
    let next = u128::from(STEPS + bucket % STEPS + 1) << (log - 2);
    (next - 1).min(u128::from(u64::MAX)) as u64
}

/// Counts by bucket. Most sites use only one or two buckets.
#[derive(Debug, Clone, Default)]
pub struct Histogram {
    /// Bucket and count, in the order in which the buckets first occurred.
    counts: Vec<(u16, f64)>,
    /// The index in `counts` of the most recently used bucket. The next count is often for the same
    /// bucket.
    last: usize,
}

impl Histogram {
    /// Counts `weight` in a bucket.
    #[inline]
    pub fn add(&mut self, bucket: u16, weight: f64) {
        match self.counts.get_mut(self.last) {
            Some((same, count)) if *same == bucket => *count += weight,
            _ => self.find(bucket, weight),
        }
    }

    /// Subtracts what `add` counted.
    pub fn remove(&mut self, bucket: u16, weight: f64) {
        self.add(bucket, -weight);
    }

    fn find(&mut self, bucket: u16, weight: f64) {
        match self.counts.iter().position(|&(same, _)| same == bucket) {
            Some(index) => {
                self.counts[index].1 += weight;
                self.last = index;
            }
            None => {
                self.last = self.counts.len();
                self.counts.push((bucket, weight));
            }
        }
    }

    /// Adds the counts of another histogram.
    pub fn merge(&mut self, other: &Histogram) {
        for &(bucket, weight) in &other.counts {
            self.find(bucket, weight);
        }
    }

    /// Returns the buckets whose count is not 0, sorted by bucket.
    pub fn sorted(&self) -> Vec<(u16, f64)> {
        // After `remove` has subtracted fractions, a sum may be slightly above or below 0.
        let has_counts = |&(_, count): &(u16, f64)| count > 1e-6;
        let mut counts: Vec<_> = self.counts.iter().copied().filter(has_counts).collect();
        counts.sort_unstable_by_key(|&(bucket, _)| bucket);
        counts
    }

    /// Returns the lowest bucket at which the cumulative count reaches `share` (0 to 1) of all
    /// counts. `None` if nothing was counted.
    pub fn quantile(&self, share: f64) -> Option<u16> {
        let counts = self.sorted();
        let total: f64 = counts.iter().map(|&(_, count)| count).sum();
        let mut sum = 0.0;
        let reaches = |&&(_, count): &&(u16, f64)| {
            sum += count;
            sum >= share * total
        };
        counts.iter().find(reaches).or(counts.last()).map(|&(bucket, _)| bucket)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_the_classes_of_the_specification() {
        assert_eq!(size_bound(size_bucket(1)), 8);
        assert_eq!(size_bound(size_bucket(24)), 24);
        assert_eq!(size_bound(size_bucket(25)), 32);
        assert_eq!(size_bound(size_bucket(32768)), 32768);
    }

    #[test]
    fn each_number_is_in_a_histogram_bucket_whose_bound_is_at_most_a_quarter_larger() {
        let mut last = 0;
        for shift in 0..60 {
            for step in 0..8u64 {
                let number = (1 << shift) + (step << shift) / 8;
                let bound = log_bound(log_bucket(number));
                assert!(
                    bound >= number && bound as f64 <= number as f64 * 1.25,
                    "{number} {bound}"
                );
                let bucket = size_bucket(number);
                assert!(bucket >= last && size_bound(bucket) >= number, "{number}");
                last = bucket;
            }
        }
        assert_eq!(log_bound(log_bucket(u64::MAX)), u64::MAX);
    }

    #[test]
    fn a_quantile_is_the_first_bucket_that_reaches_the_requested_share() {
        let mut histogram = Histogram::default();
        for number in 1..=100 {
            histogram.add(number, 1.0);
        }
        assert_eq!(histogram.quantile(0.5), Some(50));
        assert_eq!(histogram.quantile(0.99), Some(99));
        assert_eq!(Histogram::default().quantile(0.5), None);
    }
}
