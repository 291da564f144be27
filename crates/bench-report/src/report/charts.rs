//! The charts of the benchmark page: figures by the number of threads, and time against memory.

use super::calibration::{scatters, Scatter};
use crate::rows::cases::counted;
use crate::rows::cases::{facet, FACETS};
use crate::rows::contender::short;
use crate::rows::experiment::{contenders, Experiment, Kind, Machine};
use crate::statistics::geometric_mean;

use serde::Serialize;
use std::collections::BTreeMap;

/// The figures of one case by the number of threads.
#[derive(Serialize)]
pub struct Curve {
    pub machine: usize,
    pub suite: String,
    pub variant: String,
    pub kind: &'static str,
    pub title: String,
    pub series: Vec<Series>,
}

#[derive(Serialize)]
pub struct Series {
    pub contender: String,
    /// The points of the curve: number of threads, median, 10th percentile and 90th percentile.
    pub points: Vec<[f64; 4]>,
}

/// The time and memory of each allocator in a suite, relative to glibc.
#[derive(Serialize)]
pub struct Cloud {
    pub machine: usize,
    pub suite: String,
    pub variant: String,
    /// The points of the chart: allocator, its time, its memory, and the number of benchmark cells.
    pub points: Vec<(String, f64, f64, usize)>,
    /// The allocator to which figures are relative. Its own figures are 1.
    pub of: String,
}

#[derive(Default, Serialize)]
pub struct Charts {
    pub curves: Vec<Curve>,
    pub clouds: Vec<Cloud>,
    /// Charts that compare replays with measurements.
    pub scatters: Vec<Scatter>,
}

impl Charts {
    /// Makes the charts of the machines. `calibrated` has the results of the suite named
    /// calibration, by machine.
    pub fn of(machines: &[Machine], calibrated: &[Machine]) -> Charts {
        let mut charts = Charts::default();
        for (index, machine) in machines.iter().enumerate() {
            let same = calibrated.iter().filter(|other| other.name == machine.name);
            charts.scatters.extend(same.flat_map(|other| scatters(index, other)));
            charts.curves.extend(curves(index, machine));
            for suite in machine.suites() {
                let all = machine.of_suite(suite);
                for variant in FACETS.into_iter().chain([""]) {
                    let own = all.iter().filter(|e| facet(&e.variant) == variant).copied();
                    charts.clouds.extend(cloud(index, suite, variant, &own.collect::<Vec<_>>()));
                }
            }
        }
        charts
    }
}

/// Returns the case without its number of threads, such as `random/uniform` for
/// `random/uniform/T4`.
fn without_threads(e: &Experiment) -> String {
    let is_threads = |p: &str| {
        let digits =
            p.strip_prefix("W=").or(p.strip_prefix("T=")).or(p.strip_prefix('T')).unwrap_or("");
        !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit())
    };
    e.case.split('/').filter(|p| !is_threads(p)).collect::<Vec<_>>().join("/")
}

fn curves(machine: usize, of: &Machine) -> Vec<Curve> {
    let mut groups: BTreeMap<(String, String, String, String), Vec<&Experiment>> = BTreeMap::new();
    let suites = ["lakos4", "threads", "malloc", "typed", "seeds", "crates"];
    let drawn = |e: &&Experiment| {
        let metric = ["ns_per_op", "seconds", "peak_rss_kib"].contains(&&*e.metric);
        suites.contains(&&*e.suite) && metric
    };
    for e in of.experiments.iter().filter(drawn) {
        let variant = facet(&e.variant).to_string();
        let key = (e.suite.clone(), variant, e.metric.clone(), without_threads(e));
        groups.entry(key).or_default().push(e);
    }
    let curve = |((suite, variant, metric, case), mut all): (
        (String, String, String, String),
        Vec<&Experiment>,
    )| {
        all.sort_by_key(|e| e.threads);
        all.dedup_by_key(|e| e.threads);
        if all.len() < 2 {
            return None;
        }
        let series = contenders(&all).into_iter().map(|contender| Series {
            points: all.iter().filter_map(|e| point(e, &contender)).collect(),
            contender,
        });
        let series = series.filter(|s| s.points.len() > 1).collect();
        let kind = Kind::of(&metric).name();
        Some(Curve {
            machine,
            title: format!("{suite}: {case}, {metric}"),
            suite,
            variant,
            kind,
            series,
        })
    };
    groups.into_iter().filter_map(curve).collect()
}

fn point(e: &Experiment, contender: &str) -> Option<[f64; 4]> {
    let row = e.of(contender)?;
    Some([f64::from(e.threads), row.median?, row.low(), row.high()])
}

/// Makes a chart from the cells that have both time and memory. Omits an allocator that has figures
/// in less than half of the cells.
fn cloud(machine: usize, suite: &str, variant: &str, own: &[&Experiment]) -> Option<Cloud> {
    let own = counted(own);
    let base = own.iter().find_map(|e| e.baseline())?.contender.clone();
    let time = own.iter().filter(|e| ["ns_per_op", "seconds"].contains(&&*e.metric));
    let memory: BTreeMap<(&str, u32), &&Experiment> = own
        .iter()
        .filter(|e| e.metric == "peak_rss_kib")
        .map(|e| ((&*e.case, e.threads), e))
        .collect();
    let pairs: Vec<(&&Experiment, &&Experiment)> =
        time.filter_map(|t| Some((t, *memory.get(&(&*t.case, t.threads))?))).collect();
    let share = |e: &Experiment, contender: &str| Some(1.0 / e.gain(e.of(contender)?)?);
    let names = contenders(&pairs.iter().map(|p| *p.0).collect::<Vec<_>>());
    let points = names.into_iter().filter_map(|contender| {
        let both: Vec<(f64, f64)> = pairs
            .iter()
            .filter_map(|(t, m)| Some((share(t, &contender)?, share(m, &contender)?)))
            .collect();
        let count = both.len();
        let x = geometric_mean(both.iter().map(|b| b.0))?;
        let y = geometric_mean(both.iter().map(|b| b.1))?;
        (count * 2 >= pairs.len()).then(|| (contender, round(x), round(y), count))
    });
    let points: Vec<_> = points.collect();
    let (suite, variant, of) = (suite.to_string(), variant.to_string(), short(&base));
    (points.len() > 1).then_some(Cloud { machine, suite, variant, points, of })
}

fn round(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}
