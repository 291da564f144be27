//! A chunk of a pool of `sync::ThreadCached`.

use super::inbox::{Inbox, Posted, Remote};
use crate::loom::atomic::{AtomicUsize, Ordering::*};
use crate::pool::chunk_list::ChunkHead;
use crate::pool::free_bitmap::{words_for, BitChunk, Bits, WORD_BITS};
use crate::pool::layout::{ChunkLayout, SlotRange};
use crate::threads::lock::{Held, Locked};
use core::cell::Cell;
use core::ops::Deref;
use core::ptr::NonNull;
use core::sync::atomic::AtomicUsize as PlainAtomicUsize;

/// A value on separate cache lines.
#[repr(align(64))]
pub(crate) struct Line<T>(pub(crate) T);

/// The header of a chunk. Two arrays of words follow the header, each with one bit for each slot.
/// The remote words come first. Any thread frees blocks by setting bits in the remote words. The
/// free words begin at the next cache line. Only the owner writes the free words.
///
/// A slot that was allocated at least once is in use, in some thread's cache, or free. A free slot
/// has its bit set in its remote word or in its free word.
#[repr(C)]
pub(crate) struct Header {
    head: ChunkHead,
    /// The owner of the chunk, which is the `ChunkOwner` in a thread cache. The owner never
    /// changes.
    owner: *const ChunkOwner,
    words: usize,
    own: Line<Own>,
    remote: Line<Remote<Header>>,
}

/// The fields of the header that are used only under the lock of the chunk's owner.
struct Own {
    bits: Bits,
    /// The next chunk in the owner's list of chunks that have free blocks.
    next: Cell<Option<CachedChunk>>,
    is_listed: Cell<bool>,
}

const fn words_bytes(words: usize) -> usize {
    (words * size_of::<AtomicUsize>()).next_multiple_of(64)
}

/// Returns the size of the header of a chunk with `slots` slots, for `ChunkLayout::new`.
pub(crate) fn header_bytes(slots: usize) -> usize {
    size_of::<Header>() + 2 * words_bytes(words_for(slots))
}

impl Posted for Header {
    fn remote(&self) -> &Remote<Self> {
        &self.remote.0
    }
}

/// The address of a chunk whose pool has not been dropped.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct CachedChunk(NonNull<Header>);

impl Deref for CachedChunk {
    type Target = Header;
    #[inline(always)]
    fn deref(&self) -> &Header {
        // SAFETY: the header exists while its pool holds the chunk, and only shared references to
        // the header are made.
        unsafe { self.0.as_ref() }
    }
}

impl BitChunk for CachedChunk {
    fn header(self) -> NonNull<u8> {
        self.0.cast()
    }
    fn slots(&self) -> &SlotRange {
        &self.head.slots
    }
    fn bits(&self) -> &Bits {
        &self.own.0.bits
    }
    #[inline(always)]
    fn word(&self, w: usize) -> &PlainAtomicUsize {
        debug_assert!(w < self.words);
        // SAFETY: `begin` wrote the word, which exists while the header exists.
        unsafe { self.word_at(w, words_bytes(self.words)).cast().as_ref() }
    }
}

impl CachedChunk {
    /// # Safety
    /// `begin` wrote `header`, and the pool of the chunk exists for as long as the returned chunk
    /// is used.
    #[inline(always)]
    pub(crate) unsafe fn new(header: NonNull<u8>) -> Self {
        Self(header.cast())
    }

    /// Writes the part of a chunk's header that follows the `ChunkHead`.
    ///
    /// # Safety
    /// A `ChunkHead` is written at `header`, and nothing after it is written yet. `owner` exists
    /// for as long as the chunk.
    pub(crate) unsafe fn begin(header: NonNull<u8>, owner: *const ChunkOwner) -> Self {
        let chunk = Self(header.cast());
        let bits = Bits::new();
        let own = Own { bits, next: Cell::new(None), is_listed: Cell::new(false) };
        // SAFETY: by the layout, the header fits in the chunk. No other thread has the chunk's
        // address.
        unsafe {
            let h = chunk.0.as_ptr();
            let words = words_for((*h).head.slots.end());
            (&raw mut (*h).owner).write(owner);
            (&raw mut (*h).words).write(words);
            (&raw mut (*h).own).write(Line(own));
            (&raw mut (*h).remote).write(Line(Remote::new()));
            for w in 0..words {
                chunk.word_at(w, 0).write(AtomicUsize::new(0));
                let free = chunk.word_at(w, words_bytes(words));
                free.cast::<PlainAtomicUsize>().write(PlainAtomicUsize::new(0));
            }
        }
        chunk.carve_to(0);
        chunk
    }

