//! Prints the result of a replay as a table, a sentence and the next command, or as JSON.

use super::candidates::{Candidate, Candidates};
use super::effects::{confirm, effects, Effects, Program};
use super::options::Command;
use mallard_measure::error::Failure;
use mallard_measure::output::columns::Columns;
use mallard_measure::output::shell::as_called;
use mallard_measure::output::terminal::{plain_table, say, write};
use mallard_measure::output::units::{bytes, percent, plural, time};
use mallard_measure::rounds::measured::Measured;
use mallard_measure::rounds::timing::{status, Timing};
use mallard_measure::rounds::words::{cells, fresh_runs, lacks_fresh};
use mallard_measure::verdict::estimate::{Estimate, Part};
use mallard_measure::verdict::fresh::{Confirmed, Fresh};
use mallard_measure::verdict::{candidate, judge, rounds_missing, Judged, Judgement};
use mallard_trace::Trace;
use std::process::ExitCode;

/// The minimum and maximum of the saving that a replay showed, divided by the real saving. Measured
/// for perl, python3 and git under mimalloc, jemalloc and tcmalloc.
const EXPLAINED: (f64, f64) = (0.4, 1.1);
/// The largest effect that better locality alone can have, as a share of the program's CPU time.
const LOCALITY: f64 = 0.01;
/// The maximum share of a saving that is assumed to overlap with other work of the processor (see
/// `effects::HIDDEN_NS`). The programs of tests/known saved at least the remaining share of what a
/// replay showed, after they were changed as recommended.
const HIDDEN_MAX: f64 = 0.5;

/// The result of one candidate.
pub(super) struct Row<'a> {
    pub(super) candidate: &'a Candidate,
    /// The judgements on CPU time and memory, and the parts of the saving of CPU time. `None` if
    /// the candidate is broken or nothing was measured.
    pub(super) judged: Option<(&'a Judgement, &'a Judgement, Estimate)>,
    /// How the candidate fails. `None` if it does not fail.
    pub(super) broken: Option<&'a str>,
}

/// The result of a replay.
pub struct Report<'a> {
    pub(super) command: &'a Command,
    pub(super) trace: &'a Trace,
    pub(super) candidates: &'a Candidates,
    pub(super) program: &'a Program,
    pub(super) measured: Measured,
    pub(super) seed: u64,
    pub(super) effects: Effects,
    pub(super) cpu: Judged,
    pub(super) memory: Judged,
    /// The results of confirmation runs of the best candidates, by their indices in
    /// `Effects::alive`.
    confirmed: Confirmed,
    /// Notes for the reader.
    pub notes: Vec<String>,
}

