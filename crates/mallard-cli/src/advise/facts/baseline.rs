//! Runs the program without the recorder, to know its CPU time. A saving is a share of this time.
//!
//! The estimate from the recorded run is its CPU time less the time of recording. Where a program does
//! little but allocate, that is a small difference of two large numbers. For two programs of
//! tests/known the estimates were 77 ms instead of 130, and 321 ms instead of 190.

use super::read;
use super::{Bound, Facts, Program};
use crate::advise::budget::Budget;
use crate::advise::reason::Doubt;
use crate::advise::runs::{run_once, Runs};
use mallard_trace::manifest::Manifest;
use mallard_trace::Trace;
use std::time::Duration;

/// The number of runs, if the budget allows them.
const RUNS: usize = 5;
/// Runs after the first one begin only in this part of the remaining budget.
const PART: u32 = 20;
/// One run may take this part of the remaining budget.
const PART_OF_ONE: u32 = 8;

/// Replaces the estimate of the CPU time, and what follows from it, by the median of some runs. Keeps
/// the estimate if the program cannot run or takes too long, or if runs do more or less than the recorded
/// one.
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
        // Later runs say why a program cannot run.
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

/// The facts of a program that ends otherwise without the recorder: nothing is known of it.
fn broken(facts: Facts, status: i32) -> Facts {
    let doubt = Doubt::OtherEnd { name: facts.program.name.clone(), status };
    let doubts = std::iter::once(doubt).chain(facts.doubts).collect();
    Facts { doubts, is_broken: true, bound: Bound::default(), ..facts }
}

/// The time that a run without the recorder probably takes: as much of the recorded run as of its CPU time is not of
/// the recorder. If threads waited for the recorder, the time of the recorded run tells nothing.
fn expected(manifest: &Manifest, program: &Program) -> Duration {
    let waited = manifest.notes.waits.is_some_and(|waits| waits > 0);
    let ns = match (program.cpu_ns, manifest.notes.cpu_ns()) {
        (Some(own), _) if waited => own,
        (Some(own), Some(all)) if all > 0.0 => program.wall_ns * (own / all).min(1.0),
        _ => program.wall_ns,
    };
    Duration::from_nanos(ns.max(0.0) as u64)
}
