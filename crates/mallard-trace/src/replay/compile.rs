//! Compiles a trace: turns its events into ops, in the order of the recording.
//!
//! One pass over the events. Memory: a row group of a million events, the blocks in use, the slots
//! that are free, at most 64 KiB for each thread, and what the plan needs of the call stacks. The ops
//! wait in a temporary file.

use super::compiled::{Compiled, RuleResult};
use super::emitter::Emitter;
use super::format::{op as to, pack, Op, Sums};
use super::lead::Lead;
use super::numbers::Numbers;
use super::plan::{bad, End, Plan, Rule, Scope};
use super::regions::{Held, Regions, NO_INSTANCE};
use super::rows::{Row, Rows, Wanted, NULL};
use super::selection::{Selection, NO_RULE};
use super::strategy::Strategy;
use super::streams::Streams;
use super::threads::{Process, Recorded, ThreadState, Threads};
use super::validity::{self, Oddities};
use super::Options;
use crate::error::{Error, ErrorKind, Result};
use crate::format::{flag, op};
use crate::hash::NumberMap;
use crate::manifest::Manifest;
use crate::tables::schema::{EVENTS, SITES};
use crate::tables::Table;
use crate::trace::{Stacks, Trace};
use std::collections::VecDeque;
use std::io;
use std::path::Path;
use tempfile::NamedTempFile;

/// Compiles one process of a trace into a file of ops. If anything fails, the file is as it was
/// before.
pub fn compile(trace: &Trace, plan: &Plan, options: &Options, to: &Path) -> Result<Compiled> {
    validity::check_samples(trace.manifest(), options)?;
    check_ends(plan)?;
    let process = Process::read(trace, options.process)?;
    if process.threads.is_empty() {
        return Err(no_events(trace, options.process)?);
    }
    let is_for_some = |rule: &Rule| rule.scope != Scope::Everything;
    let needs_stacks = process.threads.len() > 1 || plan.rules.iter().any(is_for_some);
    let stacks = needs_stacks.then(|| trace.stacks()).transpose()?;
    let selection = match &stacks {
        Some(stacks) => {
            let allocating = trace.table(&SITES)?.i64s("stack")?;
            Selection::new(plan, stacks, &allocating, "the plan")?
        }
        None => Selection::without_stacks(plan),
    };
    let (file, spool) = files_beside(to).map_err(|error| refused(to, &error))?;
    let mut compiler = Compiler::new(plan, options, selection, stacks, spool, &process);
    let counts = &trace.manifest().counts;
    let wanted = Wanted {
        proc: process.others > 0,
        stack: needs_stacks,
        fresh: compiler.selection.has_sure_ends(),
        addr: counts.null_frees > 0,
    };
    compiler.read(&trace.table(&EVENTS)?, wanted, process.number)?;
    compiler.finish();
    compiler.odd.other_processes = process.others;
    compiler.write(trace.manifest(), file, to)
}

/// Fails if the plan has a region with `ends = "exact"`: no trace records such ends.
fn check_ends(plan: &Plan) -> Result<()> {
    match plan.rules.iter().position(|rule| rule.ends == Some(End::Exact)) {
        None => Ok(()),
        Some(rule) => Err(bad(
            format!("rule {} of the plan needs exact ends, and no trace has them", rule + 1),
            "write ends = \"drained\", or ends = \"sure\"",
        )),
    }
}

fn no_events(trace: &Trace, process: Option<i32>) -> Result<Error> {
    let name = trace.folder().display();
    let (what, help) = match process {
        Some(process) => (
            format!("the trace {name} has no events of the process {process}"),
            format!("the processes are {}", Process::list(trace)?),
        ),
        None => (
            format!("the trace {name} has no events"),
            "record a program that allocates: mallard record -o NAME -- PROGRAM".to_string(),
        ),
    };
    Ok(Error::new(ErrorKind::Missing, what, "nothing was replayed", help))
}

/// Opens a file that will be `to`, and a temporary file beside it.
fn files_beside(to: &Path) -> io::Result<(NamedTempFile, std::fs::File)> {
    let parent = to.parent().filter(|parent| *parent != Path::new(""));
    let parent = parent.unwrap_or(Path::new("."));
    Ok((NamedTempFile::new_in(parent)?, tempfile::tempfile_in(parent)?))
}

