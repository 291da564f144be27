//! The report on a measurement: the judgements, the winner, and the next command.

use super::answer::{is_open, times_to_decide, Answer};
use super::options::Options;
use super::plan::Planned;
use crate::output::units::{budget, bytes, plural};
use crate::process::proc::{self, Process};
use crate::process::starter;
use crate::rounds::measure::shown;
use crate::rounds::measured::{LeftOut, Measured};
use crate::rounds::subject::Subject;
use crate::rounds::timing::status;
use crate::rounds::words::lacks_fresh;
use crate::verdict::estimate::share_explained;
use crate::verdict::fresh::{winner, Confirmed, Fresh};
use crate::verdict::paired::{Differences, Interval};
use crate::verdict::{rounds_missing, Judged, Judgement, Verdict, ROUNDS_MIN};
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

/// The time of a shorter run is mostly the start of a process.
const SHORT: Duration = Duration::from_millis(10);

/// The words that differ between reports of `mallard try` and of `mallard verify`.
pub struct Words {
    /// The title of the first column, such as `malloc`.
    pub kind: &'static str,
    /// The program with its arguments, as the user typed it.
    pub program: String,
    /// The short name of the program.
    pub name: String,
    /// The words for a candidate whose output or status differs from the base's.
    pub breaks: &'static str,
    /// Whether two programs are compared, instead of mallocs.
    pub is_pair: bool,
    /// The function by which the program allocates instead of malloc. `None` if it calls malloc.
    pub allocates_by: Option<&'static str>,
}

impl Default for Words {
    fn default() -> Words {
        Words {
            kind: "malloc",
            program: String::new(),
            name: String::new(),
            breaks: "breaks the program",
            is_pair: false,
            allocates_by: None,
        }
    }
}

/// The result of one candidate.
pub struct Row<'a> {
    /// The candidate, as it runs.
    pub subject: &'a Subject,
    /// The index of the candidate.
    pub index: usize,
    /// The judgements on CPU time and on memory. `None` if the candidate is broken or without
    /// effect, or if nothing was measured.
    pub judged: Option<(&'a Judgement, &'a Judgement)>,
    /// How the candidate breaks the program. `None` if the candidate works.
    pub broken: Option<&'a str>,
}

/// The result of a comparison.
pub struct Report {
    pub(super) base: Subject,
    pub(super) candidates: Vec<Subject>,
    /// The measurement.
    pub measured: Measured,
    pub(super) cpu: Judged,
    pub(super) memory: Judged,
    /// The judgements on CPU time from the rounds of the choice alone (see `rounds`).
    pub(super) chosen: Judged,
    /// The results of the confirmation runs of the best candidates. The key is the index in
    /// `Measured::alive`.
    pub(super) confirmed: Confirmed,
    /// The minimum difference that counts, as a share of the base.
    pub min_gain: f64,
    pub(super) seed: u64,
    pub(super) is_server: bool,
    /// The plan among the candidates. `None` if there is none.
    pub(super) planned: Option<Planned>,
    /// The words that this comparison uses.
    pub words: Words,
    /// The largest share of CPU time that an allocator could save.
    pub bound: Option<f64>,
    /// The shares of the real savings that a replay of a recording finds, by the names of the
    /// candidates.
    pub(super) explained: BTreeMap<String, Interval>,
    /// Notes for the reader.
    pub notes: Vec<String>,
    /// The command to type next.
    pub next: String,
}

impl Report {
    /// Judges a measurement.
    pub fn new(
        base: Subject,
        candidates: Vec<Subject>,
        measured: Measured,
        options: &Options,
        seed: u64,
    ) -> Report {
        let min_gain = options.timing.min_gain;
        let (cpu, confirmed) = measured.settle(|f| f.cpu_ns, min_gain);
        let (memory, _) = measured.settle(|f| f.peak_rss, min_gain);
        let mut report = Report {
            cpu,
            confirmed,
            memory,
            chosen: measured.judge(|f| f.cpu_ns, min_gain),
            base,
            candidates,
            measured,
            min_gain,
            seed,
            is_server: options.is_server(),
            planned: None,
            words: Words::default(),
            bound: None,
            explained: BTreeMap::new(),
            notes: Vec::new(),
            next: String::new(),
        };
        report.notes = report.own_notes(options);
        report
    }

