//! Compares Mallard with every competitor of the same kind by the cells that are won, tied within
//! noise, and lost.

use crate::rows::contender;
use crate::rows::experiment::{ratio, Kind, Machine};
use crate::rows::matching::{family, matches, mean_of_families};
use crate::rows::row::Row;
use crate::tables::conditions;
use crate::tables::{number, Cell, Line, Table};
use crate::unpaired::{verdict, Bounds};
use mallard_measure::verdict::Verdict;
use std::collections::BTreeMap;

/// The numbers of benchmark cells that Mallard won, tied and lost. Each entry of `shares` has the
/// family of a case, and Mallard's figure divided by the competitor's figure.
#[derive(Default)]
struct Score {
    won: usize,
    tied: usize,
    lost: usize,
    shares: Vec<(String, f64)>,
}

impl Score {
    fn add(&mut self, family: String, ours: &Row, peer: &Row) {
        match verdict(peer, ours, Bounds::default()) {
            Verdict::Gain => self.won += 1,
            Verdict::Loss => self.lost += 1,
            Verdict::NoDifference => self.tied += 1,
            Verdict::NotMeasurable => return,
        }
        let share = ours.median.zip(peer.median).and_then(|(o, p)| ratio(o, p));
        self.shares.extend(share.map(|s| (family, s)));
    }

    fn cells(&self) -> [Cell; 2] {
        if self.won + self.tied + self.lost == 0 {
            return [Cell::text("-"), Cell::default()];
        }
        let mean = mean_of_families(self.shares.iter().cloned());
        [
            Cell::text(format!("{} / {} / {}", self.won, self.tied, self.lost)),
            Cell::text(mean.map_or(String::new(), number)).shaded(mean.map(|m| 1.0 / m)),
        ]
    }
}

const COLUMNS: [&str; 4] = ["time: won / tied / lost", "mean", "memory: won / tied / lost", "mean"];
const NOTE: &str = "A cell is one case and one cost; a case with threads counts once, with its CPU time. \
    Mallocs are compared with mallocs, a strategy ASn with the same strategy, and local allocators with local \
    allocators. If Mallard has several allocators of a kind, the same one represents Mallard in a whole situation. \
    Tied: the ranges from the 10th to the 90th percentile overlap, or the medians are within 3 % (10 % if a figure comes from a single run). \
    Mean: Mallard's figure divided by the peer's, as a geometric mean in which case families have equal weight. \
    Bounds (limit/...) are not peers, and tuned variants (AS3+reset) are not compared. The \
    degradation in lakos2 is not a cost, because it compares an allocator with itself.";

/// Returns the table with a line for each competitor.
pub fn by_peer(machine: &Machine) -> Table {
    let mut scores: BTreeMap<String, [Score; 2]> = BTreeMap::new();
    for m in matches(machine) {
        let place = usize::from(m.e.kind() == Kind::Memory);
        for peer in &m.peers {
            let name = contender::family(&peer.contender);
            scores.entry(name).or_default()[place].add(family(m.e), m.ours, peer);
        }
    }
    let mut table = Table::new("Against each peer, like with like", &["peer"])
        .columns(COLUMNS.map(str::to_string))
        .note(NOTE);
    for (peer, score) in scores {
        let cells = score.iter().flat_map(Score::cells).collect();
        table.lines.push(Line { heads: vec![peer.clone()], cells, contender: Some(peer) });
    }
    table
}

/// Returns the table with a line for each suite. Cells compare Mallard with the best competitor of
/// the same kind.
pub fn by_suite(machine: &Machine) -> Table {
    let columns = COLUMNS.into_iter().chain(["measured"]);
    let mut table = Table::new("Against the best peer of its kind, cell by cell", &["suite"])
        .columns(columns.map(str::to_string));
    let all = matches(machine);
    for suite in machine.suites() {
        let mut scores = [Score::default(), Score::default()];
        let own: Vec<_> = all.iter().filter(|m| m.e.suite == suite).collect();
        for m in &own {
            let place = usize::from(m.e.kind() == Kind::Memory);
            scores[place].add(family(m.e), m.ours, m.best_peer());
        }
        let mut cells: Vec<Cell> = scores.iter().flat_map(Score::cells).collect();
        let words = conditions::words(own.iter().map(|m| m.ours));
        cells.push(Cell::text(if words.is_empty() { "whole" } else { &words }));
        if !own.is_empty() {
            table.line(vec![suite.to_string()], cells);
        }
    }
    table
}
