//! Differences of pairs of figures: their median, its interval, and the probability of chance.

/// The share of resamples outside an interval at each end. 95 % are inside.
const TAIL: f64 = 0.025;
/// The largest number of pairs. More are merged, because the exact computations grow with the square
/// and the cube of this number.
const PAIRS_MAX: usize = 200;

/// The differences of a candidate from the base, one for each round.
#[derive(Clone, Debug)]
pub struct Differences {
    /// The savings as shares of the base, in ascending order.
    savings: Vec<f64>,
    /// The savings as shares of the larger figure, so that exchanging base and candidate changes
    /// only the sign.
    signed: Vec<f64>,
    rounds: usize,
    interval: Interval,
}

/// A median and its 95 % interval, as shares of the base.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Interval {
    /// The median of the savings.
    pub saving: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Interval {
    /// Half of the distance between the ends.
    pub fn half_width(&self) -> f64 {
        // The difference of two infinite ends is not a number.
        if self.low == self.high {
            0.0
        } else {
            (self.high - self.low) / 2.0
        }
    }

    /// Whether the whole interval is on one side of 0.
    pub fn excludes_zero(&self) -> bool {
        self.low > 0.0 || self.high < 0.0
    }

    /// The distance from 0 to the farther end.
    pub fn reach(&self) -> f64 {
        self.low.abs().max(self.high.abs())
    }
}

impl Differences {
    /// Takes the figures of base and candidate in each round. `None` if there is no round, or if a
    /// figure is negative, infinite or not a number.
    pub fn of(pairs: impl IntoIterator<Item = (f64, f64)>) -> Option<Differences> {
        let pairs: Vec<(f64, f64)> = pairs.into_iter().collect();
        let is_figure = |v: f64| v.is_finite() && v >= 0.0;
        if pairs.is_empty() || !pairs.iter().all(|(b, c)| is_figure(*b) && is_figure(*c)) {
            return None;
        }
        let rounds = pairs.len();
        let pairs = merged(pairs);
        let share = |part: f64, whole: f64| if part == 0.0 { 0.0 } else { part / whole };
        let mut savings: Vec<f64> = pairs.iter().map(|(b, c)| share(b - c, *b)).collect();
        savings.sort_by(f64::total_cmp);
        let signed = pairs.iter().map(|(b, c)| share(b - c, b.max(*c))).collect();
        let interval = interval(&Medians::of(&savings), &savings);
        Some(Differences { savings, signed, rounds, interval })
    }

    /// The number of rounds.
    pub fn rounds(&self) -> usize {
        self.rounds
    }

    /// The median of the savings, and its 95 % interval by the bootstrap.
    pub fn interval(&self) -> Interval {
        self.interval
    }

    /// The distribution of the median over all resamples of the rounds.
    pub fn medians(&self) -> Medians {
        Medians::of(&self.savings)
    }

    /// The probability that a difference as large as this one, in either direction, comes from
    /// chance: a sign-flip test over the sum of signed ranks.
    ///
    /// If base and candidate are the same, the two figures of a round can be exchanged, so all 2^n
    /// choices of signs are equally likely. The share of choices whose sum is at least as far from the
    /// middle is counted exactly. Ranks limit what one disturbed run can do to the sum.
    pub fn p(&self) -> f64 {
        let (ranks, observed) = signed_ranks(&self.signed);
        let total: usize = ranks.iter().sum();
        // The probability of each sum of positive ranks, computed rank by rank.
        let mut chances = vec![0.0; total + 1];
        chances[0] = 1.0;
        let mut largest = 0;
        for rank in ranks {
            for sum in (0..=largest).rev() {
                let half = chances[sum] / 2.0;
                chances[sum] = half;
                chances[sum + rank] += half;
            }
            largest += rank;
        }
        let distance = |sum: usize| (2 * sum).abs_diff(total);
        let as_far = (0..=total).filter(|sum| distance(*sum) >= distance(observed));
        as_far.map(|sum| chances[sum]).sum::<f64>().min(1.0)
    }
}

/// Merges neighbouring pairs until there are at most `PAIRS_MAX`. A merged pair has the medians of both
/// columns.
fn merged(pairs: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    let together = pairs.len().div_ceil(PAIRS_MAX);
    if together <= 1 {
        return pairs;
    }
    let column = |of: Vec<f64>| {
        let mut of = of;
        of.sort_by(f64::total_cmp);
        median(&of)
    };
    pairs
        .chunks(together)
        .map(|some| {
            (column(some.iter().map(|p| p.0).collect()), column(some.iter().map(|p| p.1).collect()))
        })
        .collect()
}

/// The median of figures in ascending order.
fn median(sorted: &[f64]) -> f64 {
    let (below, above) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
    middle(below, above)
}

