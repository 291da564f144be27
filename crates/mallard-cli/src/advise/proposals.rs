//! Chooses what to measure, in the second of the four `mallard advise` steps.
//!
//! The rules propose plans, and all installed mallocs are candidates. The trace shows the upper
//! limit of what a candidate can save, so candidates that cannot have a gain are dropped before any
//! measurement.

use super::candidate::{dropped, Dropped, Kind, Name};
use super::facts::{Facts, Site};
use super::reason::{Note, Reason};
use super::rules::condition::{finished, Subject};
use super::rules::{self, About, Rule, RULES};
use mallard_measure::mallocs::{self, Allocator, Matters};
use mallard_trace::regions::Region;
use mallard_trace::replay::{self, End, Plan, Scope};
use mallard_trace::residency::Parts;
use std::cmp::Reverse;

/// Another malloc may be worth a change for memory alone if the program's malloc holds this share
/// of the resident memory in addition to live blocks.
const HELD_SHARE: f64 = 0.15;
/// The malloc must also hold at least this many bytes in addition to live blocks.
const HELD_BYTES: i64 = 8 << 20;

/// The maximum number of functions for whose regions there are plans.
const REGIONS_MAX: usize = 12;
/// The maximum number of functions whose sites have a separate plan.
const SITES_MAX: usize = 4;
/// The maximum number of functions whose sites are together in one plan.
const TOGETHER_MAX: usize = 6;

/// The candidates to measure, and the candidates that are dropped without a measurement.
#[derive(Clone, Debug, Default)]
pub struct Proposals {
    /// The plans to measure.
    pub plans: Vec<Proposal>,
    /// The mallocs and settings to measure.
    pub mallocs: Vec<Allocator>,
    /// The candidates that cannot have a gain.
    pub dropped: Vec<Dropped>,
    /// A note about the mallocs that are not installed.
    pub note: Option<Note>,
}

/// A plan that a rule proposes to measure.
#[derive(Clone, Debug)]
pub struct Proposal {
    /// The ID of the rule.
    pub rule: &'static str,
    /// The name of the plan.
    pub name: Name,
    /// The plan.
    pub plan: Plan,
    /// The region of the plan, as an index in `Facts::regions`.
    pub region: Option<usize>,
    /// The site of the plan, as an index in `Facts::sites`.
    pub site: Option<usize>,
}

/// Returns the plans of the rules and the installed mallocs, except for those that cannot have a
/// gain.
pub fn proposals(facts: &Facts) -> Proposals {
    let (plans, without_gain) = of_rules(facts, plans(facts));
    let of_mallocs = mallocs(facts);
    let dropped = without_gain.into_iter().chain(of_mallocs.dropped).collect();
    Proposals { plans, dropped, ..of_mallocs }
}

/// Returns the plans that the rules propose: first plans for regions, then plans for sites.
pub fn plans(facts: &Facts) -> Vec<Proposal> {
    let mut all = regions(facts);
    all.extend(sites(facts));
    all
}

fn rules_about(about: About) -> impl Iterator<Item = &'static Rule> {
    static ALL: [Rule; 12] = RULES;
    ALL.iter().filter(move |rule| rule.about == about && rule.strategy > 0)
}

/// Makes the plans for regions. The function whose regions take the most time in calls and frees
/// comes first.
fn regions(facts: &Facts) -> Vec<Proposal> {
    let mut functions: Vec<&str> = Vec::new();
    let mut places: Vec<usize> = (0..facts.regions.len()).collect();
    let most = |region: &Region| region.call_ns + region.teardown_ns;
    places.sort_by(|&a, &b| most(&facts.regions[b]).total_cmp(&most(&facts.regions[a])));
    for &place in &places {
        let function = facts.regions[place].function.as_str();
        if !functions.contains(&function) {
            functions.push(function);
        }
    }
    let plans_of = |function: &&str| {
        let twins: Vec<usize> =
            places.iter().copied().filter(|&p| facts.regions[p].function == **function).collect();
        let plan = move |rule: &'static Rule| {
            let place = best_of(facts, rule, &twins)?;
            proposal_of_region(facts, rule, place)
        };
        rules_about(About::Region).filter_map(plan).collect::<Vec<_>>()
    };
    let with_plans = functions.iter().map(plans_of).filter(|plans| !plans.is_empty());
    with_plans.take(REGIONS_MAX).flatten().collect()
}

/// Finds the region with the most instances to which a rule applies, among `twins`. The twins are
/// regions of one function that differ in the event that ends their instances.
fn best_of(facts: &Facts, rule: &Rule, twins: &[usize]) -> Option<usize> {
    let applies = |&place: &usize| rule.applies(facts, &Subject::Region(&facts.regions[place]));
    twins.iter().copied().filter(applies).min_by_key(|&place| {
        let region = &facts.regions[place];
        (Reverse(finished(region)), Reverse(region.escapes), region.ends != End::Drained, place)
    })
}