fn refused(to: &Path, error: &io::Error) -> Error {
    Error::new(
        ErrorKind::System,
        format!("cannot write the op stream {}: {error}", to.display()),
        "nothing was replayed; the trace is as it was",
        "make room on the disk: an op stream has 16 bytes for each event",
    )
}

fn damaged(alloc: i64) -> Error {
    Error::new(
        ErrorKind::Damaged,
        format!("the trace is damaged: two blocks have the number {alloc}"),
        "nothing was replayed",
        "copy the trace again, or record again: mallard record -o NAME -- PROGRAM",
    )
}

/// A block in use.
struct Block {
    size: u64,
    /// The position of `writer` after the latest op that wrote the slot.
    at: u64,
    writer: u32,
    slot: u32,
    instance: u32,
    /// The call stack of the allocation.
    node: i32,
    align: u8,
}

/// The alignment of what malloc returns, as an exponent.
const NATURAL_ALIGN: u8 = 4;

/// The longest gap between two calls, in nanoseconds: 19 hours. Longer gaps are cut to this.
const GAP_MAX: u64 = 1 << 46;

struct Compiler<'a> {
    plan: &'a Plan,
    options: Options,
    process: i32,
    selection: Selection,
    stacks: Option<Stacks>,
    threads: Threads,
    /// Threads that have not started.
    coming: VecDeque<Recorded>,
    emitter: Emitter,
    lead: Lead,
    regions: Regions,
    slots: Numbers,
    /// The blocks in use, with their numbers in the trace as keys.
    live: NumberMap<u64, Block>,
    live_bytes: u64,
    sums: Sums,
    odd: Oddities,
    /// Number of rows so far.
    rows: u64,
    /// The time of the first event.
    first_ns: i64,
}

impl<'a> Compiler<'a> {
    fn new(
        plan: &'a Plan,
        options: &Options,
        selection: Selection,
        stacks: Option<Stacks>,
        spool: std::fs::File,
        process: &Process,
    ) -> Self {
        Compiler {
            plan,
            options: options.clone(),
            process: process.number.unwrap_or(0),
            selection,
            stacks,
            threads: Threads::default(),
            coming: process.threads.iter().copied().collect(),
            emitter: Emitter::new(Streams::new(spool)),
            lead: Lead::new(options.step_bytes),
            regions: Regions::new(plan),
            slots: Numbers::new(options.spare_slots),
            live: NumberMap::default(),
            live_bytes: 0,
            sums: Sums::default(),
            odd: Oddities::default(),
            rows: 0,
            first_ns: 0,
        }
    }

    /// Compiles all events of a process.
    fn read(&mut self, events: &Table, wanted: Wanted, process: Option<i32>) -> Result<()> {
        for group in events.groups() {
            let rows = Rows::read(events, group, wanted)?;
            for row in 0..rows.len() {
                if rows.process(row).is_none_or(|of| Some(of) == process) {
                    self.row(&rows.row(row))?;
                }
            }
        }
        Ok(())
    }

    /// Compiles an event.
    fn row(&mut self, row: &Row) -> Result<()> {
        if self.rows == 0 {
            self.first_ns = row.t_ns;
        }
        self.start_threads(row.t_ns)?;
        let thread = match self.threads.index(row.tid) {
            Some(thread) => thread,
            None => self.start_late(row)?,
        };
        self.lead.hold_back(thread, &mut self.emitter);
        if row.stack >= 0 {
            for rule in self.selection.over(row.stack, row.fresh) {
                self.regions.over(thread, rule, &mut self.emitter);
            }
        }
        self.regions.give_back(&mut self.slots);
        self.call(row, thread)?;
        self.rows += 1;
        let (is_starting, now) = (self.selection.starts_thread(row.stack), self.rows);
        let state = self.threads.state(thread);
        if is_starting {
            state.starts_at = Some(now);
        }
        state.events_left = state.events_left.saturating_sub(1);
        if state.events_left == 0 {
            self.regions.end_thread(thread, &mut self.emitter);
        }
        Ok(())
    }

    /// Starts the threads whose recorded start is not after `now`.
    #[inline]
    fn start_threads(&mut self, now: i64) -> Result<()> {
        while let Some(&thread) = self.coming.front() {
            if thread.t0.is_none_or(|t0| t0 > now) {
                break;
            }
            self.coming.pop_front();
            self.start(&thread, thread.t0.unwrap_or(now))?;
        }
        Ok(())
    }

