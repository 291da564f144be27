//! Makes compiled plans from recordings.

use super::blocks;
use super::callers::{Callers, Chosen};
use super::format::*;
use super::places::Places;
use super::rules::{made_nothing, Rules};
use crate::error::{Error, ErrorKind, Result};
use crate::modules::Module;
use crate::names::{forms, has_name};
use crate::replay::selection::{Selection, NO_RULE};
use crate::replay::{default_process, End, Scope};
use crate::symbols::{code_of, Code};
use crate::trace::{Stacks, Trace};
use rayon::prelude::*;
use std::collections::{BTreeSet, HashMap};

/// The share of a rule's blocks that must not exceed the rule's maximum block size. The few larger
/// blocks come from malloc.
const COVERED: f64 = 0.999;

/// A plan made from a recording.
pub struct Made {
    /// The compiled plan.
    pub plan: CompiledPlan,
    /// The blocks that each rule of the plan would have served in the recorded run.
    pub served: Vec<Served>,
    /// Number of blocks in the recorded run.
    pub blocks: u64,
    /// Remarks for the user.
    pub notes: Vec<String>,
}

/// The blocks that a rule would have served in the recorded run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Served {
    /// Number of call stacks that the rule selects.
    pub stacks: usize,
    /// Number of blocks from these call stacks.
    pub blocks: u64,
    /// The bytes of these blocks.
    pub bytes: u64,
}

/// Makes a plan from a recording.
pub fn make(trace: &Trace, rules: &Rules) -> Result<Made> {
    let numbers = numbers(rules)?;
    let stacks = trace.stacks()?;
    let sites = trace.sites()?;
    let nodes: Vec<i64> = sites.iter().map(|site| site.stack.into()).collect();
    let selection = Selection::new(&rules.plan, &stacks, &nodes).map_err(made_nothing)?;
    let choice_of = |node: i32| match selection.rule(node) {
        NO_RULE => Choice::Malloc,
        rule => numbers[rule].map_or(Choice::Malloc, Choice::Rule),
    };
    let mut maker = Maker {
        rules,
        trace,
        stacks: &stacks,
        numbers: &numbers,
        places: Places::read(trace, &stacks)?,
        served: vec![Served::default(); numbers.iter().flatten().count()],
        notes: Vec::new(),
    };
    let mut chosen = Vec::new();
    let mut all_blocks = 0;
    for site in sites.iter().filter(|site| site.allocs > 0 || site.reallocs > 0) {
        let choice = choice_of(site.stack);
        all_blocks += site.allocs.max(0) as u64;
        if let Choice::Rule(rule) = choice {
            let served = &mut maker.served[rule as usize];
            served.stacks += 1;
        }
        if site.stack > 0 {
            chosen.push(Chosen { stack: maker.places.of(site.stack), choice, blocks: site.allocs });
        }
    }
    let mut callers = Callers::of(chosen);
    let ranges = maker.ranges()?;
    maker.check_size(&mut callers, &ranges)?;
    let rule_of = |node: i32| match choice_of(node) {
        Choice::Rule(rule) => Some(rule as usize),
        Choice::Malloc => None,
    };
    let found = blocks::read(trace, maker.served.len(), &rule_of)?;
    let rules = maker.rules_of_plan(&found);
    let plan = maker.with_modules(rules, &callers, ranges)?;
    maker.must_serve(&plan)?;
    // Rejects every plan that a reader would reject, with the same message.
    let plan = CompiledPlan::from_bytes(&plan.to_bytes(), "the plan").map_err(made_nothing)?;
    maker.remarks(&callers);
    Ok(Made { plan, served: maker.served, blocks: all_blocks, notes: maker.notes })
}

/// Returns the index of each rule in the compiled plan, or `None` for rules that leave blocks to
/// malloc.
fn numbers(rules: &Rules) -> Result<Vec<Option<u32>>> {
    let mut next = 0;
    let mut numbers = Vec::new();
    for (rule, _) in rules.all() {
        let number = rules.allocator(rule).map(|_| next);
        next += u32::from(number.is_some());
        numbers.push(number);
    }
    let name = &rules.plan.name;
    let (what, help) = match next as usize {
        0 => (
            format!("{name} has no rule with a local allocator"),
            "write [[rule]], region = \"FUNCTION\", and strategy = \"arena\"".to_string(),
        ),
        count if count > RULES_MAX => (
            format!("{name} has {count} rules with local allocators"),
            format!("a plan has at most {RULES_MAX}: write patterns, as functions = \"^json::\""),
        ),
        _ => return Ok(numbers),
    };
    Err(refused(what, help))
}

