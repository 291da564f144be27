//! Groups the results of one machine into experiments. An experiment has the results of all
//! allocators (contenders) in one benchmark case.

use crate::rows::contender::{is_local, is_tuned, Strategy};
use crate::rows::machines::Names;
use crate::rows::natural;
use crate::rows::row::{Row, Rows};
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

/// The kind of a metric. Each table, selector and score is about one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    #[default]
    Time,
    Memory,
    Other,
}

impl Kind {
    pub fn of(metric: &str) -> Kind {
        let time = ["seconds", "cpu_", "cycles", "degradation", "p50", "p9", "max_ns"];
        if metric.ends_with("rss_kib") {
            Kind::Memory
        } else if metric.contains("ns_per_") || time.iter().any(|t| metric.starts_with(t)) {
            Kind::Time
        } else {
            Kind::Other
        }
    }

    pub fn name(self) -> &'static str {
        ["time", "memory", "other"][self as usize]
    }
}

/// Returns whether the metric is a cost, for which a smaller value is an advantage over another
/// allocator. Derived ratios, aggregates, events in a run, and the degradation of an allocator
/// relative to itself are not costs.
pub fn is_cost(metric: &str) -> bool {
    let no_cost = [
        "ratio_to_",
        "aggregate_",
        "remote_percent",
        "page_faults",
        "fragmentability",
        "degradation",
    ];
    metric != "rss_kib" && !no_cost.iter().any(|m| metric.starts_with(m))
}

/// Results that differ only in their allocator.
#[derive(Clone)]
pub struct Experiment {
    pub suite: String,
    pub case: String,
    pub variant: String,
    pub metric: String,
    pub threads: u32,
    pub rows: Vec<Row>,
}

impl Experiment {
    pub fn kind(&self) -> Kind {
        Kind::of(&self.metric)
    }

    pub fn of(&self, contender: &str) -> Option<&Row> {
        self.rows.iter().find(|r| r.contender == contender)
    }

    /// Returns the result of glibc, to which others are compared. If the suite compares strategies,
    /// this is glibc's result with AS1.
    pub fn baseline(&self) -> Option<&Row> {
        self.rows.iter().find(|r| {
            r.contender.starts_with("glibc")
                && Strategy::of(&r.contender).is_none_or(|s| s.number == 1)
        })
    }

    /// Returns the result of a strategy of Lakos's talk: glibc's result for AS1 and AS2, otherwise
    /// Mallard's result.
    pub fn of_talk(&self, number: u32) -> Option<&Row> {
        self.rows.iter().find(|r| {
            Strategy::of(&r.contender)
                .is_some_and(|s| s.number == number && s.extra.is_empty() && s.is_of_the_talk())
        })
    }

    pub fn best(&self, wanted: impl Fn(&Row) -> bool) -> Option<&Row> {
        let rows = self.rows.iter().filter(|r| r.median.is_some() && wanted(r));
        rows.min_by(|a, b| a.median.unwrap_or(f64::MAX).total_cmp(&b.median.unwrap_or(f64::MAX)))
    }

    pub fn best_ours(&self) -> Option<&Row> {
        self.best(|r| r.is_ours() && !is_tuned(&r.contender))
    }

    pub fn best_peer(&self) -> Option<&Row> {
        self.best(|r| !r.is_ours() && !r.is_limit())
    }

    pub fn best_local(&self) -> Option<&Row> {
        self.best(|r| is_local(&r.contender))
    }

    /// Returns the baseline's figure divided by the figure of `row`. The quotient is above 1 if the
    /// allocator of `row` is better than the baseline.
    pub fn gain(&self, row: &Row) -> Option<f64> {
        ratio(self.baseline()?.median?, row.median?)
    }

    /// Returns a part of the case's name. Part 0 of `DS1/2^6` is `DS1`.
    pub fn part(&self, index: usize) -> &str {
        self.case.split('/').nth(index).unwrap_or("")
    }

    /// Returns the number or exponent of a parameter in the case's name. `S` in `2^21/S=2^13/I=2^8`
    /// is 13.
    pub fn parameter(&self, name: &str) -> Option<u32> {
        let value = self.case.split('/').find_map(|p| p.strip_prefix(name)?.strip_prefix('='))?;
        value.rsplit('^').next()?.parse().ok()
    }
}

/// Returns `a / b`. `None` if either is zero.
pub fn ratio(a: f64, b: f64) -> Option<f64> {
    Some(a / b).filter(|r| r.is_finite() && *r > 0.0)
}

/// Returns whether two names mean the same machine. The names contain a compiler, which may differ
/// if one of the two is Rust's: a machine has a compiler for each language, and one page shows the
/// results of both languages.
fn is_one(a: &str, b: &str) -> bool {
    a == b || (is_of_rust(a) || is_of_rust(b)) && without_compiler(a) == without_compiler(b)
}

fn is_of_rust(machine: &str) -> bool {
    machine.rsplit(", ").next().is_some_and(|compiler| compiler.starts_with("rustc "))
}

fn without_compiler(machine: &str) -> &str {
    machine.rsplit_once(", ").map_or(machine, |(hardware, _)| hardware)
}

/// Returns the shortest beginning of a name that differs from the names of all other machines.
fn title<'a>(name: &'a str, all: &[String]) -> &'a str {
    let until = |name: &'a str, end: &str| name.split(end).next().unwrap_or(name);
    let is_own = |part: &&str| all.iter().filter(|n| n.starts_with(*part)).count() == 1;
    let parts = [until(name, ", L1d"), until(name, ", Linux")];
    match name {
        "" => "unknown machine",
        name => parts.into_iter().find(is_own).unwrap_or(name),
    }
}

