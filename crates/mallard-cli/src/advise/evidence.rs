//! The facts behind the advice on a program: figures of its trace, and measurements.
//!
//! The pipeline fills an [`Evidence`] in steps. After the figures of the trace, the rules propose plans
//! ([`Proposal`]). Measured plans and mallocs are added as [`Candidate`]s, all others as [`Dropped`].
//! Cards are made of the whole.

use super::code::Made;
use super::typed::Typed;
use crate::replay::Played;
use crate::verdict::{Judgement, Verdict, Why};
use mallard_trace::regions::{EscapeSite, Region};
use mallard_trace::replay::Plan;
use mallard_trace::residency::MemorySummary;
use mallard_trace::SiteRow;
use serde::Serialize;
use std::time::Duration;

/// Everything that is known of a program.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// The program and its run.
    pub program: Program,
    /// The upper limit of what any allocator could save.
    pub bound: Bound,
    /// The resident memory.
    pub memory: Memory,
    /// The largest sites by several properties, and the growing sites, in the order of call time.
    pub sites: Vec<Site>,
    /// Regions, as the trace has them.
    pub regions: Vec<Region>,
    /// Indices of regions that a second recording of the program contradicts.
    pub unsteady: Vec<usize>,
    /// How many recordings of the program there are. A second one is made before wink-out is advised.
    pub recordings: u32,
    /// Why the trace shows less than the whole run: lost events, samples, a window. Empty if the trace
    /// shows the whole run.
    pub validity: Vec<String>,
    /// The share of the recorded part in the CPU time of the run, if plans and mallocs were replayed with a
    /// part of the run: then a saving is a share of the CPU time of this part.
    pub part: Option<f64>,
    /// The command that records the whole run, if the trace has only a part of it.
    pub records_all: Option<String>,
    /// Whether most of the CPU time is of programs that were not recorded.
    pub is_mostly_missing: bool,
    /// The least gain that counts, as a share.
    pub min_gain: f64,
    /// The measured candidates.
    pub candidates: Vec<Candidate>,
    /// The candidates that were not measured, with the reasons.
    pub dropped: Vec<Dropped>,
    /// Notes for the reader.
    pub notes: Vec<String>,
    /// Why the recorded run may not show what the program usually does. If there is such a reason, no
    /// card says to leave the allocator as it is.
    pub doubts: Vec<String>,
    /// Whether the recorder changed how the program ends, so that nothing that was recorded counts.
    pub is_broken: bool,
    /// The questions that are not decided, each with a reason.
    pub undecided: Vec<String>,
    /// How much two measurements of the unchanged program differ, as a share, if more than the least
    /// gain: this machine then cannot measure a difference as small as the least gain. Otherwise `None`.
    pub noise: Option<f64>,
    /// The questions for which the budget was too small.
    pub lacks: Vec<Lack>,
    /// The budget that is needed for the second recording. `None` if the budget was not too small for it.
    pub recording_needs: Option<Duration>,
    /// The budget that probably decides what this run left undecided.
    pub proposed: Option<Duration>,
    /// Whether the user has interrupted the measurement.
    pub interrupted: bool,
    /// Candidates and the savings of their single plays, the most promising first, if the measurement was
    /// interrupted after these plays. They decide nothing.
    pub single_plays: Vec<(String, f64)>,
    /// Why the second recording that wink-out needs is missing. `None` if there is a second recording,
    /// or if no plan with wink-out saves enough.
    pub not_again: Option<String>,
    /// The result of the strategy that the user asked for (--force).
    pub forced: Option<Forced>,
    /// The options of the user, for the commands that the advice proposes.
    pub typed: Typed,
}

/// A question for which the budget was too small.
#[derive(Clone, Debug)]
pub struct Lack {
    /// The question and the reason.
    pub what: String,
    /// The budget that is needed to decide it.
    pub needed: Duration,
}