fn refused(what: String, help: impl Into<String>) -> Error {
    Error::new(ErrorKind::Plan, what, "no plan was made", help)
}

struct Maker<'a> {
    rules: &'a Rules,
    trace: &'a Trace,
    stacks: &'a Stacks,
    /// The index of each rule in the compiled plan.
    numbers: &'a [Option<u32>],
    places: Places<'a>,
    served: Vec<Served>,
    notes: Vec<String>,
}

impl<'a> Maker<'a> {
    /// Makes the rules of the compiled plan. `found` has the recorded blocks of each rule.
    fn rules_of_plan(&mut self, found: &[blocks::Blocks]) -> Vec<PlanRule> {
        let mut made = Vec::new();
        for (rule, of) in self.rules.all() {
            let Some(allocator) = self.rules.allocator(rule) else { continue };
            let number = made.len();
            let blocks = &found[number];
            self.served[number].blocks = blocks.blocks.round() as u64;
            self.served[number].bytes = blocks.bytes.round() as u64;
            let recorded = match allocator {
                LocalAllocator::Pool => blocks.most_frequent(),
                _ => blocks.covering(COVERED),
            };
            let recorded = recorded.map_or(BLOCK_MAX, |size| size.min(BLOCK_MAX.into()) as u32);
            let name = self.rules.name(rule);
            if of.strategy.winks_out() {
                self.notes.push(format!(
                    "{name}: in an unchanged program, {} frees no blocks together; each block is freed by the \
                     call that frees it now",
                    of.strategy
                ));
            }
            made.push(PlanRule {
                name: name.into_bytes().into_iter().filter(|&byte| byte != 0).collect(),
                allocator,
                block_bytes: self.rules.block_bytes(rule).unwrap_or(recorded),
                peak_bytes: blocks.peak.max(0.0).round() as u64,
            });
        }
        made
    }

    /// Fails if there are more frames in call stacks than a plan file can contain.
    fn check_size(&mut self, callers: &mut Callers, ranges: &[CodeRange]) -> Result<()> {
        let frames = |callers: &Callers| -> usize {
            callers.stacks.iter().map(|stack| stack.frames.len()).sum()
        };
        if frames(callers) > ENTRIES_MAX && ranges.is_empty() {
            // Without ranges, unknown call stacks use malloc. So call stacks that use malloc need
            // no entry.
            callers.stacks.retain(|stack| stack.choice != Choice::Malloc);
            self.notes.push(
                "the plan has no room for the call stacks that malloc serves, so the program counts them as unknown"
                    .to_string(),
            );
        }
        match frames(callers) {
            count if count > ENTRIES_MAX => Err(refused(
                format!(
                    "{}: {count} frames distinguish the call stacks, but a plan has at most {ENTRIES_MAX}",
                    self.rules.plan.name
                ),
                "write rules for fewer functions, or leave out one that a common function allocates for",
            )),
            _ => Ok(()),
        }
    }

    /// Fails if the plan would serve no block.
    fn must_serve(&self, plan: &CompiledPlan) -> Result<()> {
        let serves = |choice: &Choice| matches!(choice, Choice::Rule(_));
        let by_caller = plan.callers.iter().any(|caller| match &caller.answer {
            Answer::Same(choice) => serves(choice),
            Answer::ByStack(_) => false,
        });
        if by_caller
            || plan.stacks.iter().any(|stack| serves(&stack.choice))
            || !plan.ranges.is_empty()
        {
            return Ok(());
        }
        let missing = self.places.missing.first();
        let why = match missing.map(|&module| self.places.modules[module].path.display()) {
            Some(path) => format!("{path} is missing, or is another build"),
            None => "no recorded call stack belongs to a rule and has addresses".to_string(),
        };
        Err(refused(
            format!("{} would serve no block: {why}", self.rules.plan.name),
            "mallard record -- PROG ARGS, with the program as it is now",
        ))
    }

