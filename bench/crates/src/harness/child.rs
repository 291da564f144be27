//! Runs a contender alone in a separate process, so that all memory of the process is the
//! contender's.

use super::memory::{
    counted_kib, counter_error_kib, load_code, peak_counted_kib, resident_kib,
    restart_peak_resident, table_kib,
};
use super::{Effort, Experiment};
use std::io::Read;
use std::process::{Child, Command, Stdio};

/// The resident memory of a contender: the peak, and what remains after every object and the
/// allocator were dropped. The memory that the process had before the contender was prepared is
/// subtracted, and so are the harness's own tables.
#[derive(Clone, Copy, Debug, Default)]
pub struct Memory {
    pub is_known: bool,
    pub peak_kib: f64,
    pub after_kib: f64,
}

/// How long passes run until memory is read, in ns. That is enough for a pool to grow to its final
/// size.
const PASSES_NS: f64 = 2e5;

pub fn start(experiment: usize, entrant: usize, effort: Effort) -> Option<Child> {
    let mut command = Command::new("/proc/self/exe");
    command.args(["--child", &format!("{experiment}:{entrant}")]);
    if effort == Effort::Brief {
        command.arg("--short");
    }
    command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()
}

pub fn wait(mut child: Child) -> Memory {
    let mut text = String::new();
    let read = child.stdout.take().map(|mut out| out.read_to_string(&mut text));
    let ended_well = child.wait().is_ok_and(|status| status.success());
    let figures: Vec<f64> = text.split_whitespace().filter_map(|n| n.parse().ok()).collect();
    match (read, ended_well, &figures[..]) {
        (Some(Ok(_)), true, &[peak_kib, after_kib]) => {
            Memory { is_known: true, peak_kib, after_kib }
        }
        _ => Memory::default(),
    }
}

/// Runs in the child process that `start` creates. Does the `task`, and prints the two figures.
pub fn run(all: &[Experiment], task: &str, effort: Effort) -> Option<()> {
    let (experiment, entrant) = task.split_once(':')?;
    let what = all.get(experiment.parse::<usize>().ok()?)?;
    let who = what.entrants.get(entrant.parse::<usize>().ok()?)?;
    let mut spent = vec![0.0; what.figures.len()];
    load_code();
    restart_peak_resident();
    let (before, counted_before) = (resident_kib(), counted_kib());
    let mut body = (who.prepare)(effort).ok()?;
    let mut passes = 1;
    while spent[0] < PASSES_NS {
        body(passes, &mut spent);
        passes *= 2;
    }
    let at_end = resident_kib() - before - table_kib();
    let most = peak_counted_kib() - counted_before - table_kib();
    // Only the kernel's peak counter shows memory that a pass allocates and frees again. That peak
    // is used if it exceeds the memory at the end by more than the error of the counters.
    let peak = if most > at_end + counter_error_kib() { most } else { at_end };
    drop(body);
    let after = resident_kib() - before - table_kib();
    println!("{} {}", peak.max(0.0), after.max(0.0));
    Some(())
}
