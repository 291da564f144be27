//! Orders candidates by the savings in single replays. The budget decides how many of the first
//! candidates are measured.

use super::budget::TRIED_MAX;
use super::candidate::{Account, Kind, Name};
use super::facts::{Facts, Site};
use super::proposals::{most, Proposal};
use super::rules;
use mallard_trace::replay::Scope;

/// In single replays, savings count as equal if they differ by less than this share of the CPU
/// time.
const LEVEL: f64 = 0.03;
/// Before plans are replayed, the limit of each further plan for a function is multiplied by this
/// factor.
const NEXT_OF_PLACE: f64 = 0.6;

/// Orders plans by the upper limit of their saving, before any of them is replayed. The limit is
/// the time of the calls, pages and frees that a plan changes. Plans for the same function often
/// save about the same, so each further plan for a function counts less than the one before.
pub fn by_promise(facts: &Facts, plans: Vec<Proposal>) -> Vec<Proposal> {
    let mut places: Vec<&str> = Vec::new();
    let mut promises = Vec::new();
    for plan in &plans {
        let place = plan
            .region
            .map_or(plan.plan.name.as_str(), |place| facts.regions[place].function.as_str());
        let others = places.iter().filter(|&&other| other == place).count();
        places.push(place);
        promises.push(limit(facts, plan) * NEXT_OF_PLACE.powi(others as i32));
    }
    let mut all: Vec<(f64, Proposal)> = promises.into_iter().zip(plans).collect();
    all.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    all.into_iter().map(|(_, plan)| plan).collect()
}

/// Returns the upper limit of what a plan saves, as a share of the CPU time. Returns 1 if the limit
/// is unknown.
pub fn limit(facts: &Facts, plan: &Proposal) -> f64 {
    if plan.region.is_some() {
        return most(facts, plan.region).unwrap_or(1.0);
    }
    let is_in_plan = |site: &&Site| {
        plan.plan.rules.iter().any(|rule| rule.scope == Scope::Site(site.function.clone()))
    };
    let calls: i64 = facts.sites.iter().filter(is_in_plan).map(|of| of.figures.call_ns).sum();
    facts.program.cpu_ns.map_or(1.0, |cpu| (calls as f64 / cpu.max(1.0)).min(1.0))
}

/// A candidate that is to be measured.
pub struct Entry {
    /// The number of the candidate in the replay session.
    pub number: usize,
    pub name: Name,
    pub kind: Kind,
    pub proposal: Option<Proposal>,
    pub account: Option<Account>,
}

impl Entry {
    /// Returns whether the rule of the candidate recommends wink-out.
    pub fn winks_out(&self) -> bool {
        let rule = self.proposal.as_ref().and_then(|proposal| rules::rule(proposal.rule));
        rule.is_some_and(rules::Rule::winks_out)
    }

    /// Returns the region of the plan, as an index in `Facts::regions`.
    pub fn region(&self) -> Option<usize> {
        self.proposal.as_ref().and_then(|proposal| proposal.region)
    }

    /// Returns the site of the plan, as an index in `Facts::sites`.
    pub fn site(&self) -> Option<usize> {
        self.proposal.as_ref().and_then(|proposal| proposal.site)
    }
}

/// A candidate after a single replay.
pub struct Piloted {
    pub entry: Entry,
    /// The saving of CPU time. `None` if there was no time for the replay.
    pub saving: Option<f64>,
    /// The saving by which `rank` has ordered the candidate.
    order: f64,
    /// The peak of the heap's bytes.
    pub peak: f64,
}

impl Piloted {
    /// Adds the result of a single replay to a candidate. `play` is the saving of CPU time and the
    /// peak of the heap, if the candidate was replayed.
    pub fn new(entry: Entry, play: Option<(f64, f64)>) -> Piloted {
        let peak = play.map_or(f64::INFINITY, |(_, peak)| peak);
        let saving = play.map(|(saving, _)| saving);
        Piloted { entry, saving, order: saving.unwrap_or(f64::NEG_INFINITY), peak }
    }

    /// Returns the saving that decides the position in the order. A pool for sites has to outlive
    /// the calls, so a pool is a larger change than an allocator for each call. If both seem to
    /// save about the same, the allocator for each call comes first.
    fn place(&self) -> f64 {
        let is_for_sites = self.entry.proposal.as_ref().is_some_and(|of| of.region.is_none());
        self.order - if is_for_sites { LEVEL } else { 0.0 }
    }

    /// Returns whether the candidate has the kind `kind` and seems to save at least `min_gain`.
    fn gains(&self, kind: Kind, min_gain: f64) -> bool {
        self.entry.kind == kind && self.order >= min_gain
    }
}

/// The candidates that must be at the front of the order (so that they are measured first), in
/// addition to the best plan and the best malloc.
#[derive(Clone, Copy, Default)]
pub struct Needed {
    /// Whether the best plan without wink-out must be at the front, because such a plan can be
    /// recommended even without a second recording.
    pub runs_destructors: bool,
    /// Whether the candidate with the smallest peak must be at the front.
    pub saves_memory: bool,
}

