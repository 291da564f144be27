//! Chooses which changes get a card, and in which order.

use crate::advise::candidate::{By, Candidate, Kind};
use crate::advise::facts::{Facts, Site};
use crate::advise::measured::{Measured, RECORDINGS_MIN};
use crate::advise::reason::Refusal;
use crate::advise::rules::condition::{
    growing_bytes, is_a_trade, is_too_large, Subject, MEMORY_NOISE,
};
use crate::advise::rules::{self, About, Action, Rule};
use mallard_measure::verdict::Verdict;
use mallard_trace::names::short;
use std::cmp::Reverse;

/// The maximum number of cards.
const CARDS_MAX: usize = 5;
/// Savings count as equal if the CPU times that remain after the changes differ by less than this
/// share.
const LEVEL: f64 = 0.03;
/// If the growing memory of a function is at least `MOST_OF_LIVE` of the live bytes at the peak,
/// the leak counts as a change that saves up to `LEAK` of the CPU time. A change that saves more
/// comes first, because a trace does not show whether growing memory is a leak or is needed until
/// the program ends.
const MOST_OF_LIVE: f64 = 0.5;
const LEAK: f64 = 0.1;
/// If a change saves more peak memory than the change of the first card, by at least this share of
/// the peak, that change gets the second card.
const MUCH_LESS_MEMORY: f64 = 0.1;
/// The memory of a change counts as small if it is below this multiple of the smallest memory that
/// any of the compared changes needs.
const MUCH_MEMORY: f64 = 1.1;

/// A change that may get a card.
#[derive(Clone, Copy)]
pub struct Change<'a> {
    /// The rule that proposed the change.
    pub rule: &'static Rule,
    /// The measured candidate. `None` for a leak.
    pub candidate: Option<&'a Candidate>,
    /// The site of a leak. `None` for other changes.
    pub site: Option<&'a Site>,
    /// Whether the card is for the memory that the change saves, and not for CPU time.
    pub is_for_memory: bool,
    /// The share of CPU time or memory that the change probably saves in the program. This share is
    /// larger than the share that a replay shows.
    likely: f64,
}

/// Chooses the changes that get a card, the most useful first. If another change saves much more
/// memory than the first change, that other change comes second. The list is empty if nothing
/// should change, or if the measurements do not decide.
pub fn chosen(evidence: &Measured) -> Vec<Change<'_>> {
    let all = if evidence.facts.is_broken { Vec::new() } else { changes(evidence) };
    let (mut left, mut chosen): (Vec<Change>, Vec<Change>) = (all.clone(), Vec::new());
    while let (Some(best), true) = (first(evidence, &left), chosen.len() < CARDS_MAX) {
        left.retain(|other| !is_same(evidence, &best, other));
        chosen.push(best);
    }
    if let Some(best) = chosen.first().and_then(|first| best_for_memory(evidence, first, &all)) {
        chosen.retain(|other| !is_same(evidence, &best, other));
        chosen.insert(1, best);
        chosen.truncate(CARDS_MAX);
    }
    chosen
}

/// Finds the change that saves the most memory. Returns `None` unless that change saves much more
/// memory than `first` and is for another place.
fn best_for_memory<'a>(
    evidence: &Measured,
    first: &Change<'a>,
    all: &[Change<'a>],
) -> Option<Change<'a>> {
    let saving = |change: &Change| saved_memory(evidence, change);
    let others = all.iter().filter(|other| !is_same(evidence, first, other));
    let best = others.max_by(|a, b| saving(a).total_cmp(&saving(b)))?;
    let is_for_memory = saving(best) >= saving(first).max(0.0) + MUCH_LESS_MEMORY;
    is_for_memory.then_some(Change { is_for_memory, ..*best })
}

/// Returns the memory that a change saves, as a share of the peak. A leak saves the memory that
/// grows.
fn saved_memory(evidence: &Measured, change: &Change) -> f64 {
    let memory = &evidence.facts.memory;
    match (change.candidate, change.site) {
        (Some(of), _) if of.gains_memory(evidence.facts.min_gain) => memory_share(of),
        (None, Some(site)) => {
            growing_bytes(&evidence.facts, site) as f64
                / memory.peak_rss.max(memory.live_peak).max(1) as f64
        }
        _ => 0.0,
    }
}

/// Returns all changes that the evidence allows and that save enough.
fn changes(evidence: &Measured) -> Vec<Change<'_>> {
    let mut all: Vec<Change> =
        evidence.candidates.iter().flat_map(|of| of_candidate(evidence, of)).collect();
    all.extend(leak(evidence));
    all
}

