//! Facts about the program, from the recording. The first of the four `mallard advise` steps finds
//! these facts.
//!
//! `read` makes the facts from a trace. `region` finds the regions of the function that the user
//! asks for. `baseline` adds the CPU time of the program without the recorder.

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

/// Facts about the program, from the recording and from runs without the recorder. They do not
/// change once measurements begin.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// The program and its run.
    pub program: Program,
    /// The upper limit of what any allocator could save, from the recording alone. A replay may
    /// raise this limit, see [`Measured::bound`](super::measured::Measured::bound).
    pub bound: Bound,
    /// The resident memory.
    pub memory: Memory,
    /// The sites that rank highest by several properties, and the growing sites. The site whose
    /// calls take the most time comes first.
    pub sites: Vec<Site>,
    /// The regions that were found in the trace.
    pub regions: Vec<Region>,
    /// The time in which this command recorded the program and found its regions. `None` if the
    /// trace existed before.
    pub recorded_in: Option<Duration>,
    /// The time of the search for regions, which reads all events.
    pub looked_for: Duration,
    /// Why the trace shows less than the whole run, such as lost events, samples or a time window.
    /// Empty if the trace shows the whole run.
    pub validity: Vec<Gap>,
    /// The command that records the whole run, if the trace has only a part of it.
    pub records_all: Option<String>,
    /// Whether programs that were not recorded used most of the CPU time.
    pub is_mostly_missing: bool,
    /// The smallest saving that counts as a gain, as a share.
    pub min_gain: f64,
    /// Notes for the reader about the recording.
    pub notes: Vec<Note>,
    /// Why the recorded run is perhaps not typical of the program. If there is such a reason,
    /// no card recommends to leave the allocator as it is.
    pub doubts: Vec<Doubt>,
    /// Whether the program exits with another status without the recorder. In that case, no advice
    /// is based on the recording.
    pub is_broken: bool,
    /// The options of the user, for the commands that the advice proposes.
    pub typed: Typed,
}

/// The recorded program.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// The directory of the trace, as the user names it.
    pub trace: String,
    /// The file name of the program, without its directory.
    pub name: String,
    /// The file of the program. Empty if the trace does not have it.
    pub path: String,
    /// The source file of `main`. `None` without debug information.
    pub source: Option<String>,
    /// The command line, quoted for a shell. `None` if the trace does not have it.
    pub command: Option<String>,
    /// The reason why the program cannot run again. `None` if the program can run again.
    pub cannot_run: Option<CannotRun>,
    /// The malloc of the program, which is `glibc` or the name of another malloc.
    pub malloc: String,
    /// CPU time of the program without the time of the recorder, in ns. `None` if it is unknown.
    pub cpu_ns: Option<f64>,
    /// The CPU time of runs without the recorder, in ns: minimum, median and maximum. `None` if
    /// `cpu_ns` is an estimate.
    pub cpu_measured: Option<(f64, f64, f64)>,
    /// The median wall time of the runs without the recorder, including the setup of each run.
    pub run_takes: Option<Duration>,
    /// The wall time from start to end of the program, in ns.
    pub wall_ns: f64,
    /// Whether each run does as much work as the recorded run. False for a server whose load was
    /// repeated for a given time.
    pub runs_do_the_same: bool,
    /// The number of threads, in all processes together.
    pub threads: u64,
    /// The number of processes.
    pub processes: u64,
    /// The maximum number of threads that existed at the same time.
    pub threads_at_once: u64,
    /// The number of CPUs of this machine.
    pub cores: u64,
    /// The status of the program in the format of `wait`. `None` if the status is unknown.
    pub status: Option<i32>,
    /// How the recorded run failed, such as `ended with status 3`. `None` if it did not fail.
    pub failure: Option<String>,
    /// Totals of the whole program: calls, bytes and the properties D, V, L, U, C and F
    /// (docs/glossary.md).
    pub totals: SiteRow,
    /// The number of recorded calls that allocate or free.
    pub calls: u64,
}

/// The upper limits of what any allocator could save, as shares of the CPU time. `None` if a share is
/// unknown. Effects of locality are not included.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Bound {
    /// The sum of `calls`, `faults` and `teardown`, or `replayed` if `replayed` is larger. At most
    /// 1.
    pub share: Option<f64>,
    /// The share for calls of `malloc`, `free` and related functions.
    pub calls: Option<f64>,
    /// All calls in a replay under the program's own malloc, including page faults. A replay makes
    /// the calls back to back, so it times them better than the recorder. But this share is no
    /// upper limit, because calls in the program may have more cache misses.
    pub replayed: Option<f64>,
    /// Page faults that accesses to blocks can have caused, as an upper limit.
    pub faults: Option<f64>,
    /// Why the shares are unknown. `None` if they are known, or if a trace of this kind never
    /// contains them.
    pub unknown: Option<String>,
    /// Frees at the ends of a region's instances, with the destructors that call them. Wink-out
    /// skips both. Only the region with the largest share counts.
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

/// An allocation site, which is one call stack that allocates.
#[derive(Clone, Debug)]
pub struct Site {
    /// The call stack, as the index of a node in the table `stacks`.
    pub node: i32,
    /// The innermost function that is not an allocation wrapper. Plans use this name.
    pub function: String,
    /// The short form of the function's name.
    pub shown: String,
    /// The source file.
    pub file: Option<String>,
    /// The line of the call.
    pub line: Option<u32>,
    /// The program or library file that contains the function.
    pub module: String,
    /// The innermost function of the call stack that belongs to no standard library and is not an
    /// allocation wrapper. This is the function that a user would change.
    pub owner: Owner,
    /// The functions of the call stack, innermost first, in short form.
    pub stack: Vec<String>,
    /// The figures of the site.
    pub figures: SiteRow,
    /// Whether the live bytes of the site only grow until the end of the recording.
    pub is_growing: bool,
    /// Whether the function allocates blocks of many sizes for many callers, as a malloc does, or
    /// no function of the call stack belongs to the program.
    pub passes_on: bool,
    /// The purpose of the blocks, such as a hash map. `None` if the call stack does not show the
    /// purpose.
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
    /// Returns the word before a figure that depends on the CPU time. The word is `about` if this
    /// CPU time is an estimate, and otherwise empty.
    pub fn about(&self) -> &'static str {
        match self.cpu_measured {
            Some(_) => "",
            None => "about ",
        }
    }
}
