//! Computes D, V, L, U, C and F: six measures of how a program, or one of its sites, uses memory.
//!
//! Each measure has one function that computes it. The function [`explain`] describes a measure in
//! words. D, V, L, U and C are from John Lakos ("Local ('arena') memory allocators", ACCU 2017).
//! Bleaney added F.

pub use crate::explanations::{explain, Explanation, EXPLANATIONS};

use crate::slices::SLICES;
use serde::{Deserialize, Serialize};

/// The minimum number of observations for which a measure has a value. With fewer observations, the
/// output is "too few".
pub const OBSERVATIONS_MIN: i64 = 1000;
/// Size of a page, in bytes.
pub const PAGE_BYTES: u64 = 4096;
/// Number of bootstrap resamples for each confidence interval.
const REPETITIONS: usize = 400;

/// A measure with its 95 % confidence interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The value; `None` if there are too few observations, or if the stream lacks the data.
    pub value: Option<f64>,
    /// The lower bound of the interval.
    pub low: Option<f64>,
    /// The upper bound of the interval.
    pub high: Option<f64>,
    /// Number of observations.
    pub n: i64,
}

impl Estimate {
    fn none(n: i64) -> Self {
        Estimate { n, ..Estimate::default() }
    }

    /// Returns whether there are too few observations for a value.
    pub fn is_too_few(&self) -> bool {
        self.n < OBSERVATIONS_MIN
    }

    /// Makes an estimate. Its 95 % interval contains the central 95 % of the values in
    /// `repetitions`.
    fn of(n: i64, value: f64, mut repetitions: Vec<f64>) -> Self {
        repetitions.sort_unstable_by(f64::total_cmp);
        let at = |share: f64| {
            let index = (share * (repetitions.len() as f64 - 1.0)).round();
            repetitions.get(index as usize).copied()
        };
        // Rounding might put the value outside the interval, so `min` and `max` extend the
        // interval.
        let (low, high) = (at(0.025), at(0.975));
        Estimate {
            value: Some(value),
            low: low.map(|low| low.min(value)),
            high: high.map(|high| high.max(value)),
            n,
        }
    }
}

/// Computes D: calls for each millisecond of CPU time. `calls` and `cpu_ns` have one number for
/// each time slice. The value is `None` if no CPU time is known.
pub fn density(n: i64, calls: &[f64; SLICES], cpu_ns: &[f64; SLICES]) -> Estimate {
    let ratio = |calls: f64, ns: f64| calls / (ns / 1e6);
    let slices: Vec<(f64, f64)> = calls.iter().copied().zip(cpu_ns.iter().copied()).collect();
    let used: Vec<_> = slices.into_iter().filter(|&(calls, ns)| calls > 0.0 || ns > 0.0).collect();
    let sum = |picked: &mut dyn Iterator<Item = (f64, f64)>| {
        picked.fold((0.0, 0.0), |sum, slice| (sum.0 + slice.0, sum.1 + slice.1))
    };
    let (all_calls, all_ns) = sum(&mut used.iter().copied());
    if n < OBSERVATIONS_MIN || all_ns <= 0.0 {
        return Estimate::none(n);
    }
    let mut random = Random::new(n as u64);
    let repetitions = (0..REPETITIONS).filter_map(|_| {
        let mut picked = used.iter().map(|_| used[random.below(used.len())]);
        let (calls, ns) = sum(&mut picked);
        (ns > 0.0).then(|| ratio(calls, ns))
    });
    let repetitions = repetitions.collect();
    Estimate::of(n, ratio(all_calls, all_ns), repetitions)
}

/// Computes V: the entropy of counts, in bits.
pub fn variation(n: i64, counts: &[f64]) -> Estimate {
    if n < OBSERVATIONS_MIN {
        return Estimate::none(n);
    }
    let total: f64 = counts.iter().sum();
    // In a sampled stream, one observation stands for several calls. The width of the interval must
    // depend on the number of observations, `n`.
    let scale = n as f64 / total;
    let mut random = Random::new(n as u64);
    let repeat = |_| {
        let again: Vec<f64> = counts.iter().map(|&count| random.poisson(count * scale)).collect();
        entropy(&again)
    };
    let repetitions = (0..REPETITIONS).map(repeat).collect();
    Estimate::of(n, entropy(counts), repetitions)
}