impl<'a> Report<'a> {
    /// Judges the runs.
    pub fn new(
        command: &'a Command,
        trace: &'a Trace,
        candidates: &'a Candidates,
        program: &'a Program,
        measured: Measured,
        seed: u64,
    ) -> Report<'a> {
        let effects = effects(candidates, program, &measured);
        let min_gain = command.timing.min_gain;
        let mut cpu = judge(&effects.cpu, min_gain);
        let confirmed = confirm(candidates, program, &measured, &mut cpu, min_gain);
        program.refuse_verdicts(&mut cpu);
        let mut report = Report {
            cpu,
            memory: judge(&effects.memory, min_gain),
            command,
            trace,
            candidates,
            program,
            measured,
            seed,
            effects,
            confirmed,
            notes: Vec::new(),
        };
        report.notes = report.own_notes();
        report
    }

    fn own_notes(&self) -> Vec<String> {
        let mut notes = self.candidates.notes.clone();
        if self.program.cpu_ns.is_none() {
            let what = match self.program.part {
                Some(_) => "the trace does not have the CPU time of the program",
                None => {
                    "the CPU time of the recorded part of the run is not known precisely enough"
                }
            };
            notes.push(format!("{what}, so savings are shares of the time of the recorded calls"));
        }
        if self.program.lacks_cores() {
            notes.push(format!(
                "the program had {} at the same time, but the replay has {}, so contention is not measurable \
                 here",
                plural(self.program.threads as u64, "thread"),
                plural(self.program.cores as u64, "processor")
            ));
        }
        if self.program.has_threads_that_meet() {
            notes.push(
                "several threads of the program allocate at the same time, but a replay does not show how \
                 often they wait for each other in the allocator; mallard try measures that"
                    .to_string(),
            );
        }
        let rounds = self.measured.rounds();
        if let (true, Some(needed)) = (self.measured.ran_out, rounds_missing(&self.cpu)) {
            notes.push(format!(
                "the budget was enough for {} of each, but verdicts need {needed} or more",
                plural(rounds as u64, "replay")
            ));
        }
        notes.extend(lacks_fresh(&self.measured));
        notes
    }

    /// Returns the interval in which the saving of the program is expected.
    pub(super) fn predicted(&self, row: &Row) -> Option<(f64, f64)> {
        let hidden = self.effects.hidden[row.candidate.stream];
        predicted(row.judged.as_ref()?.0, self.program.cpu_range, hidden)
    }

    /// Returns the result of the confirmation runs of a candidate.
    pub(super) fn fresh(&self, candidate: &Candidate) -> Option<&Fresh> {
        let is_it = |&i: &usize| std::ptr::eq(&self.candidates.all[i], candidate);
        self.confirmed.get(&self.effects.alive.iter().position(is_it)?)
    }

    /// Returns a line with the results of confirmation runs.
    fn fresh_plays(&self) -> String {
        let named = self.confirmed.iter().map(|(&place, fresh)| {
            (self.candidates.all[self.effects.alive[place]].name.as_str(), fresh)
        });
        fresh_runs(named, "replay")
    }

    /// Returns one line of the result for each candidate.
    pub(super) fn rows(&self) -> Vec<Row<'_>> {
        let place = |i: usize| self.effects.alive.iter().position(|&alive| alive == i);
        let row = |(i, candidate): (usize, &'a Candidate)| {
            let broken = candidate.measured.and_then(|s| self.measured.broken[s].as_deref());
            let judged = place(i).filter(|_| self.measured.rounds() > 0).map(|at| {
                (&self.cpu.candidates[at], &self.memory.candidates[at], self.estimate(at))
            });
            Row { candidate, judged, broken }
        };
        self.candidates.all.iter().enumerate().map(row).collect()
    }

    /// Returns the parts of a saving of CPU time.
    fn estimate(&self, at: usize) -> Estimate {
        let part = |rounds| match candidate(rounds, at) {
            Some(of) => Part::Saves(of.interval()),
            None => Part::NotEstimated,
        };
        Estimate {
            allocator_work: part(&self.effects.allocator),
            pages: part(&self.effects.pages),
            locality: Part::NotEstimated,
        }
    }

    /// Returns the exit status.
    pub fn status(&self) -> ExitCode {
        status(&self.measured)
    }

    /// Writes the result to stdout.
    pub fn show(&self, timing: &Timing) -> Result<(), Failure> {
        if timing.json {
            return write(&format!("{}\n", self.json()));
        }
        let mut text = format!("{}\n\n", self.head());
        if self.measured.rounds() > 0 {
            text += &format!("{}\n\n", self.table());
        }
        for row in self.rows() {
            if let Some(why) = row.broken {
                text += &format!("{}: {why}\n", row.candidate.name);
            }
        }
        text += &self.accounts();
        text += &self.virtual_calls();
        text += &format!("{}\n", self.sentence());
        text += &self.fresh_plays();
        if !timing.quiet {
            text.extend(self.notes.iter().map(|note| format!("  note: {}\n", as_called(note))));
        }
        text += &format!("  next: {}\n", as_called(&self.next()));
        say(&text)
    }

    fn head(&self) -> String {
        let compiled = &self.candidates.streams[0].compiled;
        let cpu = match self.program.cpu_ns {
            Some(ns) => format!("{} of CPU time", time(ns)),
            None => "an unknown CPU time".to_string(),
        };
        format!(
            "{} of {}, at most {} in use; the program took {cpu}",
            plural(compiled.calls, "call"),
            plural(u64::from(compiled.threads), "thread"),
            bytes(compiled.live_peak)
        )
    }

    fn table(&self) -> Columns {
        let titles = [
            "allocator",
            "calls",
            "saved",
            "verdict",
            "allocator work",
            "pages",
            "in the program",
            "heap peak",
            "saved",
            "verdict",
        ];
        let base = &self.candidates.base.name;
        let mut lines = vec![self.line(base, None, 0, 0, None)];
        let control = (&self.cpu.control, &self.memory.control);
        lines.push(self.line(&format!("{base} again"), None, 1, 0, Some(control)));
        for row in self.rows() {
            let Some((cpu, memory, _)) = row.judged else { continue };
            let column = row.candidate.measured.map_or(0, |subject| subject + 2);
            let name = match &row.candidate.measured_as {
                Some(direct) => format!("{} (as {direct})", row.candidate.name),
                None => row.candidate.name.clone(),
            };
            lines.push(self.line(
                &name,
                Some(&row),
                column,
                row.candidate.stream,
                Some((cpu, memory)),
            ));
        }
        plain_table(&titles, lines)
    }

    fn line(
        &self,
        name: &str,
        row: Option<&Row>,
        column: usize,
        stream: usize,
        judged: Option<(&Judgement, &Judgement)>,
    ) -> Vec<String> {
        let cell = |judgement: &Judgement| cells(judgement, column);
        let none = || ["".to_string(), "base".to_string()];
        let [saved, verdict] = judged.map_or_else(none, |(cpu, _)| cell(cpu));
        let [memory_saved, memory_verdict] = judged.map_or_else(none, |(_, memory)| cell(memory));
        let parts = row.and_then(|row| row.judged.as_ref()).map(|(_, _, estimate)| *estimate);
        let part = |part: Option<Part>| match part {
            Some(Part::Saves(of)) => percent(of.saving),
            _ => String::new(),
        };
        let expected = row.and_then(|row| self.predicted(row));
        let expected = expected.map_or(String::new(), |(low, high)| {
            format!("{} to {}", percent(low).replace(" %", ""), percent(high))
        });
        vec![
            name.to_string(),
            time(self.calls_ns(column, stream)),
            saved,
            verdict,
            part(parts.map(|p| p.allocator_work)),
            part(parts.map(|p| p.pages)),
            expected,
            bytes(self.measured.median(column, |f| f.peak_rss) as u64),
            memory_saved,
            memory_verdict,
        ]
    }

    /// Returns the CPU time of the calls in a column, without the time of the replayer.
    pub(super) fn calls_ns(&self, column: usize, stream: usize) -> f64 {
        let cpu = |column| self.measured.median(column, |f| f.cpu_ns);
        (cpu(column) - cpu(self.candidates.streams[stream].no_op + 2)).max(0.0)
    }
}

