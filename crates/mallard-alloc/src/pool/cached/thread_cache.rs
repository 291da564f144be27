//! The thread cache, which holds the free blocks that one thread has of one pool.

use super::chunk::{Bit, CachedChunk, ChunkOwner, Line};
use crate::base::source::Chunk;
use crate::loom::atomic::{AtomicPtr, AtomicUsize, Ordering::*};
use crate::pool::free_bitmap::WORD_BITS;
use crate::pool::layout::ChunkLayout;
use crate::threads::registry::ThreadPart;
use core::alloc::Layout;
use core::cell::Cell;
use core::ptr::{null, null_mut, NonNull};

type Block = NonNull<u8>;

/// An entry of a magazine. One thread at a time writes an entry. Entries are atomic because another
/// thread may read them for statistics at the same time.
type Entry = AtomicPtr<u8>;

const ENTRIES_FIRST: usize = 64;
const ENTRIES_MIN: usize = 2;
const ENTRIES_MAX: usize = 1024;
/// The maximum size of all blocks in a magazine together, in bytes.
const CACHED_BYTES_MAX: usize = 256 << 10;

/// The cache of one thread: a magazine (a stack of free blocks), and the chunks that the cache
/// owns.
///
/// Every block that the thread frees is pushed on the magazine, even if another cache owns the
/// chunk of the block. Owners are looked up only when the magazine overflows, and then for the
/// older half of its blocks.
///
/// Only the thread itself uses the magazine. After the thread has exited, the cache is abandoned,
/// and a thread that holds the lock of the pool may use the magazine. The chunks have a separate
/// lock, which a thread locks once for many blocks. Threads that find no memory elsewhere also lock
/// it, and allocate from these chunks.
#[repr(C, align(64))] // a cache line
#[cfg_attr(target_arch = "aarch64", repr(align(128)))]
pub(crate) struct ThreadCache {
    thread: ThreadPart,
    /// The entry above the last block. The entries are after the `ThreadCache` in memory.
    top: AtomicPtr<Entry>,
    /// The entry at which the magazine is full. Null if another thread has found no memory. Then
    /// the next free by the owner of this cache returns the blocks of the magazine to their chunks.
    high: AtomicPtr<Entry>,
    base: *mut Entry,
    capacity: Cell<u32>,
    entries_max: u32,
    reloaded: Cell<bool>,
    // Other threads read the following fields for statistics while the thread works:
    refills: AtomicUsize,
    flushes: AtomicUsize,
    owner: ChunkOwner,
    of_pool: Line<OfPool>,
}

/// The fields of a cache that are used under the lock of the pool.
struct OfPool {
    next: Cell<*const ThreadCache>,
    taken: Chunk,
}

impl ThreadCache {
    /// Returns the number of entries of the magazines in a pool of at most `most` blocks. A pool of
    /// few blocks has small magazines, because a thread cannot use the blocks in the magazines of
    /// other threads.
    pub(crate) fn entries_max(block_bytes: usize, most: usize) -> usize {
        (CACHED_BYTES_MAX / block_bytes.max(1)).min(most / 16).clamp(ENTRIES_MIN, ENTRIES_MAX)
    }
    pub(crate) fn layout(entries_max: usize) -> Option<Layout> {
        let bytes = size_of::<Self>() + entries_max * size_of::<Entry>();
        crate::base::bits::layout(bytes, align_of::<Self>())
    }

    /// Makes a cache that no thread owns yet, and puts it in front of the list `next`.
    ///
    /// # Safety
    /// `taken` is unused memory with the layout for `entries_max`.
    pub(crate) unsafe fn begin(
        taken: Chunk,
        entries_max: usize,
        next: *const Self,
    ) -> NonNull<Self> {
        let cache = taken.data.cast::<Self>();
        let capacity = entries_max.min(ENTRIES_FIRST);
        // SAFETY: the memory holds the cache, and after the cache the entries.
        unsafe {
            let base = cache.as_ptr().add(1).cast::<Entry>();
            cache.write(Self {
                thread: ThreadPart::new(),
                top: AtomicPtr::new(base),
                high: AtomicPtr::new(base.wrapping_add(capacity)),
                base,
                capacity: Cell::new(capacity as u32),
                entries_max: entries_max as u32,
                reloaded: Cell::new(false),
                refills: AtomicUsize::new(0),
                flushes: AtomicUsize::new(0),
                owner: ChunkOwner::new(),
                of_pool: Line(OfPool { next: Cell::new(next), taken }),
            });
            (0..entries_max).for_each(|i| base.add(i).write(Entry::new(null_mut())));
        }
        cache
    }

