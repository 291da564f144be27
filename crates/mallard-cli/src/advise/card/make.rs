//! Makes the cards of chosen changes.

use super::advice::{Advice, Open, Other};
use super::card::{Applied, AtEnd, Card, Expected, Memory, Part, RegionPart, Saving, SitePart};
use super::choose::{action, to_try, Change};
use super::{answer, phrases, words};
use crate::advise::candidate::{Candidate, Kind};
use crate::advise::code::{self, Code, Language, Made, Place};
use crate::advise::facts::{Facts, Site};
use crate::advise::measured::Measured;
use crate::advise::reason::Doubt;
use crate::advise::rules::condition::Subject;
use crate::advise::rules::{self, Rule};
use crate::advise::words::failed;
use crate::look::frames::in_words;
use mallard_trace::names::is_system_library;
use mallard_trace::regions::Region;
use mallard_trace::replay::{Plan, Scope};
use std::collections::BTreeMap;
use std::time::Duration;

/// The budget in a proposed command that measures one undecided malloc alone.
const TRIED_ALONE: Duration = Duration::from_secs(300);

/// The words on a card for how long the pool of a site lives in a replay.
const OUTLIVES: &str = "one for the program or used again";

/// Makes the cards of the advice, the most useful card first. Makes at least one card, unless the
/// user asked for a strategy.
pub fn cards(evidence: &Measured, advice: &Advice) -> Vec<Card> {
    match advice {
        Advice::Forced => Vec::new(),
        Advice::Leave(others) => vec![leave(evidence, others)],
        Advice::Undecided(open, others) => vec![undecided(evidence, open, others)],
        Advice::Change(changes) => {
            changes.iter().map(|(of, others)| change(evidence, of, others)).collect()
        }
    }
}

/// Returns the sentences about other changes for a card.
fn in_sentences(evidence: &Measured, others: &[Other]) -> Vec<String> {
    others.iter().map(|other| answer::other(evidence, other)).collect()
}

/// Makes the card of a change.
fn change(evidence: &Measured, change: &Change, others: &[Other]) -> Card {
    let of = change.candidate;
    let region = of.and_then(|of| of.region).and_then(|place| evidence.facts.regions.get(place));
    let site = of.and_then(|of| of.site).and_then(|place| evidence.facts.sites.get(place));
    let site = site.or(change.site).filter(|_| region.is_none());
    let place = place(&evidence.facts, region, site);
    let subject = match (region, site, of) {
        (Some(region), ..) => Subject::Region(region),
        (_, Some(site), _) => Subject::Site(site),
        (_, _, Some(of)) => Subject::Candidate(of),
        _ => Subject::Program,
    };
    let mut card = empty(change.rule);
    card.action = action(change);
    let function = in_words(&place.function);
    card.title = words::title(change, &what(site, of, &function), &function);
    card.region = region.map(region_part);
    card.site = site.map(|site| site_part(change.rule, site));
    card.evidence = words::evidence(evidence, change.rule, &subject, of);
    card.hazards = words::hazards(evidence, change.rule, of, region, place.language);
    card.code = code::of(change.rule.id, &place);
    card.language = Some(place.language).filter(|_| region.is_some() || site.is_some());
    let (how, check) = words::commands(evidence, of);
    (card.how, card.check) = (how, Some(check));
    if let Some(of) = of {
        measured(&mut card, of, place.language);
    }
    if change.rule.winks_out() {
        let blocks = region.map_or(0, |region| region.blocks);
        let account = of.and_then(|of| of.account.as_ref());
        card.destructors_skipped = Some(account.map_or(blocks, |account| account.winked_out));
        card.freed_by = region.map_or(Vec::new(), |region| region.freed_by.clone());
    }
    card.why_not = in_sentences(evidence, others);
    let sentence = words::sentence(evidence, &card, change, &function);
    card.sentence = failed(&evidence.facts.program) + &sentence;
    card
}

/// Describes what gets a pool, which is the nodes of a container or a structure.
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

/// Makes the card that recommends to change nothing.
fn leave(evidence: &Measured, others: &[Other]) -> Card {
    let mut card = of_program(evidence, "leave-it", others);
    card.sentence = failed(&evidence.facts.program) + &answer::leave(evidence);
    card
}

/// Makes the card for the case that the measurements do not decide.
fn undecided(evidence: &Measured, open: &[Open], others: &[Other]) -> Card {
    let mut card = of_program(evidence, "undecided", others);
    card.sentence = failed(&evidence.facts.program) + &answer::undecided(evidence, open);
    card.check = to_try(evidence).and_then(|of| answer::try_alone(evidence, of, TRIED_ALONE));
    // The sentence about an unknown bound already contains this reason.
    let unknown = evidence.bound().unknown;
    let is_known = |of: &&Open| match of {
        Open::Doubt(Doubt::Part { what, again: None }) => Some(what) == unknown.as_ref(),
        _ => false,
    };
    let mut reasons: Vec<String> =
        open.iter().filter(|of| !is_known(of)).map(|of| answer::reason(evidence, of)).collect();
    reasons.dedup();
    card.evidence.extend(reasons);
    card
}