/// A strategy that the user asked for, whatever the evidence says.
#[derive(Clone, Debug)]
pub struct Forced {
    /// The name of the strategy and its function: `AS4 in parse`.
    pub name: String,
    /// Blocks that are used after they were winked out.
    pub dangling: u64,
    /// The region of the strategy. `None` for the whole program.
    pub region: Option<Region>,
    /// The sites with the most dangling blocks.
    pub sites: Vec<EscapeSite>,
    /// A function that allocates such a block.
    pub from: Option<String>,
    /// The savings that replays showed. `None` if the strategy could not be replayed.
    pub played: Option<Played>,
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
    pub cannot_run: Option<String>,
    /// The malloc of the program: `glibc`, or the name of another one.
    pub malloc: String,
    /// CPU time of the program without the time of the recorder, in ns. `None` if it is unknown.
    pub cpu_ns: Option<f64>,
    /// The CPU time of runs without the recorder, in ns: least, median and most. `None`: `cpu_ns` is an
    /// estimate.
    pub cpu_measured: Option<(f64, f64, f64)>,
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

impl Bound {
    /// Adds what all calls took in a replay. The times of a recording are estimated from a few calls, so
    /// the replay may show that the calls take more.
    pub fn add_replay(&mut self, replayed: Option<f64>) {
        self.replayed = replayed;
        let least = replayed.unwrap_or(0.0).min(1.0);
        self.share = self.share.map(|share| share.max(least));
    }
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
    /// Whether the function allocates blocks of many sizes for many callers, as a malloc does.
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

/// A plan that a rule proposes to play.
#[derive(Clone, Debug)]
pub struct Proposal {
    /// The rule.
    pub rule: &'static str,
    /// The plan.
    pub plan: Plan,
    /// The region of the plan, as an index in `Evidence::regions`.
    pub region: Option<usize>,
    /// The site of the plan, as an index in `Evidence::sites`.
    pub site: Option<usize>,
}

/// The kind of change that a candidate is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Local allocators by a plan.
    Strategy,
    /// Another malloc for the whole program.
    Malloc,
    /// Environment variables for the malloc of the program.
    Variable,
}

/// How a figure was obtained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// A replay of the trace, which does not show locality.
    Replay,
    /// Runs of the program itself, which show every effect.
    Try,
}

/// The measurements of one candidate. Savings are shares of the CPU time of the program.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The name in the matrix: `AS4 in parse`, `mimalloc`, `glibc:trim=1GiB`.
    pub name: String,
    /// The kind of change.
    pub kind: Kind,
    /// The rule that proposed the candidate. `None` for a malloc or a variable.
    pub rule: Option<&'static str>,
    /// The plan of the candidate. `None` for a malloc or a variable.
    pub plan: Option<Plan>,
    /// The index of the region in `Evidence::regions`.
    pub region: Option<usize>,
    /// The index of the site in `Evidence::sites`.
    pub site: Option<usize>,
    /// The strongest evidence on the CPU time of the candidate.
    pub by: By,
    /// The saving of CPU time, with the verdict. From runs of the program if there are any, otherwise
    /// from fresh plays (see `verdict::fresh`), otherwise from the other plays.
    pub cpu: Judgement,
    /// The interval in which the saving of the program is expected, locality included. If the program
    /// itself ran, this is the interval of `cpu`.
    pub expected: Option<(f64, f64)>,
    /// The interval that the replay predicted, if runs of the program were measured after it.
    pub predicted: Option<(f64, f64)>,
    /// By how much noise widens the interval of `cpu`.
    pub margin: f64,
    /// The judgement of the replay on CPU time, if runs of the program were measured after it.
    pub replayed: Option<Judgement>,
    /// The part of the saving that is work of the allocator, by replay.
    pub allocator: Option<Judgement>,
    /// The part of the saving that is work on pages, by replay.
    pub pages: Option<Judgement>,
    /// The saving of memory: of the heap by replay, of the resident memory by runs of the program.
    pub memory: Judgement,
    /// How `memory` and `peak_bytes` were obtained. Runs of the program may measure the CPU time alone.
    pub memory_by: By,
    /// The peak of the heap, or of the resident memory, before and after the change.
    pub peak_bytes: (u64, u64),
    /// The saving of memory after the last call, by replay. A malloc may keep this memory, or fail to
    /// return it because of fragmentation. `None` if the candidate was not replayed.
    pub memory_at_end: Option<Judgement>,
    /// Bytes of the heap after the last call, before and after the change.
    pub end_bytes: (u64, u64),
    /// The exact account of the local allocators. `None` without local allocators.
    pub account: Option<Account>,
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

