//! Describes in sentences what the program did.

use super::gather::Gathered;
use crate::record::{bound, unknown};
use mallard_measure::output::units::{about, bytes, of_threads, percent, time};
use mallard_trace::SiteRow;

/// Returns the sentences about the program. They describe how much the program allocated, the peak
/// and which function held it, how long blocks lived, and the resident memory.
pub fn of(gathered: &Gathered) -> Vec<String> {
    let whole = &gathered.trace.manifest().totals.sites;
    if whole.allocs <= 0 {
        return vec!["The program allocated nothing while it was recorded.".to_string()];
    }
    vec![
        allocated(gathered, whole),
        peak(gathered, whole),
        lives(gathered, whole),
        system(gathered, whole),
    ]
}

fn of_all(part: i64, whole: &SiteRow) -> f64 {
    part as f64 / whole.allocs.max(1) as f64
}

fn blocks(count: i64) -> String {
    match count {
        1 => "1 block".to_string(),
        _ => format!("{} blocks", about(count.max(0) as u64)),
    }
}

fn allocated(gathered: &Gathered, whole: &SiteRow) -> String {
    let manifest = gathered.trace.manifest();
    let totals = &manifest.totals;
    let who = match totals.threads {
        0 | 1 => "the program".to_string(),
        threads => {
            let of_threads = of_threads(threads, totals.processes);
            format!("the {}", of_threads.trim_start_matches(" of ")) + " of the program"
        }
    };
    let roughly = if manifest.stream.sample_bytes > 0 { "about " } else { "" };
    let sizes = match whole.allocs {
        1 => String::new(),
        _ => format!(", half of them at most {} large", bytes(whole.size_p50.max(0) as u64)),
    };
    format!(
        "In {}, {who} allocated {roughly}{} in {}{sizes}.",
        time(totals.duration_ns as f64),
        bytes(whole.bytes.max(0) as u64),
        blocks(whole.allocs)
    )
}

fn peak(gathered: &Gathered, whole: &SiteRow) -> String {
    let mut text = format!(
        "At most {} were in use at the same time, after {}",
        bytes(whole.peak_bytes.max(0) as u64),
        time(whole.peak_t as f64)
    );
    if let Some((name, held)) = gathered.holders.at_peak() {
        let share = held as f64 / whole.peak_bytes.max(1) as f64;
        text += &format!("; `{name}` held {} of that", percent(share.min(1.0)));
    }
    text + "."
}

fn lives(gathered: &Gathered, whole: &SiteRow) -> String {
    let mut text = format!(
        "{} of the blocks were freed before their thread allocated another",
        percent(of_all(whole.short_lived, whole))
    );
    if whole.cross_thread_frees > 0 {
        let share = percent(of_all(whole.cross_thread_frees, whole));
        text += &format!("; {share} were freed by another thread");
    }
    match gathered.holders.never_freed() {
        None if whole.live_allocs <= 0 => text += "; all were freed in the end",
        holder => {
            let share = percent(of_all(whole.live_allocs, whole));
            let size = bytes(whole.live_bytes.max(0) as u64);
            let by = holder.map_or(String::new(), |(name, _)| format!(", most of it by `{name}`"));
            text += &format!("; {share} were never freed ({size}{by})");
        }
    }
    text + "."
}

fn system(gathered: &Gathered, whole: &SiteRow) -> String {
    let resident = gathered.peak_rss();
    if resident == 0 {
        return lifetimes(whole);
    }
    let in_use = whole.peak_bytes.max(0) as u64;
    let mut text =
        format!("Its memory in the system was at most {}, without the recorder", bytes(resident));
    if in_use > 0 && resident >= in_use {
        let times = resident as f64 / in_use as f64;
        text += &format!(
            ": {times:.1} times what was in use at the peak. The rest is code, stacks, what the \
             allocator holds, and what the program requested from the system directly"
        );
    }
    match gathered.trace.manifest().memory.sentence() {
        Some(cause) => format!("{text}. Averaged over time, {cause}."),
        None => text + ".",
    }
}

/// Returns a sentence about lifetimes, for traces without the resident memory.
fn lifetimes(whole: &SiteRow) -> String {
    match (whole.life_p50, whole.life_p99) {
        (Some(half), Some(most)) => format!(
            "Half of the freed blocks lived at most {}, and 99 % at most {}.",
            time(half as f64),
            time(most as f64)
        ),
        _ => "No block was freed while the program was recorded.".to_string(),
    }
}

/// Returns a sentence on the upper limit of what any allocator could save, or why the limit is
/// unknown.
pub fn limit(gathered: &Gathered) -> String {
    let manifest = gathered.trace.manifest();
    let of_why = |why| {
        format!("How much malloc, free and page faults took of the CPU time is unknown: {why}.")
    };
    match bound(manifest) {
        Some(share) => format!(
            "Malloc, free and page faults took at most {} of the CPU time: no allocator can save \
             more, except by better locality.",
            percent(share)
        ),
        None => unknown(manifest).map_or(String::new(), of_why),
    }
}
