//! Makes regions of the marks of a program.

use super::candidates::Candidates;
use super::escapes::Escaped;
use super::exact::Marked;
use super::pass::Passed;
use super::region::{EscapeSite, Region};
use super::sizes;
use crate::names::short;
use crate::replay::End;
use std::collections::BTreeMap;

/// The regions that the program marks, in the order of their calls: the region with the most calls
/// first.
pub(super) fn regions(candidates: &Candidates, passed: &Passed) -> Vec<Region> {
    let marked = passed.exact.iter().flat_map(|exact| &exact.regions);
    let mut regions: Vec<Region> = marked
        .filter(|marked| marked.tally.instances > 0)
        .map(|marked| region(candidates, passed, marked))
        .collect();
    regions.sort_by(|a, b| b.calls.cmp(&a.calls).then_with(|| a.function.cmp(&b.function)));
    regions
}

fn region(candidates: &Candidates, passed: &Passed, marked: &Marked) -> Region {
    let (tally, sizes) = (&marked.tally, sizes::of_one(&marked.sizes));
    let functions = candidates.stacks.functions(marked.node as i32);
    let function = functions.first().map_or(String::new(), |info| info.function.to_string());
    let [peak, total, duration_ns] = tally.quantiles();
    Region {
        shown: short(&function),
        function,
        file: None,
        line: None,
        module: String::new(),
        node: marked.node,
        ends: End::Exact,
        instances: tally.instances,
        unfinished: tally.unfinished,
        threads: tally.threads(),
        inputs: tally.inputs(),
        blocks: marked.blocks,
        bytes: marked.bytes,
        calls: marked.calls,
        // The time of a single call is not known: each call counts as the mean of all calls.
        call_ns: candidates.total_call_ns * marked.calls as f64 / passed.calls.max(1) as f64,
        cpu_ns: Some(tally.cpu_ns).filter(|_| passed.has_cpu),
        duration_ns,
        peak,
        total,
        utilisation: if tally.totals > 0.0 { tally.peaks / tally.totals } else { 1.0 },
        variation_bits: sizes.variation_bits,
        sizes: sizes.count,
        one_size_share: sizes.one_size_share,
        escapes: marked.escaped.blocks,
        escape_bytes: marked.escaped.bytes,
        foreign_escapes: marked.escaped.foreign,
        foreign_frees: marked.foreign_frees,
        escape_sites: escape_sites(candidates, marked),
        teardown_ns: tally.teardown_ns,
        final_frees: tally.final_frees,
        freed_by: Vec::new(),
        lanes: tally.lanes(),
    }
}

/// The five functions whose blocks escape most often.
fn escape_sites(candidates: &Candidates, marked: &Marked) -> Vec<EscapeSite> {
    let mut by_function: BTreeMap<String, (u32, u64, Escaped)> = BTreeMap::new();
    let mut nodes: Vec<(&u32, &Escaped)> = marked.escaped_of.iter().collect();
    nodes.sort_by_key(|&(&node, _)| node);
    for (&node, escaped) in nodes {
        let (most_at, most, all) = by_function.entry(candidates.site(node)).or_default();
        if escaped.blocks > *most {
            (*most_at, *most) = (node, escaped.blocks);
        }
        all.add(escaped);
    }
    let site = |(function, (node, _, all)): (String, (u32, u64, Escaped))| EscapeSite {
        node,
        function,
        blocks: all.blocks,
        bytes: all.bytes,
    };
    let mut sites: Vec<EscapeSite> = by_function.into_iter().map(site).collect();
    sites.sort_by_key(|site| std::cmp::Reverse(site.blocks));
    sites.truncate(5);
    sites
}
