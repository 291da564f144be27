//! Candidates are changes that may save CPU time or memory. A measured candidate has its figures,
//! and any other candidate has the reason why it was not measured.

use super::reason::Reason;
use crate::replay::Played;
use mallard_measure::verdict::{Judgement, Verdict, Why};
use mallard_trace::regions::{EscapeSite, Region};
use mallard_trace::replay::{Plan, Strategy};
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;

/// The name of a candidate in the `matrix` of the JSON output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Name {
    /// A malloc or a setting, such as `mimalloc` or `glibc:trim=1GiB`.
    Allocator(String),
    /// A strategy and where it applies, such as `AS4 in parse`.
    Plan(Strategy, String),
}

impl Name {
    /// Returns the name without the place.
    pub fn short(&self) -> String {
        match self {
            Name::Allocator(name) => name.clone(),
            Name::Plan(strategy, _) => strategy.to_string(),
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Name::Allocator(name) => f.write_str(name),
            Name::Plan(strategy, place) if place.is_empty() => write!(f, "{strategy}"),
            Name::Plan(strategy, place) => write!(f, "{strategy} {place}"),
        }
    }
}

#[cfg(test)]
impl From<&str> for Name {
    fn from(name: &str) -> Name {
        let (first, place) = name.split_once(' ').unwrap_or((name, ""));
        match first.parse() {
            Ok(strategy) => Name::Plan(strategy, place.to_string()),
            Err(()) => Name::Allocator(name.to_string()),
        }
    }
}

/// The kind of change that a candidate is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A plan that assigns local allocators to parts of the program.
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
    /// Runs of the program itself, which show every effect, under a malloc or a setting.
    Try,
    /// Runs of the program itself with a plan applied, without any change of the source.
    Plan,
}

/// Results of runs of the program with a plan applied. Shares are relative to the CPU time of the
/// program without the plan.
#[derive(Clone, Debug)]
pub struct InProgram {
    /// The CPU time saving compared with a control run. The control run decides about each block as
    /// the plan does, but allocates all blocks from malloc.
    pub cpu: Judgement,
    /// The CPU time saving compared with the unchanged program. This is what `mallard run --plan`
    /// saves.
    pub as_it_is: Judgement,
    /// The minimum and maximum share of the CPU time that inline allocator code would save, because
    /// the program would call no library to allocate and free blocks.
    pub calls: (f64, f64),
    /// The share of the CPU time for frees and destructors at the end of a region, which wink-out
    /// skips. 0 for a plan without wink-out.
    pub ends: f64,
    /// The file of the compiled plan.
    pub file: PathBuf,
}

impl InProgram {
    /// Returns the interval of the saving that a change of the source would have. Both ends are the
    /// measured saving of the plan plus the saving of inline code. The upper end also includes the
    /// frees and destructors that wink-out skips.
    pub fn expected(&self) -> (f64, f64) {
        let (least, most) = self.calls;
        (self.cpu.low + least, (self.cpu.high + most + self.ends).min(1.0))
    }
}

/// The measurements of one candidate. Savings of CPU time are shares of the CPU time of the
/// program.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The name in the `matrix` of the JSON output.
    pub name: Name,
    /// The kind of change.
    pub kind: Kind,
    /// The rule that proposed the candidate. `None` for a malloc or a variable.
    pub rule: Option<&'static str>,
    /// The plan of the candidate. `None` for a malloc or a variable.
    pub plan: Option<Plan>,
    /// The index of the region in `Facts::regions`.
    pub region: Option<usize>,
    /// The index of the site in `Facts::sites`.
    pub site: Option<usize>,
    /// The strongest kind of evidence that `cpu` is based on.
    pub by: By,
    /// The saving of CPU time, with the verdict. The saving is from runs of the program if there
    /// are any, otherwise from confirmation rounds of replays (see `verdict::fresh`), otherwise
    /// from the first replays.
    pub cpu: Judgement,
    /// The interval in which the saving in the program is expected, including effects of locality.
    /// If the program itself ran, this is the interval of `cpu`.
    pub expected: Option<(f64, f64)>,
    /// The interval that a replay predicted, if the candidate was replayed and the program ran as
    /// well.
    pub predicted: Option<(f64, f64)>,
    /// The amount by which noise widens the interval of `cpu`.
    pub margin: f64,
    /// The judgement of the replay on CPU time, if the candidate was replayed and the program ran
    /// as well.
    pub replayed: Option<Judgement>,
    /// The part of the CPU time saving that comes from less work in the allocator, from a replay.
    pub allocator: Option<Judgement>,
    /// The part of the CPU time saving that comes from less work on pages in the kernel, from a
    /// replay.
    pub pages: Option<Judgement>,
    /// The saving of memory: of heap bytes if a replay measured it, of resident memory if runs did.
    pub memory: Judgement,
    /// How `memory` and `peak_bytes` were obtained. Runs of the program may measure the CPU time alone.
    pub memory_by: By,
    /// The peak of the heap, or of the resident memory, before and after the change.
    pub peak_bytes: (u64, u64),
    /// The saving of memory that is held after the last call, from a replay. A malloc may retain
    /// free memory, or fail to return it because of fragmentation. `None` if the candidate was not
    /// replayed.
    pub memory_at_end: Option<Judgement>,
    /// Bytes of the heap after the last call, before and after the change.
    pub end_bytes: (u64, u64),
    /// Exact counts of what the local allocators serve. `None` without local allocators.
    pub account: Option<Account>,
    /// Results of runs of the program with the plan applied. `None` if there were no such runs.
    pub in_program: Option<InProgram>,
}

