//! The adaptor that reports each call to an observer.

use crate::adapt::prelude::*;

/// One call of an allocator or source, and its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A block or chunk was allocated. This event is reported after the call.
    Allocate {
        /// The address.
        block: *const u8,
        /// The requested layout. Around a source, the layout of the chunk that the source supplied.
        layout: Layout,
    },
    /// A call found no memory. This event is reported after the call.
    Fail {
        /// The requested layout.
        layout: Layout,
    },
    /// A block is about to be freed. This event is reported before the call, so that another
    /// thread's `Allocate` of the same address never comes first.
    Deallocate {
        /// The address.
        block: *const u8,
        /// The layout with which the block was allocated.
        layout: Layout,
    },
    /// A block has grown or shrunk in place.
    Expand {
        /// The address.
        block: *const u8,
        /// The layout before the change.
        from: Layout,
        /// The layout after the change.
        to: Layout,
    },
    /// All blocks are about to be freed by a `reset` or `release`.
    Reset,
}

/// An adaptor that reports each call of an allocator or source to an [`Observer`].
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
/// The observer must not call the allocator that it observes. Around a source, the observer
/// receives an event for each chunk. Around an allocator, it receives an event for each block.
/// `Traced` is `Send` and `Sync` if both the allocator and the observer are.
#[derive(Debug)]
pub struct Traced<A, F> {
    inner: A,
    observer: F,
}

adaptor!(Traced [F: Observer]);

/// Receives the events of a [`Traced`]. Every `Fn(&Event)` is an observer.
///
/// ```
/// use mallard::{Event, Observer};
/// struct Failures(std::cell::Cell<usize>);
/// impl Observer for Failures {
///     fn observe(&self, event: &Event) {
///         if let Event::Fail { .. } = event {
///             self.0.set(self.0.get() + 1);
///         }
///     }
/// }
/// ```
#[doc(alias = "listener")]
#[doc(alias = "callback")]
pub trait Observer {
    /// Receives one event. An observer must not call the allocator that it observes.
    fn observe(&self, event: &Event);
}

impl<F: Fn(&Event)> Observer for F {
    fn observe(&self, event: &Event) {
        self(event);
    }
}

impl<A, F> Traced<A, F> {
    /// Wraps `inner`, and reports each call of `inner` to `observer`.
    pub const fn new(inner: A, observer: F) -> Self {
        Self { inner, observer }
    }
}

impl<A, F: Observer> Traced<A, F> {
    #[inline]
    fn take_from<S: Source>(&self, below: &S, layout: Layout) -> Option<Chunk> {
        let taken = below.try_take(layout);
        self.observer.observe(&match &taken {
            Some(c) => Event::Allocate { block: c.data.as_ptr(), layout: c.layout },
            None => Event::Fail { layout },
        });
        taken
    }

    /// # Safety
    /// The same as for `Source::give`.
    #[inline]
    unsafe fn give_to<S: Source>(&self, below: &S, chunk: Chunk) {
        self.observer
            .observe(&Event::Deallocate { block: chunk.data.as_ptr(), layout: chunk.layout });
        // SAFETY: the caller's guarantee is passed on unchanged.
        unsafe { below.give(chunk) }
    }

    #[inline]
    fn expand(&self, Change { block, from, to }: Change, below: impl FnOnce() -> bool) -> bool {
        let done = below();
        if done {
            self.observer.observe(&Event::Expand { block: block.as_ptr(), from, to });
        }
        done
    }

    fn forget_all(&self) {
        self.observer.observe(&Event::Reset);
    }
}

/// An observer that emits events of the crate `tracing`, with target `mallard`. Failures are
/// warnings, and all other events are traces. Around a source, the observer reports growth and
/// exhaustion, and does not slow down allocations that need no new chunk:
///
/// ```
/// use mallard::{DefaultHeap, Multipool, Traced, TracingEvents};
/// let pool = Multipool::new_in(Traced::new(DefaultHeap, TracingEvents("orders")));
/// # let _ = pool;
/// ```
#[cfg(feature = "tracing")]
#[derive(Clone, Copy, Debug)]
pub struct TracingEvents(
    /// The name of the allocator, added to each event.
    pub &'static str,
);

#[cfg(feature = "tracing")]
impl Observer for TracingEvents {
    fn observe(&self, event: &Event) {
        let allocator = self.0;
        match *event {
            Event::Allocate { block, layout } => {
                tracing::trace!(target: "mallard", allocator, ?block, bytes = layout.size(), align = layout.align(), "allocate");
            }
            Event::Fail { layout } => {
                tracing::warn!(target: "mallard", allocator, bytes = layout.size(), align = layout.align(), "allocation failed");
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
