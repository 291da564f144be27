//! Computes the saving of a candidate, its interval, and the probability of a chance result, from
//! pairs of figures of base and candidate.

/// The divisor that determines how many rounds the paired mean leaves out at each end: the number
/// of rounds divided by 5. The mean of the fastest runs leaves out twice as many at the slow end,
/// so both means use the same number of figures.
const TRIM_PART: usize = 5;
/// The maximum score of a round in the sign-flip test. Scores are integers, so that their sums can
/// be counted.
const SCORE_MAX: f64 = 100.0;
/// The minimum number of rounds from which a spread can be estimated.
const SPREAD_MIN: usize = 3;
/// The maximum number of pairs. More pairs are merged, because the time of the exact test grows
/// with the cube of the number of pairs.
const PAIRS_MAX: usize = 200;
/// The 97.5 % quantiles of Student's t distribution with 1, 2, ... 30 degrees of freedom.
const T: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

/// The differences of a candidate from the base, one for each round.
#[derive(Clone, Debug)]
pub struct Differences {
    /// What each round contributes to the saving (see `scores`).
    scores: Vec<isize>,
    rounds: usize,
    interval: Interval,
}

/// A saving and its 95 % interval, as shares of the base.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Interval {
    /// The saving.
    pub saving: f64,
    /// The lower bound.
    pub low: f64,
    /// The upper bound.
    pub high: f64,
}

impl Interval {
    /// Returns half of the distance between the bounds.
    pub fn half_width(&self) -> f64 {
        // The difference between two infinite bounds would not be a number.
        if self.low == self.high {
            0.0
        } else {
            (self.high - self.low) / 2.0
        }
    }

    /// Returns whether the whole interval is above 0 or below 0.
    pub fn excludes_zero(&self) -> bool {
        self.low > 0.0 || self.high < 0.0
    }

    /// Returns the distance from 0 to the farther bound.
    pub fn reach(&self) -> f64 {
        self.low.abs().max(self.high.abs())
    }
}

impl Differences {
    /// Computes differences from the figures of base and candidate in each round. `None` if there
    /// is no round, or if a figure is negative, infinite or not a number.
    pub fn of(pairs: impl IntoIterator<Item = (f64, f64)>) -> Option<Differences> {
        let pairs: Vec<(f64, f64)> = pairs.into_iter().collect();
        let is_figure = |v: f64| v.is_finite() && v >= 0.0;
        if pairs.is_empty() || !pairs.iter().all(|(b, c)| is_figure(*b) && is_figure(*c)) {
            return None;
        }
        let rounds = pairs.len();
        let pairs = merged(pairs);
        Some(Differences { scores: scores(&pairs), rounds, interval: interval(&pairs) })
    }

    /// Returns the number of rounds.
    pub fn rounds(&self) -> usize {
        self.rounds
    }

    /// Returns the saving and its 95 % interval (see `interval`).
    pub fn interval(&self) -> Interval {
        self.interval
    }

    /// Returns the probability that chance causes a difference at least as large as this one, in
    /// either direction. The method is a sign-flip test on the sum of the scores.
    ///
    /// If base and candidate are the same, the two figures of a round can be exchanged. An exchange
    /// changes only the sign of the score of its round, so all 2^n choices of signs are equally
    /// likely. The method computes the exact share of choices whose sum is at least as far from the
    /// middle as the measured sum.
    pub fn p(&self) -> f64 {
        let sizes: Vec<usize> = self.scores.iter().map(|score| score.unsigned_abs()).collect();
        let total: usize = sizes.iter().sum();
        let positive = self.scores.iter().map(|score| score.max(&0).unsigned_abs());
        let observed: usize = positive.sum();
        // The probability of each sum of positive scores, computed score by score.
        let mut chances = vec![0.0; total + 1];
        chances[0] = 1.0;
        let mut largest = 0;
        for size in sizes.into_iter().filter(|size| *size > 0) {
            for sum in (0..=largest).rev() {
                let half = chances[sum] / 2.0;
                chances[sum] = half;
                chances[sum + size] += half;
            }
            largest += size;
        }
        let distance = |sum: usize| (2 * sum).abs_diff(total);
        let as_far = (0..=total).filter(|sum| distance(*sum) >= distance(observed));
        as_far.map(|sum| chances[sum]).sum::<f64>().min(1.0)
    }
}

