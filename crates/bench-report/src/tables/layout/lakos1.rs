//! Lays out benchmark I of Lakos's talk as a table for each data structure, with sizes as lines and
//! strategies as columns.

use super::strategies::{peers, talk, Named, Unit};
use super::{by_case, parts, slices};
use crate::rows::contender::short;
use crate::rows::experiment::{ratio, Experiment, Kind};
use crate::rows::published::Published;
use crate::tables::{times, Cell, Table};

/// Returns the name of a data structure in Lakos's talk.
fn structure(part: &str) -> &'static str {
    match part {
        "DS1" => "vector<int>",
        "DS2" => "vector<string>",
        "DS3" => "unordered_set<int>",
        "DS4" => "unordered_set<string>",
        "DS5" => "vector<vector<int>>",
        "DS6" => "vector<vector<string>>",
        "DS7" => "vector<unordered_set<int>>",
        "DS8" => "vector<unordered_set<string>>",
        "DS9" => "unordered_set<vector<int>>",
        "DS10" => "unordered_set<vector<string>>",
        "DS11" => "unordered_set<unordered_set<int>>",
        "DS12" => "unordered_set<unordered_set<string>>",
        _ => "",
    }
}

/// Returns a data structure with its name: `DS1 vector<int>`.
pub fn named(part: &str) -> String {
    format!("{part} {}", structure(part)).trim_end().to_string()
}

pub fn tables(experiments: &[&Experiment], published: &Published) -> Vec<Table> {
    let mut tables = Vec::new();
    for slice in slices(experiments) {
        for part in parts(&slice.all) {
            let of_part: Vec<&Experiment> =
                slice.all.iter().filter(|e| e.part(0) == part).copied().collect();
            let lines: Vec<Named> =
                by_case(&of_part).into_iter().map(|e| (vec![e.part(1).to_string()], e)).collect();
            let name = format!("{}: {}", named(&part), slice.title());
            let strategies = Table::new(name.clone(), &["size"]);
            tables.push(talk(strategies, &lines, Unit::Absolute, published));
            tables.push(peers(Table::new(format!("{name}, peers"), &["size"]), &lines));
        }
    }
    tables
}

/// Returns the table of the gains of the best local strategy over AS1, by data structure and size.
pub fn gain_map(experiments: &[&Experiment], published: &Published) -> Option<Table> {
    let first = experiments.first()?;
    let mut sizes: Vec<String> = experiments.iter().map(|e| e.part(1).to_string()).collect();
    sizes.sort_by_key(|s| crate::rows::natural::key(s));
    sizes.dedup();
    let title =
        format!("Gain of the best local strategy over AS1: {} {}", first.variant, first.metric);
    let mut table =
        Table::new(title, &["structure"]).columns(sizes.iter().cloned()).of(experiments);
    for part in parts(experiments) {
        let cells = sizes.iter().map(|size| {
            let case = format!("{part}/{size}");
            let found = experiments.iter().find(|e| e.case == case);
            found.map_or_else(Cell::default, |e| gain_cell(e, published))
        });
        let cells = cells.collect();
        table.line(vec![named(&part)], cells);
    }
    Some(table)
}

fn gain_cell(e: &Experiment, published: &Published) -> Cell {
    let Some(best) = e.best_local() else { return Cell::default() };
    let gain = e.gain(best);
    let text = gain.map_or(String::new(), |g| format!("{} {}", times(g), short(&best.contender)));
    let cell = Cell::text(text).shaded(gain);
    if e.kind() != Kind::Time {
        return cell;
    }
    let talk = published_gain(published, e);
    cell.published(talk.map_or(String::new(), |(g, column)| format!("{} {column}", times(g))))
}

/// Returns the best gain in Lakos's talk for a cell, and the strategy with this gain.
pub fn published_gain(published: &Published, e: &Experiment) -> Option<(f64, String)> {
    let base = published.of(&e.suite, &e.case, "AS1")??;
    let (column, best) = published.best_local(&e.suite, &e.case)?;
    Some((ratio(base, best)?, column))
}
