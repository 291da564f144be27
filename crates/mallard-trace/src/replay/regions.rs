//! Tracks the instances of a plan's rules, and assigns targets to them.

use super::compiled::RuleResult;
use super::emitter::Emitter;
use super::format::{self, allocator, op, pack, Op, TARGETS_MAX};
use super::numbers::Numbers;
use super::plan::{bad, End, Plan, Rule, Scope};
use super::strategy::Allocator;
use crate::error::Result;
use crate::hash::NumberMap;

/// The index that means no instance, because the block has no rule or the rule has no open
/// instance.
pub(super) const NO_INSTANCE: u32 = u32::MAX;
/// The number of closed targets of other threads that a rule leaves idle. Only if there are more
/// are such targets reused.
const SPARE_TARGETS: usize = 64;

/// A rule of the plan during compilation.
struct RuleState {
    rule: Rule,
    numbers: Numbers,
    /// The targets of the rule. `numbers` allocates indices of this list to threads.
    targets: Vec<u16>,
    /// The only instance of a rule that is not for a region.
    whole: u32,
    result: RuleResult,
}

impl RuleState {
    fn is_region(&self) -> bool {
        matches!(self.rule.scope, Scope::Region(_))
    }

    fn is_local(&self) -> bool {
        self.rule.strategy.allocator() != Allocator::Heap
    }
}

/// An instance of a region, or the only instance of a rule without a region.
#[derive(Default)]
struct Instance {
    rule: usize,
    /// The thread that runs the region. Thread 0 for rules without a region.
    owner: usize,
    /// The target (0 for the malloc of the process). `number` is its index in `RuleState::targets`.
    target: u16,
    number: u32,
    live_blocks: u64,
    live_bytes: u64,
    peak_bytes: u64,
    total_bytes: u64,
    has_ended: bool,
    is_closed: bool,
    /// The frees since the last allocation in an instance with wink-out. The op stream does not
    /// contain them yet.
    held: Vec<Held>,
    /// The position of the owner after its last op with this target. `others` has the corresponding
    /// positions of other threads.
    owner_at: u64,
    others: NumberMap<u32, u64>,
}

/// A delayed free in an instance with wink-out. The free is added to the op stream only if the
/// instance allocates again.
pub(super) struct Held {
    /// The thread that frees.
    pub by: usize,
    /// The thread that wrote the slot last, and the position of this thread after the write.
    pub writer: usize,
    pub at: u64,
    pub op: Op,
}

/// All instances and targets of a plan.
#[derive(Default)]
pub(super) struct Regions {
    /// The name of the plan in errors.
    plan: String,
    rules: Vec<RuleState>,
    instances: Vec<Instance>,
    /// Indices of instances that are over. New instances reuse these indices.
    free: Vec<u32>,
    /// For each thread, the current instance of each rule.
    current: Vec<Vec<u32>>,
    targets: Vec<format::Target>,
    /// Frees that wink-out has replaced, so that their slots can become free later.
    left_out: Vec<Held>,
}

impl Regions {
    pub fn new(plan: &Plan) -> Self {
        let state = |rule: &Rule| RuleState {
            rule: rule.clone(),
            numbers: Numbers::new(SPARE_TARGETS, 1),
            targets: Vec::new(),
            whole: NO_INSTANCE,
            result: RuleResult::default(),
        };
        Regions {
            plan: plan.name.clone(),
            rules: plan.rules.iter().map(state).collect(),
            targets: vec![format::Target::default()],
            ..Regions::default()
        }
    }

    /// Adds a thread. For the first thread, also opens the targets of rules without a region.
    pub fn add_thread(&mut self, thread: usize, emitter: &mut Emitter) -> Result<()> {
        self.current.push(vec![NO_INSTANCE; self.rules.len()]);
        if thread == 0 {
            for rule in 0..self.rules.len() {
                if !self.rules[rule].is_region() {
                    self.rules[rule].whole = self.begin(thread, rule, emitter)?;
                }
            }
        }
        Ok(())
    }

