//! Keyed slots in chunks of a source, found through a directory.

mod as_a_map;
mod at_hand;
mod directory;
mod join;
mod shape;
mod walk;
mod whole;

pub(crate) use as_a_map::{as_a_map, no_element, says_what_is_left};
pub(crate) use at_hand::{AtHand, Block};
pub use join::Join;
pub(crate) use shape::{no_word, ChunkOf, Header, Shape, Slot, GROUP};
pub(crate) use walk::Walk;

use crate::base::bits::layout;
use crate::base::growth::{Growth, GrowthState};
use crate::base::source::{Chunk, Source};
use crate::base::statistics::Statistics;
use crate::slot_map::key::{Bits, Key};
use core::alloc::Layout;
use core::marker::PhantomData;
use core::ptr::{self, NonNull};

struct NoChunk([NonNull<u8>; 1]);
// SAFETY: nobody writes it, or what it points to.
unsafe impl Sync for NoChunk {}

/// What stands in where there is no memory: a directory of one chunk, of one slot, whose word
/// is no key. So nothing on a hot path asks whether there is any.
static NO_CHUNK: NoChunk = NoChunk([NO_WORD]);
const NO_WORD: NonNull<u8> = {
    static NO_WORD: u64 = 0;
    // SAFETY: statics are not at null.
    unsafe { NonNull::new_unchecked((&raw const NO_WORD).cast_mut().cast()) }
};

/// Where the chunks of a map are: all that a lookup or a walk asks.
pub(crate) struct View<K, V> {
    directory: *mut NonNull<u8>,
    /// Slots that the directory has entries for, less 1.
    mask: usize,
    /// Number of directory entries up to the last chunk. Entries that the mask can reach are indexed by
    /// chunk number; after these come only entries of far chunks, with greater numbers (`directory`).
    pub(crate) count: usize,
    /// What entries without a chunk name: a chunk all the same. What its words say of their own
    /// indices is wrong for every other, so no key is alive there.
    stand_in: NonNull<u8>,
    marker: PhantomData<(K, V)>,
}

impl<K: Key, V> View<K, V> {
    const NOTHING: Self = Self {
        directory: (&raw const NO_CHUNK.0).cast_mut().cast(),
        mask: 0,
        count: 0,
        stand_in: NO_WORD,
        marker: PhantomData,
    };

    /// The slot that a key addresses. Its word may be read, whatever the key; all else only if
    /// the word is the key.
    #[inline(always)]
    pub(crate) fn slot_of(&self, key: K::Bits) -> Slot<K, V> {
        let i = key.to_u64() as usize & self.mask;
        // SAFETY: the directory has an entry for each chunk up to the mask.
        let chunk = unsafe { *self.directory.add(i / Shape::<K, V>::SLOTS) };
        ChunkOf::new(chunk).slot(i % Shape::<K, V>::SLOTS)
    }

    /// The slot of a live element.
    #[inline(always)]
    pub(crate) fn find(&self, key: K) -> Option<Slot<K, V>> {
        let slot = self.slot_of(key.to_bits());
        // SAFETY: any slot's word may be read.
        (unsafe { *slot.word() } == key.to_bits()).then_some(slot)
    }

    /// The chunk at a place below `count`, if any. In a slot map the place is the chunk number.
    #[inline]
    pub(crate) fn chunk(&self, place: usize) -> Option<ChunkOf<K, V>> {
        debug_assert!(place < self.count);
        // SAFETY: the directory has an entry for it.
        let chunk = ChunkOf::<K, V>::new(unsafe { *self.directory.add(place) });
        // SAFETY: entries name chunks, and those have a header.
        let own = unsafe { (*chunk.header()).number };
        let is_own = chunk.at != self.stand_in || own == place || place >= self.by_number();
        is_own.then_some(chunk)
    }
    /// Entries by number.
    #[inline]
    fn by_number(&self) -> usize {
        self.mask / Shape::<K, V>::SLOTS + 1
    }
}

/// The chunks of one map and where they come from. It knows of words and bits, and not of
/// values: who has it ends their lives.
pub(crate) struct Slots<K: Key, V, S: Source> {
    pub(crate) view: View<K, V>,
    /// Entries of the directory that have a chunk.
    pub(crate) present: usize,
    /// Number of direct entries, a power of two once there is memory. Entries of far chunks follow.
    by_number: usize,
    far: usize,
    /// Number of entries that the directory has memory for.
    room: usize,
    entries: Option<Chunk>,
    /// A secondary map has no use for it, and leaves it empty.
    pub(crate) at_hand: AtHand<K::Bits>,
    /// Chunks of the last run that are not in the directory.
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
            by_number: 0,
            far: 0,
            room: 0,
            entries: None,
            at_hand: AtHand::new(),
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
    /// Slots there is memory for, slot 0 included.
    pub(crate) fn capacity(&self) -> usize {
        (self.present + self.pending_count).min(Shape::<K, V>::CHUNKS_MAX) * Shape::<K, V>::SLOTS
    }
    pub(crate) fn is_at_limit(&self) -> bool {
        self.present == Shape::<K, V>::CHUNKS_MAX
    }

    pub(crate) fn walk(&self) -> Walk<K, V> {
        Walk::new(&self.view, self.at_hand.is_doubtful())
    }

