//! Finds the rule of a plan for each call stack.

use super::plan::{bad, closest, End, Plan, Rule, Scope};
use crate::error::Result;
use crate::hash::NumberMap;
use crate::instances::Entries;
use crate::names::{forms, has_name, is_wrapper};
use crate::trace::{FrameInfo, Stacks};
use regex::Regex;
use std::collections::{BTreeSet, HashMap};

/// The value that means no rule.
pub(crate) const NO_RULE: usize = usize::MAX;
const NONE: u16 = u16::MAX;

/// The rules of a plan for each node of the call stack tree.
#[derive(Default)]
pub(crate) struct Selection {
    /// The rule of each node.
    rules: Vec<u16>,
    /// The regions of rules with `ends = "sure"` or `"drained"`, on each call stack.
    regions: Entries,
    /// Whether each call stack belongs to a call that starts a thread, by node.
    starts: Vec<bool>,
    /// The rule for unknown call stacks and for all nodes that have no other rule.
    everything: Option<usize>,
    /// The rules with `ends = "sure"`.
    sure: Vec<usize>,
    /// The rules with `ends = "exact"`. The key is the node that represents the name of the marked
    /// region.
    marks: NumberMap<u32, usize>,
}

impl Selection {
    /// Makes the selection of a plan that needs no call stacks.
    pub fn without_stacks(plan: &Plan) -> Self {
        let everything = plan.rules.iter().position(|rule| rule.scope == Scope::Everything);
        Selection { everything, ..Selection::default() }
    }

    /// Looks up the functions that a plan names. `allocating` has the call stacks that allocate.
    pub fn new(plan: &Plan, stacks: &Stacks, allocating: &[i64]) -> Result<Self> {
        let name = &plan.name;
        let mut names = Names::new(plan);
        let frames = Frames::new(&mut names, stacks, plan)?;
        let mut selection = Selection::without_stacks(plan);
        selection.regions = Entries::new(stacks.nodes(), &frames.regions);
        let mut tree = Tree::new(plan, &frames, &selection.regions, stacks.nodes().len());
        for &(parent, frame) in stacks.nodes().iter().skip(1) {
            tree.add(parent as usize, frame as usize);
        }
        tree.check(plan, name)?;
        let site_of = |&node: &i64| tree.sites.get(node as usize).copied().flatten();
        names.found.extend(allocating.iter().filter_map(site_of));
        names.check(plan, name)?;
        selection.marks = marks(plan, stacks, &frames)?;
        let is_sure = |&rule: &usize| plan.rules[rule].ends == Some(End::Sure);
        selection.sure = (0..plan.rules.len()).filter(is_sure).collect();
        (selection.rules, selection.starts) = (tree.rules, tree.starts);
        Ok(selection)
    }

    /// Returns the rule of a call stack, or [`NO_RULE`]. An unknown call stack is negative.
    #[inline]
    pub fn rule(&self, node: i32) -> usize {
        match self.rules.get(node as usize) {
            Some(&rule) if rule != NONE && node >= 0 => usize::from(rule),
            _ => self.everything.unwrap_or(NO_RULE),
        }
    }

    /// Returns whether a call stack belongs to a call that starts a thread.
    #[inline]
    pub fn starts_thread(&self, node: i32) -> bool {
        node >= 0 && self.starts.get(node as usize).copied().unwrap_or(false)
    }

    /// Returns the rule of a marked region, by the node that represents its name.
    #[inline]
    pub fn marked(&self, node: i32) -> Option<usize> {
        self.marks.get(&(node as u32)).copied()
    }

    /// Returns whether any rule has `ends = "sure"`.
    pub fn has_sure_ends(&self) -> bool {
        !self.sure.is_empty()
    }

    /// Returns the rules with `ends = "sure"`.
    #[inline]
    pub fn sure(&self) -> &[usize] {
        &self.sure
    }

