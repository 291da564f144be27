//! Lists every figure in which Mallard is more than 10 % worse than the best competitor of the same
//! kind.

use super::named;
use crate::rows::cases::case_of;
use crate::rows::cases::facet;
use crate::rows::experiment::{ratio, Experiment, Machine};
use crate::rows::matching::all_matches;
use crate::rows::row::Row;
use crate::tables::conditions;
use crate::tables::{number, Cell, Line, Table};
use crate::unpaired::{verdict, Bounds};
use mallard_measure::verdict::Verdict;

/// The number of lost cases that a line of the summary names. The HTML page lists all of them.
const NAMED: usize = 60;

/// The minimum ratio of Mallard's figure to the competitor's figure that counts as a loss.
const BEHIND: f64 = 1.1;

struct Loss<'a> {
    e: &'a Experiment,
    ours: &'a Row,
    peer: &'a Row,
    ratio: f64,
}

impl Loss<'_> {
    fn is_within_noise(&self) -> bool {
        verdict(self.peer, self.ours, Bounds::default()) == Verdict::NoDifference
    }
}

/// Returns all losses, sorted by suite and kind, the largest first. Also returns the number of
/// comparisons.
fn all(machine: &Machine) -> (Vec<Loss<'_>>, usize) {
    let mut losses = Vec::new();
    let mut compared = 0;
    for m in all_matches(machine) {
        compared += 1;
        let (e, ours, peer) = (m.e, m.ours, m.best_peer());
        let share = ours.median.zip(peer.median).and_then(|(o, p)| ratio(o, p));
        if let Some(ratio) = share.filter(|r| *r > BEHIND) {
            losses.push(Loss { e, ours, peer, ratio });
        }
    }
    losses.sort_by(|a, b| {
        let order = |l: &Loss| (l.e.suite.clone(), l.e.kind());
        order(a).cmp(&order(b)).then(b.ratio.total_cmp(&a.ratio))
    });
    (losses, compared)
}

/// Returns a sentence with the number of losses.
pub fn sentence(machine: &Machine) -> String {
    let (losses, compared) = all(machine);
    if compared == 0 {
        return "Mallard was not compared with a peer.".to_string();
    }
    let noise = losses.iter().filter(|l| l.is_within_noise()).count();
    format!(
        "Mallard needs more than 10 % more time or memory than the best peer of the same kind in {} of {compared} \
         figures; in {noise} of them, both ranges overlap. All are listed below, also those in faithful variants.",
        losses.len()
    )
}

/// Returns the table with a line for each loss.
pub fn table(machine: &Machine) -> Table {
    let columns = ["metric", "Mallard", "", "best peer", "", "Mallard / peer", "noise", "measured"];
    let mut table = Table::new("Every figure lost by more than 10 %", &["suite", "case"])
        .columns(columns.map(str::to_string));
    for loss in all(machine).0 {
        let cells = vec![
            Cell::text(variant_and(loss.e, &loss.e.metric)),
            Cell::text(&*loss.ours.contender),
            Cell::of(Some(loss.ours)),
            Cell::text(&*loss.peer.contender),
            Cell::of(Some(loss.peer)),
            Cell::text(number(loss.ratio)).shaded(Some(1.0 / loss.ratio)),
            Cell::text(if loss.is_within_noise() { "ranges overlap" } else { "" }),
            Cell::text(conditions::words([loss.ours, loss.peer])),
        ];
        let heads = vec![loss.e.suite.clone(), case_of(loss.e)];
        table.lines.push(Line { heads, cells, contender: None });
    }
    table
}

fn variant_and(e: &Experiment, metric: &str) -> String {
    match facet(&e.variant) {
        "" | "corrected" => metric.to_string(),
        other => format!("{metric}, {other}"),
    }
}

/// Returns a table with a line for each suite and metric. The page without scripts shows this
/// table.
pub fn summary(machine: &Machine) -> Table {
    let columns = ["figures", "Mallard / best peer"];
    let mut table =
        Table::prose("Every figure lost by more than 10 %", &["suite", "metric"], &columns)
            .note(format!("~: both ranges overlap, so the difference may be noise. A line names at most {NAMED} cases; the HTML page has all."));
    let mut groups: Vec<([String; 2], Vec<Loss>)> = Vec::new();
    for loss in all(machine).0 {
        let key = [loss.e.suite.clone(), variant_and(loss.e, &loss.e.metric)];
        match groups.iter_mut().find(|(k, _)| *k == key) {
            Some((_, own)) => own.push(loss),
            None => groups.push((key, vec![loss])),
        }
    }
    for (heads, losses) in groups {
        let cases: Vec<String> = losses
            .iter()
            .map(|l| {
                let noise = if l.is_within_noise() { "~" } else { "" };
                format!("{} {noise}{:.2} {}", case_of(l.e), l.ratio, l.peer.contender)
            })
            .collect();
        let count = losses.len().to_string();
        let count = conditions::after(count, losses.iter().flat_map(|l| [l.ours, l.peer]));
        let cells = [count, named(&cases, NAMED)];
        table.line(heads.to_vec(), cells.into_iter().map(Cell::text).collect());
    }
    table
}
