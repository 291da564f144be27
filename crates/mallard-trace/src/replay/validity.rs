//! Says how a replay differs from the recorded program.

use super::compiled::{Cause, Validity};
use super::Options;
use crate::error::{Error, ErrorKind, Result};
use crate::manifest::Manifest;

/// What the compiler counted of events that an op stream cannot have.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Oddities {
    pub unknown_blocks: u64,
    pub cut_sizes: u64,
    pub traced: u64,
    pub other_processes: u64,
    pub unfinished: u64,
    pub idle_rules: u64,
    pub escapes: u64,
    pub frees_without_stack: u64,
}

/// Fails if a sampled trace would be replayed and the caller does not insist.
pub(super) fn check_samples(manifest: &Manifest, options: &Options) -> Result<()> {
    if manifest.stream.sample_bytes == 0 || options.allow_samples {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Refused,
        "the trace has samples, not all calls: a replay of it would do a small part of the work",
        "nothing was replayed",
        "record without --sample: mallard record -o NAME -- PROGRAM",
    ))
}

/// The reasons so far.
struct List(Vec<Validity>);

impl List {
    /// Adds a reason, unless its count is 0.
    fn add(&mut self, cause: Cause, count: u64, sentence: &dyn Fn(u64) -> String) {
        if count > 0 {
            self.0.push(Validity { cause, count, sentence: sentence(count) });
        }
    }
}

/// All reasons why the replay differs.
pub(super) fn of(manifest: &Manifest, odd: &Oddities) -> Vec<Validity> {
    let mut list = List(Vec::new());
    add_of_trace(&mut list, manifest, odd);
    add_of_plan(&mut list, odd);
    list.0
}

/// Adds the reasons that lie in the trace.
fn add_of_trace(list: &mut List, manifest: &Manifest, odd: &Oddities) {
    list.add(Cause::Losses, manifest.losses.all(), &|n| {
        format!(
            "{n} events are missing: a lost free leaves a block in use until the end, and the frees \
             of a block whose allocation was lost are left out"
        )
    });
    let ending = &manifest.stream.ending;
    list.add(Cause::Ending, u64::from(ending != "complete"), &|_| {
        format!("the recording is not complete ({ending}): the replay ends where it does")
    });
    let stopped = manifest.notes.get("stopped").and_then(|why| why.as_str());
    list.add(Cause::Ending, u64::from(stopped.is_some()), &|_| {
        format!(
            "the recording stopped when {}: the replay ends there, and has no later frees",
            stopped.unwrap_or_default()
        )
    });
    list.add(Cause::Sampled, manifest.stream.sample_bytes, &|n| {
        format!(
            "the trace has about one block for each {n} bytes: numbers of calls, times and memory are \
             those of the samples alone"
        )
    });
    let window = manifest.notes.get("window").and_then(|window| window.as_str());
    list.add(Cause::Window, u64::from(window.is_some()), &|_| {
        format!(
            "the recording has only the time {}: blocks from before are unknown, and those that are \
             freed later stay in use",
            window.unwrap_or_default()
        )
    });
    list.add(Cause::UnknownBlocks, odd.unknown_blocks, &|n| {
        format!(
            "{n} frees and reallocs of blocks whose allocation is not in the trace are left out"
        )
    });
    list.add(Cause::MissedFrees, manifest.counts.missed_frees, &|n| {
        format!("{n} blocks were freed without an event: in the replay they stay in use")
    });
    list.add(Cause::CutSizes, odd.cut_sizes, &|n| {
        format!("{n} blocks are larger than 2^40 - 2 bytes, and have that size in the replay")
    });
    list.add(Cause::TracedAllocators, odd.traced, &|n| {
        format!("{n} events are of traced allocators, not of malloc, and are left out")
    });
    list.add(Cause::OtherProcesses, odd.other_processes, &|n| {
        format!("the trace has {n} other processes with events: the replay has one process")
    });
}

/// Adds the reasons that lie in the plan.
fn add_of_plan(list: &mut List, odd: &Oddities) {
    list.add(Cause::UnfinishedRegions, odd.unfinished, &|n| {
        format!("{n} instances of regions do not end before the recording does")
    });
    list.add(Cause::IdleRules, odd.idle_rules, &|n| {
        format!("{n} rules of the plan apply to no block of the recording")
    });
    list.add(Cause::NoFreeStacks, odd.frees_without_stack, &|n| {
        format!(
            "{n} frees have no call stack: a region of ends = \"sure\" ends at the next allocation \
             outside of it"
        )
    });
    list.add(Cause::Escapes, odd.escapes, &|n| {
        format!("{n} blocks are used after wink-out: a program with this plan would be wrong")
    });
}