    /// Returns whether the region of a rule has certainly ended on a thread. `node` is the call
    /// stack of an event, and `fresh` is the number of its frames that are new since the thread's
    /// previous event.
    #[inline]
    pub fn is_over(&self, rule: usize, node: i32, fresh: u16) -> bool {
        self.regions.kept(node, fresh).iter().all(|&kept| usize::from(kept) != rule)
    }
}

/// Returns the rules with `ends = "exact"`. The key is the node that represents the name of the
/// marked region, which has one frame that is in no module. Fails if the trace has no marks for one
/// of these rules.
fn marks(plan: &Plan, stacks: &Stacks, frames: &Frames) -> Result<NumberMap<u32, usize>> {
    let mut marks = NumberMap::default();
    let mut left: BTreeSet<usize> = (0..plan.rules.len()).filter(|&r| plan.is_exact(r)).collect();
    if left.is_empty() {
        return Ok(marks);
    }
    for (node, &(parent, frame)) in stacks.nodes().iter().enumerate().skip(1) {
        if parent != 0 || stacks.place_of(frame) != (None, None) {
            continue;
        }
        for &rule in frames.marks.get(&frame).into_iter().flatten() {
            marks.insert(node as u32, usize::from(rule));
            left.remove(&usize::from(rule));
        }
    }
    match left.first() {
        None => Ok(marks),
        Some(&rule) => Err(bad(
            format!(
                "{}: rule {} needs exact ends, but the trace has no marks of {}",
                plan.name,
                rule + 1,
                plan.rules[rule].scope
            ),
            "write ends = \"drained\", or ends = \"sure\", or mark the region: mallard/trace/region.h",
        )),
    }
}

/// The rules of a plan for each frame.
#[derive(Default)]
struct Frames {
    /// The rule of each frame's innermost function that is not an allocation wrapper. `None` if
    /// every function of the frame is a wrapper, or has no name and is no site of the plan.
    sites: Vec<Option<u16>>,
    /// The first rule whose pattern matches each frame, or `NONE`.
    patterns: Vec<u16>,
    /// The rules whose region is a function of a frame, by frame. `marks` has the rules with `ends
    /// = "exact"`, and `regions` has all others.
    regions: NumberMap<u32, Vec<u16>>,
    marks: NumberMap<u32, Vec<u16>>,
    starts: Vec<bool>,
}

impl Frames {
    fn new(names: &mut Names, stacks: &Stacks, plan: &Plan) -> Result<Frames> {
        let mut frames = Frames::default();
        let mut patterns = Patterns::new(plan);
        for frame in 0..stacks.frames() as u32 {
            let mut functions = Vec::new();
            stacks.push_frame(frame, &mut functions);
            let allocates_itself = |f: &&str| !is_wrapper(f) && (has_name(f) || names.is_site(f));
            let own = functions.iter().map(|f| f.function).find(allocates_itself);
            frames.sites.push(match own {
                None => None,
                Some(function) => Some(names.site(function, &plan.name)?),
            });
            frames.patterns.push(patterns.first(&functions));
            let rules = functions.iter().flat_map(|function| names.regions(function.function));
            for rule in rules.collect::<BTreeSet<u16>>() {
                let is_exact = plan.is_exact(rule.into());
                let of = if is_exact { &mut frames.marks } else { &mut frames.regions };
                of.entry(frame).or_default().push(rule);
            }
            frames.starts.push(functions.iter().any(|f| starts_thread(f.function)));
        }
        patterns.check(plan)?;
        Ok(frames)
    }
}

/// The patterns (`functions = "..."`) of a plan.
struct Patterns {
    of_rules: Vec<(u16, Regex)>,
    found: BTreeSet<u16>,
}

impl Patterns {
    fn new(plan: &Plan) -> Patterns {
        let of_rule = |(rule, number): (&Rule, u16)| match &rule.scope {
            Scope::Functions(pattern) => Some((number, Regex::new(pattern).ok()?)),
            _ => None,
        };
        let of_rules = plan.rules.iter().zip(0..).filter_map(of_rule).collect();
        Patterns { of_rules, found: BTreeSet::new() }
    }