    /// Returns the next cache of the pool's list.
    pub(crate) fn next(&self) -> *const Self {
        self.of_pool.0.next.get()
    }
    pub(crate) fn set_next(&self, next: *const Self) {
        self.of_pool.0.next.set(next);
    }
    /// Returns the memory of the cache, as the source supplied it.
    pub(crate) fn memory(&self) -> Chunk {
        self.of_pool.0.taken
    }
    pub(crate) fn is_abandoned(&self) -> bool {
        self.thread.is_abandoned()
    }
    pub(crate) fn thread(&self) -> &ThreadPart {
        &self.thread
    }
    pub(crate) fn owner(&self) -> &ChunkOwner {
        &self.owner
    }
    pub(crate) fn refills(&self) -> usize {
        self.refills.load(Relaxed)
    }
    pub(crate) fn flushes(&self) -> usize {
        self.flushes.load(Relaxed)
    }

    // --- The magazine.

    /// Returns the address of the first entry, without a load from memory.
    #[inline(always)]
    fn low(&self) -> usize {
        (&raw const *self).addr() + size_of::<Self>()
    }
    /// Returns the number of blocks in the magazine.
    pub(crate) fn len(&self) -> usize {
        (self.top.load(Relaxed).addr() - self.low()) / size_of::<Entry>()
    }
    fn set_len(&self, count: usize) {
        self.top.store(self.base.wrapping_add(count), Relaxed);
    }
    fn entries(&self, count: usize) -> &[Entry] {
        debug_assert!(count <= self.entries_max as usize);
        // SAFETY: at least `count` entries are in memory after the cache.
        unsafe { core::slice::from_raw_parts(self.base, count) }
    }
    /// Returns the oldest `count` blocks of the magazine.
    fn blocks(&self, count: usize) -> impl Iterator<Item = Block> + '_ {
        self.entries(count).iter().filter_map(|e| NonNull::new(e.load(Relaxed)))
    }
    fn capacity(&self) -> usize {
        self.capacity.get() as usize
    }

    #[inline(always)]
    pub(crate) fn try_pop(&self) -> Option<Block> {
        let top = self.top.load(Relaxed);
        if top.addr() == self.low() {
            return None;
        }
        let last = top.wrapping_sub(1);
        self.top.store(last, Relaxed);
        // SAFETY: all entries between the first entry and the top hold blocks.
        Some(unsafe { NonNull::new_unchecked((*last).load(Relaxed)) })
    }

    /// Pushes a block. Returns `false`, and changes nothing, if the magazine is full, or `close`
    /// was called.
    #[inline(always)]
    pub(crate) fn try_push(&self, block: Block) -> bool {
        let top = self.top.load(Relaxed);
        if top.addr() >= self.high.load(Relaxed).addr() {
            return false;
        }
        // SAFETY: all addresses from `top` to below `high` are addresses of entries.
        unsafe { (*top).store(block.as_ptr(), Relaxed) };
        self.top.store(top.wrapping_add(1), Relaxed);
        true
    }

    /// Makes the next free by the owner of the cache return the blocks of the magazine to their
    /// chunks. Any thread may call this function while the cache exists.
    pub(crate) fn close(&self) {
        self.high.store(null_mut(), Relaxed);
    }

    /// Frees a block after `try_push` has failed. If the magazine was emptied since it was last
    /// full, it is too small for this program, so its capacity doubles. Otherwise the older half of
    /// its blocks returns to their chunks.
    pub(crate) fn push(&self, layout: &ChunkLayout, block: Block) {
        let is_closed = self.high.load(Relaxed).is_null();
        let (len, capacity) = (self.len(), self.capacity());
        if is_closed || len == capacity {
            if !is_closed && self.reloaded.get() && self.capacity.get() < self.entries_max {
                self.capacity.set((2 * self.capacity.get()).min(self.entries_max));
            } else {
                self.flush(layout, if is_closed { len } else { capacity.div_ceil(2) });
            }
            self.reloaded.set(false);
            self.high.store(self.base.wrapping_add(self.capacity()), Relaxed);
        }
        if is_closed || !self.try_push(block) {
            self.put_home(layout, core::iter::once(block));
        }
    }

    /// Moves the oldest `count` blocks of the magazine to their chunks.
    fn flush(&self, layout: &ChunkLayout, count: usize) {
        let len = self.len();
        let entries = self.entries(len);
        self.put_home(layout, self.blocks(count));
        for (to, from) in entries.iter().zip(&entries[count..]) {
            to.store(from.load(Relaxed), Relaxed);
        }
        self.set_len(len - count);
        self.flushes.store(self.flushes() + 1, Relaxed);
    }

    /// Returns blocks to their chunks. For a chunk of this cache, the free bit of the block is set,
    /// and for a chunk of another cache the remote bit. Successive blocks whose bits are in one
    /// word are returned by one write.
    fn put_home(&self, layout: &ChunkLayout, blocks: impl Iterator<Item = Block>) {
        let mut put_own = self.owner.putter();
        let mut put = |(chunk, w, bits): Bit| match core::ptr::eq(chunk.owner(), &self.owner) {
            true => put_own((chunk, w, bits)),
            false => chunk.free_remotely(w, bits),
        };
        let mut gathered: Option<Bit> = None;
        for (chunk, w, bit) in blocks.map(|block| bit_of(layout, block)) {
            gathered = match gathered {
                Some((c, v, bits)) if c == chunk && v == w => Some((chunk, w, bits | bit)),
                before => {
                    before.map(&mut put);
                    Some((chunk, w, bit))
                }
            };
        }
        gathered.map(put);
    }

    // --- Blocks of chunks.

    fn take_own(&self, layout: &ChunkLayout, room: &[Entry]) -> usize {
        self.owner.take(layout, room.len(), |i, block| {
            room[i].store(block.as_ptr(), Relaxed);
        })
    }

    /// Lets `f` write blocks to one half of the empty magazine, and allocates the last of them. The
    /// other half stays empty, so that the next few frees do not overflow the magazine.
    fn load(&self, f: impl FnOnce(&[Entry]) -> usize) -> Option<Block> {
        debug_assert!(self.len() == 0);
        let room = self.entries(self.capacity() / 2);
        let count = f(room);
        let last = NonNull::new(room.get(count.wrapping_sub(1))?.load(Relaxed));
        self.set_len(count - 1);
        self.reloaded.set(true);
        self.refills.store(self.refills() + 1, Relaxed);
        last
    }

    /// Allocates a block from the magazine or from the chunks of this cache.
    pub(crate) fn take(&self, layout: &ChunkLayout) -> Option<Block> {
        self.try_pop().or_else(|| self.load(|room| self.take_own(layout, room)))
    }

    /// Fills the magazine with blocks of the cache `other`, and allocates the last of them.
    /// Requires the lock of the pool.
    pub(crate) fn take_from(&self, other: &Self, layout: &ChunkLayout) -> Option<Block> {
        self.load(|room| other.lend(layout, room))
    }

    /// Allocates a block for a thread without a cache. Requires the lock of the pool.
    pub(crate) fn take_one(&self, layout: &ChunkLayout) -> Option<Block> {
        let room = [Entry::new(null_mut())];
        self.lend(layout, &room);
        NonNull::new(room[0].load(Relaxed))
    }

    /// Writes blocks of this cache to the entries `room`, for another thread. The blocks are from
    /// the magazine if this cache is abandoned, or else from the chunks of this cache. Returns the
    /// number of blocks.
    fn lend(&self, layout: &ChunkLayout, room: &[Entry]) -> usize {
        let len = if self.is_abandoned() { self.len() } else { 0 };
        let count = len.min(room.len());
        if count == 0 {
            return self.take_own(layout, room);
        }
        for (to, from) in room.iter().zip(&self.entries(len)[len - count..]) {
            to.store(from.load(Relaxed), Relaxed);
        }
        self.set_len(len - count);
        count
    }

    // --- Functions that require that no other thread is inside a call.

    /// Returns all free blocks to their chunks, by setting their free bits.
    pub(crate) fn flush_all(&self, layout: &ChunkLayout) {
        for block in self.blocks(self.len()) {
            let bit = bit_of(layout, block);
            bit.0.owner().put_free(bit);
        }
        self.set_len(0);
        self.owner.collect();
    }

    /// Discards all blocks and chunks. The headers of the chunks may still point to this cache.
    pub(crate) fn clear(&self) {
        self.set_len(0);
        self.owner.clear();
    }

    pub(crate) fn contains(&self, p: *const u8) -> bool {
        self.blocks(self.len()).any(|b| core::ptr::eq(b.as_ptr(), p))
    }
}

/// The null pointer at the end of a cache list.
pub(crate) const NO_CACHE: *const ThreadCache = null();

/// Returns the chunk of a block, the index of the block's word, and the block's bit.
pub(crate) fn bit_of(layout: &ChunkLayout, block: Block) -> Bit {
    let slot = layout.slot_of(block);
    // SAFETY: by the layout, the header of the block's chunk is at this address.
    let chunk = unsafe { CachedChunk::new(layout.header_of(block)) };
    (chunk, slot / WORD_BITS, 1 << (slot % WORD_BITS))
}
