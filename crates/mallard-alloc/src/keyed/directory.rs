//! Where in the directory of a map the chunk of a number is.

use super::{ChunkOf, Shape, Slot, Slots};
use crate::bits::layout;
use crate::key::{Bits, Key};
use crate::source::Source;
use core::ptr::{self, NonNull};

/// A directory has this many entries by number before it has to be in proportion to the chunks.
const BY_NUMBER_MIN: usize = 4096;

// | entries by number: 0 .. by_number | far ones: by_number .. by_number + far | .. room
//
// A lookup knows the entries by number alone. Their count is a power of two, and the numbers of a slot
// map have all of them. Only a secondary map may be given a key whose number is far beyond all others:
// by one of a very large map, or by one that somebody made up. An entry for each number before it would
// take 64 MiB for one value (docs/decisions/0035-far-chunks.md). So there are at most 1,024 entries by
// number for each chunk, and 4,096 for a few. The chunks of numbers beyond are far ones, in the order of
// their numbers, and found by bisection. They become entries by number when there are chunks enough.
impl<K: Key, V, S: Source> Slots<K, V, S> {
    /// The place of a number that has a chunk, or may have one by number.
    pub(crate) fn place_of(&self, number: usize) -> Option<usize> {
        if number < self.by_number {
            return Some(number);
        }
        let place = self.far_place(number);
        (place < self.by_number + self.far && self.number_at(place) == number).then_some(place)
    }

    /// Where a far number is, or would be.
    fn far_place(&self, number: usize) -> usize {
        let (mut begin, mut end) = (self.by_number, self.by_number + self.far);
        while begin < end {
            let middle = begin + (end - begin) / 2;
            match self.number_at(middle) < number {
                true => begin = middle + 1,
                false => end = middle,
            }
        }
        begin
    }

    /// The number of the chunk at a place that has one.
    fn number_at(&self, place: usize) -> usize {
        // SAFETY: entries name chunks, and those have a header.
        unsafe { (*ChunkOf::<K, V>::new(*self.view.directory.add(place)).header()).number }
    }

    /// The chunk of a number, if it has one.
    pub(crate) fn chunk_of(&self, number: usize) -> Option<ChunkOf<K, V>> {
        let place = self.place_of(number).filter(|place| *place < self.view.count)?;
        self.view.chunk(place)
    }

    /// The slot of a live element, also in a far chunk. Asked first, so that a loop asks once.
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
        let chunk = self.chunk_of(key.index() / Shape::<K, V>::SLOTS)?;
        let slot = chunk.slot(key.index() % Shape::<K, V>::SLOTS);
        // SAFETY: it is in a chunk.
        (unsafe { *slot.word() } == key.to_bits()).then_some(slot)
    }

    /// A place for the chunk of a number that has none. Between those of far chunks there is a gap then,
    /// which the caller fills. `None`: refused, and nothing has changed that can be seen.
    pub(super) fn make_place(&mut self, number: usize) -> Option<usize> {
        if number < self.by_number {
            return Some(number);
        }
        let first = Shape::<K, V>::CHUNKS_MAX.min(8);
        let wanted = (number + 1).next_power_of_two().max(first);
        if wanted <= BY_NUMBER_MIN.max(1024 * (self.present + 1)) {
            return self.make_room(wanted, wanted + self.far).then_some(number);
        }
        let needed = self.by_number + self.far + 1;
        if needed > self.room {
            let by_number = self.by_number.max(first);
            if !self.make_room(by_number, by_number + (2 * self.far).max(8)) {
                return None;
            }
        }
        Some(self.far_place(number))
    }

    /// The chunk, whose header is made, is from now on at its place, from `make_place`.
    pub(super) fn enter(&mut self, place: usize, chunk: NonNull<u8>) {
        // SAFETY: there is room for one more entry, and of far ones `far` are in use.
        unsafe {
            let at = self.view.directory.add(place);
            if place >= self.by_number {
                ptr::copy(at, at.add(1), self.by_number + self.far - place);
                self.far += 1;
            }
            *at = chunk;
        }
        self.view.count = match self.far {
            0 => self.view.count.max(place + 1),
            far => self.by_number + far,
        };
    }

    /// A chunk is no longer there. `resume`: the generation, in a word, that its slots go on from.
    pub(super) fn leave(&mut self, number: usize, resume: K::Bits) {
        let Some(place) = self.place_of(number) else { return };
        // SAFETY: the directory has this entry, and those behind it.
        unsafe {
            let at = self.view.directory.add(place);
            if place < self.by_number {
                *at = self.view.stand_in;
                *self.resume_at(number) = resume;
            } else {
                ptr::copy(at.add(1), at, self.by_number + self.far - place - 1);
                self.far -= 1;
                self.view.count = self.by_number + self.far;
            }
        }
    }

    /// A directory with `by_number` entries by number, at least as many as now, of `room` in all.
    pub(super) fn make_room(&mut self, by_number: usize, room: usize) -> bool {
        let entry_bytes = size_of::<NonNull<u8>>() + size_of::<K::Bits>();
        let entries = room.checked_mul(entry_bytes).and_then(|bytes| layout(bytes, 8));
        let Some(taken) = entries.and_then(|entries| self.take_aside(entries)) else {
            return false;
        };
        let directory = taken.data.as_ptr().cast::<NonNull<u8>>();
        let resume = directory.wrapping_add(room).cast::<K::Bits>();
        let there = self.view.count.min(self.by_number);
        for i in 0..room {
            let (entry, word) = if i < there {
                // SAFETY: the old directory has so many entries of both kinds.
                unsafe { (*self.view.directory.add(i), *self.resume_at(i)) }
            } else {
                (self.view.stand_in, K::Bits::from_u64(0))
            };
            // SAFETY: the new one has `room` of both kinds.
            unsafe {
                directory.add(i).write(entry);
                resume.add(i).write(word);
            }
        }
        let mut far = 0;
        for place in self.by_number..self.by_number + self.far {
            let number = self.number_at(place);
            let place_now = if number < by_number { number } else { by_number + far };
            far += (number >= by_number) as usize;
            // SAFETY: the old directory has this entry, and the new one has room for all.
            unsafe { *directory.add(place_now) = *self.view.directory.add(place) };
        }
        if self.far != 0 {
            self.view.count = by_number + far; // those between may have none
        }
        let before = self.entries.replace(taken);
        self.give_aside(before);
        self.view.directory = directory;
        (self.by_number, self.far, self.room) = (by_number, far, room);
        if self.present != 0 {
            self.view.mask = by_number * Shape::<K, V>::SLOTS - 1;
        }
        true
    }
}