fn proposal_of_region(facts: &Facts, rule: &Rule, place: usize) -> Option<Proposal> {
    let region = &facts.regions[place];
    let strategy = rule.strategy()?;
    let scope = Scope::Region(region.function.clone());
    let of = replay::Rule { scope, strategy, ends: Some(region.ends), first_chunk: 0 };
    let name = Name::Plan(strategy, format!("in {}", region.shown));
    let plan = Plan { name: name.to_string(), rules: vec![of], ..Plan::default() };
    Some(Proposal { rule: rule.id, name, plan, region: Some(place), site: None })
}

/// Makes one plan for the sites of each function, and one plan for the sites of all functions
/// together, because the sites of one structure are often in several functions.
fn sites(facts: &Facts) -> Vec<Proposal> {
    let mut found: Vec<(usize, &Rule)> = Vec::new();
    let mut places: Vec<usize> = (0..facts.sites.len()).collect();
    places.sort_by_key(|&place| Reverse(facts.sites[place].figures.call_ns));
    for place in places {
        let site = &facts.sites[place];
        let applies = |rule: &&Rule| rule.applies(facts, &Subject::Site(site));
        let is_new = |(other, _): &(usize, &Rule)| facts.sites[*other].function != site.function;
        let is_named = !site.function.is_empty() && !is_unknown_in_a_library(site);
        let is_structure = is_named && !site.passes_on;
        if let (true, true, Some(rule)) =
            (is_structure, found.iter().all(is_new), rules_about(About::Site).find(applies))
        {
            found.push((place, rule));
        }
    }
    let alone = found.iter().take(SITES_MAX);
    let alone = alone.filter_map(|&(place, rule)| proposal_of_sites(facts, rule, &[place]));
    let mut all: Vec<Proposal> = alone.collect();
    if found.len() > 1 {
        let together: Vec<usize> =
            found.iter().take(TOGETHER_MAX).map(|&(place, _)| place).collect();
        let rule = rules::rule("multipool");
        all.extend(rule.and_then(|rule| proposal_of_sites(facts, rule, &together)));
    }
    all
}

/// Returns whether a site is an address without a function name in a library. Nobody could change
/// such code.
fn is_unknown_in_a_library(of: &Site) -> bool {
    of.function.contains("+0x") && of.module.contains(".so")
}

fn proposal_of_sites(facts: &Facts, rule: &Rule, places: &[usize]) -> Option<Proposal> {
    let strategy = rule.strategy()?;
    let of = |site: &Site| replay::Rule {
        scope: Scope::Site(site.function.clone()),
        strategy,
        ends: None,
        first_chunk: 0,
    };
    let sites: Vec<&Site> = places.iter().map(|&place| &facts.sites[place]).collect();
    let place = match sites[..] {
        [site] => format!("for {}", site.shown),
        _ => format!("for {} and {} more", sites[0].shown, sites.len() - 1),
    };
    let name = Name::Plan(strategy, place);
    let rules = sites.into_iter().map(of).collect();
    let plan = Plan { name: name.to_string(), rules, ..Plan::default() };
    Some(Proposal { rule: rule.id, name, plan, region: None, site: Some(places[0]) })
}

/// Returns the upper limit of the saving in a region, or in the whole program if `region` is
/// `None`. Returns `None` if the limit is unknown.
pub fn most(facts: &Facts, region: Option<usize>) -> Option<f64> {
    let bound = &facts.bound;
    let Some(region) = region else {
        return Some((bound.calls? + bound.faults?).min(1.0));
    };
    let region = &facts.regions[region];
    let cpu = facts.program.cpu_ns?.max(1.0);
    let all_bytes = (facts.program.totals.bytes as f64).max(1.0);
    let pages = bound.faults? * (region.bytes as f64 / all_bytes).min(1.0);
    // The time of a region's calls is estimated from a sample, and may exceed the time of all calls
    // of the program.
    let calls = (region.call_ns / cpu).min(bound.calls?);
    Some((calls + region.teardown_ns / cpu + pages).min(1.0))
}

/// Returns the reason why a candidate is not measured, which is that the candidate cannot reach the
/// minimum gain. Returns `None` if the candidate is measured.
fn why_not(facts: &Facts, region: Option<usize>) -> Option<Reason> {
    let most = most(facts, region).filter(|&most| most < facts.min_gain)?;
    Some(match region {
        Some(_) => Reason::RegionTooSmall(most),
        None => Reason::ProgramTooSmall(most),
    })
}

/// Returns whether another malloc may save memory, because the malloc of the program holds much
/// memory in addition to live blocks.
pub fn is_memory_at_stake(facts: &Facts) -> bool {
    let summary = &facts.memory.summary;
    let holds = |parts: &Parts| {
        let held = parts.fragmented + parts.kept + parts.rounding;
        let all = (parts.resident - parts.recorder).max(1);
        held >= HELD_BYTES && held as f64 >= HELD_SHARE * all as f64
    };
    summary.moments > 0 && (holds(&summary.peak.parts) || holds(&summary.mean.parts))
}

