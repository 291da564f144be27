//! Makes the result of the search: a list of regions, the most useful first.

use super::candidates::{Candidate, Candidates, NO_NAME};
use super::escapes::Escaped;
use super::follow::Following;
use super::marks::Marks;
use super::pass::{Pass, Passed};
use super::places::{unpacked, ListSum, Places};
use super::region::{EscapeSite, Limits, Region, Regions};
use super::sizes::{self, Sizes};
use super::tally::Tally;
use crate::error::Result;
use crate::hash::NumberMap;
use crate::manifest::Manifest;
use crate::names::short;
use crate::replay::End;
use crate::trace::Trace;
use std::collections::HashMap;

/// The maximum number of sites of escaped blocks that a region lists.
const ESCAPE_SITES_MAX: usize = 5;
/// The maximum length of the list of functions that free the blocks of a region.
const FREED_BY_MAX: usize = 3;
/// The minimum number of instances from which the usual behaviour of a region can be judged.
const INSTANCES_MIN: u64 = 30;
/// The maximum relative difference between the figures of regions that are near-duplicates.
const NEAR: f64 = 0.02;

/// The sums of a region: its allocations, the blocks that escape (outlive an instance) with
/// `End::Drained`, and the blocks that escape with other ends.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    list: ListSum,
    sure: Escaped,
    drained: Escaped,
}

impl Sums {
    fn escaped(&self, ends: End) -> Escaped {
        match ends {
            End::Drained => self.drained,
            End::Sure | End::Exact => self.sure,
        }
    }
}

/// A region that may be returned. Its details are computed later.
struct Draft {
    candidate: usize,
    ends: End,
}

/// Finds the regions of the process that used the most CPU time.
pub fn find(trace: &Trace, limits: Limits) -> Result<Regions> {
    let candidates = Candidates::find(trace, limits.least_share)?;
    let mut notes = candidates.notes.clone();
    if trace.manifest().stream.sample_bytes > 0 {
        notes.push("the trace is sampled, and samples do not show regions".to_string());
        return Ok(candidates.without_regions(notes));
    }
    let passed = Pass::over(trace, &candidates, limits)?;
    notes.extend(notes_of(trace.manifest(), &passed));
    Ok(regions(&candidates, passed, limits, notes))
}

/// Makes the regions from the results of the pass over the events.
fn regions(candidates: &Candidates, passed: Passed, limits: Limits, notes: Vec<String>) -> Regions {
    let sums = add_up(candidates, &passed.sure);
    let sizes = sizes::of(candidates, &passed.sure.sizes, sums.len());
    let mut drafts = Vec::new();
    for (candidate, sum) in sums.iter().enumerate() {
        drafts.push(Draft { candidate, ends: End::Sure });
        // A drained instance ends when its last block is freed. If a block has certainly outlived a
        // call of the function, such instances differ from calls.
        let is_left = sum.sure.blocks > sum.drained.blocks;
        let (sure, drained) = (&passed.sure.tallies[candidate], &passed.drained[candidate]);
        if !is_left && !near(sure.instances as f64, drained.instances as f64) {
            drafts.push(Draft { candidate, ends: End::Drained });
        }
    }
    let maker = Maker { candidates, passed: &passed, sums: &sums, sizes: &sizes };
    drafts.retain(|draft| maker.tally(draft).instances > 0);
    drafts.sort_by(|a, b| maker.order(a).partial_cmp(&maker.order(b)).expect("numbers"));
    let chosen = maker.without_duplicates(drafts, limits.regions);
    let mut found: Vec<Region> = chosen.iter().map(|draft| maker.region(draft)).collect();
    let mut names = Names::new(candidates);
    for ends in [End::Sure, End::Drained] {
        let of_kind = chosen.iter().zip(&mut found).filter(|(draft, _)| draft.ends == ends);
        let of_kind = of_kind.map(|(draft, region)| (draft.candidate, region));
        name_escapes(&mut names, candidates, &passed.sure, of_kind.collect());
    }
    name_frees(candidates, &passed, &chosen, &mut found);
    // A marked region precedes other regions of the same class, because its ends are exact.
    let mut all = marked(candidates, &passed);
    all.extend(found);
    let (total_call_ns, total_bytes) = (candidates.total_call_ns, candidates.total_bytes);
    let class = |region: &Region| class(region.escapes, region.blocks, &Seen::of(region));
    all.sort_by_key(class); // a stable sort, which preserves the order within a class
    all.truncate(limits.regions);
    Regions { all, total_call_ns, total_bytes, notes }
}

