//! What a pool of `sync::ThreadCached` is: chunks that all threads share, and for each thread a
//! front with the blocks it has at hand.

pub(crate) mod chunk;
pub(crate) mod owned_chunks;
pub(crate) mod remote;
pub(crate) mod thread_cache;
mod upkeep;

use crate::growth::{Growth, GrowthState};
use crate::lock::Lock;
use crate::pool::cached::chunk::{header_bytes, At};
use crate::pool::cached::thread_cache::{place_of, Front};
use crate::pool::chunk_list::{header_of, ChunkHead, Cut, Runs};
use crate::pool::core_trait::{Core, LiveCursor};
use crate::pool::layout::SlotShape;
use crate::source::Source;
use crate::statistics::{Statistics, Validity};
use crate::threads::Ticket;
use core::cell::Cell;
use core::ptr::NonNull;

/// A thread allocates from and frees to its own front, without a lock or an atomic
/// read-modify-write. What it looks at when its front has nothing, in this order: chunks of
/// its own; what others have freed of them; the fronts of threads that ended; the source; the
/// chunks of other threads.
///
/// A front owns its chunks for good, and outlives its thread: a new thread takes it over
/// whole (docs/decisions/0013-a-front-owns-its-chunks.md).
///
/// Memory may be refused while blocks are free in the magazines of other threads: at most 1,024,
/// or 256 KiB, or a 16th of what the pool may have, in each. They are asked for then, and come
/// with the next free of that thread.
///
/// A thread that cannot have a front, for lack of memory or because it is at its end, works
/// under the lock, slowly. A free never waits for one who grows.
#[doc(hidden)]
#[allow(missing_debug_implementations)] // nobody has one by its name
#[repr(C)]
pub struct CachedCore<S: Source> {
    /// Changes only in `release`.
    ticket: Cell<Ticket>,
    cut: Cut,
    /// Slots of all chunks, at most.
    most: usize,
    /// With the source, which is called with it held.
    shared: Lock<Shared>,
    source: S,
}

// Between any two calls, with |x| for the blocks in x:
//   live + |magazines| + |free bits| + |remote bits| + |not carved|  ==  capacity of all chunks
struct Shared {
    growth: GrowthState,
    runs: Runs,
    /// Slots of all chunks.
    slots: usize,
    /// A list of all.
    fronts: *const Front,
    front_bytes: usize,
    /// Of fronts that are gone.
    refills: usize,
    flushes: usize,
}

// SAFETY: the fronts that it points to are part of it.
unsafe impl Send for Shared {}
// SAFETY: a front is its thread's, or under the lock, as is all that is shared; so is the source,
// which goes from thread to thread, to one at a time.
unsafe impl<S: Source + Send> Sync for CachedCore<S> {}
// SAFETY: nothing in it depends on the thread that made it.
unsafe impl<S: Source + Send> Send for CachedCore<S> {}

impl<S: Source> CachedCore<S> {
    /// This thread's front, if it has one.
    #[inline(always)]
    fn here(&self) -> Option<&Front> {
        // SAFETY: fronts begin with what the table leads to. It has those that live, for the
        // id changes when they are given back.
        self.ticket.get().find().map(|front| unsafe { front.cast::<Front>().as_ref() })
    }

    fn address(&self) -> *const () {
        (&raw const *self).cast()
    }

    // --- slow paths

    /// The front has nothing at hand, or there is none.
    #[cold]
    #[inline(never)]
    fn refill(&self) -> Option<NonNull<u8>> {
        if let Some(block) = self.here().and_then(|front| front.take(&self.cut)) {
            return Some(block);
        }
        let mut shared = self.shared.lock();
        match self.here().or_else(|| self.join(&mut shared)) {
            Some(front) => self.grow(&mut shared, front),
            None => self.grow_without_front(&mut shared),
        }
    }

    /// `front` is this thread's.
    fn grow(&self, shared: &mut Shared, front: &Front) -> Option<NonNull<u8>> {
        // A front that was just taken over has what it had.
        let adopted = front.take(&self.cut);
        adopted
            .or_else(|| self.idle(shared).find_map(|f| front.take_from(f, &self.cut)))
            .or_else(|| {
                self.make_chunk(shared, front)?;
                front.take(&self.cut)
            })
            .or_else(|| self.others(shared, front).find_map(|f| front.take_from(f, &self.cut)))
            .or_else(|| {
                self.others(shared, front).for_each(Front::shut);
                front.take(&self.cut) // what was freed while the source said no
            })
    }

