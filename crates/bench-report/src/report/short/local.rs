//! Compares arenas, pools and `std::pmr` resources with their competitors.

use super::names::known_as;
use crate::rows::contender::{is_local, Strategy};
use crate::rows::experiment::{contenders, deciding, ratio, Experiment, Machine};
use crate::rows::matching::{choice, like};
use crate::rows::situations::{Situation, OTHERS};
use crate::statistics::geometric_mean;
use crate::tables::{number, Cell, Table};

/// Each entry has what a program needs, the title of the benchmark situation, and the name of
/// Mallard's allocator for this need.
const NEEDS: [(&str, &str, &str); 7] = [
    ("blocks of one size, freed one by one", "Blocks of one size, freed one by one", "pool"),
    ("blocks of many sizes, freed one by one", "Many sizes, freed one by one", "multipool"),
    ("blocks that are freed all together", "All dies together", "arena"),
    ("a pool that threads share", "A pool that threads share", "thread-cached pool"),
    ("objects made and destroyed", "Objects made and destroyed", "object pool"),
    ("Rust: objects made and dropped", "Rust: objects made and dropped", "ObjectPool"),
    ("Rust: values that are dropped all together", "Rust: all dies together", "Arena"),
];

/// The strategies that use Mallard through `std::pmr`: number, description, and name of the
/// allocator.
const PMR: [(u32, &str, &str); 2] = [
    (5, "`std::pmr` containers, freed all together", "pmr arena"),
    (9, "`std::pmr` containers, freed one by one", "pmr multipool"),
];

/// The number of competitors that a table cell names.
const PEERS: usize = 2;

/// Returns the table with a line for each need. A cell names the competitors with the lowest
/// figures.
pub fn table(machines: &[Machine]) -> Option<Table> {
    let of_need = |title: &str| OTHERS.iter().find(|s| s.title == title);
    let has = |m: &&Machine| NEEDS.iter().any(|n| of_need(n.1).is_some_and(|s| m.has(s.suite)));
    let machines: Vec<&Machine> = machines.iter().filter(has).collect();
    let columns = machines.iter().map(|m| m.common.clone());
    let mut table =
        Table::prose("Local allocators", &["need", "Mallard has"], &[]).columns(columns);
    for (need, title, ours) in NEEDS {
        if let Some(s) = of_need(title) {
            add(&mut table, [need, ours], |machine| of_situation(machine, s), &machines);
        }
    }
    for (number, need, ours) in PMR {
        add(&mut table, [need, ours], |machine| of_strategy(machine, number), &machines);
    }
    Some(table).filter(|t| !t.is_empty())
}

/// The name of Mallard's allocator, and the cases in which it is compared.
type Compared<'a> = (String, Vec<&'a Experiment>);

fn add<'a>(
    table: &mut Table,
    heads: [&str; 2],
    compared: impl Fn(&'a Machine) -> Option<Compared<'a>>,
    machines: &[&'a Machine],
) {
    let cell = |machine: &&'a Machine| {
        let (ours, all) = compared(machine)?;
        Some(peers(&all, &ours))
    };
    let cells: Vec<Cell> =
        machines.iter().map(|m| Cell::text(cell(m).unwrap_or_default())).collect();
    if cells.iter().any(|cell| !cell.is_empty()) {
        table.line(heads.map(str::to_string).to_vec(), cells);
    }
}

fn of_situation<'a>(machine: &'a Machine, s: &Situation) -> Option<Compared<'a>> {
    let all = deciding(&machine.select(|e| s.has(e)));
    let ours = choice(&all, |c| like(c).is_some())?;
    Some((ours, all))
}

fn of_strategy(machine: &Machine, number: u32) -> Option<Compared<'_>> {
    let all = deciding(&machine.of_suite("lakos1"));
    let ours = contenders(&all).into_iter().find(|c| {
        is_local(c) && Strategy::of(c).is_some_and(|s| s.number == number && s.extra.is_empty())
    })?;
    Some((ours, all))
}

/// Formats Mallard's cost relative to the best competitors of the same kind: `0.96 boost-pool 1.74,
/// 0.81 others`. Omits competitors with figures for less than half of the cases.
fn peers(all: &[&Experiment], ours: &str) -> String {
    let is_peer =
        |c: &String| !c.starts_with("mallard/") && !c.starts_with("glibc") && like(c) == like(ours);
    let share = |peer: &String| {
        let both = all.iter().filter_map(|e| ratio(e.of(ours)?.median?, e.of(peer)?.median?));
        let both: Vec<f64> = both.collect();
        Some((geometric_mean(both.iter().copied())?, both.len()))
    };
    let found = contenders(all).into_iter().filter(is_peer).filter_map(|c| Some((share(&c)?, c)));
    let mut found: Vec<((f64, usize), String)> =
        found.filter(|((_, cases), _)| cases * 2 >= all.len()).collect();
    found.sort_by(|a, b| b.0 .0.total_cmp(&a.0 .0));
    let words = found
        .iter()
        .take(PEERS)
        .map(|((share, _), peer)| format!("{} {}", number(*share), known_as(peer)));
    words.collect::<Vec<_>>().join(", ")
}

/// Returns a sentence about the programs of the suite `demo` with one local allocator of Mallard.
pub fn programs(machines: &[Machine]) -> Option<String> {
    let of = |machine: &Machine| {
        let all = deciding(&machine.of_suite("demo"));
        let ours = choice(&all, is_local)?;
        let shares = all.iter().filter_map(|e| Some(1.0 / e.gain(e.of(&ours)?)?));
        let shares: Vec<f64> = shares.collect();
        super::names::from_to(shares.iter().copied())
            .map(|factors| format!("{factors} on {} ({} programs)", machine.common, shares.len()))
    };
    let found: Vec<String> = machines.iter().filter_map(of).collect();
    (!found.is_empty()).then(|| {
        format!(
            "Whole programs gain less than their calls. If programs that make a word index, parse trees, and an ordered \
             map of phrases use one of Mallard's local allocators, their time relative to glibc's malloc is {}.",
            found.join(" and ")
        )
    })
}
