//! Decides what the cards (recommendations) contain, before any text is written. The last of the
//! four `mallard advise` steps begins with this decision.

use super::choose::{chosen, is_alternative, lacking_recording, unrun, unsettled, why_not, Change};
use crate::advise::candidate::{Candidate, Dropped, Name};
use crate::advise::measured::Measured;
use crate::advise::reason::{Doubt, Question, Reason, Refusal};
use crate::advise::rules::condition::{is_too_large, Subject, MEMORY_NOISE};
use crate::advise::rules::{self, About, Rule, RULES};
use mallard_measure::output::units::percent;
use mallard_measure::verdict::Verdict;
use mallard_trace::regions::Region;

/// The maximum number of alternatives on a card.
const ALTERNATIVES_MAX: usize = 3;

/// What the cards recommend.
pub enum Advice<'a> {
    /// Nothing, because the user asked for a strategy, and no other change was considered.
    Forced,
    /// To make these changes, the most useful change first. Each change comes with the other
    /// changes that its card mentions.
    Change(Vec<(Change<'a>, Vec<Other<'a>>)>),
    /// To change nothing.
    Leave(Vec<Other<'a>>),
    /// To change nothing yet, because the measurements leave these questions open.
    Undecided(Vec<Open<'a>>, Vec<Other<'a>>),
}