    /// Returns the address of a word after the header. The address is derived from the chunk's
    /// address, because Rust does not allow a reference to the header to access memory after the
    /// header.
    #[inline(always)]
    fn word_at(self, w: usize, offset: usize) -> NonNull<AtomicUsize> {
        let bytes = size_of::<Header>() + offset + w * size_of::<AtomicUsize>();
        // SAFETY: by the layout, the words fit after the header.
        unsafe { self.0.byte_add(bytes).cast() }
    }
    fn remote_word(&self, w: usize) -> &AtomicUsize {
        debug_assert!(w < self.words);
        // SAFETY: `begin` wrote the word, which exists while the header exists.
        unsafe { self.word_at(w, 0).as_ref() }
    }

    #[inline]
    pub(crate) fn owner(&self) -> &ChunkOwner {
        // SAFETY: an owner exists for as long as it owns chunks.
        unsafe { &*self.owner }
    }

    fn has_blocks(&self) -> bool {
        self.bits().has_free() || !self.is_fully_carved()
    }
    /// Returns the number of blocks that other threads freed, and that the owner has not collected
    /// yet.
    pub(crate) fn remote_blocks(&self) -> usize {
        (0..self.words).map(|w| self.remote_word(w).load(Relaxed).count_ones() as usize).sum()
    }
    /// Returns whether the bit of `slot` is set in its remote word or in its free word.
    pub(crate) fn has_bit(&self, slot: usize) -> bool {
        let remote = self.remote_word(slot / WORD_BITS).load(Relaxed);
        self.is_free(slot) || remote >> (slot % WORD_BITS) & 1 != 0
    }

    /// Allocates at most `room` slots that were never allocated before, and calls `write` with each
    /// block, as `BitChunk::take_free` does.
    fn carve(
        &self,
        layout: &ChunkLayout,
        room: usize,
        mut write: impl FnMut(usize, NonNull<u8>),
    ) -> usize {
        let carved = self.bits().carved();
        let count = (self.carvable_end() - carved).min(room);
        (0..count).for_each(|i| write(count - 1 - i, layout.block_at(self.header(), carved + i)));
        self.carve_to(carved + count);
        count
    }

    /// Moves the bits of blocks that other threads freed to the free words. Requires that the chunk
    /// was in its owner's inbox.
    fn collect(&self) {
        let mut summary = self.remote().take_summary();
        while summary != 0 {
            let first = summary.trailing_zeros() as usize;
            for w in (first..self.words).step_by(WORD_BITS) {
                match self.remote_word(w).swap(0, AcqRel) {
                    0 => {}
                    bits => {
                        self.put_free(w, bits);
                    }
                }
            }
            summary &= summary - 1;
        }
    }

    /// Frees several blocks whose bits are in word `w`. Any thread may call this function for
    /// blocks that belong to the thread.
    pub(crate) fn free_remotely(&self, w: usize, bits: usize) {
        if self.remote().free(self.remote_word(w), w, bits) {
            // SAFETY: the inbox belongs to the chunk's owner. The chunk is in no inbox, because
            // `free` returned `true`.
            unsafe { self.owner().inbox.0.post(self.0) }
        }
    }

    /// Marks every slot as never allocated. Requires that no other thread is inside a call of the
    /// pool.
    pub(crate) fn reset(&self) {
        let _ = self.remote().take_summary();
        for w in 0..self.words {
            self.word(w).store(0, Relaxed);
            self.remote_word(w).store(0, Relaxed);
        }
        self.uncarve();
        self.carve_to(0);
    }
}

/// The part of a thread cache that owns chunks.
pub(crate) struct ChunkOwner {
    chunks: Line<Locked<OwnedChunks>>,
    inbox: Line<Inbox<Header>>,
}