/// The figures that determine how useful a region is.
struct Seen {
    instances: u64,
    unfinished: u64,
    inputs: u64,
}

impl Seen {
    fn of(region: &Region) -> Seen {
        let Region { instances, unfinished, inputs, .. } = *region;
        Seen { instances, unfinished, inputs }
    }
}

/// Returns the class of a region. Lower classes are more useful.
fn class(escapes: u64, blocks: u64, seen: &Seen) -> u8 {
    if escapes > 0 || seen.unfinished > 0 {
        4
    } else if seen.instances < INSTANCES_MIN {
        3
    } else if blocks < 2 * seen.instances {
        2
    } else {
        u8::from(seen.inputs < 2)
    }
}

/// Adds up, for each region, the counts that are stored by list of regions or by place.
fn add_up(places: &impl Places, of: &Following) -> Vec<Sums> {
    let mut sums = vec![Sums::default(); of.tallies.len()];
    for (list, sum) in of.lists.iter().enumerate().filter(|(_, sum)| sum.blocks > 0) {
        for &region in places.members(list as u32) {
            sums[usize::from(region)].list.add(sum);
        }
    }
    of.escapes.visit(places, |region, _, escaped| sums[usize::from(region)].sure.add(escaped));
    of.left.visit(places, |region, _, escaped| {
        sums[usize::from(region)].sure.add(escaped);
        sums[usize::from(region)].drained.add(escaped);
    });
    sums
}

/// Returns the regions that the program marks. The region with the most calls comes first.
fn marked(candidates: &Candidates, passed: &Passed) -> Vec<Region> {
    let Some(Marks { nodes, places, following, .. }) = &passed.marks else { return Vec::new() };
    let sums = add_up(places, following);
    let sizes = sizes::of(places, &following.sizes, sums.len());
    let occurs = |&region: &usize| following.tallies[region].instances > 0;
    let mut found: Vec<(usize, Region)> = (0..sums.len())
        .filter(occurs)
        .map(|region| {
            let functions = candidates.stacks.functions(nodes[region] as i32);
            let function =
                functions.first().map_or(String::new(), |info| info.function.to_string());
            let calls = sums[region].list.calls;
            let named = Region {
                shown: short(&function),
                function,
                node: nodes[region],
                // The durations of single calls are unknown, so every call counts as the mean
                // duration of all calls.
                call_ns: candidates.total_call_ns * calls as f64 / passed.calls.max(1) as f64,
                ..Region::default()
            };
            let (tally, sizes) = (&following.tallies[region], &sizes[region]);
            (region, measured(named, End::Exact, tally, &sums[region], sizes, passed.has_cpu))
        })
        .collect();
    let numbered = found.iter_mut().map(|(number, region)| (*number, region)).collect();
    name_escapes(&mut Names::new(candidates), places, following, numbered);
    let mut regions: Vec<Region> = found.into_iter().map(|(_, region)| region).collect();
    regions.sort_by(|a, b| b.calls.cmp(&a.calls).then_with(|| a.function.cmp(&b.function)));
    regions
}

