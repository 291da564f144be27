//! The sites of a page, stored as columns.

use super::encode::{four_digits, width};
use super::ranking::Ranked;
use super::tree::{Frames, Nodes, Tree};
use mallard_trace::measures::Estimate;
use mallard_trace::trace::Stacks;
use mallard_trace::SiteRow;
use serde::Serialize;
use serde_json::{json, Map, Value};

/// The approximate bytes that the measures of a site need in the page.
const MEASURES_BYTES: usize = 130;

/// The sites as columns. Each column has one value for each site.
#[derive(Debug, Default, Serialize)]
pub struct Sites {
    pub node: Vec<u32>,
    pub bytes: Vec<i64>,
    pub count: Vec<i64>,
    pub peak: Vec<i64>,
    pub short: Vec<i64>,
    pub never: Vec<i64>,
    pub cross: Vec<i64>,
    pub frees: Vec<i64>,
    pub reallocs: Vec<i64>,
    pub call_ns: Vec<i64>,
    pub size_p50: Vec<i64>,
    pub size_max: Vec<i64>,
    pub life_p50: Vec<i64>,
    /// The index of the site with the sums of all sites that were left out. -1 if no site was left
    /// out.
    pub rest: i64,
    /// The indices of the sites that have at least one measure.
    pub measured: Vec<usize>,
    /// Four columns for each measure, with a value for each site of `measured`.
    #[serde(flatten)]
    pub measures: Map<String, Value>,
}

/// The sites that a page shows, and their call stacks.
pub struct Shown {
    pub sites: Sites,
    pub nodes: Nodes,
    pub frames: Frames,
    pub strings: super::strings::Strings,
    /// The number of sites that are shown as single sites.
    pub kept: usize,
    /// The sums and the number of the sites that were left out.
    pub others: (SiteRow, usize),
}

impl Shown {
    /// Chooses the most important sites, as many as fit into about `room` bytes of a page.
    pub fn of(ranked: &Ranked, stacks: &Stacks, room: usize) -> Shown {
        let mut tree = Tree::new(stacks);
        let mut places = Vec::new();
        let mut bytes = 0;
        for site in &ranked.kept {
            if bytes + tree.bytes() > room {
                break;
            }
            let node = tree.add(site.stack);
            bytes += bytes_of(site, node);
            places.push(node);
        }
        let (nodes, frames, strings, place_of) = tree.finish();
        let kept = places.len();
        let mut sites = Sites { rest: -1, ..Sites::default() };
        for (site, &node) in ranked.kept.iter().zip(&places) {
            sites.push(site, place_of[node as usize]);
        }
        sites.measure(&ranked.kept[..kept]);
        let others = ranked.others_beyond(kept);
        if others.1 > 0 {
            sites.rest = kept as i64;
            sites.push(&SiteRow { size_p50: -1, size_max: -1, ..others.0.clone() }, 0);
        }
        Shown { sites, nodes, frames, strings, kept, others }
    }
}

impl Sites {
    fn push(&mut self, site: &SiteRow, node: u32) {
        self.node.push(node);
        let columns = [
            &mut self.bytes,
            &mut self.count,
            &mut self.peak,
            &mut self.short,
            &mut self.never,
            &mut self.cross,
            &mut self.frees,
            &mut self.reallocs,
            &mut self.call_ns,
            &mut self.size_p50,
            &mut self.size_max,
            &mut self.life_p50,
        ];
        columns.into_iter().zip(values(site)).for_each(|(column, value)| column.push(value));
    }

    /// Adds the columns of the measures.
    fn measure(&mut self, sites: &[SiteRow]) {
        let measured = (0..sites.len()).filter(|&index| is_measured(&sites[index]));
        self.measured = measured.collect();
        for (at, name) in ["d", "v", "l", "u", "c", "f"].into_iter().enumerate() {
            let values = || self.measured.iter().map(|&index| measures(&sites[index])[at]);
            let column = |of: fn(&Estimate) -> Option<f64>| {
                Value::from_iter(values().map(|estimate| of(estimate).map(four_digits)))
            };
            self.measures.insert(name.to_string(), column(|estimate| estimate.value));
            self.measures.insert(format!("{name}_lo"), column(|estimate| estimate.low));
            self.measures.insert(format!("{name}_hi"), column(|estimate| estimate.high));
            let counts: Vec<i64> = values().map(|estimate| estimate.n).collect();
            self.measures.insert(format!("{name}_n"), json!(counts));
        }
    }
}

/// Returns the values of a site in the order of the columns.
fn values(site: &SiteRow) -> [i64; 12] {
    [
        site.bytes,
        site.allocs,
        site.at_peak_bytes,
        site.short_lived,
        site.live_bytes,
        site.cross_thread_frees,
        site.frees,
        site.reallocs,
        site.call_ns,
        site.size_p50,
        site.size_max,
        site.life_p50.unwrap_or(-1),
    ]
}

/// Returns the approximate bytes that a site needs in the page.
fn bytes_of(site: &SiteRow, node: u32) -> usize {
    let columns: usize = values(site).into_iter().map(|value| width(value) + 1).sum();
    let measures = if is_measured(site) { MEASURES_BYTES } else { 0 };
    columns + width(i64::from(node)) + 1 + measures
}

fn measures(site: &SiteRow) -> [&Estimate; 6] {
    [&site.d, &site.v, &site.l, &site.u, &site.c, &site.f]
}

fn is_measured(site: &SiteRow) -> bool {
    measures(site).iter().any(|estimate| estimate.value.is_some())
}
