//! Regions that are found in traces of a few events, and in random ones. The compiler of replays counts
//! the same instances for a plan with the region.

#[path = "support/replay.rs"]
mod replay;
mod support;

use mallard_trace::format::{op, Header};
use mallard_trace::regions::{find, Limits, Region, Regions};
use mallard_trace::replay::{compile, End, Options, Plan, RuleResult};
use mallard_trace::Trace;
use replay::{Script, MAIN, NODE, PARSE, WORKER};
use support::Random;

const OTHER: &[&str] = &["main", "other"];

fn found(script: Script) -> Regions {
    let folder = tempfile::tempdir().unwrap();
    find(&script.trace(folder.path()), Limits::default()).unwrap()
}

/// The region of a function with an end.
fn region(regions: &Regions, function: &str, ends: End) -> Region {
    let of = |region: &&Region| region.function == function && region.ends == ends;
    let names = || regions.all.iter().map(|region| (&region.function, region.ends));
    let found = regions.all.iter().find(of);
    found
        .unwrap_or_else(|| panic!("{function} is not in {:?}", names().collect::<Vec<_>>()))
        .clone()
}

/// Adds `count` calls of `parse_document`, which frees all its blocks. Between the calls, `main`
/// allocates.
fn documents(script: &mut Script, count: u64) {
    for document in 0..count {
        let at = 0x10_0000 + 0x1000 * document;
        script.keeps(1).malloc(1, at, 64, PARSE).malloc(1, at + 0x100, 100 + document, NODE);
        script.wait(50).free(1, at + 0x100, PARSE).wait(50).free(1, at, PARSE);
        script.malloc(1, at + 0x200, 8, MAIN).free(1, at + 0x200, MAIN);
    }
}

#[test]
fn a_function_that_frees_all_its_blocks_is_the_first_region() {
    let mut script = Script::new();
    documents(&mut script, 40);
    let regions = found(script);
    let first = &regions.all[0];
    assert_eq!((first.function.as_str(), first.ends), ("parse_document", End::Sure));
    assert_eq!((first.instances, first.blocks, first.escapes), (40, 80, 0));
    assert_eq!((first.inputs, first.threads, first.unfinished), (40, 1, 0));
    assert_eq!((first.total.max, first.peak.p50), (203.0, 183.0));
    assert_eq!((first.calls, first.final_frees, first.foreign_frees), (160, 80, 0));
    assert_eq!(first.utilisation, 1.0);
    assert_eq!((first.sizes, first.one_size_share), (41, 0.5));
    assert_eq!(first.teardown_ns, 40.0 * 51.0);
    assert_eq!(first.lanes.len(), 40);
    assert!(first.lanes.windows(2).all(|pair| pair[0].t1 < pair[1].t0));
    assert!(first.variation_bits > 1.0, "{first:?}");
}

#[test]
fn a_block_that_outlives_the_function_escapes_and_its_site_is_named() {
    let mut script = Script::new();
    documents(&mut script, 40);
    script.malloc(1, 0x90_0000, 77, NODE).malloc(1, 0x91_0000, 8, MAIN);
    script.free(1, 0x90_0000, MAIN);
    let parse = region(&found(script), "parse_document", End::Sure);
    assert_eq!((parse.escapes, parse.escape_bytes, parse.instances), (1, 77, 41));
    let site = &parse.escape_sites[0];
    assert_eq!((site.function.as_str(), site.blocks, site.bytes), ("make_node(int)", 1, 77));
    assert_eq!(parse.lanes.last().unwrap().escapes, 1);
}

#[test]
fn a_loop_without_events_between_the_calls_has_drained_instances_alone() {
    let mut script = Script::new();
    for document in 0..50 {
        let at = 0x10_0000 + 0x1000 * document;
        script.malloc(1, at, 64, PARSE).malloc(1, at + 0x100, 100, NODE);
        script.free(1, at + 0x100, PARSE).free(1, at, PARSE);
    }
    let regions = found(script);
    assert_eq!(region(&regions, "parse_document", End::Drained).instances, 50);
    let sure = region(&regions, "parse_document", End::Sure);
    assert_eq!((sure.instances, sure.escapes, sure.peak.max), (1, 0, 164.0));
    assert_eq!(regions.all[0].ends, End::Drained);
}