    /// Returns the first rule whose pattern matches a function, its file or its module, or `NONE`.
    fn first(&mut self, functions: &[FrameInfo]) -> u16 {
        let mut first = NONE;
        for (rule, pattern) in &self.of_rules {
            let matches = |of: &FrameInfo| {
                [of.function, of.file, of.module].iter().any(|text| pattern.is_match(text))
            };
            if functions.iter().any(matches) {
                first = first.min(*rule);
                self.found.insert(*rule);
            }
        }
        first
    }

    /// Fails if a pattern matches no frame.
    fn check(&self, plan: &Plan) -> Result<()> {
        let is_missing = |(rule, _): &&(u16, Regex)| !self.found.contains(rule);
        let Some((rule, pattern)) = self.of_rules.iter().find(is_missing) else { return Ok(()) };
        Err(bad(
            format!(
                "{}: rule {}: no call stack has a function that matches {pattern}",
                plan.name,
                rule + 1
            ),
            "mallard sites NAME --filter REGEX lists the call stacks that match",
        ))
    }
}

/// Prefixes of functions that start a thread. If glibc reuses the memory of an exited thread,
/// `pthread_create` does not allocate, but the C++ functions do, so the list needs both.
const THREAD_STARTERS: [&str; 4] =
    ["pthread_create", "thrd_create", "std::thread::thread", "std::jthread::jthread"];

/// Returns whether a function starts a thread.
fn starts_thread(function: &str) -> bool {
    let name = function.trim_start_matches('_');
    THREAD_STARTERS.iter().any(|starter| name.starts_with(starter))
        || name.starts_with("std::thread::") && name.contains("spawn") // in Rust
}

/// The function names in a plan, and the functions of the trace.
struct Names<'a> {
    sites: Vec<(u16, &'a str)>,
    regions: Vec<(u16, &'a str)>,
    /// The rules of which a function was found in the trace.
    found: BTreeSet<u16>,
    /// For each function that was looked up, the forms in which a plan may write its name.
    known: HashMap<String, [String; 3]>,
}

impl<'a> Names<'a> {
    fn new(plan: &'a Plan) -> Self {
        let (mut sites, mut regions) = (Vec::new(), Vec::new());
        for (rule, number) in plan.rules.iter().zip(0..) {
            match &rule.scope {
                Scope::Site(name) => sites.push((number, name.as_str())),
                Scope::Region(name) => regions.push((number, name.as_str())),
                _ => {}
            }
        }
        Names { sites, regions, found: BTreeSet::new(), known: HashMap::new() }
    }

    fn forms(&mut self, function: &str) -> &[String; 3] {
        if !self.known.contains_key(function) {
            self.known.insert(function.to_string(), forms(function));
        }
        &self.known[function]
    }

    /// Returns whether the plan has this nameless function, such as `libx.so+0x123`, as a site.
    fn is_site(&self, function: &str) -> bool {
        self.sites.iter().any(|&(_, name)| name == function)
    }

    /// Returns the rule whose site is this function, or `NONE`.
    fn site(&mut self, function: &str, plan: &str) -> Result<u16> {
        let sites = self.sites.clone();
        let forms = self.forms(function);
        let mut rules = sites.iter().filter(|(_, name)| forms.iter().any(|form| form == name));
        let (first, second) = (rules.next(), rules.next());
        if let (Some(&(a, _)), Some(&(b, _))) = (first, second) {
            return Err(bad(
                format!("{plan}: rules {} and {} are both for the site {function}", a + 1, b + 1),
                format!("remove rule {} or rule {}", a + 1, b + 1),
            ));
        }
        Ok(first.map_or(NONE, |&(rule, _)| rule))
    }

    /// Returns the rules whose region is this function.
    fn regions(&mut self, function: &str) -> Vec<u16> {
        let regions = self.regions.clone();
        let forms = self.forms(function);
        let is_form = |&&(_, name): &&(u16, &str)| forms.iter().any(|form| form == name);
        let rules: Vec<u16> = regions.iter().filter(is_form).map(|&(rule, _)| rule).collect();
        self.found.extend(rules.iter().copied());
        rules
    }

    /// Fails if the plan contains a name that no function has.
    fn check(&self, plan: &Plan, name: &str) -> Result<()> {
        for (rule, wanted) in self.sites.iter().chain(&self.regions) {
            if self.found.contains(rule) {
                continue;
            }
            let what = match plan.rules[usize::from(*rule)].scope {
                Scope::Site(_) => format!("no call stack has an allocation of {wanted}"),
                _ => format!("no call stack has the function {wanted}"),
            };
            return Err(bad(format!("{name}: rule {}: {what}", rule + 1), self.advice(wanted)));
        }
        Ok(())
    }

    /// Returns advice on what to write instead of a name that was not found.
    fn advice(&self, wanted: &str) -> String {
        let inner = format!("::{wanted}");
        let plain: BTreeSet<&str> = self.known.values().map(|forms| forms[2].as_str()).collect();
        if plain.contains(wanted) {
            return format!("{wanted} calls others that allocate: write region = \"{wanted}\"");
        }
        let scoped = plain.iter().copied().find(|name| name.ends_with(&inner));
        match scoped.or_else(|| closest(wanted, plain.iter().copied())) {
            Some(close) => format!("did you mean \"{close}\"?"),
            None => "mallard sites NAME lists the functions that allocate".to_string(),
        }
    }
}

/// Assigns a rule to each node of the call stack tree. A node is added after its parent.
struct Tree<'a> {
    frames: &'a Frames,
    regions: &'a Entries,
    stacks_of: Vec<(usize, u32)>,
    rules: Vec<u16>,
    starts: Vec<bool>,
    /// The rule of the site at each node, as in `Frames::sites`.
    sites: Vec<Option<u16>>,
    /// The first rule whose pattern matches any frame of the call stack, for each node, or `NONE`.
    patterns: Vec<u16>,
    nodes: usize,
}

