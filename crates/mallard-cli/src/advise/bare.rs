//! Runs the program without the recorder, to know its CPU time. A saving is a share of this time.
//!
//! The estimate from the recorded run is its CPU time less the time of recording. Where a program does
//! little but allocate, that is a small difference of two large numbers. For two programs of
//! tests/known the estimates were 77 ms instead of 130, and 321 ms instead of 190.

use super::budget::Budget;
use super::evidence::{Bound, Evidence, Program};
use super::gather;
use super::real::{run_once, Runs};
use crate::turns::subject::failure;
use mallard_trace::manifest::Manifest;
use mallard_trace::Trace;
use serde_json::Value;
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
pub fn measure_cpu(trace: &Trace, evidence: &mut Evidence, runs: &Runs, budget: &Budget) {
    let (all, one) = (budget.left() / PART, budget.left() / PART_OF_ONE);
    let program = &evidence.program;
    let is_long = expected(trace.manifest(), program) > one;
    if program.cannot_run.is_some() || !program.runs_do_the_same || is_long {
        return;
    }
    let _step = budget.step("running the program without the recorder");
    let begin = budget.left();
    let mut times = Vec::new();
    while times.len() < RUNS && begin.saturating_sub(budget.left()) < all {
        // Later runs say why a program cannot run.
        let Ok(run) = run_once(runs, one) else { return };
        let recorded = evidence.program.status.filter(|_| runs.runner.load.is_none());
        if recorded.is_some_and(|status| status != run.status) {
            return note_broken(evidence, run.status);
        }
        times.push(run.figures.cpu_ns);
    }
    times.sort_by(f64::total_cmp);
    let [Some(&least), Some(&most)] = [times.first(), times.last()] else { return };
    let likely = times[times.len() / 2];
    if likely > 0.0 {
        evidence.program.cpu_ns = Some(likely);
        evidence.program.cpu_measured = Some((least, likely, most));
        evidence.bound = gather::bound(trace.manifest(), evidence, Some(likely));
    }
}

/// Notes that the program ends otherwise without the recorder, so that nothing is known of it.
fn note_broken(evidence: &mut Evidence, status: i32) {
    let name = &evidence.program.name;
    let how = failure(status).unwrap_or("succeeded".to_string());
    let doubt = format!("without the recorder, {name} {how}, so the recording shows another run");
    evidence.doubts.insert(0, doubt);
    evidence.is_broken = true;
    evidence.bound = Bound::default();
}

/// The time that a run without the recorder probably takes. If threads waited for the recorder, the time of
/// the recorded run tells nothing.
fn expected(manifest: &Manifest, program: &Program) -> Duration {
    let waits = manifest.notes.get("waits").and_then(Value::as_u64).unwrap_or(0);
    let ns = program.cpu_ns.filter(|_| waits > 0).unwrap_or(program.wall_ns);
    Duration::from_nanos(ns.max(0.0) as u64)
}
