//! Formats the parts of the resident memory of a program, for `mallard stats`.

use super::frames::{self, without_wrappers};
use super::line;
use mallard_measure::error::Failure;
use mallard_measure::output::units::{bytes, percent, plural, time};
use mallard_trace::residency::{self, Growing, MemorySummary, Parts};
use mallard_trace::trace::{FrameInfo, Stacks};
use mallard_trace::Trace;
use std::collections::BTreeSet;

/// The maximum number of growing sites that are listed.
const GROWING_SHOWN: usize = 3;

/// Formats the parts of the resident memory, the main cause, and the growing sites.
pub fn text(trace: &Trace) -> Result<String, Failure> {
    let memory = &trace.manifest().memory;
    let Some(sentence) = memory.sentence() else {
        return Ok(line("where it is", &format!("unknown: {}", why_unknown(trace))));
    };
    let mut text = table(memory);
    let parts = residency::rows(trace)?;
    let shown = parts.iter().map(|row| row.process).collect::<BTreeSet<_>>().len() as u64;
    let all = trace.manifest().totals.processes;
    if shown < all {
        let what = "the others ended early, or are children of forks";
        text += &line("", &format!("the parts are from {shown} of {all} processes: {what}"));
    }
    text += &line("cause", &sentence);
    let notes = &trace.manifest().notes;
    if notes.window.is_some() || notes.attached_after.is_some() {
        text += &line("", "blocks from before the recording count as kept");
    }
    if !memory.growing.is_empty() {
        let shown = format!(
            "{}: {} in use at the end",
            plural(memory.growing_sites, "call stack"),
            bytes(memory.growing_bytes.max(0) as u64)
        );
        text += &line("only growing", &shown);
        let stacks = trace.stacks()?;
        let sites = memory.growing.iter().take(GROWING_SHOWN);
        text += &sites.map(|site| line("", &growing(site, &stacks))).collect::<String>();
    }
    Ok(text)
}

fn why_unknown(trace: &Trace) -> &'static str {
    let manifest = trace.manifest();
    if manifest.stream.sample_bytes > 0 {
        "only some blocks were recorded"
    } else if manifest.tables.iter().all(|table| table.name != "memory") {
        "an older version recorded the trace"
    } else {
        "the system did not report where memory is resident, or the program ended too early"
    }
}

/// Formats a table with one line for each part. A line has bytes and shares at the peak, at the
/// end, and on average.
fn table(memory: &MemorySummary) -> String {
    let moments = [&memory.peak.parts, &memory.end.parts, &memory.mean.parts];
    let cell = |part: i64, parts: &Parts| {
        let share = part as f64 / parts.resident.max(1) as f64;
        format!("{:>10} {:>6}", bytes(part.max(0) as u64), percent(share))
    };
    let heads = ["at the peak", "at the end", "on average"].map(|head| format!("{head:>17}"));
    let mut text = line("where it is", &heads.join("   "));
    let resident = moments.map(|parts| cell(parts.resident, parts));
    text += &line("  resident", &resident.join("   "));
    let named = moments.map(|parts| parts.named());
    for (part, &(name, _)) in named[0].iter().enumerate() {
        let cells = [0, 1, 2].map(|moment| cell(named[moment][part].1, moments[moment]));
        text += &line(&format!("  {name}"), &cells.join("   "));
    }
    let [peak, end] = [memory.peak.t_ns, memory.end.t_ns].map(|ns| time(ns as f64));
    text +=
        &line("", &format!("the peak was after {peak}, the end is the last sample, after {end}"));
    text + &line("", &format!("rounding is computed by the rule of {}", rule(memory)))
}

fn rule(memory: &MemorySummary) -> &str {
    match memory.rounding.as_str() {
        "classes" => "a malloc with size classes",
        rule => rule,
    }
}

fn growing(site: &Growing, stacks: &Stacks) -> String {
    let functions = stacks.functions(site.stack);
    let shown = without_wrappers(&functions);
    let size = bytes(site.live_bytes.max(0) as u64);
    let size = format!("{size} in {}  ", plural(site.live_allocs.max(0) as u64, "block"));
    let name = |frame: &FrameInfo| frames::line(frame, line("", &size).len());
    let name = shown.first().map_or("(no call stack)".to_string(), name);
    format!("{size}{name}")
}