    /// Returns the code of the functions that rules select as regions. Fails if a function's code
    /// is not found. Module indices in the result are those of the trace.
    fn ranges(&mut self) -> Result<Vec<CodeRange>> {
        let regions = self.regions()?;
        if regions.is_empty() {
            return Ok(self.ranges_of_everything());
        }
        let modules = self.modules_of(&regions);
        let codes: Vec<(usize, Code)> = modules
            .into_par_iter()
            .map(|module| {
                let mut wanted = |name: &str| matching(&regions, name);
                (module, code_of(&self.places.modules[module], &mut wanted))
            })
            .collect();
        let mut ranges = Vec::new();
        for (module, code) in &codes {
            let module = *module as u32;
            for &(region, begin, end) in &code.parts {
                let rule = regions[usize::from(region)].0;
                ranges.extend(self.numbers[rule].map(|rule| CodeRange {
                    module,
                    begin,
                    end,
                    rule,
                }));
            }
            let has_some = !code.parts.is_empty();
            if has_some && !code.has_debug_information {
                let name = self.places.modules[module as usize].name();
                self.notes.push(format!(
                    "{name} has no debug information, so calls of inlined functions are known only \
                     from the recording"
                ));
            }
        }
        ranges.extend(self.ranges_of_calls(&regions));
        for &(rule, name) in &regions {
            let number = self.numbers[rule];
            if !ranges.iter().any(|range| Some(range.rule) == number) && number.is_some() {
                return Err(refused(
                    format!("{}: rule {}: no code of {name} was found", self.rules.plan.name, rule + 1),
                    "the recorded program must still be there, with symbols or debug information; or write \
                     functions = \"NAME\" for the recorded call stacks alone",
                ));
            }
        }
        ranges.sort_by_key(CodeRange::order);
        ranges.dedup();
        Ok(ranges)
    }

    /// Returns the code of regions that have no function name but a position, such as
    /// `libx.so+0x123`. Such a region consists of the code inside one call.
    fn ranges_of_calls(&mut self, regions: &[(usize, &str)]) -> Vec<CodeRange> {
        let stacks = self.stacks;
        let mut ranges = Vec::new();
        for frame in 0..stacks.frames() as u32 {
            for of in stacks.functions_at(frame).iter().filter(|of| !has_name(of.function)) {
                let rules = matching(regions, of.function).into_iter();
                let rules = rules.filter_map(|region| self.numbers[regions[usize::from(region)].0]);
                let rules: Vec<u32> = rules.collect();
                let place = self.places.place(frame).filter(|_| !rules.is_empty());
                // The code of a frame is the call in front of its return address. The address is 0
                // only in a corrupt trace.
                let before = |place: Place| Some((place.address.checked_sub(1)?, place));
                let Some((begin, Place { module, address: end })) = place.and_then(before) else {
                    continue;
                };
                ranges.extend(rules.into_iter().map(|rule| CodeRange { module, begin, end, rule }));
            }
        }
        ranges
    }

    /// Returns each rule that selects a region, with the function of the region.
    fn regions(&self) -> Result<Vec<(usize, &'a str)>> {
        let rules = self.rules;
        let mut regions = Vec::new();
        for (rule, of) in rules.all() {
            let Scope::Region(name) = &of.scope else { continue };
            if of.ends == Some(End::Exact) {
                return Err(refused(
                    format!(
                        "{}: rule {}: {name} is a mark, not a function",
                        rules.plan.name,
                        rule + 1
                    ),
                    "write the function that has the mark, and ends = \"drained\"",
                ));
            }
            regions.push((rule, name.as_str()));
        }
        Ok(regions)
    }

    /// Returns all code of the modules that were on call stacks, if a rule selects all blocks.
    fn ranges_of_everything(&self) -> Vec<CodeRange> {
        let everything = self.rules.all().find(|(_, of)| of.scope == Scope::Everything);
        let Some(rule) = everything.and_then(|(rule, _)| self.numbers[rule]) else {
            return Vec::new();
        };
        let frames = 0..self.stacks.frames() as u32;
        let modules: BTreeSet<usize> =
            frames.filter_map(|frame| self.stacks.place_of(frame).0).collect();
        let mut ranges = Vec::new();
        for module in modules {
            let code = self.places.code(module);
            let range = |(begin, end)| CodeRange { module: module as u32, begin, end, rule };
            ranges.extend(code.into_iter().map(range));
        }
        ranges.sort_by_key(CodeRange::order);
        ranges
    }

