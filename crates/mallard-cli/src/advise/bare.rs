//! Runs the program without the recorder, to know its CPU time. A saving is a share of this time.
//!
//! The estimate from the recorded run is its CPU time less the time of recording. Where a program does
//! little but allocate, that is a small difference of two large numbers. For two programs of
//! tests/known the estimates were 77 ms instead of 130, and 321 ms instead of 190.

use super::budget::Budget;
use super::evidence::Evidence;
use super::gather;
use super::real::{run_once, Runs};
use mallard_trace::Trace;
use std::time::Duration;

/// The number of runs, if the budget allows them.
const RUNS: usize = 5;
/// The part of the remaining budget that the runs may take.
const PART: u32 = 20;

/// Replaces the estimate of the CPU time, and what follows from it, by the median of some runs. Keeps
/// the estimate if the program cannot run or takes too long, or if runs do more or less than the recorded
/// one.
pub fn measure_cpu(trace: &Trace, evidence: &mut Evidence, runs: &Runs, budget: &Budget) {
    let all = budget.left() / PART;
    let expected = Duration::from_nanos(evidence.program.wall_ns.max(0.0) as u64);
    let program = &evidence.program;
    if program.cannot_run.is_some() || !program.runs_do_the_same || expected > all {
        return;
    }
    let _step = budget.step("running the program without the recorder");
    let begin = budget.left();
    let mut times = Vec::new();
    while times.len() < RUNS && begin.saturating_sub(budget.left()) < all {
        // Later runs say why a program cannot run.
        let Ok(run) = run_once(runs, all) else { return };
        times.push(run.figures.cpu_ns);
    }
    times.sort_by(f64::total_cmp);
    let [Some(&least), Some(&most)] = [times.first(), times.last()] else { return };
    let likely = times[times.len() / 2];
    if likely > 0.0 {
        evidence.program.cpu_ns = Some(likely);
        evidence.program.cpu_measured = Some((least, likely, most));
        evidence.bound = gather::bound(trace.manifest(), &evidence.regions, Some(likely));
    }
}
