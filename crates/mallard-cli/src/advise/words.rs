//! Writes the sentences of all reasons, doubts, questions and notes, for the terminal, JSON and the
//! report.
//!
//! The sentences of cards are in `card`.

use super::facts::Program;
use super::measured::Measured;
use super::reason::{
    CannotRun, Difference, Doubt, Gap, NoSecond, Note, Question, Reason, Refusal, What,
};
use crate::look::frames::in_words;
use mallard_measure::output::shell::quoted_path;
use mallard_measure::output::units::{budget, bytes, count, percent, plural, time};
use mallard_measure::rounds::subject::failure;
use std::fmt;
use std::time::Duration;

/// Lists all open questions, the doubts about the recording first.
pub fn undecided(measured: &Measured) -> Vec<String> {
    let doubts = measured.doubts().map(Doubt::to_string);
    let questions = measured.open_questions().map(|of| question(of, measured.proposed));
    doubts.chain(questions).collect()
}

/// Describes a question, with the budget that probably decides the question.
pub fn question(of: &Question, proposed: Option<Duration>) -> String {
    match of.needed.and(proposed) {
        Some(proposed) => format!("{}; --budget {} is probably enough", of.what, budget(proposed)),
        None => of.what.to_string(),
    }
}

/// Returns the sentence with which each answer begins if the recorded run failed. Otherwise,
/// returns an empty text.
pub fn failed(program: &Program) -> String {
    let Program { name, failure, .. } = program;
    let of_failure = |failure| {
        format!("The recorded run of {name} {failure}, and all figures are from this run. ")
    };
    failure.as_ref().map_or(String::new(), of_failure)
}

/// Writes a note. `name` is the name of the program.
pub fn note(of: &Note, name: &str) -> String {
    match of {
        Note::OfProgram(what) => format!("{name} {what}"),
        Note::Said(what) => what.clone(),
        Note::ShortRun(ns) => format!(
            "the recorded run took {} of CPU time, mostly to start the process; give the program \
             more work",
            time(*ns)
        ),
        Note::PartOfRun(share) => format!(
            "savings by replay are shares of the CPU time of the recorded part, which is about {} of the \
             CPU time of the whole run",
            percent(*share)
        ),
        Note::RunsVary { name, why } => {
            let why = why.map_or(String::new(), |why| format!(" ({why})"));
            format!(
                "runs of the program under {name} vary too much to decide{why}; the saving of CPU \
                 time is from the replay"
            )
        }
        Note::RecordingInterrupted => {
            "the recording was interrupted and shows the run until then".to_string()
        }
        Note::NothingMeasured => {
            "the command was interrupted before it measured anything".to_string()
        }
        Note::Again(why) => format!("--again: {why}"),
        Note::EarlierStays(folder) => format!(
            "the earlier advice on this recording is more conclusive, so it was kept instead of the new advice; \
             mallard report {} shows it",
            quoted_path(folder)
        ),
    }
}