fn of_candidate<'a>(evidence: &'a Measured, of: &'a Candidate) -> Vec<Change<'a>> {
    if of.kind == Kind::Strategy {
        return strategy(evidence, of).into_iter().collect();
    }
    if of.never_ran() {
        return Vec::new();
    }
    let time = match of.kind {
        Kind::Malloc => "malloc-switch",
        _ => "glibc-variables",
    };
    let subject = Subject::Candidate(of);
    let change = |(id, likely): (&str, f64)| {
        let rule = rules::rule(id).filter(|rule| rule.applies(&evidence.facts, &subject))?;
        let is_for_memory = id == "fragmented-after-peak";
        Some(Change { rule, candidate: Some(of), site: None, is_for_memory, likely })
    };
    let both = [(time, likely(of)), ("fragmented-after-peak", memory_share(of))];
    both.into_iter().filter_map(change).collect()
}

/// Returns the CPU time that a candidate probably saves in the program. Runs of the program measure
/// this saving. A replay shows only a part of it, so figures from replays and from runs cannot be
/// compared directly.
fn likely(of: &Candidate) -> f64 {
    match of.by {
        By::Replay => crate::replay::likely(of.cpu.saving),
        By::Try | By::Plan => of.cpu.saving,
    }
}

/// Returns the memory that a candidate saves, as a share of the peak.
fn memory_share(of: &Candidate) -> f64 {
    let (_, (before, after)) = of.memory_saving();
    before.saturating_sub(after) as f64 / of.peak_bytes.0.max(before).max(1) as f64
}

/// Returns the change to a local allocator, if the evidence allows it. The change must save enough
/// CPU time, or much memory without a loss of CPU time.
fn strategy<'a>(evidence: &'a Measured, of: &'a Candidate) -> Option<Change<'a>> {
    let rule = of.rule.and_then(rules::rule)?;
    let gains_time = of.cpu.verdict == Verdict::Gain && of.cpu.saving >= evidence.facts.min_gain;
    let saves_memory = of.gains_memory(evidence.facts.min_gain)
        && memory_share(of) >= MUCH_LESS_MEMORY
        && of.peak_bytes.0.saturating_sub(of.peak_bytes.1) > MEMORY_NOISE
        && of.cpu.low > -evidence.facts.min_gain;
    let is_for_memory = !gains_time && saves_memory;
    let likely = if gains_time { likely(of) } else { 0.0 };
    let change = Change { rule, candidate: Some(of), site: None, is_for_memory, likely };
    ((gains_time || saves_memory) && why_not(evidence, rule, of).is_empty()).then_some(change)
}

/// Returns the reasons why a strategy must not be recommended, even if the strategy saves much. The
/// list is empty if there is no reason.
pub fn why_not(evidence: &Measured, rule: &Rule, of: &Candidate) -> Vec<Refusal> {
    let reasons = why_never(&evidence.facts, rule, of);
    match reasons.is_empty() && winks_out(of) {
        true => evidence.no_second_recording().into_iter().collect(),
        false => reasons,
    }
}

fn winks_out(of: &Candidate) -> bool {
    of.plan.as_ref().is_some_and(|plan| plan.rules.iter().any(|rule| rule.strategy.winks_out()))
}

/// Returns why a strategy must not be recommended even if a second recording agrees with the first.
fn why_never(facts: &Facts, rule: &Rule, of: &Candidate) -> Vec<Refusal> {
    let region = of.region.and_then(|place| facts.regions.get(place));
    let site = of.site.and_then(|place| facts.sites.get(place));
    let subject = match (region, site) {
        (Some(region), _) => Subject::Region(region),
        (None, Some(site)) => Subject::Site(site),
        _ => return vec![Refusal::UnknownBlocks],
    };
    // A plan for several sites names only the first site, which need not meet all conditions.
    let mut reasons: Vec<Refusal> = rule.failures(facts, &subject).collect();
    if !rule.applies(facts, &subject) && reasons.is_empty() && !is_for_many(of) {
        reasons.push(Refusal::NotShown);
    }
    let winks_out = winks_out(of);
    if let Some(account) = &of.account {
        reasons.extend(account.is_shared.then_some(Refusal::Shared));
        let dangles = account.escapes > 0 && (rule.winks_out() || winks_out);
        reasons.extend(dangles.then_some(Refusal::Dangling(account.escapes)));
    }
    reasons.extend((winks_out && !rule.winks_out()).then_some(Refusal::KeepsDestructors));
    reasons
}

