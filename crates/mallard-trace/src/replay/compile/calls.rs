//! Converts the calls of a trace to ops.

use super::super::format::{op as to, pack, Op, SIZE_MAX};
use super::super::regions::{Held, NO_INSTANCE};
use super::super::selection::NO_RULE;
use super::refusals::{damaged, too_many_blocks};
use super::{Block, Compiler};
use crate::error::Result;
use crate::format::{flag, is_family, op};
use crate::lifetimes::{join, Left, ThreadRow, Visitor};
use crate::rows::{Row, NULL};

/// log2 of the alignment of blocks from malloc.
const NATURAL_ALIGN: u8 = 4;

/// The maximum gap between two calls, in nanoseconds (19 hours). A longer gap is shortened to this
/// value.
const GAP_MAX: u64 = 1 << 46;

impl Visitor<ThreadRow<'_>> for Compiler<'_> {
    type Done = Result<()>;

    #[inline]
    fn begin(&mut self, (row, thread): ThreadRow) -> Result<()> {
        if row.op == op::REALLOC_TO {
            self.odd.unknown_blocks += u64::from(row.old_alloc != NULL);
        }
        let (kind, align) = kind_of_allocation(row);
        self.allocate(row, thread, kind, align)
    }

    /// Compiles a realloc of a known block that succeeded.
    fn resize(&mut self, (row, thread): ThreadRow) -> Result<()> {
        let Some(block) = self.remove(row.old_alloc) else {
            return self.allocate(row, thread, to::OP_REALLOC, NATURAL_ALIGN);
        };
        if self.regions.has_ended(block.instance) && self.regions.winks_out(block.instance) {
            return self.revive(row, thread, block);
        }
        // An op stream must not contain a realloc to size 0, because glibc would free the block and
        // not resize it.
        let size = row.size.max(1);
        self.regions.resume(block.instance, &mut self.emitter, &mut self.slots);
        let op = self.realloc_ops(row, thread, &block, to::OP_REALLOC, size);
        let at = self.emitter.call(thread, op);
        let (instance, writer) = (block.instance, thread as u32);
        self.used(instance, self.regions.target(instance), thread, at);
        self.regions.resize(instance, block.size, size);
        let block = Block { size, at, writer, align: NATURAL_ALIGN, is_new: false, ..block };
        self.insert(row.alloc, block)
    }

    #[inline]
    fn end(&mut self, (row, thread): ThreadRow) -> Result<()> {
        let lacks_stack = row.op != op::REALLOC_TO && row.stack < 0;
        self.odd.frees_without_stack += u64::from(lacks_stack && self.selection.has_sure_ends());
        self.free(row, thread, row.old_block())
    }

    fn leave(&mut self, (row, thread): ThreadRow, why: Left) -> Result<()> {
        match why {
            Left::Failed => {
                let (kind, align) = kind_of_allocation(row);
                let failed = match kind {
                    to::OP_CALLOC => to::OP_CALLOC_FAILED,
                    to::OP_ALIGNED | to::OP_NEW_ALIGNED => to::OP_ALIGNED_FAILED,
                    _ => to::OP_MALLOC_FAILED,
                };
                self.call_alone(row, thread, pack(row.size, align, failed, 0))
            }
            Left::ReallocFailed if row.old_alloc >= 0 => self.fail_to_resize(row, thread),
            Left::ReallocFailed if row.old_alloc == NULL => {
                let what = pack(row.size, NATURAL_ALIGN, to::OP_MALLOC_FAILED, 0);
                self.call_alone(row, thread, what)
            }
            Left::NoBlock if !row.has_addr => {
                self.call_alone(row, thread, pack(0, 0, to::OP_FREE_NULL, 0))
            }
            Left::ReallocFailed | Left::NoBlock => {
                self.odd.unknown_blocks += 1;
                Ok(())
            }
        }
    }

    /// Counts a reset. The op stream leaves resets out, because it has only calls of malloc and
    /// related functions.
    fn reset(&mut self, _: ThreadRow) -> Result<()> {
        self.odd.traced += 1;
        Ok(())
    }

    fn pass(&mut self) -> Result<()> {
        Ok(())
    }
}

