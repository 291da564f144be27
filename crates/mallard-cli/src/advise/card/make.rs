//! Makes the cards of chosen changes.

use super::choose::{action, to_try, Change};
use super::{
    answer, in_c, words, AtEnd, Card, Expected, Memory, Part, RegionPart, Saving, SitePart,
};
use crate::advise::code::{self, Code, Language, Library, Made, Place};
use crate::advise::evidence::{Candidate, Evidence, Kind, Site};
use crate::advise::rules::condition::Subject;
use crate::advise::rules::{self, Rule};
use crate::look::frames;
use mallard_trace::regions::Region;
use mallard_trace::replay::{Plan, Scope};
use std::collections::BTreeMap;
use std::time::Duration;

/// The budget to measure one malloc alone, if the measurements do not decide about it.
const TRIED_ALONE: Duration = Duration::from_secs(300);

/// How long the pool of a site lives in a replay.
const OUTLIVES: &str = "one for the program or used again";

/// The card of a change.
pub fn change(evidence: &Evidence, change: &Change) -> Card {
    let of = change.candidate;
    let region = of.and_then(|of| of.region).and_then(|place| evidence.regions.get(place));
    let site = of.and_then(|of| of.site).and_then(|place| evidence.sites.get(place));
    let site = site.or(change.site).filter(|_| region.is_none());
    let place = place(evidence, region, site);
    let subject = match (region, site, of) {
        (Some(region), ..) => Subject::Region(region),
        (_, Some(site), _) => Subject::Site(site),
        (_, _, Some(of)) => Subject::Candidate(of),
        _ => Subject::Program,
    };
    let mut card = empty(change.rule);
    card.action = action(change);
    card.title = words::title(change.rule, &what(site, of, &place.function), of, card.action)
        .replace("{function}", &place.function);
    card.region = region.map(region_part);
    card.site = site.map(|site| site_part(change.rule, site));
    card.evidence = words::evidence(evidence, change.rule, &subject, of);
    card.hazards = words::hazards(change.rule, of, region);
    card.code = code::of(change.rule.id, &place);
    card.language = Some(place.language).filter(|_| region.is_some() || site.is_some());
    match of {
        Some(of) => measured(&mut card, evidence, of),
        None => card.check = Some(evidence.typed.measure(&words::check_of_code(evidence))),
    }
    if change.rule.winks_out() {
        let blocks = region.map_or(0, |region| region.blocks);
        let account = of.and_then(|of| of.account.as_ref());
        card.destructors_skipped = Some(account.map_or(blocks, |account| account.winked_out));
        card.freed_by = region.map_or(Vec::new(), |region| region.freed_by.clone());
    }
    card.why_not = words::why_not(evidence, change, region);
    card.sentence = words::sentence(evidence, &card, change, &place.function);
    match place.language {
        Language::C => in_words(in_c::said(card)),
        _ => in_words(card),
    }
}

/// What gets a pool: the nodes of a container, or a structure.
fn what(site: Option<&Site>, of: Option<&Candidate>, function: &str) -> String {
    let has_nodes = |site: &Site| {
        site.made.is_some_and(Made::has_nodes) && site.figures.size_min == site.figures.size_max
    };
    let is_alone = of.and_then(|of| of.plan.as_ref()).is_none_or(|plan| plan.rules.len() == 1);
    match site {
        Some(site) if is_alone && has_nodes(site) => {
            format!("the nodes of the container in {function}")
        }
        _ => format!("the structure that {function} fills"),
    }
}

/// Describes functions without a name in words. Commands, code and plans keep the form in which a plan
/// selects such a function.
fn in_words(mut card: Card) -> Card {
    let texts = [&mut card.title, &mut card.sentence].into_iter();
    let lists = card.evidence.iter_mut().chain(&mut card.hazards).chain(&mut card.why_not);
    texts.chain(lists).for_each(|text| *text = frames::in_words(text));
    card
}

/// The card that advises to change nothing.
pub fn leave(evidence: &Evidence) -> Card {
    let mut card = of_program(evidence, "leave-it");
    card.sentence = answer::leave(evidence);
    in_words(card)
}