/// Why the measurements do not decide whether a change helps.
#[derive(Clone, Copy)]
pub enum Open<'a> {
    /// The recorded run is perhaps not typical of the program.
    Doubt(&'a Doubt),
    /// A question that is not decided.
    Question(&'a Question),
    /// Two measurements of the unchanged program differ by this share.
    Noise(f64),
    /// The user has interrupted the measurement.
    Interrupted,
    /// The measurements do not decide whether the candidate saves enough.
    Unsettled(&'a Candidate),
    /// The program did not run under a malloc that saves enough in replays.
    NotRun(&'a Candidate),
    /// A plan with wink-out needs a second recording.
    NeedsRecording(&'a Candidate),
}

/// Another change, and why it is not recommended.
pub enum Other<'a> {
    /// A candidate for the same function as the change of the card.
    Alternative(&'a Candidate, Drawback),
    /// Wink-out must not be used.
    NoWinkOut(Refusal),
    /// A plan with wink-out was not measured.
    Unmeasured(&'a Dropped),
    /// The program does not work under a malloc.
    Breaks(&'a Dropped),
    /// A plan with wink-out needs a second recording.
    NeedsRecording(&'a Candidate),
    /// A function gets no local allocator.
    NotLocal(&'a Region, Refusal),
    /// The program did not run under a malloc that saves enough in replays.
    NotRun(&'a Candidate),
    /// A candidate was measured, but must not be recommended for this reason, or does not save
    /// enough.
    Measured(&'a Candidate, Option<Refusal>),
    /// This number of other candidates was measured.
    MoreMeasured(usize),
    /// A single replay of a candidate showed this saving before the user interrupted the command.
    Played(&'a Dropped, f64),
    /// This number of other candidates was not measured.
    MoreDropped(usize),
}

/// Why a candidate does not come before the change of a card.
pub enum Drawback {
    /// The candidate must not be recommended.
    Refused(Refusal),
    /// The candidate needs much more memory.
    TooLarge,
    /// The candidate is not known to save time.
    NoGain,
    /// The candidate saves less memory.
    LessMemory,
    /// The candidate uses wink-out, so that no block is freed individually.
    FreesNone,
    /// The candidate saves as much as the change.
    NoMore,
    /// The candidate saves less.
    Less,
    /// The candidate needs this many bytes more.
    MoreBytes(u64),
    /// The candidate has a larger measured saving, but the change probably saves more in the
    /// program than its replay shows.
    LikelyLess,
}

/// Decides what the cards recommend.
pub fn decide(evidence: &Measured) -> Advice<'_> {
    if evidence.forced.is_some() {
        return Advice::Forced;
    }
    let changes = chosen(evidence).into_iter();
    let mut changes: Vec<_> =
        changes.map(|change| (change, others_of_change(evidence, &change))).collect();
    if let Some((_, others)) = changes.first_mut() {
        others.extend(unrun(evidence).map(Other::NotRun));
        return Advice::Change(changes);
    }
    let others = others_of_program(evidence);
    match open(evidence) {
        open if open.is_empty() => Advice::Leave(others),
        open => Advice::Undecided(open, others),
    }
}

/// Returns why the measurements do not decide whether a change helps. The upper limit of any saving
/// leaves out locality. If this limit shows that no change can help, only doubts about the recorded
/// run count.
fn open(evidence: &Measured) -> Vec<Open<'_>> {
    let mut all: Vec<Open> = evidence.doubts().map(Open::Doubt).collect();
    if evidence.bound().share.is_some_and(|share| share < evidence.facts.min_gain) {
        return all;
    }
    all.extend(evidence.open_questions().map(Open::Question));
    let candidates: Vec<&Candidate> = unsettled(evidence).collect();
    all.extend(evidence.noise.filter(|_| !candidates.is_empty()).map(Open::Noise));
    all.extend(evidence.interrupted.then_some(Open::Interrupted));
    let promising = candidates.into_iter().filter(|of| of.cpu.saving >= evidence.facts.min_gain);
    all.extend(promising.map(Open::Unsettled));
    all.extend(unrun(evidence).map(Open::NotRun));
    all.extend(lacking_recording(evidence).map(Open::NeedsRecording));
    all
}

/// Returns the reasons why other changes are not recommended. The other changes are candidates for
/// the same function, and rules that do not apply.
fn others_of_change<'a>(evidence: &'a Measured, change: &Change<'a>) -> Vec<Other<'a>> {
    let of = change.candidate;
    let alternatives = evidence.candidates.iter();
    let mut alternatives: Vec<&Candidate> =
        alternatives.filter(|other| is_alternative(evidence, change, other)).collect();
    alternatives.sort_by(|a, b| b.cpu.saving.total_cmp(&a.cpu.saving));
    let with_drawback =
        |other| Some(Other::Alternative(other, drawback(evidence, change, of?, other)));
    let mut all: Vec<Other> =
        alternatives.into_iter().take(ALTERNATIVES_MAX).filter_map(with_drawback).collect();
    let region = of.and_then(|of| of.region).and_then(|place| evidence.facts.regions.get(place));
    match region {
        Some(region) if !change.rule.winks_out() => all.extend(no_wink_out(evidence, region)),
        None if change.rule.strategy == 0 => {
            all.extend(evidence.breaking().map(Other::Breaks));
            all.extend(lacking_recording(evidence).map(Other::NeedsRecording));
            all.extend(not_local(evidence));
        }
        _ => {}
    }
    all
}

fn drawback(
    evidence: &Measured,
    change: &Change,
    chosen: &Candidate,
    other: &Candidate,
) -> Drawback {
    let rule = other.rule.and_then(rules::rule);
    let refused = rule.and_then(|rule| why_not(evidence, rule, other).into_iter().next());
    if let Some(refusal) = refused {
        return Drawback::Refused(refusal);
    }
    let more = other.peak_bytes.1.saturating_sub(chosen.peak_bytes.1);
    let needs_more = other.memory_by == chosen.memory_by && more > MEMORY_NOISE;
    let skips_more = rule.is_some_and(Rule::winks_out) && !change.rule.winks_out();
    let looks_equal = percent(other.cpu.saving) == percent(chosen.cpu.saving);
    match other.cpu.saving > chosen.cpu.saving {
        _ if is_too_large(other) => Drawback::TooLarge,
        _ if other.cpu.verdict != Verdict::Gain => Drawback::NoGain,
        _ if change.rule.id == "fragmented-after-peak" => Drawback::LessMemory,
        true if skips_more => Drawback::FreesNone,
        _ if looks_equal && !needs_more => Drawback::NoMore,
        false if !looks_equal => Drawback::Less,
        _ if needs_more => Drawback::MoreBytes(more),
        _ => Drawback::LikelyLess,
    }
}

/// Returns the reason why wink-out is not recommended for a region. Either a condition fails, a
/// second recording is missing, or no plan with wink-out was measured. Returns `None` if no reason
/// is known.
fn no_wink_out<'a>(evidence: &'a Measured, region: &Region) -> Option<Other<'a>> {
    let rule = rules::rule("wink-out-arena")?;
    let failure = rule.failures(&evidence.facts, &Subject::Region(region)).next();
    let refusal =
        failure.or_else(|| evidence.no_second_recording().filter(|_| evidence.no_second.is_some()));
    if let Some(refusal) = refusal {
        return Some(Other::NoWinkOut(refusal));
    }
    let is_it = |of: &&Dropped| {
        let place = of.region.and_then(|place| evidence.facts.regions.get(place));
        place.is_some_and(|place| place.function == region.function)
            && matches!(&of.name, Name::Plan(strategy, _) if strategy.winks_out())
    };
    evidence.dropped.iter().find(is_it).map(Other::Unmeasured)
}

/// Returns what a card mentions if nothing is recommended, which is the candidates that save most
/// and the number of the other candidates.
pub fn others_of_program(evidence: &Measured) -> Vec<Other<'_>> {
    let measured = evidence.candidates.iter().filter(|of| of.cpu.saving.is_finite());
    let mut best: Vec<&Candidate> = measured.collect();
    best.sort_by(|a, b| b.cpu.saving.total_cmp(&a.cpu.saving));
    let refused = |of: &Candidate| {
        let rule = of.rule.and_then(rules::rule)?;
        why_not(evidence, rule, of).into_iter().next()
    };
    let (room, more) =
        (ALTERNATIVES_MAX.saturating_sub(best.len()), best.len().saturating_sub(ALTERNATIVES_MAX));
    let single = |of: &'_ Dropped| match of.why {
        Reason::Interrupted(saving) => saving,
        _ => None,
    };
    let played = evidence.dropped.iter().filter_map(|of| Some(Other::Played(of, single(of)?)));
    let played: Vec<Other> = played.take(room).collect();
    let others = evidence.dropped.len() - played.len() - evidence.breaking().count();
    let mut all: Vec<Other> = evidence.breaking().map(Other::Breaks).collect();
    all.extend(best.iter().take(ALTERNATIVES_MAX).map(|of| Other::Measured(of, refused(of))));
    all.extend((more > 0).then_some(Other::MoreMeasured(more)));
    all.extend(played);
    all.extend((others > 0).then_some(Other::MoreDropped(others)));
    all.extend(not_local(evidence));
    all
}

/// Returns why no rule applies to two of the functions that allocate most, so that they get no
/// local allocator.
fn not_local(evidence: &Measured) -> Vec<Other<'_>> {
    let facts = &evidence.facts;
    let Some(rule) = rules::rule("multipool-over-arena") else { return Vec::new() };
    let Some(cpu) = facts.program.cpu_ns.filter(|&cpu| cpu > 0.0) else { return Vec::new() };
    // A function may have several regions, whose instances end in different ways. A rule that
    // applies to one of them is enough.
    let applies = |region: &Region| {
        let of_regions = RULES.into_iter().filter(|rule| rule.about == About::Region);
        of_regions.into_iter().any(|rule| rule.applies(facts, &Subject::Region(region)))
    };
    let has_rule = |region: &Region| {
        facts.regions.iter().any(|twin| twin.function == region.function && applies(twin))
    };
    let is_large = |region: &&Region| region.call_ns >= facts.min_gain * cpu && !has_rule(region);
    // Regions that differ in what ends their instances have the same name here, and so do functions
    // that differ in the arguments of a template. One line is enough for all of them.
    let mut found: Vec<(&Region, Refusal)> = Vec::new();
    for region in facts.regions.iter().filter(is_large) {
        let is_new = found.iter().all(|(other, _)| other.shown != region.shown);
        let why = rule.failures(facts, &Subject::Region(region)).next().filter(|_| is_new);
        found.extend(why.map(|why| (region, why)));
    }
    found.into_iter().take(2).map(|(region, why)| Other::NotLocal(region, why)).collect()
}
