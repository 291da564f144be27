//! Decides which allocators are compared with each other, and which results count.
//!
//! A malloc is compared with mallocs, a strategy of Lakos's talk with the same strategy, a local
//! allocator with local allocators, and a recorder with recorders. If Mallard has several
//! allocators of a kind, one of them represents Mallard in all cells of a situation. Choosing the
//! best of many in each cell would compare our luck with one allocator of a competitor. Tuned
//! variants are not compared.

use super::{cases::counted, situations};
use crate::rows::contender::{is_tuned, Strategy};
use crate::rows::experiment::{contenders, is_cost, ratio, Experiment, Kind, Machine};
use crate::rows::row::Row;
use crate::statistics::geometric_mean;
use mallard_measure::mallocs::list::Mallocs;
use std::collections::{BTreeMap, HashMap, HashSet};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Like {
    /// An allocator for a whole process.
    Malloc,
    /// A strategy of Lakos's talk. The fields are its number, and whether several threads may call
    /// the allocator.
    Strategy(u32, bool),
    /// An allocator for a part of a program.
    Local,
    /// A program that records the allocations of another program.
    Recorder,
}

/// Prefixes of crate names and of names in old results that mean a malloc. The names of other
/// mallocs are in spec/allocators.csv. Other allocators of these libraries, such as heap objects,
/// count as local allocators.
const MALLOCS: [&str; 2] = ["tikv-jemallocator-", "tcmalloc-"];
/// Prefixes of the names of recorders. gperftools is a malloc, but its heap profiler is a recorder.
const RECORDERS: [&str; 4] =
    ["mallard/record", "heaptrack-", "memray-", "gperftools-2.10/heap-profiler"];
const FOR_THREADS: [&str; 4] = ["+mutex", "+lock_free", "+thread_cached", "+synchronized"];

/// Returns the kind of an allocator. Returns `None` for a lower bound and for a tuned variant.
pub fn like(contender: &str) -> Option<Like> {
    if contender.starts_with("limit/") || is_tuned(contender) {
        return None;
    }
    if let Some(s) = Strategy::of(contender) {
        return Some(Like::Strategy(s.number, FOR_THREADS.contains(&&*s.extra)));
    }
    if RECORDERS.iter().any(|r| contender.starts_with(r)) {
        return Some(Like::Recorder);
    }
    let is_malloc =
        Mallocs::get().has_rows_of(contender) || MALLOCS.iter().any(|m| contender.starts_with(m));
    Some(if is_malloc && !contender.ends_with("/heap") { Like::Malloc } else { Like::Local })
}

/// Drops experiments that measure the same thing again. Cycles repeat ns in another unit, and
/// percentiles repeat the same operations. For a case with threads, CPU time is kept and wall time
/// is dropped, because other programs disturb CPU time less.
pub fn once<'a>(all: &[&'a Experiment]) -> Vec<&'a Experiment> {
    let key = |e: &Experiment, metric: &str| {
        (e.suite.clone(), e.case.clone(), e.variant.clone(), e.threads, metric.to_string())
    };
    let known: HashSet<_> = all.iter().map(|e| key(e, &e.metric)).collect();
    let is_again = |e: &Experiment| match e.metric.as_str() {
        "ns_per_op" | "seconds" => known.contains(&key(e, &format!("cpu_{}", e.metric))),
        "cycles_per_op" | "p50_ns" | "p90_ns" | "p99_ns" | "p999_ns" | "max_ns" => true,
        _ => false,
    };
    all.iter().filter(|e| !is_again(e)).copied().collect()
}

/// Returns the geometric mean of the geometric means of families, so that all families have the
/// same weight. `None` if there are no values.
pub fn mean_of_families<F: Ord>(all: impl IntoIterator<Item = (F, f64)>) -> Option<f64> {
    let mut families: BTreeMap<F, Vec<f64>> = BTreeMap::new();
    for (family, value) in all {
        families.entry(family).or_default().push(value);
    }
    geometric_mean(families.into_values().filter_map(geometric_mean))
}

