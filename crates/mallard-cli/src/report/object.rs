//! The data of a report as one object, which the page shows.

use super::encode::{base64, run_lengths, whole};
use super::gather::Gathered;
use super::regions::{self, Shown as Region};
use super::run::{Method, Program};
use super::sentences;
use super::sites::{Shown, Sites};
use super::strings::Strings;
use super::tree::{Frames, Nodes};
use mallard_measure::output::shell::quoted_path;
use mallard_trace::measures::EXPLANATIONS;
use mallard_trace::residency::Split;
use mallard_trace::survey::{SiteSurvey, Survey, LIVES, SIZES};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// The sums by which the page weighs sites and functions. Each name is a column of the sites.
const WEIGHTS: [&str; 6] = ["bytes", "count", "peak", "short", "never", "cross"];

/// The version of the object's format.
pub const VERSION: u32 = 1;

/// The data of a report. A list of records is stored as columns. Strings are indices into
/// `strings`.
#[derive(Debug, Serialize)]
pub struct Object {
    version: u32,
    name: String,
    program: Program,
    sentences: Vec<String>,
    bound: String,
    totals: Totals,
    time: Time,
    weights: [&'static str; 6],
    stacks: Nodes,
    frames: Frames,
    sites: Sites,
    detail: Detail,
    heat: Heat,
    threads: Threads,
    frees: Vec<i64>,
    map: Map,
    measures: Vec<Measure>,
    /// The advice of `mallard advise`. Null if there is no advice.
    advice: Option<Value>,
    regions: Vec<Region>,
    method: Method,
    next: String,
    strings: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Totals {
    events: u64,
    allocs: i64,
    bytes: i64,
    frees: i64,
    reallocs: i64,
    peak_bytes: i64,
    peak_t: i64,
    live_bytes: i64,
    live_allocs: i64,
    peak_rss: u64,
}

#[derive(Debug, Serialize)]
struct Time {
    t_ns: Vec<i64>,
    live: Vec<i64>,
    resident: Vec<Option<i64>>,
    split: BTreeMap<&'static str, Vec<i64>>,
}

/// The curves, heat maps, frees and addresses of single sites.
#[derive(Debug, Serialize)]
struct Detail {
    sites: Vec<usize>,
    live_t: Vec<i64>,
    live: Vec<Vec<i64>>,
    heat: Vec<Vec<i64>>,
    frees: Vec<Vec<i64>>,
    map: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Heat {
    sizes: [&'static str; SIZES.len()],
    lives: [&'static str; LIVES.len()],
    all: Vec<i64>,
    bytes: Vec<i64>,
}

#[derive(Debug, Serialize)]
struct Threads {
    name: Vec<i32>,
    tid: Vec<i32>,
    allocs: Vec<i64>,
    frees: Vec<i64>,
}

#[derive(Debug, Serialize)]
struct Map {
    moments: Vec<i64>,
    peak: i64,
    cells: usize,
    bytes_per_cell: u64,
    ranges: Vec<[String; 2]>,
    fill: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Measure {
    key: String,
    name: &'static str,
    unit: &'static str,
    words: String,
}

impl Object {
    /// Makes the object, with about `room` bytes for names, call stacks and sites.
    pub fn of(gathered: &Gathered, room: usize) -> Object {
        let mut shown = Shown::of(&gathered.ranked, &gathered.stacks, room);
        let survey = &gathered.survey;
        let threads = threads(survey, &mut shown.strings);
        let name = gathered.name.clone();
        Object {
            version: VERSION,
            program: Program::of(gathered),
            sentences: sentences::of(gathered),
            bound: sentences::limit(gathered),
            totals: totals(gathered),
            time: time(gathered),
            weights: WEIGHTS,
            detail: detail(survey, shown.kept),
            heat: Heat {
                sizes: SIZES,
                lives: LIVES,
                all: all_whole(&survey.heat.all),
                bytes: all_whole(&survey.heat.bytes),
            },
            threads,
            frees: triples(&survey.frees),
            map: map(survey),
            measures: measures(),
            advice: gathered.advice.shown.clone(),
            regions: regions::shown(&gathered.advice.regions),
            method: Method::of(gathered, &shown),
            next: format!("mallard replay {} --allocator mallard", quoted_path(name.as_ref())),
            name,
            stacks: shown.nodes,
            frames: shown.frames,
            sites: shown.sites,
            strings: shown.strings.into_all(),
        }
    }
}

fn all_whole(numbers: &[f64]) -> Vec<i64> {
    numbers.iter().copied().map(whole).collect()
}

fn totals(gathered: &Gathered) -> Totals {
    let manifest = gathered.trace.manifest();
    let sites = &manifest.totals.sites;
    Totals {
        events: manifest.counts.events,
        allocs: sites.allocs,
        bytes: sites.bytes,
        frees: sites.frees,
        reallocs: sites.reallocs,
        peak_bytes: sites.peak_bytes,
        peak_t: sites.peak_t,
        live_bytes: sites.live_bytes,
        live_allocs: sites.live_allocs,
        peak_rss: gathered.peak_rss(),
    }
}

fn time(gathered: &Gathered) -> Time {
    let timeline = &gathered.survey.timeline;
    Time {
        t_ns: timeline.t_ns.clone(),
        live: all_whole(&timeline.live),
        resident: timeline.t_ns.iter().map(|&t_ns| gathered.resident.at(t_ns)).collect(),
        split: parts(&gathered.split),
    }
}

/// Returns the parts of resident memory. The map is empty if the trace does not contain them.
fn parts(split: &Split) -> BTreeMap<&'static str, Vec<i64>> {
    if split.is_empty() {
        return BTreeMap::new();
    }
    let parts = [
        ("live", &split.live),
        ("rounding", &split.rounding),
        ("fragmented", &split.fragmented),
        ("kept", &split.kept),
        ("code", &split.code),
        ("stacks", &split.stacks),
        ("recorder", &split.recorder),
    ];
    parts.into_iter().map(|(name, part)| (name, part.clone())).collect()
}

/// Flattens pairs of threads and their counts into one list: thread, thread, count, and so on.
fn triples(frees: &[(usize, usize, f64)]) -> Vec<i64> {
    frees.iter().flat_map(|&(from, to, count)| [from as i64, to as i64, whole(count)]).collect()
}

/// Returns the figures of single sites, which are the first `kept` of the surveyed sites.
fn detail(survey: &Survey, kept: usize) -> Detail {
    let sites = &survey.sites[..kept.min(survey.sites.len())];
    let pairs = |site: &SiteSurvey| {
        site.heat.iter().flat_map(|&(cell, count)| [cell as i64, whole(count)]).collect()
    };
    Detail {
        sites: (0..sites.len()).collect(),
        live_t: survey.site_moments.clone(),
        live: sites.iter().map(|site| all_whole(&site.live)).collect(),
        heat: sites.iter().map(pairs).collect(),
        frees: sites.iter().map(|site| triples(&site.frees)).collect(),
        map: sites.iter().map(|site| base64(&run_lengths(&site.map))).collect(),
    }
}

fn threads(survey: &Survey, strings: &mut Strings) -> Threads {
    let all = &survey.threads;
    Threads {
        name: all.iter().map(|thread| strings.index(&thread.name)).collect(),
        tid: all.iter().map(|thread| thread.tid.unwrap_or(-1)).collect(),
        allocs: all.iter().map(|thread| whole(thread.allocs)).collect(),
        frees: all.iter().map(|thread| whole(thread.frees)).collect(),
    }
}

fn map(survey: &Survey) -> Map {
    let map = &survey.map;
    let cells = map.fill.first().map_or(0, Vec::len);
    let hex = |&(begin, end): &(u64, u64)| [begin, end].map(|address| format!("{address:x}"));
    Map {
        moments: map.moments.clone(),
        peak: map.peak.map_or(-1, |peak| peak as i64),
        cells,
        bytes_per_cell: map.bytes_per_cell,
        ranges: map.ranges.iter().map(hex).collect(),
        fill: map.fill.iter().map(|fill| base64(fill)).collect(),
    }
}

fn measures() -> Vec<Measure> {
    let measure = |explanation: &mallard_trace::measures::Explanation| Measure {
        key: explanation.letter.to_ascii_lowercase().to_string(),
        name: explanation.word,
        unit: explanation.unit,
        words: format!("{} {}", explanation.question, explanation.text),
    };
    EXPLANATIONS.iter().map(measure).collect()
}
