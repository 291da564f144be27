//! The directory of a map, which finds a chunk by its number.

use super::{ChunkLayout, Slot, SlotChunk, Slots};
use crate::base::bits::layout;
use crate::base::source::Source;
use crate::slot_map::key::{Bits, Key};
use core::alloc::Layout;
use core::ptr::{self, NonNull};

/// The number of direct entries that every directory may have. A larger number must be in
/// proportion to the number of chunks.
const BY_NUMBER_MIN: usize = 4096;

// | direct entries: 0 .. direct | far entries: direct .. direct + far | .. room
//
// Direct entries are indexed by chunk number, and the number of direct entries is a power of two.
// In a slot map all entries are direct. Only a secondary map can get a key whose chunk number is
// far beyond all others, such as a key of a very large map, or a made-up key. With direct entries
// alone, such a key would use 64 MiB for one value (docs/decisions/0035-far-chunks.md). So the
// number of direct entries is at most 1,024 times the number of chunks, or 4,096 if that is more.
// Chunks with larger numbers are called far. The entries of far chunks are sorted by number, and
// found by binary search. Far entries become direct when there are enough chunks.
impl<K: Key, V, S: Source> Slots<K, V, S> {
    /// Returns the directory place of a chunk number. The place is the direct entry, used or not,
    /// or the entry of the far chunk.
    pub(crate) fn place_of(&self, number: usize) -> Option<usize> {
        if number < self.direct {
            return Some(number);
        }
        let place = self.far_place(number);
        (place < self.direct + self.far && self.number_at(place) == number).then_some(place)
    }

    /// Returns the directory place of a far chunk, or the place where its entry would be inserted.
    fn far_place(&self, number: usize) -> usize {
        let (mut begin, mut end) = (self.direct, self.direct + self.far);
        while begin < end {
            let middle = begin + (end - begin) / 2;
            match self.number_at(middle) < number {
                true => begin = middle + 1,
                false => end = middle,
            }
        }
        begin
    }

    /// Returns the number of the chunk at a place of the directory. Requires that the place has a
    /// chunk.
    fn number_at(&self, place: usize) -> usize {
        // SAFETY: entries point to chunks, and a chunk has a header.
        unsafe { (*SlotChunk::<K, V>::new(*self.view.directory.add(place)).header()).number }
    }

    /// Returns the chunk with this number, if there is one.
    pub(crate) fn chunk_of(&self, number: usize) -> Option<SlotChunk<K, V>> {
        let place = self.place_of(number).filter(|place| *place < self.view.count)?;
        self.view.chunk(place)
    }

    /// Returns the slot of a key's live element, in a direct or far chunk. The test for far chunks
    /// comes first, so that the compiler can move the test out of a loop.
    #[inline(always)]
    pub(crate) fn find(&self, key: K) -> Option<Slot<K, V>> {
        if self.far != 0 {
            return self.find_far(key);
        }
        self.view.find(key)
    }
    #[cold]
    #[inline(never)]
    fn find_far(&self, key: K) -> Option<Slot<K, V>> {
        let chunk = self.chunk_of(key.index() / ChunkLayout::<K, V>::SLOTS)?;
        let slot = chunk.slot(key.index() % ChunkLayout::<K, V>::SLOTS);
        // SAFETY: the slot is in a chunk.
        (unsafe { *slot.word() } == key.to_bits()).then_some(slot)
    }

    /// Makes a place in the directory for a new chunk with this number. A place among the far
    /// entries is a gap that the caller has to fill. If there is no memory, returns `None`, and
    /// leaves the elements and keys unchanged.
    pub(super) fn make_place(&mut self, number: usize) -> Option<usize> {
        if number < self.direct {
            return Some(number);
        }
        let (direct, room) = self.room_for(number);
        if number < direct {
            return self.make_room(direct, room).then_some(number);
        }
        let has_room = self.direct + self.far < self.room || self.make_room(direct, room);
        has_room.then(|| self.far_place(number))
    }

