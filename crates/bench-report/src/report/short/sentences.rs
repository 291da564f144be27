//! Writes the three sentences with which the pages begin.

use super::losses::Groups;
use super::mallocs::{Mallocs, OURS};
use super::names::{from_to, known_as};
use crate::report::answer::mallocs::{CALLS, PROGRAMS_PEAK, PROGRAMS_TIME};
use crate::rows::experiment::{Kind, Machine};
use crate::tables::number;

/// Returns sentences about the time of programs under Mallard's malloc, the time of its calls, and
/// its losses. A sentence is left out if its figures were not measured.
pub fn sentences(machines: &[Machine], mallocs: &Mallocs) -> Vec<String> {
    let groups = Groups::of(machines);
    let found = [programs(mallocs), calls(mallocs), losses(&groups)];
    let found: Vec<String> = found.into_iter().flatten().collect();
    if found.is_empty() {
        return vec!["Mallard was not yet compared with another malloc.".to_string()];
    }
    found
}

fn programs(mallocs: &Mallocs) -> Option<String> {
    let time = from_to(mallocs.factors(OURS, PROGRAMS_TIME))?;
    let memory = from_to(mallocs.factors(OURS, PROGRAMS_PEAK))
        .map_or(String::new(), |peak| format!(" and {peak} times the peak memory"));
    let machines = mallocs.machines_with(PROGRAMS_TIME);
    let counts = machines.map(|(_, all)| all[0].cases(PROGRAMS_TIME) as f64);
    let counts = from_to(counts).unwrap_or_default().replace(".00", "");
    Some(format!(
        "With Mallard's malloc, whole programs need {time} times the CPU time{memory} that they need with glibc's \
         malloc (means of {counts} programs on {}). {}.",
        machines_in_words(mallocs.machines_with(PROGRAMS_TIME).count()),
        rank(mallocs)
    ))
}

fn machines_in_words(count: usize) -> String {
    if count == 1 {
        "one machine".to_string()
    } else {
        format!("each of {count} machines")
    }
}

/// Names the mallocs that need less time than Mallard, or the same time to two digits.
fn rank(mallocs: &Mallocs) -> String {
    let (mut less, mut same) = (Vec::new(), Vec::new());
    for (machine, all) in mallocs.machines_with(PROGRAMS_TIME) {
        let figure = |who: &str| all.iter().find(|m| m.contender == who)?.whole(PROGRAMS_TIME);
        let Some(ours) = figure(OURS) else { continue };
        for other in all.iter().filter(|m| m.contender != OURS) {
            let Some(theirs) = other.whole(PROGRAMS_TIME) else { continue };
            let named = format!("{} on {}", known_as(&other.contender), machine.common);
            if number(theirs) == number(ours) {
                same.push(named);
            } else if theirs < ours {
                less.push(named);
            }
        }
    }
    let mut words = match less.is_empty() {
        true => "No other malloc needs less time".to_string(),
        false => format!("Programs need less time with {}", less.join(", ")),
    };
    if !same.is_empty() {
        words += &format!("; the time is equal, to two digits, with {}", same.join(", "));
    }
    words
}

fn calls(mallocs: &Mallocs) -> Option<String> {
    let calls = from_to(mallocs.factors(OURS, CALLS))?;
    Some(format!(
        "A call of malloc or free alone needs {calls} times the time that it needs with glibc's malloc. Programs \
         gain less, because they do more than allocate."
    ))
}

fn losses(groups: &Groups) -> Option<String> {
    let of = |suite: &str, kind: Kind, words: &str| {
        let group = groups.get(suite, kind).filter(|g| g.compared > 0)?;
        Some(format!("{} of {} {words}", group.lost(), group.compared))
    };
    let mut parts = Vec::new();
    parts.extend(of("programs", Kind::Time, "program times"));
    parts.extend(of("programs", Kind::Memory, "program memory peaks"));
    parts.extend(of("malloc", Kind::Time, "call times"));
    let (compared, lost) = groups.local();
    if compared > 0 {
        parts.push(format!("{lost} of {compared} figures of local allocators"));
    }
    let last = parts.pop()?;
    let list = if parts.is_empty() { last } else { format!("{} and {last}", parts.join(", ")) };
    Some(format!("Compared with the best peer in each case, Mallard loses {list}."))
}
