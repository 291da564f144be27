//! Drops candidates early, so that candidates that may win can use most of the budget.
//!
//! A candidate that is clearly worse than the best candidate or than the base is dropped, as in a
//! race (Maron and Moore 1994). In addition, the time of the selection rounds is divided into parts
//! of equal length, and half of the candidates should continue after each part (successive halving,
//! Jamieson and Talwalkar 2016). But a candidate of the worse half is dropped only if it is
//! probably worse than the best, and not merely because of noise. The best candidate is dropped in
//! less than 2 % of races (`docs/decisions/0061-a-race-that-waits-for-evidence.md`). Selection
//! rounds only select: the verdict on the last candidates comes from confirmation rounds.

use super::measured::{median, Measured};
use super::subject::Figures;
use crate::verdict::fresh::WINNERS_MAX;
use crate::verdict::paired::Differences;
use crate::verdict::Verdict;

/// The minimum number of selection rounds, if the budget allows them. They also show the peak
/// memory of each candidate.
pub const ROUNDS_TO_CHOOSE: usize = 2;
/// The number of rounds before the first candidate may be dropped. Two rounds of short runs can
/// agree by chance: after two rounds, a malloc that saved 13 % was dropped, and one that saved 2 %
/// was chosen.
pub const ROUNDS_TO_DROP: usize = 3;
/// The share of the selection time before the first candidate may be dropped. On a machine whose
/// speed changes every few seconds, rounds that take less than a second may agree by chance.
pub const RACE_FROM: f64 = 0.2;
/// The number of best candidates that are never dropped, so that more than one remains.
const RUNNING_MIN: usize = 2;
/// Candidates whose savings differ by less than this share of the base count as equally good.
const PRECISION: f64 = 0.01;
/// The standard error of a median of few figures, divided by the standard error of their mean.
const OF_MEDIAN: f64 = 1.25;
/// The number of standard errors that a difference must exceed, in addition to `PRECISION`, for a
/// candidate to be probably worse.
const PROBABLY: f64 = 2.5 * OF_MEDIAN;
/// The 99.9 % quantile of the normal distribution.
const CLEAR: f64 = 3.09;
/// The maximum share of the CPU time that the control of a candidate costs. A candidate and its
/// control do the same additional work, such as deciding which allocations a plan serves. In
/// programs that only allocate, a plan's decision takes 38 instructions, and a malloc and a free
/// take 138.
const COST_OF_CONTROL: f64 = 0.25;
/// The median distance from the middle of a normal distribution, in standard deviations.
const MEDIAN_DISTANCE: f64 = 0.6745;

/// Returns the maximum number of candidates, out of `all`, that continue after a share of the
/// selection time.
pub fn most(all: usize, share: f64) -> usize {
    let halvings = (all as f64 / WINNERS_MAX as f64).log2().ceil().max(0.0);
    let done = (share * halvings).floor().min(halvings);
    ((all as f64 / done.exp2()).ceil() as usize).max(WINNERS_MAX)
}

/// The running candidates, ordered by their savings.
pub struct Standing {
    /// The indices of the candidates. The largest saving of CPU time comes first.
    pub order: Vec<usize>,
    /// The CPU time savings in the same order, as shares of the base.
    savings: Vec<f64>,
    /// The standard error of the difference between two candidates.
    error: f64,
    /// The difference between savings above which one candidate is clearly better.
    clear: f64,
    /// The candidate that saves clearly more memory than the first one, and does not need clearly
    /// more CPU time than the base.
    memory: Option<usize>,
}

impl Standing {
    /// Orders the candidates by their savings in the rounds so far. `min_gain` is the minimum
    /// difference that counts.
    pub fn of(measured: &Measured, min_gain: f64) -> Standing {
        let saving = |i: usize| saving_of(measured, i, |f| f.cpu_ns);
        let mut order = measured.running();
        order.sort_by(|&a, &b| saving(b).total_cmp(&saving(a)));
        let savings: Vec<f64> = order.iter().map(|&i| saving(i)).collect();
        let error = noise(measured) * (2.0 / measured.rounds().max(1) as f64).sqrt();
        // The changes from round to round, minus their median, have this many degrees of freedom.
        let freedom = (order.len() + 1) * measured.rounds().saturating_sub(1);
        let clear = PRECISION + clear_errors(freedom) * error;
        let mut standing = Standing { order, savings, error, clear, memory: None };
        standing.memory = standing.saves_memory(measured, min_gain);
        standing
    }

    fn saves_memory(&self, measured: &Measured, min_gain: f64) -> Option<usize> {
        let saving = |i: usize| saving_of(measured, i, |f| f.peak_rss);
        let first = saving(*self.order.first()?).max(0.0);
        // A loss that is smaller than the minimum difference that counts is ignored.
        let loss = min_gain.max(self.clear);
        let costs_no_time = |at: &usize| self.savings[*at] >= -loss;
        let candidates = (0..self.order.len()).filter(costs_no_time).map(|at| self.order[at]);
        let best = candidates.max_by(|&a, &b| saving(a).total_cmp(&saving(b)))?;
        let always = (0..measured.rounds()).all(|n| saves_in(measured, best, n, min_gain));
        (always && saving(best) > first + min_gain).then_some(best)
    }

