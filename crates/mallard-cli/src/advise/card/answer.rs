//! Writes the sentences of the two kinds of cards that change nothing. One recommends to leave the
//! allocator as it is, and the other reports that the measurements do not decide.

use super::advice::{Drawback, Open, Other};
use super::phrases::{judged, named, share, too_large, BOUND_MAX};
use crate::advise::candidate::Candidate;
use crate::advise::measured::Measured;
use crate::advise::reason::Refusal;
use crate::advise::words;
use crate::look::frames::in_words;
use mallard_measure::output::units::{budget, bytes, percent, plural, time};
use mallard_measure::verdict::Verdict;
use std::time::Duration;

/// A run with less CPU time than this is too short to show small differences.
const SHORT_RUN_NS: f64 = 50e6;
/// If the noise is less than this share of the CPU time, the answer proposes the rounded-up noise
/// as a larger `--min-gain`.
const NOISE_TO_ACCEPT: f64 = 0.1;

/// Describes why the measurements do not decide whether a change helps.
pub fn reason(evidence: &Measured, open: &Open) -> String {
    match open {
        Open::Doubt(doubt) => doubt.to_string(),
        Open::Question(question) => words::question(question, evidence.proposed),
        Open::Noise(of_machine) => noise(evidence, *of_machine),
        Open::Interrupted => "the measurement was interrupted".to_string(),
        Open::Unsettled(of) => unsettled(of),
        Open::NotRun(of) => not_run(evidence, of),
        Open::NeedsRecording(of) => needs_recording(evidence, of),
    }
}