    /// Starts a thread at its first event, because its start is unknown or recorded later than
    /// that.
    #[cold]
    fn start_late(&mut self, row: &Row) -> Result<usize> {
        let place = self.coming.iter().position(|thread| thread.tid == row.tid);
        let thread = place.and_then(|place| self.coming.remove(place));
        let thread = thread.unwrap_or(Recorded { tid: row.tid, t0: None, events: u64::MAX });
        self.start(&thread, row.t_ns)
    }

    fn start(&mut self, thread: &Recorded, t0: i64) -> Result<usize> {
        let start_ns = t0.saturating_sub(self.first_ns).max(0) as u64;
        let creator = self.threads.creator();
        let index = self.emitter.add_thread(thread.tid as u32 as u64, start_ns, creator);
        self.threads.add(
            thread.tid,
            ThreadState { end_of_call: t0, starts_at: None, events_left: thread.events },
        );
        self.regions.add_thread(index, &mut self.emitter)?;
        Ok(index)
    }

    fn call(&mut self, row: &Row, thread: usize) -> Result<()> {
        match row.op {
            op::MALLOC..=op::PVALLOC if row.alloc >= 0 => {
                let (kind, align) = kind_of_allocation(row);
                self.allocate(row, thread, kind, align)
            }
            op::MALLOC..=op::PVALLOC => {
                let (kind, align) = kind_of_allocation(row);
                let failed = kind + (to::OP_MALLOC_FAILED - to::OP_MALLOC);
                self.call_alone(row, thread, pack(row.size, align, failed, 0))
            }
            op::REALLOC_TO => self.realloc(row, thread),
            op::FREE..=op::FREE_ALIGNED_SIZED if row.alloc >= 0 => {
                self.odd.frees_without_stack +=
                    u64::from(row.stack < 0 && self.selection.has_sure_ends());
                self.free(row, thread, row.alloc, kind_of_free(row))
            }
            op::FREE..=op::FREE_ALIGNED_SIZED => self.free_of_no_block(row, thread),
            _ => {
                self.odd.traced += 1;
                Ok(())
            }
        }
    }

    /// Returns the gap before a call. Adds pauses first if the gap is too long for an op.
    fn begin_call(&mut self, row: &Row, thread: usize) -> u32 {
        let is_free = row.op >= op::FREE;
        let dur = i64::from(row.dur_ns.max(0));
        let begin = if is_free { row.t_ns } else { row.t_ns.saturating_sub(dur) };
        let state = self.threads.state(thread);
        let mut gap = (begin.saturating_sub(state.end_of_call).max(0) as u64).min(GAP_MAX);
        state.end_of_call = if is_free { row.t_ns.saturating_add(dur) } else { row.t_ns };
        while gap > u64::from(u32::MAX) {
            let pause = (gap - u64::from(u32::MAX)).min(super::format::SIZE_MAX);
            self.emitter.push(thread, Op::new(to::PAUSE, pause, 0));
            gap -= pause;
        }
        gap as u32
    }

    /// Adds a call that concerns no block.
    fn call_alone(&mut self, row: &Row, thread: usize, what: u64) -> Result<()> {
        let gap = self.begin_call(row, thread);
        self.emitter.call(thread, Op { what, slot: 0, gap });
        Ok(())
    }

    fn allocate(&mut self, row: &Row, thread: usize, kind: u8, align: u8) -> Result<()> {
        let gap = self.begin_call(row, thread);
        let rule = self.selection.rule(row.stack);
        let instance = match rule {
            NO_RULE => NO_INSTANCE,
            rule => self.regions.enter(thread, rule, &mut self.emitter)?,
        };
        self.regions.resume(instance, &mut self.emitter, &mut self.slots);
        let target = self.regions.target(instance);
        let taken = self.slots.take(thread, true).ok_or_else(too_many_blocks)?;
        if let Some((other, position)) = taken.after {
            self.emitter.wait_for(thread, other, position);
        }
        let (slot, what) = (taken.number, pack(row.size, align, kind, target));
        let at = self.emitter.call(thread, Op { what, slot, gap });
        self.regions.allocate(instance, row.size);
        self.used(instance, target, thread, at);
        let (writer, size, node) = (thread as u32, row.size, row.stack);
        self.odd.cut_sizes += u64::from(row.flags & flag::SIZE_CUT != 0);
        self.insert(row.alloc, Block { size, at, writer, slot, instance, node, align })
    }