/// Returns the entropy of counts, in bits.
pub(crate) fn entropy(counts: &[f64]) -> f64 {
    let total: f64 = counts.iter().sum();
    let share = |count: f64| count / total;
    let bits = |count: f64| -share(count) * share(count).log2();
    counts.iter().filter(|&&count| count > 0.0).map(|&count| bits(count)).sum::<f64>().max(0.0)
}

/// Counts the pages that blocks touch, by how full they are.
#[derive(Debug, Clone, Default)]
pub struct Pages {
    /// The number of pages, by the bytes in blocks on a page, rounded up to a multiple of 64.
    steps: Vec<f64>,
    /// The sum of the bytes in blocks over all pages.
    bytes: f64,
    pages: f64,
}

impl Pages {
    const STEP: u64 = PAGE_BYTES / 64;

    /// Adds `pages` pages, on each of which `bytes` bytes are in blocks.
    pub fn add(&mut self, pages: u64, bytes: u64) {
        self.steps.resize(PAGE_BYTES as usize / Self::STEP as usize + 1, 0.0);
        // The sum may exceed the page size, because a block that a realloc has enlarged may overlap
        // with a block that existed earlier.
        let bytes = bytes.min(PAGE_BYTES);
        self.steps[bytes.div_ceil(Self::STEP) as usize] += pages as f64;
        self.bytes += bytes as f64 * pages as f64;
        self.pages += pages as f64;
    }

    /// Returns `value(bytes, pages)` for each bootstrap resample of the pages.
    fn repetitions(&self, value: impl Fn(f64, f64) -> f64) -> Vec<f64> {
        let mut random = Random::new(self.pages as u64);
        let repeat = |_| {
            let (mut bytes, mut pages) = (0.0, 0.0);
            for (step, &count) in self.steps.iter().enumerate().filter(|(_, count)| **count > 0.0) {
                let again = random.poisson(count);
                pages += again;
                bytes += again * step as f64 * Self::STEP as f64;
            }
            value(bytes.min(pages * PAGE_BYTES as f64), pages.max(1.0))
        };
        (0..REPETITIONS).map(repeat).collect()
    }
}

/// Computes L: bytes in blocks / bytes of the pages that the blocks touch. `n` counts the blocks.
pub fn locality(n: i64, pages: &Pages) -> Estimate {
    if n < OBSERVATIONS_MIN || pages.pages == 0.0 {
        return Estimate::none(n);
    }
    let value = |bytes: f64, pages: f64| bytes / (pages * PAGE_BYTES as f64);
    Estimate::of(n, value(pages.bytes, pages.pages), pages.repetitions(value))
}

/// Computes F: 1 - (pages that the bytes would fill / pages touched); see docs/decisions/0025. `n`
/// counts the blocks.
pub fn fragmentability(n: i64, pages: &Pages) -> Estimate {
    if n < OBSERVATIONS_MIN || pages.pages == 0.0 {
        return Estimate::none(n);
    }
    let value = |bytes: f64, pages: f64| {
        let filled = (bytes / PAGE_BYTES as f64).ceil();
        (1.0 - filled / pages).max(0.0)
    };
    Estimate::of(n, value(pages.bytes, pages.pages), pages.repetitions(value))
}

/// Computes U: bytes at the peak / bytes ever allocated. `peak_squares` is the sum of the squared
/// sizes of the blocks at the peak, `all_squares` the sum for all blocks.
pub fn utilisation(n: i64, peak: f64, all: f64, peak_squares: f64, all_squares: f64) -> Estimate {
    if n < OBSERVATIONS_MIN || all <= 0.0 {
        return Estimate::none(n);
    }
    // In a bootstrap resample, each block occurs 0, 1, 2, ... times, with variance 1. So the
    // variance of the bytes at the peak is the sum of the squared sizes of the blocks at the peak.
    // The variance of the other bytes is the sum of the squared sizes of the other blocks.
    let (rest, rest_squares) = ((all - peak).max(0.0), (all_squares - peak_squares).max(0.0));
    let mut random = Random::new(n as u64);
    let repeat = |_| {
        let peak = (peak + random.normal() * peak_squares.max(0.0).sqrt()).max(0.0);
        let rest = (rest + random.normal() * rest_squares.sqrt()).max(0.0);
        if peak + rest > 0.0 {
            peak / (peak + rest)
        } else {
            1.0
        }
    };
    Estimate::of(n, (peak / all).min(1.0), (0..REPETITIONS).map(repeat).collect())
}