impl Evidence {
    /// Notes how much two measurements of the base differ, if this keeps a difference of the least gain
    /// from being measured. Of several such differences, the largest counts.
    pub fn add_noise(&mut self, control: &Judgement) {
        let has_figures = !matches!(control.why, Some(Why::TooFewBlocks { .. } | Why::NoFigure));
        if control.verdict == Verdict::NotMeasurable && has_figures {
            let reach = control.low.abs().max(control.high.abs());
            self.noise = Some(self.noise.unwrap_or(0.0).max(reach));
        }
    }

    /// The first sentence of each answer, if the recorded run failed. Otherwise empty.
    pub fn failure_sentence(&self) -> String {
        let Program { name, failure, .. } = &self.program;
        let of_failure = |failure| {
            format!("The recorded run of {name} {failure}, and the figures are of this run. ")
        };
        failure.as_ref().map_or(String::new(), of_failure)
    }

    /// All questions that are not decided, the doubts first.
    pub fn all_undecided(&self) -> impl Iterator<Item = &String> {
        self.doubts.iter().chain(&self.undecided)
    }

    /// Notes that the budget was too small to decide something, and which budget is needed.
    pub fn lacks_budget(&mut self, what: impl Into<String>, needed: Duration) {
        self.lacks.push(Lack { what: what.into(), needed });
    }
}

impl Candidate {
    /// Whether the measurement rules out that the candidate saves enough CPU time. A replay rules out
    /// nothing if its threads meet in the allocator.
    pub fn cannot_gain(&self, min_gain: f64) -> bool {
        match (self.cpu.verdict, self.cpu.why) {
            (Verdict::NoDifference | Verdict::Loss, _) => true,
            (Verdict::Gain, _) => self.cpu.saving < min_gain,
            (_, Some(Why::ThreadsMeet | Why::TooFewBlocks { .. })) => false,
            (Verdict::NotMeasurable, _) => self.cpu.high + self.margin < min_gain,
        }
    }

    /// Whether the candidate saves enough CPU time: chance does not explain the saving, and the saving
    /// is at least the least gain.
    pub fn gains(&self, min_gain: f64) -> bool {
        self.cpu.verdict == Verdict::Gain && self.cpu.saving >= min_gain
    }

    /// The saving of memory after the last call if this saving is a gain, otherwise the saving at the
    /// peak. Also returns the bytes before and after the change.
    pub fn memory_saving(&self) -> (&Judgement, (u64, u64)) {
        match &self.memory_at_end {
            Some(at_end) if at_end.verdict == Verdict::Gain => (at_end, self.end_bytes),
            _ => (&self.memory, self.peak_bytes),
        }
    }

    /// Whether `memory_saving` is the saving after the last call.
    pub fn saves_at_end(&self) -> bool {
        self.memory_at_end.as_ref().is_some_and(|at_end| at_end.verdict == Verdict::Gain)
    }

    /// Whether the candidate saves enough memory.
    pub fn gains_memory(&self, min_gain: f64) -> bool {
        let (memory, _) = self.memory_saving();
        memory.verdict == Verdict::Gain && memory.saving >= min_gain
    }
}

/// The exact account of the local allocators of a plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Account {
    /// Instances of the region; 1 without a region.
    pub instances: u64,
    /// Blocks that the local allocators served.
    pub blocks: u64,
    /// The peak of these blocks' bytes in use, in one instance.
    pub in_use_peak: u64,
    /// The peak of the bytes that the local allocators hold.
    pub held_peak: u64,
    /// Blocks that outlive their instance.
    pub escapes: u64,
    /// Frees that the plan skips, together with the destructors that call them.
    pub winked_out: u64,
    /// Whether several threads use one instance.
    pub is_shared: bool,
}

/// A candidate that was not measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Dropped {
    /// The name in the matrix.
    pub name: String,
    /// The kind of change.
    pub kind: Kind,
    /// The index of the region in `Evidence::regions`.
    pub region: Option<usize>,
    /// The reason, as part of a sentence: `it can save at most 0.4 %`.
    pub why: String,
}
