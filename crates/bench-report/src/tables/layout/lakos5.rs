//! Lays out benchmark V of Lakos's talk. The figure of each allocator in a clean heap is next to
//! the figures of the same allocator in fragmented heaps.

use super::{by_case, parts, slices};
use crate::rows::contender::short;
use crate::rows::experiment::{contenders, ratio, Experiment};
use crate::tables::{times, Cell, Line, Table};

pub fn tables(experiments: &[&Experiment]) -> Vec<Table> {
    let mut tables = Vec::new();
    for slice in slices(experiments) {
        for part in parts(&slice.all) {
            let own: Vec<&Experiment> =
                slice.all.iter().filter(|e| e.part(0) == part).copied().collect();
            let title = format!("{}: {}", super::lakos1::named(&part), slice.title());
            tables.push(conditions(Table::new(title, &["size", "contender"]), &own));
        }
    }
    tables
}

/// Returns the state of the heap (`clean` or `freed=1/2`), which follows `DS1/2^10/` in the name of
/// a case.
pub fn condition(e: &Experiment) -> &str {
    e.case.splitn(3, '/').nth(2).unwrap_or("")
}

fn conditions(table: Table, all: &[&Experiment]) -> Table {
    let sorted = by_case(all);
    let mut columns: Vec<&str> = Vec::new();
    for e in &sorted {
        if !columns.contains(&condition(e)) {
            columns.push(condition(e));
        }
    }
    columns.sort_by_key(|c| *c != "clean");
    let mut table = table.columns(columns.iter().map(|c| c.to_string())).of(all);
    let mut sizes: Vec<&str> = sorted.iter().map(|e| e.part(1)).collect();
    sizes.dedup();
    for size in sizes {
        for contender in contenders(all) {
            let figure = |column: &str| {
                let e = sorted.iter().find(|e| e.part(1) == size && condition(e) == column)?;
                e.of(&contender)
            };
            let clean = figure("clean").and_then(|r| r.median);
            let cells = columns.iter().map(|column| {
                let row = figure(column);
                // Divides the figure by the figure of the same allocator in a clean heap.
                let kept = clean.zip(row.and_then(|r| r.median)).and_then(|(c, m)| ratio(c, m));
                let mut cell = Cell::of(row).shaded(kept);
                cell.ratio = kept.map_or(String::new(), times);
                cell
            });
            let cells: Vec<Cell> = cells.collect();
            if cells.iter().any(|c| !c.is_empty()) {
                let heads = vec![size.to_string(), short(&contender)];
                table.lines.push(Line { heads, cells, contender: Some(contender.clone()) });
            }
        }
    }
    table
}
