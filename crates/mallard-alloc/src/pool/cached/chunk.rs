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

/// A value on cache lines of its own.
#[repr(align(64))]
pub(crate) struct Line<T>(pub(crate) T);

/// The header of a chunk. Behind it stand the remote words, which any thread sets bits in, and from
/// the next cache line on the free words, which only the owner writes.
///
/// A carved slot is in use, or in some thread's cache, or free: then its bit is set in one of the
/// two.
#[repr(C)]
pub(crate) struct Header {
    head: ChunkHead,
    /// In the cache that owns the chunk for good.
    owner: *const ChunkOwner,
    words: usize,
    own: Line<Own>,
    remote: Line<Remote<Header>>,
}

/// The part of the header that only the owner uses, under the lock of its chunks.
struct Own {
    bits: Bits,
    /// In the owner's list of chunks that have blocks.
    next: Cell<Option<CachedChunk>>,
    is_listed: Cell<bool>,
}

const fn words_bytes(words: usize) -> usize {
    (words * size_of::<AtomicUsize>()).next_multiple_of(64)
}

/// For `ChunkLayout::new`.
pub(crate) fn header_bytes(slots: usize) -> usize {
    size_of::<Header>() + 2 * words_bytes(words_for(slots))
}

impl Posted for Header {
    fn remote(&self) -> &Remote<Self> {
        &self.remote.0
    }
}

/// A chunk of a pool that lives.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct CachedChunk(NonNull<Header>);

impl Deref for CachedChunk {
    type Target = Header;
    #[inline(always)]
    fn deref(&self) -> &Header {
        // SAFETY: the header lives as long as its pool holds the chunk, and is only ever shared.
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
        // SAFETY: `begin` wrote it, and it lives as long as the header.
        unsafe { self.word_at(w, words_bytes(self.words)).cast().as_ref() }
    }
}

impl CachedChunk {
    /// # Safety
    /// `header` is what `begin` wrote, in a pool that lives as long as this is used.
    #[inline(always)]
    pub(crate) unsafe fn new(header: NonNull<u8>) -> Self {
        Self(header.cast())
    }

    /// # Safety
    /// `header` has a `ChunkHead`, and nothing behind it. `owner` lives as long as the chunk.
    pub(crate) unsafe fn begin(header: NonNull<u8>, owner: *const ChunkOwner) -> Self {
        let chunk = Self(header.cast());
        let bits = Bits::new();
        let own = Own { bits, next: Cell::new(None), is_listed: Cell::new(false) };
        // SAFETY: the layout has room for the header, and nobody else knows of the chunk.
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

    /// A word behind the header. Made from the chunk's address, since a reference to the header
    /// does not reach so far.
    #[inline(always)]
    fn word_at(self, w: usize, offset: usize) -> NonNull<AtomicUsize> {
        let bytes = size_of::<Header>() + offset + w * size_of::<AtomicUsize>();
        // SAFETY: the layout has room for the words.
        unsafe { self.0.byte_add(bytes).cast() }
    }
    fn remote_word(&self, w: usize) -> &AtomicUsize {
        debug_assert!(w < self.words);
        // SAFETY: `begin` wrote it, and it lives as long as the header.
        unsafe { self.word_at(w, 0).as_ref() }
    }

    #[inline]
    pub(crate) fn owner(&self) -> &ChunkOwner {
        // SAFETY: an owner lives as long as it owns chunks.
        unsafe { &*self.owner }
    }

    fn has_blocks(&self) -> bool {
        self.bits().has_free() || !self.is_fully_carved()
    }
    /// Blocks that other threads freed, and that the owner has not collected.
    pub(crate) fn remote_blocks(&self) -> usize {
        (0..self.words).map(|w| self.remote_word(w).load(Relaxed).count_ones() as usize).sum()
    }
    /// Whether `slot` has a bit in one of its two words.
    pub(crate) fn has_bit(&self, slot: usize) -> bool {
        let remote = self.remote_word(slot / WORD_BITS).load(Relaxed);
        self.is_free(slot) || remote >> (slot % WORD_BITS) & 1 != 0
    }

    /// Gives out at most `room` blocks that were never given out. As `BitChunk::take_free`.
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

    /// Takes the blocks that other threads freed, of a chunk that was posted to its owner.
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

    /// Frees several blocks of one word. Any thread may, for blocks in use that are its own.
    pub(crate) fn free_remotely(&self, w: usize, bits: usize) {
        if self.remote().free(self.remote_word(w), w, bits) {
            // SAFETY: it is the owner's inbox. The chunk is not in it, as `free` just said.
            unsafe { self.owner().inbox.0.post(self.0) }
        }
    }

    /// Marks every slot as never given out, while no other thread is inside a call.
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

/// The part of a thread's cache that owns chunks.
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

    /// Lists a chunk that is in no list, and whose owner is `self`.
    pub(crate) fn add(&self, chunk: CachedChunk) {
        let mut chunks = self.chunks();
        chunks.count += 1;
        chunk.own.0.is_listed.set(false);
        chunks.list(chunk);
    }
    /// How many chunks it owns.
    pub(crate) fn count(&self) -> usize {
        self.chunks().count
    }

    /// Sets bits of one word, none of which is set.
    pub(crate) fn put_free(&self, bits: Bit) {
        self.chunks().put_free(bits);
    }
    /// The same for bits of several words: locks once, when it is first called.
    pub(crate) fn putter(&self) -> impl FnMut(Bit) + '_ {
        let mut chunks = None;
        move |bits| chunks.get_or_insert_with(|| self.chunks()).put_free(bits)
    }

    /// Takes the blocks that other threads freed.
    pub(crate) fn collect(&self) {
        self.chunks().collect(&self.inbox.0);
    }

    /// Takes at most `room` blocks: those with a bit, or else some that were never given out. Calls
    /// `write(index, block)` with each. Returns how many.
    pub(crate) fn take(
        &self,
        layout: &ChunkLayout,
        room: usize,
        write: impl FnMut(usize, NonNull<u8>),
    ) -> usize {
        self.chunks().take(layout, &self.inbox.0, room, write)
    }

    /// Forgets all chunks, which may still name it their owner. No other thread is inside a call.
    pub(crate) fn clear(&self) {
        *self.chunks() = OwnedChunks::NONE;
        self.inbox.0.clear();
    }
}

/// Bits of one word: the chunk, the number of the word, the bits.
pub(crate) type Bit = (CachedChunk, usize, usize);

/// The chunks of an owner. Used under a lock, which a thread takes once for many blocks.
struct OwnedChunks {
    /// A list of those that have blocks. Chunks with free bits come first.
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
            // SAFETY: whoever frees a block posts its chunk, a chunk of this pool.
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