    /// Returns the candidates to drop now. These are clearly worse than the best or than the base,
    /// or probably worse than the best and not among the first `most`. The two best candidates and
    /// the candidate that saves the most memory are never dropped.
    pub fn dropped(&self, most: usize) -> Vec<usize> {
        let first = self.savings.first().copied().unwrap_or(0.0);
        let is_worse = |at: usize| {
            let saving = self.savings[at];
            let probably = PRECISION + PROBABLY * self.error;
            first.max(0.0) - saving > self.clear || (at >= most && first - saving > probably)
        };
        let all = self.order.iter().enumerate().skip(RUNNING_MIN);
        let dropped = all.filter(|(at, i)| is_worse(*at) && self.memory != Some(**i));
        dropped.map(|(_, &i)| i).collect()
    }

    /// Returns the candidates for confirmation rounds, the best first: those that may have a gain
    /// according to the selection rounds, and last the candidate that saves the most memory. If
    /// only some candidates have a control, the best candidate of the other kind comes second,
    /// because the comparison with a control may reverse the order.
    pub fn finalists(
        &self,
        measured: &Measured,
        min_gain: f64,
        has_control: &dyn Fn(usize) -> bool,
    ) -> Vec<usize> {
        let alive = measured.alive();
        let [cpu, memory] = [(|f| f.cpu_ns) as fn(&Figures) -> f64, |f| f.peak_rss]
            .map(|figure| measured.judge(figure, min_gain).candidates);
        let place = |i: usize| alive.iter().position(|&other| other == i);
        let is_open = |i: &usize| {
            place(*i).is_some_and(|at| match cpu[at].verdict {
                Verdict::Gain | Verdict::NotMeasurable => true,
                _ => has_control(*i) && cpu[at].saving > -COST_OF_CONTROL,
            })
        };
        let lacks_memory =
            |i: &usize| place(*i).is_some_and(|at| memory[at].verdict != Verdict::Gain);
        let mut finalists: Vec<usize> = self.order.iter().copied().filter(is_open).collect();
        let is_other = |i: &usize| has_control(*i) != has_control(finalists[0]);
        if let Some(other) = finalists.iter().position(is_other) {
            finalists[1..=other].rotate_right(1);
        }
        finalists.truncate(WINNERS_MAX);
        let memory = self.memory.filter(|i| is_open(i) || lacks_memory(i));
        finalists.extend(memory.filter(|i| !finalists.contains(i)));
        finalists
    }
}

/// Returns the mean of both runs of the base in a round.
fn base(measured: &Measured, round: usize, figure: impl Fn(&Figures) -> f64) -> f64 {
    (figure(&measured.columns[0][round]) + figure(&measured.columns[1][round])) / 2.0
}

/// Returns the saving of a candidate, as a share of the mean of both runs of the base. Minus
/// infinity if nothing is measured.
fn saving_of(measured: &Measured, index: usize, figure: fn(&Figures) -> f64) -> f64 {
    let pair = |n: usize| (base(measured, n, figure), figure(&measured.columns[index + 2][n]));
    let differences = Differences::of((0..measured.rounds()).map(pair));
    differences.map_or(f64::NEG_INFINITY, |of| of.interval().saving)
}

/// Returns the number of standard errors that a clear difference must exceed. The number is larger
/// for few degrees of freedom, because few rounds may agree by chance. It is the 99.9 % quantile of
/// Student's t distribution (Cornish and Fisher 1938), multiplied by `OF_MEDIAN`.
fn clear_errors(freedom: usize) -> f64 {
    let (z, freedom) = (CLEAR, freedom.max(1) as f64);
    let first = (z.powi(3) + z) / 4.0;
    let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
    OF_MEDIAN * (z + first / freedom + second / freedom.powi(2))
}

/// Returns whether a candidate saves memory in one round, compared with both runs of the base.
fn saves_in(measured: &Measured, index: usize, round: usize, min_gain: f64) -> bool {
    let peak = |column: usize| measured.columns[column][round].peak_rss;
    peak(index + 2) <= peak(0).min(peak(1)) * (1.0 - min_gain)
}

