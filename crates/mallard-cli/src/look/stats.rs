//! Implements `mallard stats`, which prints the figures of a trace.

use super::line;
use super::{lifetime, memory, open, sites};
use crate::output::missing::{incomplete, joined, losses};
use crate::record::recorded;
use crate::record::{part, shares};
use mallard_measure::error::Failure;
use mallard_measure::output::shell::{as_called, quoted_path};
use mallard_measure::output::terminal::{say, write};
use mallard_measure::output::units::{bytes, count, percent, plural, time};
use mallard_measure::output::width::unbroken;
use mallard_trace::manifest::{lack, Manifest};
use mallard_trace::measures::{Estimate, Explanation, EXPLANATIONS};
use std::path::PathBuf;
use std::process::ExitCode;

/// Summarises a trace: events, memory, lifetimes, lost events, and the measures D V L U C F.
#[derive(clap::Args)]
pub struct Command {
    /// The trace.
    #[arg(value_name = "NAME")]
    name: PathBuf,
    /// Explains what D, V, L, U, C and F mean.
    #[arg(long)]
    explain: bool,
    /// Writes the manifest of the trace, which has all figures, as JSON.
    #[arg(long)]
    json: bool,
}

impl Command {
    /// Prints the figures.
    pub fn run(self) -> Result<ExitCode, Failure> {
        let trace = open(&self.name)?;
        let manifest = trace.manifest();
        if self.json {
            write(&format!("{}\n", serde_json::to_string(manifest).expect("a manifest is plain")))?;
        } else {
            say(&text(manifest))?;
            say(&memory::text(&trace)?)?;
            say(&measures(manifest))?;
            if self.explain {
                say(&sites::explanations())?;
            }
            let next = format!("mallard sites {}", quoted_path(trace.folder()));
            say(&format!("next: {}\n", as_called(&next)))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn text(manifest: &Manifest) -> String {
    let (counts, totals, all) = (&manifest.counts, &manifest.totals, &manifest.totals.sites);
    let mut lines: Vec<(&str, String)> = Vec::new();
    let path = || recorded::path(&manifest.notes.program).map(|path| quoted_path(&path));
    if let Some(program) = recorded::command_line(manifest).or_else(path) {
        lines.push(("program", unbroken(&program)));
    }
    if let Some(origin) = manifest.origin() {
        lines.push(("origin", origin));
    }
    lines.push(("run", run(manifest)));
    lines.push((
        "events",
        format!(
            "{}: {}, {}, {}",
            count(counts.events),
            plural(counts.allocations, "allocation"),
            plural(counts.frees, "free"),
            plural(counts.reallocs, "realloc")
        ),
    ));
    if counts.failed > 0 {
        let failed = plural(counts.failed, "allocation");
        lines.push(("", format!("{failed} failed: they returned null")));
    }
    let estimated = if manifest.stream.sample_bytes > 0 { " (estimated from samples)" } else { "" };
    lines.push((
        "allocated",
        format!("{} in {}{estimated}", bytes(all.bytes as u64), plural(all.allocs as u64, "block")),
    ));
    lines.push((
        "peak",
        format!(
            "{} in {}, after {}",
            bytes(all.peak_bytes as u64),
            plural(all.peak_allocs as u64, "block"),
            time(all.peak_t as f64)
        ),
    ));
    if let Some(rss) = manifest.notes.peak_rss {
        let recorder = match manifest.memory.peak.parts.recorder {
            size @ 1.. => format!(", of which the recorder uses {}", bytes(size as u64)),
            _ => String::new(),
        };
        lines.push(("", format!("peak RSS {}{recorder}", bytes(rss))));
    }
    lines.push((
        "never freed",
        format!("{} in {}", bytes(all.live_bytes as u64), plural(all.live_allocs as u64, "block")),
    ));
    lines.push((
        "sizes",
        format!(
            "{} to {}; half at most {}, 90 % at most {}, 99 % at most {}",
            bytes(all.size_min as u64),
            bytes(all.size_max as u64),
            bytes(all.size_p50 as u64),
            bytes(all.size_p90 as u64),
            bytes(all.size_p99 as u64)
        ),
    ));
    if let (Some(p50), Some(p90), Some(p99)) = (all.life_p50, all.life_p90, all.life_p99) {
        let [p50, p90, p99] = [p50, p90, p99].map(|ns| lifetime(manifest, ns));
        lines.push((
            "lifetimes",
            format!("half at most {p50}, 90 % at most {p90}, 99 % at most {p99}"),
        ));
    }
    let share = |part: i64| percent(part as f64 / (all.allocs.max(1)) as f64);
    lines.push((
        "short-lived",
        format!(
            "{} of the blocks are freed before their thread allocates another",
            share(all.short_lived)
        ),
    ));
    if manifest.has(lack::THREADS) {
        lines.push((
            "other thread",
            format!("{} of the blocks are freed by another thread", share(all.cross_thread_frees)),
        ));
    }
    if all.timed_calls > 0 {
        let mean = all.call_ns as f64 / all.allocs.max(1) as f64;
        lines.push((
            "calls",
            format!(
                "an allocation takes {}{}; all allocations {}{}",
                time(mean),
                of_free(manifest),
                time(all.call_ns as f64),
                of_cpu(manifest)
            ),
        ));
    }
    lines.push((
        "call stacks",
        format!("{} that allocate; {} in all", count(totals.site_count), count(totals.stacks)),
    ));
    lines.push(("lost", joined(losses(manifest))));
    lines.extend(part(manifest).map(|part| ("only a part", part)));
    let stacks = incomplete(manifest);
    if !stacks.is_empty() {
        lines.push(("incomplete", joined(stacks)));
    }
    lines.iter().map(|(name, value)| line(name, value)).collect()
}

/// Formats the measures D, V, L, U, C and F of the program.
fn measures(manifest: &Manifest) -> String {
    let all = &manifest.totals.sites;
    let measures = [&all.d, &all.v, &all.l, &all.u, &all.c, &all.f];
    let measure = |(explanation, estimate): (&Explanation, &Estimate)| {
        line(explanation.word, &measure(explanation.letter, explanation.unit, estimate))
    };
    EXPLANATIONS.iter().zip(measures).map(measure).collect()
}

fn run(manifest: &Manifest) -> String {
    let totals = &manifest.totals;
    let mut text = time(totals.duration_ns as f64);
    if manifest.has(lack::THREADS) {
        let processes = match totals.processes {
            1 => "1 process".to_string(),
            processes => format!("{} processes", count(processes)),
        };
        text += &format!(", {} of {processes}", plural(totals.threads, "thread"));
    }
    if let Some(cpu) = totals.cpu_ns {
        text += &format!(", {} of CPU time", time(cpu as f64));
    }
    if manifest.stream.ending != "complete" {
        text += &format!("; the event log is {}", manifest.stream.ending);
    }
    text
}

/// Formats the mean time of a free, as a part of a sentence. Returns an empty text if the time is
/// unknown.
fn of_free(manifest: &Manifest) -> String {
    let ns = manifest.notes.ns_per_free.filter(|&ns| ns > 0.0);
    ns.map_or(String::new(), |ns| format!(", a free {}", time(ns)))
}

/// Formats the share of the CPU time that calls take at most, as `mallard advise` estimates it.
fn of_cpu(manifest: &Manifest) -> String {
    match shares(manifest, None) {
        Ok(shares) => format!("; with frees at most {} of the CPU time", percent(shares.calls)),
        Err(_) if part(manifest).is_some() => String::new(),
        Err(why) => why.map_or(String::new(), |why| {
            format!("; their share of the CPU time is unknown: {why}")
        }),
    }
}

/// Formats a measure with its interval and its number of observations.
fn measure(letter: char, unit: &str, estimate: &Estimate) -> String {
    let n = count(estimate.n.max(0) as u64);
    match (estimate.value, estimate.low, estimate.high) {
        (Some(value), Some(low), Some(high)) => {
            format!("{letter} = {value:.2} {unit}  (95 %: {low:.2} to {high:.2}, n = {n})")
        }
        (Some(value), ..) => format!("{letter} = {value:.2} {unit}  (n = {n})"),
        (None, ..) if estimate.is_too_few() => format!("{letter}: too few observations (n = {n})"),
        (None, ..) => format!("{letter}: unknown"),
    }
}