/// Formats the reason as a text that follows the name of the candidate or stands alone.
impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let at_most = |what: &str, share: &f64| {
            format!("{what} take at most {} of the CPU time", percent(*share))
        };
        let no_more = |what: &str, share: &f64| {
            format!("{}, so it cannot save more, except by better locality", at_most(what, share))
        };
        let text = match self {
            Reason::RegionTooSmall(most) => no_more("malloc calls, page faults and frees at its end", most),
            Reason::ProgramTooSmall(most) => no_more("malloc calls and page faults", most),
            Reason::CallsTooFew(share) => at_most("calls of malloc and free", share),
            Reason::FaultsTooFew(share) => at_most("page faults", share),
            Reason::OneThread => "the program has one thread at a time".to_string(),
            Reason::LittleHeld => "the malloc holds little more memory than is in use".to_string(),
            Reason::NoTimeToPlay => {
                "the budget is too small to replay the recorded calls".to_string()
            }
            Reason::NoTimeToPrepare => "the budget is too small to prepare a replay of this candidate".to_string(),
            Reason::NoTimeToMeasure => "the budget is too small to measure this candidate".to_string(),
            Reason::PlayTooLong => "it could not be replayed in time".to_string(),
            Reason::CameLater { saved, measured } => format!(
                "in its only replay it saved {}; the budget was enough to measure {}, which ranked higher",
                percent(*saved),
                plural(*measured as u64, "change")
            ),
            Reason::Interrupted(Some(saved)) => format!(
                "in its only replay it saved {}, and then the command was interrupted",
                percent(*saved)
            ),
            Reason::Interrupted(None) => {
                "the command was interrupted before it was replayed".to_string()
            }
            Reason::NotPlayed(how) => how.clone(),
            Reason::NotApplied(how) => {
                format!("the plan cannot be applied in the unchanged program: {how}")
            }
            Reason::NoGain(saved) => {
                let what = if *saved < 0.0 { "cost" } else { "saved" };
                let share = percent(saved.abs());
                format!("in runs of the program with the plan it {what} {share}, which is no gain")
            }
            Reason::NoBlocks => "the plan applies to no block of the recording".to_string(),
            Reason::TooMuchMemory { held, in_use } => format!(
                "it would use {}, but the program has at most {} in use",
                bytes(*held),
                bytes(*in_use)
            ),
            Reason::Breaks(how) => format!("breaks the program: {how}"),
            Reason::LosesRace(runs) => format!(
                "it was ruled out after {} of the program because others saved more",
                plural(*runs as u64, "run")
            ),
            Reason::NotRunAgain(runs) => format!(
                "after {} of the program, others had saved more, and the budget did not allow further runs",
                plural(*runs as u64, "run")
            ),
            Reason::NoEffect => {
                "with this setting, page faults and memory stay the same".to_string()
            }
            Reason::Contradicted(difference) => {
                format!("in a second recording of the program {difference}")
            }
            Reason::IsBase => {
                "the program's own malloc, with which all others are compared".to_string()
            }
            Reason::SameCalls(plain) => {
                format!("is the same as {plain}, but called through a virtual interface")
            }
            Reason::NotProposed => "no rule proposes it for this function".to_string(),
        };
        f.write_str(&text)
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Difference::NoRegion => f.write_str("it has no such region"),
            Difference::Escapes(blocks) => {
                write!(f, "its calls leave {} in use", plural(*blocks, "block"))
            }
            Difference::Instances { now, before } => {
                write!(f, "it has {now} instances instead of {before}")
            }
        }
    }
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Gap::Events(what) => write!(f, "the recording lacks {what}"),
            Gap::Said(what) => f.write_str(what),
            Gap::Samples(bytes) => {
                write!(f, "the trace is sampled: it has about one block per {bytes} bytes")
            }
            Gap::Programs(share) => {
                let share = percent(*share);
                write!(f, "{share} of the CPU time was used by programs that were not recorded")
            }
            Gap::Beginning => {
                f.write_str("the recording began in a process that was already running")
            }
            Gap::Window(time) => write!(f, "the trace covers only {time} of the run"),
            Gap::No(what) => write!(f, "the trace has no {what}"),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let few = |seen: u64, what: &str, needed: &u64| {
            format!("only {} seen, but {needed} are needed", plural(seen, what))
        };
        let text = match self {
            Refusal::PartOfRun(Some(lack)) => {
                format!("the trace does not cover the whole run: {lack}")
            }
            Refusal::PartOfRun(None) => "the trace does not cover the whole run".to_string(),
            Refusal::ForeignFrees(blocks) => {
                format!("another thread frees {}", plural(*blocks, "block"))
            }
            Refusal::Escapes { blocks, functions } => {
                let by = match functions.is_empty() {
                    true => String::new(),
                    false => format!(", allocated by {}", in_words(&functions.join(" and "))),
                };
                format!("{} outlived their call{by}", plural(*blocks, "block"))
            }
            Refusal::FewCalls { seen, needed } => few(*seen, "call", needed),
            Refusal::FewInputs { seen, needed } => few(*seen, "different input", needed),
            Refusal::UnknownBlocks => "nothing is known about its blocks".to_string(),
            Refusal::NotShown => "the trace lacks the data that this rule needs".to_string(),
            Refusal::Shared => "several threads would use one allocator".to_string(),
            Refusal::Dangling(blocks) => {
                format!("{} would be used after they are freed", plural(*blocks, "block"))
            }
            Refusal::KeepsDestructors => "the rule does not allow skipping destructors".to_string(),
            Refusal::NoSecond { why: None, .. } => "it needs a second recording".to_string(),
            Refusal::NoSecond { why: Some(why), enough } => {
                let enough = enough.map_or(String::new(), |time| {
                    format!(": --budget {} is probably enough", budget(time))
                });
                format!("it needs a second recording, and {why}{enough}")
            }
        };
        f.write_str(&text)
    }
}

