//! The result of a measurement.

use super::subject::Figures;
use crate::verdict::fresh::{self, Confirmed};
use crate::verdict::paired::Differences;
use crate::verdict::{judge_each, Judged, Round, Verdict, Why};
use std::time::Duration;

/// The text that marks a candidate without confirmation runs. The user never sees this text.
const LEFT_OUT: &str = "it did not run again";

/// Why a setting of the base's malloc is not measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeftOut {
    /// In the first run, page faults and memory were about the same as those of the base.
    NoEffect,
    /// The budget is too small for settings in addition to the other candidates.
    NoTime,
}

/// All measured figures.
#[derive(Default)]
pub struct Measured {
    /// The figures of the runs in complete rounds, by column. The columns are the base, its
    /// control, and each candidate. If a candidate was dropped early, its column has only the first
    /// rounds.
    pub columns: Vec<Vec<Figures>>,
    /// For each candidate, how it broke the program. `None` if the candidate works.
    pub broken: Vec<Option<String>>,
    /// For each candidate that is a setting, why it is not measured. `None` if it is measured.
    pub left_out: Vec<Option<LeftOut>>,
    /// For each candidate, why it did not run in all rounds: `DroppedEarly` or `NotRunAgain`.
    /// `None` if it was not dropped.
    pub dropped: Vec<Option<Why>>,
    /// The status of the base, as `wait` returns it.
    pub status: i32,
    /// The wall time of the first run of the base.
    pub first: Duration,
    /// Whether the user has interrupted the measurement.
    pub interrupted: bool,
    /// Whether the measurement ended because the budget was used up.
    pub ran_out: bool,
    /// The confirmation rounds of the best candidates. In this part, the other candidates count as
    /// broken.
    pub fresh: Option<Box<Measured>>,
    /// Whether the budget was too small for confirmation rounds.
    pub lacks_fresh: bool,
}

impl Measured {
    /// Returns the empty result, before the first run.
    pub fn nothing(candidates: usize) -> Measured {
        Measured {
            columns: vec![Vec::new(); candidates + 2],
            broken: vec![None; candidates],
            left_out: vec![None; candidates],
            dropped: vec![None; candidates],
            ..Measured::default()
        }
    }

    /// Returns the empty result of confirmation runs of some candidates.
    pub fn nothing_of(some: &[usize], candidates: usize) -> Measured {
        let why = |i: usize| (!some.contains(&i)).then(|| LEFT_OUT.to_string());
        Measured { broken: (0..candidates).map(why).collect(), ..Measured::nothing(candidates) }
    }

    /// Adds confirmation runs. A candidate that broke the program in these runs is marked as
    /// broken.
    pub fn add_fresh(&mut self, some: &[usize], fresh: Measured) {
        for &i in some {
            if self.broken[i].is_none() {
                self.broken[i].clone_from(&fresh.broken[i]);
            }
        }
        self.fresh = Some(Box::new(fresh));
    }

    /// Returns a copy in which some candidates are compared with their own control instead of the
    /// base. Each of `pairs` has a candidate and its control. The CPU time and peak of the
    /// candidate become those of the base plus the difference between candidate and control, so
    /// savings are still shares of the base. The copy has one candidate for each pair.
    pub fn against_controls(&self, pairs: &[(usize, usize)]) -> Measured {
        let of_pair = |of: &Measured, (first, control): (usize, usize)| -> Vec<Figures> {
            let [base, first, control] = [0, first + 2, control + 2].map(|at| &of.columns[at]);
            let runs = base.iter().zip(first).zip(control);
            let adjusted = |((base, first), control): ((&Figures, &Figures), &Figures)| {
                let adjusted =
                    |of: fn(&Figures) -> f64| (of(base) + of(first) - of(control)).max(0.0);
                let (cpu_ns, peak_rss) = (adjusted(|of| of.cpu_ns), adjusted(|of| of.peak_rss));
                Figures { cpu_ns, peak_rss, ..*first }
            };
            runs.map(adjusted).collect()
        };
        let of = |of: &Measured| {
            let own = of.columns[..2].iter().cloned();
            let broken = |&(first, control): &(usize, usize)| {
                of.broken[first].clone().or_else(|| of.broken[control].clone())
            };
            Measured {
                columns: own.chain(pairs.iter().map(|&pair| of_pair(of, pair))).collect(),
                broken: pairs.iter().map(broken).collect(),
                left_out: vec![None; pairs.len()],
                dropped: vec![None; pairs.len()],
                ..Measured::default()
            }
        };
        let Measured { status, first, interrupted, ran_out, lacks_fresh, .. } = *self;
        let fresh = self.fresh.as_deref().map(|fresh| Box::new(of(fresh)));
        Measured { fresh, status, first, interrupted, ran_out, lacks_fresh, ..of(self) }
    }

    /// Returns the number of complete rounds.
    pub fn rounds(&self) -> usize {
        self.columns.first().map_or(0, Vec::len)
    }

