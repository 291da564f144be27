//! Keyed slots: chunks of slots that are found through a directory. Slot maps and secondary maps
//! consist of keyed slots.

mod chunk;
mod clone;
mod directory;
mod free_keys;
mod join;
mod map_traits;
mod view;
mod walk;

pub(crate) use chunk::{free_word, ChunkLayout, Header, Slot, SlotChunk, GROUP};
pub(crate) use free_keys::{Block, FreeKeys};
pub use join::Join;
pub(crate) use map_traits::{debug_left, map_traits, no_element};
pub(crate) use view::View;
pub(crate) use walk::Walk;

use crate::base::bits::layout;
use crate::base::full::Cause;
use crate::base::growth::{Growth, GrowthState};
use crate::base::source::{bytes_missing, Chunk, Source};
use crate::base::statistics::Statistics;
use crate::slot_map::key::{Bits, Key};
use core::alloc::Layout;
use core::ptr::{self, NonNull};
use view::NO_WORD;

/// The chunks of one map, and their source. This type cannot tell whether a slot has a value, so
/// the map that owns the chunks drops the values.
pub(crate) struct Slots<K: Key, V, S: Source> {
    pub(crate) view: View<K, V>,
    /// The number of directory entries that have a chunk.
    pub(crate) present: usize,
    /// The number of direct entries, which is 0 or a power of two. The entries of far chunks
    /// follow.
    direct: usize,
    far: usize,
    /// The number of entries for which the directory has memory.
    room: usize,
    entries: Option<Chunk>,
    /// The free keys of a slot map. Always empty in a secondary map.
    pub(crate) free_keys: FreeKeys<K::Bits>,
    /// The next chunk of the last growth step that has no directory entry yet, unless
    /// `pending_count` is 0.
    pending: NonNull<u8>,
    pending_count: usize,
    growth: GrowthState,
    source: S,
}

impl<K: Key, V, S: Source> Slots<K, V, S> {
    pub(crate) const fn new(growth: Growth, source: S) -> Self {
        Self {
            view: View::NOTHING,
            present: 0,
            direct: 0,
            far: 0,
            room: 0,
            entries: None,
            free_keys: FreeKeys::new(),
            pending: NO_WORD,
            pending_count: 0,
            growth: GrowthState::new(growth),
            source,
        }
    }

    pub(crate) fn source(&self) -> &S {
        &self.source
    }
    pub(crate) fn growth(&self) -> &Growth {
        self.growth.growth()
    }
    /// Returns the number of slots for which the map has memory, including slot 0.
    pub(crate) fn capacity(&self) -> usize {
        (self.present + self.pending_count).min(ChunkLayout::<K, V>::CHUNKS_MAX)
            * ChunkLayout::<K, V>::SLOTS
    }
    pub(crate) fn is_at_limit(&self) -> bool {
        self.present == ChunkLayout::<K, V>::CHUNKS_MAX
    }

    pub(crate) fn walk(&self) -> Walk<K, V> {
        Walk::new(&self.view, self.free_keys.has_stale_marks())
    }

    /// Returns the address of a word that the directory stores for each absent chunk. When a chunk
    /// with this number is added again, its slots continue from the generation in this word. If the
    /// word is 0, the slots begin with the first generation.
    pub(crate) fn resume_at(&self, number: usize) -> *mut K::Bits {
        debug_assert!(number < self.direct);
        self.view.directory.wrapping_add(self.room).cast::<K::Bits>().wrapping_add(number)
    }

    /// Adds a chunk with this number, whose words and bits are all 0. Requires that there is no
    /// such chunk yet. If there is no memory, returns `None`, and leaves the elements and keys
    /// unchanged.
    #[cold]
    #[inline(never)]
    pub(crate) fn put(&mut self, number: usize) -> Option<SlotChunk<K, V>> {
        if number >= ChunkLayout::<K, V>::CHUNKS_MAX {
            return None;
        }
        let place = self.make_place(number)?;
        let mut run_bytes = 0;
        if self.pending_count == 0 {
            let least = ChunkLayout::<K, V>::layout()?;
            let whole = |bytes| bytes & !(ChunkLayout::<K, V>::ALIGN - 1);
            let run = self.growth.take(&self.source, least, least.size(), whole)?;
            self.pending = run.data;
            self.pending_count = run.layout.size() / ChunkLayout::<K, V>::BYTES;
            run_bytes = run.layout.size();
        }
        let chunk = SlotChunk::<K, V>::new(self.pending);
        // SAFETY: the result is an address in the growth step, or at its end.
        self.pending = unsafe { self.pending.add(ChunkLayout::<K, V>::BYTES) };
        self.pending_count -= 1;
        let header = Header { number, idle: 0, next: None, run_bytes };
        // SAFETY: the memory is from the source, and nothing has used it yet.
        unsafe { chunk.init(header) };
        if self.present == 0 {
            self.view.stand_in = chunk.at;
            for i in 0..self.direct {
                // SAFETY: the directory has memory for all direct entries.
                unsafe { *self.view.directory.add(i) = chunk.at };
            }
            self.view.mask = self.direct * ChunkLayout::<K, V>::SLOTS - 1;
        }
        self.enter(place, chunk.at);
        self.present += 1;
        Some(chunk)
    }

