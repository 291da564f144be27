//! Computes the CPU time that the program would need under another allocator, from the CPU time of
//! replays.

use super::candidates::{Candidates, Stream};
use super::part::{recorded_share, Limits};
use mallard_measure::error::Failure;
use mallard_measure::rounds::measured::Measured;
use mallard_measure::rounds::subject::Figures;
use mallard_measure::verdict::fresh::{self, Confirmed};
use mallard_measure::verdict::{Judged, Round, Verdict, Why};
use mallard_trace::tables::schema::{PROCESSES, THREADS};
use mallard_trace::Trace;
use std::collections::HashMap;

/// The figures of the recorded program.
pub struct Program {
    /// The CPU time of the program without the recorder, in ns. If only a part of the run was
    /// recorded, the CPU time of this part. `None` if the trace does not contain it.
    pub cpu_ns: Option<f64>,
    /// The CPU time of the recorded part as a share of the CPU time of the run without the
    /// recorder. `None` if the share is unknown.
    pub part: Option<Limits>,
    /// The lower and the upper limit of the true CPU time, as multiples of `cpu_ns`.
    pub cpu_range: (f64, f64),
    /// The maximum number of threads that can have run at the same time. This is the number of
    /// threads that existed at the same time, but at most the processor count of the recording
    /// machine.
    pub threads: usize,
    /// The processors of this machine that the replay may use.
    pub cores: usize,
    /// The share of the events that come from all threads except the busiest one.
    pub others: f64,
}

/// If the threads other than the busiest one make this share of the events, threads use the
/// allocator at the same time often enough to decide the result.
const OTHERS_MIN: f64 = 0.1;

impl Program {
    /// Reads the figures of the program from a trace.
    pub fn of(trace: &Trace, candidates: &Candidates) -> Result<Program, Failure> {
        let process = candidates.streams[0].compiled.process;
        // The recording machine cannot have run more threads at the same time than it had
        // processors.
        let recorded_cores = trace.manifest().notes.cores;
        let cores = recorded_cores.filter(|&cores| cores > 0).map_or(usize::MAX, |c| c as usize);
        let share = recorded_share(trace)?;
        let of = |share| crate::record::cpu_of_part(trace.manifest(), share);
        let cpu = share
            .and_then(|(least, likely, most)| Some((of(least)?.0, of(likely)?.1, of(most)?.2)));
        let all = cpu_ns(trace).map(|(_, likely, _)| likely);
        let part = |share| match (of(share), all) {
            (Some((_, part, _)), Some(all)) => part / all,
            _ => share,
        };
        Ok(Program {
            cpu_ns: cpu.map(|(_, likely, _)| likely),
            part: share.map(|(least, likely, most)| (part(least), part(likely), part(most))),
            cpu_range: cpu
                .map_or((1.0, 1.0), |(least, likely, most)| (least / likely, most / likely)),
            threads: threads_at_once(trace, Some(process))?.min(cores),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            others: others(trace, process)?,
        })
    }

    /// Replaces the estimated CPU time by `measured`, if `measured` is not `None`. `measured` is
    /// the minimum, median and maximum CPU time of whole runs, in ns.
    pub fn with_cpu(self, measured: Option<(f64, f64, f64)>) -> Program {
        let (Some(all), Some(part)) = (measured, self.part) else { return self };
        let (least, likely, most) = (all.0 * part.0, all.1 * part.1, all.2 * part.2);
        let cpu_range = (least / likely, most / likely);
        Program { cpu_ns: Some(likely), cpu_range, ..self }
    }

    /// Returns whether several threads allocate at the same time. How often they contend in the
    /// allocator depends on the program's work between its calls, which a replay leaves out. In the
    /// calibration, replays of a program like Larson's had the wrong sign. So a replay gives no
    /// verdict on the CPU time of such a program.
    pub fn has_threads_that_meet(&self) -> bool {
        self.threads > 1 && self.others >= OTHERS_MIN
    }

    /// Removes the verdicts on CPU time if several threads allocate at the same time.
    pub fn refuse_verdicts(&self, cpu: &mut Judged) {
        if self.has_threads_that_meet() {
            for judgement in &mut cpu.candidates {
                judgement.verdict = Verdict::NotMeasurable;
                judgement.why = Some(Why::ThreadsMeet);
            }
        }
    }

    /// Returns whether this machine has fewer processors than the program had threads at the same
    /// time.
    pub fn lacks_cores(&self) -> bool {
        self.threads > self.cores
    }
}

