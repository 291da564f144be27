//! The list of all chunks of one pool, in the order in which the source supplied the chunks.

use super::core_trait::LiveCursor;
use super::layout::{ChunkLayout, SlotRange};
use crate::base::growth::{Growth, GrowthState};
use crate::base::source::{Chunk, Source};
use core::cell::Cell;
use core::ptr::NonNull;

/// The first fields of every chunk's header.
#[repr(C)]
pub(crate) struct ChunkHead {
    /// The core of the pool.
    core: *const (),
    pub(crate) slots: SlotRange,
    // Only the first chunk of a growth step uses the fields below:
    /// How many chunks of the growth step have a header. The chunks of a step get their headers in
    /// address order.
    made: Cell<u32>,
    step_bytes: Cell<usize>,
    /// The first chunk of the previous growth step.
    older: Cell<Option<Head>>,
}

/// The address of a `ChunkHead`. The pointer's provenance is the memory of the whole growth step.
type Head = NonNull<ChunkHead>;

/// Returns the core that owns the chunk of `header`.
///
/// # Safety
/// `header` is the header of a chunk that a pool holds.
#[inline(always)]
pub(crate) unsafe fn core_of(header: NonNull<u8>) -> *const () {
    // SAFETY: the field was written before any block of the chunk was allocated, and never changes.
    unsafe { (&raw const (*header.cast::<ChunkHead>().as_ptr()).core).read() }
}

/// The chunks of one pool, grouped by growth steps. A growth step is one piece of memory from the
/// source, which contains one chunk or several contiguous chunks. A chunk gets its header when its
/// first block is needed.
///
/// The source may call the pool that it serves, so no function keeps a borrow while it calls the
/// source.
#[repr(C)] // an allocation reads the stride, which comes first
pub(crate) struct ChunkList {
    pub(crate) layout: ChunkLayout,
    pub(crate) growth: GrowthState,
    newest: Cell<Option<Head>>,
    /// Number of bytes in those chunks of the newest step that have no header yet.
    rest: Cell<usize>,
    /// Number of slots of all chunks that have a header.
    slots: Cell<usize>,
}

// SAFETY: the list owns its chunks, and nothing in the list depends on a thread.
unsafe impl Send for ChunkList {}

/// # Safety
/// `head` is in a list that holds the chunk of `head` for as long as the reference is used.
unsafe fn get<'a>(head: Head) -> &'a ChunkHead {
    // SAFETY: the caller meets the safety conditions of this function.
    unsafe { head.as_ref() }
}

