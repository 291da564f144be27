//! The default layout for a suite, with a table for each kind of case, and a column for each
//! allocator.

use super::slices;
use super::strategies::{best_cells, peer_cell, BEST};
use crate::rows::cases::case_of;
use crate::rows::experiment::{contenders, is_cost, Experiment};
use crate::tables::{Cell, Table};

pub fn tables(experiments: &[&Experiment]) -> Vec<Table> {
    let mut tables = Vec::new();
    for slice in slices(experiments) {
        for (name, own) in by_first_part(&slice.all) {
            tables.push(matrix(format!("{name}: {}", slice.title()), &own));
        }
    }
    tables
}

/// Groups experiments by the first part of the case, in the order of the results.
pub fn by_first_part<'a>(all: &[&'a Experiment]) -> Vec<(String, Vec<&'a Experiment>)> {
    let mut groups: Vec<(String, Vec<&Experiment>)> = Vec::new();
    for e in all {
        match groups.iter_mut().find(|(name, _)| name == e.part(0)) {
            Some((_, own)) => own.push(e),
            None => groups.push((e.part(0).to_string(), vec![e])),
        }
    }
    groups
}

fn matrix(title: String, all: &[&Experiment]) -> Table {
    let names = contenders(all);
    let mut table = Table::new(title, &["case"]);
    names.iter().for_each(|n| table.contender(n));
    let compared = all.iter().any(|e| is_cost(&e.metric) && e.best_ours().is_some());
    if compared {
        table = table.columns(BEST.map(str::to_string));
    }
    table = table.of(all);
    for e in all {
        let mut cells: Vec<Cell> = names.iter().map(|n| peer_cell(e, n)).collect();
        if compared {
            cells.extend(best_cells(e));
        }
        table.line(vec![case_of(e)], cells);
    }
    table
}