    fn used(&mut self, instance: u32, target: u16, thread: usize, at: u64) {
        if target != 0 {
            self.regions.used(instance, thread, at);
        }
    }

    fn insert(&mut self, alloc: i64, block: Block) -> Result<()> {
        self.live_bytes += block.size;
        self.lead.allocated(block.size, self.sums.live_peak, &self.emitter);
        if self.live.insert(alloc as u64, block).is_some() {
            return Err(damaged(alloc));
        }
        self.sums.live_peak = self.sums.live_peak.max(self.live_bytes);
        self.sums.blocks_peak = self.sums.blocks_peak.max(self.live.len() as u64);
        Ok(())
    }

    fn remove(&mut self, alloc: i64) -> Option<Block> {
        let block = self.live.remove(&(alloc as u64));
        self.live_bytes -= block.as_ref().map_or(0, |block| block.size);
        self.odd.unknown_blocks += u64::from(block.is_none());
        block
    }

    fn free(&mut self, row: &Row, thread: usize, alloc: i64, kind: u8) -> Result<()> {
        let Some(block) = self.remove(alloc) else { return Ok(()) };
        let (instance, size) = (block.instance, block.size);
        let has_ended = self.regions.has_ended(instance);
        if has_ended {
            self.escape(&block, Some(thread));
        }
        if self.regions.winks_out(instance) {
            self.wink_out(thread, &block, kind, has_ended);
            return Ok(());
        }
        let gap = self.begin_call(row, thread);
        self.emitter.wait_for(thread, block.writer as usize, block.at);
        let target = self.regions.target(instance);
        let what = pack(size, block.align, kind, target);
        let at = self.emitter.call(thread, Op { what, slot: block.slot, gap });
        self.slots.give(thread, block.slot, at);
        self.used(instance, target, thread, at);
        self.regions.count_free(instance, true);
        self.regions.freed(instance, thread, size, &mut self.emitter);
        Ok(())
    }

    /// Compiles a free of a block whose instance ends by wink-out, or has already ended.
    fn wink_out(&mut self, thread: usize, block: &Block, kind: u8, has_ended: bool) {
        let (instance, writer, slot) = (block.instance, block.writer as usize, block.slot);
        if has_ended {
            self.slots.give(writer, slot, block.at);
            self.regions.count_free(instance, false);
        } else {
            let what = pack(block.size, block.align, kind, self.regions.target(instance));
            let op = Op { what, slot, gap: 0 };
            self.regions.hold(instance, Held { by: thread, writer, at: block.at, op });
        }
        self.regions.freed(instance, thread, block.size, &mut self.emitter);
    }

    /// Compiles a free of null, which has no address, or of a block that was never seen.
    fn free_of_no_block(&mut self, row: &Row, thread: usize) -> Result<()> {
        if !row.has_addr {
            return self.call_alone(row, thread, pack(0, 0, to::OP_FREE_NULL, 0));
        }
        self.odd.unknown_blocks += 1;
        Ok(())
    }

    fn escape(&mut self, block: &Block, by: Option<usize>) {
        let stacks = &self.stacks;
        let function = || {
            let functions = stacks.as_ref().map(|stacks| stacks.functions(block.node));
            let functions = functions.unwrap_or_default();
            let own = functions.iter().find(|f| !crate::names::is_wrapper(f.function));
            own.or(functions.first()).map_or("?".to_string(), |f| f.function.to_string())
        };
        self.regions.escape(block.instance, by, function);
    }

    fn realloc(&mut self, row: &Row, thread: usize) -> Result<()> {
        match (row.old_alloc, row.alloc) {
            (old, new) if old >= 0 && new >= 0 => self.resize(row, thread),
            (old, _) if old >= 0 && row.size == 0 => self.free(row, thread, old, to::OP_FREE),
            (old, _) if old >= 0 => self.fail_to_resize(row, thread),
            (old, new) if new >= 0 => {
                self.odd.unknown_blocks += u64::from(old != NULL);
                self.allocate(row, thread, to::OP_REALLOC, NATURAL_ALIGN)
            }
            (NULL, _) => {
                let what = pack(row.size, NATURAL_ALIGN, to::OP_MALLOC_FAILED, 0);
                self.call_alone(row, thread, what)
            }
            _ => {
                self.odd.unknown_blocks += 1;
                Ok(())
            }
        }
    }