/// Returns the share of the events of a process that come from all threads except the busiest one.
fn others(trace: &Trace, process: i32) -> Result<f64, Failure> {
    let table = trace.table(&THREADS)?;
    let rows = table.i64s("proc")?.into_iter().zip(table.i64s("events")?);
    let of_process = rows.filter(|(proc, _)| *proc == i64::from(process)).map(|(_, events)| events);
    let (all, most) = of_process.fold((0, 0), |(all, most), n| (all + n, n.max(most)));
    Ok((all - most) as f64 / all.max(1) as f64)
}

/// Returns the lower limit, the likely value and the upper limit of the program's CPU time without
/// the time of recording, in ns. Returns `None` if the trace does not contain these times.
pub fn cpu_ns(trace: &Trace) -> Option<(f64, f64, f64)> {
    crate::record::cpu_ns(trace.manifest())
}

/// Returns the maximum number of threads that existed at the same time, in one process or in all
/// processes.
pub fn threads_at_once(trace: &Trace, process: Option<i32>) -> Result<usize, Failure> {
    let table = trace.table(&THREADS)?;
    let (procs, starts, ends) = (table.i64s("proc")?, table.i64s("t0")?, table.i64s("t1")?);
    let processes = trace.table(&PROCESSES)?;
    let ends_of: HashMap<i64, i64> =
        processes.i64s("proc")?.into_iter().zip(processes.i64s("t1")?).collect();
    let mut changes: Vec<(i64, i32)> = Vec::new();
    for ((proc, start), end) in procs.into_iter().zip(starts).zip(ends) {
        if process.is_none_or(|process| proc == i64::from(process)) {
            changes.push((start, 1));
            // A thread without a recorded end counts as ending with its process, or else with the
            // program.
            let of_process = ends_of.get(&proc).copied().unwrap_or(-1);
            let end = [end, of_process].into_iter().find(|&end| end >= start);
            changes.push((end.unwrap_or(i64::MAX), -1));
        }
    }
    changes.sort_unstable();
    let mut now = 0;
    let counts = changes.into_iter().map(|(_, change)| {
        now += change;
        now
    });
    Ok(usize::try_from(counts.max().unwrap_or(1)).unwrap_or(1).max(1))
}

/// The runs of all candidates, as rounds from which verdicts are made. Rounds of CPU time are about
/// the whole program. Rounds of memory are about the heap.
pub struct Effects {
    /// The CPU time that the program would need if each candidate served the program's calls.
    pub cpu: Vec<Round>,
    /// The part of the CPU time that is spent in the kernel, mostly for new pages.
    pub pages: Vec<Round>,
    /// The part of the CPU time that is spent outside of the kernel, which is the work of the
    /// allocator.
    pub allocator: Vec<Round>,
    /// The peak of the heap's resident bytes.
    pub memory: Vec<Round>,
    /// The heap's resident bytes after the last call.
    pub memory_at_end: Vec<Round>,
    /// The candidates in the rounds above, as indices in `Candidates::all`. Candidates that fail
    /// are left out.
    pub alive: Vec<usize>,
    /// The CPU time of the program. Savings are shares of this time.
    pub program_ns: f64,
    /// The CPU time of replaying all calls under the base, including page faults; at least 1.
    pub calls_ns: f64,
    /// For each op stream, the share of the program's CPU time by which its calls may overlap with
    /// the program's own work (see `HIDDEN_NS`).
    pub hidden: Vec<f64>,
}

/// Judges the best candidates by their confirmation runs alone.
pub fn confirm(
    candidates: &Candidates,
    program: &Program,
    measured: &Measured,
    cpu: &mut Judged,
    min_gain: f64,
) -> Confirmed {
    let Some(fresh) = &measured.fresh else { return Confirmed::new() };
    let all = effects(candidates, program, measured).alive;
    let again = effects(candidates, program, fresh);
    // Leaves out candidates that make the same calls as the base. They count as alive, but have no
    // confirmation runs.
    let is_fresh = |&place: &usize| candidates.all[again.alive[place]].measured.is_some();
    let places: Vec<usize> = (0..again.alive.len()).filter(is_fresh).collect();
    let rounds: Vec<Round> = again.cpu.iter().map(|round| round.of(&places)).collect();
    let who = |&place: &usize| all.iter().position(|&alive| alive == again.alive[place]);
    let who: Option<Vec<usize>> = places.iter().map(who).collect();
    who.map_or_else(Confirmed::new, |who| fresh::confirm(cpu, &rounds, &who, min_gain))
}