/// Fills in all measured fields of a region. `named` has its name, its source position and the time
/// of its calls.
fn measured(
    named: Region,
    ends: End,
    tally: &Tally,
    sums: &Sums,
    sizes: &Sizes,
    has_cpu: bool,
) -> Region {
    let (list, escaped) = (&sums.list, sums.escaped(ends));
    let [peak, total, duration_ns] = tally.quantiles();
    Region {
        ends,
        instances: tally.instances,
        unfinished: tally.unfinished,
        threads: tally.threads(),
        inputs: tally.inputs(),
        blocks: list.blocks,
        bytes: list.bytes,
        calls: list.calls,
        cpu_ns: Some(tally.cpu_ns).filter(|_| has_cpu),
        duration_ns,
        peak,
        total,
        utilisation: if tally.totals > 0.0 { tally.peaks / tally.totals } else { 1.0 },
        variation_bits: sizes.variation_bits,
        sizes: sizes.count,
        one_size_share: sizes.one_size_share,
        escapes: escaped.blocks,
        escape_bytes: escaped.bytes,
        foreign_escapes: escaped.foreign,
        foreign_frees: list.foreign_frees,
        teardown_ns: tally.teardown_ns,
        final_frees: tally.final_frees,
        lanes: tally.lanes(),
        ..named
    }
}

/// Returns whether two numbers differ by at most [`NEAR`].
fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= NEAR * a.max(b)
}

/// Makes regions from drafts.
struct Maker<'a> {
    candidates: &'a Candidates,
    passed: &'a Passed,
    sums: &'a [Sums],
    sizes: &'a [Sizes],
}

impl Maker<'_> {
    fn tally(&self, draft: &Draft) -> &Tally {
        match draft.ends {
            End::Drained => &self.passed.drained[draft.candidate],
            End::Sure | End::Exact => &self.passed.sure.tallies[draft.candidate],
        }
    }

    fn candidate(&self, draft: &Draft) -> &Candidate {
        &self.candidates.all[draft.candidate]
    }

    /// Returns the sort key of a region. Regions with small keys come first.
    ///
    /// If regions with `End::Sure` have about the same share, the outermost comes first, because
    /// fewer blocks escape from it. If regions with `End::Drained` have about the same share, the
    /// innermost comes first, because an outer function may only contain a loop around its calls.
    fn order(&self, draft: &Draft) -> (u8, f64, u8, u16, usize) {
        let (tally, of) = (self.tally(draft), self.candidate(draft));
        let blocks = self.sums[draft.candidate].list.blocks;
        let (instances, unfinished) = (tally.instances, tally.unfinished);
        let seen = Seen { instances, unfinished, inputs: tally.inputs() };
        let class = class(self.sums[draft.candidate].escaped(draft.ends).blocks, blocks, &seen);
        let part = |part: f64, all: f64| if all > 0.0 { part / all } else { 0.0 };
        let time = part(of.named.call_ns, self.candidates.total_call_ns);
        let bytes = part(of.bytes, self.candidates.total_bytes);
        // If the trace has no call times, sort by bytes.
        let share = if time > 0.0 { time } else { bytes };
        let steps = (share.max(1e-9).ln() / NEAR).round();
        let (is_drained, depth) = match draft.ends {
            End::Drained => (1, u16::MAX - of.depth),
            _ => (0, of.depth),
        };
        (class, -steps, is_drained, depth, draft.candidate)
    }

    /// Removes each region that is a near-duplicate of an earlier region in the list.
    fn without_duplicates(&self, drafts: Vec<Draft>, most: usize) -> Vec<Draft> {
        let mut chosen: Vec<Draft> = Vec::new();
        for draft in drafts {
            if chosen.len() >= most {
                break;
            }
            if !chosen.iter().any(|before| self.is_duplicate(before, &draft)) {
                chosen.push(draft);
            }
        }
        chosen
    }

    fn is_duplicate(&self, a: &Draft, b: &Draft) -> bool {
        let blocks = |of: &Draft| self.sums[of.candidate].list.blocks as f64;
        let bytes = |of: &Draft| self.sums[of.candidate].list.bytes as f64;
        let instances = |of: &Draft| self.tally(of).instances as f64;
        a.ends == b.ends
            && near(blocks(a), blocks(b))
            && near(bytes(a), bytes(b))
            && near(instances(a), instances(b))
            && (self.is_below(a, b) || self.is_below(b, a))
    }

    /// Returns whether the function of `outer` is on the call stack of `inner`.
    fn is_below(&self, inner: &Draft, outer: &Draft) -> bool {
        let list = self.candidates.entries.on(self.candidate(inner).named.node as i32);
        list.contains(&(outer.candidate as u16))
    }

    fn region(&self, draft: &Draft) -> Region {
        let (tally, of) = (self.tally(draft), self.candidate(draft));
        let (sums, sizes) = (&self.sums[draft.candidate], &self.sizes[draft.candidate]);
        measured(of.named.clone(), draft.ends, tally, sums, sizes, self.passed.has_cpu)
    }
}