impl Compiler<'_> {
    /// Compiles the call of an event.
    pub(super) fn call(&mut self, row: &Row, thread: usize) -> Result<()> {
        if !is_family(row.op) {
            self.odd.traced += 1;
            return Ok(());
        }
        join(self, (row, thread))
    }

    /// Returns the gap before a call. If the gap is too long for one op, adds pauses before the
    /// call.
    fn begin_call(&mut self, row: &Row, thread: usize) -> u32 {
        let is_free = row.op >= op::FREE;
        let dur = i64::from(row.dur_ns.max(0));
        let begin = if is_free { row.t_ns } else { row.t_ns.saturating_sub(dur) };
        let state = self.threads.state(thread);
        let mut gap = (begin.saturating_sub(state.end_of_call).max(0) as u64).min(GAP_MAX);
        state.end_of_call = if is_free { row.t_ns.saturating_add(dur) } else { row.t_ns };
        while gap > u64::from(u32::MAX) {
            let pause = (gap - u64::from(u32::MAX)).min(SIZE_MAX);
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
        let rule = self.rule_of(row.stack, thread);
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
        let is_new = matches!(kind, to::OP_NEW | to::OP_NEW_ALIGNED);
        self.insert(row.alloc, Block { size, at, writer, slot, instance, node, align, is_new })
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

    fn free(&mut self, row: &Row, thread: usize, alloc: i64) -> Result<()> {
        let Some(block) = self.remove(alloc) else { return Ok(()) };
        let kind = kind_of_free(row, block.is_new);
        let (instance, size) = (block.instance, block.size);
        if block.writer != thread as u32 {
            self.lead.crossed(size, self.sums.live_peak, &self.emitter);
        }
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

    /// Handles a free in an instance with wink-out. Delays the free, because only further
    /// allocations make it necessary. Drops the free if the instance has ended.
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

    /// Counts a block that has outlived its instance.
    pub(super) fn escape(&mut self, block: &Block, by: Option<usize>) {
        let stacks = &self.stacks;
        let function = || {
            let function = stacks.as_ref().and_then(|of| of.allocating_function(block.node));
            function.unwrap_or("?").to_string()
        };
        self.regions.escape(block.instance, by, function);
    }

    /// Compiles a failed realloc. This thread counts as the last writer of the slot, because the
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

    /// Adds the first op of a realloc, `realloc_from`. Returns the second op, whose kind is `kind`.
    fn realloc_ops(&mut self, row: &Row, thread: usize, block: &Block, kind: u8, size: u64) -> Op {
        let gap = self.begin_call(row, thread);
        self.emitter.wait_for(thread, block.writer as usize, block.at);
        let target = self.regions.target(block.instance);
        let slot = block.slot;
        let what = pack(block.size, block.align, to::REALLOC_FROM, target);
        self.emitter.push(thread, Op { what, slot, gap: 0 });
        Op { what: pack(size, NATURAL_ALIGN, kind, target), slot, gap }
    }

    /// Compiles a realloc of a block that wink-out has already freed, by letting the malloc of the
    /// process allocate a new block. Such an op stream is only written if `Options::allow_escapes`
    /// is set.
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
        let (align, is_new) = (NATURAL_ALIGN, false);
        self.insert(row.alloc, Block { size, at, writer, instance, align, is_new, ..block })
    }
}

/// Returns the kind of op for an allocation, and log2 of its alignment.
fn kind_of_allocation(row: &Row) -> (u8, u8) {
    let align = if row.align == 0 { NATURAL_ALIGN } else { row.align };
    let has = |flag: u16| row.flags & flag != 0;
    match row.op {
        op::REALLOC_TO => (to::OP_REALLOC, NATURAL_ALIGN),
        _ if has(flag::FROM_NEW) && has(flag::ALIGNED) => (to::OP_NEW_ALIGNED, align),
        _ if has(flag::FROM_NEW) => (to::OP_NEW, NATURAL_ALIGN),
        op::MALLOC => (to::OP_MALLOC, NATURAL_ALIGN),
        op::CALLOC => (to::OP_CALLOC, NATURAL_ALIGN),
        _ => (to::OP_ALIGNED, align),
    }
}

/// Returns the kind of op for a free. A block from operator new is freed by a form of operator
/// delete, and other blocks by `free`, because some mallocs abort the program if the two are mixed.
fn kind_of_free(row: &Row, is_new: bool) -> u8 {
    let has = |flag: u16| row.op != op::REALLOC_TO && row.flags & flag != 0;
    match (has(flag::SIZED), has(flag::ALIGNED)) {
        _ if !is_new => to::OP_FREE,
        (true, true) => to::OP_FREE_ALIGNED,
        (true, false) => to::OP_FREE_SIZED,
        (false, true) => to::OP_DELETE_ALIGNED,
        (false, false) => to::OP_DELETE,
    }
}
