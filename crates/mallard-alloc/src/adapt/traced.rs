//! An allocator that tells of each call.

use crate::adapt::prelude::*;

/// What was asked of an allocator, and what it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A block, or a chunk, was given: told after the call.
    Allocate {
        /// Its address.
        block: *const u8,
        /// What was asked, of a source what it gave.
        layout: Layout,
    },
    /// Nothing was given: told after the call.
    Refuse {
        /// What was asked.
        layout: Layout,
    },
    /// Told before the call, so that the same address is never given twice without this
    /// between.
    Deallocate {
        /// Its address.
        block: *const u8,
        /// As it was given.
        layout: Layout,
    },
    /// A block has grown or shrunk where it is.
    Expand {
        /// Its address.
        block: *const u8,
        /// What it had.
        from: Layout,
        /// What it has.
        to: Layout,
    },
    /// All blocks go: told before a `reset` or `release`.
    Reset,
}

/// Any allocator or source, and an event for each call.
///
/// ```
/// use mallard::{BlockAllocator, Event, Multipool, Traced};
/// use std::alloc::Layout;
/// let seen = std::cell::RefCell::new(Vec::new());
/// let memory = Traced::new(Multipool::new(), |event: &Event| seen.borrow_mut().push(*event));
/// let block = memory.allocate(Layout::new::<u64>());
/// assert_eq!(
///     seen.borrow()[0],
///     Event::Allocate { block: block.as_ptr(), layout: Layout::new::<u64>() }
/// );
/// ```
///
/// The callable does not call the allocator that it hears about. Around a source it hears of
/// growth, around an allocator of every block. Threads: as both allow.
#[derive(Debug)]
pub struct Traced<A, F> {
    inner: A,
    tell: F,
}

adaptor!(Traced [F: Tell]);

/// Is told of each [`Event`]. Any `Fn(&Event)`.
pub trait Tell {
    /// Must not call the allocator that it is told about.
    fn tell(&self, event: &Event);
}

impl<F: Fn(&Event)> Tell for F {
    fn tell(&self, event: &Event) {
        self(event);
    }
}

impl<A, F> Traced<A, F> {
    /// Tells `tell` of what goes through to `inner`.
    pub const fn new(inner: A, tell: F) -> Self {
        Self { inner, tell }
    }
}

impl<A, F: Tell> Traced<A, F> {
    #[inline]
    fn take_from<S: Source>(&self, below: &S, layout: Layout) -> Option<Chunk> {
        let taken = below.try_take(layout);
        self.tell.tell(&match &taken {
            Some(c) => Event::Allocate { block: c.data.as_ptr(), layout: c.layout },
            None => Event::Refuse { layout },
        });
        taken
    }

    /// # Safety
    /// As for `Source::give`.
    #[inline]
    unsafe fn give_to<S: Source>(&self, below: &S, chunk: Chunk) {
        self.tell.tell(&Event::Deallocate { block: chunk.data.as_ptr(), layout: chunk.layout });
        // SAFETY: passed on as it was given.
        unsafe { below.give(chunk) }
    }

    #[inline]
    fn expand(&self, Change { block, from, to }: Change, below: impl FnOnce() -> bool) -> bool {
        let done = below();
        if done {
            self.tell.tell(&Event::Expand { block: block.as_ptr(), from, to });
        }
        done
    }

    fn forget_all(&self) {
        self.tell.tell(&Event::Reset);
    }
}

/// Events of the crate `tracing`, target `mallard`: a refusal is a warning, all else a trace.
/// Around a source, so that growth and exhaustion are told and the hot path stays as it is:
///
/// ```
/// use mallard::{DefaultHeap, Multipool, Traced, TracingEvents};
/// let pool = Multipool::new_in(Traced::new(DefaultHeap, TracingEvents("orders")));
/// # let _ = pool;
/// ```
#[cfg(feature = "tracing")]
#[derive(Clone, Copy, Debug)]
pub struct TracingEvents(
    /// The name of the allocator, in each event.
    pub &'static str,
);

#[cfg(feature = "tracing")]
impl Tell for TracingEvents {
    fn tell(&self, event: &Event) {
        let allocator = self.0;
        match *event {
            Event::Allocate { block, layout } => {
                tracing::trace!(target: "mallard", allocator, ?block, bytes = layout.size(), align = layout.align(), "allocate");
            }
            Event::Refuse { layout } => {
                tracing::warn!(target: "mallard", allocator, bytes = layout.size(), align = layout.align(), "refused");
            }
            Event::Deallocate { block, layout } => {
                tracing::trace!(target: "mallard", allocator, ?block, bytes = layout.size(), "deallocate");
            }
            Event::Expand { block, from, to } => {
                tracing::trace!(target: "mallard", allocator, ?block, from = from.size(), to = to.size(), "expand");
            }
            Event::Reset => tracing::trace!(target: "mallard", allocator, "reset"),
        }
    }
}
