//! Describes the run of the program, and how it was recorded.

use super::gather::Gathered;
use super::sites::Shown;
use crate::output::missing::{incomplete, losses};
use crate::record::cost;
use crate::record::recorded;
use chrono::{DateTime, SecondsFormat};
use mallard_measure::mallocs;
use mallard_measure::output::units::{bytes, count, percent, plural};
use mallard_measure::process::launch::Ended;
use serde::Serialize;
use std::path::Path;

/// The program and the machine. A text that is unknown is empty, and a number that is unknown is 0.
#[derive(Debug, Serialize)]
pub struct Program {
    command: String,
    started: String,
    duration_ns: i64,
    status: String,
    host: String,
    cpu: String,
    kernel: String,
    libc: String,
    allocator: String,
    threads: u64,
    processes: u64,
}

impl Program {
    /// Describes the run.
    pub fn of(gathered: &Gathered) -> Program {
        let manifest = gathered.trace.manifest();
        let started = DateTime::from_timestamp_nanos(manifest.stream.start_unix as i64);
        Program {
            command: command(gathered),
            started: started.to_rfc3339_opts(SecondsFormat::Secs, true),
            duration_ns: manifest.totals.duration_ns,
            status: status(gathered),
            host: gathered.notes().host.clone().unwrap_or_default(),
            cpu: gathered.notes().cpu.clone().unwrap_or_default(),
            kernel: gathered.notes().kernel.clone().unwrap_or_default(),
            libc: libc(&gathered.modules),
            allocator: allocator(&gathered.modules),
            threads: manifest.totals.threads,
            processes: manifest.totals.processes,
        }
    }
}

fn command(gathered: &Gathered) -> String {
    recorded::command_line(gathered.trace.manifest()).unwrap_or_default()
}

fn status(gathered: &Gathered) -> String {
    let Some(status) = gathered.notes().status else { return String::new() };
    let ended = Ended { status, ..Ended::default() };
    match ended.signal() {
        Some(signal) => format!("signal {signal}"),
        None => ended.exit_code().to_string(),
    }
}

/// Returns the names of files without their directories.
fn names(modules: &[String]) -> impl Iterator<Item = &str> {
    modules.iter().filter_map(|path| Path::new(path).file_name()?.to_str())
}

fn libc(modules: &[String]) -> String {
    let is_libc = |name: &&str| {
        name.starts_with("libc.so") || name.starts_with("libc-") || name.starts_with("ld-musl")
    };
    match names(modules).find(is_libc) {
        Some(name) if name.contains("musl") => "musl".to_string(),
        Some(_) => "glibc".to_string(),
        None => String::new(),
    }
}

/// Finds the malloc that the program used among the libraries that the program loaded, and returns
/// its name.
fn allocator(modules: &[String]) -> String {
    let stem = |library: &str| {
        let name = library.rsplit('/').next().unwrap_or(library);
        name.split(".so").next().unwrap_or(name).to_string()
    };
    let loaded: Vec<String> = names(modules).map(stem).collect();
    let is_loaded = |library: &str| loaded.contains(&stem(library));
    let found = mallocs::list().find(|entry| entry.libraries().any(is_loaded));
    match found {
        Some(entry) => entry.name.clone(),
        None => libc(modules),
    }
}

/// How the trace was recorded, what the trace lacks, and what the page leaves out.
#[derive(Debug, Serialize)]
pub struct Method {
    mallard: &'static str,
    format: u32,
    stream: String,
    losses: Vec<String>,
    sampled_bytes: u64,
    notes: Vec<String>,
    own_cost: String,
}

impl Method {
    /// Describes the recording.
    pub fn of(gathered: &Gathered, shown: &Shown) -> Method {
        let manifest = gathered.trace.manifest();
        Method {
            mallard: env!("CARGO_PKG_VERSION"),
            format: manifest.schema,
            stream: manifest.stream.ending.clone(),
            losses: [losses(manifest), incomplete(manifest)].concat(),
            sampled_bytes: manifest.stream.sample_bytes,
            notes: notes(gathered, shown),
            own_cost: own_cost(gathered),
        }
    }
}

fn own_cost(gathered: &Gathered) -> String {
    let manifest = gathered.trace.manifest();
    let notes = &manifest.notes;
    let (Some(each), Some(all)) = (notes.recording_ns_per_event, notes.cpu_ns()) else {
        return String::new();
    };
    let cost = cost(each * manifest.counts.events as f64, all);
    format!("{}.", cost.replacen("rec", "Rec", 1))
}

fn notes(gathered: &Gathered, shown: &Shown) -> Vec<String> {
    let mut notes = Vec::new();
    let manifest = gathered.trace.manifest();
    notes.extend(gathered.advice.notes.iter().cloned());
    notes_on_recording(gathered, &mut notes);
    if !gathered.resident.is_empty() {
        notes.push(
            "Resident memory is what the system reported, up to 100 times a second; between two \
             reports a straight line is drawn."
                .to_string(),
        );
    }
    if gathered.survey.one_in > 1 {
        notes.push(format!(
            "So many blocks were in use at the same time that only one in {} of the small ones was followed: \
             curves, lifetimes, threads and addresses are estimates.",
            count(u64::from(gathered.survey.one_in))
        ));
    }
    let (others, number) = &shown.others;
    if *number > 0 {
        let share = others.bytes as f64 / manifest.totals.sites.bytes.max(1) as f64;
        notes.push(format!(
            "{} of {} are listed, those that matter most; the others, with {} of the bytes, are \
             summed up in one line.",
            count(shown.kept as u64),
            plural(manifest.totals.site_count, "call stack"),
            percent(share)
        ));
    }
    if shown.strings.cut() > 0 {
        notes.push(match shown.strings.cut() {
            1 => "A very long name is cut in the middle.".to_string(),
            cut => format!("{} very long names are cut in the middle.", count(cut as u64)),
        });
    }
    notes
}

/// Adds sentences about a recording that is imported, sampled, cut, or partial.
fn notes_on_recording(gathered: &Gathered, notes: &mut Vec<String>) {
    let manifest = gathered.trace.manifest();
    let stream = &manifest.stream;
    if let Some(origin) = manifest.origin() {
        notes.push(format!("The trace was {origin}."));
    }
    if stream.sample_bytes > 0 {
        notes.push(format!(
            "Only samples were recorded, one for about {} allocated: all figures are estimates of \
             the whole program, and addresses are those of the samples alone.",
            bytes(stream.sample_bytes)
        ));
    }
    match stream.ending.as_str() {
        "complete" => {}
        "cut" => notes.push(
            "The recording is incomplete: its writer was killed, or the disk was full. The page shows what was recorded \
             before."
                .to_string(),
        ),
        ending => notes.push(format!("The recording is {ending}. The page shows what was recorded before.")),
    }
    if let Some(window) = &manifest.notes.window {
        notes.push(format!(
            "Only the part {window} of the run was recorded, so earlier blocks are unknown."
        ));
    }
    if manifest.counts.resets > 0 {
        notes.push(
            "Blocks of traced allocators lie in blocks of malloc, and both are counted."
                .to_string(),
        );
    }
}