/// Computes C: the mean number of other threads that are inside a call at the same time, divided by
/// the number of other threads. `n` is the number of calls for which the other threads were
/// counted, `sum` is the sum of the counts, and `squares` is the sum of the squared counts.
pub fn contention(n: i64, sum: f64, squares: f64, threads: usize) -> Estimate {
    if n < OBSERVATIONS_MIN {
        return Estimate::none(n);
    }
    if threads < 2 {
        return Estimate { value: Some(0.0), low: Some(0.0), high: Some(0.0), n };
    }
    let (count, others) = (n as f64, threads as f64 - 1.0);
    let mean = sum / count;
    let error = ((squares / count - mean * mean).max(0.0) / count).sqrt();
    Estimate {
        value: Some(mean / others),
        low: Some((mean - 1.96 * error).max(0.0) / others),
        high: Some((mean + 1.96 * error) / others),
        n,
    }
}

/// A random number generator (splitmix64). The seeds depend only on the trace, so the same trace
/// always has the same intervals.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// Returns a random number above 0, up to 1.
    fn unit(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.unit().ln()).sqrt() * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// Returns a Poisson-distributed random number. For means above 30, approximates the
    /// distribution by a normal distribution.
    fn poisson(&mut self, mean: f64) -> f64 {
        if mean > 30.0 {
            return (mean + mean.sqrt() * self.normal()).round().max(0.0);
        }
        let (limit, mut product, mut count) = ((-mean).exp(), self.unit(), 0.0);
        while product > limit {
            product *= self.unit();
            count += 1.0;
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_holds(estimate: Estimate, value: f64) {
        let close = |a: f64, b: f64| (a - b).abs() < 1e-9;
        assert!(close(estimate.value.unwrap(), value), "{estimate:?} is not {value}");
        assert!(estimate.low.unwrap() <= value && value <= estimate.high.unwrap(), "{estimate:?}");
    }

    #[test]
    fn fewer_than_a_thousand_observations_give_no_measure() {
        let estimate = variation(999, &[999.0]);
        assert!(estimate.is_too_few() && estimate.value.is_none());
        assert_eq!(contention(999, 0.0, 0.0, 4).value, None);
        assert!(!variation(1000, &[1000.0]).is_too_few());
    }

    #[test]
    fn density_is_the_number_of_calls_per_millisecond() {
        let (mut calls, mut cpu) = ([0.0; SLICES], [0.0; SLICES]);
        calls[..4].copy_from_slice(&[1000.0, 3000.0, 2000.0, 2000.0]);
        cpu[..4].copy_from_slice(&[1e6; 4]);
        let estimate = density(8000, &calls, &cpu);
        assert_holds(estimate, 2000.0);
        assert!(estimate.high.unwrap() - estimate.low.unwrap() > 100.0);
        assert_eq!(density(8000, &calls, &[0.0; SLICES]).value, None);
    }

    #[test]
    fn variation_of_n_equally_frequent_classes_is_the_logarithm_of_n() {
        assert_holds(variation(1000, &[1000.0]), 0.0);
        assert_eq!(variation(8000, &[1000.0; 8]).value, Some(3.0));
    }

    #[test]
    fn a_full_chunk_has_locality_1_and_scattered_blocks_have_fragmentability_near_1() {
        let mut chunk = Pages::default();
        chunk.add(100, PAGE_BYTES);
        assert_holds(locality(1000, &chunk), 1.0);
        assert_holds(fragmentability(1000, &chunk), 0.0);
        let mut scattered = Pages::default();
        scattered.add(4096, 64);
        assert_holds(locality(4096, &scattered), 1.0 / 64.0);
        assert_holds(fragmentability(4096, &scattered), 1.0 - 64.0 / 4096.0);
    }

    #[test]
    fn utilisation_is_bytes_at_the_peak_per_byte_allocated() {
        assert_holds(utilisation(1000, 100.0, 400.0, 100.0, 400.0), 0.25);
        assert_holds(utilisation(1000, 400.0, 400.0, 400.0, 400.0), 1.0);
    }

    #[test]
    fn contention_is_the_fraction_of_other_threads_that_allocate_at_the_same_time() {
        assert_holds(contention(1000, 1500.0, 3000.0, 4), 0.5);
        assert_holds(contention(1000, 0.0, 0.0, 1), 0.0);
    }
}