/// Estimates the most likely saving of the program itself if a replay shows `saving`. Assumes that
/// the replay found the geometric mean of the shares in `EXPLAINED`.
pub fn likely(saving: f64) -> f64 {
    (saving / (EXPLAINED.0 * EXPLAINED.1).sqrt()).min(1.0)
}

/// Returns the smallest and the largest saving that is expected in the program itself, locality
/// included. `range` is `Program::cpu_range`, and `hidden` is from `Effects::hidden`. `None` if the
/// replay has no figure.
pub fn predicted(cpu: &Judgement, range: (f64, f64), hidden: f64) -> Option<(f64, f64)> {
    let (low, high) = (cpu.low, cpu.high);
    if !(low.is_finite() && high.is_finite()) {
        return None;
    }
    // If the program needs less CPU time than assumed, the same saving in ns is a larger share.
    let (least, most) = range;
    let all = [low, high].into_iter().flat_map(|end| {
        [EXPLAINED.0, EXPLAINED.1].into_iter().flat_map(move |explained| {
            [least, most].into_iter().map(move |share| end / explained / share)
        })
    });
    let (least, most) = all.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), value| {
        (least.min(value), most.max(value))
    });
    // CPU time that overlaps with other work is neither saved nor lost.
    let least = least.min((least - hidden).max(HIDDEN_MAX * least));
    let most = most.max((most + hidden).min(HIDDEN_MAX * most));
    // No program saves more CPU time than it needs.
    Some(((least - LOCALITY).min(1.0), (most + LOCALITY).min(1.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judgement(low: f64, high: f64) -> Judgement {
        let saving = (low + high) / 2.0;
        Judgement {
            saving,
            low,
            high,
            p: 0.0,
            verdict: mallard_measure::verdict::Verdict::Gain,
            why: None,
        }
    }

    #[test]
    fn a_prediction_is_widened_for_effects_of_locality() {
        let (low, high) = predicted(&judgement(0.04, 0.06), (1.0, 1.0), 0.0).unwrap();
        assert!(
            (low - (0.04 / 1.1 - 0.01)).abs() < 1e-9 && (high - (0.06 / 0.4 + 0.01)).abs() < 1e-9
        );
        let (low, high) = predicted(&judgement(-0.02, 0.01), (1.0, 1.0), 0.0).unwrap();
        assert!((low - (-0.06)).abs() < 1e-9 && (high - 0.035).abs() < 1e-9);
        let (low, high) = predicted(&judgement(0.04, 0.06), (0.5, 2.0), 0.0).unwrap();
        assert!(
            (low - (0.02 / 1.1 - 0.01)).abs() < 1e-9 && (high - (0.12 / 0.4 + 0.01)).abs() < 1e-9
        );
        assert_eq!(predicted(&judgement(f64::NAN, 1.0), (1.0, 1.0), 0.0), None);
    }
    #[test]
    fn a_prediction_is_widened_for_calls_that_overlap_with_other_work() {
        let of = |low, high, hidden| predicted(&judgement(low, high), (1.0, 1.0), hidden).unwrap();
        let near = |a: (f64, f64), b: (f64, f64)| (a.0 - b.0).abs() + (a.1 - b.1).abs() < 1e-9;
        // Only the end of the interval that is closer to 0 changes, by at most one half.
        assert!(near(of(0.11, 0.2, 0.04), (0.1 - 0.04 - 0.01, 0.2 / 0.4 + 0.01)));
        assert!(near(of(0.11, 0.2, 0.5), (0.05 - 0.01, 0.2 / 0.4 + 0.01)));
        assert!(near(of(-0.2, -0.11, 0.04), (-0.5 - 0.01, -0.1 + 0.04 + 0.01)));
        assert!(near(of(-0.2, -0.11, 0.5), (-0.5 - 0.01, -0.05 + 0.01)));
        assert!(near(of(-0.1, 0.1, 0.5), (-0.26, 0.26)));
    }
}
