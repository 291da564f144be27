//! The sentences of the two kinds of cards that change nothing: one says to leave the allocator as it
//! is, the other says that the measurements do not decide.

use super::choose;
use super::words::{judged, named, share, too_large, ALTERNATIVES_MAX, BOUND_MAX};
use crate::advise::evidence::{Candidate, Evidence};
use crate::advise::rules::condition::Subject;
use crate::advise::rules::{self, About, Rule, RULES};
use crate::output::units::{budget, percent, plural, time};
use crate::verdict::Verdict;
use mallard_trace::regions::Region;
use std::time::Duration;

/// A run with less CPU time than this is too short to show small differences.
const SHORT_RUN_NS: f64 = 50e6;
/// With less noise than this, a card proposes a larger least gain.
const NOISE_TO_ACCEPT: f64 = 0.1;

/// Why nothing should be changed, in a sentence that stands alone.
pub fn leave(evidence: &Evidence) -> String {
    let name = &evidence.program.name;
    let least = percent(evidence.min_gain);
    let measured = evidence.candidates.iter().map(|of| of.cpu.saving).filter(|s| s.is_finite());
    let count = measured.clone().count();
    let best = measured.max_by(f64::total_cmp);
    match (evidence.bound.share, best) {
        (Some(share), _) if share < evidence.min_gain => format!(
            "Leave the allocator of {name} as it is: all its work on memory takes at most {} of \
             the CPU time, locality aside, and a change counts from {least} on.",
            percent(share)
        ),
        (share, Some(best)) if best < evidence.min_gain => format!(
            "Leave the allocator of {name} as it is: {}, and a change counts from {least} on{}.",
            best_of(count, best),
            most(share)
        ),
        (share, _) => format!(
            "Leave the allocator of {name} as it is: no change was found that is safe and saves \
             {least} of the CPU time{}.",
            most(share)
        ),
    }
}

/// What the measured change that saves most saves, by the number of measured changes.
fn best_of(count: usize, saving: f64) -> String {
    match (count, saving >= 0.0) {
        (1, true) => {
            format!("the one change that was measured saves {} of the CPU time", percent(saving))
        }
        (1, false) => "the one change that was measured saves no CPU time".to_string(),
        (_, true) => format!(
            "the best of {count} changes that were measured saves {} of the CPU time",
            percent(saving)
        ),
        (_, false) => format!("none of the {count} changes that were measured saves CPU time"),
    }
}

/// Why the measurements do not decide whether a change helps, in a sentence that stands alone.
pub fn undecided(evidence: &Evidence, reasons: &[String]) -> String {
    let first = reasons.first().map_or("", String::as_str);
    let has_lacks = !evidence.lacks.is_empty() || evidence.recording_needs.is_some();
    let why = match (evidence.proposed.filter(|_| has_lacks), evidence.noise) {
        _ if evidence.interrupted => "the measurement was interrupted".to_string(),
        _ if !evidence.doubts.is_empty() || evidence.records_all.is_some() => first.to_string(),
        (Some(proposed), _) => format!(
            "the time was too short, and --budget {} probably decides",
            budget(proposed)
        ),
        (None, Some(noise)) => format!(
            "on this machine, two measurements of the unchanged program differ by up to {}, and a saving counts from {} on",
            percent(noise),
            percent(evidence.min_gain)
        ),
        (None, None) => first.to_string(),
    };
    let name = &evidence.program.name;
    format!("It is not decided whether {name} should change its allocator: {why}.")
}

/// The upper limit of what any allocator can save, as the end of a sentence. Empty if the limit is near
/// the whole CPU time, because such a limit tells nothing.
fn most(share: Option<f64>) -> String {
    match share {
        Some(share) if share < BOUND_MAX => {
            format!("; all its work on memory takes at most {}, locality aside", percent(share))
        }
        Some(_) => String::new(),
        None => "; the most that is possible is unknown".to_string(),
    }
}

/// The measurements on cards that change nothing: the candidates that save most, the number of other
/// candidates, and the number of dropped ones.
pub fn measured(evidence: &Evidence) -> Vec<String> {
    let mut best: Vec<&Candidate> =
        evidence.candidates.iter().filter(|of| of.cpu.saving.is_finite()).collect();
    best.sort_by(|a, b| b.cpu.saving.total_cmp(&a.cpu.saving));
    let line = |of: &&Candidate| {
        let refused = of.rule.and_then(rules::rule).map(|rule| choose::why_not(evidence, rule, of));
        let why = refused.and_then(|reasons| reasons.into_iter().next());
        let why = why.or_else(|| too_large(of)).map_or(String::new(), |why| format!("; {why}"));
        format!("{}: {}{why}", saves(of), of.cpu.verdict)
    };
    let mut lines: Vec<String> = best.iter().take(ALTERNATIVES_MAX).map(line).collect();
    lines.extend(match best.len().saturating_sub(ALTERNATIVES_MAX) {
        0 => None,
        1 => Some("1 other change was measured, and saves no more".to_string()),
        more => Some(format!("{more} other changes were measured, and save no more")),
    });
    let single = |(name, saving): &(String, f64)| {
        let (name, share) = (named(name), percent(saving.abs()));
        let what = match *saving < 0.0 {
            true => format!("{name} took {share} more CPU time"),
            false => format!("{name} saved {share} of CPU time"),
        };
        format!("{what} in a single play, and then the command was interrupted")
    };
    let shown = ALTERNATIVES_MAX.saturating_sub(best.len()).min(evidence.single_plays.len());
    lines.extend(evidence.single_plays[..shown].iter().map(single));
    let others = evidence.dropped.len() - shown;
    if others > 0 {
        let why = match evidence.interrupted {
            true => "had no chance, or the command was interrupted before",
            false => "had no chance or could not be measured",
        };
        let others = plural(others as u64, "other change");
        lines.push(format!("{others} {why}: --json has the reasons"));
    }
    lines
}

