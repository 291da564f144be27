//! Compares benchmark I with Lakos's talk by data structure: gains, ranking, and why some gains are
//! lower.

use super::{range_of_times, NOT_MEASURED};
use crate::rows::contender::{is_local, short};
use crate::rows::experiment::{contenders, deciding, ratio, Experiment};
use crate::rows::published::Published;
use crate::statistics::{geometric_mean, Range};
use crate::tables::layout::lakos1::{named, published_gain};
use crate::tables::layout::parts;
use crate::tables::{number, times, Cell, Table};

fn of_part<'a>(all: &[&'a Experiment], part: &str) -> Vec<&'a Experiment> {
    all.iter().filter(|e| e.part(0) == part).copied().collect()
}

/// Returns the table that compares AS1 and the best local strategy in Lakos's talk with our
/// results. The table also shows in how many cells our gain is lower, and why.
pub fn by_structure(experiments: &[&Experiment], published: &Published) -> Option<Table> {
    let all = deciding(experiments);
    let columns = [
        "AS1, ns an element",
        "talk's best gain",
        "Mallard's best gain",
        "lower than the talk's",
        "why",
    ];
    let mut table = Table::prose("Benchmark I by data structure, compared with Lakos (ACCU 2017)", &["structure"], &columns)
        .of(&all)
        .note("Gain: the time with AS1 divided by the time with the best local strategy in the same cell; the median over the sizes (minimum-maximum).");
    for part in parts(&all) {
        let own = of_part(&all, &part);
        let cells = line(&own, &part, published);
        table.line(vec![named(&part)], cells);
    }
    table.notes.extend(published.reason("lakos1", "").map(|r| format!("Where it is lower: {r}.")));
    (!table.is_empty()).then_some(table)
}

fn line(own: &[&Experiment], part: &str, published: &Published) -> Vec<Cell> {
    let figure = |e: &&Experiment, column: &str| published.of(&e.suite, &e.case, column).flatten();
    let ours = Range::of(own.iter().filter_map(|e| e.gain(e.best_local()?)));
    let talk = Range::of(own.iter().filter_map(|e| Some(published_gain(published, e)?.0)));
    let both = own
        .iter()
        .filter_map(|e| Some((e.gain(e.best_local()?)?, published_gain(published, e)?.0)));
    let both: Vec<(f64, f64)> = both.collect();
    let lower = both.iter().filter(|(ours, talk)| ours < talk).count();
    let base = geometric_mean(own.iter().filter_map(|e| e.baseline()?.median));
    let base_of_talk = geometric_mean(own.iter().filter_map(|e| figure(e, "AS1")));
    let first = base.map_or(NOT_MEASURED.to_string(), number);
    vec![
        Cell::text(first)
            .published(base_of_talk.map_or(String::new(), |b| format!("talk {}", number(b)))),
        Cell::text(talk.map_or("-".to_string(), |r| range_of_times(Some(r)))),
        Cell::text(range_of_times(ours)),
        Cell::text(if both.is_empty() {
            "-".to_string()
        } else {
            format!("in {lower} of {} sizes", both.len())
        }),
        Cell::text(if lower == 0 { String::new() } else { why(own, part, published) }),
    ]
}

/// Explains why our gain is lower than the published gain. The function computes how AS1 and the
/// best strategy differ from Lakos's results, and adds the causes that a file lists.
fn why(own: &[&Experiment], part: &str, published: &Published) -> String {
    let figure = |e: &&Experiment, column: &str| published.of(&e.suite, &e.case, column).flatten();
    let first = own.iter().filter_map(|e| ratio(figure(e, "AS1")?, e.baseline()?.median?));
    let best = own
        .iter()
        .filter_map(|e| ratio(published.best_local(&e.suite, &e.case)?.1, e.best_local()?.median?));
    let mut text = match geometric_mean(first).zip(geometric_mean(best)) {
        Some((first, best)) => format!(
            "AS1 itself is {} as fast an element as the talk's, the best local strategy {} as fast",
            times(first),
            times(best)
        ),
        None => String::new(),
    };
    if let Some(reason) = published.reason("lakos1", part) {
        text += if text.is_empty() { "" } else { "; " };
        text += reason;
    }
    text
}

/// Returns the table of the strategies for each data structure. The best strategy comes first.
pub fn ranking(experiments: &[&Experiment]) -> Option<Table> {
    let all = deciding(experiments);
    let locals: Vec<String> = contenders(&all).into_iter().filter(|c| is_local(c)).collect();
    let ranks = (1..=locals.len()).map(|n| n.to_string());
    let mut table = Table::new("Strategies by data structure, best first", &["structure"])
        .columns(ranks)
        .of(&all)
        .note("Gain over AS1, geometric mean of the sizes.");
    for part in parts(&all) {
        let own = of_part(&all, &part);
        let mut order: Vec<(f64, &String)> = locals
            .iter()
            .filter_map(|c| Some((geometric_mean(own.iter().filter_map(|e| e.gain(e.of(c)?)))?, c)))
            .collect();
        order.sort_by(|a, b| b.0.total_cmp(&a.0));
        let cells = order.into_iter().map(|(gain, c)| {
            Cell::text(format!("{} {}", short(c), times(gain))).shaded(Some(gain))
        });
        let cells = cells.collect();
        table.line(vec![named(&part)], cells);
    }
    (!table.is_empty()).then_some(table)
}