    /// The chunk becomes that of a front which is nobody's.
    fn grow_without_front(&self, shared: &mut Shared) -> Option<NonNull<u8>> {
        let lent = self.idle(shared).find_map(|f| f.take_one(&self.cut));
        lent.or_else(|| {
            let idle = self.idle(shared).next();
            let owner = match idle {
                Some(front) => front,
                None => self.make_front(shared)?,
            };
            self.make_chunk(shared, owner)?;
            owner.take_one(&self.cut)
        })
        .or_else(|| self.fronts(shared).find_map(|f| f.take_one(&self.cut)))
        .or_else(|| {
            self.fronts(shared).for_each(Front::shut);
            None
        })
    }

    fn make_chunk(&self, shared: &mut Shared, owner: &Front) -> Option<()> {
        let Shared { runs, growth, slots, .. } = shared;
        let left = self.most - *slots;
        if left == 0 {
            return None;
        }
        let (header, bytes) = runs.take(&self.cut, growth, &self.source, self.address())?;
        let own = self.cut.slots(header, bytes, left);
        *slots += own.capacity();
        // SAFETY: `take` wrote the head; the owner lives until no chunk is its own.
        owner.chunks().add(unsafe { At::begin(header, own, owner) });
        Some(())
    }

    /// The front has no room, or there is none.
    #[cold]
    #[inline(never)]
    fn overflow(&self, block: NonNull<u8>) {
        // A free does not wait for who grows.
        let front = self.here().or_else(|| self.join(&mut *self.shared.try_lock()?));
        match front {
            Some(front) => front.push(&self.cut, block),
            None => {
                let (c, w, bit) = place_of(&self.cut, block);
                c.free_remotely(w, bit);
            }
        }
    }

    /// A front for this thread, which has none: one that is idle, or else a new one.
    fn join(&self, shared: &mut Shared) -> Option<&Front> {
        if !self.ticket.get().may_join() {
            return None;
        }
        let idle = self.idle(shared).next();
        let front = match idle {
            Some(front) => front,
            None => self.make_front(shared)?,
        };
        front.thread().adopt();
        self.ticket.get().join(NonNull::from(front).cast());
        Some(front)
    }

    fn make_front(&self, shared: &mut Shared) -> Option<&Front> {
        let most = self.most.min(shared.growth.growth().limit / self.cut.block_bytes.max(1));
        let limit = Front::limit(&self.cut, most);
        let taken = self.source.try_take(Front::layout(limit)?)?;
        // SAFETY: just taken, with that layout; it lives as long as it is in the list.
        let front = unsafe { Front::begin(taken, limit).as_ref() };
        front.of_pool.0.next.set(shared.fronts);
        shared.fronts = front;
        shared.front_bytes += taken.layout.size();
        Some(front)
    }

    fn fronts<'a>(&'a self, shared: &Shared) -> impl Iterator<Item = &'a Front> {
        // SAFETY: those in the list live as long as the lock is held, or nobody releases them.
        let first = unsafe { shared.fronts.as_ref() };
        // SAFETY: the same.
        core::iter::successors(first, |f| unsafe { f.of_pool.0.next.get().as_ref() })
    }
    fn idle<'a>(&'a self, shared: &Shared) -> impl Iterator<Item = &'a Front> {
        self.fronts(shared).filter(|f| f.is_idle())
    }
    fn others<'a>(&'a self, shared: &Shared, own: &'a Front) -> impl Iterator<Item = &'a Front> {
        self.fronts(shared).filter(move |f| !core::ptr::eq(*f, own))
    }

    fn for_each_chunk(&self, shared: &Shared, mut f: impl FnMut(At)) {
        // SAFETY: `make_chunk` has begun all of them.
        shared.runs.for_each(&self.cut, |header| f(unsafe { At::new(header) }));
    }
}

// SAFETY: a block is a slot of a chunk that is not in any front, has no bit, and is carved; so it
// is nobody else's until it comes back. All may call what takes `&self`.
unsafe impl<S: Source> Core<S> for CachedCore<S> {
    fn new(shape: SlotShape, growth: Growth, source: S) -> Self {
        let shared = Shared {
            growth: GrowthState::new(growth),
            runs: Runs::new(),
            slots: 0,
            fronts: core::ptr::null(),
            front_bytes: 0,
            refills: 0,
            flushes: 0,
        };
        Self {
            ticket: Cell::new(Ticket::new()),
            cut: Cut::new(shape, 1, header_bytes),
            most: shape.most,
            shared: Lock::new(shared),
            source,
        }
    }

