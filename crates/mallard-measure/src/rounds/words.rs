//! Formats judgements for tables and sentences.

use super::measured::Measured;
use crate::output::units::{percent, percents, plural};
use crate::verdict::fresh::Fresh;
use crate::verdict::{Judgement, Verdict};

/// Formats the saving with its interval, and the verdict.
pub fn cells(of: &Judgement, column: usize) -> [String; 2] {
    let verdict = match (column, of.verdict, of.why) {
        (1, Verdict::NoDifference, _) => "control".to_string(),
        (_, _, Some(why)) if why.runs().is_some() => why.to_string(),
        (_, verdict, _) => verdict.to_string(),
    };
    if !of.saving.is_finite() {
        return [String::new(), verdict];
    }
    let saved = percent(of.saving);
    let range = percents(of.low, of.high).replace(" %", "");
    [format!("{saved} ({range})"), verdict]
}

/// Returns a line with the results of the confirmation runs. Returns an empty text if there are
/// none.
pub fn fresh_runs<'a>(named: impl Iterator<Item = (&'a str, &'a Fresh)>, one: &str) -> String {
    let all: Vec<_> = named.collect();
    let Some((_, first)) = all.first() else { return String::new() };
    let said: Vec<String> = all
        .iter()
        .map(|(name, fresh)| format!("{name} {}", cells(&fresh.judgement, 0).join(", ")))
        .collect();
    let runs = plural(first.rounds as u64, &format!("confirmation {one}"));
    format!("  in {runs} of each after the choice: {}\n", said.join("; "))
}

/// Returns a note if there were no confirmation runs of the best candidates.
pub fn lacks_fresh(measured: &Measured) -> Option<String> {
    let note = "the best was chosen by the runs that measured it, so it may save less; a larger \
                --budget allows confirmation runs";
    measured.lacks_fresh.then(|| note.to_string())
}

/// Describes in a sentence what a replay shows about an allocator.
pub fn replayed(name: &str, cpu: &Judgement, memory: &Judgement) -> String {
    let [time, memory] = [needs(cpu, "CPU time"), needs(memory, "memory in the heap")];
    format!(
        "With {name}, the program would need {time} for its calls and page faults, and {memory}. \
         Locality is not estimated."
    )
}

/// Formats a saving in words: `3.1 % less CPU time (2.5 to 3.6 %)`.
pub fn needs(of: &Judgement, what: &str) -> String {
    let size = |share: f64| percent(share.abs());
    let range = |a: f64, b: f64| percents(a.abs(), b.abs());
    match of.verdict {
        Verdict::Gain => format!("{} less {what} ({})", size(of.saving), range(of.low, of.high)),
        Verdict::Loss => format!("{} more {what} ({})", size(of.saving), range(of.high, of.low)),
        Verdict::NoDifference => {
            format!("as much {what} (within {})", size(of.low.abs().max(of.high.abs())))
        }
        Verdict::NotMeasurable => format!("{what} still unknown"),
    }
}
