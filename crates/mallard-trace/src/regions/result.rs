//! The regions that were found, the most useful first.

use super::candidates::{Candidate, Candidates, NO_NAME};
use super::escapes::{Escaped, Escapes};
use super::marked;
use super::pass::{ListSum, Passed};
use super::region::{EscapeSite, Limits, Region, Regions};
use super::sizes::{self, Sizes};
use super::tally::Tally;
use crate::hash::NumberMap;
use crate::manifest::Manifest;
use crate::names::short;
use crate::replay::End;
use std::collections::HashMap;

/// The greatest number of call stacks of escaped blocks that a region names.
const ESCAPE_SITES_MAX: usize = 5;
/// The greatest number of functions that free blocks of a region, and are named.
const FREED_BY_MAX: usize = 3;
/// The least number of instances that shows what a region always does.
const INSTANCES_MIN: u64 = 30;
/// Regions are near-duplicates if their numbers differ by at most this share.
const NEAR: f64 = 0.02;

/// The sums of a candidate: what was allocated, and what escaped with sure and with drained ends.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    list: ListSum,
    sure: Escaped,
    drained: Escaped,
}

/// A region that may be returned, before its details are known.
struct Draft {
    candidate: usize,
    ends: End,
    escaped: Escaped,
}

/// Makes the regions from the results of the pass over the events.
pub(super) fn regions(
    candidates: &Candidates,
    passed: Passed,
    limits: Limits,
    notes: Vec<String>,
) -> Regions {
    let sums = add_up(candidates, &passed);
    let sizes = sizes::of(candidates, &passed.sizes);
    let mut drafts = Vec::new();
    for (candidate, sum) in sums.iter().enumerate() {
        let draft = |ends, escaped| Draft { candidate, ends, escaped };
        drafts.push(draft(End::Sure, sum.sure));
        // If a block has certainly outlived a call of the function, drained instances differ from calls.
        let is_left = sum.sure.blocks > sum.drained.blocks;
        let (sure, drained) = (&passed.sure[candidate], &passed.drained[candidate]);
        if !is_left && !near(sure.instances as f64, drained.instances as f64) {
            drafts.push(draft(End::Drained, sum.drained));
        }
    }
    let maker = Maker { candidates, passed: &passed, sums: &sums, sizes: &sizes };
    drafts.retain(|draft| maker.tally(draft).instances > 0);
    drafts.sort_by(|a, b| maker.order(a).partial_cmp(&maker.order(b)).expect("numbers"));
    let chosen = maker.without_duplicates(drafts, limits.regions);
    let mut found: Vec<Region> = chosen.iter().map(|draft| maker.region(draft)).collect();
    name_escapes(candidates, &passed, &chosen, &mut found);
    name_frees(candidates, &passed, &chosen, &mut found);
    // A marked region comes first among equals, because its ends are exact.
    let mut all = marked::regions(candidates, &passed);
    all.extend(found);
    let (total_call_ns, total_bytes) = (candidates.total_call_ns, candidates.total_bytes);
    let class = |region: &Region| class(region.escapes, region.blocks, &Seen::of(region));
    all.sort_by_key(class); // the order within a class stays
    all.truncate(limits.regions);
    Regions { all, total_call_ns, total_bytes, notes }
}

/// The numbers that decide how useful a region is.
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

/// The class of a region: the most useful ones are in class 0.
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

/// Adds up what was counted by lists of candidates and by call stacks.
fn add_up(candidates: &Candidates, passed: &Passed) -> Vec<Sums> {
    let mut sums = vec![Sums::default(); candidates.all.len()];
    for (list, of) in passed.lists.iter().enumerate().filter(|(_, of)| of.blocks > 0) {
        for &candidate in candidates.members(list as u32) {
            let sum = &mut sums[usize::from(candidate)].list;
            sum.blocks += of.blocks;
            sum.bytes += of.bytes;
            sum.calls += of.calls;
            sum.foreign_frees += of.foreign_frees;
        }
    }
    passed.escapes.visit(candidates, |candidate, _, escaped| {
        sums[usize::from(candidate)].sure.add(escaped);
    });
    passed.left.visit(candidates, |candidate, _, escaped| {
        sums[usize::from(candidate)].sure.add(escaped);
        sums[usize::from(candidate)].drained.add(escaped);
    });
    sums
}

/// Whether two numbers differ by at most [`NEAR`].
fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= NEAR * a.max(b)
}