/// The escaped blocks of one function, and the call stack that allocated most of them.
#[derive(Default)]
struct Site {
    escaped: Escaped,
    node: u32,
    most: u64,
}

/// Adds to each region a list of the functions whose blocks escape. All regions here have the same
/// kind of end. Each region comes with its index in `following`.
fn name_escapes(
    names: &mut Names,
    places: &impl Places,
    following: &Following,
    regions: Vec<(usize, &mut Region)>,
) {
    let mut sites: Vec<Option<NumberMap<u32, Site>>> = Vec::new();
    sites.resize_with(following.tallies.len(), || None);
    let escaping = regions.iter().filter(|(_, region)| region.escapes > 0);
    escaping.for_each(|&(number, _)| sites[number] = Some(NumberMap::default()));
    let is_drained = regions.first().is_some_and(|(_, region)| region.ends == End::Drained);
    let escapes = [Some(&following.escapes).filter(|_| !is_drained), Some(&following.left)];
    for escapes in escapes.into_iter().flatten() {
        escapes.visit(places, |region, node, escaped| {
            let Some(sites) = &mut sites[usize::from(region)] else { return };
            let site = sites.entry(names.function(node)).or_default();
            site.escaped.add(escaped);
            if escaped.blocks > site.most {
                (site.node, site.most) = (node, escaped.blocks);
            }
        });
    }
    for (number, region) in regions {
        region.escape_sites = sites[number].as_ref().map_or(Vec::new(), |of| names.largest(of));
    }
}

/// Adds to each region a list of the functions that free its blocks.
fn name_frees(candidates: &Candidates, passed: &Passed, chosen: &[Draft], all: &mut [Region]) {
    let mut names = Names::new(candidates);
    let mut frees: Vec<(u32, u32, u64)> = Vec::with_capacity(passed.freed.len());
    for (&key, &count) in &passed.freed {
        let (list, stack) = unpacked(key);
        frees.push((list, names.function(stack as u32), count));
    }
    let mut shown = vec![String::new(); names.numbers.len()];
    names.numbers.iter().for_each(|(function, &number)| shown[number as usize] = short(function));
    for (draft, region) in chosen.iter().zip(all.iter_mut()) {
        let mut sums: HashMap<&str, u64> = HashMap::new();
        for &(list, function, count) in &frees {
            if candidates.entries.members(list).contains(&(draft.candidate as u16)) {
                *sums.entry(&shown[function as usize]).or_default() += count;
            }
        }
        region.freed_by = most_of(sums).into_iter().map(str::to_string).collect();
    }
}

/// Returns the functions that make more than half of all frees, sorted by number of frees, the
/// largest first. Returns an empty list if there are too many such functions, or if one has no
/// name.
fn most_of(sums: HashMap<&str, u64>) -> Vec<&str> {
    let all: u64 = sums.values().sum();
    let mut sums: Vec<(&str, u64)> = sums.into_iter().collect();
    sums.sort_by_key(|&(function, count)| (std::cmp::Reverse(count), function));
    let (mut most, mut counted) = (Vec::new(), 0);
    for (function, count) in sums {
        if 2 * counted > all {
            break;
        }
        most.push(function);
        counted += count;
    }
    let can_be_named = most.len() <= FREED_BY_MAX && !most.contains(&NO_NAME);
    if can_be_named {
        most
    } else {
        Vec::new()
    }
}