    fn bytes_for(shape: SlotShape, count: usize) -> usize {
        Cut::new(shape, 1, header_bytes).bytes_for(count)
    }

    #[inline]
    fn try_allocate(&self) -> Option<NonNull<u8>> {
        if let Some(front) = self.here() {
            if let Some(block) = front.try_pop() {
                return Some(block);
            }
        }
        self.refill()
    }

    #[inline]
    unsafe fn deallocate(&self, block: NonNull<u8>) {
        if let Some(front) = self.here() {
            if front.try_push(block) {
                return;
            }
        }
        self.overflow(block);
    }

    #[inline(always)]
    unsafe fn of<'a>(block: NonNull<u8>, shape: &SlotShape) -> &'a Self {
        // SAFETY: a block in use leads to its header, and that to the core, which lives.
        unsafe { &*header_of(block, shape.chunk).cast::<ChunkHead>().as_ref().core.cast() }
    }

    fn next_live(&mut self, cursor: &mut LiveCursor) -> Option<NonNull<u8>> {
        let shared = match cursor.chunk.is_null() {
            true => self.settle(),
            false => self.shared.lock(),
        };
        let mut header = NonNull::new(cursor.chunk);
        loop {
            if let Some(header) = header {
                // SAFETY: all chunks were begun.
                if let Some(slot) = unsafe { At::new(header) }.next_used(cursor.slot) {
                    cursor.slot = slot + 1;
                    return Some(self.cut.block_at(header, slot));
                }
            }
            header = Some(shared.runs.next(&self.cut, cursor)?);
        }
    }

    fn reset(&mut self) {
        let shared = self.settle();
        self.for_each_chunk(&shared, |c| c.uncarve());
        self.list_all(&shared);
    }

    fn release(&mut self) {
        self.ticket.get().end();
        self.give_all();
        self.ticket.set(Ticket::new());
    }

    fn trim(&mut self, keep: usize) {
        let mut guard = self.settle();
        let shared = &mut *guard;
        // SAFETY: all chunks were begun.
        let is_idle = |header| unsafe { At::new(header) }.is_idle();
        let from = (&self.cut, &shared.growth, &self.source);
        let slots = &mut shared.slots;
        // SAFETY: the same.
        let gone = |header| *slots -= unsafe { At::new(header) }.capacity();
        shared.runs.give_idle(from, keep, is_idle, gone);
        self.list_all(shared);
        self.give_fronts(shared, |f| f.is_idle() && f.chunks().count() == 0);
    }

    fn statistics(&self) -> Statistics {
        let shared = self.shared.lock();
        let (mut live, mut capacity, mut idle, mut chunks) = (0, 0, 0, 0);
        self.for_each_chunk(&shared, |c| {
            live += c.carved_blocks();
            capacity += c.capacity();
            idle += c.free_blocks() + c.remote_blocks();
            chunks += 1;
        });
        let (mut refills, mut flushes) = (shared.refills, shared.flushes);
        for front in self.fronts(&shared) {
            idle += front.held();
            refills += front.refills();
            flushes += front.flushes();
        }
        live = live.saturating_sub(idle);
        Statistics {
            blocks_live: live,
            bytes_live: live * self.cut.block_bytes,
            bytes_idle: (capacity - live) * self.cut.block_bytes,
            bytes_taken: shared.growth.taken() + shared.front_bytes,
            chunks,
            growths: shared.growth.steps(),
            refills,
            flushes,
        }
    }

    fn classify(&self, p: *const u8) -> Validity {
        let shared = self.shared.lock();
        let Some(header) = shared.runs.find(&self.cut, p) else {
            return Validity::Miss;
        };
        // SAFETY: all chunks were begun.
        let c = unsafe { At::new(header) };
        let used = |slot| c.is_carved(slot) && !c.is_free(slot);
        let live = self.cut.slot_at(header, p).is_some_and(used);
        match live && !self.fronts(&shared).any(|f| f.has(p)) {
            true => Validity::Valid,
            false => Validity::Invalid,
        }
    }

    fn source(&self) -> &S {
        &self.source
    }
}

impl<S: Source> Drop for CachedCore<S> {
    fn drop(&mut self) {
        self.ticket.get().end();
        self.give_all();
    }
}