/// The card if the measurements do not decide.
pub fn undecided(evidence: &Evidence, reasons: Vec<String>) -> Card {
    let mut card = of_program(evidence, "undecided");
    card.sentence = answer::undecided(evidence, &reasons);
    let check = to_try(evidence).and_then(|of| answer::try_alone(evidence, of, TRIED_ALONE));
    card.check = check.map(|command| evidence.typed.measure(&command));
    card.evidence.extend(reasons);
    in_words(card)
}

fn of_program(evidence: &Evidence, id: &str) -> Card {
    let rule = rules::rule(id).expect("a rule for the whole program");
    let mut card = empty(rule);
    card.evidence = words::bounds(evidence);
    card.why_not = answer::measured(evidence);
    card.why_not.extend(answer::not_local(evidence));
    card.saving.bound = evidence.bound.share;
    card
}

fn empty(rule: &'static Rule) -> Card {
    Card {
        rule: rule.id,
        action: rule.action,
        strategy: None,
        strategy_words: None,
        allocator: None,
        region: None,
        site: None,
        saving: Saving::default(),
        memory: None,
        title: rule.title.to_string(),
        sentence: String::new(),
        evidence: Vec::new(),
        hazards: Vec::new(),
        why_not: Vec::new(),
        destructors_skipped: None,
        freed_by: Vec::new(),
        how: None,
        code: Code::default(),
        language: None,
        check: None,
        plan: None,
    }
}

/// Adds what was measured, and the commands.
fn measured(card: &mut Card, evidence: &Evidence, of: &Candidate) {
    let strategy = of.plan.as_ref().and_then(|plan| plan.rules.first()).map(|rule| rule.strategy);
    card.strategy = strategy.map(|strategy| strategy.to_string());
    card.strategy_words = match card.rule {
        "object-pool" => Some(format!("pool of one size, {OUTLIVES}, objects destroyed as before")),
        "multipool" => strategy.map(|strategy| {
            let words = words::of_strategy(strategy);
            words.replacen("multipool", &format!("multipool, {OUTLIVES}"), 1)
        }),
        _ => strategy.map(words::of_strategy),
    };
    card.allocator = (of.kind != Kind::Strategy).then(|| of.name.clone());
    card.saving = Saving {
        bound: None,
        allocator: of.allocator.as_ref().map(Part::of),
        pages: of.pages.as_ref().map(Part::of),
        locality: None,
        total: Some(Part::of(&of.cpu)),
        expected: of.expected.map(|(low, high)| Expected { low, high }),
        measured_by: Some(of.by),
    };
    card.memory = Some(Memory {
        measured_by: of.memory_by,
        before_bytes: of.peak_bytes.0,
        after_bytes: of.peak_bytes.1,
        saving: of.memory.saving,
        low: of.memory.low,
        high: of.memory.high,
        verdict: of.memory.verdict,
        at_end: of.memory_at_end.as_ref().map(|at_end| AtEnd {
            before_bytes: of.end_bytes.0,
            after_bytes: of.end_bytes.1,
            saving: Part::of(at_end),
        }),
    });
    card.plan = of.plan.as_ref().map(toml);
    let (how, check) = words::commands(evidence, of);
    card.how = how.map(|how| evidence.typed.run(&how));
    card.check = Some(evidence.typed.measure(&check));
}

/// What the most blocks below a function are for. Texts are mostly the entries of something else, which an
/// example with a container shows as well. A hash map of Rust decides, because it must become another one.
fn made_in(evidence: &Evidence, function: &str, language: Language) -> Option<Made> {
    let mut blocks: BTreeMap<Made, i64> = BTreeMap::new();
    for site in evidence.sites.iter().filter(|site| site.stack.iter().any(|at| at == function)) {
        if let Some(made) = site.made {
            *blocks.entry(made).or_default() += site.figures.allocs;
        }
    }
    if language == Language::Rust && blocks.contains_key(&Made::HashMap) {
        return Some(Made::HashMap);
    }
    let text = blocks.remove(&Made::Text).map(|_| Made::Text);
    blocks.into_iter().max_by_key(|&(_, blocks)| blocks).map(|(made, _)| made).or(text)
}