/// Makes regions of drafts.
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
            _ => &self.passed.sure[draft.candidate],
        }
    }

    fn candidate(&self, draft: &Draft) -> &Candidate {
        &self.candidates.all[draft.candidate]
    }

    /// The place of a region among the others: small numbers come first.
    ///
    /// Among regions with about the same share and sure ends, the outermost comes first: fewer blocks
    /// escape. Among regions with drained ends, the innermost comes first: outer functions may be loops
    /// around the calls.
    fn order(&self, draft: &Draft) -> (u8, f64, u8, u16, usize) {
        let (tally, of) = (self.tally(draft), self.candidate(draft));
        let blocks = self.sums[draft.candidate].list.blocks;
        let (instances, unfinished) = (tally.instances, tally.unfinished);
        let seen = Seen { instances, unfinished, inputs: tally.inputs() };
        let class = class(draft.escaped.blocks, blocks, &seen);
        let part = |part: f64, all: f64| if all > 0.0 { part / all } else { 0.0 };
        let time = part(of.call_ns, self.candidates.total_call_ns);
        let bytes = part(of.bytes, self.candidates.total_bytes);
        // If the trace has no times, the bytes decide.
        let share = if time > 0.0 { time } else { bytes };
        let steps = (share.max(1e-9).ln() / NEAR).round();
        let (is_drained, depth) = match draft.ends {
            End::Drained => (1, u16::MAX - of.depth),
            _ => (0, of.depth),
        };
        (class, -steps, is_drained, depth, draft.candidate)
    }

    /// Leaves out regions that are near-duplicates of an earlier region.
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

    /// Whether the function of `outer` is on the call stack of `inner`.
    fn is_below(&self, inner: &Draft, outer: &Draft) -> bool {
        let list = self.candidates.on(self.candidate(inner).node as i32);
        list.contains(&(outer.candidate as u16))
    }

    fn region(&self, draft: &Draft) -> Region {
        let (tally, of) = (self.tally(draft), self.candidate(draft));
        let (sum, sizes) = (&self.sums[draft.candidate].list, &self.sizes[draft.candidate]);
        let [peak, total, duration_ns] = tally.quantiles();
        Region {
            function: of.function.clone(),
            shown: of.shown.clone(),
            file: of.file.clone(),
            line: of.line,
            module: of.module.clone(),
            node: of.node,
            ends: draft.ends,
            instances: tally.instances,
            unfinished: tally.unfinished,
            threads: tally.threads(),
            inputs: tally.inputs(),
            blocks: sum.blocks,
            bytes: sum.bytes,
            calls: sum.calls,
            call_ns: of.call_ns,
            cpu_ns: Some(tally.cpu_ns).filter(|_| self.passed.has_cpu),
            duration_ns,
            peak,
            total,
            utilisation: if tally.totals > 0.0 { tally.peaks / tally.totals } else { 1.0 },
            variation_bits: sizes.variation_bits,
            sizes: sizes.count,
            one_size_share: sizes.one_size_share,
            escapes: draft.escaped.blocks,
            escape_bytes: draft.escaped.bytes,
            foreign_escapes: draft.escaped.foreign,
            foreign_frees: sum.foreign_frees,
            escape_sites: Vec::new(),
            teardown_ns: tally.teardown_ns,
            final_frees: tally.final_frees,
            freed_by: Vec::new(),
            lanes: tally.lanes(),
        }
    }
}

/// Escaped blocks of one function, and the call stack that allocated most of these blocks.
#[derive(Default)]
struct Site {
    escaped: Escaped,
    node: u32,
    most: u64,
}

/// Names the functions whose blocks escape from the regions.
fn name_escapes(candidates: &Candidates, passed: &Passed, chosen: &[Draft], all: &mut [Region]) {
    let mut names = Names { candidates, by_node: NumberMap::default(), numbers: HashMap::new() };
    for ends in [End::Sure, End::Drained] {
        let mut sites: Vec<Option<NumberMap<u32, Site>>> = Vec::new();
        sites.resize_with(candidates.all.len(), || None);
        let of_kind = chosen.iter().filter(|draft| draft.ends == ends && draft.escaped.blocks > 0);
        of_kind.for_each(|draft| sites[draft.candidate] = Some(NumberMap::default()));
        let lists: [Option<&Escapes>; 2] =
            [Some(&passed.escapes).filter(|_| ends == End::Sure), Some(&passed.left)];
        for escapes in lists.into_iter().flatten() {
            escapes.visit(candidates, |candidate, node, escaped| {
                let Some(sites) = &mut sites[usize::from(candidate)] else { return };
                let site = sites.entry(names.function(node)).or_default();
                site.escaped.add(escaped);
                if escaped.blocks > site.most {
                    (site.node, site.most) = (node, escaped.blocks);
                }
            });
        }
        for (draft, region) in chosen.iter().zip(all.iter_mut()) {
            if let Some(sites) = sites[draft.candidate].as_ref().filter(|_| draft.ends == ends) {
                region.escape_sites = names.largest(sites);
            }
        }
    }
}

