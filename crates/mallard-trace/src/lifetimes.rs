//! Joins allocations with frees: finds out which block an event allocates, resizes or frees.
//!
//! The ledger joins the calls of an event stream by block addresses, and assigns IDs to the blocks.
//! Readers of the table `events` join its rows by these IDs. Each reader has its own table of
//! blocks, because it stores different data about a block.

use crate::format::Kind;
use crate::rows::Row;

/// An event, with the data that [`join`] needs.
pub(crate) trait Event: Copy {
    /// Returns the kind of the event.
    fn kind(&self) -> Kind;
    /// Returns whether the block that a free or a realloc refers to is known.
    fn has_old(&self) -> bool;
    /// Returns whether the call has returned a block.
    fn has_new(&self) -> bool;
    /// Returns the size that the call requested.
    fn size(&self) -> u64;
}

/// Handles the effects of events on the blocks of a program. [`join`] calls one of the functions
/// for each event.
pub(crate) trait Visitor<E: Event> {
    /// The type that the functions return for each event.
    type Done;

    /// Handles a call that has returned a new block.
    fn begin(&mut self, event: E) -> Self::Done;

    /// Handles a realloc that has changed the size of a block, and perhaps its address.
    fn resize(&mut self, event: E) -> Self::Done;

    /// Handles a call that has freed a known block: a free, or a realloc to size 0.
    fn end(&mut self, event: E) -> Self::Done;

    /// Handles a call that has neither returned a block nor freed a known block.
    fn leave(&mut self, event: E, why: Left) -> Self::Done;

    /// Handles a reset: a traced allocator has freed all its blocks.
    fn reset(&mut self, event: E) -> Self::Done;

    /// Handles an event that concerns no block.
    fn pass(&mut self) -> Self::Done;
}

/// The reason why a call has no effect on any block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    /// An allocation failed.
    Failed,
    /// A realloc failed. The block that it was to resize, if any, stays in use.
    ReallocFailed,
    /// A free got null, or the address of an unknown block.
    NoBlock,
}

/// Calls the function of `visitor` that handles what `event` does.
#[inline(always)] // Each visitor calls this once for each event.
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
        // Only the second record of a realloc counts. The module `instances` handles the marks of
        // regions.
        ReallocFrom | RegionBegin | RegionEnd => visitor.pass(),
        // The table `events` has no rows of these kinds.
        UnknownCall | Module | Process | ProcessEnd | ThreadStart | ThreadEnd | Memory | Cpu
        | Checkpoint | RegionName | Thread | Name | Lost | End | Unknown => visitor.pass(),
    }
}

/// A row of the table `events`, and the index that the visitor has assigned to the event's thread.
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
