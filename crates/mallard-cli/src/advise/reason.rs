//! Reasons why something was not measured, recommended or decided, as values with figures. The code
//! that decides makes the value, and only the module `words` turns values into sentences.

use mallard_measure::verdict::Why;
use mallard_trace::replay::Strategy;
use std::path::PathBuf;
use std::time::Duration;

/// Why a candidate was not measured, or was ruled out.
#[derive(Clone, Debug, PartialEq)]
pub enum Reason {
    /// A local allocator could save at most this share of the CPU time, which is too little.
    RegionTooSmall(f64),
    /// A malloc could save at most this share of the CPU time, which is too little.
    ProgramTooSmall(f64),
    /// The setting affects only calls of malloc and free, which take this share of the CPU time.
    CallsTooFew(f64),
    /// The setting affects only page faults, which take this share of the CPU time.
    FaultsTooFew(f64),
    /// The setting affects only programs with several threads at the same time.
    OneThread,
    /// The setting affects only memory that the malloc retains, and the malloc retains little.
    LittleHeld,
    /// The budget is too small to replay the recorded calls even once.
    NoTimeToPlay,
    /// The budget is too small to prepare the replay of this plan.
    NoTimeToPrepare,
    /// The budget is too small to measure anything.
    NoTimeToMeasure,
    /// A single replay of the candidate did not finish in time.
    PlayTooLong,
    /// Other candidates saved more in single replays, and only those were measured.
    CameLater {
        /// What the candidate saved in a single replay, as a share of the CPU time.
        saved: f64,
        /// The number of candidates that were measured.
        measured: usize,
    },
    /// The user interrupted the command. The value is the candidate's saving in a single replay, or
    /// `None` if the candidate was not replayed.
    Interrupted(Option<f64>),
    /// The plan cannot be replayed, or the replayer failed, for this reason.
    NotPlayed(String),
    /// The plan cannot be applied in the program, for this reason.
    NotApplied(String),
    /// In runs of the program, the plan saved this share, but the runs do not show that the saving
    /// is real.
    NoGain(f64),
    /// The plan applies to no block of the recording.
    NoBlocks,
    /// The local allocators would hold too much memory.
    TooMuchMemory {
        /// The peak of the bytes that the local allocators would hold.
        held: u64,
        /// The peak of the program's bytes in use.
        in_use: u64,
    },
    /// The program does not work under the malloc. The text describes the failure.
    Breaks(String),
    /// The candidate was dropped after this number of runs, because other candidates saved more.
    LosesRace(usize),
    /// This number of runs does not decide about the candidate, and only other candidates ran
    /// again.
    NotRunAgain(usize),
    /// A setting of glibc that changed neither page faults nor memory.
    NoEffect,
    /// A second recording shows that wink-out is unsafe.
    Contradicted(Difference),
    /// The candidate is the program's own malloc, with which the other mallocs are compared.
    IsBase,
    /// The strategy makes the same calls as this other strategy, and differs only in a virtual
    /// interface.
    SameCalls(Strategy),
    /// No rule proposes the strategy for the function.
    NotProposed,
}

/// How a region differs in a second recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// The second recording does not have the region.
    NoRegion,
    /// In the second recording, this number of blocks outlive their call, which is more than in the
    /// first.
    Escapes(u64),
    /// The number of instances differs.
    Instances {
        /// The number of instances in the second recording.
        now: u64,
        /// The number of instances in the first recording.
        before: u64,
    },
}

