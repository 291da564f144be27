//! Lists how a replay differs from the recorded program.

use crate::error::{Error, ErrorKind, Result};
use crate::manifest::Manifest;
use std::fmt;

/// A reason why a replay differs from the recorded program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// Events were lost.
    Losses,
    /// The recording ends early, or is corrupt.
    Ending,
    /// The trace is sampled: it contains only some of the blocks.
    Sampled,
    /// The recording covers only a part of the run, or was paused.
    Window,
    /// Blocks were freed or reallocated, but their allocation is not in the trace.
    UnknownBlocks,
    /// The address of a block in use was allocated again, because the free of the block is missing.
    MissedFrees,
    /// Sizes are larger than a trace can store.
    CutSizes,
    /// Some events are calls of traced allocators, not of malloc.
    TracedAllocators,
    /// The trace has other processes, which the replay leaves out.
    OtherProcesses,
    /// Some instances of regions were still open at the end of the recording.
    UnfinishedRegions,
    /// A rule selects no block.
    IdleRules,
    /// Frees have no call stacks, so regions may seem to end later than they really ended.
    NoFreeStacks,
    /// Blocks are used after wink-out has freed them, which the caller has allowed.
    Escapes,
}

/// How a replay differs from the recorded program, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Validity {
    /// The reason for the difference.
    pub cause: Cause,
    /// The number of affected events, blocks, processes, instances or rules.
    pub count: u64,
    /// The difference and its reason, as a sentence.
    pub sentence: String,
}

impl fmt::Display for Validity {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

/// Counts of what the trace or the plan contains, but an op stream cannot express.
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

/// Fails if the trace is sampled, unless the caller allows sampled traces.
pub(super) fn check_samples(manifest: &Manifest, allow_samples: bool) -> Result<()> {
    if manifest.stream.sample_bytes == 0 || allow_samples {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Refused,
        "the trace is sampled, so a replay would make only a small part of the calls",
        "nothing was replayed",
        "record without --sample: mallard record -o NAME -- PROGRAM",
    ))
}

/// Returns a count with the words that agree with it: `1 event is`, `2 events are`.
fn counted(n: u64, one: &str, more: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { more })
}

/// The reasons found so far.
struct List(Vec<Validity>);

impl List {
    /// Adds a reason, unless its count is 0.
    fn add(&mut self, cause: Cause, count: u64, sentence: &dyn Fn(u64) -> String) {
        if count > 0 {
            self.0.push(Validity { cause, count, sentence: sentence(count) });
        }
    }
}

/// Returns all reasons why the replay differs.
pub(super) fn of(manifest: &Manifest, odd: &Oddities) -> Vec<Validity> {
    let mut list = List(Vec::new());
    add_of_trace(&mut list, manifest, odd);
    add_of_plan(&mut list, odd);
    list.0
}

/// Adds the reasons that come from the trace, such as lost events.
fn add_of_trace(list: &mut List, manifest: &Manifest, odd: &Oddities) {
    list.add(Cause::Losses, manifest.losses.all(), &|n| {
        format!(
            "{} missing: a lost free leaves a block in use until the end, and the frees of a block \
             whose allocation was lost are left out",
            counted(n, "event is", "events are")
        )
    });
    let ending = &manifest.stream.ending;
    list.add(Cause::Ending, u64::from(ending != "complete"), &|_| {
        format!("the recording is not complete ({ending}), so the replay ends early, too")
    });
    let stopped = manifest.notes.stopped.as_deref();
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
    let window = manifest.notes.window.as_deref();
    list.add(Cause::Window, u64::from(window.is_some()), &|_| {
        format!(
            "the recording covers only {}: blocks from before are unknown, and those that are \
             freed later stay in use",
            window.unwrap_or_default()
        )
    });
    list.add(Cause::UnknownBlocks, odd.unknown_blocks, &|n| {
        let calls = counted(n, "free or realloc of a block", "frees and reallocs of blocks");
        format!("{calls} whose allocation is not in the trace: left out")
    });
    list.add(Cause::MissedFrees, manifest.counts.missed_frees, &|n| {
        let blocks = counted(n, "block was", "blocks were");
        format!("{blocks} freed without an event: such a block stays in use in the replay")
    });
    list.add(Cause::CutSizes, odd.cut_sizes, &|n| {
        let blocks = counted(n, "block is", "blocks are");
        format!("{blocks} larger than 2^40 - 2 bytes: the replay allocates that many instead")
    });
    list.add(Cause::TracedAllocators, odd.traced, &|n| {
        let events = counted(n, "event is", "events are");
        format!("{events} of traced allocators, not of malloc: left out")
    });
    list.add(Cause::OtherProcesses, odd.other_processes, &|n| {
        let others = counted(n, "other process", "other processes");
        format!("the trace has {others} with events: the replay has one process")
    });
}

/// Adds the reasons that come from the plan.
fn add_of_plan(list: &mut List, odd: &Oddities) {
    list.add(Cause::UnfinishedRegions, odd.unfinished, &|n| {
        let instances = counted(n, "instance of a region does", "instances of regions do");
        format!("{instances} not end before the recording does")
    });
    list.add(Cause::IdleRules, odd.idle_rules, &|n| {
        let rules = counted(n, "rule of the plan applies", "rules of the plan apply");
        format!("{rules} to no block of the recording")
    });
    list.add(Cause::NoFreeStacks, odd.frees_without_stack, &|n| {
        format!(
            "{} no call stack: a region with ends = \"sure\" ends at the next allocation outside of \
             it",
            counted(n, "free has", "frees have")
        )
    });
    list.add(Cause::Escapes, odd.escapes, &|n| {
        let blocks = counted(n, "block is", "blocks are");
        format!("{blocks} used after wink-out: a program with this plan would be incorrect")
    });
}
