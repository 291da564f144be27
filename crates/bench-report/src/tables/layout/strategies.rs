//! Makes tables with cases as lines: one with the 14 strategies of Lakos's talk as columns, and one
//! with the competitors.

use crate::rows::contender::{is_tuned, short, Strategy};
use crate::rows::experiment::{contenders, ratio, Experiment, Kind};
use crate::rows::published::{Figure, Published};
use crate::rows::row::Row;
use crate::tables::{number, times, Cell, Table};

/// The unit in which a table shows strategies.
#[derive(Clone, Copy, PartialEq)]
pub enum Unit {
    /// Figures as measured.
    Absolute,
    /// AS1 as measured, and the other strategies in percent of AS1.
    ShareOfFirst,
}

/// A line of a table: the texts of its first columns, and its experiment.
pub type Named<'a> = (Vec<String>, &'a Experiment);

/// Returns the table of AS1 to AS14 and of the best local strategy. Published figures are in the
/// second line of each cell.
pub fn talk(mut table: Table, lines: &[Named], unit: Unit, published: &Published) -> Table {
    let all: Vec<&Experiment> = lines.iter().map(|l| l.1).collect();
    let measured = contenders(&all);
    let of_talk = |c: &&String| Strategy::of(c).is_some_and(|s| s.is_of_the_talk());
    let ours: Vec<&String> = measured.iter().filter(of_talk).collect();
    for contender in &ours {
        table.contender(contender);
        if unit == Unit::ShareOfFirst {
            let first = table.columns.len() == 1;
            let last = table.columns.len() - 1;
            table.columns[last].title += if first { "" } else { " %" };
        }
    }
    table = table.columns(["best local".to_string(), "gain".to_string()]).of(&all);
    for (heads, e) in lines {
        let mut cells: Vec<Cell> =
            ours.iter().map(|contender| strategy_cell(e, contender, unit, published)).collect();
        cells.extend(best_of_line(e, published));
        table.line(heads.clone(), cells);
    }
    table
}

fn strategy_cell(e: &Experiment, contender: &str, unit: Unit, published: &Published) -> Cell {
    let row = e.of(contender);
    let gain = row.and_then(|r| e.gain(r));
    let mut cell = Cell::of(row);
    if row.is_some_and(|r| r.median.is_some()) {
        cell = cell.shaded(gain);
        cell.ratio = gain.map_or(String::new(), times);
        let competes = |r: &Row| {
            let of_talk = Strategy::of(&r.contender).is_some_and(|s| s.is_of_the_talk());
            of_talk && !is_tuned(&r.contender)
        };
        cell.best = e.best(competes).is_some_and(|b| b.contender == contender);
    }
    let column = short(contender);
    let is_share = unit == Unit::ShareOfFirst && column != "AS1";
    if let Some(gain) = gain.filter(|_| is_share) {
        cell.text = number(100.0 / gain);
    }
    let figure = if is_share {
        published.share(&e.suite, &e.case, &column).map(|f| f.map(|share| share * 100.0))
    } else {
        published.of(&e.suite, &e.case, &column).filter(|_| metric_of(&e.suite) == e.metric)
    };
    if is_share && e.kind() != Kind::Time {
        return cell;
    }
    cell.published(text_of(figure))
}

/// Formats a figure of Lakos's talk, or returns an empty text if the talk has no figure.
pub fn text_of(figure: Option<Figure>) -> String {
    figure.map_or(String::new(), |f| f.map_or("FAIL".to_string(), number))
}

/// Returns the metric in which Lakos's talk measured a suite.
pub fn metric_of(suite: &str) -> &'static str {
    match suite {
        "lakos1" => "ns_per_op",
        "lakos2" => "degradation",
        _ => "seconds",
    }
}

fn best_of_line(e: &Experiment, published: &Published) -> [Cell; 2] {
    let Some(best) = e.best_local() else { return [Cell::default(), Cell::default()] };
    let mut name = Cell::text(short(&best.contender));
    let gain = e.gain(best);
    let mut cell = Cell::text(gain.map_or(String::new(), times)).shaded(gain);
    if e.kind() == Kind::Time {
        if let Some((column, figure)) = published.best_local(&e.suite, &e.case) {
            let base = published.of(&e.suite, &e.case, "AS1").flatten();
            name = name.published(column);
            cell = cell.published(base.and_then(|b| ratio(b, figure)).map_or(String::new(), times));
        }
    }
    [name, cell]
}

/// Returns the table of all allocators that are not in Lakos's talk. The table also has the ratio
/// of Mallard's best result to the best competitor's result.
pub fn peers(mut table: Table, lines: &[Named]) -> Table {
    let all: Vec<&Experiment> = lines.iter().map(|l| l.1).collect();
    let baseline = all.iter().find_map(|e| e.baseline()).map(|r| r.contender.clone());
    let is_peer = |c: &&String| !Strategy::of(c).is_some_and(|s| s.is_of_the_talk());
    let others: Vec<String> = contenders(&all).iter().filter(is_peer).cloned().collect();
    if others.is_empty() {
        return table;
    }
    for contender in baseline.iter().chain(&others) {
        table.contender(contender);
    }
    table = table.columns(BEST.map(str::to_string)).of(&all);
    for (heads, e) in lines {
        let mut cells: Vec<Cell> =
            baseline.iter().chain(&others).map(|c| peer_cell(e, c)).collect();
        cells.extend(best_cells(e));
        table.line(heads.clone(), cells);
    }
    table
}

pub const BEST: [&str; 4] = ["best Mallard", "", "best peer", "Mallard / peer"];

pub fn peer_cell(e: &Experiment, contender: &str) -> Cell {
    let row = e.of(contender);
    let cell = Cell::of(row);
    if row.is_none_or(|r| r.median.is_none()) {
        return cell;
    }
    let reference = e.baseline().or(e.best_peer()).and_then(|b| b.median);
    let gain = reference.zip(row.and_then(|r| r.median)).and_then(|(a, b)| ratio(a, b));
    let mut cell = cell.shaded(gain);
    cell.ratio = gain.map_or(String::new(), times);
    cell.best = e.best(|r| !r.is_limit()).is_some_and(|b| b.contender == contender);
    cell
}

/// Returns cells with Mallard's best result, the best competitor, and their ratio.
pub fn best_cells(e: &Experiment) -> [Cell; 4] {
    let (ours, peer) = (e.best_ours(), e.best_peer());
    let share =
        ours.and_then(|o| o.median).zip(peer.and_then(|p| p.median)).and_then(|(o, p)| ratio(o, p));
    [
        Cell::text(ours.map_or(String::new(), |r| short(&r.contender))),
        Cell::figure(ours.and_then(|r| r.median)),
        Cell::text(peer.map_or(String::new(), |r| r.contender.clone())),
        Cell::figure(share).shaded(share.map(|s| 1.0 / s)),
    ]
}
