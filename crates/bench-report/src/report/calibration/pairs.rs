//! Reads pairs of a program and an allocator. Each pair has measurements of the program under the
//! allocator, and predictions by a replay.

use crate::rows::experiment::{Experiment, Machine};
use crate::rows::row::Row;
use mallard_measure::verdict::Verdict;
use std::collections::BTreeSet;

/// The suite with the results about mallocs.
pub const SUITE: &str = "calibration";

/// A saving relative to glibc. A negative saving is a loss.
#[derive(Clone, Debug)]
pub struct Saving {
    pub median: f64,
    /// The bounds of the 95 % interval.
    pub low: f64,
    pub high: f64,
    pub verdict: Option<Verdict>,
    /// The reason why the saving is not measurable. Empty if no reason is known.
    pub why: String,
}

impl Saving {
    /// Converts a benchmark result. The result is a change relative to glibc, so a saving has the
    /// opposite sign.
    fn of(row: &Row) -> Option<Saving> {
        let median = saving(row.median?);
        let (low, high) = (saving(row.high()), saving(row.low()));
        let all = [Verdict::Gain, Verdict::Loss, Verdict::NoDifference, Verdict::NotMeasurable];
        let verdict = all.into_iter().find(|v| v.words() == row.verdict);
        Some(Saving { median, low, high, verdict, why: row.why.clone() })
    }

    /// Returns whether the saving or the loss is larger than noise.
    pub fn is_different(&self) -> bool {
        matches!(self.verdict, Some(Verdict::Gain | Verdict::Loss))
    }
}

/// Converts a change relative to glibc into a saving. Never returns -0.
fn saving(change: f64) -> f64 {
    0.0 - change
}

/// A program under an allocator.
#[derive(Clone, Debug)]
pub struct Pair {
    pub program: String,
    pub allocator: String,
    /// Savings of CPU time in percent.
    pub real: Option<Saving>,
    pub replayed: Option<Saving>,
    /// The smallest and the largest saving that the replay predicts for the program, in percent.
    pub predicted: Option<(f64, f64)>,
    /// Savings of peak memory in KiB.
    pub real_peak: Option<Saving>,
    pub replayed_peak: Option<Saving>,
    /// The peak RSS of the program under the allocator, in KiB.
    pub peak: Option<f64>,
    /// The reasons why figures are missing.
    pub missing: Vec<String>,
}

/// A program under glibc, and its recording.
#[derive(Clone, Debug)]
pub struct Program {
    pub name: String,
    pub threads: u32,
    pub cpu_seconds: Option<f64>,
    /// The CPU time of the program according to the recording.
    pub recorded_cpu_seconds: Option<f64>,
    pub faults: Option<f64>,
    /// Page faults of the replay.
    pub replayed_faults: Option<f64>,
    pub peak: Option<f64>,
}

/// The figures of one machine.
pub struct Figures<'a>(&'a Machine);

impl<'a> Figures<'a> {
    pub fn of(machine: &'a Machine) -> Figures<'a> {
        Figures(machine)
    }

    fn experiments(&self) -> impl Iterator<Item = &'a Experiment> {
        self.0.experiments.iter().filter(|e| e.suite == SUITE)
    }

    fn row(&self, program: &str, allocator: &str, metric: &str) -> Option<&'a Row> {
        let mut own = self.experiments().filter(|e| e.case == program && e.metric == metric);
        own.find_map(|e| e.of(allocator))
    }

    /// Returns the programs in the order of their results.
    pub fn programs(&self) -> Vec<Program> {
        let mut all: Vec<Program> = Vec::new();
        for e in self.experiments() {
            if all.iter().any(|p| p.name == e.case) {
                continue;
            }
            let glibc = |metric: &str| self.row(&e.case, BASE, metric)?.median;
            all.push(Program {
                name: e.case.clone(),
                threads: e.threads,
                cpu_seconds: glibc("real_cpu_seconds"),
                recorded_cpu_seconds: glibc("replayed_cpu_seconds"),
                faults: glibc("real_page_faults"),
                replayed_faults: glibc("replayed_page_faults"),
                peak: glibc("real_peak_kib"),
            });
        }
        all
    }

    /// Returns the allocators in the order of their first results, without glibc.
    pub fn allocators(&self) -> Vec<String> {
        let mut seen = BTreeSet::new();
        let rows = self.experiments().flat_map(|e| &e.rows);
        let names = rows.map(|row| row.contender.clone());
        names.filter(|name| name != BASE && seen.insert(name.clone())).collect()
    }

    /// Returns all pairs that have results.
    pub fn pairs(&self) -> Vec<Pair> {
        let allocators = self.allocators();
        let programs = self.programs();
        let all = programs.iter().flat_map(|p| allocators.iter().map(move |a| (&p.name, a)));
        all.filter_map(|(program, allocator)| self.pair(program, allocator)).collect()
    }

    fn pair(&self, program: &str, allocator: &str) -> Option<Pair> {
        let row = |metric: &str| self.row(program, allocator, metric);
        let saved = |metric: &str| row(metric).and_then(Saving::of);
        row("real_cpu_percent")?;
        let predicted = row("predicted_cpu_percent");
        let mut missing = Vec::new();
        for (metric, source) in
            [("real_cpu_percent", "measured"), ("replayed_cpu_percent", "replay")]
        {
            let without = row(metric).filter(|r| r.median.is_none());
            missing.extend(without.map(|r| format!("{source}: {}", r.why)));
        }
        Some(Pair {
            program: program.to_string(),
            allocator: allocator.to_string(),
            real: saved("real_cpu_percent"),
            replayed: saved("replayed_cpu_percent"),
            predicted: predicted.and_then(|r| Some((saving(r.high?), saving(r.low?)))),
            real_peak: saved("real_peak_change_kib"),
            replayed_peak: saved("replayed_peak_change_kib"),
            peak: row("real_peak_kib").and_then(|r| r.median),
            missing,
        })
    }
}

/// The allocator with which all others are compared.
const BASE: &str = "glibc";
