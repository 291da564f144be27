//! Finds candidates, which are functions that may be regions, and the call stacks that contain
//! them.

use super::places::Places;
use super::region::{Region, Regions};
use crate::error::Result;
use crate::hash::NumberMap;
use crate::instances::Entries;
use crate::names::{
    forms, has_name, is_standard, is_start, is_system_library, is_wrapper, short, MISSING,
};
use crate::trace::{FrameInfo, Stacks, Trace};
use std::collections::HashMap;

/// The name of a function whose real name is unknown.
pub(super) const NO_NAME: &str = "?";

/// The note for a program without function names.
pub const UNNAMED: &str =
    "the functions have no names: a region is the code inside of one call, named by its \
                           module and the offset of that call";
/// The maximum number of candidates. If there are more, the candidates with the smallest shares are
/// dropped.
const CANDIDATES_MAX: usize = 400;

/// A function that may be a region.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    /// The function, with the time spent in malloc and free below it in the whole trace. `node` is
    /// a call stack that ends with an outermost call of the function: the one with the most
    /// allocated bytes below it. All other fields are empty.
    pub named: Region,
    pub depth: u16,
    /// The bytes that were allocated below the function in the whole trace.
    pub bytes: f64,
}

/// The candidates, and the call stacks that contain them.
pub(super) struct Candidates {
    pub all: Vec<Candidate>,
    pub entries: Entries,
    pub stacks: Stacks,
    /// The total time spent in malloc and free. `total_bytes` is the total number of allocated
    /// bytes.
    pub total_call_ns: f64,
    pub total_bytes: f64,
    pub notes: Vec<String>,
}

impl Candidates {
    /// Finds the functions with at least the share `least_share` of the time in malloc and free, or
    /// of the allocated bytes.
    pub fn find(trace: &Trace, least_share: f64) -> Result<Candidates> {
        let stacks = trace.stacks()?;
        let weights = Weights::read(trace, &stacks)?;
        let functions = Functions::of(&stacks);
        let sums = weights.by_function(&stacks, &functions);
        let total = weights.total;
        let has_share = |sum: &Sum| {
            sum.weight.call_ns >= least_share * total.call_ns && total.call_ns > 0.0
                || sum.weight.bytes >= least_share * total.bytes && total.bytes > 0.0
        };
        let usable = |named: bool| {
            let is = |&function: &usize| {
                functions.is_usable[function] == Some(named) && has_share(&sums[function])
            };
            (0..functions.names.len()).filter(is).collect::<Vec<usize>>()
        };
        let (mut chosen, mut notes) = (usable(true), Vec::new());
        if chosen.is_empty() {
            chosen = usable(false);
            if !chosen.is_empty() {
                notes.push(UNNAMED.to_string());
            }
        }
        let share = |sum: &Sum| {
            let part = |part: f64, all: f64| if all > 0.0 { part / all } else { 0.0 };
            part(sum.weight.call_ns, total.call_ns).max(part(sum.weight.bytes, total.bytes))
        };
        chosen.sort_by(|&a, &b| share(&sums[b]).total_cmp(&share(&sums[a])).then(a.cmp(&b)));
        if chosen.len() > CANDIDATES_MAX {
            notes.push(format!(
                "{} functions allocate at least 1 % each; only the {CANDIDATES_MAX} largest were analysed",
                chosen.len()
            ));
            chosen.truncate(CANDIDATES_MAX);
        }
        let mut candidates = Candidates {
            all: Vec::new(),
            entries: Entries::new(stacks.nodes(), &functions.frames_of(&chosen)),
            stacks,
            total_call_ns: total.call_ns,
            total_bytes: total.bytes,
            notes,
        };
        candidates.all = chosen
            .iter()
            .map(|&function| candidates.candidate(&functions, &sums, function))
            .collect();
        Ok(candidates)
    }

    /// Returns a result without regions, if the events of a trace are not read. It has the totals
    /// and `notes`.
    pub fn without_regions(&self, notes: Vec<String>) -> Regions {
        let (total_call_ns, total_bytes) = (self.total_call_ns, self.total_bytes);
        Regions { all: Vec::new(), total_call_ns, total_bytes, notes }
    }