    /// Compiles a realloc of a known block that succeeded.
    fn resize(&mut self, row: &Row, thread: usize) -> Result<()> {
        let Some(block) = self.remove(row.old_alloc) else {
            return self.allocate(row, thread, to::OP_REALLOC, NATURAL_ALIGN);
        };
        if self.regions.has_ended(block.instance) && self.regions.winks_out(block.instance) {
            return self.revive(row, thread, block);
        }
        // An op stream has no realloc to size 0: glibc would free the block.
        let size = row.size.max(1);
        self.regions.resume(block.instance, &mut self.emitter, &mut self.slots);
        let op = self.realloc_ops(row, thread, &block, to::OP_REALLOC, size);
        let at = self.emitter.call(thread, op);
        let (instance, writer) = (block.instance, thread as u32);
        self.used(instance, self.regions.target(instance), thread, at);
        self.regions.resize(instance, block.size, size);
        let block = Block { size, at, writer, align: NATURAL_ALIGN, ..block };
        self.insert(row.alloc, block)
    }

    /// Compiles a realloc that failed. This thread becomes the writer of the slot, because the
    /// realloc may succeed in the replay.
    fn fail_to_resize(&mut self, row: &Row, thread: usize) -> Result<()> {
        let Some(block) = self.remove(row.old_alloc) else { return Ok(()) };
        let instance = block.instance;
        if self.regions.has_ended(instance) && self.regions.winks_out(instance) {
            return self.insert(row.old_alloc, block);
        }
        let op = self.realloc_ops(row, thread, &block, to::OP_REALLOC_FAILED, row.size);
        let at = self.emitter.call(thread, op);
        self.used(instance, self.regions.target(instance), thread, at);
        self.insert(row.old_alloc, Block { at, writer: thread as u32, ..block })
    }

    /// Adds the `realloc_from` of a realloc, and returns the second op, which has the kind `kind`.
    fn realloc_ops(&mut self, row: &Row, thread: usize, block: &Block, kind: u8, size: u64) -> Op {
        let gap = self.begin_call(row, thread);
        self.emitter.wait_for(thread, block.writer as usize, block.at);
        let target = self.regions.target(block.instance);
        let slot = block.slot;
        let what = pack(block.size, block.align, to::REALLOC_FROM, target);
        self.emitter.push(thread, Op { what, slot, gap: 0 });
        Op { what: pack(size, NATURAL_ALIGN, kind, target), slot, gap }
    }

    /// Compiles a realloc of a block that wink-out has already freed: the malloc of the process
    /// allocates a new block. Such an op stream is only kept with `Options::allow_escapes`.
    fn revive(&mut self, row: &Row, thread: usize, block: Block) -> Result<()> {
        self.escape(&block, Some(thread));
        let gap = self.begin_call(row, thread);
        self.emitter.wait_for(thread, block.writer as usize, block.at);
        let size = row.size.max(1);
        let what = pack(size, NATURAL_ALIGN, to::OP_REALLOC, 0);
        let at = self.emitter.call(thread, Op { what, slot: block.slot, gap });
        self.regions.count_free(block.instance, false);
        self.regions.freed(block.instance, thread, block.size, &mut self.emitter);
        let (writer, instance) = (thread as u32, NO_INSTANCE);
        let align = NATURAL_ALIGN;
        self.insert(row.alloc, Block { size, at, writer, instance, align, ..block })
    }

    /// Ends all threads.
    fn finish(&mut self) {
        self.count_left_blocks();
        self.regions.finish(&mut self.emitter);
        for thread in 0..self.emitter.streams.threads() {
            self.emitter.push(thread, Op::new(to::END, 0, 0));
        }
    }

    /// Counts the blocks of regions that are in use at the end of the recording: they have outlived
    /// their region.
    fn count_left_blocks(&mut self) {
        let of_region = |(_, block): &(&u64, &Block)| self.regions.is_of_region(block.instance);
        let mut left: Vec<u64> = self.live.iter().filter(of_region).map(|(&id, _)| id).collect();
        left.sort_unstable();
        for id in left {
            let block = self.live.remove(&id).expect("a block in use");
            self.escape(&block, None);
        }
    }

