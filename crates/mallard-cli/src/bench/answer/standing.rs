//! Against every peer: cells won, tied within noise, lost.

use super::counted;
use crate::bench::experiment::{is_cost, ratio, Experiment, Kind, Machine};
use crate::bench::noise::{geometric_mean, verdict, Bounds, Verdict};
use crate::bench::row::Row;
use crate::bench::strategy::{family, Strategy};
use crate::bench::table::{number, Cell, Line, Table};
use std::collections::BTreeMap;

/// Won, tied and lost cells, and what ours takes where the other takes 1.
#[derive(Default)]
struct Score {
    won: usize,
    tied: usize,
    lost: usize,
    shares: Vec<f64>,
}

impl Score {
    fn add(&mut self, ours: &Row, peer: &Row) {
        match verdict(peer, ours, Bounds::default()) {
            Some(Verdict::Faster) => self.won += 1,
            Some(Verdict::Slower) => self.lost += 1,
            Some(Verdict::Same) => self.tied += 1,
            None => return,
        }
        self.shares.extend(ours.median.zip(peer.median).and_then(|(o, p)| ratio(o, p)));
    }

    fn cells(&self) -> [Cell; 2] {
        if self.won + self.tied + self.lost == 0 {
            return [Cell::text("-"), Cell::default()];
        }
        let mean = geometric_mean(self.shares.iter().copied());
        [
            Cell::text(format!("{} / {} / {}", self.won, self.tied, self.lost)),
            Cell::text(mean.map_or(String::new(), number)).shaded(mean.map(|m| 1.0 / m)),
        ]
    }
}

const COLUMNS: [&str; 6] = [
    "time: won / tied / lost",
    "mean",
    "memory: won / tied / lost",
    "mean",
    "same strategy: won / tied / lost",
    "mean",
];
const NOTE: &str = "A cell is one case and one metric. Mallard's best allocator in it against the peer's best; \
    tied: the p10-p90 ranges overlap or the medians are within 3 % (within 10 % where only one run tells). \
    Same strategy: ASn against ASn, or malloc against malloc. \
    Mean: what Mallard takes where the peer takes 1, geometric mean. Bounds (limit/...) are no peers; another use of a \
    strategy (AS3+reset) competes with none, and the \
    degradation of lakos2 is no cost: it compares an allocator with itself.";

fn costs(machine: &Machine) -> Vec<&Experiment> {
    counted(&machine.select(|e| is_cost(&e.metric) && e.kind() != Kind::Other))
}

/// A line for each peer.
pub fn by_peer(machine: &Machine) -> Table {
    let mut scores: BTreeMap<String, [Score; 3]> = BTreeMap::new();
    for e in costs(machine) {
        let Some(ours) = e.best_ours() else { continue };
        let mut best: BTreeMap<String, &Row> = BTreeMap::new();
        for row in e.rows.iter().filter(|r| !r.is_ours() && !r.is_limit() && r.median.is_some()) {
            let own = best.entry(family(&row.contender)).or_insert(row);
            if row.median < own.median {
                *own = row;
            }
            if let Some(same) = same_strategy(e, row).filter(|_| e.kind() == Kind::Time) {
                scores.entry(family(&row.contender)).or_default()[2].add(same, row);
            }
        }
        for (provider, row) in best {
            let place = usize::from(e.kind() == Kind::Memory);
            scores.entry(provider).or_default()[place].add(ours, row);
        }
    }
    let mut table =
        Table::new("Against each peer", &["peer"]).columns(COLUMNS.map(str::to_string)).note(NOTE);
    for (peer, score) in scores {
        let cells = score.iter().flat_map(Score::cells).collect();
        table.lines.push(Line { heads: vec![peer.clone()], cells, contender: Some(peer) });
    }
    table
}

/// ASn of ours beside ASn of a peer: the malloc that is loaded where it is AS1.
fn same_strategy<'a>(e: &'a Experiment, peer: &Row) -> Option<&'a Row> {
    let strategy = Strategy::of(&peer.contender)?;
    let provider = if strategy.number <= 2 { "mallard/malloc" } else { "mallard" };
    e.of(&format!("{provider}/AS{}", strategy.number))
}

/// A line for each suite: Mallard's best against the best of all peers.
pub fn by_suite(machine: &Machine) -> Table {
    let columns = &COLUMNS[..4];
    let mut table = Table::new("Against the best of all peers, cell by cell", &["suite"])
        .columns(columns.iter().map(|c| c.to_string()));
    let all = costs(machine);
    for suite in machine.suites() {
        let mut scores = [Score::default(), Score::default()];
        for e in all.iter().filter(|e| e.suite == suite) {
            if let Some((ours, peer)) = e.best_ours().zip(e.best_peer()) {
                scores[usize::from(e.kind() == Kind::Memory)].add(ours, peer);
            }
        }
        table.line(vec![suite.to_string()], scores.iter().flat_map(Score::cells).collect());
    }
    table
}
