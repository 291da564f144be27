//! Replays a recording with candidates that are added one by one, for `mallard advise`.

use super::candidates::{Builder, Candidates};
use super::effects::{confirm, effects, Effects, Program};
use super::options::temporary_folder;
use super::player::{self, Manner};
use super::playing::Playing;
use super::report::predicted;
use mallard_measure::clock::{self, Moment};
use mallard_measure::error::Failure;
use mallard_measure::mallocs::Allocator;
use mallard_measure::output::progress::Work;
use mallard_measure::rounds::measured::Measured;
use mallard_measure::rounds::runs::Runs;
use mallard_measure::rounds::subject::{Figures, Runner, Subject, Turn};
use mallard_measure::rounds::timing::Timing;
use mallard_measure::verdict::{judge, Judged, Judgement, Why};
use mallard_trace::replay::{Options, Plan, RuleResult};
use mallard_trace::Trace;
use std::time::Duration;
use tempfile::TempDir;

/// A recording that is replayed under several candidates.
pub struct Session<'a> {
    trace: &'a Trace,
    builder: Builder<'a>,
    own: Allocator,
    /// The time to compile the recorded calls, and to replay them once.
    pub first: Duration,
    /// The time of one run of the replayer.
    pub play: Duration,
    /// The minimum, median and maximum CPU time of runs of the program without the recorder, in ns.
    /// If `None`, the CPU time is estimated from the recorded run.
    pub cpu: Option<(f64, f64, f64)>,
    /// The directory of the op streams, which is removed when the value is dropped.
    _folder: TempDir,
}

/// The exact memory of the local allocators of a plan.
#[derive(Clone, Debug)]
pub struct Accounted {
    /// The blocks to which the first rule of the plan applies.
    pub rule: RuleResult,
    /// The peak of the bytes that the local allocators hold.
    pub held_peak: u64,
    /// Notes for the reader of this plan.
    pub notes: Vec<String>,
}

/// The results of the runs of a candidate.
#[derive(Clone, Debug)]
pub struct Played {
    /// The saving of the program's CPU time, from confirmation runs if there were any.
    pub cpu: Judgement,
    /// The part of the CPU time saving that comes from less work in the allocator.
    pub allocator: Judgement,
    /// The part of the CPU time saving that comes from less work on pages in the kernel.
    pub pages: Judgement,
    /// The saving of memory of the heap, at its peak.
    pub memory: Judgement,
    /// The saving of memory of the heap after the last call.
    pub memory_at_end: Judgement,
    /// The interval in which the saving of the program is expected, locality included.
    pub expected: Option<(f64, f64)>,
    /// The peak of the heap's bytes, under the base and under the candidate.
    pub peak_bytes: (u64, u64),
    /// Bytes of the heap after the last call, under the base and under the candidate.
    pub end_bytes: (u64, u64),
}

/// The results of a measurement of replays.
pub struct Outcome {
    /// The result of each measured candidate, in order, or how the candidate breaks. `Err(None)` if
    /// the candidate was not replayed.
    pub played: Vec<Result<Played, Option<String>>>,
    /// The difference between the base and its control.
    pub control: Judgement,
    /// The CPU time of replaying all calls under the base, page faults included, as a share of the
    /// program's CPU time. `None` if this time is too short to be measured.
    pub calls: Option<f64>,
    /// Whether the user has interrupted the measurement.
    pub interrupted: bool,
    /// Notes for the reader.
    pub notes: Vec<String>,
}

