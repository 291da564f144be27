//! Compares mallocs on all machines, in whole programs and by the cost of calls of malloc and free.

use super::names::{is_malloc, known_as, library};
use crate::report::answer::mallocs::{means, Means, CALLS, PROGRAMS_PEAK, PROGRAMS_TIME};
use crate::rows::experiment::{contenders, Experiment, Machine};
use crate::statistics::geometric_mean;
use crate::tables::{number, Cell, Line, Table};
use std::collections::BTreeMap;

pub const OURS: &str = "mallard/malloc";

/// The means of all mallocs on all machines, and the mallocs that the short page shows.
pub struct Mallocs<'a> {
    pub machines: Vec<(&'a Machine, Vec<Means>)>,
    /// The malloc that needs the least time in programs is first.
    pub shown: Vec<String>,
}

impl<'a> Mallocs<'a> {
    /// Computes the means. Machines that did not measure Mallard's malloc are left out.
    pub fn of(machines: &'a [Machine]) -> Mallocs<'a> {
        let all = machines.iter().map(|m| (m, means(m)));
        let machines = all.filter(|(_, means)| means.iter().any(|m| m.contender == OURS)).collect();
        let mut mallocs = Mallocs { machines, shown: Vec::new() };
        mallocs.shown = mallocs.choose();
        mallocs
    }

    /// Returns the mallocs that were measured on at least half of the machines. If a library has
    /// several versions, only the version that needs the least time is shown.
    fn choose(&self) -> Vec<String> {
        let column = self.lead();
        let measured = self.machines_with(column).count();
        let mut versions: BTreeMap<String, Vec<(usize, f64, String)>> = BTreeMap::new();
        for contender in self.contenders() {
            let factors = self.factors(&contender, column);
            if let Some(mean) = geometric_mean(factors.iter().copied()) {
                let library = library(&contender).to_string();
                versions.entry(library).or_default().push((factors.len(), mean, contender));
            }
        }
        let best = |all: Vec<(usize, f64, String)>| {
            let most = all.iter().map(|a| a.0).max()?;
            let all = all.into_iter().filter(|a| a.0 == most && a.0 * 2 >= measured);
            all.min_by(|a, b| a.1.total_cmp(&b.1))
        };
        let mut shown: Vec<_> = versions.into_values().filter_map(best).collect();
        shown.sort_by(|a, b| a.1.total_cmp(&b.1));
        shown.into_iter().map(|(_, _, contender)| contender).collect()
    }

    /// Returns the index of the column by which mallocs are sorted: the time of programs, or the
    /// cost of calls if no program was measured.
    pub fn lead(&self) -> usize {
        let has = |column| self.machines_with(column).next().is_some();
        if has(PROGRAMS_TIME) {
            PROGRAMS_TIME
        } else {
            CALLS
        }
    }

    /// Returns the machines on which Mallard has a figure in a column.
    pub fn machines_with(&self, column: usize) -> impl Iterator<Item = &(&'a Machine, Vec<Means>)> {
        self.machines.iter().filter(move |(_, all)| factor(all, OURS, column).is_some())
    }

    /// Returns the figures of a malloc on all machines that have one.
    pub fn factors(&self, contender: &str, column: usize) -> Vec<f64> {
        self.machines.iter().filter_map(|(_, all)| factor(all, contender, column)).collect()
    }

    /// Returns the geometric mean over the machines that have a figure.
    pub fn mean(&self, contender: &str, column: usize) -> Option<f64> {
        geometric_mean(self.factors(contender, column))
    }

    fn contenders(&self) -> Vec<String> {
        let mut names: Vec<String> = self
            .machines
            .iter()
            .flat_map(|(_, all)| all.iter().map(|m| m.contender.clone()))
            .collect();
        names.sort();
        names.dedup();
        names
    }

    /// Returns the mallocs that the short page leaves out.
    pub fn left_out(&self) -> Vec<String> {
        self.contenders().into_iter().filter(|c| !self.shown.contains(c)).collect()
    }

    /// Returns the table that compares mallocs in whole programs, and by the cost of calls, on each
    /// machine.
    pub fn standings(&self) -> Option<Table> {
        const PARTS: [(usize, &str); 3] = [
            (PROGRAMS_TIME, "programs, time"),
            (PROGRAMS_PEAK, "programs, peak memory"),
            (CALLS, "calls, time"),
        ];
        let title = |(machine, _): &(&Machine, Vec<Means>)| {
            PARTS.map(|(_, words)| format!("{}: {words}", machine.common))
        };
        let columns = self.machines.iter().flat_map(title);
        let mut table = Table::new("Malloc against malloc", &["malloc"]).columns(columns);
        for contender in &self.shown {
            let of = |(_, all): &(&Machine, Vec<Means>)| {
                PARTS.map(|(column, _)| Cell::figure(factor(all, contender, column)))
            };
            let cells = self.machines.iter().flat_map(of).collect();
            table.line(vec![known_as(contender)], cells);
        }
        mark_least(&mut table);
        Some(table.without_empty_columns()).filter(|t| !t.is_empty())
    }

    /// Returns the table that compares mallocs in each program, on the machine on which most
    /// programs were measured. A cell shows `time / peak memory`.
    pub fn each_program(&self) -> Option<(&'a Machine, Table)> {
        let count = |all: &[Means]| all.iter().filter(|m| m.whole(PROGRAMS_TIME).is_some()).count();
        let measured = self.machines_with(PROGRAMS_TIME);
        let most = measured.max_by_key(|(_, all)| (all[0].cases(PROGRAMS_TIME), count(all)))?;
        let shown: Vec<&String> = self.shown.iter().filter(|c| !c.starts_with("glibc")).collect();
        let mut table = Table::new("Each program", &["program"])
            .columns(shown.iter().map(|contender| known_as(contender)));
        let programs = most.0.select(|e| e.suite == "programs" && e.metric == "cpu_seconds");
        for time in programs {
            let peak = most.0.experiments.iter().find(|e| {
                e.suite == time.suite && e.case == time.case && e.metric == "peak_rss_kib"
            });
            table.line(vec![time.case.clone()], both(time, peak, &shown));
        }
        Some((most.0, table)).filter(|(_, t)| !t.is_empty())
    }
}

/// Returns the cells of one program. Marks the shortest time, unless glibc's time is shorter.
fn both(time: &Experiment, peak: Option<&Experiment>, shown: &[&String]) -> Vec<Cell> {
    let share = |e: &Experiment, contender: &str| Some(1.0 / e.gain(e.of(contender)?)?);
    let times: Vec<Option<f64>> = shown.iter().map(|c| share(time, c)).collect();
    let least = times.iter().flatten().copied().fold(1.0, f64::min);
    let text = |(contender, of_time): (&&String, &Option<f64>)| {
        let words = |factor: Option<f64>| factor.map_or("-".to_string(), number);
        let of_peak = peak.and_then(|e| share(e, contender));
        let mut cell = Cell::text(format!("{} / {}", words(*of_time), words(of_peak)));
        cell.best = of_time.is_some_and(|t| number(t) == number(least));
        cell
    };
    shown.iter().zip(&times).map(text).collect()
}

/// Returns the mallocs that have a result in an experiment.
pub fn of_experiment(e: &Experiment) -> Vec<String> {
    contenders(&[e]).into_iter().filter(|c| is_malloc(c)).collect()
}

fn factor(all: &[Means], contender: &str, column: usize) -> Option<f64> {
    all.iter().find(|m| m.contender == contender)?.whole(column)
}

/// Marks the smallest figure of each column.
fn mark_least(table: &mut Table) {
    let figure = |line: &Line, place: usize| line.cells[place].text.parse::<f64>().ok();
    for place in 0..table.columns.len() {
        let figures = table.lines.iter().filter_map(|line| figure(line, place));
        let least = figures.fold(f64::MAX, f64::min);
        for line in &mut table.lines {
            line.cells[place].best = figure(line, place) == Some(least);
        }
    }
}