    /// Returns how many bytes a buffer lacks for the first chunk of the map, which would have this
    /// number, and for `aside` bytes before that chunk (see `bytes_missing`). The alignment of a
    /// chunk includes the padding for smaller alignments before the chunk.
    pub(crate) fn missing(&self, number: usize, aside: usize) -> u32 {
        if self.present != 0 {
            return 0;
        }
        let chunk = ChunkLayout::<K, V>::BYTES.saturating_add(self.bytes_for(number));
        bytes_missing(&self.source, chunk.saturating_add(aside), ChunkLayout::<K, V>::ALIGN)
    }
    /// Returns the reason why there was no memory for a chunk. The arguments are those of
    /// `missing`.
    #[cold]
    pub(crate) fn refusal(&self, number: usize, aside: usize) -> Cause {
        match self.missing(number, aside) {
            0 => Cause::NoMemory,
            missing => Cause::BufferTooSmall { missing },
        }
    }

    fn take_aside(&mut self, wanted: Layout) -> Option<Chunk> {
        self.growth.take_aside(&self.source, wanted)
    }
    fn give_aside(&mut self, taken: Option<Chunk>) {
        if let Some(chunk) = taken {
            self.growth.gave(chunk.layout.size());
            // SAFETY: the memory is from `take_aside`, and nothing uses it any more.
            unsafe { self.source.give(chunk) };
        }
    }

    /// Allocates memory from the source for a block of keys.
    pub(crate) fn take_block(&mut self, places: usize) -> Option<NonNull<Block>> {
        let taken = self.take_aside(Block::layout::<K::Bits>(places)?)?;
        // SAFETY: the memory was just taken, with this layout.
        Some(unsafe { Block::make(taken.data, taken.layout, places) })
    }
    pub(crate) fn give_block(&mut self, block: Option<NonNull<Block>>) {
        // SAFETY: the block is from `take_block`, and nothing uses it any more.
        let chunk = block.map(|block| unsafe { Block::chunk(block) });
        self.give_aside(chunk);
    }

    /// Returns to the source each growth step whose chunks are all idle. For an idle chunk,
    /// `is_idle` returns the word from which the slots continue if the chunk is added again. The
    /// chunk to which empty directory entries point is never returned.
    pub(crate) fn trim(&mut self, is_idle: impl Fn(SlotChunk<K, V>) -> Option<K::Bits>) {
        // The loop runs from the last chunk to the first, because removing the entry of a far chunk
        // moves later entries.
        for place in (0..self.view.count).rev() {
            let there = (place < self.view.count).then(|| self.view.chunk(place)).flatten();
            let Some(first) = there else { continue };
            // SAFETY: a chunk in the directory has a header.
            let run_bytes = unsafe { (*first.header()).run_bytes };
            let chunks = run_bytes / ChunkLayout::<K, V>::BYTES;
            let begin = first.at.addr().get();
            let pending_here = self.pending_count != 0
                && (begin..begin + chunks * ChunkLayout::<K, V>::BYTES)
                    .contains(&self.pending.addr().get());
            let in_service = chunks - if pending_here { self.pending_count } else { 0 };
            // SAFETY: `i` is below the number of chunks of the growth step.
            let chunk = |i| SlotChunk::new(unsafe { first.at.add(i * ChunkLayout::<K, V>::BYTES) });
            let goes = |i| chunk(i).at != self.view.stand_in && is_idle(chunk(i)).is_some();
            if run_bytes == 0 || !(0..in_service).all(goes) {
                continue;
            }
            for i in 0..in_service {
                let resume = is_idle(chunk(i)).unwrap_or(K::Bits::from_u64(0));
                // SAFETY: a chunk in the directory has a header.
                self.leave(unsafe { (*chunk(i).header()).number }, resume);
            }
            self.present -= in_service;
            if pending_here {
                self.pending_count = 0;
            }
            self.give_run(first.at, run_bytes);
        }
    }

    fn give_run(&mut self, data: NonNull<u8>, run_bytes: usize) {
        if let Some(layout) = layout(run_bytes, ChunkLayout::<K, V>::ALIGN) {
            self.growth.gave(run_bytes);
            // SAFETY: the address and the layout are exactly those that the source returned, and no
            // entry points to the memory any more.
            unsafe { self.source.give(Chunk { data, layout }) };
        }
    }

    /// Returns all memory to the source. Afterwards this value is in its initial state.
    pub(crate) fn release(&mut self) {
        // A list of the growth steps is made first, because returning a growth step frees the
        // headers of all its chunks.
        let mut first: Option<NonNull<u8>> = None;
        for number in 0..self.view.count {
            let Some(chunk) = self.view.chunk(number) else { continue };
            // SAFETY: a chunk in the directory has a header.
            let header = unsafe { &mut *chunk.header() };
            if header.run_bytes != 0 {
                header.next = first.replace(chunk.at);
            }
        }
        while let Some(at) = first {
            // SAFETY: the header is valid until its growth step is returned.
            let header = unsafe { ptr::read(SlotChunk::<K, V>::new(at).header()) };
            self.give_run(at, header.run_bytes);
            first = header.next;
        }
        let entries = self.entries.take();
        self.give_aside(entries);
        for list in core::mem::replace(&mut self.free_keys, FreeKeys::new()).into_block_lists() {
            let mut list = list;
            while let Some(block) = list {
                // SAFETY: the block was part of the free keys, and is in one list.
                list = unsafe { Block::next(block) };
                self.give_block(Some(block));
            }
        }
        self.growth.restart();
        self.view = View::NOTHING;
        (self.present, self.pending_count) = (0, 0);
        (self.direct, self.far, self.room) = (0, 0, 0);
    }

    pub(crate) fn add_to(&self, s: &mut Statistics) {
        s.bytes_taken += self.growth.taken();
        s.chunks += self.present + self.pending_count;
        s.growths += self.growth.steps();
    }
}

impl<K: Key, V, S: Source> Drop for Slots<K, V, S> {
    fn drop(&mut self) {
        self.release();
    }
}