/// Merges neighbouring pairs so that at most `PAIRS_MAX` remain. A merged pair has the median of
/// each column.
fn merged(pairs: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    let together = pairs.len().div_ceil(PAIRS_MAX);
    if together <= 1 {
        return pairs;
    }
    let column = |of: Vec<f64>| median(&sorted(of.into_iter()));
    pairs
        .chunks(together)
        .map(|some| {
            (column(some.iter().map(|p| p.0).collect()), column(some.iter().map(|p| p.1).collect()))
        })
        .collect()
}

/// Returns the median of figures in ascending order.
fn median(sorted: &[f64]) -> f64 {
    let (below, above) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
    middle(below, above)
}

/// Returns the mean of two figures. The mean of equal figures is exact, and the mean of two equal
/// infinite figures is infinite.
fn middle(below: f64, above: f64) -> f64 {
    if below == above {
        below
    } else {
        below / 2.0 + above / 2.0
    }
}

/// Computes the scores for the sign-flip test. The score of a round is its contribution to the
/// saving. Exchanging the two figures of a round changes only the sign of this round's score,
/// because limits and weights do not depend on the order of the two figures.
///
/// As in `interval`, a score is a weighted sum of the difference within the round and the
/// difference of the fastest runs, with the weights for which the sum varies least. Slow runs and
/// large differences are limited, so that a single disturbed run does not decide.
pub(super) fn scores(pairs: &[(f64, f64)]) -> Vec<isize> {
    let kept = pairs.len() - 2 * (pairs.len() / TRIM_PART);
    let paired: Vec<f64> = pairs.iter().map(|(b, c)| share(b - c, b.max(*c))).collect();
    let limit = sorted(paired.iter().map(|score| score.abs()))[kept - 1];
    let paired: Vec<f64> = paired.iter().map(|score| score.clamp(-limit, limit)).collect();
    let both = sorted(pairs.iter().flat_map(|(b, c)| [*b, *c]));
    let (middle, slowest) = (mean(&both[..2 * kept]), both[2 * kept - 1]);
    let fastest: Vec<f64> =
        pairs.iter().map(|(b, c)| share(b.min(slowest) - c.min(slowest), middle)).collect();
    let weight = weight(&paired, &fastest);
    let score = |(paired, fastest): (&f64, &f64)| weight * paired + (1.0 - weight) * fastest;
    let scores: Vec<f64> = paired.iter().zip(&fastest).map(score).collect();
    let most = scores.iter().fold(0.0, |most: f64, score| most.max(score.abs()));
    let whole = |score: &f64| {
        let size = share(score.abs(), most) * SCORE_MAX;
        // Equal scores must stay equal despite rounding.
        ((size - 1e-6).ceil() * score.signum()) as isize
    };
    scores.iter().map(whole).collect()
}

/// Returns the weight of the first of two estimates for which their weighted mean varies least. The
/// arguments have the contribution of each round to the two estimates.
fn weight(a: &[f64], b: &[f64]) -> f64 {
    let (aa, ab, bb) = (product(a, a), product(a, b), product(b, b));
    let apart = aa + bb - 2.0 * ab;
    if apart > 0.0 {
        ((bb - ab) / apart).clamp(0.0, 1.0)
    } else {
        1.0
    }
}