/// What a candidate does to the CPU time: a saving, or more time.
pub fn saves(of: &Candidate) -> String {
    let (name, cpu) = (named(&of.name), &of.cpu);
    match cpu.saving {
        saving if !saving.is_finite() => format!("{name} was not measured"),
        saving if saving < 0.0 => {
            format!("{name} takes {} more CPU time", share(-saving, -cpu.high, -cpu.low))
        }
        _ => format!("{name} saves {} of CPU time", judged(cpu)),
    }
}

/// Why no rule applies to the two functions that allocate most, so that they get no local allocator.
pub fn not_local(evidence: &Evidence) -> Vec<String> {
    let Some(rule) = rules::rule("multipool-over-arena") else { return Vec::new() };
    let Some(cpu) = evidence.program.cpu_ns.filter(|&cpu| cpu > 0.0) else { return Vec::new() };
    let why = |region: &Region| {
        let subject = Subject::Region(region);
        let failed = rule.when.iter().filter(|condition| !condition.holds(evidence, &subject));
        let why = failed.filter_map(|condition| condition.failure(evidence, &subject)).next()?;
        Some((region.shown.clone(), why))
    };
    // The instances of a function may end in several ways. A rule for one of these ends is enough.
    let of_regions: Vec<Rule> =
        RULES.into_iter().filter(|rule| matches!(rule.about, About::Region)).collect();
    let has_rule = |region: &Region| {
        let twins = evidence.regions.iter().filter(|twin| twin.function == region.function);
        let applies =
            |twin| of_regions.iter().any(|rule| rule.applies(evidence, &Subject::Region(twin)));
        twins.into_iter().any(applies)
    };
    let is_large =
        |region: &&Region| region.call_ns >= evidence.min_gain * cpu && !has_rule(region);
    // Regions that differ in what ends their instances, and functions that differ in the arguments of a
    // template, have the same name here: one line for all of them.
    let mut found: Vec<(String, String)> = Vec::new();
    for (shown, why) in evidence.regions.iter().filter(is_large).filter_map(why) {
        if found.iter().all(|(other, _)| *other != shown) {
            found.push((shown, why));
        }
    }
    let line = |(shown, why)| format!("no allocator of its own for {shown}: {why}");
    found.into_iter().take(2).map(line).collect()
}

/// A sentence that this machine measures with too much noise, and what to do about the noise.
pub fn noise(evidence: &Evidence, noise: f64) -> String {
    let run = evidence.program.cpu_ns.unwrap_or(evidence.program.wall_ns);
    let cause = match run < SHORT_RUN_NS {
        true => format!("one run is too short ({}), or varies too much", time(run)),
        false => "this machine is too busy, or the program varies too much".to_string(),
    };
    let less_exact = match noise < NOISE_TO_ACCEPT {
        true => format!(", or --min-gain {}%", (noise * 100.0).ceil()),
        false => String::new(),
    };
    format!(
        "{cause}: two measurements of the unchanged program differ by up to {}, and a saving counts from {} \
         on; the same command may decide on an idle machine, or with more work for the program{less_exact}",
        percent(noise),
        percent(evidence.min_gain)
    )
}

/// Why the measurements do not decide whether a candidate saves enough.
pub fn unsettled(of: &Candidate) -> String {
    let why = of.cpu.why.map_or(String::new(), |why| format!(": {why}"));
    match &of.replayed {
        Some(replayed) if replayed.verdict == Verdict::Gain => format!(
            "{} saves {} of CPU time in replays and {} in runs of the program, which vary too much \
             to decide",
            named(&of.name),
            judged(replayed),
            judged(&of.cpu)
        ),
        _ => format!("{} may save {} of CPU time{why}", named(&of.name), judged(&of.cpu)),
    }
}

/// A sentence for each wink-out that would be advised if there were a second recording.
pub fn need_recording(evidence: &Evidence) -> Vec<String> {
    let why = choose::no_second_recording(evidence).unwrap_or_default();
    let line = |of: &Candidate| {
        format!("{} would save {} of CPU time, but {why}", named(&of.name), judged(&of.cpu))
    };
    let needs = |of: &&Candidate| choose::lacks_recording(evidence, of);
    evidence.candidates.iter().filter(needs).map(line).collect()
}

/// The command that measures one malloc alone, for `time` or the budget that the advice proposes. `None`
/// if the program cannot be named.
pub fn try_alone(evidence: &Evidence, of: &Candidate, time: Duration) -> Option<String> {
    let command = evidence.program.command.as_deref()?;
    let time = budget(evidence.proposed.unwrap_or(time));
    Some(format!("mallard try --allocator {} --budget {time} -- {command}", of.name))
}