fn of_program(evidence: &Measured, id: &str, others: &[Other]) -> Card {
    let rule = rules::rule(id).expect("a rule for the whole program");
    let mut card = empty(rule);
    card.evidence = words::bounds(evidence);
    card.why_not = in_sentences(evidence, others);
    card.saving.bound = evidence.bound().share;
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

/// Adds the measurements of a candidate to a card.
fn measured(card: &mut Card, of: &Candidate, language: Language) {
    let strategy = of.plan.as_ref().and_then(|plan| plan.rules.first()).map(|rule| rule.strategy);
    card.strategy = strategy.map(|strategy| strategy.to_string());
    card.strategy_words = match card.rule {
        "object-pool" => Some(format!("pool of one size, {OUTLIVES}, objects freed as before")),
        rule => strategy.map(|strategy| {
            let lives = if rule == "multipool" { format!(", {OUTLIVES}") } else { String::new() };
            phrases::of_strategy(strategy, &lives, language)
        }),
    };
    card.allocator = (of.kind != Kind::Strategy).then(|| of.name.to_string());
    card.saving = Saving {
        bound: None,
        allocator: of.allocator.as_ref().map(Part::of),
        pages: of.pages.as_ref().map(Part::of),
        locality: None,
        total: Some(Part::of(&of.cpu)),
        expected: of.expected.map(|(low, high)| Expected { low, high }),
        measured_by: Some(of.by),
        in_program: of.in_program.as_ref().map(|of| Applied {
            saving: Part::of(&of.cpu),
            as_it_is: Part::of(&of.as_it_is),
            calls: Expected { low: of.calls.0, high: of.calls.1 },
            ends: of.ends,
        }),
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
}

/// Returns the purpose for which a function and its callees allocate most blocks. Strings count
/// only if there is nothing else, because most strings are elements of a container, and an example
/// with that container shows strings as well. In Rust, a hash map decides, because the change
/// replaces the hash map by another type.
fn made_in(facts: &Facts, function: &str, language: Language) -> Option<Made> {
    let mut blocks: BTreeMap<Made, i64> = BTreeMap::new();
    for site in facts.sites.iter().filter(|site| site.stack.iter().any(|at| at == function)) {
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

fn place(facts: &Facts, region: Option<&Region>, site: Option<&Site>) -> Place {
    match (region, site) {
        (Some(of), _) if is_in_c_library(facts, of) => {
            let place = place_of(&of.shown, &of.file, of.line, Language::C);
            Place { made: made_in(facts, &of.shown, Language::C), in_c_library: true, ..place }
        }
        (Some(of), _) => {
            let language = Language::of(of.file.as_deref(), names(facts));
            let place = place_of(&of.shown, &of.file, of.line, language);
            Place { made: made_in(facts, &of.shown, language), ..place }
        }
        (None, Some(site)) => {
            let of = &site.owner;
            let language = Language::of(of.file.as_deref(), names(facts));
            Place { made: site.made, ..place_of(&of.shown, &of.file, of.line, language) }
        }
        (None, None) => Place::default(),
    }
}

fn place_of(shown: &str, file: &Option<String>, line: Option<u32>, language: Language) -> Place {
    Place { function: shown.to_string(), file: file.clone(), line, language, ..Place::default() }
}

/// Returns the full names of the functions of the program that are known to allocate.
fn names(facts: &Facts) -> impl Iterator<Item = &str> {
    let of_sites = facts.sites.iter().flat_map(|of| [&of.function, &of.owner.function]);
    let of_regions = facts.regions.iter().map(|of| &of.function);
    of_sites.chain(of_regions).map(String::as_str)
}

/// Returns whether functions of a library written in C allocate at least half of a region's blocks.
/// The program cannot change these functions. Names of C functions have no parameters and no
/// scopes.
fn is_in_c_library(facts: &Facts, region: &Region) -> bool {
    let is_library = |module: &str| module.contains(".so") && !is_system_library(module);
    let is_of_c = |name: &String| !name.contains(['(', ':', '<']);
    let (mut all, mut in_library) = (0, 0);
    for site in &facts.sites {
        let Some(depth) = site.stack.iter().position(|name| *name == region.shown) else {
            continue;
        };
        let called = site.stack[..depth].iter().chain([&site.function]);
        let is_it = is_library(&site.module) && called.into_iter().all(is_of_c);
        all += site.figures.allocs;
        in_library += if is_it { site.figures.allocs } else { 0 };
    }
    match all {
        0 => is_library(&region.module) && is_of_c(&region.function),
        all => 2 * in_library >= all,
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
    // Only plans need the function that calls malloc. Other cards name the function of the program.
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

/// Writes a plan in the form that `mallard replay --plan` reads.
pub fn toml(plan: &Plan) -> String {
    // A JSON string is also a TOML string.
    let text = |text: &str| serde_json::to_string(text).expect("a string is plain");
    let mut lines = String::new();
    for rule in &plan.rules {
        lines += "[[rule]]\n";
        match &rule.scope {
            Scope::Everything => {}
            Scope::Region(function) => lines += &format!("region = {}\n", text(function)),
            Scope::Site(function) => lines += &format!("site = {}\n", text(function)),
            Scope::Functions(pattern) => lines += &format!("functions = {}\n", text(pattern)),
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