    /// Returns the instance in which a thread allocates under a rule. Begins an instance if the
    /// thread has no open instance.
    #[inline]
    pub fn enter(&mut self, thread: usize, rule: usize, emitter: &mut Emitter) -> Result<u32> {
        let whole = self.rules[rule].whole;
        if whole != NO_INSTANCE {
            return Ok(whole);
        }
        match self.current[thread][rule] {
            NO_INSTANCE => {
                let instance = self.begin(thread, rule, emitter)?;
                self.current[thread][rule] = instance;
                Ok(instance)
            }
            instance => Ok(instance),
        }
    }

    fn begin(&mut self, owner: usize, rule: usize, emitter: &mut Emitter) -> Result<u32> {
        let (target, number, owner_at) = match self.rules[rule].is_local() {
            true => self.open(owner, rule, emitter)?,
            false => (0, 0, 0),
        };
        self.rules[rule].result.instances += 1;
        let instance = Instance { rule, owner, target, number, owner_at, ..Instance::default() };
        match self.free.pop() {
            Some(place) => {
                self.instances[place as usize] = instance;
                Ok(place)
            }
            None => {
                self.instances.push(instance);
                Ok(self.instances.len() as u32 - 1)
            }
        }
    }

    /// Opens a target for a rule. Returns the target, its index in `RuleState::targets`, and the
    /// position of the thread after the op that opens the target.
    fn open(&mut self, thread: usize, rule: usize, em: &mut Emitter) -> Result<(u16, u32, u64)> {
        let may_grow = self.targets.len() < TARGETS_MAX as usize;
        let state = &mut self.rules[rule];
        let Some(taken) = state.numbers.take(thread, may_grow) else {
            return Err(bad(
                format!("{}: rule {} has too many instances at a time", self.plan, rule + 1),
                format!("an op stream has at most {TARGETS_MAX} targets: choose an inner region"),
            ));
        };
        if taken.is_new {
            state.targets.push(self.targets.len() as u16);
            self.targets.push(format::Target {
                allocator: match state.rule.strategy.allocator() {
                    Allocator::Heap => allocator::MALLOC,
                    Allocator::Arena => allocator::ARENA,
                    Allocator::Multipool => allocator::MULTIPOOL,
                    Allocator::MultipoolOverArena => allocator::MULTIPOOL_OVER_ARENA,
                },
                is_shared: false,
                first_chunk: state.rule.first_chunk,
                rule: rule as u32 + 1,
            });
        }
        if let Some((other, position)) = taken.after {
            em.wait_for(thread, other, position);
        }
        let target = state.targets[taken.number as usize];
        let position = em.push(thread, of_target(op::OPEN, target));
        Ok((target, taken.number, position))
    }

    /// Returns the target of an instance.
    #[inline]
    pub fn target(&self, instance: u32) -> u16 {
        self.instances.get(instance as usize).map_or(0, |instance| instance.target)
    }

    /// Returns whether wink-out frees the blocks of an instance.
    #[inline]
    pub fn winks_out(&self, instance: u32) -> bool {
        let instance = self.instances.get(instance as usize);
        instance.is_some_and(|instance| self.rules[instance.rule].rule.strategy.winks_out())
    }

    /// Returns whether an instance is over. If so, its blocks that are still in use have outlived
    /// the instance.
    #[inline]
    pub fn has_ended(&self, instance: u32) -> bool {
        self.instances.get(instance as usize).is_some_and(|instance| instance.has_ended)
    }

    /// Counts a new block.
    #[inline]
    pub fn allocate(&mut self, instance: u32, size: u64) {
        let Some(of) = self.instances.get_mut(instance as usize) else { return };
        of.live_blocks += 1;
        of.grow(0, size);
        let result = &mut self.rules[of.rule].result;
        result.blocks += 1;
        result.bytes += size;
        self.count_virtual(instance, 1);
    }

    /// Counts calls of an allocator through an abstract base class, if the strategy uses one.
    fn count_virtual(&mut self, instance: u32, calls: u64) {
        let state = &mut self.rules[self.instances[instance as usize].rule];
        if state.rule.strategy.is_virtual() {
            state.result.virtual_calls += calls;
        }
    }

