//! Prints results for people: a table for each figure, and at the end the cases in which Mallard is
//! behind.

use super::row::Row;

/// Returns the fields that are the same in all results of one table. The results of a table differ
/// only in their contender.
fn heading(r: &Row) -> (&str, &str, &str) {
    (&r.case, &r.variant, &r.metric)
}

fn is_memory(r: &Row) -> bool {
    r.metric.ends_with("_rss_kib")
}

fn groups(rows: &[Row]) -> Vec<Vec<&Row>> {
    let mut groups: Vec<Vec<&Row>> = Vec::new();
    for row in rows.iter().filter(|r| !is_memory(r)) {
        match groups.iter_mut().find(|g| heading(g[0]) == heading(row)) {
            Some(group) => group.push(row),
            None => groups.push(vec![row]),
        }
    }
    groups
}

/// Prints a question, and a table of the contenders for each figure, the best contender first.
pub fn tables(asks: &str, rows: &[Row]) {
    println!("\n{asks}");
    for group in groups(rows) {
        table(group, rows);
    }
}

fn table(mut group: Vec<&Row>, rows: &[Row]) {
    let glibc = group.iter().find(|r| r.contender.starts_with("glibc")).and_then(|r| r.median);
    group.sort_by(|a, b| cost(a).total_cmp(&cost(b)));
    let best = cost(group[0]);
    let (case, variant, metric) = heading(group[0]);
    let comma = if variant.is_empty() { "" } else { ", " };
    println!("\n{case}{comma}{variant}   {metric}");
    println!(
        "  {:38} {:>9} {:>19} {:>9} {:>8} {:>10} {:>10}",
        "", "median", "low - high", "glibc/it", "it/best", "peak KiB", "after KiB"
    );
    for r in group {
        let Some(median) = r.median else {
            println!("  {:38} {:>9}  {}", r.contender, "-", r.why.as_deref().unwrap_or(""));
            continue;
        };
        let range =
            format!("{} - {}", number(r.low.unwrap_or(median)), number(r.high.unwrap_or(median)));
        let over = glibc.map_or(String::new(), |g| number(g / median) + "x");
        let memory = |metric: &str| {
            let is_its = |m: &&Row| {
                m.metric == metric && m.contender == r.contender && m.variant == r.variant
            };
            rows.iter()
                .find(is_its)
                .and_then(|m| m.median)
                .map_or(String::new(), |k| format!("{k:.0}"))
        };
        println!(
            "  {:38} {:>9} {range:>19} {over:>9} {:>8} {:>10} {:>10}",
            r.contender,
            number(median),
            number(median / best),
            memory("peak_rss_kib"),
            memory("after_rss_kib")
        );
    }
}

fn cost(r: &Row) -> f64 {
    r.median.unwrap_or(f64::INFINITY)
}

fn number(value: f64) -> String {
    match value {
        v if v < 1.0 => format!("{v:.3}"),
        v if v < 10.0 => format!("{v:.2}"),
        v if v < 1000.0 => format!("{v:.1}"),
        v => format!("{v:.0}"),
    }
}

/// Collects the figures in which Mallard's best contender is more than a tenth worse than the best
/// other contender.
#[derive(Default)]
pub struct Losses {
    compared: usize,
    lines: Vec<(f64, String)>,
}

impl Losses {
    pub fn add(&mut self, rows: &[Row]) {
        for group in groups(rows) {
            let best = |ours: bool| {
                let able = group.iter().filter(|r| r.median.is_some() && r.is_ours() == ours);
                able.min_by(|a, b| cost(a).total_cmp(&cost(b)))
            };
            let (Some(ours), Some(peer)) = (best(true), best(false)) else { continue };
            self.compared += 1;
            let ratio = cost(ours) / cost(peer);
            if ratio > 1.1 {
                let case = format!("{} {}", ours.case, ours.variant);
                let line = format!(
                    "  {case:42} {:14} {:>8}  {:30} against {:>8}  {:32} {ratio:5.2}",
                    ours.metric,
                    number(cost(ours)),
                    ours.contender,
                    number(cost(peer)),
                    peer.contender
                );
                self.lines.push((ratio, line));
            }
        }
    }

    pub fn print(&self) {
        if self.compared == 0 {
            return;
        }
        let (lost, end) = (self.lines.len(), if self.lines.is_empty() { "." } else { ":" });
        println!(
            "\nMallard's best is more than 10 % worse than the best competitor in {lost} of {} figures{end}",
            self.compared
        );
        for (_, line) in &self.lines {
            println!("{line}");
        }
    }
}
