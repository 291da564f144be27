//! The plans to play: one for each rule, and each region or site to which the rule applies.

use super::condition::{finished, Subject};
use super::{About, Rule, RULES};
use crate::advise::evidence::{Evidence, Proposal, Site};
use mallard_trace::regions::Region;
use mallard_trace::replay::{self, End, Plan, Scope};
use std::cmp::Reverse;

/// The largest number of functions whose regions are played.
const REGIONS_MAX: usize = 12;
/// The largest number of functions whose sites are played alone.
const SITES_MAX: usize = 4;
/// The largest number of functions whose sites are played together.
const TOGETHER_MAX: usize = 6;

/// The plans that the rules propose: first plans for regions, then plans for sites.
pub fn plans(evidence: &Evidence) -> Vec<Proposal> {
    let mut all = regions(evidence);
    all.extend(sites(evidence));
    all
}

fn rules(about: About) -> impl Iterator<Item = &'static Rule> {
    static ALL: [Rule; 12] = RULES;
    ALL.iter().filter(move |rule| rule.about == about && rule.strategy > 0)
}

/// Plans for regions. The region with the most time in calls and frees comes first.
fn regions(evidence: &Evidence) -> Vec<Proposal> {
    let mut functions: Vec<&str> = Vec::new();
    let mut places: Vec<usize> = (0..evidence.regions.len()).collect();
    let most = |region: &Region| region.call_ns + region.teardown_ns;
    places.sort_by(|&a, &b| most(&evidence.regions[b]).total_cmp(&most(&evidence.regions[a])));
    for &place in &places {
        let function = evidence.regions[place].function.as_str();
        if !functions.contains(&function) {
            functions.push(function);
        }
    }
    let plans_of = |function: &&str| {
        let twins: Vec<usize> = places
            .iter()
            .copied()
            .filter(|&p| evidence.regions[p].function == **function)
            .collect();
        let plan = move |rule: &'static Rule| {
            let place = best_of(evidence, rule, &twins)?;
            proposal_of_region(evidence, rule, place)
        };
        rules(About::Region).filter_map(plan).collect::<Vec<_>>()
    };
    let with_plans = functions.iter().map(plans_of).filter(|plans| !plans.is_empty());
    with_plans.take(REGIONS_MAX).flatten().collect()
}

/// The region with the most instances to which a rule applies, among the regions of one function:
/// `twins`, which differ in what ends their instances.
fn best_of(evidence: &Evidence, rule: &Rule, twins: &[usize]) -> Option<usize> {
    let applies =
        |&place: &usize| rule.applies(evidence, &Subject::Region(&evidence.regions[place]));
    twins.iter().copied().filter(applies).min_by_key(|&place| {
        let region = &evidence.regions[place];
        (Reverse(finished(region)), Reverse(region.escapes), region.ends != End::Drained, place)
    })
}

fn proposal_of_region(evidence: &Evidence, rule: &Rule, place: usize) -> Option<Proposal> {
    let region = &evidence.regions[place];
    let strategy = rule.strategy()?;
    let scope = Scope::Region(region.function.clone());
    let of = replay::Rule { scope, strategy, ends: Some(region.ends), first_chunk: 0 };
    let name = format!("{strategy} in {}", region.shown);
    let plan = Plan { name, rules: vec![of], ..Plan::default() };
    Some(Proposal { rule: rule.id, plan, region: Some(place), site: None })
}

/// Plans for sites: one for each function, and one for all of them together, because the sites of
/// one structure are often in several functions.
fn sites(evidence: &Evidence) -> Vec<Proposal> {
    let mut found: Vec<(usize, &Rule)> = Vec::new();
    let mut places: Vec<usize> = (0..evidence.sites.len()).collect();
    places.sort_by_key(|&place| Reverse(evidence.sites[place].figures.call_ns));
    for place in places {
        let site = &evidence.sites[place];
        let applies = |rule: &&Rule| rule.applies(evidence, &Subject::Site(site));
        let is_new = |(other, _): &(usize, &Rule)| evidence.sites[*other].function != site.function;
        let is_named = !site.function.is_empty() && !is_unknown_in_a_library(site);
        let is_structure = is_named && !site.passes_on;
        if let (true, true, Some(rule)) =
            (is_structure, found.iter().all(is_new), rules(About::Site).find(applies))
        {
            found.push((place, rule));
        }
    }
    let alone = found.iter().take(SITES_MAX);
    let alone = alone.filter_map(|&(place, rule)| proposal_of_sites(evidence, rule, &[place]));
    let mut all: Vec<Proposal> = alone.collect();
    if found.len() > 1 {
        let together: Vec<usize> =
            found.iter().take(TOGETHER_MAX).map(|&(place, _)| place).collect();
        let rule = super::rule("multipool");
        all.extend(rule.and_then(|rule| proposal_of_sites(evidence, rule, &together)));
    }
    all
}

/// Whether a site is a place without a name in a library. Nobody could change such a place.
fn is_unknown_in_a_library(of: &Site) -> bool {
    of.function.contains("+0x") && of.module.contains(".so")
}

fn proposal_of_sites(evidence: &Evidence, rule: &Rule, places: &[usize]) -> Option<Proposal> {
    let strategy = rule.strategy()?;
    let of = |site: &Site| replay::Rule {
        scope: Scope::Site(site.function.clone()),
        strategy,
        ends: None,
        first_chunk: 0,
    };
    let sites: Vec<&Site> = places.iter().map(|&place| &evidence.sites[place]).collect();
    let name = match sites[..] {
        [site] => format!("{strategy} for {}", site.shown),
        _ => format!("{strategy} for {} and {} more", sites[0].shown, sites.len() - 1),
    };
    let rules = sites.into_iter().map(of).collect();
    let plan = Plan { name, rules, ..Plan::default() };
    Some(Proposal { rule: rule.id, plan, region: None, site: Some(places[0]) })
}