    /// Returns the number of complete rounds, including confirmation rounds.
    pub fn all_rounds(&self) -> usize {
        self.rounds() + self.fresh.as_ref().map_or(0, |fresh| fresh.rounds())
    }

    /// Returns the indices of the measured candidates, which are neither broken nor left out.
    pub fn alive(&self) -> Vec<usize> {
        let is_measured = |i: &usize| self.broken[*i].is_none() && self.left_out[*i].is_none();
        (0..self.broken.len()).filter(is_measured).collect()
    }

    /// Returns the indices of the candidates that still run: measured, and not dropped.
    pub fn running(&self) -> Vec<usize> {
        self.alive().into_iter().filter(|&i| self.dropped[i].is_none()).collect()
    }

    /// Returns one figure of each run, as rounds that can be judged. The rounds have only the
    /// candidates that `running` returns.
    pub fn metric(&self, figure: impl Fn(&Figures) -> f64) -> Vec<Round> {
        let running = self.running();
        let round = |n: usize| Round {
            base: figure(&self.columns[0][n]),
            control: figure(&self.columns[1][n]),
            candidates: running.iter().map(|&i| figure(&self.columns[i + 2][n])).collect(),
        };
        (0..self.rounds()).map(round).collect()
    }

    /// Returns the differences of one candidate from the base in all its rounds, including
    /// confirmation rounds.
    pub fn differences(&self, index: usize, figure: fn(&Figures) -> f64) -> Option<Differences> {
        let fresh = self.fresh.as_deref().filter(|fresh| fresh.broken[index].is_none());
        let pairs = |of: &Measured| -> Vec<(f64, f64)> {
            let base = of.columns[0].iter().map(figure);
            base.zip(of.columns[index + 2].iter().map(figure)).collect()
        };
        Differences::of([Some(self), fresh].into_iter().flatten().flat_map(pairs))
    }

    /// Judges one figure of each candidate that `alive` returns. A dropped candidate is judged by
    /// the rounds in which it ran.
    pub fn judge(&self, figure: impl Fn(&Figures) -> f64, min_gain: f64) -> Judged {
        let column = |n: usize| -> Vec<f64> { self.columns[n].iter().map(&figure).collect() };
        let candidates: Vec<Vec<f64>> = self.alive().into_iter().map(|i| column(i + 2)).collect();
        judge_each(&column(0), &column(1), &candidates, min_gain)
    }

    /// Judges one figure of each candidate that `alive` returns, in the same order. A candidate
    /// with confirmation rounds is judged by these rounds instead of the selection rounds.
    pub fn settle(&self, figure: fn(&Figures) -> f64, min_gain: f64) -> (Judged, Confirmed) {
        let mut judged = self.judge(figure, min_gain);
        let alive = self.alive();
        for (&i, of) in alive.iter().zip(&mut judged.candidates) {
            let is_open = of.verdict == Verdict::NotMeasurable;
            of.why = self.dropped[i].filter(|_| is_open).or(of.why);
        }
        let Some(again) = &self.fresh else { return (judged, Confirmed::new()) };
        let who = again.alive();
        let ran: Vec<usize> = (0..who.len()).filter(|&at| alive.contains(&who[at])).collect();
        let rounds: Vec<Round> = again.metric(figure).iter().map(|r| r.of(&ran)).collect();
        let place = |at: &usize| alive.iter().position(|&i| i == who[*at]);
        let places: Vec<usize> = ran.iter().filter_map(place).collect();
        let settled = fresh::settle(&mut judged, &rounds, &places, min_gain);
        (judged, settled)
    }

    /// Returns the number of measured runs of a candidate, including confirmation runs.
    pub fn runs(&self, index: usize) -> usize {
        let fresh = self.fresh.as_ref().filter(|fresh| fresh.broken[index].is_none());
        let own = self.columns[index + 2].len();
        fresh.map_or(own, |fresh| own + fresh.rounds())
    }

    /// Returns the median of one figure in a column, over selection rounds and confirmation rounds.
    pub fn median_of_all(&self, column: usize, figure: impl Fn(&Figures) -> f64) -> f64 {
        let ran_again = |fresh: &&Measured| column < 2 || fresh.broken[column - 2].is_none();
        let fresh = self.fresh.as_deref().filter(ran_again).map(|fresh| &fresh.columns[column]);
        let all = self.columns[column].iter().chain(fresh.into_iter().flatten());
        median(all.map(figure)).unwrap_or(f64::NAN)
    }

    /// Returns the median of one figure in a column, over selection rounds only.
    pub fn median(&self, column: usize, figure: impl Fn(&Figures) -> f64) -> f64 {
        median(self.columns[column].iter().map(figure)).unwrap_or(f64::NAN)
    }
}

pub(super) fn median(figures: impl Iterator<Item = f64>) -> Option<f64> {
    let mut all: Vec<f64> = figures.collect();
    all.sort_by(f64::total_cmp);
    Some((all[all.len().checked_sub(1)? / 2] + all[all.len() / 2]) / 2.0)
}
