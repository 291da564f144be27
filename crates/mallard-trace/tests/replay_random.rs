//! Compiles random programs. A simulator replays the op streams with random orders of the threads.
//! In any order, the calls must be those of the program, and must use the same blocks.

use crate::support::replay::{OpFile, Script};
use crate::support::run::seeds;
use crate::support::simulator::{play, Call, CallId};
use crate::support::Random;
use mallard_trace::format::op;
use mallard_trace::replay::format::op as to;
use mallard_trace::replay::{compile, Compiled, Options, Plan, Strategy};

/// A block of the model: its address, the call that allocated or resized it last, and its size.
#[derive(Clone)]
struct Block {
    addr: u64,
    made_by: CallId,
    size: u64,
}

/// A random program: its trace, and the calls that a replay must make.
struct Program {
    script: Script,
    threads: usize,
    blocks: Vec<Block>,
    calls: Vec<Vec<Call>>,
    /// For each thread of the script, its index in the op stream, or `None` before its first event.
    /// Threads get indices in the order of their first events.
    indices: Vec<Option<usize>>,
    live_bytes: u64,
    live_peak: u64,
    blocks_peak: u64,
}

const STACKS: [&[&str]; 5] = [
    &["main", "other"],
    &["main", "parse_document"],
    &["main", "parse_document", "make_node(int)"],
    &["main", "pthread_create"],
    &["main", "outer", "make_node(int)", "operator new(unsigned long)"],
];

impl Program {
    fn new(threads: usize) -> Self {
        Program {
            script: Script::new(),
            threads,
            blocks: Vec::new(),
            calls: Vec::new(),
            indices: vec![None; threads],
            live_bytes: 0,
            live_peak: 0,
            blocks_peak: 0,
        }
    }

    /// Adds a call of a thread to the model. Returns the ID of the call.
    fn call(&mut self, thread: usize, op: u8, size: u64, of: Option<CallId>) -> CallId {
        let index = match self.indices[thread] {
            Some(index) => index,
            None => {
                self.calls.push(Vec::new());
                self.indices[thread] = Some(self.calls.len() - 1);
                self.calls.len() - 1
            }
        };
        self.calls[index].push(Call { op, size, of });
        (index, self.calls[index].len() - 1)
    }

    /// Records that the size of a block has changed.
    fn change(&mut self, from: u64, to: u64) {
        self.live_bytes = self.live_bytes - from + to;
        self.live_peak = self.live_peak.max(self.live_bytes);
        self.blocks_peak = self.blocks_peak.max(self.blocks.len() as u64);
    }

    fn step(&mut self, random: &mut Random, address: u64) {
        let thread = random.below(self.threads);
        let stack = STACKS[random.below(STACKS.len())];
        let size = random.below(3000) as u64;
        let tid = thread as u32;
        if random.below(4) == 0 {
            self.script.keeps(random.below(3));
        }
        match random.below(12) {
            0..=4 => {
                let (event, op) =
                    [(op::MALLOC, to::OP_MALLOC), (op::CALLOC, to::OP_CALLOC)][random.below(2)];
                self.script.event(tid, event, address, size, stack);
                let made_by = self.call(thread, op, size, None);
                self.blocks.push(Block { addr: address, made_by, size });
                self.change(0, size);
            }
            5..=8 if !self.blocks.is_empty() => {
                let at = random.below(self.blocks.len());
                let Block { addr, made_by, size } = self.blocks.swap_remove(at);
                self.script.free(tid, addr, stack);
                self.call(thread, to::OP_FREE, size, Some(made_by));
                self.change(size, 0);
            }
            9..=10 if !self.blocks.is_empty() => {
                let at = random.below(self.blocks.len());
                let block = self.blocks[at].clone();
                let moves = random.below(2) == 0;
                let addr = if moves { address } else { block.addr };
                let size = size + 1;
                self.script.realloc(tid, block.addr, addr, size, stack);
                let made_by = self.call(thread, to::OP_REALLOC, size, Some(block.made_by));
                self.blocks[at] = Block { addr, made_by, size };
                self.change(block.size, size);
            }
            _ => {
                self.script.event(tid, op::MALLOC, 0, size, stack);
                self.call(thread, to::OP_MALLOC_FAILED, size, None);
            }
        }
    }

    fn run(&mut self, random: &mut Random, steps: usize) {
        for step in 0..steps {
            self.step(random, 0x10_0000 + 16 * step as u64);
        }
    }
}

