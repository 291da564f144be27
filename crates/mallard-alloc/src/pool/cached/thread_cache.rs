//! The blocks that one thread has at hand.

use crate::lock::{Held, Lock};
use crate::loom::atomic::{AtomicPtr, AtomicUsize, Ordering::*};
use crate::pool::cached::chunk::{At, Header, Line, WORD_BITS};
use crate::pool::cached::owned_chunks::OwnedChunks;
use crate::pool::cached::remote::Inbox;
use crate::pool::chunk_list::Cut;
use crate::source::Chunk;
use crate::threads::ThreadFront;
use core::alloc::Layout;
use core::cell::Cell;
use core::ptr::NonNull;

/// An entry of a magazine. Atomic because statistics may look while its thread works; only one
/// thread at a time writes.
pub(crate) type Slot = AtomicPtr<u8>;

const ENTRIES_FIRST: usize = 64;
const ENTRIES_MIN: usize = 2;
const ENTRIES_MAX: usize = 1024;
const BYTES_MAX: usize = 256 << 10;

/// A magazine over the chunks that it owns. Into the magazine comes every block that its thread
/// frees, whosever chunk it is from: only when half of it has to leave does anyone look.
///
/// The magazine is for its thread; or, while it is idle, for who holds the lock of the pool.
/// The chunks have a lock of their own, which a thread takes once for many blocks: so others who
/// find no memory elsewhere may help themselves.
#[repr(C, align(64))]
pub(crate) struct Front {
    thread: ThreadFront,
    /// Above the last block; entries begin behind the front.
    top: AtomicPtr<Slot>,
    /// Where the magazine is full. Null: whoever was refused a block asks that those here go
    /// home with the next free.
    high: AtomicPtr<Slot>,
    base: *mut Slot,
    capacity: Cell<u32>,
    limit: u32,
    reloaded: Cell<bool>,
    /// Read by who holds the lock, while the thread works.
    refills: AtomicUsize,
    flushes: AtomicUsize,
    chunks: Line<Lock<OwnedChunks>>,
    pub(crate) of_pool: Line<OfPool>,
    inbox: Line<Inbox<Header>>,
}

/// Under the lock of the pool.
pub(crate) struct OfPool {
    pub(crate) next: Cell<*const Front>,
    pub(crate) taken: Chunk,
}

impl Front {
    /// Entries of a magazine, in a pool of no more than `most` blocks: few where those are few,
    /// since what one thread has in its magazine is not there for others.
    pub(crate) fn limit(cut: &Cut, most: usize) -> usize {
        (BYTES_MAX / cut.block_bytes.max(1)).min(most / 16).clamp(ENTRIES_MIN, ENTRIES_MAX)
    }
    pub(crate) fn layout(limit: usize) -> Option<Layout> {
        crate::bits::layout(size_of::<Self>() + limit * size_of::<Slot>(), align_of::<Self>())
    }

    fn new(base: *mut Slot, limit: usize, taken: Chunk) -> Self {
        let capacity = limit.min(ENTRIES_FIRST);
        Self {
            thread: ThreadFront::new(),
            top: AtomicPtr::new(base),
            high: AtomicPtr::new(base.wrapping_add(capacity)),
            base,
            capacity: Cell::new(capacity as u32),
            limit: limit as u32,
            reloaded: Cell::new(false),
            refills: AtomicUsize::new(0),
            flushes: AtomicUsize::new(0),
            chunks: Line(Lock::new(OwnedChunks::NONE)),
            of_pool: Line(OfPool { next: Cell::new(core::ptr::null()), taken }),
            inbox: Line(Inbox::new()),
        }
    }

