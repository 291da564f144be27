//! Lays out the tables of each suite in the same way as the suite's document, with published
//! figures next to ours.

pub mod general;
pub mod lakos1;
pub mod lakos2;
pub mod lakos5;
pub mod seeds;
pub mod shares;
pub mod strategies;

use crate::rows::cases::{facet, FACETS};
use crate::rows::experiment::{Experiment, Machine};
use crate::rows::natural;
use crate::rows::published::Published;
use crate::tables::Table;

/// Returns all tables of a suite for one machine.
pub fn tables(machine: &Machine, published: &Published, suite: &str) -> Vec<Table> {
    let all = machine.of_suite(suite);
    let tables = match suite {
        "lakos1" => lakos1::tables(&all, published),
        "lakos2" => lakos2::tables(&all, published),
        "lakos3" | "lakos4" => shares::tables(&all, published),
        "lakos5" => lakos5::tables(&all),
        "seeds" | "crates" => seeds::tables(&all, published),
        _ => general::tables(&all),
    };
    tables.into_iter().map(Table::without_empty_columns).filter(|t| !t.is_empty()).collect()
}

/// The experiments of one variant and metric.
pub struct Slice<'a> {
    pub variant: &'a str,
    pub metric: &'a str,
    pub all: Vec<&'a Experiment>,
}

impl Slice<'_> {
    /// Returns the variant and metric: `corrected, ns_per_op`.
    pub fn title(&self) -> String {
        if self.variant.is_empty() {
            self.metric.to_string()
        } else {
            format!("{}, {}", self.variant, self.metric)
        }
    }
}

/// Groups experiments by variant, corrected first, and by metric, time first.
pub fn slices<'a>(experiments: &[&'a Experiment]) -> Vec<Slice<'a>> {
    let mut slices: Vec<Slice<'a>> = Vec::new();
    for e in experiments {
        let variant = facet(&e.variant);
        match slices.iter_mut().find(|s| s.variant == variant && s.metric == e.metric) {
            Some(slice) => slice.all.push(e),
            None => slices.push(Slice { variant, metric: &e.metric, all: vec![e] }),
        }
    }
    let place = |variant| FACETS.iter().position(|v| *v == variant);
    slices.sort_by_key(|s| (place(s.variant), s.all[0].kind()));
    slices
}

/// Returns the first parts of all cases, in natural order.
pub fn parts(experiments: &[&Experiment]) -> Vec<String> {
    let mut parts: Vec<String> = experiments.iter().map(|e| e.part(0).to_string()).collect();
    parts.sort_by_key(|p| natural::key(p));
    parts.dedup();
    parts
}

/// Returns the experiments sorted by case, in natural order.
pub fn by_case<'a>(experiments: &[&'a Experiment]) -> Vec<&'a Experiment> {
    let mut sorted = experiments.to_vec();
    sorted.sort_by_key(|e| natural::key(&e.case));
    sorted
}
