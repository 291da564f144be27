//! Measures interleaved replays of op streams. The replayer prints the figures of each run.

use super::candidates::Candidates;
use super::effects::{effects, Program};
use mallard_measure::error::status::MALLARD_FAILED;
use mallard_measure::error::Failure;
use mallard_measure::output::units::plural;
use mallard_measure::rounds::measure::{measure, shown, Plan};
use mallard_measure::rounds::measured::Measured;
use mallard_measure::rounds::runs::{is_narrow, Runs};
use mallard_measure::rounds::subject::{ending, Figures, Run, Runner, Stop, Subject, Turn};
use mallard_measure::rounds::timing::Timing;
use mallard_measure::verdict::{fresh, judge};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::time::Duration;

/// The figures that the replayer prints after a run.
#[derive(Deserialize)]
struct Played {
    seconds: f64,
    cpu_seconds: f64,
    system_seconds: f64,
    own_kib: f64,
    peak_rss_kib: f64,
    after_rss_kib: f64,
    minor_faults: f64,
    major_faults: f64,
    failures: u64,
}

/// A measurement of replays.
pub struct Playing<'a> {
    runner: Runner,
    candidates: &'a Candidates,
    program: &'a Program,
}

impl<'a> Playing<'a> {
    /// Prepares the measurement.
    pub fn new(runner: Runner, candidates: &'a Candidates, program: &'a Program) -> Playing<'a> {
        Playing { runner, candidates, program }
    }

    /// Replays all subjects, interleaved. Returns the seed of the random order as well.
    pub fn measure(
        &self,
        timing: &Timing,
        candidates: &Candidates,
    ) -> Result<(Measured, u64), Failure> {
        // No candidate is dropped early, because runs vary little, and candidates share runs of the
        // allocator that does nothing.
        let plan = Plan { ignores_output: true, drops: false, ..timing.plan() };
        let measured = measure(self, &candidates.base, &candidates.subjects, &plan)?;
        Ok((measured, plan.seed))
    }
}

impl Runs for Playing<'_> {
    fn run(&self, subject: &Subject, turn: Turn) -> Result<Run, Stop> {
        let played = self.play(subject, turn);
        match played {
            Err(stop) if std::ptr::eq(subject, &self.candidates.base) => {
                Err(base_stops(stop, &subject.name, turn.limit))
            }
            played => played,
        }
    }

    fn is_known(&self, measured: &Measured) -> bool {
        is_narrow(&effects(self.candidates, self.program, measured).cpu)
    }

    fn compared(&self, measured: &Measured) -> usize {
        let is_alive = |subject: usize| measured.broken[subject].is_none();
        let subjects = self.candidates.all.iter().filter_map(|candidate| candidate.measured);
        subjects.filter(|&subject| is_alive(subject)).collect::<BTreeSet<_>>().len()
    }

    /// Returns the subjects of the candidates with a gain. Candidates with the same calls share a
    /// subject.
    fn winners(&self, measured: &Measured, min_gain: f64) -> Vec<usize> {
        let effects = effects(self.candidates, self.program, measured);
        let places = fresh::winners(&judge(&effects.cpu, min_gain));
        let subject = |place: usize| self.candidates.all[effects.alive[place]].measured;
        let mut winners = Vec::new();
        for subject in places.into_iter().filter_map(subject) {
            if !winners.contains(&subject) {
                winners.push(subject);
            }
        }
        winners
    }

    /// Returns the winners, and the subjects that measure the time of the replayer itself for the
    /// winners' op streams.
    fn needed_for(&self, winners: &[usize]) -> Vec<usize> {
        let candidates = self.candidates.all.iter();
        let of_winner = candidates.filter(|c| c.measured.is_some_and(|s| winners.contains(&s)));
        let players = of_winner.map(|candidate| candidate.stream).chain([0]);
        let players = players.map(|stream| self.candidates.streams[stream].no_op);
        let all: BTreeSet<usize> = players.chain(winners.iter().copied()).collect();
        all.into_iter().collect()
    }

    fn less_work(&self) -> &'static str {
        "name fewer with --allocator, --plan or --strategy, or record a part of the run"
    }
}

impl Playing<'_> {
    /// Computes the heap in bytes. The heap is the resident memory of a run without the replayer's
    /// own memory. If the malloc allocates more at the start than the malloc of the base, the
    /// difference counts as heap.
    fn heap(&self, played: &Played, rss_kib: f64) -> f64 {
        (rss_kib - played.own_kib - self.candidates.start_kib).max(0.0) * 1024.0
    }

    /// Runs the replayer once.
    fn play(&self, subject: &Subject, turn: Turn) -> Result<Run, Stop> {
        let mut run = self.runner.run_once(subject, turn)?;
        if run.status != 0 {
            return Err(Stop::Broken(ending(run.status, &run.output)));
        }
        let played: Played = serde_json::from_slice(&run.output.begin)
            .map_err(|e| Stop::Broken(format!("the replayer printed no result: {e}")))?;
        if played.failures > 0 {
            let calls = plural(played.failures, "call");
            let fail = if played.failures == 1 { "fails" } else { "fail" };
            let how = format!("{calls} {fail} that succeeded in the program");
            return Err(Stop::Broken(how));
        }
        run.figures = Figures {
            cpu_ns: played.cpu_seconds * 1e9,
            system_ns: played.system_seconds * 1e9,
            wall_ns: played.seconds * 1e9,
            peak_rss: self.heap(&played, played.peak_rss_kib),
            end_rss: self.heap(&played, played.after_rss_kib),
            faults: played.minor_faults + played.major_faults,
        };
        Ok(run)
    }
}

/// Turns a failed run of the base into an error, because nothing can be compared without the base.
fn base_stops(stop: Stop, base: &str, limit: Duration) -> Stop {
    let (what, help) = match stop {
        Stop::TooLong => (
            format!("a replay under {base} takes longer than {}", shown(limit)),
            "--budget with about 20 times the time of one replay, or record a part of the run: \
             mallard record --window FROM..TO -o NAME -- PROGRAM",
        ),
        Stop::Broken(how) => (
            format!("the replay fails under {base}: {how}"),
            "mallard replay NAME --write FILE, and mallard-replay FILE, which replays it alone",
        ),
        stop => return stop,
    };
    let failure = Failure::new(what, "nothing was compared", help);
    Stop::Failed(failure.with_status(MALLARD_FAILED))
}
