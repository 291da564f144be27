//! Joins allocations with frees: says which block begins, is resized or ends at an event.
//!
//! The ledger joins the calls of a stream by the addresses of the blocks, and numbers the blocks. All
//! later readers join the rows of the table `events` by these numbers. Each of them remembers something
//! else of a block, and keeps the blocks in a table of its own.

use crate::format::Kind;
use crate::rows::Row;

/// An event, as far as the join needs to know it.
pub(crate) trait Event: Copy {
    /// What the event is about.
    fn kind(&self) -> Kind;
    /// Whether the block that a free or a realloc names is known.
    fn has_old(&self) -> bool;
    /// Whether the call has returned a block.
    fn has_new(&self) -> bool;
    /// The size that the call requested.
    fn size(&self) -> u64;
}

/// Receives what events do to the blocks of a program.
pub(crate) trait Visitor<E: Event> {
    /// What the visitor returns after each event.
    type Done;

    /// The call has returned a new block.
    fn begin(&mut self, event: E) -> Self::Done;

    /// A realloc has changed the size of a block, and perhaps its address.
    fn resize(&mut self, event: E) -> Self::Done;

    /// The call has ended a block: a free, or a realloc to size 0.
    fn end(&mut self, event: E) -> Self::Done;

    /// The call has neither returned a block nor ended one that is known.
    fn leave(&mut self, event: E, why: Left) -> Self::Done;

    /// A traced allocator has ended all its blocks.
    fn reset(&mut self, event: E) -> Self::Done;

    /// The event concerns no block.
    fn pass(&mut self) -> Self::Done;
}

/// Why a call leaves all blocks as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    /// An allocation failed.
    Failed,
    /// A realloc failed. The block that it names, if any, stays in use.
    ReallocFailed,
    /// A free named null, or a block that is not known.
    NoBlock,
}

/// Passes what an event does to `visitor`.
#[inline(always)] // each visitor calls this once for each event
pub(crate) fn join<E: Event, V: Visitor<E>>(visitor: &mut V, event: E) -> V::Done {
    use Kind::*;
    match event.kind() {
        Allocation | TracedAllocation if event.has_new() => visitor.begin(event),
        Allocation | TracedAllocation => visitor.leave(event, Left::Failed),
        Free | TracedFree if event.has_old() => visitor.end(event),
        Free | TracedFree => visitor.leave(event, Left::NoBlock),
        ReallocTo => match (event.has_old(), event.has_new()) {
            (true, true) => visitor.resize(event),
            (false, true) => visitor.begin(event),
            (true, false) if event.size() == 0 => visitor.end(event),
            (_, false) => visitor.leave(event, Left::ReallocFailed),
        },
        TracedReset => visitor.reset(event),
        // A realloc counts when it is done. Marks belong to regions: see `instances`.
        ReallocFrom | RegionBegin | RegionEnd => visitor.pass(),
        // The table `events` has no rows of these kinds.
        UnknownCall | Module | Process | ProcessEnd | ThreadStart | ThreadEnd | Memory | Cpu
        | Checkpoint | RegionName | Thread | Name | Lost | End | Unknown => visitor.pass(),
    }
}

/// A row of the table `events`, and the thread of the event: an index that the visitor has chosen.
pub(crate) type ThreadRow<'a> = (&'a Row, usize);

impl Event for ThreadRow<'_> {
    #[inline]
    fn kind(&self) -> Kind {
        Kind::of(self.0.op)
    }

    #[inline]
    fn has_old(&self) -> bool {
        self.0.old_block() >= 0
    }

    #[inline]
    fn has_new(&self) -> bool {
        self.0.alloc >= 0
    }

    #[inline]
    fn size(&self) -> u64 {
        self.0.size
    }
}
