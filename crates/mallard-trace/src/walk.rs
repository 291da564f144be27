//! Tracks the blocks of a program through the table `events`, in time order.
//!
//! In the table, the row of a free has the ID of the block, but neither the size nor the call stack
//! of the block. This module joins allocations and frees, so that a [`Visitor`] gets all data of a
//! block when the block is allocated, resized and freed.
//!
//! Uses memory for some hundred thousand rows, and 49 to 98 bytes for each block in use. If more
//! than [`Limits::blocks`] blocks are in use, the walk tracks only some of the small blocks. Each
//! tracked small block then stands for several blocks ([`Walked::one_in`]).

mod live;
mod owners;

pub use live::{Block, Live};

use crate::error::Result;
use crate::format::op;
use crate::lifetimes::{self, join, Left, ThreadRow};
use crate::rows::{read_ahead, Row, Wanted};
use crate::tables::schema::EVENTS;
use crate::trace::Trace;
use owners::Owners;

/// The reason why a block is no longer in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// A thread freed the block. The thread has the same index as in [`Block::thread`].
    Call(u32),
    /// The process of the block exited.
    ProcessEnd,
    /// The address was allocated again, because the free of the block is missing in the trace.
    Reuse,
}

/// Handles what happens to the blocks of a program, in time order.
pub trait Visitor {
    /// Called before an event at `t_ns`, with the blocks that are in use until this event. The last
    /// call follows all events, and its `t_ns` is `i64::MAX`.
    fn before(&mut self, t_ns: i64, live: &Live);

    /// Called when the allocator has returned a new block.
    fn begin(&mut self, block: &Block);

    /// Called when a realloc has changed the size of a block from `from` to `block.size` without
    /// moving it.
    fn resize(&mut self, t_ns: i64, block: &Block, from: u64);

    /// Called when a block is no longer in use.
    fn end(&mut self, t_ns: i64, block: &Block, cause: Cause);

    /// Called when the walk has begun to track fewer blocks. The weights of blocks have changed, so
    /// sums over the blocks in use must be recomputed.
    fn recount(&mut self, live: &Live);
}

/// Limits of a walk.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The maximum number of blocks in use that are tracked.
    pub blocks: usize,
}

impl Default for Limits {
    /// Returns a limit with which the table of blocks uses at most 617 MiB: 411 MiB, and half as
    /// much again while the table grows.
    fn default() -> Limits {
        Limits { blocks: 7_000_000 }
    }
}

/// The results of a walk.
pub struct Walked {
    /// The blocks still in use after the last event. Blocks of processes that have exited are not
    /// included.
    pub live: Live,
    /// The sampling rate of small blocks: one in this many was tracked.
    pub one_in: u32,
    /// The time of the last event.
    pub last_ns: i64,
}

/// Visits all events of a trace.
pub fn walk(trace: &Trace, limits: Limits, visitor: &mut impl Visitor) -> Result<Walked> {
    let events = trace.table(&EVENTS)?;
    let counts = &trace.manifest().counts;
    let mut walker = Walker {
        visitor,
        live: Live::new(
            trace.manifest().stream.sample_bytes,
            limits.blocks,
            counts.missed_frees > 0,
        ),
        owners: Owners::read(trace)?,
        last_ns: 0,
    };
    let wanted = Wanted { addr: true, stack: true, ..Wanted::default() };
    read_ahead(&events, wanted, |rows| {
        (0..rows.len()).for_each(|row| walker.visit(&rows.row(row)));
        Ok(())
    })?;
    walker.visitor.before(i64::MAX, &walker.live);
    Ok(Walked { one_in: walker.live.one_in(), live: walker.live, last_ns: walker.last_ns })
}

struct Walker<'a, V> {
    visitor: &'a mut V,
    live: Live,
    owners: Owners,
    last_ns: i64,
}

impl<V: Visitor> Walker<'_, V> {
    #[inline]
    fn visit(&mut self, row: &Row) {
        if self.owners.has_end_before(row.t_ns) {
            self.end_processes(row.t_ns);
        }
        self.last_ns = row.t_ns;
        self.visitor.before(row.t_ns, &self.live);
        let thread = self.owners.thread(row.tid);
        join(self, (row, thread));
    }

    /// Removes the blocks of processes that exited before `now`.
    #[cold]
    fn end_processes(&mut self, now: i64) {
        while let Some((t_ns, process)) = self.owners.next_end(now) {
            self.visitor.before(t_ns, &self.live);
            let owners = &self.owners;
            let is_of = |block: &Block| !block.is_traced && owners.process(block.thread) == process;
            let ended = self.live.take_all(is_of);
            ended.iter().for_each(|block| self.visitor.end(t_ns, block, Cause::ProcessEnd));
        }
    }
}

impl<V: Visitor> lifetimes::Visitor<ThreadRow<'_>> for Walker<'_, V> {
    type Done = ();

    #[inline]
    fn begin(&mut self, (row, thread): ThreadRow) {
        if !self.live.follows(row.alloc, row.size) {
            return;
        }
        let is_traced = row.op == op::ALLOCATE;
        let (node, thread) = (row.stack.max(0) as u32, thread as u32);
        let weight = self.live.weight(row.size);
        let (t0, addr, size) = (row.t_ns, row.addr, row.size);
        let block = Block { t0, addr, size, node, thread, weight, is_traced };
        let owner = if is_traced { node } else { self.owners.process(thread) };
        if let Some(old) = self.live.insert(row.alloc, block, owner) {
            self.visitor.end(row.t_ns, &old, Cause::Reuse);
        }
        self.visitor.begin(&block);
        if self.live.is_full() {
            self.live.thin();
            self.visitor.recount(&self.live);
        }
    }

    fn resize(&mut self, (row, thread): ThreadRow) {
        if row.alloc != row.old_alloc {
            self.end((row, thread));
            return self.begin((row, thread));
        }
        if let Some((block, from)) = self.live.resize(row.alloc, row.size) {
            self.visitor.resize(row.t_ns, &block, from);
        }
    }

    #[inline]
    fn end(&mut self, (row, thread): ThreadRow) {
        if let Some(block) = self.live.remove(row.old_block()) {
            self.visitor.end(row.t_ns, &block, Cause::Call(thread as u32));
        }
    }

    #[inline]
    fn leave(&mut self, _: ThreadRow, _: Left) {}

    /// Removes the blocks of a traced allocator.
    fn reset(&mut self, (row, thread): ThreadRow) {
        let cause = Cause::Call(thread as u32);
        let node = row.stack.max(0) as u32;
        let ended = self.live.take_all(|block| block.is_traced && block.node == node);
        ended.iter().for_each(|block| self.visitor.end(row.t_ns, block, cause));
    }

    #[inline]
    fn pass(&mut self) {}
}