/// Returns the family of a case, which is the suite and the first part of the case's name. In the
/// suite `malloc`, the family is the pattern of allocations and frees. `bench/standings.cpp` has
/// the same families.
pub fn family(e: &Experiment) -> String {
    let part = match (e.suite.as_str(), e.part(0)) {
        ("malloc", "pair" | "fifo" | "list") => "pairs",
        ("malloc", "replace" | "realloc" | "large") => "mixes",
        ("malloc", "hakmem") if e.threads > 1 => "threads",
        ("malloc", "hakmem") => "bulk", // each case of hakmem allocates in bursts
        (_, part) => part,
    };
    format!("{}/{part}", e.suite)
}

/// Returns whether the case frees each block right after allocating it, and does nothing else.
pub fn is_pair(e: &Experiment) -> bool {
    family(e) == "malloc/pairs" || e.case.split('/').any(|p| p == "pair")
}

/// Mallard's result in one case, and the results of comparable competitors.
pub struct Match<'a> {
    pub e: &'a Experiment,
    pub ours: &'a Row,
    pub peers: Vec<&'a Row>,
}

impl<'a> Match<'a> {
    pub fn best_peer(&self) -> &'a Row {
        let least = |a: &&&Row, b: &&&Row| {
            a.median.unwrap_or(f64::MAX).total_cmp(&b.median.unwrap_or(f64::MAX))
        };
        self.peers.iter().min_by(least).expect("a match has a peer")
    }
}

/// Returns all cases in which Mallard has a comparable competitor. If a case has several variants,
/// such as the published one and a corrected one, only one of them counts.
pub fn matches(machine: &Machine) -> Vec<Match<'_>> {
    matches_of(&counted(&costs(machine)))
}

/// Returns all cases in which Mallard has a comparable competitor, with every variant of each case.
pub fn all_matches(machine: &Machine) -> Vec<Match<'_>> {
    matches_of(&costs(machine))
}

fn costs(machine: &Machine) -> Vec<&Experiment> {
    machine.select(|e| is_cost(&e.metric) && e.kind() != Kind::Other)
}

fn matches_of<'a>(costs: &[&'a Experiment]) -> Vec<Match<'a>> {
    let costs = once(costs);
    let standing = standing_for(&costs);
    let mut all = Vec::new();
    for e in costs {
        let mut kinds: Vec<Like> = ours(e).filter_map(|r| like(&r.contender)).collect();
        kinds.sort();
        kinds.dedup();
        for kind in kinds {
            let chosen = standing.get(&(situations::title_of(e), kind));
            let Some(ours) = chosen.and_then(|c| e.of(c)).filter(|r| r.median.is_some()) else {
                continue;
            };
            let peers: Vec<&Row> = peers(e, kind).collect();
            if !peers.is_empty() {
                all.push(Match { e, ours, peers });
            }
        }
    }
    all
}

fn ours(e: &Experiment) -> impl Iterator<Item = &Row> {
    e.rows.iter().filter(|r| r.is_ours() && r.median.is_some())
}

fn peers(e: &Experiment, kind: Like) -> impl Iterator<Item = &Row> {
    e.rows
        .iter()
        .filter(move |r| !r.is_ours() && r.median.is_some() && like(&r.contender) == Some(kind))
}

/// Chooses, for each situation and kind, the allocator of Mallard that competitors are compared
/// with.
fn standing_for(costs: &[&Experiment]) -> HashMap<(String, Like), String> {
    let mut groups: HashMap<(String, Like), Vec<&Experiment>> = HashMap::new();
    for e in costs.iter().filter(|e| e.kind() == Kind::Time) {
        for kind in ours(e).filter_map(|r| like(&r.contender)).collect::<HashSet<_>>() {
            groups.entry((situations::title_of(e), kind)).or_default().push(e);
        }
    }
    // Memory results choose the allocator only in situations in which no time was measured.
    for e in costs.iter().filter(|e| e.kind() == Kind::Memory) {
        for kind in ours(e).filter_map(|r| like(&r.contender)).collect::<HashSet<_>>() {
            let of_time = groups.entry((situations::title_of(e), kind)).or_default();
            if of_time.iter().all(|e| e.kind() == Kind::Memory) {
                of_time.push(e);
            }
        }
    }
    let chosen = |(key, all): ((String, Like), Vec<&Experiment>)| {
        Some((key.clone(), choice(&all, |c| like(c) == Some(key.1))?))
    };
    groups.into_iter().filter_map(chosen).collect()
}

