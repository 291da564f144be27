//! Makes one line for each of the five benchmarks of Lakos's talk. The line has our figure and the
//! published figure of one strategy over all cells, compares our figure with the same strategy of
//! other libraries, and names the cells in which Mallard's strategy is a loss.

use super::situations::against_peers;
use super::{is_loss, named, range_of_times, NOT_MEASURED};
use crate::rows::cases::is_cell;
use crate::rows::contender::{explained, is_local, short};
use crate::rows::experiment::{ratio, Experiment, Kind, Machine};
use crate::rows::matching::choice;
use crate::rows::published::Published;
use crate::statistics::Range;
use crate::tables::conditions;
use crate::tables::layout::slices;
use crate::tables::{Cell, Table};

const BENCHMARKS: [(&str, &str); 5] = [
    ("lakos1", "I: growing, D and V"),
    ("lakos2", "II: locality, L"),
    ("lakos3", "III: utilisation, U"),
    ("lakos4", "IV: contention, C"),
    ("lakos5", "V: fragmentability, F"),
];

/// The maximum number of lost cells that a line names. The tables further down list all of them.
const NAMED: usize = 12;

const COLUMNS: [&str; 7] = [
    "figure",
    "strategy",
    "Mallard's gain with it",
    "the talk's with it",
    "against the same of another library",
    "cells",
    "loses to AS1",
];

pub fn table(machine: &Machine, published: &Published) -> Table {
    let mut table =
        Table::prose("The talk's benchmarks: one local strategy against AS1", &["benchmark"], &COLUMNS)
            .note("Gain: the time with AS1 (glibc's malloc) divided by the time with the strategy in the same cell, as the \
                   median over the cells (minimum-maximum). The strategy is the same in all cells: Mallard's local \
                   strategy that needs the least time overall with its default settings. Against another library: Mallard's \
                   figure divided by the best other library's with the same strategy, as a geometric \
                   mean. A cell is lost if the verdict on the strategy is a loss: the ranges from the 10th to the 90th \
                   percentile do not overlap, and the medians differ by more than 3 %.");
    for (suite, title) in BENCHMARKS {
        let lines = lines(&machine.of_suite(suite), published);
        if lines.is_empty() {
            let cells = [NOT_MEASURED, "", "", "", "", "", ""].map(Cell::text);
            table.line(vec![title.to_string()], cells.to_vec());
        }
        for cells in lines {
            table.line(vec![title.to_string()], cells);
        }
    }
    table
}

/// Returns lines for the benchmarks of Lakos's talk, and lines for allocators that threads share,
/// for which the talk has no benchmark.
fn lines(all: &[&Experiment], published: &Published) -> Vec<Vec<Cell>> {
    let is_of_talk = |e: &&&Experiment| match e.suite.as_str() {
        "lakos2" => is_cell(e),
        "lakos4" => e.part(0).contains('='),
        _ => true,
    };
    let of_talk: Vec<&Experiment> = all.iter().filter(is_of_talk).copied().collect();
    let shared = all.iter().filter(|e| e.suite == "lakos4" && !is_of_talk(e));
    let shared: Vec<&Experiment> = shared.copied().collect();
    let mut lines = lines_of(&of_talk, "", published);
    lines.extend(lines_of(&shared, ", shared", published));
    lines
}

fn lines_of(all: &[&Experiment], extra: &str, published: &Published) -> Vec<Vec<Cell>> {
    let slices = slices(all);
    // CPU time is left out, because its lines would repeat those of the wall time.
    let is_headline = |m: &str| Kind::of(m) == Kind::Time && !m.starts_with("cpu_");
    let of_time = slices.iter().filter(|s| is_headline(s.metric));
    of_time
        .filter_map(|slice| {
            let cells = &slice.all;
            let strategy = choice(cells, is_local)?;
            let gains = Range::of(cells.iter().filter_map(|e| e.gain(e.of(&strategy)?)))?;
            let talk = cells.iter().filter_map(|e| talk_gain(e, &strategy, published));
            let lost: Vec<String> = cells
                .iter()
                .filter(|e| {
                    let rows = e.baseline().zip(e.of(&strategy));
                    rows.is_some_and(|(base, row)| is_loss(base, row))
                })
                .map(|e| lost_cell(e, &strategy))
                .collect();
            let lost = if lost.is_empty() {
                "in none".to_string()
            } else {
                format!("in {}: {}", lost.len(), named(&lost, NAMED))
            };
            let rows = cells.iter().filter_map(|e| e.of(&strategy));
            let texts = [
                slice.title() + extra,
                explained(&strategy),
                range_of_times(Some(gains)),
                Range::of(talk).map_or("-".to_string(), |r| range_of_times(Some(r))),
                against_peers(cells, &strategy),
                conditions::after(coverage(cells, published), rows),
                lost,
            ];
            Some(texts.into_iter().map(Cell::text).collect())
        })
        .collect()
}

/// Describes how many cells were measured, and how many of the cells in Lakos's talk are among
/// them.
fn coverage(cells: &[&Experiment], published: &Published) -> String {
    let suite = cells.first().map_or("", |e| &e.suite);
    let of_talk = cells.iter().filter(|e| published.has(suite, &e.case)).count();
    match published.count(suite) {
        0 => cells.len().to_string(),
        all => format!("{}; {of_talk} of the talk's {all}", cells.len()),
    }
}

fn talk_gain(e: &Experiment, strategy: &str, published: &Published) -> Option<f64> {
    match e.metric.as_str() {
        // Lakos's talk has no access times in ns for lakos2, so no published figure exists.
        "ns_per_op" if e.suite == "lakos2" => None,
        _ => ratio(1.0, published.share(&e.suite, &e.case, &short(strategy))??),
    }
}

fn lost_cell(e: &Experiment, strategy: &str) -> String {
    let gain = e.of(strategy).and_then(|r| e.gain(r));
    format!("{} {}", e.case, gain.map_or(String::new(), crate::tables::times))
}
