//! Groups Mallard's losses by suite, and by time or memory, in plain words.

use super::names::known_as;
use crate::rows::cases::case_of;
use crate::rows::experiment::{ratio, Kind, Machine};
use crate::rows::matching::{matches, Match};
use crate::statistics::Range;
use crate::tables::{number, Cell, Table};
use crate::unpaired::{verdict, Bounds};
use mallard_measure::verdict::Verdict;
use std::collections::BTreeMap;

/// The number of loss groups that the short page names.
const GROUPS: usize = 10;

/// The suites and their descriptions. Suites about whole programs and about malloc are first.
const SUITES: [(&str, &str); 18] = [
    ("programs", "whole programs"),
    ("malloc", "calls of malloc and free"),
    ("rss", "memory of a malloc under patterns of allocation"),
    ("pool", "pools: blocks of one size"),
    ("arena", "arenas: all blocks freed together"),
    ("multipool", "pools of many sizes"),
    ("threads", "pools that threads share"),
    ("typed", "typed pools, handles and slot maps"),
    ("heap", "a heap for a part of a program"),
    ("crates", "Rust crates"),
    ("lakos1", "structures built and freed as a whole"),
    ("lakos2", "structures traversed repeatedly"),
    ("lakos3", "blocks freed and allocated again"),
    ("lakos4", "threads with local allocators"),
    ("lakos5", "structures in a fragmented heap"),
    ("seeds", "earlier reports on pools"),
    ("demo", "programs with local allocators"),
    ("trace", "recording a program"),
];

/// Describes a suite in plain words.
pub fn words_of(suite: &str) -> &str {
    SUITES.iter().find(|(name, _)| *name == suite).map_or(suite, |(_, words)| words)
}

fn place_of(suite: &str) -> usize {
    SUITES.iter().position(|(name, _)| *name == suite).unwrap_or(SUITES.len())
}

/// A figure in which a competitor is better than Mallard.
struct Loss {
    factor: f64,
    case: String,
    peer: String,
    machine: String,
    /// Whether the figure is the memory after all blocks are freed.
    after_frees: bool,
}

/// The figures of one suite and one kind (time or memory) on some machines.
#[derive(Default)]
pub struct Group {
    pub compared: usize,
    losses: Vec<Loss>,
}

impl Group {
    pub fn lost(&self) -> usize {
        self.losses.len()
    }

    fn add(&mut self, machine: &Machine, m: &Match) {
        let peer = m.best_peer();
        let lost = verdict(peer, m.ours, Bounds::default()) == Verdict::Loss;
        let factor = m.ours.median.zip(peer.median).and_then(|(o, p)| ratio(o, p));
        self.compared += 1;
        if let Some(factor) = factor.filter(|_| lost) {
            self.losses.push(Loss {
                factor,
                case: case_of(m.e),
                peer: known_as(&peer.contender),
                machine: machine.common.clone(),
                after_frees: m.e.metric == "after_rss_kib",
            });
        }
    }

    fn line(&self, suite: &str, kind: Kind, many: bool) -> Option<(Vec<String>, Vec<Cell>)> {
        let range = Range::of(self.losses.iter().map(|l| l.factor))?;
        let worst = self.losses.iter().max_by(|a, b| a.factor.total_cmp(&b.factor))?;
        // The case names of Lakos's benchmarks are only parameters, so they would not help a
        // reader.
        let case = if suite.starts_with("lakos") { "" } else { &worst.case };
        let on = if many { format!(", {}", worst.machine) } else { String::new() };
        let after = if worst.after_frees { ", after all blocks are freed" } else { "" };
        let against = format!("{}{on}{after}", worst.peer);
        let cells = [
            format!("{} of {}", self.lost(), self.compared),
            format!("{} times (at most {} times)", number(range.median), number(range.most)),
            [case, &against].into_iter().filter(|p| !p.is_empty()).collect::<Vec<_>>().join(": "),
        ];
        let heads = vec![words_of(suite).to_string(), kind.name().to_string()];
        Some((heads, cells.into_iter().map(Cell::text).collect()))
    }
}

/// All groups of losses, by suite and kind.
pub struct Groups<'a>(BTreeMap<(usize, Kind, &'a str), Group>);

impl<'a> Groups<'a> {
    pub fn of(machines: impl IntoIterator<Item = &'a Machine>) -> Groups<'a> {
        let mut groups: BTreeMap<(usize, Kind, &str), Group> = BTreeMap::new();
        for machine in machines {
            for m in matches(machine) {
                let key = (place_of(&m.e.suite), m.e.kind(), m.e.suite.as_str());
                groups.entry(key).or_default().add(machine, &m);
            }
        }
        Groups(groups)
    }

    /// Returns the group of a suite and a kind.
    pub fn get(&self, suite: &str, kind: Kind) -> Option<&Group> {
        self.0.iter().find(|((_, k, s), _)| *s == suite && *k == kind).map(|(_, group)| group)
    }

    /// Returns how many figures of local allocators were compared, and how many of them are losses.
    /// Suites about malloc and about recording do not count.
    pub fn local(&self) -> (usize, usize) {
        let recording = place_of("trace");
        let local = self.0.iter().filter(|((place, _, _), _)| *place > 2 && *place != recording);
        local.fold((0, 0), |sum, (_, g)| (sum.0 + g.compared, sum.1 + g.lost()))
    }

    /// Returns the table with a line for each group. If `all` is false, the table has at most 10
    /// groups: first the groups about malloc, then those with the most losses.
    pub fn table(&self, many_machines: bool, all: bool) -> Table {
        let mut groups: Vec<_> = self.0.iter().filter(|(_, group)| group.lost() > 0).collect();
        if !all {
            groups.sort_by_key(|((place, kind, _), group)| {
                if *place <= 2 {
                    (0, *place, *kind)
                } else {
                    (1, usize::MAX - group.lost(), *kind)
                }
            });
        }
        let shown = if all { groups.len() } else { GROUPS.min(groups.len()) };
        let columns = [
            "lost",
            "Mallard / peer in the lost cases: median (maximum)",
            "largest loss: case, peer, machine",
        ]
        .map(str::to_string);
        let heads = ["benchmark", "figure"];
        let mut table = Table::prose("Where Mallard loses, grouped", &heads, &[]).columns(columns);
        for ((_, kind, suite), group) in &groups[..shown] {
            if let Some((heads, cells)) = group.line(suite, *kind, many_machines) {
                table.line(heads, cells);
            }
        }
        let rest = &groups[shown..];
        if !rest.is_empty() {
            let lost: usize = rest.iter().map(|(_, group)| group.lost()).sum();
            table
                .notes
                .push(format!("{} more groups with {lost} losses are not shown.", rest.len()));
        }
        table
    }
}
