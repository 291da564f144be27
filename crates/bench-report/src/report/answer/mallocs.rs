//! Compares mallocs in whole programs first, and then by the cost of single calls.

use crate::rows::cases::counted;
use crate::rows::experiment::{contenders, Experiment, Kind, Machine};
use crate::rows::matching::{family, is_pair, like, mean_of_families, once, Like};
use crate::tables::conditions;
use crate::tables::{number, Cell, Line, Table};

const SUITES: [&str; 3] = ["programs", "malloc", "rss"];

/// A column of the table, with its suite and the benchmark cases that the column covers.
struct Part {
    title: &'static str,
    suite: &'static str,
    wanted: fn(&Experiment) -> bool,
}

const fn part(title: &'static str, suite: &'static str, wanted: fn(&Experiment) -> bool) -> Part {
    Part { title, suite, wanted }
}

fn is_time(e: &Experiment) -> bool {
    e.kind() == Kind::Time
}

fn is_peak(e: &Experiment) -> bool {
    e.metric == "peak_rss_kib"
}

const PARTS: [Part; 10] = [
    part("programs: time", "programs", is_time),
    part("programs: peak memory", "programs", is_peak),
    part("calls: mean of the families", "malloc", is_time),
    part("the same without pairs", "malloc", |e| is_time(e) && !is_pair(e)),
    part("pairs", "malloc", |e| is_time(e) && family(e) == "malloc/pairs"),
    part("bulk", "malloc", |e| is_time(e) && family(e) == "malloc/bulk"),
    part("mixes", "malloc", |e| is_time(e) && family(e) == "malloc/mixes"),
    part("threads", "malloc", |e| is_time(e) && family(e) == "malloc/threads"),
    part("memory: peak", "rss", is_peak),
    part("memory: when all is freed", "rss", |e| e.metric == "after_rss_kib"),
];

/// The note that explains how to read the tables.
pub const NOTE: &str = "Figures are relative to glibc's malloc, which is 1; below 1 is less. The columns about programs show how much \
    faster calls change whole programs. Figures are geometric means in which case families have equal weight. The families \
    for calls are pairs (one block or a few are allocated and freed), bulk (many blocks are allocated, then all are freed), \
    mixes (blocks are replaced or grown) and threads; in programs and memory, each program is a family. Each case counts \
    once, with its CPU time if it has several threads. \"Without pairs\" leaves out all cases in which a block is \
    freed right after it is allocated, also those with several threads. The malloc with which programs need the least \
    time comes first.";

/// The indices of the columns in the table.
pub const PROGRAMS_TIME: usize = 0;
pub const PROGRAMS_PEAK: usize = 1;
pub const CALLS: usize = 2;
pub const MEMORY_PEAK: usize = 8;
pub const MEMORY_FREED: usize = 9;

/// The cost of one malloc in each column, where the cost of glibc's malloc is 1.
pub struct Means {
    pub contender: String,
    columns: Vec<Mean>,
}

/// A geometric mean, the number of cases with a figure, and the number of all cases.
#[derive(Clone, Copy)]
struct Mean {
    value: Option<f64>,
    has: usize,
    of: usize,
}

impl Means {
    /// Returns the mean of a column. Returns `None` if the malloc has no figure for a case of the
    /// column, because means over different cases are not comparable.
    pub fn whole(&self, column: usize) -> Option<f64> {
        let mean = self.columns[column];
        mean.value.filter(|_| mean.has == mean.of)
    }

    /// Returns the number of cases of a column.
    pub fn cases(&self, column: usize) -> usize {
        self.columns[column].of
    }
}

/// Returns the mean costs of each malloc on a machine. The first malloc is glibc's.
pub fn means(machine: &Machine) -> Vec<Means> {
    let all = compared(machine);
    let all = counted_once(&all);
    names(&all).map(|contender| means_of(&all, contender)).collect()
}

fn compared(machine: &Machine) -> Vec<&Experiment> {
    machine.select(|e| SUITES.contains(&&*e.suite) && e.baseline().is_some())
}

fn counted_once<'a>(all: &[&'a Experiment]) -> Vec<&'a Experiment> {
    let all = once(&counted(all));
    all.into_iter().filter(|e| !e.metric.starts_with("ratio_to_")).collect()
}

fn names(all: &[&Experiment]) -> impl Iterator<Item = String> {
    contenders(all).into_iter().filter(|c| like(c) == Some(Like::Malloc))
}

/// Returns the number of mallocs that were measured on a machine. The page begins with the machine
/// on which this number is largest.
pub fn peers(machine: &Machine) -> usize {
    let all = machine.select(|e| SUITES.contains(&&*e.suite));
    contenders(&all).iter().filter(|c| like(c) == Some(Like::Malloc)).count()
}

/// Returns the table with a line for each malloc. The malloc that needs the least CPU time in
/// programs is first.
pub fn table(machine: &Machine, title: &str) -> Option<Table> {
    let all = counted_once(&compared(machine));
    let mut lines: Vec<(f64, Line)> =
        names(&all).map(|contender| line(means_of(&all, contender))).collect();
    if !lines.iter().any(|(_, l)| l.contender.as_deref() == Some("mallard/malloc")) {
        return None;
    }
    lines.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut table =
        Table::new(title, &["malloc"]).columns(PARTS.iter().map(|p| p.title.to_string()));
    table.lines = lines.into_iter().map(|(_, line)| line).collect();
    let counts = PARTS.iter().filter_map(|p| {
        let count = all.iter().filter(|e| is_of(p, e)).count();
        (count > 0).then(|| format!("{} {count}", p.title))
    });
    table.notes.push(format!("Cases: {}.", counts.collect::<Vec<_>>().join("; ")));
    let shown = all.iter().filter(|e| PARTS.iter().any(|p| is_of(p, e)));
    table.notes.extend(conditions::sentence(shown.flat_map(|e| &e.rows)));
    Some(table.without_empty_columns())
}

fn is_of(part: &Part, e: &Experiment) -> bool {
    e.suite == part.suite && (part.wanted)(e)
}

fn means_of(all: &[&Experiment], contender: String) -> Means {
    let columns = PARTS.iter().map(|p| {
        let own: Vec<&&Experiment> = all.iter().filter(|e| is_of(p, e)).collect();
        let shares = own.iter().filter_map(|e| Some((family(e), 1.0 / e.gain(e.of(&contender)?)?)));
        let shares: Vec<(String, f64)> = shares.collect();
        let value = mean_of_families(shares.iter().cloned());
        Mean { value, has: shares.len(), of: own.len() }
    });
    Means { columns: columns.collect(), contender }
}

/// Formats the means of one malloc as a table line. Also returns the key by which lines are sorted.
fn line(means: Means) -> (f64, Line) {
    let cells = means.columns.iter().map(|&Mean { value, has, of }| {
        let text = value.map_or(String::new(), number);
        // A mean over fewer cases is not comparable, so the cell also shows the number of cases.
        let text = if has > 0 && has < of { format!("{text} ({has} of {of})") } else { text };
        Cell::text(text).shaded(value.map(|m| 1.0 / m))
    });
    let cells = cells.collect();
    let first = means.columns.iter().find_map(|m| m.value).unwrap_or(f64::MAX);
    let heads = vec![means.contender.clone()];
    (first, Line { heads, cells, contender: Some(means.contender) })
}