    /// Counts a realloc.
    pub fn resize(&mut self, instance: u32, from: u64, to: u64) {
        let Some(of) = self.instances.get_mut(instance as usize) else { return };
        of.grow(from, to);
        self.rules[of.rule].result.bytes += to.saturating_sub(from);
        self.count_virtual(instance, 2);
    }

    /// Records that a thread has used the target of an instance, and its position afterwards.
    #[inline]
    pub fn used(&mut self, instance: u32, thread: usize, position: u64) {
        let Some(of) = self.instances.get_mut(instance as usize) else { return };
        if thread == of.owner {
            of.owner_at = position;
        } else {
            of.others.insert(thread as u32, position);
            self.rules[of.rule].result.is_shared = true;
        }
    }

    /// Counts a block that outlived its instance. `by` is the thread that freed the block, if any.
    pub fn escape(&mut self, instance: u32, by: Option<usize>, function: impl Fn() -> String) {
        let of = &self.instances[instance as usize];
        let result = &mut self.rules[of.rule].result;
        result.escapes += 1;
        result.foreign_escapes += u64::from(by.is_some_and(|by| by != of.owner));
        result.escape_from.get_or_insert_with(function);
    }

    /// Returns whether an instance belongs to a region. If so, its blocks that are still in use at
    /// the end of the recording have outlived the instance.
    pub fn is_of_region(&self, instance: u32) -> bool {
        let instance = self.instances.get(instance as usize);
        instance.is_some_and(|instance| self.rules[instance.rule].is_region())
    }

    /// Counts a free. `is_call` is true if the op stream contains the free.
    pub fn count_free(&mut self, instance: u32, is_call: bool) {
        let Some(of) = self.instances.get(instance as usize) else { return };
        if is_call {
            self.count_virtual(instance, 1);
        } else {
            self.rules[of.rule].result.winked_out += 1;
        }
    }

    /// Delays a free until the instance allocates again or ends. Wink-out replaces only the frees
    /// after the last allocation of an instance. Earlier frees stay in the op stream.
    pub fn hold(&mut self, instance: u32, free: Held) {
        self.instances[instance as usize].held.push(free);
    }

    /// Adds the delayed frees of an instance to the op stream, because the instance is about to
    /// allocate.
    #[inline]
    pub fn resume(&mut self, instance: u32, emitter: &mut Emitter, slots: &mut Numbers) {
        let held = self.instances.get_mut(instance as usize).map(|of| &mut of.held);
        if let Some(held) = held.filter(|held| !held.is_empty()) {
            let mut held = std::mem::take(held);
            for free in held.drain(..) {
                emitter.wait_for(free.by, free.writer, free.at);
                let at = emitter.call(free.by, free.op);
                slots.give(free.by, free.op.slot, at);
                self.used(instance, free.by, at);
                self.count_free(instance, true);
            }
            self.instances[instance as usize].held = held;
        }
    }

    /// Frees the slots of blocks whose frees wink-out has replaced. Each slot returns to the thread
    /// that wrote it, so no wait is needed.
    #[inline]
    pub fn give_back(&mut self, slots: &mut Numbers) {
        for free in self.left_out.drain(..) {
            slots.give(free.writer, free.op.slot, free.at);
        }
    }

    /// Handles the free of a block. After the last block, ends the instance or closes its target.
    pub fn freed(&mut self, instance: u32, by: usize, size: u64, em: &mut Emitter) {
        let Some(of) = self.instances.get_mut(instance as usize) else { return };
        of.live_blocks -= 1;
        of.live_bytes -= size;
        let (is_empty, has_ended, rule) = (of.live_blocks == 0, of.has_ended, of.rule);
        if is_empty && has_ended {
            self.close(instance, by, em);
            self.free.push(instance);
        } else if is_empty && self.rules[rule].rule.ends == Some(End::Drained) {
            self.end(instance, by, em);
        }
    }