/// Returns the plans with wink-out that would be recommended if there were a second recording.
pub fn lacking_recording(evidence: &Measured) -> impl Iterator<Item = &Candidate> {
    let would_be_advised = |of: &&Candidate| {
        let rule = of.rule.and_then(rules::rule).filter(|rule| rule.winks_out());
        of.gains(evidence.facts.min_gain)
            && rule.is_some_and(|rule| why_never(&evidence.facts, rule, of).is_empty())
    };
    let all = evidence.candidates.iter().filter(would_be_advised);
    all.filter(|_| evidence.recordings < RECORDINGS_MIN)
}

/// Returns whether the plan is for several sites.
fn is_for_many(of: &Candidate) -> bool {
    of.site.is_some() && of.plan.as_ref().is_some_and(|plan| plan.rules.len() > 1)
}

/// Finds the function whose memory grows most, if it grows enough.
fn leak(evidence: &Measured) -> Option<Change<'_>> {
    let rule = rules::rule("leak")?;
    let applies = |site: &&Site| rule.applies(&evidence.facts, &Subject::Site(site));
    let most = |site: &&Site| (growing_bytes(&evidence.facts, site), site.figures.live_bytes);
    let site = evidence.facts.sites.iter().filter(applies).max_by_key(most)?;
    let change =
        Change { rule, candidate: None, site: Some(site), is_for_memory: true, likely: 0.0 };
    // A leak of a small part of the live bytes comes after changes that save time.
    let growing = growing_bytes(&evidence.facts, site) as f64;
    let is_most = growing >= MOST_OF_LIVE * evidence.facts.memory.live_peak as f64;
    let likely = if is_most { saved_memory(evidence, &change).min(LEAK) } else { 0.0 };
    Some(Change { likely, ..change })
}

/// Chooses the change whose recommendation (card) comes first. Among changes that probably save
/// about as much as the best, prefers in this order: a change with acceptable memory; the change
/// that is the least work; a change after which all destructors still run; a change without a pool
/// that has to outlive the allocating calls; the largest saving. If destructors take much of the
/// time, most of the saving is from skipping them, so a change that skips them (wink-out) then has
/// no disadvantage.
fn first<'a>(evidence: &Measured, all: &[Change<'a>]) -> Option<Change<'a>> {
    let most = all.iter().map(|change| change.likely).max_by(f64::total_cmp)?;
    let is_near = |change: &Change| 1.0 - change.likely <= (1.0 - most) * (1.0 + LEVEL);
    let is_level = |change: &&Change| {
        is_near(change) || all.iter().any(|pool| is_near(pool) && is_level_region(pool, change))
    };
    let level: Vec<&Change> = all.iter().filter(is_level).collect();
    let memory = |change: &Change| change.candidate.map_or(0, |of| of.peak_bytes.1);
    let is_local = |change: &&&Change| change.candidate.is_some_and(|c| c.kind == Kind::Strategy);
    let least = level.iter().filter(is_local).map(|change| memory(change)).min().unwrap_or(0);
    let much = (MUCH_MEMORY * least as f64) as u64 + MEMORY_NOISE;
    level.into_iter().copied().min_by_key(|change| {
        let of = change.candidate;
        let is_local = of.is_some_and(|of| of.kind == Kind::Strategy);
        (
            of.is_some_and(is_too_large),
            of.is_some_and(is_a_trade),
            is_local && memory(change) > much,
            action(change).effort(),
            change.rule.winks_out() && !saves_destructors(evidence, change),
            change.rule.about == About::Site,
            Reverse((change.likely * 1e6) as i64),
        )
    })
}

/// Returns whether `pool` is a pool for sites, and `other` is for a region and saves about as much.
/// Savings are about the same if their intervals overlap, or if they differ by less than `LEVEL`.
fn is_level_region(pool: &Change, other: &Change) -> bool {
    let (Some(of), Some(region)) = (pool.candidate, other.candidate) else { return false };
    let is_near = region.cpu.high >= of.cpu.low || of.cpu.saving - region.cpu.saving < LEVEL;
    pool.rule.about == About::Site && other.rule.about == About::Region && is_near
}

/// Returns whether the frees at the ends of a region take so much time that the destructors which
/// call them matter. A replay of a plan with wink-out does not show the time of destructors.
fn saves_destructors(evidence: &Measured, change: &Change) -> bool {
    let region = change.candidate.and_then(|of| of.region);
    let region = region.and_then(|place| evidence.facts.regions.get(place));
    match (region, evidence.facts.program.cpu_ns) {
        (Some(region), Some(cpu)) => region.teardown_ns >= evidence.facts.min_gain * cpu.max(1.0),
        _ => false,
    }
}