impl ChunkOwner {
    pub(crate) fn new() -> Self {
        Self { chunks: Line(Locked::new(OwnedChunks::NONE)), inbox: Line(Inbox::new()) }
    }
    fn chunks(&self) -> Held<'_, OwnedChunks> {
        self.chunks.0.lock()
    }

    /// Adds `chunk` to the list of this owner. Requires that the chunk is in no list, and that its
    /// owner is `self`.
    pub(crate) fn add(&self, chunk: CachedChunk) {
        let mut chunks = self.chunks();
        chunks.count += 1;
        chunk.own.0.is_listed.set(false);
        chunks.list(chunk);
    }
    /// Returns the number of chunks that belong to this owner.
    pub(crate) fn count(&self) -> usize {
        self.chunks().count
    }

    /// Sets bits of one word. Requires that all these bits are clear.
    pub(crate) fn put_free(&self, bits: Bit) {
        self.chunks().put_free(bits);
    }
    /// Returns a function that sets bits of one word at each call. The first call locks the owner's
    /// chunks, and the lock is held until the function is dropped.
    pub(crate) fn putter(&self) -> impl FnMut(Bit) + '_ {
        let mut chunks = None;
        move |bits| chunks.get_or_insert_with(|| self.chunks()).put_free(bits)
    }

    /// Collects the blocks of the owner's chunks that other threads freed.
    pub(crate) fn collect(&self) {
        self.chunks().collect(&self.inbox.0);
    }

    /// Allocates at most `room` blocks. Blocks whose bit is set come first, and blocks that were
    /// never allocated before come last. Calls `write(index, block)` with each block, and returns
    /// the number of blocks.
    pub(crate) fn take(
        &self,
        layout: &ChunkLayout,
        room: usize,
        write: impl FnMut(usize, NonNull<u8>),
    ) -> usize {
        self.chunks().take(layout, &self.inbox.0, room, write)
    }

    /// Discards all chunks. Their headers may still point to this owner. Requires that no other
    /// thread is inside a call of the pool.
    pub(crate) fn clear(&self) {
        *self.chunks() = OwnedChunks::NONE;
        self.inbox.0.clear();
    }
}

/// Bits of one word, as the chunk, the index of the word, and the bits.
pub(crate) type Bit = (CachedChunk, usize, usize);

/// The chunks of an owner. They are used under a lock, which a thread locks once for many blocks.
struct OwnedChunks {
    /// The list of chunks that have blocks. Chunks with free bits come first.
    available: Option<CachedChunk>,
    count: usize,
}

impl OwnedChunks {
    const NONE: Self = Self { available: None, count: 0 };

    fn list(&mut self, chunk: CachedChunk) {
        let own = &chunk.own.0;
        if chunk.has_blocks() && !own.is_listed.replace(true) {
            own.next.set(self.available.replace(chunk));
        }
    }

    fn put_free(&mut self, (chunk, w, bits): Bit) {
        chunk.put_free(w, bits);
        self.list(chunk);
    }

    fn collect(&mut self, inbox: &Inbox<Header>) {
        inbox.take_all(|header| {
            // SAFETY: the inbox contains only chunks of this pool, which threads posted that freed
            // blocks.
            let chunk = unsafe { CachedChunk::new(header.cast()) };
            chunk.collect();
            self.list(chunk);
        });
    }

    fn take(
        &mut self,
        layout: &ChunkLayout,
        inbox: &Inbox<Header>,
        room: usize,
        mut write: impl FnMut(usize, NonNull<u8>),
    ) -> usize {
        if !inbox.is_empty() && !self.available.is_some_and(|chunk| chunk.bits().has_free()) {
            self.collect(inbox);
        }
        let mut count = 0;
        while let Some(chunk) = self.available {
            let before = count;
            count += chunk.take_free(layout, room - before, |i, block| write(before + i, block));
            if count == 0 {
                count = chunk.carve(layout, room, &mut write);
            }
            if chunk.has_blocks() {
                break;
            }
            self.available = chunk.own.0.next.take();
            chunk.own.0.is_listed.set(false);
        }
        count
    }
}