impl Reason {
    /// Returns whether the reason removes the candidate even if the candidate was measured before.
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
    /// Events are missing. The text is the same as in other commands.
    Events(String),
    /// Call stacks or processes are missing. The text is the same as in other commands.
    Said(String),
    /// The trace has only samples, about one block for each time that this number of bytes was
    /// allocated.
    Samples(u64),
    /// Programs that were not recorded used this share of the CPU time.
    Programs(f64),
    /// Only this time window of the run was recorded.
    Window(String),
    /// The recording began in a process that was already running.
    Beginning,
    /// The trace has no data of this kind, such as CPU times.
    No(&'static str),
}

/// Why a measured plan must not be recommended, however much it saves.
#[derive(Clone, Debug, PartialEq)]
pub enum Refusal {
    /// The trace shows less than the whole run, because of this gap.
    PartOfRun(Option<Gap>),
    /// Other threads free this number of the blocks.
    ForeignFrees(u64),
    /// Blocks outlive the call in which they were allocated.
    Escapes {
        /// The number of blocks that outlive their call.
        blocks: u64,
        /// The functions that allocate most of these blocks.
        functions: Vec<String>,
    },
    /// The recording has too few calls of the function.
    FewCalls {
        /// The number of calls whose end is in the recording.
        seen: u64,
        /// The number of calls that the rule needs.
        needed: u64,
    },
    /// The recording has too few different inputs of the function.
    FewInputs {
        /// The number of different inputs.
        seen: u64,
        /// The number of different inputs that the rule needs.
        needed: u64,
    },
    /// The plan has neither a region nor a site.
    UnknownBlocks,
    /// Another condition of the rule does not hold.
    NotShown,
    /// Several threads would use one allocator.
    Shared,
    /// According to exact counts, this number of blocks would be used after wink-out has freed
    /// them.
    Dangling(u64),
    /// The plan skips destructors, but its rule does not allow that.
    KeepsDestructors,
    /// Wink-out needs a second recording, and there is none.
    NoSecond {
        /// Why there is no second recording, if the reason is known.
        why: Option<NoSecond>,
        /// A budget that is probably enough for a second recording.
        enough: Option<Duration>,
    },
}

/// Why the second recording that a wink-out needs is missing.
#[derive(Clone, Debug, PartialEq)]
pub enum NoSecond {
    /// The program cannot run again.
    NotRun(CannotRun),
    /// The user's second recording, in this directory, is incomplete because of this gap.
    NoProof(PathBuf, Gap),
    /// The budget was too small for a second recording.
    NoTime,
    /// The program could not be recorded again, for this reason.
    Fails(String),
}

/// Why the program cannot or must not run again.
#[derive(Clone, Debug, PartialEq)]
pub enum CannotRun {
    /// A signal terminated the recorded run, with this status.
    Ended {
        /// The status in the format of `wait`.
        status: i32,
        /// Whether servers are usually terminated by such a signal.
        like_a_server: bool,
    },
    /// The trace comes from another tool.
    Imported(String),
    /// The trace is of a process that was running already.
    WasRunning,
    /// The trace does not have the command line.
    NoCommandLine,
    /// The program file does not exist on this machine.
    NoFile(PathBuf),
    /// The command cannot change to this directory, in which the program was recorded.
    NoFolder(PathBuf),
    /// The user gave --no-try.
    NotAsked,
    /// Runs failed, and this is what happened.
    Fails(String),
}

/// Why the recorded run is perhaps not typical of the program.
#[derive(Clone, Debug, PartialEq)]
pub enum Doubt {
    /// A signal terminated the recorded run.
    EndedBySignal,
    /// Only one of several processes is replayed, and this process does less than half of the work.
    OneProcess {
        /// The number of the process in the trace.
        number: i32,
        /// The program file of the process.
        file: String,
        /// The share of the work that the process did.
        share: f64,
    },
    /// Only a part of the run was recorded.
    Part {
        /// What is missing in the recording.
        what: String,
        /// The command that records the whole run. `None` if another recording would not help.
        again: Option<String>,
    },
    /// The program exits with another status if it runs without the recorder.
    OtherEnd {
        /// The name of the program.
        name: String,
        /// The exit status without the recorder.
        status: i32,
    },
    /// A second recording of the program has a different number of calls.
    OtherCalls {
        /// The number of calls in the first recording.
        first: u64,
        /// The number of calls in the second recording.
        second: u64,
    },
}

/// A question that the measurements do not decide.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// The question, and why it is open.
    pub what: What,
    /// The budget that is needed to decide the question. `None` if a larger budget does not help.
    pub needed: Option<Duration>,
}

/// What is not decided, and why.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// Nothing was replayed, because the share of the recorded part in the CPU time is unknown.
    ShareUnknown,
    /// Nothing was replayed, because of an error. The texts describe the error and what the user
    /// can do.
    NotReplayed(String, String),
    /// Replays failed. The texts describe the error and what the user can do.
    ReplaysFail(String, String),
    /// Runs of the program failed, and this is what happened.
    RunsFail(String),
    /// Too few runs of the program finished.
    TooFewRuns,
    /// One replay of the recorded calls takes this time, and the budget is too small for this
    /// number of replays.
    LongCalls(Duration, usize),
    /// One replay of a candidate takes this time, and the budget is too small for this number of
    /// replays.
    LongReplay(Duration, usize),
    /// One run of the program takes this time, and the budget is too small for this number of runs.
    LongRun(Duration, u32),
    /// The budget was too small to prepare some plans. The values are the number of these plans and
    /// the name of the first plan.
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
    /// A property of the program, such as `is a script of sh`.
    OfProgram(String),
    /// A note from another part of the tool, which is printed as it is.
    Said(String),
    /// The recorded run took only this CPU time, in ns, which is mostly process startup.
    ShortRun(f64),
    /// A replay covers only this share of the CPU time.
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
    /// The recording that --again names cannot confirm the advice, for this reason.
    Again(NoSecond),
    /// Earlier advice stays in this directory, because it decides more.
    EarlierStays(PathBuf),
}

impl Note {
    /// Makes a note from a warning of `mallard record` or `mallard try`. These commands print a
    /// warning after the path of the program, so most warnings begin with `it`.
    pub fn of_warning(warning: String) -> Note {
        match warning.strip_prefix("it ") {
            Some(what) => Note::OfProgram(what.to_string()),
            None => Note::Said(warning),
        }
    }
}
