//! Random programs with functions that call, return and jump, threads that exit, and a model of the
//! regions. The model computes the instances of one function directly from their definition.

use super::replay::Script;
use super::Random;
use mallard_trace::format::op;
use mallard_trace::replay::End;
use mallard_trace::Trace;
use std::collections::{HashMap, HashSet};
use std::path::Path;

/// The functions in the call stacks. They call each other and themselves in any order.
const NAMES: [&str; 7] = [
    "outer",
    "parse_document",
    "make_node(int)",
    "operator new(unsigned long)",
    "Node* app::build<int>(int)",
    "other",
    "libx.so+0x77",
];

/// The names of marked regions. One of them is also the name of a function.
const MARKS: [&str; 3] = ["request", "a phase of the request with a long name", "other"];

/// What an event does with blocks. A block is identified by its address.
#[derive(Clone, Copy)]
enum What {
    Allocate(u64, u64),
    Free(u64),
    Resize { from: u64, to: u64, size: u64 },
    Begin(&'static str),
    End(&'static str),
    Nothing,
}

/// An event of a thread, with its call stack unless that is unknown.
struct Event {
    thread: usize,
    what: What,
    stack: Option<Vec<&'static str>>,
    /// Number of outer frames that the call stack shares with the previous event.
    kept: usize,
}

/// A random program.
pub struct Program {
    script: Script,
    random: Random,
    threads: usize,
    stacks: Vec<Vec<&'static str>>,
    last: Vec<Vec<&'static str>>,
    blocks: Vec<u64>,
    next: u64,
    events: Vec<Event>,
}

impl Program {
    pub fn new(seed: u64, steps: usize) -> Program {
        let mut random = Random(seed);
        let threads = 1 + random.below(4);
        let stacks = (0..threads).map(|thread| vec![["main", "start_thread"][thread.min(1)]]);
        let mut program = Program {
            script: Script::new(),
            random,
            threads,
            stacks: stacks.collect(),
            last: vec![Vec::new(); threads],
            blocks: Vec::new(),
            next: 0x10_0000,
            events: Vec::new(),
        };
        (0..steps).for_each(|_| program.step());
        program
    }

    /// Calls functions, returns from one, or jumps out of several.
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

    /// Chooses the call stack of the next event, and how many outer frames it shares with the previous
    /// event.
    fn next_stack(&mut self, thread: usize) -> (Option<Vec<&'static str>>, usize) {
        self.move_stack(thread);
        if self.random.below(40) == 0 {
            return (None, 0); // some events have no call stack
        }
        let stack = self.stacks[thread].clone();
        let last = std::mem::replace(&mut self.last[thread], stack.clone());
        let mut kept = last.iter().zip(&stack).take_while(|(a, b)| a == b).count();
        if self.random.below(3) == 0 {
            kept = kept.min(self.random.below(stack.len() + 1));
            self.script.keeps(kept);
        }
        (Some(stack), kept)
    }

    /// Begins or ends a marked region.
    fn mark(&mut self, thread: usize) {
        let (name, is_begin) = (MARKS[self.random.below(3)], self.random.below(2) == 0);
        let kind = if is_begin { op::REGION_BEGIN } else { op::REGION_END };
        self.script.mark(thread as u32, kind, name);
        let what = if is_begin { What::Begin(name) } else { What::End(name) };
        self.events.push(Event { thread, what, stack: None, kept: 0 });
    }

    fn step(&mut self) {
        let thread = self.random.below(self.threads);
        if !self.last[thread].is_empty() && self.random.below(8) == 0 {
            return self.mark(thread);
        }
        let (stack, kept) = self.next_stack(thread);
        let (tid, size) = (thread as u32, self.random.below(500) as u64);
        let known: &[&str] = stack.as_deref().unwrap_or_default();
        self.next += 0x1000;
        let what = match self.random.below(12) {
            0..=4 => {
                self.script.event(tid, op::MALLOC, self.next, size, known);
                self.blocks.push(self.next);
                What::Allocate(self.next, size)
            }
            5..=9 if !self.blocks.is_empty() => {
                let of_late = self.blocks.len().min(1 + self.random.below(12));
                let block = self.blocks.remove(self.blocks.len() - of_late);
                self.script.free(tid, block, known);
                What::Free(block)
            }
            10 if !self.blocks.is_empty() => {
                let at = self.random.below(self.blocks.len());
                let to = [self.blocks[at], self.next][self.random.below(2)];
                let from = std::mem::replace(&mut self.blocks[at], to);
                self.script.realloc(tid, from, to, size + 1, known);
                What::Resize { from, to, size: size + 1 }
            }
            _ => {
                self.script.event(tid, op::MALLOC, 0, size, known);
                What::Nothing
            }
        };
        self.events.push(Event { thread, what, stack, kept });
    }

    /// Makes a trace of the program. Afterwards, the program can only be used for its model.
    pub fn trace(&mut self, folder: &Path) -> Trace {
        std::mem::replace(&mut self.script, Script::new()).trace(folder)
    }

    /// Computes the instances of a function's region from their definition.
    pub fn model(&self, function: &str, ends: End) -> Model {
        let mut model = Model::default();
        let mut current: Vec<Option<usize>> = vec![None; self.threads];
        let mut last_event = vec![0; self.threads];
        for (number, event) in self.events.iter().enumerate() {
            last_event[event.thread] = number;
        }
        let mut marks: Vec<Vec<&str>> = vec![Vec::new(); self.threads];
        for (number, event) in self.events.iter().enumerate() {
            if ends == End::Exact {
                let marks = &mut marks[event.thread];
                follow_mark(marks, event.what);
                let is_within = marks.contains(&function);
                if !is_within {
                    model.end(&mut current[event.thread]);
                }
                model.event(event, is_within, &mut current, ends);
                if last_event[event.thread] == number {
                    model.end(&mut current[event.thread]);
                }
                continue;
            }
            let depth = |stack: &Vec<&str>| stack.iter().position(|&name| name == function);
            let within = event.stack.as_ref().and_then(depth);
            // The frame of the caller identifies the call of the function.
            let is_same = within.is_some_and(|depth| event.kept >= depth);
            if event.stack.is_some() && !is_same && ends == End::Sure {
                model.end(&mut current[event.thread]);
            }
            model.event(event, within.is_some(), &mut current, ends);
            if last_event[event.thread] == number && ends == End::Sure {
                model.end(&mut current[event.thread]);
            }
        }
        model.finish();
        model
    }
}

/// Begins a marked region, or ends the innermost region of that name with all regions inside of it.
fn follow_mark(marks: &mut Vec<&'static str>, what: What) {
    match what {
        What::Begin(name) => marks.push(name),
        What::End(name) => {
            if let Some(at) = marks.iter().rposition(|&mark| mark == name) {
                marks.truncate(at);
            }
        }
        _ => {}
    }
}

/// An instance of the model.
#[derive(Default)]
pub struct Instance {
    thread: usize,
    has_ended: bool,
    live: HashMap<u64, u64>,
    sizes: Vec<u64>,
    pub peak: u64,
    /// Bytes allocated before the instance ends. `bytes` also counts what blocks grow by after the
    /// end.
    pub total: u64,
    pub bytes: u64,
    pub escapes: u64,
}

/// The instances of a function.
#[derive(Default)]
pub struct Model {
    pub instances: Vec<Instance>,
    /// The instance of each block in use that was allocated in the region. Key: address.
    owners: HashMap<u64, usize>,
    pub unfinished: u64,
    pub escape_bytes: u64,
    pub foreign_escapes: u64,
    pub foreign_frees: u64,
}

impl Model {
    fn event(&mut self, event: &Event, is_within: bool, current: &mut [Option<usize>], ends: End) {
        let slot = &mut current[event.thread];
        match event.what {
            What::Allocate(block, size) if is_within => {
                let instance = *slot.get_or_insert_with(|| {
                    let thread = event.thread;
                    self.instances.push(Instance { thread, ..Instance::default() });
                    self.instances.len() - 1
                });
                self.owners.insert(block, instance);
                self.instances[instance].sizes.push(size);
                self.instances[instance].grow(block, block, size);
            }
            What::Free(block) => {
                let Some(owner) = self.owners.remove(&block) else { return };
                let instance = &mut self.instances[owner];
                let size = instance.live.remove(&block).unwrap();
                let is_foreign = u64::from(instance.thread != event.thread);
                self.foreign_frees += is_foreign;
                if instance.has_ended {
                    instance.escapes += 1;
                    self.escape_bytes += size;
                    self.foreign_escapes += is_foreign;
                } else if instance.live.is_empty() && ends == End::Drained {
                    self.end(&mut current[self.instances[owner].thread]);
                }
            }
            What::Resize { from, to, size } => {
                let Some(owner) = self.owners.remove(&from) else { return };
                self.owners.insert(to, owner);
                self.instances[owner].grow(from, to, size);
            }
            _ => {}
        }
    }

    fn end(&mut self, current: &mut Option<usize>) {
        if let Some(instance) = current.take() {
            self.instances[instance].has_ended = true;
        }
    }

    /// Counts the blocks that are in use at the end as escaped.
    fn finish(&mut self) {
        for instance in &mut self.instances {
            instance.escapes += instance.live.len() as u64;
            self.escape_bytes += instance.live.values().sum::<u64>();
            self.unfinished += u64::from(!instance.has_ended);
        }
    }

    pub fn blocks(&self) -> u64 {
        self.instances.iter().map(|instance| instance.sizes.len() as u64).sum()
    }

    pub fn escapes(&self) -> u64 {
        self.instances.iter().map(|instance| instance.escapes).sum()
    }

    /// Returns the number of different sequences of sizes that instances allocate.
    pub fn inputs(&self) -> u64 {
        self.instances.iter().map(|instance| &instance.sizes).collect::<HashSet<_>>().len() as u64
    }
}

impl Instance {
    fn grow(&mut self, from: u64, to: u64, size: u64) {
        let before = self.live.remove(&from).unwrap_or(0);
        self.live.insert(to, size);
        let growth = size.saturating_sub(before);
        self.bytes += growth;
        if !self.has_ended {
            self.total += growth;
            self.peak = self.peak.max(self.live.values().sum());
        }
    }
}
