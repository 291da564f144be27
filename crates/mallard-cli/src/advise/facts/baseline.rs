//! Measures the CPU time of the program in runs without the recorder. Savings are shares of this
//! time.
//!
//! A recording alone allows only an estimate: the CPU time of the recorded run minus the time of
//! the recorder. For a program that does little but allocate, the estimate is a small difference of
//! two large numbers. For two programs of tests/known, the estimates were 77 ms instead of 130 ms,
//! and 321 ms instead of 190 ms.

use super::read;
use super::{Bound, Facts, Program};
use crate::advise::budget::Budget;
use crate::advise::reason::Doubt;
use crate::advise::runs::{run_once, Runs};
use mallard_trace::manifest::Manifest;
use mallard_trace::Trace;
use std::time::Duration;

/// The maximum number of runs.
const RUNS: usize = 5;
/// Another run starts only while all runs together have taken less than the remaining budget
/// divided by this number.
const PART: u32 = 20;
/// If a run probably takes longer than the remaining budget divided by this number, the program
/// does not run.
const PART_OF_ONE: u32 = 8;

/// Replaces the estimated CPU time by the median of a few runs, and computes again what depends on
/// it. Keeps the estimate if the program cannot run or takes too long, or if its runs do more or
/// less work than the recorded run.
pub fn measured(trace: &Trace, facts: Facts, runs: &Runs, budget: &Budget) -> Facts {
    let (all, one) = (budget.left() / PART, budget.left() / PART_OF_ONE);
    let program = &facts.program;
    let is_long = expected(trace.manifest(), program) > one;
    if program.cannot_run.is_some() || !program.runs_do_the_same || is_long {
        return facts;
    }
    let _step = budget.step("running the program without the recorder");
    let begin = budget.left();
    let (mut times, mut took) = (Vec::new(), Vec::new());
    while times.len() < RUNS && begin.saturating_sub(budget.left()) < all {
        // If this run fails, later runs of the program will report why.
        let Ok(run) = run_once(runs, one) else { return facts };
        let recorded = program.status.filter(|_| runs.runner.load.is_none());
        if recorded.is_some_and(|status| status != run.status) {
            return broken(facts, run.status);
        }
        times.push(run.figures.cpu_ns);
        took.push(run.took);
    }
    times.sort_by(f64::total_cmp);
    took.sort();
    let [Some(&least), Some(&most)] = [times.first(), times.last()] else { return facts };
    let likely = times[times.len() / 2];
    if likely <= 0.0 {
        return facts;
    }
    let bound = read::bound(trace.manifest(), &facts, Some(likely));
    let (cpu_ns, cpu_measured) = (Some(likely), Some((least, likely, most)));
    let run_takes = Some(took[took.len() / 2]);
    Facts { bound, program: Program { cpu_ns, cpu_measured, run_takes, ..facts.program }, ..facts }
}

/// Marks the facts as invalid, because the program exits with another status without the recorder.
fn broken(facts: Facts, status: i32) -> Facts {
    let doubt = Doubt::OtherEnd { name: facts.program.name.clone(), status };
    let doubts = std::iter::once(doubt).chain(facts.doubts).collect();
    Facts { doubts, is_broken: true, bound: Bound::default(), ..facts }
}

/// Estimates the wall time of a run without the recorder. The estimate is the wall time of the
/// recorded run, times the share of its CPU time that the program itself used. If threads waited
/// for the recorder, that wall time is of no use, and the estimate is the CPU time of the program.
fn expected(manifest: &Manifest, program: &Program) -> Duration {
    let waited = manifest.notes.waits.is_some_and(|waits| waits > 0);
    let ns = match (program.cpu_ns, manifest.notes.cpu_ns()) {
        (Some(own), _) if waited => own,
        (Some(own), Some(all)) if all > 0.0 => program.wall_ns * (own / all).min(1.0),
        _ => program.wall_ns,
    };
    Duration::from_nanos(ns.max(0.0) as u64)
}