/// Describes why nothing should be changed, in a sentence that stands alone.
pub fn leave(evidence: &Measured) -> String {
    let name = &evidence.facts.program.name;
    let least = percent(evidence.facts.min_gain);
    let measured = evidence.candidates.iter().map(|of| of.cpu.saving).filter(|s| s.is_finite());
    let count = measured.clone().count();
    let best = measured.max_by(f64::total_cmp);
    match (evidence.bound().share, best) {
        (Some(share), _) if share < evidence.facts.min_gain => format!(
            "Leave the allocator of {name} as it is: its work takes at most {} of \
             the CPU time, not counting locality, and savings below {least} do not count.",
            percent(share)
        ),
        (share, Some(best)) if best < evidence.facts.min_gain => format!(
            "Leave the allocator of {name} as it is: {}, and savings below {least} do not count{}.",
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

/// Describes the saving of the best measured change, depending on the number of measured changes.
fn best_of(count: usize, saving: f64) -> String {
    match (count, saving >= 0.0) {
        (1, true) => {
            format!("the only change that was measured saves {} of the CPU time", percent(saving))
        }
        (1, false) => "the only change that was measured saves no CPU time".to_string(),
        (_, true) => format!(
            "the best of {count} changes that were measured saves {} of the CPU time",
            percent(saving)
        ),
        (_, false) => format!("none of the {count} changes that were measured saves CPU time"),
    }
}

/// Describes why the measurements do not decide whether a change helps, in a sentence that stands
/// alone.
pub fn undecided(evidence: &Measured, open: &[Open]) -> String {
    let first = || open.first().map_or(String::new(), |open| reason(evidence, open));
    let lacks_budget = evidence.questions.iter().any(|of| of.needed.is_some());
    let lacks_budget = lacks_budget || evidence.second_needs.is_some();
    let has_doubts = evidence.doubts().next().is_some() || evidence.facts.records_all.is_some();
    let why = match (evidence.proposed.filter(|_| lacks_budget), evidence.noise) {
        _ if evidence.interrupted => "the measurement was interrupted".to_string(),
        _ if has_doubts => first(),
        (Some(proposed), _) => format!(
            "the budget was too small, and --budget {} is probably enough",
            budget(proposed)
        ),
        (None, Some(noise)) => format!(
            "on this machine, two measurements of the unchanged program differ by up to {}, too much to detect a saving of {}",
            percent(noise),
            percent(evidence.facts.min_gain)
        ),
        (None, None) => first(),
    };
    let name = &evidence.facts.program.name;
    format!("It is not decided whether {name} should change its allocator: {why}.")
}

/// Describes the upper limit of what any allocator can save, as the end of a sentence. Returns an
/// empty text if the limit is close to the whole CPU time, because such a limit is of no use.
fn most(share: Option<f64>) -> String {
    match share {
        Some(share) if share < BOUND_MAX => {
            format!("; its work takes at most {}, not counting locality", percent(share))
        }
        Some(_) => String::new(),
        None => "; the largest possible saving is unknown".to_string(),
    }
}

/// Describes why another change is not recommended.
pub fn other(evidence: &Measured, other: &Other) -> String {
    match other {
        Other::Alternative(of, drawback) => saves(of) + &behind(of, drawback),
        Other::NoWinkOut(why) => format!("no wink-out (dropping the memory as a whole): {why}"),
        Other::Unmeasured(of) => {
            let name = in_words(&of.name.to_string());
            format!(
                "no wink-out (dropping the memory as a whole): {name} was not measured: {}",
                of.why
            )
        }
        Other::Breaks(of) => format!("{} {}", of.name, of.why),
        Other::NeedsRecording(of) => needs_recording(evidence, of),
        Other::NotLocal(region, why) => {
            format!("no separate allocator for {}: {why}", in_words(&region.shown))
        }
        Other::NotRun(of) => not_run(evidence, of),
        Other::Measured(of, refusal) => {
            let why = refusal.as_ref().map(Refusal::to_string).or_else(|| too_large(of));
            let why = why.map_or(String::new(), |why| format!("; {why}"));
            format!("{}: {}{why}", saves(of), of.cpu.verdict)
        }
        Other::MoreMeasured(1) => "1 other change was measured, and saves no more".to_string(),
        Other::MoreMeasured(more) => {
            format!("{more} other changes were measured, and save no more")
        }
        Other::Played(of, saving) => {
            let (name, share) = (named(&of.name), percent(saving.abs()));
            let what = match *saving < 0.0 {
                true => format!("{name} took {share} more CPU time"),
                false => format!("{name} saved {share} of CPU time"),
            };
            format!("{what} in a single replay, and then the command was interrupted")
        }
        Other::MoreDropped(others) => {
            let why = match evidence.interrupted {
                true => "could not win, or the command was interrupted before",
                false => "could not win or could not be measured",
            };
            let others = plural(*others as u64, "other change");
            format!("{others} {why}: --json has the reasons")
        }
    }
}

/// Describes why a candidate does not come before the change of a card, as the end of a sentence.
fn behind(of: &Candidate, drawback: &Drawback) -> String {
    let but = if of.cpu.saving < 0.0 { "and" } else { "but" };
    match drawback {
        Drawback::Refused(why) => format!(", {but} {why}"),
        Drawback::TooLarge => too_large(of).map_or(String::new(), |why| format!(", {but} {why}")),
        Drawback::NoGain => format!(": {}", of.cpu.verdict),
        Drawback::LessMemory => ", but saves less memory".to_string(),
        Drawback::FreesNone => ", but does not free single blocks".to_string(),
        Drawback::NoMore => ", no more than this change".to_string(),
        Drawback::Less => ", less than this change".to_string(),
        Drawback::MoreBytes(more) => format!(", but needs {} more memory", bytes(*more)),
        Drawback::LikelyLess => {
            ", and this change probably saves more than its replay shows".to_string()
        }
    }
}

/// Describes how much CPU time a candidate saves or costs.
fn saves(of: &Candidate) -> String {
    let (name, cpu) = (named(&of.name), &of.cpu);
    match cpu.saving {
        saving if !saving.is_finite() => format!("{name} was not measured"),
        saving if saving < 0.0 => {
            format!("{name} takes {} more CPU time", share(-saving, -cpu.high, -cpu.low))
        }
        _ => format!("{name} saves {} of CPU time", judged(cpu)),
    }
}

/// Returns a sentence that there is too much noise on this machine, and what to do about the noise.
fn noise(evidence: &Measured, noise: f64) -> String {
    let run = evidence.facts.program.cpu_ns.unwrap_or(evidence.facts.program.wall_ns);
    let cause = match run < SHORT_RUN_NS {
        true => format!("one run is too short ({}), or varies too much", time(run)),
        false => "this machine is too busy, or the program varies too much".to_string(),
    };
    let less_exact = match noise < NOISE_TO_ACCEPT {
        true => format!(", or --min-gain {}%", (noise * 100.0).ceil()),
        false => String::new(),
    };
    format!(
        "{cause}: two measurements of the unchanged program differ by up to {}, too much to detect a saving of \
         {}; the same command may decide on an idle machine, or with more work for the program{less_exact}",
        percent(noise),
        percent(evidence.facts.min_gain)
    )
}

/// Describes why the measurements do not decide whether a candidate saves enough.
fn unsettled(of: &Candidate) -> String {
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

/// Describes that a malloc which saves enough in replays is not recommended, because the program
/// did not run under that malloc.
fn not_run(evidence: &Measured, of: &Candidate) -> String {
    let why = evidence.cannot_run().map_or(String::new(), |why| format!(" ({why})"));
    format!(
        "{} saves {} of CPU time in replays, but the program has not run under it{why}, so it \
         may not work",
        named(&of.name),
        judged(&of.cpu)
    )
}

/// Describes a plan with wink-out that would be recommended if there were a second recording.
fn needs_recording(evidence: &Measured, of: &Candidate) -> String {
    let why = evidence.no_second_recording().map_or(String::new(), |why| why.to_string());
    format!("{} would save {} of CPU time, but {why}", named(&of.name), judged(&of.cpu))
}

/// Returns the command that measures one malloc alone, with the budget that the advice proposes, or
/// else with the budget `time`. `None` if the command line of the program is unknown.
pub fn try_alone(evidence: &Measured, of: &Candidate, time: Duration) -> Option<String> {
    let command = evidence.facts.program.command.as_deref()?;
    let time = budget(evidence.proposed.unwrap_or(time));
    let alone = format!("--allocator {} --budget {time} -- {command}", of.name);
    Some(evidence.facts.typed.measure("try", &alone))
}
