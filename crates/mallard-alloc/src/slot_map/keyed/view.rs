//! The view of a map's chunks that lookups and iterators use.

use super::chunk::{ChunkLayout, Slot, SlotChunk};
use crate::slot_map::key::{Bits, Key};
use core::marker::PhantomData;
use core::ptr::NonNull;

struct NoChunk([NonNull<u8>; 1]);
// SAFETY: nothing writes to the value, or to the word that it points to.
unsafe impl Sync for NoChunk {}

/// The directory of a map without memory. It has one chunk with one slot, whose word equals no key.
/// So a lookup in such a map fails like any other lookup, and no hot path tests whether the map has
/// memory.
static NO_CHUNK: NoChunk = NoChunk([NO_WORD]);
pub(super) const NO_WORD: NonNull<u8> = {
    static NO_WORD: u64 = 0;
    // SAFETY: the address of a `static` is not 0.
    unsafe { NonNull::new_unchecked((&raw const NO_WORD).cast_mut().cast()) }
};

/// The view of a map's chunks that lookups and iterators use.
pub(crate) struct View<K, V> {
    pub(super) directory: *mut NonNull<u8>,
    /// The number of slots that the direct entries cover, minus 1.
    pub(super) mask: usize,
    /// The number of directory entries up to the last chunk. Direct entries are indexed by chunk
    /// number, and the mask limits an index to them. The entries of far chunks follow (see
    /// `directory`).
    pub(crate) count: usize,
    /// A real chunk of the map, to which the directory entries of absent chunks point. So a lookup
    /// of a key whose chunk is absent reads a word of this chunk. No word there has the index of
    /// the key, so the lookup fails.
    pub(super) stand_in: NonNull<u8>,
    marker: PhantomData<(K, V)>,
}

impl<K: Key, V> View<K, V> {
    pub(super) const NOTHING: Self = Self {
        directory: (&raw const NO_CHUNK.0).cast_mut().cast(),
        mask: 0,
        count: 0,
        stand_in: NO_WORD,
        marker: PhantomData,
    };

    /// Returns the slot that a key addresses. The caller may always read the word of the slot. The
    /// caller may use everything else only if the word equals the key.
    #[inline(always)]
    pub(crate) fn slot_of(&self, key: K::Bits) -> Slot<K, V> {
        let i = key.to_u64() as usize & self.mask;
        // SAFETY: the directory has an entry for each chunk up to the mask.
        let chunk = unsafe { *self.directory.add(i / ChunkLayout::<K, V>::SLOTS) };
        SlotChunk::new(chunk).slot(i % ChunkLayout::<K, V>::SLOTS)
    }

    /// Returns the slot of a key's live element.
    #[inline(always)]
    pub(crate) fn find(&self, key: K) -> Option<Slot<K, V>> {
        let slot = self.slot_of(key.to_bits());
        // SAFETY: the word of every slot may be read.
        (unsafe { *slot.word() } == key.to_bits()).then_some(slot)
    }

    /// Returns the chunk at a directory place below `count`, if there is a chunk. In a slot map the
    /// place is the chunk number.
    #[inline]
    pub(crate) fn chunk(&self, place: usize) -> Option<SlotChunk<K, V>> {
        debug_assert!(place < self.count);
        // SAFETY: `place` is below the number of entries.
        let chunk = SlotChunk::<K, V>::new(unsafe { *self.directory.add(place) });
        // SAFETY: entries point to chunks, and a chunk has a header.
        let own = unsafe { (*chunk.header()).number };
        let is_own = chunk.at != self.stand_in || own == place || place >= self.direct();
        is_own.then_some(chunk)
    }
    /// Returns the number of direct entries.
    #[inline]
    pub(super) fn direct(&self) -> usize {
        self.mask / ChunkLayout::<K, V>::SLOTS + 1
    }
}