    fn candidate(&self, functions: &Functions, sums: &[Sum], function: usize) -> Candidate {
        let (name, sum) = (&functions.names[function], &sums[function]);
        let frame = self.stacks.split(sum.node as i32).map_or(0, |(_, frame)| frame);
        let mut at = Vec::new();
        self.stacks.push_frame(frame, &mut at);
        let forms_of = |info: &&FrameInfo| forms(info.function).contains(name);
        let info = at.iter().rev().find(forms_of);
        let path = |text: &str| Some(text.to_string()).filter(|text| !text.is_empty());
        let named = Region {
            function: name.clone(),
            shown: short(name),
            file: info.and_then(|info| path(info.file)),
            line: info.and_then(|info| info.line),
            module: info.map_or(String::new(), |info| info.module.to_string()),
            node: sum.node,
            call_ns: sum.weight.call_ns,
            ..Region::default()
        };
        let depth = self.entries.depth(sum.node as i32);
        Candidate { named, depth, bytes: sum.weight.bytes }
    }

    /// Returns the innermost function on a call stack that is not an allocation wrapper.
    pub fn site(&self, node: u32) -> String {
        self.stacks.allocating_function(node as i32).unwrap_or(NO_NAME).to_string()
    }
}

/// Finds candidates by their place. For candidates, a place is a call stack.
impl Places for Candidates {
    #[inline]
    fn list(&self, place: u32) -> u32 {
        self.entries.list(place as i32)
    }

    #[inline]
    fn members(&self, list: u32) -> &[u16] {
        self.entries.members(list)
    }

    #[inline]
    fn node(&self, place: u32) -> u32 {
        place
    }
}

/// The time in malloc and free, and the allocated bytes, of some call stacks.
#[derive(Debug, Clone, Copy, Default)]
struct Weight {
    call_ns: f64,
    bytes: f64,
}

impl Weight {
    fn add(&mut self, other: Weight) {
        self.call_ns += other.call_ns;
        self.bytes += other.bytes;
    }
}

/// The weight below a function, and the call stack for the node of [`Candidate::named`].
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    weight: Weight,
    node: u32,
    heaviest: f64,
}

/// For each node of the call stack tree, the sum of its weight and the weights of all nodes below
/// it.
struct Weights {
    below: Vec<Weight>,
    total: Weight,
}

impl Weights {
    /// Adds up the weights of all sites in a trace. The time in free is estimated, because the
    /// recorder does not measure the time of frees.
    fn read(trace: &Trace, stacks: &Stacks) -> Result<Weights> {
        let ns_per_free = trace.manifest().notes.ns_per_free.unwrap_or(0.0);
        let mut below = vec![Weight::default(); stacks.nodes().len()];
        let mut total = Weight::default();
        for site in trace.sites()? {
            let weight = Weight {
                call_ns: site.call_ns as f64 + site.frees as f64 * ns_per_free,
                bytes: site.bytes as f64,
            };
            total.add(weight);
            if let Some(of) = below.get_mut(site.stack as usize) {
                of.add(weight);
            }
        }
        for index in (1..below.len()).rev() {
            let weight = below[index];
            below[stacks.nodes()[index].0 as usize].add(weight);
        }
        Ok(Weights { below, total })
    }

    /// Adds up the weights below each function. If a function calls itself, a weight below several
    /// of its calls counts only once.
    fn by_function(&self, stacks: &Stacks, functions: &Functions) -> Vec<Sum> {
        let mut sums = vec![Sum::default(); functions.names.len()];
        let mut depth = vec![0u32; functions.names.len()];
        let (first_child, next_child) = children(stacks.nodes());
        let mut open: Vec<(u32, bool)> = vec![(0, false)];
        while let Some((node, is_done)) = open.pop() {
            let frame = stacks.nodes()[node as usize].1;
            let here: &[u32] = if node == 0 { &[] } else { &functions.of_frame[frame as usize] };
            if is_done {
                here.iter().for_each(|&function| depth[function as usize] -= 1);
                continue;
            }
            for &function in here {
                depth[function as usize] += 1;
                if depth[function as usize] == 1 {
                    sums[function as usize].add(node, self.below[node as usize]);
                }
            }
            open.push((node, true));
            let mut child = first_child[node as usize];
            while child != 0 {
                open.push((child, false));
                child = next_child[child as usize];
            }
        }
        sums
    }
}

impl Sum {
    fn add(&mut self, node: u32, weight: Weight) {
        self.weight.add(weight);
        if weight.bytes > self.heaviest || self.node == 0 {
            (self.node, self.heaviest) = (node, weight.bytes);
        }
    }
}