fn place(evidence: &Evidence, region: Option<&Region>, site: Option<&Site>) -> Place {
    match (region, site) {
        (Some(of), _) => {
            let library = library(evidence, &of.shown);
            let place = place_of(evidence, &of.shown, &of.file, of.line, library);
            Place { made: made_in(evidence, &of.shown, place.language), ..place }
        }
        (None, Some(site)) => {
            let of = &site.owner;
            let place = place_of(evidence, &of.shown, &of.file, of.line, Library::None);
            Place { made: site.made, ..place }
        }
        (None, None) => Place::default(),
    }
}

fn place_of(
    evidence: &Evidence,
    shown: &str,
    file: &Option<String>,
    line: Option<u32>,
    library: Library,
) -> Place {
    let language = match library {
        Library::None => Language::of(file.as_deref(), names(evidence)),
        _ => Language::C,
    };
    Place { function: shown.to_string(), file: file.clone(), line, library, language, made: None }
}

/// The functions of the program that are known to allocate, by their full names.
fn names(evidence: &Evidence) -> impl Iterator<Item = &str> {
    let of_sites = evidence.sites.iter().flat_map(|of| [&of.function, &of.owner.function]);
    let of_regions = evidence.regions.iter().map(|of| &of.function);
    of_sites.chain(of_regions).map(String::as_str)
}

/// The library that makes at least half of the blocks that a function allocates.
fn library(evidence: &Evidence, function: &str) -> Library {
    let (mut all, mut of_libraries) = (0, [0; 2]);
    for site in &evidence.sites {
        let Some(depth) = site.stack.iter().position(|name| name == function) else { continue };
        all += site.figures.allocs;
        let called = site.stack[..depth].iter().map(|name| Library::of(name));
        match called.into_iter().find(|&library| library != Library::None) {
            Some(Library::Cmark) => of_libraries[0] += site.figures.allocs,
            Some(Library::Lua) => of_libraries[1] += site.figures.allocs,
            _ => {}
        }
    }
    match of_libraries {
        _ if all == 0 => Library::of(function),
        [blocks, _] if 2 * blocks >= all => Library::Cmark,
        [_, blocks] if 2 * blocks >= all => Library::Lua,
        _ => Library::of(function),
    }
}

fn region_part(of: &Region) -> RegionPart {
    RegionPart {
        function: of.function.clone(),
        shown: of.shown.clone(),
        file: of.file.clone(),
        line: of.line,
        module: of.module.clone(),
        ends: of.ends.word(),
        instances: of.instances,
        threads: of.threads,
        inputs: of.inputs,
        blocks: of.blocks,
        bytes: of.bytes,
        escapes: of.escapes,
        escape_sites: of.escape_sites.clone(),
        foreign_frees: of.foreign_frees,
        peak_p50: of.peak.p50,
        total_p50: of.total.p50,
        utilisation: of.utilisation,
        variation_bits: of.variation_bits,
    }
}

fn site_part(rule: &Rule, of: &Site) -> SitePart {
    let owner = &of.owner;
    // Only a plan needs the function that calls malloc.
    let function = if rule.strategy == 0 { &owner.function } else { &of.function };
    SitePart {
        function: function.clone(),
        shown: owner.shown.clone(),
        file: owner.file.clone(),
        line: owner.line,
        module: of.module.clone(),
        stack: of.stack.clone(),
        blocks: of.figures.allocs,
        bytes: of.figures.bytes,
        peak_bytes: of.figures.peak_bytes,
        live_bytes: of.figures.live_bytes,
    }
}

/// A plan in the form that `mallard replay --plan` reads.
pub fn toml(plan: &Plan) -> String {
    // A string of JSON is also a string of TOML.
    let text = |text: &str| serde_json::to_string(text).expect("a string is plain");
    let mut lines = String::new();
    for rule in &plan.rules {
        lines += "[[rule]]\n";
        match &rule.scope {
            Scope::Everything => {}
            Scope::Region(function) => lines += &format!("region = {}\n", text(function)),
            Scope::Site(function) => lines += &format!("site = {}\n", text(function)),
            Scope::Stack(node) => lines += &format!("stack = {node}\n"),
        }
        lines += &format!("strategy = \"{}\"\n", rule.strategy);
        if let Some(end) = rule.ends {
            lines += &format!("ends = \"{}\"\n", end.word());
        }
        if rule.first_chunk > 0 {
            lines += &format!("first_chunk = {}\n", rule.first_chunk);
        }
    }
    lines
}
