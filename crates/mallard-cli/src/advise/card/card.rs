//! The data of a card. JSON has the members of [`Card`] as keys.

use crate::advise::candidate::By;
use crate::advise::code::{Code, Language};
use crate::advise::rules::Action;
use mallard_measure::verdict::{Judgement, Verdict};
use mallard_trace::regions::EscapeSite;
use serde::Serialize;

/// A piece of advice.
#[derive(Clone, Debug, Serialize)]
pub struct Card {
    /// The name of the rule behind the advice.
    pub rule: &'static str,
    /// The kind of change.
    pub action: Action,
    /// The strategy: `AS4`.
    pub strategy: Option<String>,
    /// The strategy in words.
    pub strategy_words: Option<String>,
    /// The malloc or the setting, as `mallard try` names it.
    pub allocator: Option<String>,
    /// The region of the change.
    pub region: Option<RegionPart>,
    /// The site of the change.
    pub site: Option<SitePart>,
    /// The saving of CPU time.
    pub saving: Saving,
    /// The change of memory.
    pub memory: Option<Memory>,
    /// The action, in a few words.
    pub title: String,
    /// The result in a sentence that stands alone.
    pub sentence: String,
    /// The facts that support the advice.
    pub evidence: Vec<String>,
    /// The risks of the change.
    pub hazards: Vec<String>,
    /// Why other changes are not advised, or why this change is not certain.
    pub why_not: Vec<String>,
    /// How many frees, and so at most how many destructors, a wink-out skips.
    pub destructors_skipped: Option<u64>,
    /// The functions that free most blocks of the region, such as destructors.
    pub freed_by: Vec<String>,
    /// The command that makes the change, if no code has to change.
    pub how: Option<String>,
    /// The code of the change.
    pub code: Code,
    /// The language of the function. Null for a change of the whole program.
    pub language: Option<Language>,
    /// The command that checks the change afterwards.
    pub check: Option<String>,
    /// The plan that `mallard replay --plan` plays.
    pub plan: Option<String>,
}

/// The region of a card.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RegionPart {
    /// The name by which a plan selects the function.
    pub function: String,
    /// The short form of the name.
    pub shown: String,
    /// The source file.
    pub file: Option<String>,
    /// The line.
    pub line: Option<u32>,
    /// The file of the program or library.
    pub module: String,
    /// The event that ends an instance.
    pub ends: &'static str,
    /// Instances.
    pub instances: u64,
    /// Threads that have instances.
    pub threads: u32,
    /// Different inputs.
    pub inputs: u64,
    /// Blocks.
    pub blocks: u64,
    /// Bytes of the blocks.
    pub bytes: u64,
    /// Blocks that outlive their instance.
    pub escapes: u64,
    /// The sites with the most of these blocks.
    pub escape_sites: Vec<EscapeSite>,
    /// Blocks that another thread frees.
    pub foreign_frees: u64,
    /// The peak of the bytes in use in an instance: the median over the instances.
    pub peak_p50: f64,
    /// The median of the bytes that an instance allocates.
    pub total_p50: f64,
    /// Utilisation, the property U: from 0 to 1.
    pub utilisation: f64,
    /// Variation, the property V, in bits.
    pub variation_bits: f64,
}

/// The site of a card.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SitePart {
    /// The name by which a plan selects the function. For a leak, the function of the program.
    pub function: String,
    /// The function of the program, in short form.
    pub shown: String,
    /// The source file.
    pub file: Option<String>,
    /// The line of the call.
    pub line: Option<u32>,
    /// The file of the program or library.
    pub module: String,
    /// The functions of the call stack, innermost first.
    pub stack: Vec<String>,
    /// Blocks.
    pub blocks: i64,
    /// Bytes of the blocks.
    pub bytes: i64,
    /// The peak of the bytes in use.
    pub peak_bytes: i64,
    /// Bytes in use at the end.
    pub live_bytes: i64,
}

/// The saving of CPU time, in total and in three parts with different causes. Each is a share of the
/// CPU time of the program, or null if it is unknown.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Saving {
    /// Work of the allocator itself.
    pub allocator: Option<Part>,
    /// Work of the system for pages.
    pub pages: Option<Part>,
    /// Time that the program's own accesses save because blocks lie at other addresses. A replay does
    /// not estimate this part; in runs of the program, the total contains it.
    pub locality: Option<Part>,
    /// The whole saving, as measured. Null on a card that changes nothing.
    pub total: Option<Part>,
    /// On a card that changes nothing: the most that any allocator can save, locality aside. Null if this is
    /// unknown, and on other cards.
    pub bound: Option<f64>,
    /// The interval in which the saving of the program is expected.
    pub expected: Option<Expected>,
    /// How the saving was measured.
    pub measured_by: Option<By>,
    /// What runs of the program with the plan show. Null if there were none.
    pub in_program: Option<Applied>,
}

/// What runs of the program show with the plan in force, without a change of the source.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Applied {
    /// The saving against the control, which makes the same decisions and leaves all blocks to malloc.
    pub saving: Part,
    /// The saving against the program as it is: what `mallard run --plan` saves.
    pub as_it_is: Part,
    /// This share of the CPU time is of calls which code does not make that has the allocator inline.
    pub calls: Expected,
    /// This share of the CPU time is of frees and destructors that wink-out skips.
    pub ends: f64,
}

/// A measured saving.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Part {
    /// The median.
    pub saving: f64,
    /// The lower end of the 95 % interval.
    pub low: f64,
    /// The upper end of the 95 % interval.
    pub high: f64,
    /// The verdict.
    pub verdict: Verdict,
}

/// The interval in which a saving is expected.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Expected {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// The change of memory.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Memory {
    /// How the peaks were measured: those of the heap in a replay, those of the resident memory in runs.
    pub measured_by: By,
    /// The peak before the change.
    pub before_bytes: u64,
    /// The peak after the change.
    pub after_bytes: u64,
    /// The saving, as a share.
    pub saving: f64,
    /// The lower end of its 95 % interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// The verdict.
    pub verdict: Verdict,
    /// The memory that the heap keeps after the last call, by replay. `None` if this memory is unknown.
    pub at_end: Option<AtEnd>,
}

/// Bytes of the heap after the last call.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct AtEnd {
    /// Bytes before the change.
    pub before_bytes: u64,
    /// Bytes after the change.
    pub after_bytes: u64,
    /// The saving.
    pub saving: Part,
}

impl Part {
    /// The saving of a judgement.
    pub fn of(judgement: &Judgement) -> Part {
        let Judgement { saving, low, high, verdict, .. } = *judgement;
        Part { saving, low, high, verdict }
    }
}

/// The verdict on a program in one word: `change`, `leave` or `undecided`.
pub fn verdict(cards: &[Card]) -> &'static str {
    match cards.first().map(|card| card.action) {
        Some(Action::Leave) => "leave",
        Some(Action::Undecided) | None => "undecided",
        Some(_) => "change",
    }
}