#[test]
fn frees_by_other_threads_are_counted_apart() {
    let mut script = Script::new();
    for document in 0..40 {
        let at = 0x10_0000 + 0x1000 * document;
        script.keeps(1).malloc(1, at, 64, PARSE).malloc(1, at + 8, 64, PARSE).free(2, at, WORKER);
        script.malloc(1, at + 0x200, 8, MAIN).free(2, at + 8, WORKER).free(1, at + 0x200, MAIN);
    }
    let parse = region(&found(script), "parse_document", End::Sure);
    assert_eq!((parse.foreign_frees, parse.escapes, parse.foreign_escapes), (80, 40, 40));
}

#[test]
fn a_thread_that_dies_inside_of_a_region_ends_the_region() {
    let mut script = Script::new();
    let inside = &["start_thread", "parse_document"];
    for thread in 1..=35 {
        let at = 0x10_0000 + 0x1000 * u64::from(thread);
        script.malloc(thread, at, 64, inside).malloc(thread, at + 0x100, 32, inside);
        script.free(thread, at, inside);
        script.free(99, at + 0x100, WORKER); // the thread has had its last event
    }
    let parse = region(&found(script), "parse_document", End::Sure);
    assert_eq!((parse.instances, parse.threads, parse.unfinished), (35, 35, 0));
    assert_eq!((parse.escapes, parse.foreign_escapes), (35, 35));
}

#[test]
fn a_function_that_calls_itself_has_an_instance_for_the_outermost_call() {
    let mut script = Script::new();
    let twice = &["main", "parse_document", "outer", "parse_document"];
    for document in 0..40 {
        let at = 0x10_0000 + 0x1000 * document;
        script.keeps(1).malloc(1, at, 64, PARSE).malloc(1, at + 0x100, 16, twice);
        script.free(1, at + 0x100, PARSE).free(1, at, PARSE).malloc(1, at + 0x200, 8, OTHER);
        script.free(1, at + 0x200, OTHER);
    }
    let parse = region(&found(script), "parse_document", End::Sure);
    assert_eq!((parse.instances, parse.blocks, parse.escapes), (40, 80, 0));
}

#[test]
fn places_without_names_are_regions_only_if_nothing_has_a_name() {
    let mut script = Script::new();
    let inside = &["main", "libx.so+0x77"];
    for call in 0..40 {
        let at = 0x10_0000 + 0x1000 * call;
        script.keeps(1).malloc(1, at, 64, inside).free(1, at, inside);
        script.malloc(1, at + 0x200, 8, MAIN).free(1, at + 0x200, MAIN);
    }
    let regions = found(script);
    let place = region(&regions, "libx.so+0x77", End::Sure);
    assert_eq!((place.instances, place.escapes), (40, 0));
    assert!(regions.notes[0].contains("no names"), "{:?}", regions.notes);
    let mut script = Script::new();
    script.malloc(1, 0x10, 64, inside).malloc(1, 0x20, 64, PARSE);
    assert!(found(script).all.iter().all(|region| region.function == "parse_document"));
}

#[test]
fn a_trace_of_samples_has_no_regions_and_a_note() {
    let mut script = Script::with(&Header { sample_bytes: 1000, ..support::header() });
    documents(&mut script, 40);
    let regions = found(script);
    assert!(regions.all.is_empty() && regions.notes[0].contains("samples"), "{:?}", regions.notes);
}

#[test]
fn a_trace_without_events_has_no_regions() {
    let regions = found(Script::new());
    assert!(regions.all.is_empty() && regions.total_bytes == 0.0);
}

#[test]
fn blocks_without_room_count_as_blocks_that_are_never_freed() {
    let mut script = Script::new();
    documents(&mut script, 40);
    let folder = tempfile::tempdir().unwrap();
    let limits = Limits { blocks: 1, ..Limits::default() };
    let regions = find(&script.trace(folder.path()), limits).unwrap();
    let parse = region(&regions, "parse_document", End::Sure);
    assert_eq!((parse.instances, parse.blocks, parse.escapes), (40, 80, 40));
    assert!(regions.notes.iter().any(|note| note.contains("no room")), "{:?}", regions.notes);
}

/// The names in the call stacks of random programs. Some functions call themselves, some call others.
const NAMES: [&str; 7] = [
    "outer",
    "parse_document",
    "make_node(int)",
    "operator new(unsigned long)",
    "Node* app::build<int>(int)",
    "other",
    "libx.so+0x77",
];

/// A random program, as events with call stacks.
struct Program {
    script: Script,
    random: Random,
    threads: usize,
    stacks: Vec<Vec<&'static str>>,
    blocks: Vec<u64>,
    next: u64,
}

