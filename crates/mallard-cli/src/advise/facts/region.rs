//! Finds the regions of the function that the user asks for by --region.

use crate::advise::rules::condition::names;
use mallard_measure::error::status::UNREADABLE;
use mallard_measure::error::Failure;
use mallard_measure::output::shell::quoted_path;
use mallard_trace::regions::{self, Limits, Region, Regions};
use mallard_trace::replay::End;
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
    let what = format!("the trace has no region for the function {function}");
    Err(Failure::new(what, "nothing was measured", help).with_status(UNREADABLE))
}

/// Chooses the region of a function that shows all dangling blocks. The regions of a function
/// differ in the event that ends their instances. If the program marks the ends, the ends are
/// exact, and the region with marked ends is chosen. Otherwise, the region with the most escapes is
/// chosen.
pub fn truest(regions: &[Region]) -> Option<&Region> {
    regions.iter().max_by_key(|region| (region.ends == End::Exact, region.escapes))
}

/// Returns up to three functions with regions whose names contain `word`. If no name contains
/// `word`, returns the functions that allocate most.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advise::rules::sample;

    #[test]
    fn the_marks_of_a_program_or_else_the_most_escapes_decide_which_blocks_dangle() {
        let of = |ends, escapes| Region { ends, escapes, ..sample::region() };
        let chosen = |regions: &[Region]| truest(regions).map(|of| (of.ends, of.escapes));
        let stacks = [of(End::Drained, 0), of(End::Sure, 7)];
        assert_eq!(chosen(&stacks), Some((End::Sure, 7)));
        let marked = [&stacks[..], &[of(End::Exact, 3)]].concat();
        assert_eq!(chosen(&marked), Some((End::Exact, 3)));
        assert_eq!(chosen(&[]), None);
    }
}
