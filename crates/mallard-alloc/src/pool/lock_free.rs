//! What a pool of `sync::LockFree` is: a stack of slot numbers.

use crate::growth::{Growth, GrowthState};
use crate::lock::Lock;
use crate::loom::atomic::Ordering::Relaxed;
use crate::pool::chunk_list::{header_of, ChunkHead, Cut, Runs, CHUNK_BYTES};
use crate::pool::core_trait::{Core, LiveCursor};
use crate::pool::layout::SlotShape;
use crate::pool::numbered_chunks::{header_bytes, At, NumberedChunks, Numbers};
use crate::source::Source;
use crate::statistics::{Statistics, Validity};
use crate::tagged_stack::TaggedStack;
use core::ptr::NonNull;

/// The free blocks are a stack of numbers, chunk and slot in 32 bits, and the link of each is
/// in an array in the header of its chunk: blocks are never read, and no exchange is wider
/// than a word.
///
/// Growth happens under a lock, while others push and pop; only those who find nothing wait for
/// it. A free never does.
#[doc(hidden)]
#[repr(C)]
#[allow(missing_debug_implementations)] // nobody has one by its name
pub struct LockFreeCore<S: Source> {
    cut: Cut,
    /// Slots of all chunks, at most.
    most: usize,
    chunks: NumberedChunks,
    // Between any two calls, where no other thread is inside one:
    //   live + |stack|  ==  capacity of all chunks
    stack: Apart<TaggedStack>,
    /// With the source, which is called with it held.
    shared: Lock<Shared>,
    source: S,
}

/// On lines that nothing else is on: processors fetch two at a time.
#[repr(align(128))]
struct Apart<T>(T);

struct Shared {
    growth: GrowthState,
    runs: Runs,
    /// Slots of all chunks.
    slots: usize,
    numbers: Numbers,
    refills: usize,
}

// SAFETY: chunks are all atomics to those who share them; the source goes from thread to thread,
// to one at a time.
unsafe impl<S: Source + Send> Sync for LockFreeCore<S> {}
// SAFETY: nothing in it depends on the thread that made it.
unsafe impl<S: Source + Send> Send for LockFreeCore<S> {}

impl<S: Source> LockFreeCore<S> {
    #[inline(always)]
    fn pop(&self) -> Option<NonNull<u8>> {
        let found = self.stack.0.pop(|number| {
            let (c, slot) = self.chunks.place_of(number);
            (c.link(slot), (c, slot))
        });
        found.map(|(c, slot)| self.cut.block_at(c.header(), slot))
    }

    #[inline(always)]
    fn push(&self, block: NonNull<u8>, chunk: usize) {
        let (c, slot) = At::place_of(block, chunk);
        self.stack.0.push(c.number_of(slot), c.link(slot));
    }
    #[cold]
    #[inline(never)]
    fn push_large(&self, block: NonNull<u8>) {
        self.push(block, self.cut.chunk);
    }

    /// One thread at a time; it looks again, since the one before may have grown.
    #[cold]
    #[inline(never)]
    fn grow(&self) -> Option<NonNull<u8>> {
        let mut guard = self.shared.lock();
        let shared = &mut *guard;
        loop {
            if let Some(block) = self.pop() {
                return Some(block); // others may have been quicker, or grown
            }
            if self.make_chunk(shared).is_none() {
                return self.pop(); // what was freed while the source said no
            }
        }
    }

    fn make_chunk(&self, shared: &mut Shared) -> Option<()> {
        let Shared { growth, runs, numbers, slots, refills } = shared;
        let left = self.most - *slots;
        if left == 0 {
            return None;
        }
        // The number first: a chunk without one would be of no use.
        let number = self.chunks.next(numbers, growth, &self.source)?;
        let address = (&raw const *self).cast();
        let (header, bytes) = runs.take(&self.cut, growth, &self.source, address)?;
        let own = self.cut.slots(header, bytes, left);
        *slots += own.capacity();
        *refills += 1;
        // SAFETY: `take` wrote the head.
        let c = unsafe { self.chunks.enter(number, header, &self.cut, own) };
        self.push_all(c, own.iter());
        Some(())
    }

    /// Pushes some slots of a chunk at once, so that the first is on top.
    fn push_all(&self, c: At, mut slots: impl Iterator<Item = usize>) {
        let Some(first) = slots.next() else { return };
        let mut last = first;
        for slot in slots {
            c.link(last).store(c.number_of(slot) + 1, Relaxed);
            last = slot;
        }
        self.stack.0.push(c.number_of(first), c.link(last));
    }

    fn for_each_chunk(&self, shared: &Shared, mut f: impl FnMut(At)) {
        // SAFETY: `grow` has begun all of them.
        shared.runs.for_each(&self.cut, |header| f(unsafe { At::new(header) }));
    }

    /// Exact while no other thread is inside a call.
    fn for_each_free(&self, shared: &Shared, mut f: impl FnMut(At, usize)) {
        let mut most = 0;
        self.for_each_chunk(shared, |c| most += c.slots.capacity());
        let place = |number| self.chunks.place_of(number);
        let link = |number| {
            let (c, slot) = place(number);
            c.link(slot)
        };
        self.stack.0.for_each(most, link, |number| {
            let (c, slot) = place(number);
            f(c, slot);
        });
    }

    /// Marks all that are on the stack, while no other thread is inside a call.
    fn mark_free(&self, shared: &Shared) {
        self.for_each_chunk(shared, At::clear_marks);
        self.for_each_free(shared, |c, slot| c.mark(slot));
    }