/// Orders candidates by their savings in single replays. The best plan, the best malloc and the
/// candidates in `needed` come first, so that the first few candidates contain all of them.
pub fn rank(mut all: Vec<Piloted>, needed: Needed) -> Vec<Piloted> {
    let orders: Vec<f64> = all.iter().map(|of| order(of, &all)).collect();
    all.iter_mut().zip(orders).for_each(|(of, order)| of.order = order);
    all.sort_by_key(|of| !of.entry.winks_out());
    all.sort_by(|a, b| b.place().total_cmp(&a.place()));
    let place = |is_it: &dyn Fn(&Entry) -> bool| all.iter().position(|of| is_it(&of.entry));
    let mut first = Vec::new();
    first.extend(place(&|entry| entry.kind == Kind::Strategy));
    if needed.runs_destructors {
        first.extend(place(&|entry| entry.kind == Kind::Strategy && !entry.winks_out()));
    }
    first.extend(place(&|entry| entry.kind != Kind::Strategy));
    if needed.saves_memory {
        first.extend((0..all.len()).min_by(|&a, &b| all[a].peak.total_cmp(&all[b].peak)));
    }
    let mut numbered: Vec<_> = all.into_iter().enumerate().collect();
    numbered.sort_by_key(|(place, _)| !first.contains(place));
    numbered.into_iter().map(|(_, of)| of).collect()
}

/// Returns the saving by which a candidate is ordered. A plan with wink-out makes fewer calls than
/// the same allocator that frees its blocks one by one, so wink-out cannot be slower. If a single
/// replay with wink-out is slower, the difference is noise, and the saving without wink-out counts.
fn order(of: &Piloted, all: &[Piloted]) -> f64 {
    let Some(saving) = of.saving else { return f64::NEG_INFINITY };
    let plain = all.iter().filter(|other| is_without_wink_out(&other.entry, &of.entry));
    plain.filter_map(|other| other.saving).fold(saving, f64::max)
}

/// Returns whether `of` winks out, and `plain` is the same allocator for the same function that
/// frees its blocks one by one.
fn is_without_wink_out(plain: &Entry, of: &Entry) -> bool {
    let first = |entry: &Entry| entry.proposal.as_ref()?.plan.rules.first().cloned();
    let (Some(other), Some(rule)) = (first(plain), first(of)) else { return false };
    rule.strategy.winks_out()
        && !other.strategy.winks_out()
        && other.strategy.allocator() == rule.strategy.allocator()
        && other.scope == rule.scope
}