/// Returns Mallard's allocator with the lowest mean cost relative to the best allocator of each
/// case. Candidates must have figures for at least 4/5 as many cases as the allocator with the most
/// cases.
pub fn choice(all: &[&Experiment], wanted: impl Fn(&str) -> bool) -> Option<String> {
    let names = contenders(all);
    let names: Vec<&String> =
        names.iter().filter(|c| c.starts_with("mallard/") && wanted(c)).collect();
    let figure = |e: &Experiment, c: &str| e.of(c)?.median;
    let covering = |c: &str| all.iter().filter(|e| figure(e, c).is_some()).count();
    let most = names.iter().map(|c| covering(c)).max()?;
    let share = |c: &str| {
        let best = |e: &Experiment| e.best(|r| !r.is_limit())?.median;
        geometric_mean(all.iter().filter_map(|e| ratio(figure(e, c)?, best(e)?)))
    };
    let many = names.into_iter().filter(|c| covering(c) * 5 >= most * 4);
    let best = many.filter_map(|c| Some((share(c)?, c))).min_by(|a, b| a.0.total_cmp(&b.0));
    best.map(|(_, c)| c.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn experiment(case: &str, metric: &str, threads: u32) -> Experiment {
        let (suite, case, metric) = ("malloc".to_string(), case.to_string(), metric.to_string());
        Experiment { suite, case, variant: String::new(), metric, threads, rows: Vec::new() }
    }

    #[test]
    fn mallocs_are_paired_with_mallocs_and_each_strategy_with_the_same_strategy() {
        assert_eq!(like("mallard/malloc"), like("google-tcmalloc-2025.06"));
        assert_eq!(like("gperftools-2.10+new"), Some(Like::Malloc));
        assert_eq!(like("mallard/AS7"), like("libstdc++-pmr-12/AS7"));
        assert_ne!(like("mallard/AS7"), like("gperftools-2.10/AS1"));
        assert_eq!(like("mallard/AS9+mutex"), like("boost-container-1.74/AS9+synchronized"));
        assert_eq!(like("mallard/none/lifo"), like("boost-pool-1.74"));
        assert_eq!(like("mimalloc-3.6.0/heap"), Some(Like::Local));
        assert_eq!(like("mallard/record"), Some(Like::Recorder));
        assert_eq!(like("gperftools-2.10/heap-profiler"), Some(Like::Recorder));
    }

    #[test]
    fn tuned_variants_and_theoretical_bounds_are_not_paired() {
        for c in ["mallard/AS7+fifo", "mallard/AS7+largest=32", "mallard/AS3+reset", "limit/bump"] {
            assert_eq!(like(c), None, "{c}");
        }
    }

    #[test]
    fn benchmark_families_have_equal_weight_regardless_of_their_number_of_cases() {
        let all = [("pairs", 4.0), ("pairs", 4.0), ("pairs", 4.0), ("bulk", 1.0)];
        assert_eq!(mean_of_families(all), Some(2.0));
        assert_eq!(mean_of_families(Vec::<(&str, f64)>::new()), None);
    }

    #[test]
    fn a_multithreaded_case_counts_once_and_cycle_counts_are_ignored() {
        let all = [
            experiment("threads/pair/64B/T4", "ns_per_op", 4),
            experiment("threads/pair/64B/T4", "cpu_ns_per_op", 4),
            experiment("pair/64B", "ns_per_op", 1),
            experiment("pair/64B", "cycles_per_op", 1),
        ];
        let kept = once(&all.iter().collect::<Vec<_>>());
        let kept: Vec<&str> = kept.iter().map(|e| e.metric.as_str()).collect();
        assert_eq!(kept, ["cpu_ns_per_op", "ns_per_op"]);
    }

    #[test]
    fn cases_of_paired_calls_are_recognised_in_every_family() {
        let is = |case: &str| is_pair(&experiment(case, "ns_per_op", 1));
        assert!(is("pair/64B") && is("fifo/100x64B") && is("threads/pair/64B/T1"));
        assert!(!is("bulk/10kx64B/malloc") && !is("threads/larson/8-1000B/T1"));
        assert_eq!(family(&experiment("realloc/16B-64KiB", "ns_per_op", 1)), "malloc/mixes");
    }
}