    /// Counts what the plan did, and fails if blocks would be used after wink-out.
    fn check_rules(&mut self, rules: &[RuleResult]) -> Result<()> {
        for ((result, rule), number) in rules.iter().zip(&self.plan.rules).zip(1..) {
            self.odd.unfinished += result.unfinished;
            self.odd.idle_rules += u64::from(result.blocks == 0);
            if !rule.strategy.winks_out() || result.escapes == 0 {
                continue;
            }
            if !self.options.allow_escapes {
                return Err(escapes(number, rule, result));
            }
            self.odd.escapes += result.escapes;
        }
        Ok(())
    }

    /// Writes the file.
    fn write(mut self, manifest: &Manifest, file: NamedTempFile, path: &Path) -> Result<Compiled> {
        let regions = std::mem::replace(&mut self.regions, Regions::new(&Plan::default()));
        let (targets, rules) = regions.into_results();
        self.check_rules(&rules)?;
        let sums =
            Sums { slots: self.slots.count().into(), calls: self.emitter.calls, ..self.sums };
        let streams = &mut self.emitter.streams;
        let (checksum, ops) = file
            .as_file()
            .try_clone()
            .and_then(|to| streams.write(to, &targets, &sums))
            .and_then(|written| file.persist(path).map(|_| written).map_err(|error| error.error))
            .map_err(|error| refused(path, &error))?;
        Ok(Compiled {
            path: path.to_path_buf(),
            process: self.process,
            threads: streams.threads() as u32,
            ops,
            calls: sums.calls,
            slots: sums.slots,
            targets: targets.len() as u32,
            live_peak: sums.live_peak,
            blocks_peak: sums.blocks_peak,
            virtual_calls: rules.iter().map(|rule| rule.virtual_calls).sum(),
            edges: self.emitter.edges,
            rules,
            validity: validity::of(manifest, &self.odd),
            checksum,
        })
    }
}

/// The kind of op of an allocation, and its alignment as an exponent.
fn kind_of_allocation(row: &Row) -> (u8, u8) {
    match row.op {
        op::MALLOC => (to::OP_MALLOC, NATURAL_ALIGN),
        op::CALLOC => (to::OP_CALLOC, NATURAL_ALIGN),
        _ if row.align == 0 => (to::OP_ALIGNED, NATURAL_ALIGN),
        _ => (to::OP_ALIGNED, row.align),
    }
}

/// The kind of op of a free.
fn kind_of_free(row: &Row) -> u8 {
    let has = |flag: u16| row.flags & flag != 0;
    match row.op {
        op::FREE_ALIGNED_SIZED => to::OP_FREE_ALIGNED,
        _ if has(flag::SIZED) && has(flag::ALIGNED) => to::OP_FREE_ALIGNED,
        op::FREE_SIZED => to::OP_FREE_SIZED,
        _ if has(flag::SIZED) => to::OP_FREE_SIZED,
        _ => to::OP_FREE,
    }
}

/// The error of a rule that would free blocks that are used afterwards.
fn escapes(number: usize, rule: &Rule, result: &RuleResult) -> Error {
    let from = result.escape_from.as_deref().unwrap_or("?");
    let foreign = match result.foreign_escapes {
        0 => String::new(),
        n => format!(", {n} freed by another thread"),
    };
    let unfinished = match result.unfinished {
        0 => String::new(),
        1 => " (1 of its instances never ends)".to_string(),
        n => format!(" ({n} of its instances never end)"),
    };
    let (blocks, are) = if result.escapes == 1 { ("block", "is") } else { ("blocks", "are") };
    let normal = Strategy::new(rule.strategy.number() - 1).map_or(String::new(), |s| s.to_string());
    Error::new(
        ErrorKind::Refused,
        format!(
            "rule {number} of the plan winks out {} {} of {} that {} used afterwards{foreign}, for \
             example of {from}{unfinished}",
            result.escapes, blocks, rule.scope, are
        ),
        "nothing was replayed",
        format!("take {normal}, which frees each block, or a larger region; --unsafe replays it"),
    )
}

fn too_many_blocks() -> Error {
    Error::new(
        ErrorKind::Refused,
        "the trace has more than 2^32 blocks in use at once",
        "nothing was replayed",
        "record a part of the run: mallard record --window FROM..TO -o NAME -- PROGRAM",
    )
}
