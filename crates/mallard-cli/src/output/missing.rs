//! Describes in words what a trace lacks, for all commands.

use mallard_measure::output::units::{count, plural};
use mallard_trace::manifest::Manifest;

/// Describes how many events a trace lacks, and why. The list is empty if the trace has all events.
pub fn losses(manifest: &Manifest) -> Vec<String> {
    let lost = &manifest.losses;
    let mut all = Vec::new();
    let mut add = |number: u64, what: &dyn Fn(u64) -> String| {
        if number > 0 {
            all.push(what(number));
        }
    };
    add(lost.full, &|n| format!("{} because the ring buffer was full", plural(n, "event")));
    add(lost.nested, &|n| format!("{} in signal handlers", plural(n, "event")));
    add(lost.write, &|n| {
        format!("{} because the event log could not be written", plural(n, "event"))
    });
    add(lost.unknown, &|n| format!("{} for an unknown reason", plural(n, "event")));
    if let Some(why) = &manifest.notes.stopped {
        let seen = manifest.notes.unwritten.unwrap_or(0);
        let seen = if seen > 0 { format!(", {} of them seen", count(seen)) } else { String::new() };
        all.push(format!("all events after {why}{seen}"));
    } else if manifest.stream.ending != "complete" {
        all.push(format!("all later events, because the event log is {}", manifest.stream.ending));
    }
    // If only a part of a run, or only samples, were recorded, most allocations are missing
    // although no event is lost.
    let is_part = manifest.notes.window.is_some() || manifest.notes.attached_after.is_some();
    let is_whole = manifest.stream.sample_bytes == 0 && !is_part;
    let unknown = manifest.counts.unknown_frees;
    if unknown > 0 && is_whole {
        all.push(format!(
            "the allocations of {} that were freed (by calls that bypass the recorder, such as \
             __libc_malloc)",
            plural(unknown, "block")
        ));
    }
    let missed = manifest.counts.missed_frees;
    if missed > 0 && is_whole {
        all.push(format!("the frees of {} whose address was used again", plural(missed, "block")));
    }
    all
}

/// Describes how many call stacks of a trace are incomplete, and why. The list is empty if all call
/// stacks are complete.
pub fn incomplete(manifest: &Manifest) -> Vec<String> {
    let parts = [
        ("outer functions", manifest.repairs.cut_stacks),
        ("functions in the middle", manifest.repairs.gap_stacks),
    ];
    let parts = parts.into_iter().filter(|&(_, number)| number > 0);
    parts
        .map(|(what, number)| match number {
            1 => format!("1 call stack lacks {what}"),
            _ => format!("{} call stacks lack {what}", count(number)),
        })
        .collect()
}

/// Joins texts about what is missing into one line.
pub fn joined(parts: Vec<String>) -> String {
    if parts.is_empty() {
        "nothing".to_string()
    } else {
        parts.join("; ")
    }
}
