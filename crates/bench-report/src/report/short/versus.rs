//! Compares Mallard's malloc with each other malloc on one machine, for the HTML page's first
//! screen.

use super::mallocs::{of_experiment, Mallocs, OURS};
use super::names::known_as;
use crate::report::answer::mallocs::{
    Means, CALLS, MEMORY_FREED, MEMORY_PEAK, PROGRAMS_PEAK, PROGRAMS_TIME,
};
use crate::rows::cases::{case_of, counted};
use crate::rows::experiment::{is_cost, ratio, Experiment, Kind, Machine};
use crate::rows::matching::{family, mean_of_families, once};
use crate::unpaired::{verdict, Bounds};
use mallard_measure::verdict::Verdict;
use serde::Serialize;

/// The parts of the comparison: title, suite, and the metric for memory, which is empty for times.
const PARTS: [(&str, &str, &str); 5] = [
    (TITLES[0], "programs", ""),
    (TITLES[1], "programs", "peak_rss_kib"),
    (TITLES[2], "malloc", ""),
    (TITLES[3], "rss", "peak_rss_kib"),
    (TITLES[4], "rss", "after_rss_kib"),
];

/// The titles of the parts.
pub const TITLES: [&str; 5] = [
    "programs: CPU time",
    "programs: peak memory",
    "calls of malloc and free: time",
    "patterns: peak memory",
    "patterns: memory when all is freed",
];

/// The figures of one machine: the costs of each malloc relative to glibc's, and of Mallard
/// relative to each malloc.
#[derive(Serialize)]
pub struct OnMachine {
    /// The index of the machine on the page.
    pub machine: usize,
    pub name: String,
    pub all: Vec<Standing>,
    pub against: Vec<Against>,
}

/// The costs of a malloc in the order of the parts, where the cost of glibc's malloc is 1.
#[derive(Serialize)]
pub struct Standing {
    pub name: String,
    pub ours: bool,
    pub figures: [Option<f64>; 5],
}

#[derive(Serialize)]
pub struct Against {
    pub name: String,
    pub parts: Vec<Part>,
}

/// Mallard's cost in one part, where the cost of the other malloc is 1.
#[derive(Serialize)]
pub struct Part {
    pub title: &'static str,
    pub mean: f64,
    pub won: usize,
    pub tied: usize,
    pub lost: usize,
    /// The cases with their factors and verdicts (1 for a gain, 0 for no difference, -1 for a
    /// loss). If there are many cases, the list has only the losses, the largest first.
    pub cases: Vec<(String, f64, i8)>,
    pub whole: bool,
}

/// The maximum number of cases that a part lists.
const CASES: usize = 12;

pub fn of(machines: &[Machine], mallocs: &Mallocs) -> Vec<OnMachine> {
    let on = |(machine, means): &(&Machine, Vec<_>)| {
        let place = machines.iter().position(|m| std::ptr::eq(m, *machine))?;
        Some(on_machine(place, machine, means))
    };
    mallocs.machines.iter().filter_map(on).collect()
}

fn on_machine(place: usize, machine: &Machine, means: &[Means]) -> OnMachine {
    let columns = [PROGRAMS_TIME, PROGRAMS_PEAK, CALLS, MEMORY_PEAK, MEMORY_FREED];
    let mut all: Vec<Standing> = means
        .iter()
        .map(|m| Standing {
            name: known_as(&m.contender),
            ours: m.contender == OURS,
            figures: columns.map(|c| m.whole(c).map(rounded)),
        })
        .filter(|s| s.figures.iter().any(Option::is_some))
        .collect();
    let first = |s: &Standing| s.figures.iter().flatten().next().copied().unwrap_or(f64::MAX);
    all.sort_by(|a, b| first(a).total_cmp(&first(b)));
    let others = means.iter().filter(|m| m.contender != OURS);
    let against = others.map(|m| against(machine, &m.contender)).collect();
    OnMachine { machine: place, name: machine.common.clone(), all, against }
}

fn against(machine: &Machine, other: &str) -> Against {
    let part = |(title, suite, metric): (&'static str, &str, &str)| {
        let own = machine.select(|e| {
            let wanted = match metric {
                "" => e.kind() == Kind::Time && is_cost(&e.metric),
                metric => e.metric == metric,
            };
            e.suite == suite && wanted && of_experiment(e).iter().any(|c| c == OURS)
        });
        part_of(title, &once(&counted(&own)), other)
    };
    Against { name: known_as(other), parts: PARTS.into_iter().filter_map(part).collect() }
}

fn part_of(title: &'static str, all: &[&Experiment], other: &str) -> Option<Part> {
    let compare = |e: &&Experiment| {
        let (ours, theirs) = (e.of(OURS)?, e.of(other)?);
        let factor = ratio(ours.median?, theirs.median?)?;
        let won = match verdict(theirs, ours, Bounds::default()) {
            Verdict::Gain => 1,
            Verdict::Loss => -1,
            _ => 0,
        };
        Some((family(e), case_of(e), factor, won))
    };
    let compared: Vec<(String, String, f64, i8)> = all.iter().filter_map(compare).collect();
    let mean = mean_of_families(compared.iter().map(|(f, _, factor, _)| (f.clone(), *factor)))?;
    let count = |verdict: i8| compared.iter().filter(|c| c.3 == verdict).count();
    let (won, tied, lost) = (count(1), count(0), count(-1));
    let whole = compared.len() <= CASES;
    let mut cases: Vec<(String, f64, i8)> = compared
        .into_iter()
        .filter(|c| whole || c.3 < 0)
        .map(|(_, case, factor, won)| (case, rounded(factor), won))
        .collect();
    if !whole {
        cases.sort_by(|a, b| b.1.total_cmp(&a.1));
        cases.truncate(CASES);
    }
    Some(Part { title, mean: rounded(mean), won, tied, lost, cases, whole })
}

fn rounded(figure: f64) -> f64 {
    (figure * 1e5).round() / 1e5
}
