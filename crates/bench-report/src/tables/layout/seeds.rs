//! Lays out figures that earlier reports and the benchmarks of Rust crates have published, followed
//! by our figures.

use super::general::by_first_part;
use super::slices;
use super::strategies::{best_cells, peer_cell, BEST};
use crate::rows::cases::case_of;
use crate::rows::experiment::{contenders, Experiment};
use crate::rows::published::{Published, Seed};
use crate::tables::{number, Cell, Table};
use std::collections::BTreeSet;

pub fn tables(experiments: &[&Experiment], published: &Published) -> Vec<Table> {
    let mut tables = Vec::new();
    for slice in slices(experiments) {
        for (name, own) in by_first_part(&slice.all) {
            let seeds: Vec<&Seed> = of_document(published, &own, &name, slice.metric);
            tables.push(document(format!("{name}: {}", slice.title()), &own, &seeds));
        }
    }
    tables.push(unmeasured(experiments, published));
    tables
}

/// Returns the table of published figures that we did not measure. The figures are from another
/// machine, or from an allocator that cannot run here.
fn unmeasured(experiments: &[&Experiment], published: &Published) -> Table {
    let suite = experiments.first().map_or("", |e| &e.suite);
    let mut table = Table::new("Published, without a row here", &["case", "contender"])
        .columns(["metric", "published", "unit"].map(str::to_string));
    let is_shown = |s: &Seed| experiments.iter().any(|e| e.case == s.case && e.metric == s.metric);
    for seed in published.seeds.iter().filter(|s| s.suite == suite && !is_shown(s)) {
        let cells = [
            Cell::text(&*seed.metric),
            Cell::default().published(number(seed.value)),
            Cell::text(&*seed.unit),
        ];
        table.line(vec![seed.case.clone(), seed.contender.clone()], cells.to_vec());
    }
    table
}

fn of_document<'a>(
    published: &'a Published,
    own: &[&Experiment],
    name: &str,
    metric: &str,
) -> Vec<&'a Seed> {
    let suite = own.first().map_or("", |e| &e.suite);
    let is_its = |s: &&Seed| {
        s.suite == suite && s.case.split('/').next() == Some(name) && s.metric == metric
    };
    published.seeds.iter().filter(is_its).collect()
}

fn document(title: String, all: &[&Experiment], seeds: &[&Seed]) -> Table {
    let mut table = Table::new(title, &["case"]);
    let mut columns: Vec<&str> = Vec::new();
    for seed in seeds {
        if all.iter().any(|e| e.case == seed.case) && !columns.contains(&&*seed.contender) {
            columns.push(&seed.contender);
        }
    }
    table = table.columns(columns.iter().map(|c| {
        let unit = seeds.iter().find(|s| s.contender == *c).map_or("", |s| &s.unit);
        format!("published: {c}, {unit}").trim_end_matches(", ").to_string()
    }));
    let names = contenders(all);
    names.iter().for_each(|n| table.contender(n));
    table = table.columns(BEST.map(str::to_string)).of(all);
    for e in all {
        let mut cells: Vec<Cell> = columns.iter().map(|c| seed_cell(e, c, seeds)).collect();
        cells.extend(names.iter().map(|n| peer_cell(e, n)));
        cells.extend(best_cells(e));
        table.line(vec![case_of(e)], cells);
    }
    let sources: BTreeSet<&str> =
        seeds.iter().map(|s| &*s.source).filter(|s| !s.is_empty()).collect();
    table.notes.extend(sources.iter().map(|s| format!("Published: {s}")));
    table
}

fn seed_cell(e: &Experiment, contender: &str, seeds: &[&Seed]) -> Cell {
    let found = seeds.iter().find(|s| s.case == e.case && s.contender == contender);
    found.map_or_else(Cell::default, |s| Cell::default().published(number(s.value)))
}
