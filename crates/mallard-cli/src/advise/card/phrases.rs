//! Makes parts of the sentences on cards.

use crate::advise::candidate::{Candidate, Name};
use crate::advise::code::Language;
use crate::advise::rules::condition::is_too_large;
use crate::look::frames::in_words;
use mallard_measure::output::units::{bytes, percent, percents};
use mallard_measure::verdict::Judgement;
use mallard_trace::replay::{Allocator, Strategy};

/// A card does not show an upper limit of the savings if the limit is at least this share of the
/// CPU time.
pub const BOUND_MAX: f64 = 0.9;

fn word_of(allocator: Allocator) -> &'static str {
    match allocator {
        Allocator::Heap => "heap",
        Allocator::Arena => "arena",
        Allocator::Multipool => "multipool",
        Allocator::MultipoolOverArena => "multipool in an arena",
    }
}

/// Describes a strategy, such as `arena, allocator as a type parameter, memory dropped as a whole`.
/// `lives` is how long the allocator lives, if it is not destroyed at the end of a call.
pub fn of_strategy(strategy: Strategy, lives: &str, language: Language) -> String {
    let allocator = word_of(strategy.allocator());
    let binding = match (strategy.is_virtual(), language) {
        (true, _) => ", allocator behind an abstract base (std::pmr)",
        (false, Language::C) => "",
        (false, _) => ", allocator as a type parameter",
    };
    let end = match strategy.winks_out() {
        true => "memory dropped as a whole",
        false => "freed as before",
    };
    format!("{allocator}{lives}{binding}, {end}")
}

/// Names a candidate with its allocator in words. For example, `AS4 in parse` becomes `an arena,
/// dropped as a whole (AS4), in parse`. A malloc keeps its name.
pub fn named(name: &Name) -> String {
    let Name::Plan(strategy, place) = name else { return name.to_string() };
    let allocator = word_of(strategy.allocator());
    let article = if strategy.allocator() == Allocator::Arena { "an" } else { "a" };
    let (end, comma) = if strategy.winks_out() { (", dropped as a whole", ",") } else { ("", "") };
    let place =
        if place.is_empty() { String::new() } else { format!("{comma} {}", in_words(place)) };
    format!("{article} {allocator}{end} ({strategy}){place}")
}

/// Formats a saving and its interval, such as `12 % (10 to 14 %)`. If both ends look the same,
/// formats the saving alone.
pub fn share(saving: f64, low: f64, high: f64) -> String {
    match percent(low) == percent(high) {
        _ if !saving.is_finite() => "unknown".to_string(),
        true => percent(saving),
        false => format!("{} ({})", percent(saving), percents(low, high)),
    }
}

/// Formats a saving with its interval.
pub fn judged(of: &Judgement) -> String {
    share(of.saving, of.low, of.high)
}

/// Describes that a candidate needs much more memory. Returns `None` if the candidate does not need
/// much more.
pub fn too_large(of: &Candidate) -> Option<String> {
    let (before, after) = of.peak_bytes;
    is_too_large(of).then(|| format!("needs {} instead of {}", bytes(after), bytes(before)))
}

/// Formats a predicted interval of the share that a change saves. An end of the interval that is
/// not between 0 and 100 % is left out, because no saving can be there.
pub fn predicted(low: f64, high: f64) -> String {
    match (low > 0.0, high < 1.0) {
        (true, true) => percents(low, high),
        (true, false) => format!("at least {}", percent(low)),
        (false, true) => format!("at most {} (perhaps nothing)", percent(high)),
        (false, false) => "an unknown share".to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_candidate_is_described_by_its_allocator_in_words() {
        assert_eq!(named(&"AS4 in parse".into()), "an arena, dropped as a whole (AS4), in parse");
        assert_eq!(
            named(&"AS7 for cache::put and 2 more".into()),
            "a multipool (AS7) for cache::put and 2 more"
        );
        assert_eq!(named(&"AS11".into()), "a multipool in an arena (AS11)");
        assert_eq!(named(&"mimalloc".into()), "mimalloc");
    }

    #[test]
    fn a_predicted_interval_is_limited_to_0_to_100_percent() {
        assert_eq!(predicted(0.04, 0.32), "4.0 to 32 %");
        assert_eq!(predicted(0.3, 1.2), "at least 30 %");
        assert_eq!(predicted(-0.01, 0.17), "at most 17 % (perhaps nothing)");
        assert_eq!(predicted(-0.1, 1.2), "an unknown share");
    }
}
