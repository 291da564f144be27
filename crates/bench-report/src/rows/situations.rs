//! Situations, which are groups of benchmark cases in which a program has to choose an allocator.

use super::cases::is_cell;
use super::experiment::Experiment;
use super::natural;

/// A group of cases in which a program must make the same choice, such as "all is freed at once".
pub struct Situation {
    /// The situation in words, as the first column of a table shows it.
    pub title: &'static str,
    pub suite: &'static str,
    wanted: fn(&Experiment) -> bool,
}

impl Situation {
    /// Returns whether a case belongs to this situation.
    pub fn has(&self, e: &Experiment) -> bool {
        self.suite == e.suite && (self.wanted)(e)
    }
}

const fn situation(
    title: &'static str,
    suite: &'static str,
    wanted: fn(&Experiment) -> bool,
) -> Situation {
    Situation { title, suite, wanted }
}

fn of_parts(e: &Experiment, parts: &[&str]) -> bool {
    parts.contains(&e.part(0))
}

/// Returns whether a case of lakos2 has fewer elements than the cases of Lakos's talk.
fn is_small(e: &Experiment) -> bool {
    natural::key(e.part(0)) < natural::key("2^21")
}

/// Situations in which a part of a program can use a separate local allocator.
pub const LOCAL: &[Situation] = &[
    situation("Built once, freed whole: flat, of numbers (DS1, DS3)", "lakos1", |e| {
        of_parts(e, &["DS1", "DS3"])
    }),
    situation("Built once, freed whole: flat, of strings (DS2, DS4)", "lakos1", |e| {
        of_parts(e, &["DS2", "DS4"])
    }),
    situation("Built once, freed whole: vectors of structures (DS5-DS8)", "lakos1", |e| {
        of_parts(e, &["DS5", "DS6", "DS7", "DS8"])
    }),
    situation("Built once, freed whole: sets of structures (DS9-DS12)", "lakos1", |e| {
        of_parts(e, &["DS9", "DS10", "DS11", "DS12"])
    }),
    situation(
        "Parts used again and again, their elements shuffled; 2^21 elements and more (II)",
        "lakos2",
        |e| is_cell(e) && !is_small(e),
    ),
    situation(
        "Parts used again and again, fewer elements: the cache holds most (II)",
        "lakos2",
        |e| is_cell(e) && is_small(e),
    ),
    situation("Long-running, blocks freed and allocated again (III)", "lakos3", |_| true),
    situation("Threads, each with an allocator of its own (IV)", "lakos4", |e| {
        e.threads > 1 && e.part(0).contains('=')
    }),
    situation("Threads that share one allocator (IV)", "lakos4", |e| e.part(0) == "shared"),
    situation("Another thread frees (IV)", "lakos4", |e| e.part(0) == "remote"),
    situation("Threads that write to neighbouring blocks (IV)", "lakos4", |e| {
        e.part(0) == "sharing"
    }),
    situation("In a heap that others have fragmented (V)", "lakos5", |e| {
        !e.case.ends_with("clean")
    }),
    situation("A word index over text (demo)", "demo", |e| e.part(0) == "word-index"),
    situation("A parser's trees (demo)", "demo", |e| e.part(0) == "parse-tree"),
    situation("An ordered map of a window of text (demo)", "demo", |e| {
        e.part(0) == "phrase-window"
    }),
];

/// Situations in which an allocator replaces another allocator of the same kind.
pub const OTHERS: &[Situation] = &[
    situation("A program that nobody recompiles: whole programs", "programs", |_| true),
    situation("A program that nobody recompiles: calls of malloc and free", "malloc", |_| true),
    situation("A program that nobody recompiles: memory", "rss", |e| e.metric == "peak_rss_kib"),
    situation("Blocks of one size, freed one by one", "pool", |_| true),
    situation("All dies together", "arena", |_| true),
    situation("Many sizes, freed one by one", "multipool", |_| true),
    situation("A pool that threads share", "threads", |e| e.metric != "rss_kib"),
    situation("Objects made and destroyed", "typed", |e| {
        !of_parts(e, &["handle", "threads", "slot_map", "shared_slot_map"])
    }),
    situation("Objects with owners", "typed", |e| of_parts(e, &["handle", "threads"])),
    situation("Objects by keys", "typed", |e| e.part(0) == "slot_map"),
    situation("Objects by keys, shared by threads", "typed", |e| e.part(0) == "shared_slot_map"),
    situation("A part of a program, all sizes, freed at once", "heap", |_| true),
    situation("Rust: the global allocator of a program", "crates", |e| {
        e.part(0) == "global-allocator" && e.metric != "cpu_seconds"
    }),
    situation("Rust: objects made and dropped", "crates", |e| {
        e.part(0) == "fastalloc" && !is_of_threads(e)
    }),
    situation("Rust: objects of a pool that threads share", "crates", |e| {
        e.part(0) == "fastalloc" && is_of_threads(e)
    }),
    situation("Rust: all dies together", "crates", |e| of_parts(e, &["bumpalo", "blink-alloc"])),
    situation("Rust: values by keys", "crates", |e| e.part(0) == "slotmap"),
    situation("Rust: values by keys, shared by threads", "crates", |e| e.part(0) == "sharded-slab"),
];

/// Returns whether a case of the suite `crates` is about threads. Cases in which a single thread
/// uses a pool for several threads count, too.
fn is_of_threads(e: &Experiment) -> bool {
    ["threads", "contention"].contains(&e.part(1))
}

/// Returns the title of the situation that contains a case. If there is no such situation, returns
/// the first part of the case's name.
pub fn title_of(e: &Experiment) -> String {
    let found = LOCAL.iter().chain(OTHERS).find(|s| s.has(e));
    let title = found.map(|s| s.title.to_string());
    title.unwrap_or_else(|| format!("{}/{}", e.suite, e.part(0)))
}