impl ChunkList {
    pub(crate) fn new(layout: ChunkLayout, growth: Growth) -> Self {
        Self {
            layout,
            growth: GrowthState::new(growth),
            newest: Cell::new(None),
            rest: Cell::new(0),
            slots: Cell::new(0),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.newest.get().is_none()
    }

    /// Returns the number of slots that the pool may still add.
    fn slots_left(&self) -> usize {
        self.layout.shape.most - self.slots.get()
    }

    /// Writes the `ChunkHead` of the next chunk of the newest step, and returns the address of the
    /// header. Returns `None` if no remaining chunk of the step is large enough for a slot.
    pub(crate) fn next_chunk(&self, core: *const ()) -> Option<NonNull<u8>> {
        let rest = self.rest.get();
        if rest == 0 {
            return None;
        }
        let first = self.newest.get()?;
        // SAFETY: the newest step is in the list.
        let step = unsafe { get(first) };
        let number = step.made.get();
        let at = self.chunk_at(first, number as usize);
        let bytes = rest.min(self.layout.shape.bytes);
        let slots = self.layout.slots(at.addr().get(), bytes, self.slots_left());
        if slots.capacity() == 0 {
            return None;
        }
        step.made.set(number + 1);
        self.rest.set(rest - bytes);
        // SAFETY: the chunk belongs to this list, and has no header yet.
        Some(unsafe { self.write_head(at, core, slots, 0, None) })
    }

    /// Requests chunks from the source. The chunks together have at least `wish` bytes if the limit
    /// allows so many. Returns the header of the first chunk, as `next_chunk` does. Returns `None`
    /// if the limit does not allow a request, or the source is exhausted.
    ///
    /// A pool with a fixed number of slots requests the memory of all slots that it may still add.
    pub(crate) fn grow<S: Source>(
        &self,
        source: &S,
        wish: usize,
        core: *const (),
    ) -> Option<NonNull<u8>> {
        let is_bounded = self.layout.shape.most != usize::MAX;
        let slots = if is_bounded { self.slots_left() } else { 1 };
        if slots == 0 {
            return None;
        }
        let least = self.layout.layout_for(slots)?;
        let is_limited = self.growth.is_limited();
        let useful = |bytes| match is_limited {
            true => self.layout.useful(bytes),
            false => bytes & !(super::layout::STEP_UNIT - 1),
        };
        let taken = self.growth.take(source, least, wish, useful)?;
        let bytes = taken.layout.size();
        let slots = self.layout.slots(taken.data.addr().get(), bytes, self.slots_left());
        debug_assert!(slots.capacity() != 0, "a step has room for a slot");
        self.rest.set(bytes - bytes.min(self.layout.shape.bytes));
        // SAFETY: `taken.data` is the start of memory that the source has just supplied.
        let header = unsafe { self.write_head(taken.data, core, slots, bytes, self.newest.get()) };
        self.newest.set(Some(header.cast()));
        Some(header)
    }

    /// # Safety
    /// `at` is the first byte of a chunk that belongs to this list and has no header.
    unsafe fn write_head(
        &self,
        at: NonNull<u8>,
        core: *const (),
        slots: SlotRange,
        step_bytes: usize,
        older: Option<Head>,
    ) -> NonNull<u8> {
        let header = self.layout.header_of(at);
        self.slots.set(self.slots.get() + slots.capacity());
        // SAFETY: by the layout, the header lies within the chunk. Offsets of headers are multiples
        // of 256, so the header is aligned.
        unsafe {
            header.cast::<ChunkHead>().write(ChunkHead {
                core,
                slots,
                made: Cell::new(1),
                step_bytes: Cell::new(step_bytes),
                older: Cell::new(older),
            });
        }
        header
    }

    /// Returns the first byte of the chunk with this number in the step of `first`.
    fn chunk_at(&self, first: Head, number: usize) -> NonNull<u8> {
        let base = self.layout.base(first.cast());
        // SAFETY: the address is the start of a chunk of the step, so it is within the step's memory,
        // and not 0.
        unsafe { NonNull::new_unchecked(base.wrapping_add(number * self.layout.shape.bytes)) }
    }
    fn header_in(&self, first: Head, number: usize) -> NonNull<u8> {
        self.layout.header_of(self.chunk_at(first, number))
    }

    fn steps(&self) -> impl Iterator<Item = Head> {
        // SAFETY: `head` is a step in the list. The caller's loop returns a step to the source only
        // after it has advanced to the next step.
        core::iter::successors(self.newest.get(), |&head| unsafe { get(head) }.older.get())
    }
    fn headers(&self, first: Head) -> impl Iterator<Item = NonNull<u8>> + '_ {
        // SAFETY: `first` is a step in the list.
        let made = unsafe { get(first) }.made.get() as usize;
        (0..made).map(move |number| self.header_in(first, number))
    }

    /// Calls `f` with the headers of all chunks, the newest step first.
    pub(crate) fn for_each(&self, mut f: impl FnMut(NonNull<u8>)) {
        self.steps().for_each(|first| self.headers(first).for_each(&mut f));
    }