/// The functions that allocate or free on call stacks, with an index for each function.
struct Names<'a> {
    candidates: &'a Candidates,
    by_node: NumberMap<u32, u32>,
    numbers: HashMap<String, u32>,
}

impl<'a> Names<'a> {
    fn new(candidates: &'a Candidates) -> Self {
        Names { candidates, by_node: NumberMap::default(), numbers: HashMap::new() }
    }

    /// Returns the index of the function that allocates or frees on a call stack.
    fn function(&mut self, node: u32) -> u32 {
        if let Some(&known) = self.by_node.get(&node) {
            return known;
        }
        let next = self.numbers.len() as u32;
        let number = *self.numbers.entry(self.candidates.site(node)).or_insert(next);
        self.by_node.insert(node, number);
        number
    }

    /// Returns the functions with the most escaped blocks.
    fn largest(&self, sites: &NumberMap<u32, Site>) -> Vec<EscapeSite> {
        let mut sites: Vec<(&u32, &Site)> = sites.iter().collect();
        sites.sort_by_key(|&(&number, site)| (std::cmp::Reverse(site.escaped.blocks), number));
        sites.truncate(ESCAPE_SITES_MAX);
        let named = |(_, site): (&u32, &Site)| EscapeSite {
            node: site.node,
            function: self.candidates.site(site.node),
            blocks: site.escaped.blocks,
            bytes: site.escaped.bytes,
        };
        sites.into_iter().map(named).collect()
    }
}

/// Returns sentences that explain why the regions of a trace are uncertain.
fn notes_of(manifest: &Manifest, passed: &Passed) -> Vec<String> {
    let (lost, missed) = (manifest.losses.all(), manifest.counts.missed_frees);
    let (frees, others) = (passed.frees_without_stack, passed.other_processes);
    let marked = passed.marks.as_ref().map_or(0, |marks| marks.following.not_followed);
    let blocks = passed.sure.not_followed + marked;
    let (ending, lacks) = (&manifest.stream.ending, manifest.lacks());
    let notes = [
        (lost > 0).then(|| {
            format!(
                "{lost} events are missing: a block whose free is missing seems to outlive its \
                 region, and a block whose allocation is missing never does"
            )
        }),
        manifest.notes.window.as_ref().map(|window| {
            format!(
                "the recording covers only {window}, so regions that began earlier lack their \
                 first blocks"
            )
        }),
        (ending != "complete").then(|| {
            format!(
                "the recording is not complete ({ending}): blocks in use at its end count as outliving their regions"
            )
        }),
        (missed > 0)
            .then(|| format!("{missed} blocks were freed without an event, so they seem to outlive their region")),
        (frees > 0).then(|| {
            format!("{frees} frees have no call stack: a region may seem to end later than it does")
        }),
        (others > 0).then(|| {
            format!(
                "{others} other processes have events: the regions are those of the process that \
                 did the most"
            )
        }),
        (blocks > 0).then(|| {
            format!(
                "{blocks} blocks had no room in memory: they count as blocks that are never freed"
            )
        }),
        (!lacks.is_empty()).then(|| format!("the trace has no {}", lacks.join(", no "))),
    ];
    notes.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_functions_that_free_most_blocks_are_listed_if_they_are_few_and_named() {
        let of = |sums: &[(&'static str, u64)]| most_of(sums.iter().copied().collect());
        assert_eq!(of(&[("clear", 3), ("~node", 60), ("grow", 37)]), ["~node"]);
        assert_eq!(of(&[("clear", 40), ("~node", 40), ("grow", 20)]), ["clear", "~node"]);
        assert_eq!(of(&[("a", 1), ("b", 1), ("c", 1), ("d", 1), ("e", 1)]), ["a", "b", "c"]);
        assert!(of(&[("a", 1), ("b", 1), ("c", 1), ("d", 1), ("e", 1), ("f", 1)]).is_empty());
        assert!(of(&[(NO_NAME, 50), ("~node", 40)]).is_empty());
        assert!(of(&[]).is_empty());
    }
}