impl fmt::Display for NoSecond {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            NoSecond::NotRun(why) => {
                write!(f, "the program was not run again ({why}); record it yourself, and name the recording with --again")
            }
            NoSecond::NoProof(folder, lack) => {
                write!(f, "{} proves nothing: {lack}", folder.display())
            }
            NoSecond::NoTime => f.write_str("the budget was too small for one"),
            NoSecond::Fails(how) => write!(f, "the program could not be recorded again: {how}"),
        }
    }
}

impl fmt::Display for CannotRun {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            CannotRun::Ended { status, like_a_server } => {
                let help = match like_a_server {
                    true => "; for a server, --load gives it work",
                    false => "",
                };
                write!(f, "it {}{help}", ended(*status))
            }
            CannotRun::Imported(from) => {
                write!(f, "the trace was imported from {from} and does not have the command line")
            }
            CannotRun::WasRunning => {
                f.write_str("the recording is of a process that was already running")
            }
            CannotRun::NoCommandLine => {
                f.write_str("the trace does not have the command line of the program")
            }
            CannotRun::NoFile(path) => write!(f, "there is no {} here", quoted_path(path)),
            CannotRun::NoFolder(folder) => write!(
                f,
                "the directory {}, in which it was recorded, cannot be entered",
                quoted_path(folder)
            ),
            CannotRun::NotAsked => f.write_str("--no-try was given"),
            CannotRun::Fails(how) => f.write_str(how),
        }
    }
}

/// Describes how a run ended, such as `ended with status 3`.
fn ended(status: i32) -> String {
    failure(status).unwrap_or("succeeded".to_string())
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Doubt::EndedBySignal => {
                f.write_str("a signal ended the recorded run, which shows only the work until then")
            }
            Doubt::OneProcess { number, file, share } => {
                let name = file.rsplit('/').next().unwrap_or_default();
                let share = percent(*share);
                write!(
                    f,
                    "only process {number} ({name}), which did {share} of the work, was analysed"
                )
            }
            Doubt::Part { what, again: None } => f.write_str(what),
            Doubt::Part { what, again: Some(again) } => {
                write!(f, "{what}; to record the whole run: {again}")
            }
            Doubt::OtherEnd { name, status } => write!(
                f,
                "without the recorder, {name} {}, so the recording is not a typical run",
                ended(*status)
            ),
            Doubt::OtherCalls { first, second } => write!(
                f,
                "the program behaves differently in each run: the first recording has {} calls of malloc \
                 and free, the second has {}",
                count(*first),
                count(*second)
            ),
        }
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let time = |of: &Duration| time(of.as_nanos() as f64);
        let of_another = "whether another allocator saves time";
        let of_runs = "what another malloc saves in the program itself";
        match self {
            What::ShareUnknown => f.write_str(
                "nothing was replayed, because the CPU time of the recorded part of the run is not \
                 known precisely enough",
            ),
            What::NotReplayed(what, help) => write!(f, "nothing was replayed: {what}; {help}"),
            What::ReplaysFail(what, help) => write!(f, "{of_another}: {what}; {help}"),
            What::RunsFail(how) => write!(f, "{of_runs}: {how}"),
            What::TooFewRuns => write!(f, "{of_runs}: too few runs"),
            What::LongCalls(play, plays) => write!(
                f,
                "{of_another}: replaying the recorded calls once takes {}, and a measurement needs at \
                 least {plays} replays for each allocator; record only a part of the run (mallard \
                 record --window)",
                time(play)
            ),
            What::LongReplay(play, plays) => write!(
                f,
                "{of_another}: one replay takes {}, and a measurement needs at least {plays} for each \
                 allocator",
                time(play)
            ),
            What::LongRun(run, runs) => write!(
                f,
                "{of_runs}: one run takes {}, and a measurement needs at least {runs} runs",
                time(run)
            ),
            What::LeftOut(plans, first) => write!(
                f,
                "what {} such as {} would save: the budget is too small to replay all",
                plural(*plans as u64, "plan"),
                in_words(first)
            ),
        }
    }
}