    /// Moves the cursor to the next chunk, in the order of `for_each`, and returns the header of
    /// that chunk.
    pub(crate) fn next(&self, cursor: &mut LiveCursor) -> Option<NonNull<u8>> {
        let (first, number) = match NonNull::new(cursor.step.cast::<ChunkHead>()) {
            None => (self.newest.get()?, 0),
            Some(first) => {
                // SAFETY: the cursor got `first` from this list, and no step has left the list
                // since.
                let step = unsafe { get(first) };
                let offset = cursor.chunk.addr() - self.layout.base(first.cast()).addr();
                let number = offset / self.layout.shape.bytes + 1;
                match number < step.made.get() as usize {
                    true => (first, number),
                    false => (step.older.get()?, 0),
                }
            }
        };
        let header = self.header_in(first, number);
        *cursor = LiveCursor { step: first.as_ptr().cast(), chunk: header.as_ptr(), slot: 0 };
        Some(header)
    }

    /// Finds the header of the chunk that contains `p`. O(growth steps).
    pub(crate) fn find(&self, p: *const u8) -> Option<NonNull<u8>> {
        self.steps().find_map(|first| {
            // SAFETY: `first` is a step in the list.
            let step = unsafe { get(first) };
            let offset = p.addr().wrapping_sub(self.layout.base(first.cast()).addr());
            let number = offset / self.layout.shape.bytes;
            let is_inside = offset < step.step_bytes.get() && number < step.made.get() as usize;
            is_inside.then(|| self.header_in(first, number))
        })
    }

    /// Returns to the source each growth step whose chunks are all idle (have no block in use), but
    /// keeps `keep` bytes of these steps.
    pub(crate) fn give_idle<S: Source>(
        &self,
        source: &S,
        mut keep: usize,
        mut is_idle: impl FnMut(NonNull<u8>) -> bool,
    ) {
        let mut newer: Option<Head> = None;
        let mut next = self.newest.get();
        while let Some(first) = next {
            // SAFETY: `first` is a step in the list.
            let step = unsafe { get(first) };
            next = step.older.get();
            let bytes = step.step_bytes.get();
            let idle = self.headers(first).all(&mut is_idle);
            if !idle || bytes <= keep {
                keep -= if idle { bytes } else { 0 };
                newer = Some(first);
                continue;
            }
            // SAFETY: `h` is the header of a chunk of the step.
            let capacity = |h: NonNull<u8>| unsafe { get(h.cast()) }.slots.capacity();
            let slots: usize = self.headers(first).map(capacity).sum();
            self.slots.set(self.slots.get() - slots);
            match newer {
                // SAFETY: the newer step stays in the list.
                Some(newer) => unsafe { get(newer) }.older.set(next),
                None => {
                    self.newest.set(next);
                    self.rest.set(0);
                }
            }
            self.growth.gave(bytes);
            let layout = crate::base::bits::layout(bytes, self.layout.shape.chunk);
            if let Some(layout) = layout {
                let chunk = Chunk { data: self.chunk_at(first, 0), layout };
                // SAFETY: the source supplied the chunk. The chunk has left the list, and none of
                // its blocks is in use.
                unsafe { source.give(chunk) }
            }
        }
    }

    /// Returns all steps to the source.
    pub(crate) fn release<S: Source>(&self, source: &S) {
        self.give_idle(source, 0, |_| true);
        self.growth.restart();
    }

    /// Returns the number of slots in all chunks, including the chunks of the newest step that have
    /// no header yet.
    pub(crate) fn capacity(&self) -> usize {
        let Some(first) = self.newest.get() else { return 0 };
        let (mut rest, mut slots) = (self.rest.get(), 0);
        // SAFETY: `first` is a step in the list.
        let mut number = unsafe { get(first) }.made.get() as usize;
        while rest != 0 {
            let bytes = rest.min(self.layout.shape.bytes);
            let at = self.chunk_at(first, number).addr().get();
            slots += self.layout.slots(at, bytes, usize::MAX).capacity();
            rest -= bytes;
            number += 1;
        }
        self.slots.get() + slots.min(self.slots_left())
    }
}
