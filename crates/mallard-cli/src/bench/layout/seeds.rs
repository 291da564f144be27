//! The tables of the reports that came before: what they published, then what all take here.

use super::general::{by_first_part, case_of};
use super::slices;
use super::strategies::{best_cells, peer_cell, BEST};
use crate::bench::experiment::{contenders, Experiment};
use crate::bench::published::{Published, Seed};
use crate::bench::table::{number, Cell, Table};
use std::collections::BTreeSet;

pub fn tables(experiments: &[&Experiment], published: &Published) -> Vec<Table> {
    let mut tables = Vec::new();
    for slice in slices(experiments) {
        for (name, own) in by_first_part(&slice.all) {
            let seeds: Vec<&Seed> = of_document(published, &name, slice.metric);
            tables.push(document(format!("{name}: {}", slice.title()), &own, &seeds));
        }
    }
    tables
}

fn of_document<'a>(published: &'a Published, name: &str, metric: &str) -> Vec<&'a Seed> {
    let all = published.seeds.iter();
    all.filter(|s| s.case.split('/').next() == Some(name) && s.metric == metric).collect()
}

fn document(title: String, all: &[&Experiment], seeds: &[&Seed]) -> Table {
    let mut table = Table::new(title, &["case"]);
    let mut columns: Vec<&str> = Vec::new();
    for seed in seeds {
        if all.iter().any(|e| e.case == seed.case) && !columns.contains(&&*seed.contender) {
            columns.push(&seed.contender);
        }
    }
    table = table.columns(columns.iter().map(|c| format!("published: {c}")));
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