/// Names the functions that free the blocks of the regions.
fn name_frees(candidates: &Candidates, passed: &Passed, chosen: &[Draft], all: &mut [Region]) {
    let mut names = Names { candidates, by_node: NumberMap::default(), numbers: HashMap::new() };
    let mut frees: Vec<(u32, u32, u64)> = Vec::with_capacity(passed.freed.len());
    for (&key, &count) in &passed.freed {
        let (list, stack) = Passed::unpacked(key);
        frees.push((list, names.function(stack as u32), count));
    }
    let mut shown = vec![String::new(); names.numbers.len()];
    names.numbers.iter().for_each(|(function, &number)| shown[number as usize] = short(function));
    for (draft, region) in chosen.iter().zip(all.iter_mut()) {
        let mut sums: HashMap<&str, u64> = HashMap::new();
        for &(list, function, count) in &frees {
            if candidates.members(list).contains(&(draft.candidate as u16)) {
                *sums.entry(&shown[function as usize]).or_default() += count;
            }
        }
        region.freed_by = most_of(sums).into_iter().map(str::to_string).collect();
    }
}

/// The functions that have over half of all frees, the one with the most first. Empty if these are too many
/// to name, or if one has no name.
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

/// The functions that allocate or free on call stacks.
struct Names<'a> {
    candidates: &'a Candidates,
    by_node: NumberMap<u32, u32>,
    numbers: HashMap<String, u32>,
}

impl Names<'_> {
    /// The number of the function that allocates or frees on a call stack.
    fn function(&mut self, node: u32) -> u32 {
        if let Some(&known) = self.by_node.get(&node) {
            return known;
        }
        let next = self.numbers.len() as u32;
        let number = *self.numbers.entry(self.candidates.site(node)).or_insert(next);
        self.by_node.insert(node, number);
        number
    }

    /// The functions with the most blocks.
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

/// Returns what makes the regions of a trace uncertain, as sentences.
pub(super) fn notes_of(manifest: &Manifest, passed: &Passed) -> Vec<String> {
    let mut notes = Vec::new();
    let mut note = |count: u64, text: String| notes.extend(Some(text).filter(|_| count > 0));
    let lost = manifest.losses.all();
    note(
        lost,
        format!(
            "{lost} events are missing: a block whose free is missing seems to escape, and a block \
             whose allocation is missing is never seen to escape"
        ),
    );
    let window = manifest.notes.get("window").and_then(|window| window.as_str());
    note(
        u64::from(window.is_some()),
        format!(
            "the recording has only the time {}: regions that began earlier lack their first blocks",
            window.unwrap_or_default()
        ),
    );
    let ending = &manifest.stream.ending;
    note(
        u64::from(ending != "complete"),
        format!(
            "the recording is not complete ({ending}): blocks in use at its end count as escaped"
        ),
    );
    let missed = manifest.counts.missed_frees;
    note(missed, format!("{missed} blocks were freed without an event: they seem to escape"));
    add_notes_of_events(passed, &mut note);
    let lacks = manifest.lacks();
    note(lacks.len() as u64, format!("the trace has no {}", lacks.join(", no ")));
    notes
}

/// Adds what the events of the trace lack.
fn add_notes_of_events(passed: &Passed, note: &mut impl FnMut(u64, String)) {
    let frees = passed.frees_without_stack;
    note(
        frees,
        format!("{frees} frees have no call stack: a region may seem to end later than it does"),
    );
    let others = passed.other_processes;
    note(
        others,
        format!(
            "{others} other processes have events: the regions are those of the process that did \
             the most"
        ),
    );
    let blocks = passed.not_followed;
    note(
        blocks,
        format!("{blocks} blocks had no room in memory: they count as blocks that are never freed"),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_with_most_of_the_frees_are_named_if_they_are_few_and_have_names() {
        let of = |sums: &[(&'static str, u64)]| most_of(sums.iter().copied().collect());
        assert_eq!(of(&[("clear", 3), ("~node", 60), ("grow", 37)]), ["~node"]);
        assert_eq!(of(&[("clear", 40), ("~node", 40), ("grow", 20)]), ["clear", "~node"]);
        assert_eq!(of(&[("a", 1), ("b", 1), ("c", 1), ("d", 1), ("e", 1)]), ["a", "b", "c"]);
        assert!(of(&[("a", 1), ("b", 1), ("c", 1), ("d", 1), ("e", 1), ("f", 1)]).is_empty());
        assert!(of(&[(NO_NAME, 50), ("~node", 40)]).is_empty());
        assert!(of(&[]).is_empty());
    }
}