    /// Returns how many direct entries, and how many entries in all, the directory needs for a
    /// chunk that has no place in the directory yet.
    fn room_for(&self, number: usize) -> (usize, usize) {
        let first = ChunkLayout::<K, V>::CHUNKS_MAX.min(8);
        let wanted = (number + 1).next_power_of_two().max(first);
        if wanted <= BY_NUMBER_MIN.max(1024 * (self.present + 1)) {
            return (wanted, wanted + self.far);
        }
        let direct = self.direct.max(first);
        (direct, direct + (2 * self.far).max(8))
    }
    fn layout(room: usize) -> Option<Layout> {
        let entry_bytes = size_of::<NonNull<u8>>() + size_of::<K::Bits>();
        room.checked_mul(entry_bytes).and_then(|bytes| layout(bytes, 8))
    }
    /// Returns the size in bytes of the directory that a map without chunks still needs for this
    /// chunk.
    pub(super) fn bytes_for(&self, number: usize) -> usize {
        let room = if number < self.direct { 0 } else { self.room_for(number).1 };
        Self::layout(room).map_or(usize::MAX, |layout| layout.size())
    }

    /// Stores a chunk at a directory place that `make_place` returned. The header of the chunk is
    /// initialised.
    pub(super) fn enter(&mut self, place: usize, chunk: NonNull<u8>) {
        // SAFETY: the directory has memory for one more entry, and `far` of the far entries are in
        // use.
        unsafe {
            let at = self.view.directory.add(place);
            if place >= self.direct {
                ptr::copy(at, at.add(1), self.direct + self.far - place);
                self.far += 1;
            }
            *at = chunk;
        }
        self.view.count = match self.far {
            0 => self.view.count.max(place + 1),
            far => self.direct + far,
        };
    }

    /// Removes a chunk from the directory. If a chunk with this number is added again, its slots
    /// continue from the generation in `resume`.
    pub(super) fn leave(&mut self, number: usize, resume: K::Bits) {
        let Some(place) = self.place_of(number) else { return };
        // SAFETY: the directory has this entry and the entries after it.
        unsafe {
            let at = self.view.directory.add(place);
            if place < self.direct {
                *at = self.view.stand_in;
                *self.resume_at(number) = resume;
            } else {
                ptr::copy(at.add(1), at, self.direct + self.far - place - 1);
                self.far -= 1;
                self.view.count = self.direct + self.far;
            }
        }
    }

    /// Grows the directory to `direct` direct entries (not fewer than now), and to `room` entries
    /// in all.
    pub(super) fn make_room(&mut self, direct: usize, room: usize) -> bool {
        let Some(taken) = Self::layout(room).and_then(|entries| self.take_aside(entries)) else {
            return false;
        };
        let directory = taken.data.as_ptr().cast::<NonNull<u8>>();
        let resume = directory.wrapping_add(room).cast::<K::Bits>();
        let there = self.view.count.min(self.direct);
        for i in 0..room {
            let (entry, word) = if i < there {
                // SAFETY: `i` is below the number of entries of both kinds in the old directory.
                unsafe { (*self.view.directory.add(i), *self.resume_at(i)) }
            } else {
                (self.view.stand_in, K::Bits::from_u64(0))
            };
            // SAFETY: the new directory has `room` entries of both kinds, so `i` is within it.
            unsafe {
                directory.add(i).write(entry);
                resume.add(i).write(word);
            }
        }
        let mut far = 0;
        for place in self.direct..self.direct + self.far {
            let number = self.number_at(place);
            let place_now = if number < direct { number } else { direct + far };
            far += (number >= direct) as usize;
            // SAFETY: the old directory has this entry, and the new one is large enough for all
            // entries.
            unsafe { *directory.add(place_now) = *self.view.directory.add(place) };
        }
        if self.far != 0 {
            self.view.count = direct + far; // some direct entries may have no chunk
        }
        let before = self.entries.replace(taken);
        self.give_aside(before);
        self.view.directory = directory;
        (self.direct, self.far, self.room) = (direct, far, room);
        if self.present != 0 {
            self.view.mask = direct * ChunkLayout::<K, V>::SLOTS - 1;
        }
        true
    }
}