    /// Returns whether an instance of a region is open on a thread.
    #[inline]
    pub fn is_open(&self, thread: usize, rule: usize) -> bool {
        self.current[thread][rule] != NO_INSTANCE
    }

    /// Ends the current instance of a region on a thread.
    #[inline]
    pub fn over(&mut self, thread: usize, rule: usize, emitter: &mut Emitter) {
        let instance = self.current[thread][rule];
        if instance != NO_INSTANCE {
            self.end(instance, thread, emitter);
        }
    }

    /// Ends the instances with `End::Sure` or `End::Exact` on a thread that has no more events.
    pub fn end_thread(&mut self, thread: usize, emitter: &mut Emitter) {
        for rule in 0..self.rules.len() {
            if matches!(self.rules[rule].rule.ends, Some(End::Sure | End::Exact)) {
                self.over(thread, rule, emitter);
            }
        }
    }

    /// Ends an instance. `by` is the thread whose event ends it.
    fn end(&mut self, instance: u32, by: usize, emitter: &mut Emitter) {
        let of = &mut self.instances[instance as usize];
        of.has_ended = true;
        let state = &mut self.rules[of.rule];
        state.result.peaks.add(of.peak_bytes);
        state.result.totals.add(of.total_bytes);
        state.result.winked_out += of.held.len() as u64;
        self.left_out.append(&mut of.held);
        self.current[of.owner][of.rule] = NO_INSTANCE;
        let (owner, is_empty) = (of.owner, of.live_blocks == 0);
        if state.rule.strategy.winks_out() {
            self.close(instance, owner, emitter);
        } else if is_empty {
            self.close(instance, by, emitter);
        }
        if is_empty {
            self.free.push(instance);
        }
    }

    /// Closes the target of an instance. The op follows the last op of every thread that used the
    /// target.
    fn close(&mut self, instance: u32, by: usize, emitter: &mut Emitter) {
        let of = &mut self.instances[instance as usize];
        if of.target == 0 || of.is_closed {
            return;
        }
        of.is_closed = true;
        emitter.wait_for(by, of.owner, of.owner_at);
        for (&thread, &position) in &of.others {
            emitter.wait_for(by, thread as usize, position);
        }
        let position = emitter.push(by, of_target(op::CLOSE, of.target));
        self.rules[of.rule].numbers.give(by, of.number, position);
    }

    /// Counts the instances that are open at the end of the recording, and closes their targets.
    pub fn finish(&mut self, emitter: &mut Emitter) {
        for instance in 0..self.instances.len() {
            let of = &self.instances[instance];
            if of.has_ended {
                continue;
            }
            let (owner, is_empty) = (of.owner, of.live_blocks == 0);
            let state = &mut self.rules[of.rule];
            state.result.peaks.add(of.peak_bytes);
            state.result.totals.add(of.total_bytes);
            state.result.winked_out += of.held.len() as u64;
            state.result.unfinished += u64::from(state.is_region());
            if state.rule.strategy.winks_out() || is_empty {
                self.close(instance as u32, owner, emitter);
            }
        }
    }

    /// Returns the targets of the op stream and the result of each rule. If several threads use one
    /// instance, all targets of its rule are shared. The reason is that a rule stands for one type
    /// in a program, and this type determines whether the allocator has a lock.
    pub fn into_results(mut self) -> (Vec<format::Target>, Vec<RuleResult>) {
        for state in &mut self.rules {
            state.result.targets = state.targets.len() as u32;
            for &target in &state.targets {
                self.targets[usize::from(target)].is_shared = state.result.is_shared;
            }
        }
        (self.targets, self.rules.into_iter().map(|state| state.result).collect())
    }
}

impl Instance {
    /// Counts a block whose size changes from `from` to `to` bytes.
    #[inline]
    fn grow(&mut self, from: u64, to: u64) {
        self.live_bytes = self.live_bytes - from + to;
        self.peak_bytes = self.peak_bytes.max(self.live_bytes);
        self.total_bytes += to.saturating_sub(from);
    }
}

fn of_target(op: u8, target: u16) -> Op {
    Op { what: pack(0, 0, op, target), slot: 0, gap: 0 }
}