impl Candidate {
    /// Adds the results of a replay to those of a malloc under which the program ran.
    pub fn with_replay(self, of: &Candidate) -> Candidate {
        Candidate {
            predicted: of.expected,
            replayed: Some(of.cpu.clone()),
            allocator: of.allocator.clone(),
            pages: of.pages.clone(),
            memory_at_end: of.memory_at_end.clone(),
            end_bytes: of.end_bytes,
            ..self
        }
    }

    /// Returns whether the candidate is a malloc or a setting under which the program did not run.
    /// Only a run shows that the program works with the candidate, so no card recommends such a
    /// change.
    pub fn never_ran(&self) -> bool {
        self.kind != Kind::Strategy && self.by == By::Replay
    }

    /// Returns whether the measurement shows that the candidate cannot save enough CPU time. A
    /// replay in which several threads allocate at the same time, and a measurement with too few
    /// rounds, do not show that.
    pub fn cannot_gain(&self, min_gain: f64) -> bool {
        match (self.cpu.verdict, self.cpu.why) {
            (Verdict::NoDifference | Verdict::Loss, _) => true,
            (Verdict::Gain, _) => self.cpu.saving < min_gain,
            (_, Some(Why::ThreadsMeet | Why::TooFewRounds { .. })) => false,
            (Verdict::NotMeasurable, _) => self.cpu.high + self.margin < min_gain,
        }
    }

    /// Returns whether the candidate saves at least `min_gain` of the CPU time, and chance does not
    /// explain the saving.
    pub fn gains(&self, min_gain: f64) -> bool {
        self.cpu.verdict == Verdict::Gain && self.cpu.saving >= min_gain
    }

    /// Returns the saving of memory after the last call if this saving is a gain, otherwise the
    /// saving at the peak. Also returns the bytes before and after the change.
    pub fn memory_saving(&self) -> (&Judgement, (u64, u64)) {
        match &self.memory_at_end {
            Some(at_end) if at_end.verdict == Verdict::Gain => (at_end, self.end_bytes),
            _ => (&self.memory, self.peak_bytes),
        }
    }

    /// Returns whether `memory_saving` is the saving after the last call.
    pub fn saves_at_end(&self) -> bool {
        self.memory_at_end.as_ref().is_some_and(|at_end| at_end.verdict == Verdict::Gain)
    }

    /// Returns whether the candidate saves enough memory.
    pub fn gains_memory(&self, min_gain: f64) -> bool {
        let (memory, _) = self.memory_saving();
        memory.verdict == Verdict::Gain && memory.saving >= min_gain
    }
}

/// The result of a strategy that the user asked for, even if the evidence speaks against the
/// strategy.
#[derive(Clone, Debug)]
pub struct Forced {
    /// The name of the strategy and its function, such as `AS4 in parse`.
    pub name: String,
    /// The number of blocks that would be used after wink-out has freed them.
    pub dangling: u64,
    /// The region of the strategy. `None` for the whole program.
    pub region: Option<Region>,
    /// The sites that allocate the most of these dangling blocks.
    pub sites: Vec<EscapeSite>,
    /// A function that allocates a dangling block.
    pub from: Option<String>,
    /// The savings that replays showed. `None` if the strategy could not be replayed.
    pub played: Option<Played>,
}

/// Exact counts of the blocks and bytes that the local allocators of a plan serve.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Account {
    /// The number of instances of the region; 1 without a region.
    pub instances: u64,
    /// The number of blocks that the local allocators served.
    pub blocks: u64,
    /// The peak of the bytes of these blocks that were in use, in one instance.
    pub in_use_peak: u64,
    /// The peak of the bytes that the local allocators hold.
    pub held_peak: u64,
    /// The number of blocks that outlive their instance.
    pub escapes: u64,
    /// The number of frees that the plan skips, together with the destructors that call them.
    pub winked_out: u64,
    /// Whether several threads use one instance.
    pub is_shared: bool,
}

/// A candidate that was not measured, or that was ruled out after a measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct Dropped {
    /// The name in the `matrix` of the JSON output.
    pub name: Name,
    /// The kind of change.
    pub kind: Kind,
    /// The index of the region in `Facts::regions`.
    pub region: Option<usize>,
    /// Why the candidate was not measured, or was ruled out.
    pub why: Reason,
}

impl Dropped {
    /// Returns whether this entry rules out the candidate `of`, which was measured before.
    pub fn ends(&self, of: &Candidate) -> bool {
        self.why.ends() && self.name == of.name && self.region == of.region
    }
}

/// Makes the entry of a candidate that is not measured, or is ruled out.
pub fn dropped(name: Name, kind: Kind, region: Option<usize>, why: Reason) -> Dropped {
    Dropped { name, kind, region, why }
}