impl<'a> Session<'a> {
    /// Compiles the recorded calls and replays them once.
    pub fn begin(
        trace: &'a Trace,
        allow_escapes: bool,
        quiet: bool,
    ) -> Result<Session<'a>, Failure> {
        let player = player::find()?;
        let folder = temporary_folder()?;
        let own = crate::record::recorded::base_of(trace)?;
        let options = Options { allow_escapes, ..Options::default() };
        let work = (!quiet).then(Work::begin);
        let begin = Moment::now();
        let how = (Manner::default(), options, work);
        let builder = Builder::begin(trace, &player, folder.path(), &own, how)?;
        let (first, play) = (begin.elapsed(), builder.out.first_play);
        Ok(Session { trace, builder, own, first, play, cpu: None, _folder: folder })
    }

    /// Adds a malloc as a candidate, and returns its index.
    pub fn malloc(&mut self, allocator: &Allocator) -> usize {
        self.builder.malloc(allocator);
        self.builder.out.all.len() - 1
    }

    /// Adds a plan, compiles the op stream of the plan, and counts the memory of the plan's
    /// allocators.
    pub fn plan(&mut self, name: &str, plan: &Plan) -> Result<(usize, Accounted), Failure> {
        let own = self.own.clone();
        let of_others = self.builder.out.notes.len();
        self.builder.plan(name, plan, &own, &own)?;
        let notes = self.builder.out.notes.split_off(of_others);
        let number = self.builder.out.all.len() - 1;
        let stream = &self.builder.out.streams[self.builder.out.all[number].stream];
        let rule = stream.compiled.rules.first().cloned().unwrap_or_default();
        let held_peak = stream.account.counted.peak_bytes;
        Ok((number, Accounted { rule, held_peak, notes }))
    }

    /// Returns the peak of the program's live bytes.
    pub fn live_peak(&self) -> u64 {
        self.builder.out.streams[0].compiled.live_peak
    }

    /// Replays the base and some candidates once each, to choose which candidates to measure.
    /// Returns the savings as shares of the program's CPU time, and the mean time of a run. A
    /// candidate that cannot be replayed has the saving `None`. Ends early if the user interrupts
    /// or `limit` is over.
    pub fn pilot(
        &self,
        some: &[usize],
        runner: &Runner,
        limit: Duration,
    ) -> Result<Pilot, Failure> {
        let candidates = &self.builder.out;
        let program = Program::of(self.trace, candidates)?.with_cpu(self.cpu);
        let playing = Playing::new(runner.clone(), candidates, &program);
        let mut pilot = Flight { playing, begin: Moment::now(), limit, plays: 0, last: None };
        let base = pilot.fly(&candidates.base);
        let base = pilot.fly(&candidates.base).or(base);
        let mut no_ops = vec![None; candidates.streams.len()];
        no_ops[0] = pilot.fly(&candidates.subjects[candidates.streams[0].no_op]);
        let mut savings = Vec::new();
        for &i in some {
            let candidate = &candidates.all[i];
            let own = candidate.measured.and_then(|s| pilot.fly(&candidates.subjects[s]));
            let stream = candidate.stream;
            if no_ops[stream].is_none() {
                no_ops[stream] = pilot.fly(&candidates.subjects[candidates.streams[stream].no_op]);
            }
            let saving = || {
                let calls = base?.cpu_ns - no_ops[0]?.cpu_ns;
                let all = program.cpu_ns.unwrap_or(calls).max(calls).max(1.0);
                let saved = calls - (own?.cpu_ns - no_ops[stream]?.cpu_ns);
                Some((saved / all, own?.peak_rss))
            };
            savings.push(saving());
        }
        Ok(Pilot { savings, play: pilot.begin.elapsed() / pilot.plays.max(1) })
    }

    /// Measures some of the candidates, interleaved with the base.
    pub fn measure(
        self,
        some: &[usize],
        runner: &Runner,
        timing: &Timing,
    ) -> Result<Outcome, Failure> {
        let Session { trace, builder, cpu, _folder, .. } = self;
        let candidates = builder.out.only(some);
        let program = Program::of(trace, &candidates)?.with_cpu(cpu);
        let playing = Playing::new(runner.clone(), &candidates, &program);
        let (measured, _) = playing.measure(timing, &candidates)?;
        Ok(outcome(&candidates, &program, &measured, timing.min_gain))
    }
}