/// Returns the first child and the next sibling of each node. 0 means that there is none.
fn children(nodes: &[(u32, u32)]) -> (Vec<u32>, Vec<u32>) {
    let (mut first, mut next) = (vec![0; nodes.len()], vec![0; nodes.len()]);
    for (node, &(parent, _)) in nodes.iter().enumerate().skip(1).rev() {
        next[node] = std::mem::replace(&mut first[parent as usize], node as u32);
    }
    (first, next)
}

/// The functions of a trace, by their full names, and the frames of each.
struct Functions {
    names: Vec<String>,
    /// Whether each function may be a region, as `is_kind` returns it. Functions without a name are
    /// candidates only if no function with a name is a candidate.
    is_usable: Vec<Option<bool>>,
    /// For each frame, the functions whose full names would select this frame if a plan contained
    /// them.
    of_frame: Vec<Vec<u32>>,
}

impl Functions {
    fn of(stacks: &Stacks) -> Functions {
        let mut numbers: HashMap<String, u32> = HashMap::new();
        let mut functions =
            Functions { names: Vec::new(), is_usable: Vec::new(), of_frame: Vec::new() };
        let mut at = Vec::new();
        for frame in 0..stacks.frames() as u32 {
            at.clear();
            stacks.push_frame(frame, &mut at);
            let mut here = Vec::new();
            for info in at.iter().rev() {
                let number = *numbers.entry(info.function.to_string()).or_insert_with(|| {
                    functions.names.push(info.function.to_string());
                    functions.is_usable.push(is_kind(info));
                    functions.names.len() as u32 - 1
                });
                here.push(number);
            }
            functions.of_frame.push(here);
        }
        functions.add_other_forms(&numbers);
        functions
    }

    /// Adds to each frame the functions whose full names are short forms of a name in that frame.
    /// In a plan, such a name selects both functions.
    fn add_other_forms(&mut self, numbers: &HashMap<String, u32>) {
        let others: Vec<Vec<u32>> = self
            .names
            .iter()
            .enumerate()
            .map(|(number, name)| {
                let mut others: Vec<u32> =
                    forms(name).iter().filter_map(|form| numbers.get(form).copied()).collect();
                others.retain(|&other| other != number as u32);
                others.dedup();
                others
            })
            .collect();
        for here in &mut self.of_frame {
            let mut all = Vec::with_capacity(here.len());
            for &function in here.iter() {
                let also = others[function as usize].iter().copied();
                let new = std::iter::once(function).chain(also).filter(|new| !all.contains(new));
                let new: Vec<u32> = new.collect();
                all.extend(new);
            }
            *here = all;
        }
    }

    /// Returns the chosen functions of each frame, as indices in `chosen`.
    fn frames_of(&self, chosen: &[usize]) -> NumberMap<u32, Vec<u16>> {
        let place: NumberMap<u32, u16> =
            chosen.iter().zip(0..).map(|(&function, place)| (function as u32, place)).collect();
        let mut frames = NumberMap::default();
        for (frame, here) in self.of_frame.iter().enumerate() {
            let here: Vec<u16> = here.iter().filter_map(|of| place.get(of).copied()).collect();
            if !here.is_empty() {
                frames.insert(frame as u32, here);
            }
        }
        frames
    }
}

/// Returns `Some(true)` if a function may be a region. Returns `None` for functions that start a
/// program or a thread, for allocation wrappers, for functions of standard or system libraries, and
/// for placeholders of unknown frames. Returns `Some(false)` for functions without a name, such as
/// `libx.so+0x123`.
fn is_kind(info: &FrameInfo) -> Option<bool> {
    let function = info.function;
    if is_start(function) || is_wrapper(function) || is_standard(function) {
        return None;
    }
    if is_system_library(info.module) || function.is_empty() || function.starts_with('?') {
        return None;
    }
    if MISSING.contains(&function) {
        return None;
    }
    Some(has_name(function))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_frames_are_not_regions() {
        let of = |function| {
            is_kind(&FrameInfo { function, file: "", line: None, module: "", is_inlined: false })
        };
        assert_eq!(MISSING.map(of), [None, None]);
        assert_eq!((of("parse"), of("libx.so+0x123")), (Some(true), Some(false)));
    }
}