    /// Returns notes about the measurement itself.
    pub(super) fn own_notes(&self, options: &Options) -> Vec<String> {
        let mut notes = Vec::new();
        let measured = &self.measured;
        let (rounds, first) = (measured.all_rounds(), measured.first);
        if rounds > 0 && first < SHORT && !self.is_server {
            notes.push(format!(
                "one run takes {}, mostly to start the process; give the program more work",
                shown(first)
            ));
        }
        if let (true, Some(needed)) = (measured.ran_out, rounds_missing(&self.cpu)) {
            let budget = shown(options.timing.budget());
            let runs = plural(rounds as u64, "run");
            notes.push(format!("the budget of {budget} was enough for {runs} of each, but verdicts need {needed} or more"));
        }
        if measured.status != 0 && rounds > 0 {
            let how = crate::rounds::subject::ending(measured.status, &Default::default());
            notes.push(format!("the program fails in every run: {how}"));
        }
        if rounds > 0 && measured.median_of_all(0, |f| f.peak_rss) < 1.1 * floor() {
            let floor = bytes(floor() as u64);
            notes.push(format!("peaks below {floor} cannot be compared, because a process begins with a copy of mallard's memory"));
        }
        if options.is_server() {
            notes.push("CPU time, wall time and page faults are shown per load".to_string());
        }
        if measured.dropped.iter().flatten().any(|why| why.runs() == Some(1)) {
            let note =
                "some mallocs ran only once before the choice, so another one may save more: use a larger --budget";
            notes.push(note.to_string());
        }
        notes.extend(lacks_fresh(measured).filter(|_| self.winner().is_some()));
        notes
    }

    /// Returns the result of the confirmation runs of a candidate.
    pub fn fresh(&self, index: usize) -> Option<&Fresh> {
        self.confirmed.get(&self.place(index)?)
    }

    /// Stores which shares of the measured savings a replay found. `replayed` has the savings in
    /// the replay, by the names of the mallocs, as shares of `program_ns`, the CPU time of the
    /// recorded program.
    pub fn explain(&mut self, replayed: &BTreeMap<String, Differences>, program_ns: f64) {
        let scale = program_ns / self.measured.median_of_all(0, |f| f.cpu_ns);
        let measured = &self.measured;
        let share = |index: usize| {
            let name = &self.candidates[index].name;
            let real = measured.differences(index, |f| f.cpu_ns)?;
            let share = share_explained(replayed.get(name)?, scale, &real)?;
            Some((name.clone(), share))
        };
        self.explained = self.measured.alive().into_iter().filter_map(share).collect();
    }

