//! The changes that are measured, each with its figures, and those that are not, each with the reason.

use super::reason::Reason;
use crate::replay::Played;
use mallard_measure::verdict::{Judgement, Verdict, Why};
use mallard_trace::regions::{EscapeSite, Region};
use mallard_trace::replay::{Plan, Strategy};
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;

/// The name of a candidate in the matrix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Name {
    /// A malloc or a setting: `mimalloc`, `glibc:trim=1GiB`.
    Allocator(String),
    /// A strategy and its place: `AS4 in parse`.
    Plan(Strategy, String),
}

impl Name {
    /// The name without the place.
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
    /// Runs of the program itself with the plan in force, and without any change of its source.
    Plan,
}

/// What runs of the program with a plan in force show. Shares are of the CPU time of the program without the
/// plan.
#[derive(Clone, Debug)]
pub struct InProgram {
    /// The saving against the control, which makes the same decisions and leaves all blocks to malloc.
    pub cpu: Judgement,
    /// The saving against the program as it is: what `mallard run --plan` saves.
    pub as_it_is: Judgement,
    /// The part of the CPU time that the calls of malloc and free take which code does not make if it has
    /// the allocator inline: at least and at most.
    pub calls: (f64, f64),
    /// The part of the CPU time that frees and destructors at the end of a region take, which wink-out skips.
    /// 0 for a plan without wink-out.
    pub ends: f64,
    /// The compiled plan.
    pub file: PathBuf,
}

impl InProgram {
    /// The interval in which the saving of a change of the source lies: what the plan was measured to save, the
    /// calls, and at most what wink-out skips.
    pub fn expected(&self) -> (f64, f64) {
        let (least, most) = self.calls;
        (self.cpu.low + least, (self.cpu.high + most + self.ends).min(1.0))
    }
}

/// The measurements of one candidate. Savings are shares of the CPU time of the program.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The name in the matrix.
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
    /// What runs of the program with the plan show. `None` if there were none.
    pub in_program: Option<InProgram>,
}

impl Candidate {
    /// Adds what a replay tells of a malloc under which the program ran.
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

    /// Whether the candidate is a malloc or a setting under which the program did not run. Only a run
    /// shows that the program works there, so no card advises such a change.
    pub fn never_ran(&self) -> bool {
        self.kind != Kind::Strategy && self.by == By::Replay
    }

    /// Whether the measurement rules out that the candidate saves enough CPU time. A replay rules out
    /// nothing if its threads meet in the allocator.
    pub fn cannot_gain(&self, min_gain: f64) -> bool {
        match (self.cpu.verdict, self.cpu.why) {
            (Verdict::NoDifference | Verdict::Loss, _) => true,
            (Verdict::Gain, _) => self.cpu.saving < min_gain,
            (_, Some(Why::ThreadsMeet | Why::TooFewRounds { .. })) => false,
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
    pub name: Name,
    /// The kind of change.
    pub kind: Kind,
    /// The index of the region in `Facts::regions`.
    pub region: Option<usize>,
    /// The reason.
    pub why: Reason,
}

impl Dropped {
    /// Whether a candidate that was measured before does not count any more.
    pub fn ends(&self, of: &Candidate) -> bool {
        self.why.ends() && self.name == of.name && self.region == of.region
    }
}

/// A candidate that is not measured.
pub fn dropped(name: Name, kind: Kind, region: Option<usize>, why: Reason) -> Dropped {
    Dropped { name, kind, region, why }
}
