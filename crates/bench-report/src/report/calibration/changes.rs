//! Compares what `mallard advise` predicts for a change of the source with the measured saving of
//! the changed program.

use crate::rows::experiment::{Experiment, Machine};
use crate::rows::row::Row;
use crate::tables::{tenths, Cell, Table};

/// The suite of predictions by `mallard advise`, and the name under which the changed programs are
/// measured.
const SUITE: &str = "advise";
const CHANGED: &str = "advised";

/// Returns whether a result is about a program that was changed as recommended.
pub fn is_of_change(row: &Row) -> bool {
    row.suite == SUITE && row.contender == CHANGED
}

/// A saving of CPU time as a share of the total, with the bounds of its 95 % interval.
#[derive(Clone, Copy, Debug)]
struct Saving {
    median: f64,
    low: f64,
    high: f64,
}

impl Saving {
    fn of(row: &Row) -> Option<Saving> {
        row.median.map(|median| Saving { median, low: row.low(), high: row.high() })
    }

    /// Returns the width of the interval in percentage points.
    fn width(&self) -> f64 {
        100.0 * (self.high - self.low)
    }

    fn has(&self, share: f64) -> bool {
        (self.low..=self.high).contains(&share)
    }

    /// Formats the bounds of the interval in percent.
    fn ends(&self) -> String {
        format!("{} to {}", tenths(100.0 * self.low), tenths(100.0 * self.high))
    }
}

/// A program whose source was changed as `mallard advise` recommends. A prediction is `None` if it
/// was not requested, or if the advice did not recommend the change.
pub struct Change {
    program: String,
    what: String,
    /// The measured saving of the changed source.
    real: Saving,
    /// The saving that a replay of the recording predicts, without running the program.
    replay: Option<Saving>,
    /// The measured saving of the unchanged program when the plan is applied to it.
    in_program: Option<Saving>,
    /// The saving that the recommendation (card) shows. It is the measured saving of the unchanged
    /// program with the plan, plus a saving that only a source change can achieve.
    card: Option<Saving>,
}

impl Change {
    /// Returns all changes that were measured on a machine, in the order of their results.
    pub fn all(machine: &Machine) -> Vec<Change> {
        let saving = |program: &str, metric: &str| {
            let found =
                machine.experiments.iter().find(|e| e.case == program && e.metric == metric);
            found.and_then(|e| e.of(CHANGED)).and_then(Saving::of)
        };
        let measured = machine
            .experiments
            .iter()
            .filter(|e| e.metric == "measured_saving" && e.suite == SUITE);
        let change = |e: &Experiment| {
            Some(Change {
                program: e.case.clone(),
                what: e.variant.clone(),
                real: saving(&e.case, "measured_saving")?,
                replay: saving(&e.case, "replayed_saving"),
                in_program: saving(&e.case, "in_program_saving"),
                card: saving(&e.case, "predicted_saving"),
            })
        };
        measured.filter_map(change).collect()
    }
}

/// Counts how often the measured saving of the changed program is within the predicted interval.
/// Also contains how wide the predicted intervals are.
struct Held {
    asked: usize,
    held: usize,
    /// The median width in percentage points.
    width: f64,
}

impl Held {
    fn of(changes: &[Change], prediction: impl Fn(&Change) -> Option<Saving>) -> Option<Held> {
        let pairs = changes.iter().filter_map(|c| Some((c.real, prediction(c)?)));
        let pairs: Vec<(Saving, Saving)> = pairs.collect();
        let held = pairs.iter().filter(|(real, predicted)| predicted.has(real.median)).count();
        let mut widths: Vec<f64> = pairs.iter().map(|(_, predicted)| predicted.width()).collect();
        widths.sort_by(f64::total_cmp);
        let width = *widths.get(widths.len() / 2)?;
        Some(Held { asked: pairs.len(), held, width })
    }

    fn width_in_words(&self) -> String {
        format!("(median width: {:.0} percentage points)", self.width)
    }
}

/// Returns the conclusion about changes of the source, or `None` if there are no predictions.
pub fn conclusion(changes: &[Change]) -> Option<String> {
    let card = Held::of(changes, |c| c.card)?;
    let replay = Held::of(changes, |c| c.replay).map_or(String::new(), |replay| {
        format!(
            " For {} of {} changes, it is in the interval that a replay alone predicts {}.",
            replay.held,
            replay.asked,
            replay.width_in_words()
        )
    });
    Some(format!(
        "**A source change**, such as an arena or a pool: for {} of {} changes, the changed program's saving is in \
         the interval that `mallard advise` predicts {}.{replay}",
        card.held,
        card.asked,
        card.width_in_words()
    ))
}

/// Returns the table of the changes on a machine.
pub fn table(changes: &[Change]) -> Table {
    let columns = ["replay", "unchanged program with plan", "recommendation", "changed program"]
        .map(String::from);
    let mut table = Table::new("Source changes", &["program", "change"]).columns(columns);
    for change in changes {
        let range = |of: Option<Saving>| Cell {
            best: of.is_some_and(|saving| saving.has(change.real.median)),
            ..Cell::text(of.map_or("-".into(), |saving| saving.ends()))
        };
        let with_range =
            |of: Saving| Cell::text(format!("{} ({})", tenths(100.0 * of.median), of.ends()));
        let cells = vec![
            range(change.replay),
            change.in_program.map_or(Cell::text("-"), with_range),
            range(change.card),
            with_range(change.real),
        ];
        table.line(vec![change.program.clone(), change.what.clone()], cells);
    }
    table.note(
        "CPU time savings in percent. Bold: the predicted interval contains the changed program's saving. \
         `-`: the advice has no figure for this change. The interval for the unchanged program with the plan may \
         miss the changed program's saving. In the unchanged program, a library looks up the allocator at each call; \
         in the changed program, the compiler can inline the allocator's code.",
    )
}