/// The results of replaying each candidate once.
pub struct Pilot {
    /// The saving of CPU time and the peak of the heap's bytes, in the order of the candidates.
    pub savings: Vec<Option<(f64, f64)>>,
    /// The mean time of a run.
    pub play: Duration,
}

/// A series of single replays within a time limit.
struct Flight<'a> {
    playing: Playing<'a>,
    begin: Moment,
    limit: Duration,
    plays: u32,
    last: Option<Duration>,
}

impl Flight<'_> {
    /// Replays a subject once. Returns `None` if the run fails, or if too little time is left.
    fn fly(&mut self, subject: &Subject) -> Option<Figures> {
        let rest = self.limit.saturating_sub(self.begin.elapsed());
        if self.last.is_some_and(|last| last > rest) {
            return None;
        }
        let begin = Moment::now();
        let limit = clock::limit(rest.max(Duration::from_secs(1)));
        let turn = Turn { padding: 0, limit, watches: false };
        let run = self.playing.run(subject, turn);
        self.plays += 1;
        self.last = Some(begin.elapsed());
        match run {
            Ok(run) => Some(run.figures),
            Err(_) => None,
        }
    }
}

fn outcome(
    candidates: &Candidates,
    program: &Program,
    measured: &Measured,
    min_gain: f64,
) -> Outcome {
    let effects = effects(candidates, program, measured);
    let mut cpu = judge(&effects.cpu, min_gain);
    let confirmed = confirm(candidates, program, measured, &mut cpu, min_gain);
    program.refuse_verdicts(&mut cpu);
    let parts = Parts {
        allocator: judge(&effects.allocator, min_gain),
        pages: judge(&effects.pages, min_gain),
        memory: judge(&effects.memory, min_gain),
        memory_at_end: judge(&effects.memory_at_end, min_gain),
    };
    let played = |(i, candidate): (usize, &super::candidates::Candidate)| {
        let broken = candidate.measured.and_then(|s| measured.broken[s].clone());
        let Some(place) = place(&effects, i).filter(|_| measured.rounds() > 0) else {
            return Err(broken);
        };
        let fresh = confirmed.get(&place).map(|fresh| fresh.judgement.clone());
        let judgement = match cpu.candidates[place].why {
            // These reasons are more informative than the figures of the confirmation runs.
            Some(Why::NotConfirmed | Why::ThreadsMeet) => cpu.candidates[place].clone(),
            _ => fresh.unwrap_or_else(|| cpu.candidates[place].clone()),
        };
        let column = candidate.measured.map_or(0, |subject| subject + 2);
        let both = |figure: fn(&Figures) -> f64| {
            (measured.median(0, figure) as u64, measured.median(column, figure) as u64)
        };
        Ok(Played {
            expected: predicted(&judgement, program.cpu_range, effects.hidden[candidate.stream]),
            cpu: judgement,
            allocator: parts.allocator.candidates[place].clone(),
            pages: parts.pages.candidates[place].clone(),
            memory: parts.memory.candidates[place].clone(),
            memory_at_end: parts.memory_at_end.candidates[place].clone(),
            peak_bytes: both(|f| f.peak_rss),
            end_bytes: both(|f| f.end_rss),
        })
    };
    let mut notes = candidates.notes.clone();
    if program.lacks_cores() {
        notes.push(format!(
            "the program had {} threads at the same time, but the replay has {} processors, so contention \
             is not measurable here",
            program.threads, program.cores
        ));
    }
    Outcome {
        played: candidates.all.iter().enumerate().map(played).collect(),
        control: cpu.control,
        calls: (effects.calls_ns > 1.0).then(|| effects.calls_ns / effects.program_ns),
        interrupted: measured.interrupted,
        notes,
    }
}

/// The judgements on the parts of the CPU time, and on memory.
struct Parts {
    allocator: Judged,
    pages: Judged,
    memory: Judged,
    memory_at_end: Judged,
}

fn place(effects: &Effects, candidate: usize) -> Option<usize> {
    effects.alive.iter().position(|&alive| alive == candidate)
}