/// The CPU time in ns of a malloc and its free in a replay that may not appear in the program. A
/// processor executes a cheap call in parallel with the program's own work if that work waits, for
/// memory or for the result of the previous instruction. A replay has no such work. glibc's malloc
/// and free take 8 ns in a loop. But a program with 25 dependent multiplications between the calls
/// is not slower than the same program without the calls.
const HIDDEN_NS: f64 = 10.0;

/// Returns the CPU time, in ns, by which the calls for some blocks may overlap with the program's
/// own work. `rest` is the time of that work, in ns.
fn hidden_ns(blocks: u64, rest: f64) -> f64 {
    (blocks as f64 * HIDDEN_NS).min(rest)
}

/// Returns the number of blocks that a stream is about. These are the blocks of the stream's plan,
/// or all blocks of a stream without a plan.
fn blocks_of(stream: &Stream) -> u64 {
    let compiled = &stream.compiled;
    match compiled.rules.is_empty() {
        true => compiled.calls / 2,
        false => compiled.rules.iter().map(|rule| rule.blocks).sum(),
    }
}

/// Computes the effects of each candidate from its runs.
///
/// The CPU time of a run is the sum of the time in calls and the replayer's own time. The
/// replayer's own time is measured under an allocator that does nothing, and subtracted. If the
/// trace lacks the CPU time of the program, savings are shares of the time in calls.
pub fn effects(candidates: &Candidates, program: &Program, measured: &Measured) -> Effects {
    let cpu = |f: &Figures| f.cpu_ns;
    let calls = measured.median(0, cpu) - measured.median(candidates.streams[0].no_op + 2, cpu);
    let calls = if calls.is_finite() { calls.max(1.0) } else { 1.0 };
    let program_ns = program.cpu_ns.unwrap_or(calls).max(calls);
    let is_alive = |subject: Option<usize>| subject.is_none_or(|s| measured.broken[s].is_none());
    let alive: Vec<usize> =
        (0..candidates.all.len()).filter(|&i| is_alive(candidates.all[i].measured)).collect();
    let rounds = |figure: &dyn Fn(&Figures) -> f64, rest: f64, less_player: bool| -> Vec<Round> {
        (0..measured.rounds())
            .map(|n| {
                let at = |column: usize| figure(&measured.columns[column][n]);
                let player = |stream: usize| {
                    let column = candidates.streams[stream].no_op + 2;
                    if less_player {
                        measured.median(column, figure)
                    } else {
                        0.0
                    }
                };
                let of =
                    |column: usize, stream: usize| (rest + at(column) - player(stream)).max(0.0);
                let candidate = |&i: &usize| {
                    let candidate = &candidates.all[i];
                    of(candidate.measured.map_or(0, |subject| subject + 2), candidate.stream)
                };
                Round {
                    base: of(0, 0),
                    control: of(1, 0),
                    candidates: alive.iter().map(candidate).collect(),
                }
            })
            .collect()
    };
    let rest = program_ns - calls;
    let system = |f: &Figures| f.system_ns;
    let user = |f: &Figures| f.cpu_ns - f.system_ns;
    // Adds the rest of the program's CPU time to each part, so that each saving is a share of the
    // whole program.
    let rest_of = |figure: &dyn Fn(&Figures) -> f64| {
        let own =
            measured.median(0, figure) - measured.median(candidates.streams[0].no_op + 2, figure);
        if own.is_finite() {
            program_ns - own
        } else {
            program_ns
        }
    };
    Effects {
        cpu: rounds(&cpu, rest, true),
        pages: rounds(&system, rest_of(&system), true),
        allocator: rounds(&user, rest_of(&user), true),
        memory: rounds(&|f| f.peak_rss, 0.0, false),
        memory_at_end: rounds(&|f| f.end_rss, 0.0, false),
        alive,
        program_ns,
        calls_ns: calls,
        hidden: candidates
            .streams
            .iter()
            .map(|of| hidden_ns(blocks_of(of), rest) / program_ns)
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allocator_latency_is_hidden_only_by_other_work_of_the_program() {
        assert_eq!(hidden_ns(1000, 1e6), 1e4);
        assert_eq!(hidden_ns(1000, 300.0), 300.0);
        assert_eq!(hidden_ns(1000, 0.0), 0.0);
    }
}
