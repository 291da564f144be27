//! Why something was not measured, not advised or not decided: values with their figures. They are made
//! where it happens, and `words` alone has their sentences.

use mallard_measure::verdict::Why;
use mallard_trace::replay::Strategy;
use std::path::PathBuf;
use std::time::Duration;

/// Why a candidate was not measured.
#[derive(Clone, Debug, PartialEq)]
pub enum Reason {
    /// All that a local allocator could save takes too little of the CPU time: this share.
    RegionTooSmall(f64),
    /// All that a malloc could save takes too little of the CPU time: this share.
    ProgramTooSmall(f64),
    /// A setting for calls of malloc and free, which take too little of the CPU time: this share.
    CallsTooFew(f64),
    /// A setting for page faults, which take too little of the CPU time: this share.
    FaultsTooFew(f64),
    /// A setting for several threads.
    OneThread,
    /// A setting for memory that the malloc keeps.
    LittleHeld,
    /// The budget is too small to play the recorded calls even once.
    NoTimeToPlay,
    /// The budget is too small to prepare the replay of this plan.
    NoTimeToPrepare,
    /// The budget is too small to measure anything.
    NoTimeToMeasure,
    /// A single play of the candidate did not end in time.
    PlayTooLong,
    /// Others came first.
    CameLater {
        /// What the candidate saved in a single play, as a share of the CPU time.
        saved: f64,
        /// The number of candidates that were measured.
        measured: usize,
    },
    /// The user interrupted the command after a single play that saved this share, or before any play.
    Interrupted(Option<f64>),
    /// The plan cannot be played, or the player failed, in this way.
    NotPlayed(String),
    /// The plan cannot be applied in the program, for this reason.
    NotApplied(String),
    /// Other plans saved more in runs of the program, in which this one saved this share.
    SavesLess(f64),
    /// The plan applies to no block of the recording.
    NoBlocks,
    /// The local allocators would hold too much.
    TooMuchMemory {
        /// The peak of the bytes that they hold.
        held: u64,
        /// The peak of the program's bytes in use.
        in_use: u64,
    },
    /// The program does not work under the malloc.
    Breaks(String),
    /// Dropped after this number of runs, because others saved more.
    LosesRace(usize),
    /// Other candidates ran again instead, and this number of runs does not decide.
    NotRunAgain(usize),
    /// A setting of glibc with which page faults and memory stay the same.
    NoEffect,
    /// A second recording contradicts the wink-out.
    Contradicted(Difference),
    /// The program's own malloc, with which the others are compared.
    IsBase,
    /// A strategy that differs only in a virtual interface from this one.
    SameCalls(Strategy),
    /// No rule proposes the strategy for the function.
    NotProposed,
}

/// How a region differs in a second recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// There is no such region.
    NoRegion,
    /// This number of blocks outlives its call.
    Escapes(u64),
    /// The region has another number of instances.
    Instances {
        /// The number in the second recording.
        now: u64,
        /// The number in the first recording.
        before: u64,
    },
}

impl Reason {
    /// Whether the reason also ends a candidate that was measured before.
    pub fn ends(&self) -> bool {
        matches!(
            self,
            Reason::Breaks(_)
                | Reason::LosesRace(_)
                | Reason::NotRunAgain(_)
                | Reason::NoEffect
                | Reason::Contradicted(_)
        )
    }
}