    /// Returns the results of all candidates.
    pub fn rows<'a>(&'a self) -> Vec<Row<'a>> {
        let mut judged = self.cpu.candidates.iter().zip(&self.memory.candidates);
        let row = |(index, subject): (usize, &'a Subject)| {
            let broken = self.measured.broken[index].as_deref();
            let is_measured = broken.is_none() && self.measured.left_out[index].is_none();
            let judged = if is_measured { judged.next() } else { None };
            Row { subject, index, judged, broken }
        };
        self.candidates.iter().enumerate().map(row).collect()
    }

    /// Returns the names of the settings that were left out for the reason `why`.
    pub(super) fn left_out(&self, why: LeftOut) -> Vec<&str> {
        let all = self.candidates.iter().zip(&self.measured.left_out);
        let of = all.filter(|(_, of)| **of == Some(why));
        of.map(|(subject, _)| subject.name.as_str()).collect()
    }

    /// Returns the name of the winner.
    pub fn best(&self) -> Option<String> {
        self.winner().map(|(row, _)| row.subject.name.clone())
    }

    /// Returns the candidate that the result names as the best, with the judgement on its CPU time.
    /// `None` if no candidate has a gain.
    pub fn winner(&self) -> Option<(Row<'_>, &Judgement)> {
        let place = winner(&self.chosen, &self.cpu, &self.confirmed)?;
        let row = self.rows().into_iter().find(|row| self.place(row.index) == Some(place))?;
        if self.is_control(row.index) {
            return None; // a control wins only by chance, because it just adds work to the base
        }
        Some((row, &self.cpu.candidates[place]))
    }

    /// Returns whether a candidate is the control of a plan, which nobody would use.
    pub(super) fn is_control(&self, index: usize) -> bool {
        self.planned.as_ref().is_some_and(|planned| planned.control == index)
    }

    /// Returns the index of a candidate among the measured ones. `None` if it was not measured.
    pub(super) fn place(&self, index: usize) -> Option<usize> {
        self.measured.alive().iter().position(|&alive| alive == index)
    }

    /// Returns the candidate with a gain that saves the most CPU time or the most memory.
    pub fn best_by<'a>(
        &'a self,
        of: impl Fn((&'a Judgement, &'a Judgement)) -> &'a Judgement,
    ) -> Option<(Row<'a>, &'a Judgement)> {
        let gains = self.rows().into_iter().filter_map(|row| {
            let judgement = of(row.judged.filter(|_| !self.is_control(row.index))?);
            (judgement.verdict == Verdict::Gain).then_some((row, judgement))
        });
        gains.max_by(|(_, a), (_, b)| a.saving.total_cmp(&b.saving))
    }

    /// Returns the answer about CPU time for a comparison without a winner.
    pub(super) fn answer(&self) -> Answer<'_> {
        if self.measured.all_rounds() < ROUNDS_MIN {
            return Answer::TooFewRuns;
        }
        let rows = self.rows().into_iter().filter(|row| !self.is_control(row.index));
        let judged = rows.filter_map(|row| Some((row.subject.name.as_str(), row.judged?.0)));
        Answer::of(judged, self.min_gain).unwrap_or(Answer::No { most: 0.0 })
    }

    /// Returns whether a candidate loses CPU time or memory, or breaks the program.
    pub fn has_loss(&self) -> bool {
        self.rows().iter().any(|row| {
            let lost = |(cpu, memory): (&Judgement, &Judgement)| {
                cpu.verdict == Verdict::Loss || memory.verdict == Verdict::Loss
            };
            row.broken.is_some() || row.judged.is_some_and(lost) && !self.is_control(row.index)
        })
    }

    /// Returns the exit status of a command that is not a gate.
    pub fn status(&self) -> ExitCode {
        status(&self.measured)
    }

    /// Returns the command to type next, if a longer measurement is likely to decide more.
    pub fn more_time(&self, options: &Options) -> Option<String> {
        let rounds = self.measured.all_rounds();
        if rounds > 0 && !self.cpu.candidates.iter().any(is_open) {
            return None;
        }
        let times = match self.answer() {
            Answer::No { .. } => return None,
            Answer::TooFewRuns => (2 * ROUNDS_MIN) as f64 / rounds.max(1) as f64,
            Answer::NotYet { name, .. } => {
                let of = self.rows().into_iter().find(|row| row.subject.name == name)?.judged?.0;
                times_to_decide(of, self.min_gain)
            }
        };
        let more = budget(options.timing.budget().mul_f64(times));
        Some(format!("the same command with --budget {more}, on a quiet machine"))
    }
}

/// Returns the smallest peak that can be measured, in bytes. Between fork and exec, a process has a
/// copy of the anonymous memory of the process that made it. The kernel counts this copy in the
/// peak.
pub fn floor() -> f64 {
    let maker = starter::process().map_or(Process::This, |it| Process::Id(it.as_raw() as u32));
    proc::status_bytes(maker, "RssAnon:").unwrap_or(0) as f64
}