    /// Returns the modules in which the functions of regions were recorded.
    fn modules_of(&self, regions: &[(usize, &str)]) -> BTreeSet<usize> {
        let mut known: HashMap<&str, bool> = HashMap::new();
        let mut modules = BTreeSet::new();
        for frame in 0..self.stacks.frames() as u32 {
            let (Some(module), _) = self.stacks.place_of(frame) else { continue };
            for of in self.stacks.functions_at(frame) {
                let is_region = *known
                    .entry(of.function)
                    .or_insert_with(|| !matching(regions, of.function).is_empty());
                if is_region {
                    modules.insert(module);
                }
            }
        }
        modules
    }

    /// Makes the plan, with only the modules that it needs. Module indices in `ranges` are those of
    /// the trace.
    fn with_modules(
        &mut self,
        rules: Vec<PlanRule>,
        callers: &Callers,
        mut ranges: Vec<CodeRange>,
    ) -> Result<CompiledPlan> {
        let frames = callers.stacks.iter().flat_map(|stack| &stack.frames);
        let places = callers.callers.iter().map(|caller| &caller.place).chain(frames);
        let used = places.map(|place| place.module).chain(ranges.iter().map(|range| range.module));
        let mut used: BTreeSet<u32> = used.collect();
        let path = default_process(self.trace)?.map(|(_, path, _)| path).unwrap_or_default();
        let is_at = |of: &Module| of.path.as_os_str() == path.as_str();
        let program = self.places.modules.iter().position(is_at).map(|at| at as u32);
        // `libmallard-plan.so` applies a plan only in its own program. So the plan must contain the
        // program as a module, even if only libraries allocate.
        used.extend(program);
        let (mut modules, mut new) = (Vec::new(), HashMap::new());
        for &module in &used {
            let is_program = Some(module) == program;
            match self.places.module(module as usize, is_program) {
                Some(of) => {
                    new.insert(module, modules.len() as u32);
                    modules.push(of);
                }
                None => {
                    self.places.missing.insert(module as usize);
                }
            }
        }
        let moved = |place: &Place| Some(Place { module: *new.get(&place.module)?, ..*place });
        let caller = |of: &Caller| Some(Caller { place: moved(&of.place)?, ..*of });
        let stack = |of: &PlanStack| {
            let frames: Option<Vec<Place>> = of.frames.iter().map(moved).collect();
            Some(PlanStack { frames: frames?, choice: of.choice })
        };
        ranges.retain(|range| new.contains_key(&range.module));
        ranges.iter_mut().for_each(|range| range.module = new[&range.module]);
        Ok(CompiledPlan {
            modules,
            rules,
            callers: callers.callers.iter().filter_map(caller).collect(),
            stacks: callers.stacks.iter().filter_map(stack).collect(),
            ranges,
        })
    }

    fn remarks(&mut self, callers: &Callers) {
        if callers.mixed > 0 {
            self.notes.push(format!(
                "{} recorded blocks have call stacks whose first {FRAMES_MAX} frames are those of another rule, \
                 which serves them",
                callers.mixed
            ));
        }
        for &module in &self.places.missing {
            let name = self.places.modules[module].path.display();
            self.notes.push(format!(
                "{name} is not the recorded file, so malloc serves the blocks of its call stacks"
            ));
        }
        let default = &self.rules.plan.default.name;
        if default != "malloc" {
            self.notes.push(format!(
                "the plan's default malloc is {default}, which mallard run needs as an option: mallard run --plan FILE --allocator {default}"
            ));
        }
        if self.trace.manifest().stream.sample_bytes > 0 {
            self.notes
                .push("the recording is sampled, so rare call stacks are missing".to_string());
        }
    }
}

/// Returns the indices of the regions whose function has the name `name`.
fn matching(regions: &[(usize, &str)], name: &str) -> Vec<u16> {
    let last = |wanted: &str| {
        let end = wanted.find(['<', '(']).unwrap_or(wanted.len());
        wanted[..end].rsplit("::").next().unwrap_or_default().to_string()
    };
    // Parsing a name is slow, and most names do not contain the last part of any wanted name.
    if !regions.iter().any(|(_, wanted)| name.contains(&last(wanted))) {
        return Vec::new();
    }
    let forms = forms(name);
    let is_form = |of: &(usize, &(usize, &str))| forms.iter().any(|form| form == of.1 .1);
    regions.iter().enumerate().filter(is_form).map(|(index, _)| index as u16).collect()
}