/// The middle of two figures. Two infinite figures stay infinite, and equal figures stay exact.
fn middle(below: f64, above: f64) -> f64 {
    if below == above {
        below
    } else {
        below / 2.0 + above / 2.0
    }
}

/// Ranks the differences that are not 0 by size. Returns the doubled ranks, and their sum for positive
/// differences. Equal sizes share the mean of their ranks; the doubled mean is a whole number.
fn signed_ranks(signed: &[f64]) -> (Vec<usize>, usize) {
    let mut by_size: Vec<f64> = signed.iter().copied().filter(|d| *d != 0.0).collect();
    by_size.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
    let (mut ranks, mut positive) = (Vec::new(), 0);
    for equal in by_size.chunk_by(|a, b| a.abs() == b.abs()) {
        let first = ranks.len() + 1;
        let last = ranks.len() + equal.len();
        ranks.extend(std::iter::repeat_n(first + last, equal.len()));
        positive += (first + last) * equal.iter().filter(|d| **d > 0.0).count();
    }
    (ranks, positive)
}

fn interval(medians: &Medians, sorted: &[f64]) -> Interval {
    Interval {
        saving: median(sorted),
        low: medians.quantile(TAIL),
        high: medians.quantile(1.0 - TAIL),
    }
}

/// The distribution of the median over all resamples of n figures. A resample is n draws with
/// repetition.
///
/// A usual bootstrap draws some thousand resamples at random. For a median, the limit for infinitely
/// many resamples can be computed (Efron 1979). So nothing is drawn at random, and the interval is
/// always the same.
#[derive(Clone, Debug)]
pub struct Medians {
    /// Values in ascending order, each with the probability that a median is at most this value.
    up_to: Vec<(f64, f64)>,
}

impl Medians {
    /// Takes figures in ascending order.
    fn of(sorted: &[f64]) -> Medians {
        let mut medians = if sorted.len() % 2 == 1 { odd(sorted) } else { even(sorted) };
        medians.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut sum = 0.0;
        for (_, chance) in &mut medians {
            sum += *chance;
            *chance = sum;
        }
        Medians { up_to: medians }
    }

    /// Returns the smallest value such that a median is at most this value with a probability of at
    /// least `share`.
    pub fn quantile(&self, share: f64) -> f64 {
        let index = self.up_to.partition_point(|(_, chance)| *chance < share - 1e-12);
        self.up_to[index.min(self.up_to.len() - 1)].0
    }
}

/// Returns the possible medians of a resample of an odd number of figures, each with its
/// probability. The median is one of the figures. It is at most the k-th figure if more than half
/// of the n draws are among the first k figures.
fn odd(sorted: &[f64]) -> Vec<(f64, f64)> {
    let n = sorted.len();
    let ways = ways(n);
    let up_to: Vec<f64> = (0..=n).map(|k| at_least(n / 2 + 1, k, &ways)).collect();
    (0..n).map(|k| (sorted[k], up_to[k + 1] - up_to[k])).collect()
}

/// Returns the possible medians of a resample of an even number of figures, each with its
/// probability. The median is the mean of the two middle draws, i and j. For i < j, half of the
/// draws are at most i, at least one of them i itself, and the other half are at least j, at least
/// one of them j itself. The case i = j has the rest of the probability that the lower middle draw
/// is i.
fn even(sorted: &[f64]) -> Vec<(f64, f64)> {
    let n = sorted.len();
    let ways = ways(n);
    let up_to: Vec<f64> = (0..=n).map(|k| at_least(n / 2, k, &ways)).collect();
    let half_of: Vec<f64> = (0..=n).map(|k| (k as f64 / n as f64).powi((n / 2) as i32)).collect();
    let mut medians = Vec::with_capacity(n * (n + 1) / 2);
    for i in 0..n {
        let mut left = up_to[i + 1] - up_to[i];
        let ends_at_i = ways[n / 2] * (half_of[i + 1] - half_of[i]);
        for j in i + 1..n {
            let chance = ends_at_i * (half_of[n - j] - half_of[n - j - 1]);
            left -= chance;
            medians.push((middle(sorted[i], sorted[j]), chance));
        }
        medians.push((sorted[i], left.max(0.0)));
    }
    medians
}

/// The probability that at least `hits` of n draws from n figures are among the first `k`.
fn at_least(hits: usize, k: usize, ways: &[f64]) -> f64 {
    let n = ways.len() - 1;
    let share = k as f64 / n as f64;
    let exactly =
        |hits: usize| ways[hits] * share.powi(hits as i32) * (1.0 - share).powi((n - hits) as i32);
    (hits..=n).map(exactly).sum()
}

/// The number of ways to choose 0, 1, ... n of n.
fn ways(n: usize) -> Vec<f64> {
    let next = |before: &mut f64, k: usize| {
        let now = *before;
        *before *= (n - k) as f64 / (k + 1) as f64;
        Some(now)
    };
    (0..=n).scan(1.0, next).collect()
}
