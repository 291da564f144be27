//! What the recording tells of a program: the first value on the way to an advice.
//!
//! `read` makes the facts from a trace, with `region` for the function that the user asks for, and `baseline` adds
//! the CPU time of the program without the recorder.

pub mod baseline;
pub mod read;
pub mod region;

use super::code::Made;
use super::options::Typed;
use super::reason::{CannotRun, Doubt, Gap, Note};
use mallard_trace::regions::Region;
use mallard_trace::residency::MemorySummary;
use mallard_trace::SiteRow;
use serde::Serialize;
use std::time::Duration;

/// What the recording tells of a program, and runs without the recorder. Nothing of this changes once
/// measurements begin.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// The program and its run.
    pub program: Program,
    /// The upper limit of what any allocator could save, without what a replay adds: see
    /// [`Measured::bound`](super::measured::Measured::bound).
    pub bound: Bound,
    /// The resident memory.
    pub memory: Memory,
    /// The largest sites by several properties, and the growing sites, in the order of call time.
    pub sites: Vec<Site>,
    /// Regions, as the trace has them.
    pub regions: Vec<Region>,
    /// The time in which this command recorded the program and found its regions. `None` if the trace was there
    /// before.
    pub recorded_in: Option<Duration>,
    /// The time that looking for regions took, a walk over all events.
    pub looked_for: Duration,
    /// Why the trace shows less than the whole run: lost events, samples, a window. Empty if the trace
    /// shows the whole run.
    pub validity: Vec<Gap>,
    /// The command that records the whole run, if the trace has only a part of it.
    pub records_all: Option<String>,
    /// Whether most of the CPU time is of programs that were not recorded.
    pub is_mostly_missing: bool,
    /// The least gain that counts, as a share.
    pub min_gain: f64,
    /// Notes for the reader about the recording.
    pub notes: Vec<Note>,
    /// Why the recorded run may not show what the program usually does. If there is such a reason, no
    /// card says to leave the allocator as it is.
    pub doubts: Vec<Doubt>,
    /// Whether the recorder changed how the program ends, so that nothing that was recorded counts.
    pub is_broken: bool,
    /// The options of the user, for the commands that the advice proposes.
    pub typed: Typed,
}

/// The recorded program.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// The folder of the trace, as the user names it.
    pub trace: String,
    /// The name of the program: the file without its folder.
    pub name: String,
    /// The file of the program. Empty if the trace does not have it.
    pub path: String,
    /// The source file of `main`. `None` without debug information.
    pub source: Option<String>,
    /// The command line, as a shell needs it. `None` if the trace does not have it.
    pub command: Option<String>,
    /// Why the program cannot run again; `None` if it can.
    pub cannot_run: Option<CannotRun>,
    /// The malloc of the program: `glibc`, or the name of another one.
    pub malloc: String,
    /// CPU time of the program without the time of the recorder, in ns. `None` if it is unknown.
    pub cpu_ns: Option<f64>,
    /// The CPU time of runs without the recorder, in ns: least, median and most. `None`: `cpu_ns` is an
    /// estimate.
    pub cpu_measured: Option<(f64, f64, f64)>,
    /// The median time of one of these runs, with what each run needs besides.
    pub run_takes: Option<Duration>,
    /// Time from start to end of the program, in ns.
    pub wall_ns: f64,
    /// Whether each run does as much as the recorded run. False for a server whose load was repeated for
    /// some time.
    pub runs_do_the_same: bool,
    /// Threads in all, of all processes.
    pub threads: u64,
    /// Processes in all.
    pub processes: u64,
    /// The greatest number of threads at once.
    pub threads_at_once: u64,
    /// Processors of this machine.
    pub cores: u64,
    /// The status with which the program ended, as `wait` returns it. `None` if it is unknown.
    pub status: Option<i32>,
    /// How the recorded run failed: `ended with status 3`. `None` if it did not fail.
    pub failure: Option<String>,
    /// Sums of the whole program: calls, bytes and D, V, L, U, C, F.
    pub totals: SiteRow,
    /// Allocations and frees.
    pub calls: u64,
}

/// The upper limits of what any allocator could save, as shares of the CPU time. `None` if a share is
/// unknown. Effects of locality are not included.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Bound {
    /// Calls, page faults and teardown together, or `replayed` if that is more; at most 1.
    pub share: Option<f64>,
    /// Calls of malloc's family.
    pub calls: Option<f64>,
    /// All calls in a replay under the program's own malloc, page faults included. A replay makes one
    /// call after the other, so it times the calls better than the recorder, but it is no limit: the
    /// program may find less of their memory in the caches.
    pub replayed: Option<f64>,
    /// The page faults that blocks can have caused: an upper limit.
    pub faults: Option<f64>,
    /// Why the shares are unknown. `None` if they are known, or if the trace is not of a kind that tells
    /// them.
    pub unknown: Option<String>,
    /// Frees at the ends of a region's instances, with the destructors that call them: wink-out skips
    /// both. Only the region with the largest share counts.
    pub teardown: Option<f64>,
}

/// The memory of the program. All figures are bytes.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// The peak of the resident bytes; 0 if it is unknown.
    pub peak_rss: u64,
    /// The parts of the resident memory, and the growing sites.
    pub summary: MemorySummary,
    /// The peak of the bytes in use.
    pub live_peak: u64,
    /// Bytes that were never freed.
    pub leaked: u64,
}

/// A site: a call stack that allocates.
#[derive(Clone, Debug)]
pub struct Site {
    /// The call stack: a node of the table `stacks`.
    pub node: i32,
    /// The innermost function that does more than pass an allocation on. Plans use this name.
    pub function: String,
    /// The short form of the function's name.
    pub shown: String,
    /// The source file.
    pub file: Option<String>,
    /// The line of the call.
    pub line: Option<u32>,
    /// The file of the program or library.
    pub module: String,
    /// The innermost function of the call stack that is not of a standard library, and does not allocate
    /// for its callers. A reader looks for this function.
    pub owner: Owner,
    /// The functions of the call stack, innermost first, in short form.
    pub stack: Vec<String>,
    /// The figures of the site.
    pub figures: SiteRow,
    /// Whether its live bytes only grow until the end.
    pub is_growing: bool,
    /// Whether the function allocates blocks of many sizes for many callers, as a malloc does, or no
    /// function of the call stack belongs to the program.
    pub passes_on: bool,
    /// What its blocks are for. `None` if the call stack does not tell.
    pub made: Option<Made>,
}

/// A function of the program that allocates, perhaps through functions of a standard library.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Owner {
    /// The function.
    pub function: String,
    /// The short form of the function's name.
    pub shown: String,
    /// The source file.
    pub file: Option<String>,
    /// The line of the call.
    pub line: Option<u32>,
}

impl Program {
    /// The word before a figure that depends on the CPU time, if this time is an estimate.
    pub fn about(&self) -> &'static str {
        match self.cpu_measured {
            Some(_) => "",
            None => "about ",
        }
    }
}