/// Estimates the standard deviation of the CPU time of one run, as a share, from all running
/// columns. Each column contributes the change of its CPU time from one round to the next, minus
/// the median change of all columns. Thus two rounds of ten candidates are enough to estimate how
/// much runs vary.
fn noise(measured: &Measured) -> f64 {
    let columns: Vec<usize> =
        [0, 1].into_iter().chain(measured.running().into_iter().map(|i| i + 2)).collect();
    let mut distances = Vec::new();
    for n in 1..measured.rounds() {
        let cpu = |column: usize, round: usize| measured.columns[column][round].cpu_ns.ln();
        let changes = columns.iter().map(|&column| cpu(column, n) - cpu(column, n - 1));
        let changes: Vec<f64> = changes.filter(|change| change.is_finite()).collect();
        let Some(middle) = median(changes.iter().copied()) else { continue };
        distances.extend(changes.iter().map(|change| (change - middle).abs()));
    }
    // A change is the difference of two runs, so it varies sqrt(2) times as much as a run. One
    // round has no changes.
    median(distances.into_iter()).map_or(f64::INFINITY, |of| of / MEDIAN_DISTANCE / 2f64.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes rounds with the CPU times and the peaks of the base, its control, and candidates.
    fn measured(rounds: &[&[f64]], peaks: &[f64]) -> Measured {
        let mut measured = Measured::nothing(peaks.len() - 2);
        for round in rounds {
            for (column, (&cpu_ns, &peak_rss)) in round.iter().zip(peaks).enumerate() {
                let figures = Figures { cpu_ns, peak_rss, ..Figures::default() };
                measured.columns[column].push(figures);
            }
        }
        measured
    }

    #[test]
    fn half_of_the_candidates_remain_after_each_round() {
        assert_eq!(
            [0.0, 0.49, 0.5, 0.99, 1.0, 3.0].map(|share| most(10, share)),
            [10, 10, 5, 5, 3, 3]
        );
        assert_eq!([0.0, 0.5, 0.7, 1.0].map(|share| most(16, share)), [16, 8, 4, 3]);
        assert_eq!([0.0, 0.9].map(|share| most(3, share)), [3, 3]);
        assert_eq!([0.0, 0.9].map(|share| most(2, share)), [3, 3]);
    }

    #[test]
    fn candidates_clearly_worse_than_the_best_are_dropped_but_at_least_two_remain() {
        let rounds: [&[f64]; 3] = [
            &[100.0, 101.0, 90.0, 99.0, 70.0, 95.0, 120.0],
            &[101.0, 100.0, 91.0, 101.0, 70.5, 96.0, 121.0],
            &[100.5, 100.5, 90.5, 100.0, 70.0, 95.0, 120.0],
        ];
        let standing = Standing::of(&measured(&rounds, &[50.0; 7]), 0.02);
        assert_eq!(standing.order, [2, 0, 3, 1, 4]);
        assert_eq!(standing.dropped(5), [3, 1, 4]);
        // Runs vary as much as candidates differ, so no candidate is dropped, although only few
        // should continue.
        let noisy: [&[f64]; 2] =
            [&[100.0, 120.0, 90.0, 130.0, 95.0, 125.0], &[125.0, 95.0, 118.0, 90.0, 128.0, 92.0]];
        let standing = Standing::of(&measured(&noisy, &[50.0; 6]), 0.02);
        assert!(standing.dropped(4).is_empty() && standing.dropped(3).is_empty());
        // Candidates that are equally good, or worse by one percentage point, continue.
        let alike: [&[f64]; 3] = [&[100.0, 100.0, 90.0, 90.1, 90.2, 90.9, 92.0]; 3];
        let standing = Standing::of(&measured(&alike, &[50.0; 7]), 0.02);
        assert_eq!((standing.dropped(3), standing.dropped(5)), (vec![4], vec![4]));
    }

    #[test]
    fn candidates_clearly_worse_than_the_base_are_dropped() {
        let rounds: [&[f64]; 3] = [
            &[100.0, 101.0, 140.0, 150.0, 160.0],
            &[101.0, 100.0, 141.0, 151.0, 160.0],
            &[100.0, 101.0, 140.0, 150.0, 160.0],
        ];
        assert_eq!(Standing::of(&measured(&rounds, &[50.0; 5]), 0.02).dropped(3), [2]);
    }

    #[test]
    fn a_candidate_that_saves_memory_is_not_dropped_if_it_costs_no_time() {
        let rounds: [&[f64]; 3] = [
            &[100.0, 101.0, 80.0, 81.0, 100.0, 130.0],
            &[101.0, 100.0, 81.0, 80.0, 101.0, 131.0],
            &[100.0, 101.0, 80.0, 81.0, 100.0, 130.0],
        ];
        let of = |peaks: &[f64]| Standing::of(&measured(&rounds, peaks), 0.02).dropped(4);
        assert_eq!(of(&[50.0, 50.0, 50.0, 50.0, 50.0, 50.0]), [2, 3]);
        assert_eq!(of(&[50.0, 50.0, 50.0, 50.0, 40.0, 50.0]), [3]);
        assert_eq!(of(&[50.0, 50.0, 50.0, 50.0, 50.0, 40.0]), [2, 3]);
        // The candidate that saves the most CPU time saves as much memory as the others.
        assert_eq!(of(&[50.0, 50.0, 40.0, 40.0, 40.0, 50.0]), [2, 3]);
        // One of the two runs of the base needs as little memory as the candidate, so no saving is
        // certain.
        assert_eq!(of(&[50.0, 40.0, 50.0, 50.0, 40.0, 50.0]), [2, 3]);
    }

    #[test]
    fn no_candidate_is_dropped_after_one_round_because_the_noise_is_unknown() {
        let standing =
            Standing::of(&measured(&[&[100.0, 101.0, 50.0, 99.0, 200.0]], &[50.0; 5]), 0.02);
        assert_eq!(standing.order, [0, 1, 2]);
        assert!(standing.dropped(3).is_empty());
    }
}