/// Returns why no malloc is measured. `None` if mallocs are measured.
fn why_no_malloc(facts: &Facts) -> Option<Reason> {
    why_not(facts, None).filter(|_| !is_memory_at_stake(facts))
}

/// Drops plans that cannot reach the minimum gain, and duplicates.
fn of_rules(facts: &Facts, all: Vec<Proposal>) -> (Vec<Proposal>, Vec<Dropped>) {
    let (mut kept, mut without_gain): (Vec<Proposal>, Vec<Dropped>) = Default::default();
    for proposal in all {
        let is_double = kept.iter().any(|other| other.plan.rules == proposal.plan.rules);
        // There is no separate bound for a site, so the bound of the whole program counts.
        match why_not(facts, proposal.region) {
            _ if is_double => {}
            Some(why) => {
                without_gain.push(dropped(proposal.name, Kind::Strategy, proposal.region, why))
            }
            None => kept.push(proposal),
        }
    }
    (kept, without_gain)
}

/// Returns the installed mallocs and settings that may have a gain, and drops the others. If no
/// malloc can have a gain, drops all of them.
fn mallocs(facts: &Facts) -> Proposals {
    let own = &facts.program.malloc;
    let (mut found, missing) = mallocs::installed();
    found.retain(|allocator| allocator.name != *own);
    if own != "glibc" {
        found.retain(|allocator| kind_of(&allocator.name) == Kind::Malloc);
    }
    let of = |malloc: &Allocator, why| {
        dropped(Name::Allocator(malloc.name.clone()), kind_of(&malloc.name), None, why)
    };
    if let Some(why) = why_no_malloc(facts) {
        let dropped = found.iter().map(|malloc| of(malloc, why.clone())).collect();
        return Proposals { dropped, ..Proposals::default() };
    }
    let without_gain = |malloc: &Allocator| Some(of(malloc, cannot_matter(facts, &malloc.name)?));
    let dropped: Vec<Dropped> = found.iter().filter_map(without_gain).collect();
    found.retain(|malloc| dropped.iter().all(|of| of.name.short() != malloc.name));
    let note = mallocs::note_of_missing(&missing).map(Note::Said);
    Proposals { mallocs: found, dropped, note, plans: Vec::new() }
}

/// Returns the reason why a setting of glibc cannot save CPU time or memory. Returns `None` if the
/// setting may save something.
fn cannot_matter(facts: &Facts, name: &str) -> Option<Reason> {
    let entry = mallocs::list().find(|entry| entry.name == name)?;
    let small = |share: Option<f64>| share.filter(|&share| share < facts.min_gain);
    match entry.matters? {
        Matters::Threads if facts.program.threads_at_once < 2 => Some(Reason::OneThread),
        Matters::Calls => small(facts.bound.calls).map(Reason::CallsTooFew),
        Matters::Pages => small(facts.bound.faults).map(Reason::FaultsTooFew),
        Matters::Memory if !is_memory_at_stake(facts) => Some(Reason::LittleHeld),
        Matters::Threads | Matters::Memory => None,
    }
}

/// Returns whether an entry in the list of mallocs is a malloc or a setting.
pub fn kind_of(name: &str) -> Kind {
    let entry = mallocs::list().find(|entry| entry.name == name);
    match entry.map(|entry| entry.kind) {
        Some(mallocs::Kind::Tunable) => Kind::Variable,
        _ => Kind::Malloc,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advise::facts::Bound;
    use crate::advise::measured::Measured;
    use crate::advise::rules::sample;

    #[test]
    fn glibc_settings_are_environment_variables_and_not_other_mallocs() {
        assert_eq!(kind_of("glibc:arenas=1"), Kind::Variable);
        assert_eq!(kind_of("mimalloc"), Kind::Malloc);
        assert_eq!(kind_of("mine"), Kind::Malloc);
    }

    #[test]
    fn a_setting_that_cannot_affect_the_program_is_not_measured() {
        let mut evidence = sample::program();
        evidence.facts_mut().program.threads_at_once = 1;
        evidence.facts_mut().bound =
            Bound { calls: Some(0.3), faults: Some(0.01), ..Bound::default() };
        let why = |evidence: &Measured, name| cannot_matter(&evidence.facts, name);
        assert_eq!(why(&evidence, "glibc:arenas=1"), Some(Reason::OneThread));
        let faults = why(&evidence, "glibc:trim=1GiB").unwrap();
        assert_eq!(faults.to_string(), "page faults take at most 1.0 % of the CPU time");
        assert_eq!(why(&evidence, "glibc:trim=64KiB"), Some(Reason::LittleHeld));
        assert_eq!(why(&evidence, "glibc:tcache=1000"), None);
        assert_eq!(why(&evidence, "mimalloc"), None);
        evidence.facts_mut().program.threads_at_once = 2;
        evidence.facts_mut().bound.faults = None;
        assert_eq!(why(&evidence, "glibc:arenas=1"), None);
        assert_eq!(why(&evidence, "glibc:trim=1GiB"), None);
        assert_eq!(why(&sample::fragmented(), "glibc:trim=64KiB"), None);
    }
}