impl Program {
    fn new(seed: u64) -> Program {
        let mut random = Random(seed);
        let threads = 1 + random.below(4);
        let stacks = (0..threads).map(|thread| vec![["main", "start_thread"][thread.min(1)]]);
        let (script, stacks) = (Script::new(), stacks.collect());
        Program { script, random, threads, stacks, blocks: Vec::new(), next: 0x10_0000 }
    }

    /// Calls, returns, or jumps out of several functions at once.
    fn move_stack(&mut self, thread: usize) {
        let (calls, depth) = (self.random.below(4), self.random.below(4));
        let stack = &mut self.stacks[thread];
        match self.random.below(6) {
            0 => stack.truncate(1.max(stack.len().saturating_sub(1 + depth))),
            1 | 2 => stack.truncate(1.max(stack.len() - 1)),
            _ => {}
        }
        for _ in 0..calls {
            if stack.len() < 8 {
                stack.push(NAMES[self.random.below(NAMES.len())]);
            }
        }
    }

    fn step(&mut self) {
        let thread = self.random.below(self.threads);
        self.move_stack(thread);
        let stack = self.stacks[thread].clone();
        let (tid, size) = (thread as u32, self.random.below(500) as u64);
        if self.random.below(3) == 0 {
            self.script.keeps(self.random.below(stack.len() + 1));
        }
        self.next += 0x1000;
        // Some events have no call stack.
        let stack: &[&str] = if self.random.below(40) == 0 { &[] } else { &stack };
        match self.random.below(12) {
            0..=4 => {
                self.script.event(tid, op::MALLOC, self.next, size, stack);
                self.blocks.push(self.next);
            }
            5..=9 if !self.blocks.is_empty() => {
                let of_late = self.blocks.len().min(1 + self.random.below(12));
                let at = self.blocks.len() - of_late;
                let block = self.blocks.remove(at);
                self.script.free(tid, block, stack);
            }
            10 if !self.blocks.is_empty() => {
                let at = self.random.below(self.blocks.len());
                let to = [self.blocks[at], self.next][self.random.below(2)];
                self.script.realloc(tid, self.blocks[at], to, size + 1, stack);
                self.blocks[at] = to;
            }
            _ => {
                self.script.event(tid, op::MALLOC, 0, size, stack);
            }
        }
    }
}

fn random_trace(seed: u64, steps: usize, folder: &std::path::Path) -> Trace {
    let mut program = Program::new(seed);
    (0..steps).for_each(|_| program.step());
    program.script.trace(folder)
}

/// What a replay counts for a plan with the region.
fn replayed(trace: &Trace, region: &Region, folder: &std::path::Path) -> RuleResult {
    let ends = if region.ends == End::Sure { "sure" } else { "drained" };
    let function = &region.function;
    let text = format!("[[rule]]\nregion = '{function}'\nstrategy = 'AS3'\nends = '{ends}'\n");
    let plan = Plan::parse(&text, "a plan").unwrap();
    let compiled = compile(trace, &plan, &Options::default(), &folder.join("ops")).unwrap();
    compiled.rules[0].clone()
}

#[test]
fn a_replay_counts_the_same_instances_of_each_region() {
    let (mut regions_seen, mut escapes_seen) = (0, 0);
    for seed in 0..300 {
        let folder = tempfile::tempdir().unwrap();
        let trace = random_trace(seed, 60 + 4 * seed as usize, folder.path());
        let regions = find(&trace, Limits { least_share: 0.0, ..Limits::default() }).unwrap();
        for region in &regions.all {
            let result = replayed(&trace, region, folder.path());
            let what = format!("{} {:?} of seed {seed}", region.function, region.ends);
            assert_eq!(region.instances, result.instances, "instances of {what}");
            assert_eq!(region.unfinished, result.unfinished, "unfinished of {what}");
            assert_eq!(region.blocks, result.blocks, "blocks of {what}");
            assert_eq!(region.bytes, result.bytes, "bytes of {what}");
            assert_eq!(region.escapes, result.escapes, "escapes of {what}");
            assert_eq!(region.foreign_escapes, result.foreign_escapes, "foreign of {what}");
            let (peaks, totals) = (&result.peaks, &result.totals);
            let peak = [peaks.median() as f64, peaks.max() as f64];
            assert_eq!([region.peak.p50, region.peak.max], peak, "peaks of {what}");
            let total = [totals.quantile(0.9) as f64, totals.max() as f64];
            assert_eq!([region.total.p90, region.total.max], total, "totals of {what}");
            regions_seen += 1;
            escapes_seen += region.escapes;
        }
    }
    assert!(regions_seen > 1000 && escapes_seen > 10_000, "{regions_seen} {escapes_seen}");
}
