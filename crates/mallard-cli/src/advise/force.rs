//! Replays a strategy that the user asks for by `--force AS4 --region F`, and names the blocks that
//! would dangle.

use super::candidate::Forced;
use super::measured::{noise, Measured};
use super::reason::Note;
use crate::look::frames::in_words;
use crate::replay::Session;
use mallard_measure::error::Failure;
use mallard_measure::output::units::{bytes, plural};
use mallard_measure::rounds::subject::Runner;
use mallard_measure::rounds::timing::Timing;
use mallard_measure::rounds::words::replayed;
use mallard_trace::names::short;
use mallard_trace::regions::Region;
use mallard_trace::replay::{Plan, Rule, Scope, Strategy};
use mallard_trace::Trace;

/// Replays a region, or the whole program, with the strategy that the user asked for, even if the
/// evidence speaks against this strategy.
pub fn force(
    trace: &Trace,
    former: &Measured,
    strategy: Strategy,
    region: Option<&Region>,
    runner: &Runner,
    timing: &Timing,
) -> Result<Measured, Failure> {
    let plan = match region {
        Some(region) => Plan {
            name: format!("{strategy} in {}", region.shown),
            rules: vec![Rule {
                scope: Scope::Region(region.function.clone()),
                strategy,
                ends: Some(region.ends),
                first_chunk: 0,
            }],
            ..Plan::default()
        },
        None => Plan::of_strategy(strategy),
    };
    let mut session = Session::begin(trace, true, timing.quiet)?;
    let (number, accounted) = session.plan(&plan.name.clone(), &plan)?;
    let outcome = session.measure(&[number], runner, timing)?;
    let dangling = if strategy.winks_out() { accounted.rule.escapes } else { 0 };
    let forced = Forced {
        name: plan.name,
        dangling,
        region: region.cloned(),
        sites: region.map_or(Vec::new(), |region| region.escape_sites.clone()),
        from: accounted.rule.escape_from.clone(),
        played: outcome.played.into_iter().next().and_then(Result::ok),
    };
    Ok(Measured {
        interrupted: outcome.interrupted,
        noise: noise(&outcome.control),
        notes: outcome.notes.into_iter().chain(accounted.notes).map(Note::Said).collect(),
        forced: Some(forced),
        ..former.nothing()
    })
}

/// Describes the result of a strategy that the user asked for.
pub fn wish(forced: &Forced) -> String {
    let mut text = match &forced.played {
        Some(played) => replayed(&in_words(&forced.name), &played.cpu, &played.memory) + "\n",
        None => format!("{} could not be replayed.\n", in_words(&forced.name)),
    };
    if forced.dangling == 0 {
        return text;
    }
    let blocks = plural(forced.dangling, "block");
    text += &format!(
        "A program with it would be incorrect: {blocks} would be used after they are freed.\n"
    );
    for site in &forced.sites {
        let name = in_words(&short(&site.function));
        let blocks = plural(site.blocks, "block");
        text += &format!("  {blocks}, {}, of {name}\n", bytes(site.bytes));
    }
    let rest = forced.dangling.saturating_sub(forced.sites.iter().map(|site| site.blocks).sum());
    if !forced.sites.is_empty() && rest > 0 {
        text += &format!("  and {} of other functions\n", plural(rest, "more block"));
    }
    if let (true, Some(from)) = (forced.sites.is_empty(), &forced.from) {
        text += &format!("  for example of {}\n", in_words(&short(from)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advise::rules::sample;
    use mallard_trace::regions::EscapeSite;

    #[test]
    fn the_listed_dangling_blocks_and_the_remaining_count_add_up() {
        let site = |blocks| EscapeSite { node: 1, function: "f".to_string(), blocks, bytes: 9 };
        let of =
            |dangling| wish(&Forced { sites: vec![site(6), site(5)], ..sample::wish(dangling) });
        assert!(of(15).ends_with("  and 4 more blocks of other functions\n"), "{}", of(15));
        assert!(!of(11).contains("more block"), "{}", of(11));
    }
}
