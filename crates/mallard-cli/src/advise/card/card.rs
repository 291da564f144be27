//! The data of a card, which is one recommendation. The keys of a card in JSON are the members of
//! [`Card`].

use crate::advise::candidate::By;
use crate::advise::code::{Code, Language};
use crate::advise::rules::Action;
use mallard_measure::verdict::{Judgement, Verdict};
use mallard_trace::regions::EscapeSite;
use serde::Serialize;

/// A recommendation of `mallard advise`.
#[derive(Clone, Debug, Serialize)]
pub struct Card {
    /// The name of the rule behind the advice.
    pub rule: &'static str,
    /// The kind of change.
    pub action: Action,
    /// The strategy, such as `AS4`.
    pub strategy: Option<String>,
    /// The strategy in words.
    pub strategy_words: Option<String>,
    /// The malloc or the setting, under the name that `mallard try` uses.
    pub allocator: Option<String>,
    /// The region that the change is for.
    pub region: Option<RegionPart>,
    /// The site that the change is for.
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
    /// Why other changes are not recommended, or why this change is not certain.
    pub why_not: Vec<String>,
    /// The number of frees that a wink-out skips, together with at most as many destructors.
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
    /// The plan that `mallard replay --plan` replays.
    pub plan: Option<String>,
}

/// The region of the program that a card is about.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RegionPart {
    /// The name by which a plan selects the function.
    pub function: String,
    /// The short form of the name.
    pub shown: String,
    /// The source file.
    pub file: Option<String>,
    /// The line in the source file.
    pub line: Option<u32>,
    /// The program or library file that contains the function.
    pub module: String,
    /// The event that ends an instance.
    pub ends: &'static str,
    /// The number of region instances.
    pub instances: u64,
    /// The number of threads that have instances.
    pub threads: u32,
    /// The number of different inputs. An input is a sequence of sizes that an instance allocates.
    pub inputs: u64,
    /// The number of blocks that the instances allocate.
    pub blocks: u64,
    /// The total size of these blocks in bytes.
    pub bytes: u64,
    /// The number of blocks that outlive their instance.
    pub escapes: u64,
    /// The sites that allocate the most blocks that outlive their instance.
    pub escape_sites: Vec<EscapeSite>,
    /// The number of blocks that a thread frees after another thread has allocated them.
    pub foreign_frees: u64,
    /// The median, over all instances, of the peak bytes in use.
    pub peak_p50: f64,
    /// The median of the bytes that one instance allocates.
    pub total_p50: f64,
    /// The property U (utilisation, docs/glossary.md), from 0 to 1.
    pub utilisation: f64,
    /// The property V (variation of block sizes, docs/glossary.md), in bits.
    pub variation_bits: f64,
}

/// The allocation site that a card is about.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SitePart {
    /// The name by which a plan selects the function. For a leak, the name of the program's
    /// function.
    pub function: String,
    /// The short name of the program's function that allocates, perhaps through a library.
    pub shown: String,
    /// The source file.
    pub file: Option<String>,
    /// The line of the call.
    pub line: Option<u32>,
    /// The program or library file that contains the function.
    pub module: String,
    /// The functions of the call stack, innermost first.
    pub stack: Vec<String>,
    /// The number of blocks that the site allocates.
    pub blocks: i64,
    /// The total size of these blocks in bytes.
    pub bytes: i64,
    /// The peak of the bytes in use that this site allocated.
    pub peak_bytes: i64,
    /// The bytes of this site that are in use at the end of the recording.
    pub live_bytes: i64,
}

/// The saving of CPU time, in total and in three parts with different causes. Each part is a share
/// of the program's CPU time, or null if the part is unknown.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Saving {
    /// The saving of work in the allocator itself.
    pub allocator: Option<Part>,
    /// The saving of the operating system's work for pages.
    pub pages: Option<Part>,
    /// The saving of time in the program's own memory accesses, because blocks lie at other
    /// addresses. A replay does not estimate this part. If the program ran, the total contains this
    /// part.
    pub locality: Option<Part>,
    /// The whole saving, as measured. Null on a card that changes nothing.
    pub total: Option<Part>,
    /// On a card that changes nothing, the most that any allocator can save, apart from effects of
    /// locality. Null if this limit is unknown, and on other cards.
    pub bound: Option<f64>,
    /// The interval in which the saving of the program is expected.
    pub expected: Option<Expected>,
    /// How the saving was measured.
    pub measured_by: Option<By>,
    /// Results of runs of the program with the plan applied. Null if there were none.
    pub in_program: Option<Applied>,
}

/// Results of runs of the program with the plan applied, without a change of the source.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Applied {
    /// The saving compared with a control run. The control run decides about each block as the plan
    /// does, but allocates all blocks from malloc.
    pub saving: Part,
    /// The saving compared with the unchanged program. This is what `mallard run --plan` saves.
    pub as_it_is: Part,
    /// The interval for the share of the CPU time that inline allocator code would save.
    pub calls: Expected,
    /// The share of the CPU time for frees and destructors that wink-out skips.
    pub ends: f64,
}

/// A measured saving.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Part {
    /// The median of the saving.
    pub saving: f64,
    /// The lower end of the 95 % interval.
    pub low: f64,
    /// The upper end of the 95 % interval.
    pub high: f64,
    /// The verdict on the saving.
    pub verdict: Verdict,
}

/// The interval in which a saving is expected.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Expected {
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
}

/// The change of memory.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Memory {
    /// The source of the peaks. A replay measures the heap, and runs of the program measure the
    /// resident memory.
    pub measured_by: By,
    /// The peak of the memory before the change.
    pub before_bytes: u64,
    /// The peak of the memory after the change.
    pub after_bytes: u64,
    /// The saving of memory, as a share.
    pub saving: f64,
    /// The lower end of the 95 % interval of the saving.
    pub low: f64,
    /// The upper end of the 95 % interval of the saving.
    pub high: f64,
    /// The verdict on the saving of memory.
    pub verdict: Verdict,
    /// The bytes of the heap after the last call, from a replay. `None` if they are unknown.
    pub at_end: Option<AtEnd>,
}

/// Bytes of the heap after the last call.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct AtEnd {
    /// Bytes of the heap before the change.
    pub before_bytes: u64,
    /// Bytes of the heap after the change.
    pub after_bytes: u64,
    /// The saving of heap bytes.
    pub saving: Part,
}

impl Part {
    /// Makes a part from the saving of a judgement.
    pub fn of(judgement: &Judgement) -> Part {
        let Judgement { saving, low, high, verdict, .. } = *judgement;
        Part { saving, low, high, verdict }
    }
}

/// Returns the verdict on a program in one word: `change`, `leave` or `undecided`.
pub fn verdict(cards: &[Card]) -> &'static str {
    match cards.first().map(|card| card.action) {
        Some(Action::Leave) => "leave",
        Some(Action::Undecided) | None => "undecided",
        Some(_) => "change",
    }
}