fn product(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Divides a part by the whole. 0 divided by 0 is 0.
fn share(part: f64, whole: f64) -> f64 {
    if part == 0.0 {
        0.0
    } else {
        part / whole
    }
}

/// Computes the saving and its 95 % interval.
///
/// Two means estimate the logarithm of candidate / base. The paired mean is the mean of the
/// differences within rounds, which is not affected by whatever slows down a whole round. The mean
/// of the fastest runs of each column is not affected by single slow runs. Which mean varies less
/// depends on the noise. The result is the weighted mean of both that varies least in these rounds.
fn interval(pairs: &[(f64, f64)]) -> Interval {
    if pairs.len() < SPREAD_MIN
        || pairs.iter().any(|(base, candidate)| *base == 0.0 || *candidate == 0.0)
    {
        return range(pairs);
    }
    let kept = pairs.len() - 2 * (pairs.len() / TRIM_PART);
    let (paired, fastest) = (paired(pairs, kept), fastest(pairs, kept));
    let weight = weight(&paired.moves, &fastest.moves);
    let blend = |a: f64, b: f64| weight * a + (1.0 - weight) * b;
    let log = blend(paired.log, fastest.log);
    let moves: Vec<f64> =
        paired.moves.iter().zip(&fastest.moves).map(|(a, b)| blend(*a, *b)).collect();
    // Yuen (1974) divides by kept (kept - 1). The estimated weight costs another degree of freedom.
    let variance = product(&moves, &moves) / (kept * (kept - 2)) as f64;
    let half = quantile(kept - 1) * variance.sqrt();
    let saving = |log: f64| 1.0 - log.exp();
    Interval { saving: saving(log), low: saving(log + half), high: saving(log - half) }
}

/// Returns the median and the range of the savings. Used if there are too few rounds, or if figures
/// are 0 and have no logarithm.
fn range(pairs: &[(f64, f64)]) -> Interval {
    let mut savings: Vec<f64> = pairs.iter().map(|(b, c)| share(b - c, *b)).collect();
    savings.sort_by(f64::total_cmp);
    Interval { saving: median(&savings), low: savings[0], high: savings[savings.len() - 1] }
}

/// An estimate of the logarithm of candidate / base.
struct Mean {
    log: f64,
    /// The contribution of each round to the estimate, with a mean of 0. A round that the mean
    /// leaves out contributes as much as the nearest round that the mean uses (winsorizing). Yuen
    /// (1974) uses these contributions to estimate the variance of a trimmed mean.
    moves: Vec<f64>,
}

impl Mean {
    fn new(log: f64, moves: Vec<f64>) -> Mean {
        let middle = mean(&moves);
        Mean { log, moves: moves.iter().map(|of| of - middle).collect() }
    }
}

/// Computes the mean of the differences within rounds, without the smallest and the largest ones.
fn paired(pairs: &[(f64, f64)], kept: usize) -> Mean {
    let logs: Vec<f64> = pairs.iter().map(|(base, candidate)| (candidate / base).ln()).collect();
    let sorted = sorted(logs.iter().copied());
    let first = (sorted.len() - kept) / 2;
    let used = &sorted[first..first + kept];
    let moves = logs.iter().map(|log| log.clamp(used[0], used[kept - 1])).collect();
    Mean::new(mean(used), moves)
}

/// Computes the quotient of the means of the fastest runs of both columns.
fn fastest(pairs: &[(f64, f64)], kept: usize) -> Mean {
    let of = |column: fn(&(f64, f64)) -> f64| {
        let sorted = sorted(pairs.iter().map(column));
        (mean(&sorted[..kept]), sorted[kept - 1])
    };
    let ((base, base_most), (candidate, candidate_most)) = (of(|pair| pair.0), of(|pair| pair.1));
    let moves =
        pairs.iter().map(|(b, c)| c.min(candidate_most) / candidate - b.min(base_most) / base);
    Mean::new((candidate / base).ln(), moves.collect())
}

fn sorted(figures: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut all: Vec<f64> = figures.collect();
    all.sort_by(f64::total_cmp);
    all
}

fn mean(figures: &[f64]) -> f64 {
    figures.iter().sum::<f64>() / figures.len() as f64
}

/// Returns the 97.5 % quantile of Student's t distribution.
fn quantile(freedom: usize) -> f64 {
    T.get(freedom - 1).copied().unwrap_or(1.96 + 2.4 / freedom as f64)
}