    fn give_all(&self) {
        let mut guard = self.shared.lock();
        let Shared { growth, runs, numbers, slots, .. } = &mut *guard;
        self.stack.0.clear();
        // SAFETY: `grow` has begun all of them.
        runs.for_each(&self.cut, |h| self.chunks.leave(numbers, unsafe { At::new(h) }));
        runs.release(&self.cut, growth, &self.source);
        *slots = 0;
        self.chunks.release(numbers, growth, &self.source);
    }
}

// SAFETY: a block is a slot of a chunk whose number is not on the stack; a pop takes a number off
// for one thread only, and it comes back by a push. All may call what takes `&self`.
unsafe impl<S: Source> Core<S> for LockFreeCore<S> {
    fn new(shape: SlotShape, growth: Growth, source: S) -> Self {
        // A link has 4 bytes: blocks of 1 byte would leave too little room for themselves.
        let cut = Cut::new(shape, 8, header_bytes);
        let shared = Shared {
            growth: GrowthState::new(growth),
            runs: Runs::new(),
            slots: 0,
            numbers: Numbers::new(),
            refills: 0,
        };
        Self {
            cut,
            most: shape.most,
            chunks: NumberedChunks::new(&cut),
            stack: Apart(TaggedStack::new()),
            shared: Lock::new(shared),
            source,
        }
    }

    fn bytes_for(shape: SlotShape, count: usize) -> usize {
        let cut = Cut::new(shape, 8, header_bytes);
        cut.bytes_for(count)
            .saturating_add(NumberedChunks::bytes_for(cut.bytes_for(count) / cut.bytes))
    }

    #[inline]
    fn try_allocate(&self) -> Option<NonNull<u8>> {
        self.pop().or_else(|| self.grow())
    }

    #[inline]
    unsafe fn deallocate(&self, block: NonNull<u8>) {
        // So the processor need not wait for the size of chunks.
        match self.cut.chunk {
            CHUNK_BYTES => self.push(block, CHUNK_BYTES),
            _ => self.push_large(block),
        }
    }

    #[inline(always)]
    unsafe fn of<'a>(block: NonNull<u8>, shape: &SlotShape) -> &'a Self {
        let header = header_of(block, shape.chunk).cast::<ChunkHead>();
        // SAFETY: a block in use leads to its header, and that to the core, which lives.
        unsafe { &*header.as_ref().core.cast() }
    }

    fn next_live(&mut self, cursor: &mut LiveCursor) -> Option<NonNull<u8>> {
        let shared = self.shared.lock();
        let mut header = NonNull::new(cursor.chunk);
        if header.is_none() {
            self.mark_free(&shared);
        }
        loop {
            if let Some(header) = header {
                // SAFETY: `grow` has begun all of them.
                let c = unsafe { At::new(header) };
                let mut rest = cursor.slot..c.slots.count();
                if let Some(slot) = rest.find(|&s| c.slots.contains(s) && !c.is_marked(s)) {
                    cursor.slot = slot + 1;
                    return Some(self.cut.block_at(header, slot));
                }
            }
            header = Some(shared.runs.next(&self.cut, cursor)?);
        }
    }

    fn reset(&mut self) {
        let shared = self.shared.lock();
        self.stack.0.clear();
        self.for_each_chunk(&shared, |c| self.push_all(c, c.slots.iter()));
    }

    fn release(&mut self) {
        self.give_all();
    }

    fn trim(&mut self, keep: usize) {
        let mut guard = self.shared.lock();
        let shared = &mut *guard;
        self.mark_free(shared);
        // SAFETY: `grow` has begun all of them.
        let at = |header| unsafe { At::new(header) };
        let Shared { growth, runs, numbers, slots, .. } = shared;
        let is_idle = |h| at(h).free.get() as usize == at(h).slots.capacity();
        let gone = |h| {
            *slots -= at(h).slots.capacity();
            self.chunks.leave(numbers, at(h));
        };
        self.stack.0.clear();
        runs.give_idle((&self.cut, &*growth, &self.source), keep, is_idle, gone);
        if runs.is_empty() {
            self.chunks.release(numbers, growth, &self.source);
        }
        self.for_each_chunk(shared, |c| {
            self.push_all(c, c.slots.iter().filter(|&slot| c.is_marked(slot)));
        });
    }

    fn statistics(&self) -> Statistics {
        let shared = self.shared.lock();
        let (mut capacity, mut free, mut chunks) = (0, 0, 0);
        self.for_each_chunk(&shared, |c| {
            capacity += c.slots.capacity();
            chunks += 1;
        });
        self.for_each_free(&shared, |_, _| free += 1);
        Statistics {
            blocks_live: capacity - free,
            bytes_live: (capacity - free) * self.cut.block_bytes,
            bytes_idle: free * self.cut.block_bytes,
            bytes_taken: shared.growth.taken(),
            chunks,
            growths: shared.growth.steps(),
            refills: shared.refills,
            flushes: 0,
        }
    }

    fn classify(&self, p: *const u8) -> Validity {
        let shared = self.shared.lock();
        let Some(header) = shared.runs.find(&self.cut, p) else {
            return Validity::Miss;
        };
        // SAFETY: `grow` has begun all of them.
        let slots = unsafe { At::new(header) }.slots;
        let slot = self.cut.slot_at(header, p).filter(|&slot| slots.contains(slot));
        let mut live = slot.is_some();
        self.for_each_free(&shared, |c, slot_free| {
            live &= c.header() != header || Some(slot_free) != slot;
        });
        match live {
            true => Validity::Valid,
            false => Validity::Invalid,
        }
    }

    fn source(&self) -> &S {
        &self.source
    }
}

impl<S: Source> Drop for LockFreeCore<S> {
    fn drop(&mut self) {
        self.give_all();
    }
}