/// Returns the kind of change that a card recommends. For a setting, the user only has to set
/// variables, even if the rule is about mallocs.
pub fn action(change: &Change) -> Action {
    match change.candidate.map(|of| of.kind) {
        Some(Kind::Variable) => Action::Set,
        _ => change.rule.action,
    }
}

/// Returns the function in which a change is made. `None` for the whole program.
fn function<'a>(evidence: &'a Measured, change: &Change<'a>) -> Option<&'a str> {
    let of_leak = change.site.map(|site| site.owner.function.as_str());
    change.candidate.and_then(|of| function_of(evidence, of)).or(of_leak)
}

/// Returns the function that a candidate changes. `None` for the whole program.
fn function_of<'a>(evidence: &'a Measured, of: &Candidate) -> Option<&'a str> {
    let region = of.region.and_then(|place| evidence.facts.regions.get(place));
    let site = of.site.and_then(|place| evidence.facts.sites.get(place));
    region.map(|region| region.function.as_str()).or(site.map(|site| site.owner.function.as_str()))
}

/// Returns whether `other` is another candidate of the same kind for the place of a change. The
/// place is the same if both are for the same function, for functions of which one calls the other,
/// or for the whole program. Such candidates share one card.
pub fn is_alternative(evidence: &Measured, change: &Change, other: &Candidate) -> bool {
    let Some(chosen) = change.candidate else { return false };
    let is_same_place = match (function_of(evidence, chosen), function_of(evidence, other)) {
        (Some(one), Some(other)) => one == other || calls(evidence, one, other),
        (None, None) => true,
        _ => false,
    };
    is_same_place && chosen.kind == other.kind && !std::ptr::eq(chosen, other)
}

/// Returns whether one card is enough for two changes. True for local allocators of the same
/// function, or of two functions if one calls the other, and for changes of the same kind to the
/// whole program.
fn is_same(evidence: &Measured, one: &Change, other: &Change) -> bool {
    let kind = |change: &Change| change.candidate.map(|of| of.kind);
    match (function(evidence, one), function(evidence, other)) {
        (Some(a), Some(b)) => kind(one) == kind(other) && (a == b || calls(evidence, a, b)),
        (None, None) => action(one) == action(other),
        _ => false,
    }
}

/// Returns whether both functions occur in the same call stack of a site.
fn calls(evidence: &Measured, one: &str, other: &str) -> bool {
    let (one, other) = (short(one), short(other));
    let has = |stack: &[String], name: &String| stack.contains(name);
    evidence.facts.sites.iter().any(|site| has(&site.stack, &one) && has(&site.stack, &other))
}

/// Returns the malloc or setting that saves the most in replays, if the program did not run under
/// that malloc or setting.
pub fn unrun(evidence: &Measured) -> Option<&Candidate> {
    let gains = |of: &&Candidate| of.never_ran() && of.gains(evidence.facts.min_gain);
    evidence.candidates.iter().filter(gains).max_by(|a, b| a.cpu.saving.total_cmp(&b.cpu.saving))
}

/// Returns the malloc or setting that seems to save the most, if the measurements do not decide
/// about it. More runs of the program may decide. Returns `None` if no such malloc or setting seems
/// to save enough.
pub fn to_try(evidence: &Measured) -> Option<&Candidate> {
    let whole = unsettled(evidence).filter(|of| of.kind != Kind::Strategy).chain(unrun(evidence));
    let promising = whole.filter(|of| of.cpu.saving >= evidence.facts.min_gain);
    promising.max_by(|a, b| a.cpu.saving.total_cmp(&b.cpu.saving))
}

/// Returns the candidates whose measurements do not decide whether they save enough.
pub fn unsettled(evidence: &Measured) -> impl Iterator<Item = &Candidate> {
    evidence.candidates.iter().filter(|of| {
        let may_be_advised = match (of.kind, of.rule.and_then(rules::rule)) {
            (Kind::Strategy, Some(rule)) => why_not(evidence, rule, of).is_empty(),
            (Kind::Strategy, None) => false,
            _ => true,
        };
        let is_open = of.cpu.verdict == Verdict::NotMeasurable && of.cpu.saving.is_finite();
        is_open && may_be_advised && !of.cannot_gain(evidence.facts.min_gain)
    })
}