/// All experiments of one machine.
#[derive(Default)]
pub struct Machine {
    pub name: String,
    /// The part of the name that distinguishes the machine: the processor, the processor and its
    /// caches, or the whole name.
    pub title: String,
    /// The common name of the processor, such as Zen 3. If there is no common name, the title.
    pub common: String,
    /// The evidence for the common name.
    pub known_by: String,
    pub experiments: Vec<Experiment>,
    /// Commits that results name and that the repository does not have.
    pub lost_commits: BTreeSet<String>,
}

/// The suites of the five benchmarks in Lakos's talk.
const TALK: [&str; 5] = ["lakos1", "lakos2", "lakos3", "lakos4", "lakos5"];

impl Machine {
    /// Groups results by machine. The machine with the most figures of Lakos's talk is first, and
    /// the others follow in the order of their first results.
    pub fn all(rows: &Rows) -> Vec<Machine> {
        let mut machines: Vec<Machine> = Vec::new();
        let mut places: HashMap<(usize, [&str; 4], u32), usize> = HashMap::new();
        for row in &rows.all {
            let m = machines.iter().position(|m| is_one(&m.name, &row.machine));
            let m = m.unwrap_or_else(|| {
                let name = row.machine.clone();
                machines.push(Machine { name, ..Machine::default() });
                machines.len() - 1
            });
            if is_of_rust(&machines[m].name) {
                machines[m].name.clone_from(&row.machine); // prefers the C++ compiler's name
            }
            let all = &mut machines[m].experiments;
            let key = (m, [&*row.suite, &*row.case, &*row.variant, &*row.metric], row.threads);
            let place = *places.entry(key).or_insert_with(|| {
                all.push(Experiment {
                    suite: row.suite.clone(),
                    case: row.case.clone(),
                    variant: row.variant.clone(),
                    metric: row.metric.clone(),
                    threads: row.threads,
                    rows: Vec::new(),
                });
                all.len() - 1
            });
            all[place].rows.push(row.clone());
        }
        let of_the_talk = |e: &&Experiment| TALK.contains(&&*e.suite);
        machines.sort_by_key(|m| Reverse(m.experiments.iter().filter(of_the_talk).count()));
        let names: Vec<String> = machines.iter().map(|m| m.name.clone()).collect();
        for machine in &mut machines {
            machine.title = title(&machine.name, &names).to_string();
            machine.common.clone_from(&machine.title);
        }
        machines
    }

    /// Sets the common name of the machine, if it has one.
    pub fn call(&mut self, names: &Names) {
        if let Some(found) = names.of(&self.name) {
            (self.common, self.known_by) = (found.name.clone(), found.known_by.clone());
        }
    }

    /// Returns the title with the common name in front: `Zen 3: AMD EPYC, 2 CPUs`.
    pub fn heading(&self) -> String {
        if self.common == self.title {
            self.title.clone()
        } else {
            format!("{}: {}", self.common, self.title)
        }
    }

    pub fn select(&self, wanted: impl Fn(&Experiment) -> bool) -> Vec<&Experiment> {
        self.experiments.iter().filter(|e| wanted(e)).collect()
    }

    pub fn of_suite(&self, suite: &str) -> Vec<&Experiment> {
        self.select(|e| e.suite == suite)
    }

    /// Returns the suites: first those of Lakos's talk in the talk's order, then the others in the
    /// order of their results.
    pub fn suites(&self) -> Vec<&str> {
        let mut seen: Vec<&str> = Vec::new();
        for e in &self.experiments {
            if !seen.contains(&&*e.suite) {
                seen.push(&e.suite);
            }
        }
        let after = |s: &str| if s == "seeds" { TALK.len() } else { TALK.len() + 1 };
        seen.sort_by_key(|s| TALK.iter().position(|f| f == s).unwrap_or(after(s)));
        seen
    }

    /// Returns whether the machine has figures of any benchmark of Lakos's talk.
    pub fn has_the_talk(&self) -> bool {
        TALK.iter().any(|suite| self.has(suite))
    }

    pub fn has(&self, suite: &str) -> bool {
        self.experiments.iter().any(|e| e.suite == suite)
    }
}

/// Returns the experiments on which the answers are based: those with the corrected variant and
/// with the metric that measures cost in their suite.
pub fn deciding<'a>(experiments: &[&'a Experiment]) -> Vec<&'a Experiment> {
    let variants: BTreeSet<&str> = experiments.iter().map(|e| &*e.variant).collect();
    let variant = ["corrected", "faithful"].into_iter().find(|v| variants.contains(v));
    let chosen = experiments
        .iter()
        .filter(|e| variant.is_none_or(|v| e.variant == v || e.variant.is_empty()));
    let chosen: Vec<&Experiment> = chosen.copied().collect();
    let costs = ["ns_per_op", "seconds", "ns_per_life", "degradation"];
    let metric = costs.into_iter().find(|m| chosen.iter().any(|e| e.metric == *m));
    chosen.into_iter().filter(|e| metric.is_some_and(|m| e.metric == m)).collect()
}

/// Returns the allocators in the order of table columns: glibc, Mallard, competitors, lower bounds.
/// Digits in names are sorted as numbers.
pub fn contenders(experiments: &[&Experiment]) -> Vec<String> {
    let names: BTreeSet<&str> =
        experiments.iter().flat_map(|e| e.rows.iter().map(|r| &*r.contender)).collect();
    let mut names: Vec<String> = names.into_iter().map(str::to_string).collect();
    let rank = |n: &str| match n {
        n if n.starts_with("glibc") => 0,
        n if n.starts_with("mallard/") => 1,
        n if n.starts_with("limit/") => 3,
        _ => 2,
    };
    names.sort_by_key(|n| (rank(n), natural::key(n)));
    names
}
