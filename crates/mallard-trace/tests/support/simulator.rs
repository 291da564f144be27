//! Replays op streams in a random order of the threads. Blocks are only numbers.

use super::replay::OpFile;
use super::Random;
use mallard_trace::replay::format::{is_call, op, Op};
use std::collections::{HashMap, HashSet};

/// The ID of a call: the thread, and the number of calls that the thread made before.
pub type CallId = (usize, usize);

/// What a call does, in a model or in a simulated replay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    pub op: u8,
    pub size: u64,
    /// The call that allocated or last resized the block that this call frees or resizes.
    pub of: Option<CallId>,
}

/// A block in a slot.
#[derive(Clone, Copy)]
struct Block {
    made_by: CallId,
    target: u16,
    /// How often the target had been opened when the block was allocated.
    instance: usize,
    size: u64,
    align: u8,
}

/// The state of a simulated replay.
struct Play<'a> {
    file: &'a OpFile,
    slots: HashMap<u32, Block>,
    published: Vec<u64>,
    has_started: Vec<bool>,
    next: Vec<usize>,
    calls: Vec<Vec<Call>>,
    opened: Vec<usize>,
    is_open: Vec<bool>,
    /// The threads that have used the open instance of each target.
    users: Vec<HashSet<usize>>,
    expects_realloc: Vec<bool>,
}

/// Replays a file, and returns the calls of each thread. Checks that no op uses a missing block or
/// a closed allocator, and that no thread waits forever.
pub fn play(file: &OpFile, random: &mut Random) -> Vec<Vec<Call>> {
    let (threads, targets) = (file.threads.len(), file.targets.len());
    let mut play = Play {
        file,
        slots: HashMap::new(),
        published: vec![0; threads],
        has_started: (0..threads).map(|thread| thread == 0).collect(),
        next: vec![0; threads],
        calls: vec![Vec::new(); threads],
        opened: vec![0; targets],
        is_open: (0..targets).map(|target| target == 0).collect(),
        users: vec![HashSet::new(); targets],
        expects_realloc: vec![false; threads],
    };
    loop {
        let ready: Vec<usize> = (0..threads).filter(|&thread| play.is_ready(thread)).collect();
        if ready.is_empty() {
            break;
        }
        let thread = ready[random.below(ready.len())];
        for _ in 0..=random.below(12) {
            if !play.is_ready(thread) {
                break;
            }
            play.step(thread);
        }
    }
    for (thread, ops) in file.threads.iter().enumerate() {
        assert_eq!(play.next[thread], ops.len(), "thread {thread} waits for ever");
    }
    play.calls
}

impl Play<'_> {
    fn is_ready(&self, thread: usize) -> bool {
        let next = self.file.threads[thread].get(self.next[thread]);
        self.has_started[thread]
            && next.is_some_and(|next| {
                next.op() != op::WAIT || self.published[next.slot as usize] >= next.size()
            })
    }

    fn step(&mut self, thread: usize) {
        let next = self.file.threads[thread][self.next[thread]];
        self.next[thread] += 1;
        let is_last = self.next[thread] == self.file.threads[thread].len();
        assert_eq!(next.op() == op::END, is_last);
        let target = usize::from(next.target());
        let is_realloc = matches!(next.op(), op::OP_REALLOC | op::OP_REALLOC_FAILED);
        if std::mem::take(&mut self.expects_realloc[thread]) {
            assert!(is_realloc, "an op between realloc_from and its realloc");
            return self.realloc(thread, &next);
        }
        match next.op() {
            op::END | op::WAIT | op::PAUSE => {}
            op::PUBLISH => {
                assert!(self.published[thread] < next.size(), "positions grow");
                self.published[thread] = next.size();
            }
            op::START => {
                let started = &mut self.has_started[next.slot as usize];
                assert!(!std::mem::replace(started, true), "a thread starts twice");
            }
            op::OPEN => {
                assert!(target != 0 && !self.is_open[target], "target {target} is open already");
                self.is_open[target] = true;
                self.opened[target] += 1;
                self.users[target] = HashSet::from([thread]);
            }
            op::CLOSE => {
                self.uses(thread, target);
                assert!(target != 0);
                self.is_open[target] = false;
            }
            op::REALLOC_FROM => {
                let block = self.block(&next);
                assert_eq!((block.size, block.align), (next.size(), next.align_log2()));
                self.expects_realloc[thread] = true;
            }
            call if is_call(call) => self.call(thread, &next),
            other => panic!("op {other}"),
        }
    }

    fn uses(&mut self, thread: usize, target: usize) {
        assert!(self.is_open[target], "target {target} is closed");
        self.users[target].insert(thread);
        let is_shared = target == 0 || self.file.targets[target].1;
        assert!(is_shared || self.users[target].len() == 1, "target {target} is shared");
    }

    /// Returns the block in the slot of an op. Checks that the op has the target that allocated the
    /// block, and that the target has not been opened again since.
    fn block(&self, of: &Op) -> Block {
        let block = *self.slots.get(&of.slot).expect("a block in the slot");
        let target = of.target();
        let instance = self.opened[usize::from(target)];
        assert_eq!((block.target, block.instance), (target, instance), "a block of another target");
        block
    }

    fn call(&mut self, thread: usize, next: &Op) {
        let target = usize::from(next.target());
        self.uses(thread, target);
        let mut of = None;
        match next.op() {
            op::OP_MALLOC..=op::OP_NEW_ALIGNED => self.put(thread, next),
            op::OP_FREE..=op::OP_FREE_ALIGNED => {
                let block = self.block(next);
                assert_eq!((block.size, block.align), (next.size(), next.align_log2()));
                self.slots.remove(&next.slot);
                of = Some(block.made_by);
            }
            _ => {}
        }
        self.calls[thread].push(Call { op: next.op(), size: next.size(), of });
    }

    /// Puts a new block in a slot. The slot must be empty, or wink-out must have freed its block.
    fn put(&mut self, thread: usize, next: &Op) {
        let target = next.target();
        let made_by = (thread, self.calls[thread].len());
        let (instance, align) = (self.opened[usize::from(target)], next.align_log2());
        let block = Block { made_by, target, instance, size: next.size(), align };
        let before = self.slots.insert(next.slot, block);
        assert!(before.is_none_or(|before| before.target != 0), "a block in the slot already");
    }

    fn realloc(&mut self, thread: usize, next: &Op) {
        self.uses(thread, usize::from(next.target()));
        let of = Some(self.block(next).made_by);
        if next.op() == op::OP_REALLOC {
            self.put_again(thread, next);
        }
        self.calls[thread].push(Call { op: next.op(), size: next.size(), of });
    }

    fn put_again(&mut self, thread: usize, next: &Op) {
        self.slots.remove(&next.slot);
        self.put(thread, next);
    }
}