/// Compiles a program, replays the op stream five times, and compares the calls with those of the
/// model.
fn check(program: Program, plan: &Plan, options: &Options, random: &mut Random) -> Compiled {
    let folder = tempfile::tempdir().unwrap();
    let Program { script, calls, live_peak, blocks_peak, .. } = program;
    let trace = script.trace(folder.path());
    let path = folder.path().join("ops");
    let compiled = compile(&trace, plan, options, &path).unwrap();
    let file = OpFile::read(&path);
    let [slots, ops, live, blocks, calls_of_file, checksum] = file.sums();
    assert_eq!((live, blocks), (live_peak, blocks_peak));
    assert_eq!((compiled.live_peak, compiled.blocks_peak), (live_peak, blocks_peak));
    assert_eq!((compiled.slots, compiled.ops, compiled.calls), (slots, ops, calls_of_file));
    assert_eq!(compiled.checksum, checksum);
    assert!(slots <= blocks_peak + options.spare_slots as u64 + 1);
    let winks = plan.rules.iter().any(|rule| rule.strategy.winks_out());
    for _ in 0..5 {
        let mut played = play(&file, random);
        assert_eq!(played.iter().map(Vec::len).sum::<usize>() as u64, calls_of_file);
        if winks {
            // Without the frees, later calls have other indices, so only kinds and sizes are
            // compared.
            let mut expected = calls.clone();
            for calls in expected.iter_mut().chain(&mut played) {
                calls.retain(|call| call.op != to::OP_FREE);
                calls.iter_mut().for_each(|call| call.of = None);
            }
            assert_eq!(played, expected);
        } else {
            assert_eq!(played, calls);
        }
    }
    compiled
}

fn program(seed: u64, threads: usize, steps: usize) -> (Program, Random) {
    let mut random = Random(seed);
    let mut program = Program::new(threads);
    program.run(&mut random, steps);
    (program, random)
}

#[test]
fn a_replay_makes_the_recorded_calls_in_every_order_of_threads() {
    for seed in seeds(60) {
        let mut random = Random(seed);
        let (threads, steps) = (1 + random.below(8), 1 + random.below(1500));
        let (program, mut random) = program(seed, threads, steps);
        let options = Options { step_bytes: 1 << random.below(16), ..Options::default() };
        check(program, &Plan::default(), &options, &mut random);
    }
}

#[test]
fn slots_of_other_threads_are_reused_only_after_their_blocks_are_freed() {
    for seed in seeds(30) {
        let (program, mut random) = program(seed, 5, 1200);
        let step_bytes = 1 + random.below(20_000) as u64;
        let options = Options { spare_slots: random.below(8), step_bytes, ..Options::default() };
        check(program, &Plan::default(), &options, &mut random);
    }
}

#[test]
fn a_replay_under_each_strategy_makes_the_recorded_calls() {
    for strategy in Strategy::all() {
        for seed in seeds(4) {
            let (program, mut random) = program(seed, 1 + seed as usize, 600);
            let calls: usize = program.calls.iter().map(Vec::len).sum();
            let plan = Plan::of_strategy(strategy);
            let compiled = check(program, &plan, &Options::default(), &mut random);
            let result = &compiled.rules[0];
            assert_eq!((result.instances, result.escapes, result.unfinished), (1, 0, 0));
            let dropped = if strategy.winks_out() { result.winked_out } else { 0 };
            assert_eq!(compiled.calls, calls as u64 - dropped);
            assert_eq!(compiled.virtual_calls > 0, strategy.is_virtual());
        }
    }
}

#[test]
fn a_replay_under_plans_with_regions_and_sites_makes_the_recorded_calls() {
    let ends = ["drained", "sure"];
    let strategies = ["AS2", "AS3", "AS7", "AS11", "AS13"];
    for seed in seeds(40) {
        let (program, mut random) = program(seed, 1 + seed as usize % 6, 1000);
        let (end, strategy) = (ends[random.below(2)], strategies[random.below(5)]);
        let text = format!(
            "[[rule]]\nregion = 'parse_document'\nstrategy = '{strategy}'\nends = '{end}'\n\
             [[rule]]\nregion = 'outer'\nstrategy = 'AS5'\nends = 'sure'\n\
             [[rule]]\nsite = 'other'\nstrategy = 'AS7'\n"
        );
        let plan = Plan::parse(&text, "a plan").unwrap();
        let compiled = check(program, &plan, &Options::default(), &mut random);
        assert!(compiled.targets <= 8192);
    }
}

#[test]
fn frees_of_escaped_blocks_are_omitted_if_wink_out_is_forced() {
    for seed in seeds(40) {
        let (program, mut random) = program(seed, 1 + seed as usize % 4, 800);
        let end = ["drained", "sure"][random.below(2)];
        let text = format!(
            "[[rule]]\nregion = 'parse_document'\nstrategy = 'AS8'\nends = '{end}'\n\
             [[rule]]\nsite = 'make_node'\nstrategy = 'AS4'\n"
        );
        let plan = Plan::parse(&text, "a plan").unwrap();
        let options = Options { allow_escapes: true, ..Options::default() };
        check(program, &plan, &options, &mut random);
    }
}

#[test]
fn compiling_a_trace_twice_gives_the_same_op_stream() {
    let folder = tempfile::tempdir().unwrap();
    let (program, _) = program(7, 6, 2000);
    let trace = program.script.trace(folder.path());
    let plan = Plan::of_strategy(Strategy::new(13).unwrap());
    let bytes = |name: &str| {
        let path = folder.path().join(name);
        compile(&trace, &plan, &Options::default(), &path).unwrap();
        std::fs::read(path).unwrap()
    };
    assert_eq!(bytes("a"), bytes("b"));
}