/// Puts the best plan in front of mallocs that saved more in a single replay, and returns the names
/// of the mallocs that seem to have a gain. Called if there is time to measure only one candidate
/// by replay, because runs of the program can still measure mallocs, but not plans. Changes nothing
/// if no plan seems to have a gain.
pub fn prefer_plan(ranked: &mut [Piloted], min_gain: f64) -> Vec<String> {
    let best = ranked.iter().position(|of| of.gains(Kind::Strategy, min_gain));
    let Some(place) = best else { return Vec::new() };
    ranked[..=place].rotate_right(1);
    let mallocs = ranked.iter().filter(|of| of.gains(Kind::Malloc, min_gain));
    mallocs.take(TRIED_MAX).map(|of| of.entry.name.to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advise::proposals::plans;
    use mallard_trace::regions::Region;

    fn piloted(name: &str, kind: Kind, saving: f64) -> Piloted {
        let name = name.into();
        let entry = Entry { number: 0, name, kind, proposal: None, account: None };
        Piloted::new(entry, Some((saving, 0.0)))
    }

    /// Returns the plans for the sample `document`, each with its saving in a single replay.
    fn of_document(saving: impl Fn(&str) -> Option<f64>) -> Vec<Piloted> {
        plans_of(&rules::sample::document().facts, saving)
    }

    fn plans_of(facts: &Facts, saving: impl Fn(&str) -> Option<f64>) -> Vec<Piloted> {
        let proposals = plans(facts).into_iter().enumerate();
        let plan = |(number, proposal): (usize, Proposal)| {
            let (name, kind) = (proposal.name.clone(), Kind::Strategy);
            let play = saving(&name.short()).map(|saving| (saving, 0.0));
            let proposal = Some(proposal);
            Piloted::new(Entry { number, name, kind, proposal, account: None }, play)
        };
        proposals.map(plan).collect()
    }

    fn first(ranked: &[Piloted]) -> (String, Option<f64>) {
        (ranked[0].entry.name.short(), ranked[0].saving)
    }

    #[test]
    fn plans_are_prepared_in_the_order_of_their_possible_savings() {
        let mut evidence = rules::sample::document();
        let small = evidence.facts.regions[0].clone();
        let name = "small()".to_string();
        let (call_ns, teardown_ns) = (small.call_ns / 3.0, small.teardown_ns / 3.0);
        evidence.facts_mut().regions.push(Region { function: name, call_ns, teardown_ns, ..small });
        let names = |plans: Vec<Proposal>| {
            let of = |plan: Proposal| format!("{} {}", plan.rule, plan.region.unwrap_or(9));
            plans.into_iter().map(of).collect::<Vec<_>>()
        };
        let order = names(by_promise(&evidence.facts, plans(&evidence.facts)));
        assert_eq!(order[..2], ["wink-out-arena 0", "arena 0"], "{order:?}");
        let first_of_small = order.iter().position(|name| name == "wink-out-arena 1").unwrap();
        let last = order.iter().position(|name| name == "multipool-over-arena 0");
        assert!(last.is_none_or(|last| first_of_small < last), "{order:?}");
    }

    #[test]
    fn if_only_one_candidate_can_be_replayed_it_is_a_plan_and_mallocs_are_tried_in_runs() {
        let ranked = |of_plan| {
            vec![
                piloted("mimalloc", Kind::Malloc, 0.3),
                piloted("AS7", Kind::Strategy, of_plan),
                piloted("glibc:arenas=1", Kind::Variable, 0.1),
                piloted("jemalloc", Kind::Malloc, 0.01),
            ]
        };
        let mut both = ranked(0.2);
        assert_eq!(prefer_plan(&mut both, 0.02), ["mimalloc"]);
        assert_eq!(first(&both).0, "AS7");
        let mut useless = ranked(0.01);
        assert_eq!(prefer_plan(&mut useless, 0.02), Vec::<String>::new());
        assert_eq!(first(&useless).0, "mimalloc");
    }

    #[test]
    fn an_allocator_with_wink_out_ranks_above_the_same_one_without_and_its_measured_saving_stays() {
        let saving = |name: &str| Some(if name == "AS3" { 0.3 } else { 0.2 });
        let ranked = rank(of_document(saving), Needed::default());
        assert_eq!(first(&ranked), ("AS4".to_string(), Some(0.2)));
        // Wink-out also comes before the same allocator without wink-out if wink-out had the worse
        // single replay.
        let saving = |name: &str| Some(if name == "AS3" { 0.3 } else { 0.01 });
        let mut alone = rank(of_document(saving), Needed::default());
        prefer_plan(&mut alone, 0.02);
        assert_eq!(first(&alone), ("AS4".to_string(), Some(0.01)));
        // AS11 has another allocator than AS4, so AS4 does not come before it.
        let saving = |name: &str| Some(if name == "AS11" { 0.3 } else { 0.2 });
        assert_ne!(first(&rank(of_document(saving), Needed::default())).0, "AS4");
    }

    #[test]
    fn a_pool_for_allocation_sites_ranks_below_an_arena_that_seems_to_save_about_as_much() {
        let sites = rules::sample::structure((16, 64)).facts.sites.clone();
        let evidence = rules::sample::with(rules::sample::document(), |facts| facts.sites = sites);
        let best = |of_pool| {
            let saving = |name: &str| Some(if name == "AS7" { of_pool } else { 0.26 });
            first(&rank(plans_of(&evidence.facts, saving), Needed::default())).0
        };
        assert_eq!(best(0.27), "AS4");
        assert_eq!(best(0.30), "AS7");
    }

    #[test]
    fn a_wink_out_that_was_not_replayed_is_not_ranked_first() {
        let saving = |name: &str| (name != "AS4").then_some(0.2);
        let ranked = rank(of_document(saving), Needed::default());
        let of_as4 = ranked.iter().find(|of| of.entry.name.short() == "AS4").unwrap();
        assert!(first(&ranked).0 != "AS4" && of_as4.saving.is_none());
    }

    #[test]
    fn the_final_candidates_include_a_plan_a_malloc_and_required_candidates() {
        let all = || {
            let mut all = of_document(|name| Some(if name == "AS4" { 0.5 } else { 0.4 }));
            all.push(piloted("mimalloc", Kind::Malloc, 0.1));
            all.push(piloted("tcmalloc", Kind::Malloc, 0.2));
            all.iter_mut().for_each(|of| of.peak = 9.0);
            all.iter_mut().find(|of| of.entry.name.short() == "mimalloc").unwrap().peak = 1.0;
            all
        };
        let kinds = |needed| {
            let ranked = rank(all(), needed);
            let kind = |of: &Piloted| (of.entry.kind, of.entry.winks_out());
            ranked.iter().take(3).map(kind).collect::<Vec<_>>()
        };
        let plain = kinds(Needed::default());
        assert_eq!(plain[..2], [(Kind::Strategy, true), (Kind::Malloc, false)]);
        let with_destructors = kinds(Needed { runs_destructors: true, ..Needed::default() });
        assert!(with_destructors.contains(&(Kind::Strategy, false)), "{with_destructors:?}");
        let has_least = |needed| rank(all(), needed)[..3].iter().any(|of| of.peak == 1.0);
        assert!(has_least(Needed { saves_memory: true, ..Needed::default() }));
        assert!(!has_least(Needed::default()));
    }
}