    /// The generation in words of a chunk that is not there, from which its slots are to go on
    /// when it comes again; 0: from the first.
    pub(crate) fn resume_at(&self, number: usize) -> *mut K::Bits {
        debug_assert!(number < self.by_number);
        self.view.directory.wrapping_add(self.room).cast::<K::Bits>().wrapping_add(number)
    }

    /// Puts a chunk at a number that has none: words and bits 0. `None`: refused, and nothing has
    /// changed that can be seen.
    #[cold]
    #[inline(never)]
    pub(crate) fn put(&mut self, number: usize) -> Option<ChunkOf<K, V>> {
        if number >= Shape::<K, V>::CHUNKS_MAX {
            return None;
        }
        let place = self.make_place(number)?;
        let mut run_bytes = 0;
        if self.pending_count == 0 {
            let least = Shape::<K, V>::layout()?;
            let whole = |bytes| bytes & !(Shape::<K, V>::ALIGN - 1);
            let run = self.growth.take(&self.source, least, least.size(), whole)?;
            self.pending = run.data;
            self.pending_count = run.layout.size() / Shape::<K, V>::BYTES;
            run_bytes = run.layout.size();
        }
        let chunk = ChunkOf::<K, V>::new(self.pending);
        // SAFETY: it is in the run, or its end.
        self.pending = unsafe { self.pending.add(Shape::<K, V>::BYTES) };
        self.pending_count -= 1;
        let header = Header { number, idle: 0, next: None, run_bytes };
        // SAFETY: it is memory that the source gave, and nobody has used it yet.
        unsafe { chunk.init(header) };
        if self.present == 0 {
            self.view.stand_in = chunk.at;
            for i in 0..self.by_number {
                // SAFETY: the directory has room for these.
                unsafe { *self.view.directory.add(i) = chunk.at };
            }
            self.view.mask = self.by_number * Shape::<K, V>::SLOTS - 1;
        }
        self.enter(place, chunk.at);
        self.present += 1;
        Some(chunk)
    }

    fn take_aside(&mut self, wanted: Layout) -> Option<Chunk> {
        if wanted.size() > self.growth.left() {
            return None;
        }
        let taken = self.source.try_take(wanted)?;
        self.growth.took_aside(taken.layout.size());
        Some(taken)
    }
    fn give_aside(&mut self, taken: Option<Chunk>) {
        if let Some(chunk) = taken {
            self.growth.gave(chunk.layout.size());
            // SAFETY: it is from `take_aside`, and nobody uses it any more.
            unsafe { self.source.give(chunk) };
        }
    }

    /// Room for so many keys.
    pub(crate) fn take_block(&mut self, places: usize) -> Option<NonNull<Block>> {
        let taken = self.take_aside(Block::layout::<K::Bits>(places)?)?;
        // SAFETY: it was just taken.
        Some(unsafe { Block::make(taken.data, taken.layout, places) })
    }
    pub(crate) fn give_block(&mut self, block: Option<NonNull<Block>>) {
        // SAFETY: it is from `take_block`, and nobody uses it any more.
        let chunk = block.map(|block| unsafe { Block::chunk(block) });
        self.give_aside(chunk);
    }

    /// Gives back those runs of which `is_idle` says so of all chunks, with the word that their slots are
    /// to go on from. The stand-in stays.
    pub(crate) fn trim(&mut self, is_idle: impl Fn(ChunkOf<K, V>) -> Option<K::Bits>) {
        // From the last chunk on: when the entry of a far chunk goes, later entries move down.
        for place in (0..self.view.count).rev() {
            let there = (place < self.view.count).then(|| self.view.chunk(place)).flatten();
            let Some(first) = there else { continue };
            // SAFETY: a chunk in the directory has a header.
            let run_bytes = unsafe { (*first.header()).run_bytes };
            let chunks = run_bytes / Shape::<K, V>::BYTES;
            let begin = first.at.addr().get();
            let pending_here = self.pending_count != 0
                && (begin..begin + chunks * Shape::<K, V>::BYTES)
                    .contains(&self.pending.addr().get());
            let in_service = chunks - if pending_here { self.pending_count } else { 0 };
            // SAFETY: a run has so many chunks.
            let chunk = |i| ChunkOf::new(unsafe { first.at.add(i * Shape::<K, V>::BYTES) });
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
        if let Some(layout) = layout(run_bytes, Shape::<K, V>::ALIGN) {
            self.growth.gave(run_bytes);
            // SAFETY: a run as the source gave it; no entry names a chunk of it any more.
            unsafe { self.source.give(Chunk { data, layout }) };
        }
    }

    /// Gives everything back, and is as new.
    pub(crate) fn release(&mut self) {
        // First a list, since what a run gives back has the headers of its other chunks.
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
            // SAFETY: as above.
            let header = unsafe { ptr::read(ChunkOf::<K, V>::new(at).header()) };
            self.give_run(at, header.run_bytes);
            first = header.next;
        }
        let entries = self.entries.take();
        self.give_aside(entries);
        for list in core::mem::replace(&mut self.at_hand, AtHand::new()).into_lists() {
            let mut list = list;
            while let Some(block) = list {
                // SAFETY: it was the stack's, and is in one list.
                list = unsafe { Block::next(block) };
                self.give_block(Some(block));
            }
        }
        self.growth.restart();
        self.view = View::NOTHING;
        (self.present, self.pending_count) = (0, 0);
        (self.by_number, self.far, self.room) = (0, 0, 0);
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