impl<'a> Tree<'a> {
    fn new(plan: &Plan, frames: &'a Frames, regions: &'a Entries, nodes: usize) -> Self {
        let stacks_of =
            plan.rules.iter().enumerate().filter_map(|(number, rule)| match rule.scope {
                Scope::Stack(node) => Some((number, node)),
                _ => None,
            });
        Tree {
            frames,
            regions,
            stacks_of: stacks_of.collect(),
            rules: vec![NONE],
            starts: vec![false],
            sites: vec![None],
            patterns: vec![NONE],
            nodes,
        }
    }

    /// Adds the next node. The first node, the empty call stack, already exists.
    fn add(&mut self, parent: usize, frame: usize) {
        let node = self.rules.len();
        self.starts.push(self.starts[parent] || self.frames.starts.get(frame) == Some(&true));
        let site = self.frames.sites.get(frame).copied().flatten().or(self.sites[parent]);
        self.sites.push(site);
        let pattern = self.frames.patterns.get(frame).copied().unwrap_or(NONE);
        let pattern = pattern.min(self.patterns[parent]);
        self.patterns.push(pattern);
        let stack = self.stacks_of.iter().find(|&&(_, of)| of as usize == node);
        self.rules.push(match (stack, site) {
            (Some(&(rule, _)), _) => rule as u16,
            (None, Some(rule)) if rule != NONE => rule,
            _ if pattern != NONE => pattern,
            // If no other rule selects the call stack, the region that began last decides.
            _ => self.regions.on(node as i32).last().copied().unwrap_or(NONE),
        });
    }

    /// Fails if the plan contains a call stack that the trace does not have.
    fn check(&self, plan: &Plan, name: &str) -> Result<()> {
        let is_wrong = |&&(_, node): &&(usize, u32)| node == 0 || node as usize >= self.nodes;
        let Some(&(rule, _)) = self.stacks_of.iter().find(is_wrong) else { return Ok(()) };
        let scope = &plan.rules[rule].scope;
        Err(bad(
            format!("{name}: rule {}: the trace does not have {scope}", rule + 1),
            "mallard sites --json NAME lists the call stacks that allocate",
        ))
    }
}
