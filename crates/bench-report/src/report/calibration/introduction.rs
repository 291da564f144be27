//! Writes the paragraphs with which the page begins: the conclusion, and how to read the tables.

use super::changes;
use super::counts::{peak_tolerance, Count, Question};
use super::pairs::{Figures, Pair, SUITE};
use crate::rows::experiment::Machine;
use crate::statistics::Range;

/// Paragraphs that explain the page.
pub const READING: &[&str] = &[
    "All figures on this page are savings: a positive figure is a saving, and a negative figure means that the \
     program needs more CPU time or memory than before.",
    "**Source changes.** `mallard advise` predicts what a source change saves before you write the change. Here, programs were changed, mostly as recommended. The column *replay* has the interval that a replay predicts. *Unchanged program with plan* has the saving that was measured in the unchanged \
     program, when a library supplied the arenas and pools by a [plan](guide/plans.md). *Recommendation* has the \
     interval that `mallard advise` shows; it allows also for savings that only a source change can have. \
     *Changed program* has the saving that was measured after the change. The runs before and after the change \
     were interleaved. In the column *change*, *convert AS4 in parse* means that the function `parse` was changed to use an \
     allocator by [strategy](guide/strategies.md) AS4, *pool* that a data structure got a pool, and *fix* that the \
     code was changed without another allocator.",
    "**Other mallocs.** `mallard replay` predicts what a program saves with another malloc. Here, programs were \
     recorded once, and the recording was replayed under several mallocs. Then `mallard try` measured the programs \
     under the same mallocs. Savings are relative to glibc's malloc. The measured saving is the median from interleaved \
     runs, with the verdict by `mallard try`: *gain*, *loss*, *no difference* or *not measurable*.",
    "A replay makes the recorded calls and the first access to each page, and nothing else that the program does. \
     So the replayed saving is only for calls and pages. Other block addresses also change how long the program's own \
     accesses take, which a replay cannot measure. Therefore `mallard replay` also predicts an interval \
     for the whole program's saving. If several threads allocate, the saving in a replay is mostly *not measurable*. \
     Peak memory is the program's peak RSS when measured, and the heap's peak when replayed.",
];

/// Returns the conclusions: about changes of the source on all machines, and about mallocs on each
/// machine.
pub fn conclusions(machines: &[Machine], changes: &[changes::Change]) -> Vec<String> {
    let mallocs = machines.iter().filter(|m| m.has(SUITE)).map(of_mallocs);
    changes::conclusion(changes).into_iter().chain(mallocs).collect()
}

fn of_mallocs(machine: &Machine) -> String {
    let figures = Figures::of(machine);
    let pairs = figures.pairs();
    let held = Count::of(Question::CoverageOfChanges, &pairs);
    let sign = Count::of(Question::Sign, &pairs);
    let peak = Count::of(Question::Peak, &pairs);
    let width = median_width(&pairs)
        .map_or(String::new(), |width| format!(" (median width: {width:.0} percentage points)"));
    format!(
        "**Another malloc, on {}:** {} of {} measured CPU time gains and losses are in the interval that \
         `mallard replay` predicts{width}. The replay has the right sign for {} of {} gains and losses above \
         {} %{}. The replayed peak memory saving is wrong by at most {} for {} of {} program/malloc pairs.",
        machine.common,
        held.right,
        held.asked,
        sign.right,
        sign.asked,
        super::counts::SIGN_PERCENT,
        wrong_signs_of_threads(&figures, &pairs),
        peak_tolerance(),
        peak.right,
        peak.asked
    )
}

/// Returns the median width of the predicted intervals, over the pairs with a measured gain or
/// loss.
fn median_width(pairs: &[Pair]) -> Option<f64> {
    let asked = pairs.iter().filter(|p| Question::CoverageOfChanges.is_right(p).is_some());
    Range::of(asked.filter_map(|p| p.predicted).map(|(low, high)| high - low)).map(|r| r.median)
}

/// Describes how many replays with the wrong sign are replays of multithreaded programs. Returns an
/// empty text if there are none.
fn wrong_signs_of_threads(figures: &Figures, pairs: &[Pair]) -> String {
    let programs = figures.programs();
    let has_threads =
        |pair: &&&Pair| programs.iter().any(|p| p.name == pair.program && p.threads > 1);
    let wrong: Vec<&Pair> =
        pairs.iter().filter(|p| Question::Sign.is_right(p) == Some(false)).collect();
    match (wrong.len(), wrong.iter().filter(has_threads).count()) {
        (_, 0) => String::new(),
        (all, threads) if threads == all => {
            "; all others are from programs with several threads".to_string()
        }
        (all, threads) => {
            format!("; {threads} of the other {all} are from programs with several threads")
        }
    }
}