    /// One that is idle.
    ///
    /// # Safety
    /// `taken` is fresh memory of the layout for `limit`.
    pub(crate) unsafe fn begin(taken: Chunk, limit: usize) -> NonNull<Self> {
        let front = taken.data.cast::<Self>();
        // SAFETY: there is room for the front, and behind it for the entries.
        unsafe {
            let base = front.as_ptr().add(1).cast::<Slot>();
            front.write(Self::new(base, limit, taken));
            for i in 0..limit {
                base.add(i).write(Slot::new(core::ptr::null_mut()));
            }
        }
        front
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.thread.is_idle()
    }
    pub(crate) fn thread(&self) -> &ThreadFront {
        &self.thread
    }
    pub(crate) fn chunks(&self) -> Held<'_, OwnedChunks> {
        self.chunks.0.lock()
    }
    pub(crate) fn inbox(&self) -> &Inbox<Header> {
        &self.inbox.0
    }
    pub(crate) fn refills(&self) -> usize {
        self.refills.load(Relaxed)
    }
    pub(crate) fn flushes(&self) -> usize {
        self.flushes.load(Relaxed)
    }

    // --- the magazine

    /// Where entries begin, as an address: without a load.
    #[inline(always)]
    fn low(&self) -> usize {
        (&raw const *self).addr() + size_of::<Self>()
    }
    /// Blocks in the magazine.
    pub(crate) fn held(&self) -> usize {
        (self.top.load(Relaxed).addr() - self.low()) / size_of::<Slot>()
    }
    fn set_held(&self, count: usize) {
        self.top.store(self.base.wrapping_add(count), Relaxed);
    }
    fn entries(&self, count: usize) -> &[Slot] {
        debug_assert!(count <= self.limit as usize);
        // SAFETY: behind the front are as many entries as its limit.
        unsafe { core::slice::from_raw_parts(self.base, count) }
    }
    /// The oldest `count` in the magazine.
    fn blocks(&self, count: usize) -> impl Iterator<Item = NonNull<u8>> + '_ {
        self.entries(count).iter().filter_map(|e| NonNull::new(e.load(Relaxed)))
    }
    fn capacity(&self) -> usize {
        self.capacity.get() as usize
    }
    fn open(&self) {
        self.high.store(self.base.wrapping_add(self.capacity()), Relaxed);
    }

    #[inline(always)]
    pub(crate) fn try_pop(&self) -> Option<NonNull<u8>> {
        let top = self.top.load(Relaxed);
        if top.addr() == self.low() {
            return None;
        }
        let last = top.wrapping_sub(1);
        self.top.store(last, Relaxed);
        // SAFETY: between the first entry and the top there are blocks.
        Some(unsafe { NonNull::new_unchecked((*last).load(Relaxed)) })
    }

    /// False: it is full, or shut.
    #[inline(always)]
    pub(crate) fn try_push(&self, block: NonNull<u8>) -> bool {
        let top = self.top.load(Relaxed);
        if top.addr() >= self.high.load(Relaxed).addr() {
            return false;
        }
        // SAFETY: below `high` there are entries.
        unsafe { (*top).store(block.as_ptr(), Relaxed) };
        self.top.store(top.wrapping_add(1), Relaxed);
        true
    }

    /// Any thread may, while the front lives: its blocks go home with the next free.
    pub(crate) fn shut(&self) {
        self.high.store(core::ptr::null_mut(), Relaxed);
    }

    /// What `try_push` could not. The older half goes home first, unless the magazine, which has
    /// been emptied since it was last full, should rather be larger.
    pub(crate) fn push(&self, cut: &Cut, block: NonNull<u8>) {
        let shut = self.high.load(Relaxed).is_null();
        let (held, capacity) = (self.held(), self.capacity());
        if shut || held == capacity {
            let enlarge = !shut && self.reloaded.get() && self.capacity.get() < self.limit;
            if enlarge {
                self.capacity.set((2 * self.capacity.get()).min(self.limit));
            } else {
                self.flush(cut, if shut { held } else { capacity.div_ceil(2) });
            }
            self.reloaded.set(false);
            self.open();
        }
        if shut || !self.try_push(block) {
            self.put_back(cut, core::iter::once(block));
        }
    }

    /// The oldest `count` blocks go home.
    fn flush(&self, cut: &Cut, count: usize) {
        let held = self.held();
        let entries = self.entries(held);
        self.put_back(cut, self.blocks(count));
        for (to, from) in entries.iter().zip(&entries[count..]) {
            to.store(from.load(Relaxed), Relaxed);
        }
        self.set_held(held - count);
        self.flushes.store(self.flushes() + 1, Relaxed);
    }

    /// Blocks of chunks of its own get their bits, others are freed remotely: neighbours with one
    /// write.
    fn put_back(&self, cut: &Cut, blocks: impl Iterator<Item = NonNull<u8>>) {
        let mut own = None;
        let mut put = |(c, w, bits): (At, usize, usize)| match core::ptr::eq(c.owner(), self) {
            true => own.get_or_insert_with(|| self.chunks()).set_free((c, w, bits)),
            false => c.free_remotely(w, bits),
        };
        let mut gathered: Option<(At, usize, usize)> = None;
        for (c, w, bit) in blocks.map(|block| place_of(cut, block)) {
            gathered = match gathered {
                Some((c0, w0, bits)) if c0 == c && w0 == w => Some((c, w, bits | bit)),
                before => {
                    before.map(&mut put);
                    Some((c, w, bit))
                }
            };
        }
        gathered.map(put);
    }

    // --- chunks

    fn take_own(&self, cut: &Cut, room: &[Slot]) -> usize {
        self.chunks().take(cut, self.inbox(), room)
    }

    /// Loads what `f` writes and gives the last: half of the magazine, so that a few frees
    /// after it do not overflow.
    fn load(&self, f: impl FnOnce(&[Slot]) -> usize) -> Option<NonNull<u8>> {
        debug_assert!(self.held() == 0);
        let room = self.entries(self.capacity() / 2);
        let count = f(room);
        let last = NonNull::new(room.get(count.wrapping_sub(1))?.load(Relaxed));
        self.set_held(count - 1);
        self.reloaded.set(true);
        self.refills.store(self.refills() + 1, Relaxed);
        last
    }

    /// A block from all that is its own.
    pub(crate) fn take(&self, cut: &Cut) -> Option<NonNull<u8>> {
        self.try_pop().or_else(|| self.load(|room| self.take_own(cut, room)))
    }

    /// Blocks of another, under the lock of the pool; gives the last of them.
    pub(crate) fn take_from(&self, other: &Front, cut: &Cut) -> Option<NonNull<u8>> {
        self.load(|room| other.lend(cut, room))
    }

    /// A single block of this, for a thread without a front, under the lock of the pool.
    pub(crate) fn take_one(&self, cut: &Cut) -> Option<NonNull<u8>> {
        let room = [Slot::new(core::ptr::null_mut())];
        self.lend(cut, &room);
        NonNull::new(room[0].load(Relaxed))
    }

    /// From its chunks; and from its magazine, if it is idle.
    fn lend(&self, cut: &Cut, room: &[Slot]) -> usize {
        let held = if self.is_idle() { self.held() } else { 0 };
        let count = held.min(room.len());
        if count == 0 {
            return self.take_own(cut, room);
        }
        for (to, from) in room.iter().zip(&self.entries(held)[held - count..]) {
            to.store(from.load(Relaxed), Relaxed);
        }
        self.set_held(held - count);
        count
    }

    // --- while no other thread is inside a call

    /// Every free block gets its bit.
    pub(crate) fn settle(&self, cut: &Cut) {
        for block in self.blocks(self.held()) {
            let place = place_of(cut, block);
            place.0.owner().chunks().set_free(place);
        }
        self.set_held(0);
        self.chunks().collect(self.inbox());
    }

    /// Has no chunks, though some may still name it their owner.
    pub(crate) fn clear(&self) {
        self.set_held(0);
        *self.chunks() = OwnedChunks::NONE;
        self.inbox().clear();
    }

    pub(crate) fn has(&self, p: *const u8) -> bool {
        self.blocks(self.held()).any(|b| core::ptr::eq(b.as_ptr(), p))
    }
}

/// Of a block in use, or in a magazine: its chunk, the number of its word, its bit.
pub(crate) fn place_of(cut: &Cut, block: NonNull<u8>) -> (At, usize, usize) {
    let slot = cut.slot_of(block);
    // SAFETY: a block of the pool leads to the header of its chunk.
    let c = unsafe { At::new(cut.header_of(block)) };
    (c, slot / WORD_BITS, 1 << (slot % WORD_BITS))
}