/// Why a trace shows less than the whole run.
#[derive(Clone, Debug, PartialEq)]
pub enum Gap {
    /// These events are missing, in the words of all commands.
    Events(String),
    /// Call stacks or processes are missing, in the words of all commands.
    Said(String),
    /// The trace has samples: about one block for each of so many bytes.
    Samples(u64),
    /// This share of the CPU time is of programs that were not recorded.
    Programs(f64),
    /// Only this time of the run was recorded.
    Window(String),
    /// The trace has no data of this kind.
    No(&'static str),
}

/// Why a measured plan must not be advised, however much it saves.
#[derive(Clone, Debug, PartialEq)]
pub enum Refusal {
    /// The trace is less than the whole run, and lacks this.
    PartOfRun(Option<Gap>),
    /// Another thread frees this number of blocks.
    ForeignFrees(u64),
    /// Blocks outlive their call.
    Escapes {
        /// The number of these blocks.
        blocks: u64,
        /// The functions that allocate most of them.
        functions: Vec<String>,
    },
    /// Too few calls were seen.
    FewCalls {
        /// The number of calls with a known end.
        seen: u64,
        /// The number that is needed.
        needed: u64,
    },
    /// Too few different inputs were seen.
    FewInputs {
        /// The number of different inputs.
        seen: u64,
        /// The number that is needed.
        needed: u64,
    },
    /// The plan has neither a region nor a site.
    UnknownBlocks,
    /// Another condition of the rule does not hold.
    NotShown,
    /// Several threads would use one allocator.
    Shared,
    /// The exact account has this number of blocks that would be used after their end.
    Dangling(u64),
    /// The rule does not allow to skip destructors, as the plan does.
    KeepsDestructors,
    /// There is no second recording.
    NoSecond {
        /// The reason.
        why: Option<NoSecond>,
        /// The budget that is probably enough for one.
        enough: Option<Duration>,
    },
}

/// Why the second recording that a wink-out needs is missing.
#[derive(Clone, Debug, PartialEq)]
pub enum NoSecond {
    /// The program does not run again.
    NotRun(CannotRun),
    /// The user's second recording, in this folder, lacks something.
    NoProof(PathBuf, Gap),
    /// The budget was too small.
    NoTime,
    /// The program could not be recorded again, in this way.
    Fails(String),
}

/// Why the program does not run again.
#[derive(Clone, Debug, PartialEq)]
pub enum CannotRun {
    /// The recorded run ended with this status, by a signal.
    Ended {
        /// The status, as `wait` returns it.
        status: i32,
        /// Whether a server may end in this way.
        like_a_server: bool,
    },
    /// The trace comes from another tool.
    Imported(String),
    /// The trace does not have the command line.
    NoCommandLine,
    /// There is no such program here.
    NoFile(PathBuf),
    /// This folder, in which the program was recorded, cannot be entered.
    NoFolder(PathBuf),
    /// The user gave --no-try.
    NotAsked,
    /// Runs failed in this way.
    Fails(String),
}

/// Why the recorded run may not show what the program usually does.
#[derive(Clone, Debug, PartialEq)]
pub enum Doubt {
    /// A signal ended the recorded run.
    EndedBySignal,
    /// Only one of several processes was looked at.
    OneProcess {
        /// The number of the process.
        number: i32,
        /// The file of its program.
        file: String,
        /// The share of the work that it did.
        share: f64,
    },
    /// Only a part of the run was recorded.
    Part {
        /// What is missing.
        what: String,
        /// The command that records the whole run. `None` if to record it again does not help.
        again: Option<String>,
    },
    /// The program ends otherwise without the recorder.
    OtherEnd {
        /// The name of the program.
        name: String,
        /// The status without the recorder.
        status: i32,
    },
    /// The program makes another number of calls when it is recorded again.
    OtherCalls {
        /// The number in the first recording.
        first: u64,
        /// The number in the second one.
        second: u64,
    },
}

/// A question that the measurements do not decide.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// The question and the reason.
    pub what: What,
    /// The budget that is needed to decide it. `None` if a larger budget does not help.
    pub needed: Option<Duration>,
}

/// What is not decided, and why.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// Nothing was replayed: the share of the recorded part in the CPU time is unknown.
    ShareUnknown,
    /// Nothing was replayed, because of an error: what happened, and what to type next.
    NotReplayed(String, String),
    /// Replays failed: what happened, and what to type next.
    ReplaysFail(String, String),
    /// Runs of the program failed in this way.
    RunsFail(String),
    /// Too few runs of the program ended.
    TooFewRuns,
    /// To play the recorded calls once takes this time, and this number of plays is too long.
    LongCalls(Duration, usize),
    /// One replay takes this time, and this number of replays is too long.
    LongReplay(Duration, usize),
    /// One run takes this time, and this number of runs is too long.
    LongRun(Duration, u32),
    /// Some plans were not prepared: their number, and the name of one.
    LeftOut(usize, String),
}

impl From<What> for Question {
    fn from(what: What) -> Question {
        Question { what, needed: None }
    }
}

/// A note for the reader.
#[derive(Clone, Debug, PartialEq)]
pub enum Note {
    /// What the program is or has, such as `is a script of sh`.
    OfProgram(String),
    /// A note of another part of the tool, in its words.
    Said(String),
    /// The recorded run took this CPU time, in ns: mostly the start of a process.
    ShortRun(f64),
    /// A replay is of this share of the CPU time.
    PartOfRun(f64),
    /// Runs under a malloc vary too much, so a replay decides.
    RunsVary {
        /// The name of the malloc.
        name: String,
        /// Why the runs do not decide.
        why: Option<Why>,
    },
    /// The user has interrupted the recording.
    RecordingInterrupted,
    /// The user has interrupted the command before it measured anything.
    NothingMeasured,
    /// The recording that --again names is no proof.
    Again(NoSecond),
    /// Earlier advice stays in this folder, because it decides more.
    EarlierStays(PathBuf),
}

impl Note {
    /// A warning of `mallard record` or `mallard try`. They follow the path of the program there, so most of them
    /// begin with `it`.
    pub fn of_warning(warning: String) -> Note {
        match warning.strip_prefix("it ") {
            Some(what) => Note::OfProgram(what.to_string()),
            None => Note::Said(warning),
        }
    }
}
