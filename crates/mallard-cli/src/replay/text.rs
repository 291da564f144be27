//! Writes the lines below the table of a replay, which are the memory of local allocators, the cost
//! of virtual calls, a sentence, and the next command.

use super::candidates::Candidate;
use super::options::arguments;
use super::report::Report;
use mallard_measure::output::shell::quoted_path;
use mallard_measure::output::units::{budget, bytes, percent, plural, time};
use mallard_measure::rounds::words::replayed;
use mallard_measure::verdict::{Judgement, Verdict};

impl Report<'_> {
    /// Returns the exact memory of local allocators, with one line for each rule.
    pub(super) fn accounts(&self) -> String {
        let mut text = String::new();
        let mut shown = vec![0];
        for candidate in &self.candidates.all {
            if shown.contains(&candidate.stream) {
                continue;
            }
            shown.push(candidate.stream);
            let stream = &self.candidates.streams[candidate.stream];
            for (rule, counted) in stream.compiled.rules.iter().zip(&stream.account.counted.rules) {
                let held = counted.peak_bytes;
                let per_byte = held as f64 / rule.peaks.max().max(1) as f64;
                text += &format!(
                    "{}, rule {}: {} in {}, at most {} in use; the chunks take {} at most ({}){}\n",
                    candidate.name,
                    counted.rule,
                    plural(rule.blocks, "block"),
                    plural(rule.instances, "instance"),
                    bytes(rule.peaks.max()),
                    bytes(held),
                    plural(counted.chunks, "chunk"),
                    match rule.instances {
                        1 => format!(", {per_byte:.2} times what is in use"),
                        _ => String::new(),
                    }
                );
            }
        }
        text
    }

    /// Returns the cost of virtual calls, which the table does not contain. Returns an empty text
    /// if there are no virtual calls.
    pub(super) fn virtual_calls(&self) -> String {
        let Some((least, most)) = self.candidates.virtual_ns else { return String::new() };
        let mut text = String::new();
        for candidate in self.candidates.all.iter().filter(|c| c.virtual_calls > 0) {
            let calls = candidate.virtual_calls as f64;
            text += &format!(
                "{}: its result excludes {} through the abstract base, which would cost {} to {} more here, {} to \
                 {} of the program\n",
                candidate.name,
                plural(candidate.virtual_calls, "virtual call"),
                time((least * calls).max(0.0)),
                time((most * calls).max(0.0)),
                percent((least * calls / self.effects.program_ns).max(0.0)).replace(" %", ""),
                percent((most * calls / self.effects.program_ns).max(0.0)),
            );
        }
        text
    }

    /// Returns the candidate with a gain that saves the most CPU time, with the result of its
    /// confirmation runs if there are any.
    fn best(&self) -> Option<(&Candidate, &Judgement, &Judgement)> {
        let rows = self.rows().into_iter();
        let gains = rows.filter_map(|row| {
            let (cpu, memory, _) = row.judged?;
            (cpu.verdict == Verdict::Gain).then_some((row.candidate, cpu, memory))
        });
        let (candidate, cpu, memory) =
            gains.max_by(|(_, a, _), (_, b, _)| a.saving.total_cmp(&b.saving))?;
        let fresh = self.fresh(candidate).map(|fresh| &fresh.judgement);
        Some((candidate, fresh.unwrap_or(cpu), memory))
    }

    /// Returns the result in one sentence.
    pub(super) fn sentence(&self) -> String {
        let cut = match self.measured.interrupted {
            true => {
                let plays = plural(self.measured.rounds() as u64, "replay");
                format!(" (Interrupted after {plays} of each.)")
            }
            false => String::new(),
        };
        if self.measured.rounds() == 0 {
            return format!("Nothing was measured.{cut}");
        }
        if self.effects.alive.is_empty() {
            let failed = match self.candidates.all.len() {
                1 => "the only candidate failed",
                _ => "all candidates failed",
            };
            return format!("Nothing could be compared: {failed}.{cut}");
        }
        let text = match self.best() {
            Some((candidate, cpu, memory)) => replayed(&candidate.name, cpu, memory),
            None => {
                let most = self.cpu.candidates.iter().map(|c| c.high).fold(0.0, f64::max);
                match self.is_open() {
                    true => "No allocator was shown to save CPU time, but not all are measurable yet.".to_string(),
                    false => format!(
                        "No allocator saves CPU time in calls and page faults: at most {} of the program's CPU \
                         time. Locality is not estimated.",
                        percent(most)
                    ),
                }
            }
        };
        text + &cut
    }

    /// Returns whether the CPU time of a candidate is not measurable so far.
    fn is_open(&self) -> bool {
        self.cpu.candidates.iter().any(|c| c.verdict == Verdict::NotMeasurable)
    }

    /// Returns the command that the user should run next.
    pub(super) fn next(&self) -> String {
        let program = arguments(self.trace).unwrap_or_else(|| "PROG ARGS".to_string());
        let name = quoted_path(self.trace.folder());
        match self.best() {
            Some((candidate, ..)) if candidate.is_malloc => {
                format!("mallard try --allocator {} -- {program}", candidate.name)
            }
            Some(_) => format!("mallard sites {name}, for the functions that a plan can name"),
            None if self.measured.ran_out && self.is_open() => {
                format!(
                    "mallard replay {name} --budget {}",
                    budget(self.command.timing.budget() * 4)
                )
            }
            None => format!("mallard sites {name}, which shows where it allocates"),
        }
    }
}
