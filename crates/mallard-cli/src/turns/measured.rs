//! The result of a measurement in turns.

use super::subject::Figures;
use crate::verdict::Block;
use std::time::Duration;

/// Why a candidate has no fresh runs. Never shown.
const LEFT_OUT: &str = "it did not run again";

/// All measured figures.
#[derive(Default)]
pub struct Measured {
    /// The runs of each column in whole blocks: the base, the base again, and each candidate.
    pub columns: Vec<Vec<Figures>>,
    /// For each candidate, the reason why it was left out. `None` if it was not left out.
    pub broken: Vec<Option<String>>,
    /// The status of the base, as `wait` returns it.
    pub status: i32,
    /// The wall time of the first run of the base.
    pub first: Duration,
    /// Whether the user has interrupted the measurement.
    pub interrupted: bool,
    /// Whether the budget ended the measurement.
    pub ran_out: bool,
    /// Fresh blocks of the best candidates. The other candidates count as broken there.
    pub fresh: Option<Box<Measured>>,
    /// Whether the budget was too small to run the best candidates again.
    pub lacks_fresh: bool,
}

impl Measured {
    /// The empty result, before the first run.
    pub fn nothing(candidates: usize) -> Measured {
        Measured {
            columns: vec![Vec::new(); candidates + 2],
            broken: vec![None; candidates],
            ..Measured::default()
        }
    }

    /// The empty result of fresh runs of some candidates.
    pub fn nothing_of(some: &[usize], candidates: usize) -> Measured {
        let why = |i: usize| (!some.contains(&i)).then(|| LEFT_OUT.to_string());
        Measured { broken: (0..candidates).map(why).collect(), ..Measured::nothing(candidates) }
    }

    /// Adds fresh runs, and marks the candidates that were broken in them.
    pub fn add_fresh(&mut self, some: &[usize], fresh: Measured) {
        for &i in some {
            if self.broken[i].is_none() {
                self.broken[i].clone_from(&fresh.broken[i]);
            }
        }
        self.fresh = Some(Box::new(fresh));
    }

    /// The number of whole blocks.
    pub fn blocks(&self) -> usize {
        self.columns.first().map_or(0, Vec::len)
    }

    /// The candidates that are not broken.
    pub fn alive(&self) -> Vec<usize> {
        (0..self.broken.len()).filter(|&i| self.broken[i].is_none()).collect()
    }

    /// One figure of each run, as blocks for a verdict. The blocks have only the candidates of `alive`.
    pub fn metric(&self, figure: impl Fn(&Figures) -> f64) -> Vec<Block> {
        let alive = self.alive();
        let block = |n: usize| Block {
            base: figure(&self.columns[0][n]),
            control: figure(&self.columns[1][n]),
            candidates: alive.iter().map(|&i| figure(&self.columns[i + 2][n])).collect(),
        };
        (0..self.blocks()).map(block).collect()
    }

    /// The median of one figure in a column.
    pub fn median(&self, column: usize, figure: impl Fn(&Figures) -> f64) -> f64 {
        let mut all: Vec<f64> = self.columns[column].iter().map(figure).collect();
        all.sort_by(f64::total_cmp);
        match all.len() {
            0 => f64::NAN,
            n => (all[(n - 1) / 2] + all[n / 2]) / 2.0,
        }
    }
}
