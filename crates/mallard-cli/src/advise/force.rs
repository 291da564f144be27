//! `--force AS4 --region F`: plays a strategy that the user asked for, and names the blocks that would
//! dangle.

use super::evidence::{Evidence, Forced};
use super::rules::condition::names;
use crate::error::status::UNREADABLE;
use crate::error::Failure;
use crate::look::frames::in_words;
use crate::output::shell::quoted_path;
use crate::output::units::{bytes, plural};
use crate::replay::Plays;
use crate::turns::subject::Runner;
use crate::turns::timing::Timing;
use crate::turns::words::replayed;
use mallard_trace::names::short;
use mallard_trace::regions::{self, Limits, Region, Regions};
use mallard_trace::replay::{End, Plan, Rule, Scope, Strategy};
use mallard_trace::Trace;

/// Finds the regions of one function, however small they are.
pub fn regions_of(trace: &Trace, function: &str) -> Result<Vec<Region>, Failure> {
    let limits = Limits { least_share: 0.0, regions: usize::MAX, ..Limits::default() };
    let Regions { all, notes, .. } = regions::find(trace, limits)?;
    let is_mark = |region: &Region| region.ends == End::Exact && names(&region.function, function);
    let is_it = |region: &&Region| {
        region.function == function || region.shown == function || is_mark(region)
    };
    let found: Vec<Region> = all.iter().filter(is_it).cloned().collect();
    if !found.is_empty() {
        return Ok(found);
    }
    if trace.manifest().stream.sample_bytes > 0 {
        let what =
            format!("the trace has no regions: {}", notes.last().cloned().unwrap_or_default());
        let help = "mallard record -- PROG ARGS, which records all calls of PROG";
        return Err(Failure::new(what, "nothing was measured", help).with_status(UNREADABLE));
    }
    let help = match similar(&all, function)[..] {
        [] => format!("mallard sites {}, for functions that allocate", quoted_path(trace.folder())),
        ref names => format!("--region '{}'", names.join("', or '")),
    };
    let what = format!("no region of the trace is the function {function}");
    Err(Failure::new(what, "nothing was measured", help).with_status(UNREADABLE))
}

/// The region of a function that hides no dangling block. The regions of a function differ in what ends
/// their instances: the marks of the program are exact; without marks, the one with most escapes counts.
pub fn truest(regions: &[Region]) -> Option<&Region> {
    regions.iter().max_by_key(|region| (region.ends == End::Exact, region.escapes))
}

/// Up to three functions of regions whose name contains a word, or else those that allocate most.
fn similar<'a>(all: &'a [Region], word: &str) -> Vec<&'a str> {
    let has_similar = all.iter().any(|region| region.function.contains(word));
    let is_it = |region: &&Region| !has_similar || region.function.contains(word);
    let mut found: Vec<&Region> = all.iter().filter(is_it).collect();
    found.sort_by_key(|region| std::cmp::Reverse(region.bytes));
    let mut names: Vec<&str> = Vec::new();
    for region in found {
        if !names.contains(&region.shown.as_str()) {
            names.push(&region.shown);
        }
    }
    names.truncate(3);
    names
}

/// Plays a region, or the whole program, under a strategy that the user asked for, whatever the
/// evidence says.
pub fn force(
    trace: &Trace,
    evidence: &mut Evidence,
    strategy: Strategy,
    region: Option<&Region>,
    runner: &Runner,
    timing: &Timing,
) -> Result<(), Failure> {
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
    let mut plays = Plays::begin(trace, true, timing.quiet)?;
    let (number, accounted) = plays.plan(&plan.name.clone(), &plan)?;
    let outcome = plays.measure(&[number], runner, timing)?;
    evidence.interrupted |= outcome.interrupted;
    evidence.add_noise(&outcome.control);
    evidence.notes.extend(outcome.notes);
    evidence.notes.extend(accounted.notes.iter().cloned());
    let dangling = if strategy.winks_out() { accounted.rule.escapes } else { 0 };
    evidence.forced = Some(Forced {
        name: plan.name,
        dangling,
        region: region.cloned(),
        sites: region.map_or(Vec::new(), |region| region.escape_sites.clone()),
        from: accounted.rule.escape_from.clone(),
        played: outcome.played.into_iter().next().and_then(Result::ok),
    });
    Ok(())
}

/// The result of a strategy that the user asked for.
pub fn wish(forced: &Forced) -> String {
    let mut text = match &forced.played {
        Some(played) => replayed(&in_words(&forced.name), &played.cpu, &played.memory) + "\n",
        None => format!("{} could not be played.\n", in_words(&forced.name)),
    };
    if forced.dangling == 0 {
        return text;
    }
    let blocks = plural(forced.dangling, "block");
    text += &format!("A program with it would be wrong: {blocks} would be used after their end.\n");
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
    fn the_marks_of_a_program_or_else_most_escapes_decide_which_blocks_dangle() {
        let of = |ends, escapes| Region { ends, escapes, ..sample::region() };
        let chosen = |regions: &[Region]| truest(regions).map(|of| (of.ends, of.escapes));
        let stacks = [of(End::Drained, 0), of(End::Sure, 7)];
        assert_eq!(chosen(&stacks), Some((End::Sure, 7)));
        let marked = [&stacks[..], &[of(End::Exact, 3)]].concat();
        assert_eq!(chosen(&marked), Some((End::Exact, 3)));
        assert_eq!(chosen(&[]), None);
    }

    #[test]
    fn the_named_dangling_blocks_and_the_rest_are_all_of_them() {
        let site = |blocks| EscapeSite { node: 1, function: "f".to_string(), blocks, bytes: 9 };
        let of =
            |dangling| wish(&Forced { sites: vec![site(6), site(5)], ..sample::wish(dangling) });
        assert!(of(15).ends_with("  and 4 more blocks of other functions\n"), "{}", of(15));
        assert!(!of(11).contains("more block"), "{}", of(11));
    }
}
