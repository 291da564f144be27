//! Where the keys at hand come from and go to; all of it cold.

use super::SlotMap;
use crate::base::bits::out_of_memory;
use crate::base::full::Cause;
use crate::base::source::Source;
use crate::slot_map::key::{Bits, Key, Words};
use crate::slot_map::keyed::{no_word, ChunkOf, Shape, GROUP};
use core::alloc::Layout;

/// Places for keys at hand in one block: the first, and the most, which are 4 or 8 KiB. They double
/// when they are full, then come more blocks. The bits of the idle are for what has no place
/// there: a slot that goes to them and comes back costs as much again as its insert and removal.
const AT_HAND_FIRST: usize = 64;
const AT_HAND_MAX: usize = 1024;

impl<K: Key, V, S: Source> SlotMap<K, V, S> {
    /// The top of the keys at hand, below which one is ready.
    #[cold]
    #[inline(never)]
    pub(super) fn refill_or_end(&mut self) -> *mut K::Bits {
        if !self.refill() {
            self.refuse();
        }
        self.slots.at_hand.top
    }

    /// The cause to report after `refill` failed.
    #[cold]
    pub(super) fn why_refused(&self) -> Cause {
        match self.slots.is_at_limit() {
            true => Cause::NoSlot,
            false => Cause::NoMemory,
        }
    }

    #[cold]
    pub(super) fn refuse(&self) -> ! {
        assert!(
            !self.slots.is_at_limit(),
            "mallard: every slot that a key of this slot map can name is in use or retired\n  \
             nothing was changed by this call\n  \
             help: take a key type with more bits for the index"
        );
        out_of_memory(Shape::<K, V>::layout().unwrap_or(Layout::new::<V>()))
    }

    /// At least one key is ready. False: refused, and nothing has changed that can be seen.
    #[cold]
    #[inline(never)]
    pub(super) fn refill(&mut self) -> bool {
        if self.slots.at_hand.keys().is_empty() {
            let emptied = self.slots.at_hand.unstore();
            self.slots.give_block(emptied);
        }
        if !self.slots.at_hand.is_empty() {
            return true;
        }
        if !self.slots.at_hand.keys().is_empty() {
            self.unpark();
            return true;
        }
        if self.slots.at_hand.places() == 0 && !self.widen(AT_HAND_FIRST) {
            return false;
        }
        if self.idle == 0 && self.fresh == self.fresh_end && !self.add_chunk() {
            return false;
        }
        if self.idle != 0 {
            self.take_idle();
        } else {
            self.take_fresh();
        }
        true
    }

    /// A few, since all of them would have to be asked again by the next walk.
    fn unpark(&mut self) {
        for &key in self.slots.at_hand.unpark(GROUP / 2) {
            // SAFETY: the slot of a key at hand is in a chunk, and there is no walk now.
            unsafe { self.slots.view.slot_of(key).mark() };
        }
    }

    /// More places for keys at hand, in one block.
    pub(super) fn widen(&mut self, places: usize) -> bool {
        let Some(block) = self.slots.take_block(places) else { return false };
        let before = self.slots.at_hand.widen(block);
        self.slots.give_block(before);
        true
    }

    /// A place for one key more at hand, if there is any memory; the top of them.
    #[cold]
    #[inline(never)]
    pub(super) fn make_way(&mut self) -> *mut K::Bits {
        let places = self.slots.at_hand.places();
        if places == 0 {
            return self.slots.at_hand.top; // a map without memory: no key of it has an element
        }
        if places >= AT_HAND_MAX || !self.widen(2 * places) {
            let spare = self.slots.at_hand.take_spare();
            match spare.or_else(|| self.slots.take_block(AT_HAND_MAX)) {
                Some(block) => self.slots.at_hand.store(block),
                None => self.put_idle(places / 2),
            }
        }
        self.slots.at_hand.top
    }

    /// The slots of those `count` keys of the block that would come last are idle from now on.
    fn put_idle(&mut self, count: usize) {
        for i in 0..count {
            let key = self.slots.at_hand.keys()[i];
            self.make_idle(key);
        }
        self.slots.at_hand.forget(count);
    }

    pub(super) fn make_idle(&mut self, key: K::Bits) {
        let slot = self.slots.view.slot_of(key);
        // SAFETY: the slot is in a chunk, and free.
        let header = unsafe {
            *slot.word() = Words::<K>::without_index(key);
            slot.make_idle();
            &mut *slot.chunk.header()
        };
        if header.idle == 0 {
            header.next = self.with_idle.replace(slot.chunk.at);
        }
        header.idle += 1;
        self.idle += 1;
    }

    /// Idle slots come at hand until half of the places are taken.
    fn take_idle(&mut self) {
        let half = self.slots.at_hand.places() / 2;
        while let Some(at) = self.with_idle {
            if self.slots.at_hand.keys().len() >= half {
                return;
            }
            let chunk = ChunkOf::<K, V>::new(at);
            let before = self.slots.at_hand.keys().len();
            for group in 0..Shape::<K, V>::GROUPS {
                self.take_group(chunk, group, half);
            }
            self.slots.at_hand.keys_mut()[before..].reverse(); // the low numbers come next
            let taken = self.slots.at_hand.keys().len() - before;
            // SAFETY: the chunks in the list are in the directory.
            let header = unsafe { &mut *chunk.header() };
            self.idle -= taken;
            header.idle -= taken;
            if header.idle == 0 {
                self.with_idle = header.next;
            }
        }
    }

    fn take_group(&mut self, chunk: ChunkOf<K, V>, group: usize, most: usize) {
        // SAFETY: the chunk is in the directory, and has so many groups.
        let (bits, number) = unsafe { (&mut *chunk.idle(group), (*chunk.header()).number) };
        let first = number * Shape::<K, V>::SLOTS;
        while *bits != 0 && self.slots.at_hand.keys().len() < most {
            let place = group * GROUP + bits.trailing_zeros() as usize;
            *bits &= *bits - 1;
            let slot = chunk.slot(place);
            // SAFETY: an idle slot's word is its next key but for the index; `most` are places.
            unsafe {
                self.slots
                    .at_hand
                    .push(K::Bits::from_u64((*slot.word()).to_u64() | (first + place) as u64));
                *slot.word() = no_word::<K>();
                slot.mark();
            }
        }
    }

    /// The next slots that were never used: a few at a time, so that a map grows through its
    /// memory as it is used, and of one group, whose marks are in one word.
    fn take_fresh(&mut self) {
        let number = self.fresh / Shape::<K, V>::SLOTS;
        let generation = self.fresh_generation(number);
        let place = self.fresh % Shape::<K, V>::SLOTS;
        let most = (GROUP - place % GROUP).min(self.slots.at_hand.places() / 2);
        let count = most.min(Shape::<K, V>::SLOTS - place).min(self.fresh_end - self.fresh);
        for i in (self.fresh..self.fresh + count).rev() {
            // SAFETY: nothing is at hand, and there are places for twice as many.
            unsafe { self.slots.at_hand.push(Words::<K>::key(i, generation)) };
        }
        let first = self.slots.view.slot_of(Words::<K>::key(self.fresh, generation));
        // SAFETY: so many slots of its group follow it in its chunk, and nobody else changes marks.
        unsafe { first.mark_many(count) };
        self.fresh += count;
    }

    pub(super) fn fresh_generation(&self, number: usize) -> u64 {
        // SAFETY: the directory has an entry for a chunk that is there.
        let word = unsafe { *self.slots.resume_at(number) };
        (word.to_u64() >> K::INDEX_BITS).max(1)
    }

    /// A chunk more, whose slots are fresh, or idle if others are fresh elsewhere.
    pub(super) fn add_chunk(&mut self) -> bool {
        let absent = |&number: &usize| self.slots.view.chunk(number).is_none();
        let number = if self.slots.present == self.slots.view.count {
            self.slots.view.count
        } else {
            (0..self.slots.view.count).find(absent).unwrap_or(self.slots.view.count)
        };
        if self.slots.put(number).is_none() {
            return false;
        }
        let begin = number * Shape::<K, V>::SLOTS + (number == 0) as usize;
        let end = (number + 1) * Shape::<K, V>::SLOTS;
        if self.fresh == self.fresh_end {
            (self.fresh, self.fresh_end) = (begin, end);
        } else if self.fresh_end == begin {
            self.fresh_end = end;
        } else {
            self.make_idle_range(begin, end);
        }
        true
    }

    fn make_idle_range(&mut self, begin: usize, end: usize) {
        for i in begin..end {
            let generation = self.fresh_generation(i / Shape::<K, V>::SLOTS);
            self.make_idle(Words::<K>::key(i, generation));
        }
    }

    /// Makes memory for `more` further elements; fails as `insert` does.
    ///
    /// ```
    /// # use mallard::{Key32, SlotMap};
    /// let mut map: SlotMap<Key32, u64> = (0..5000).fold(SlotMap::new(), |mut map, i| {
    ///     map.insert(i);
    ///     map
    /// });
    /// map.reserve(5000); // as with a `Vec`: 5000 more
    /// assert!(map.capacity() >= 10_000);
    /// ```
    pub fn reserve(&mut self, more: usize) {
        if !self.try_reserve(more) {
            self.refuse();
        }
    }
    /// Makes memory for `more` further elements. False: there is not enough.
    pub fn try_reserve(&mut self, more: usize) -> bool {
        let Some(count) = self.len().checked_add(more) else { return false };
        if more != 0 && self.slots.at_hand.places() == 0 && !self.widen(AT_HAND_FIRST) {
            return false;
        }
        while self.capacity() < count {
            if !self.add_chunk() {
                return false;
            }
        }
        true
    }

    /// Gives memory back in which there is no element, as far as whole steps of growth are
    /// empty. It is remembered which keys are stale: slots that went and come again go on with
    /// the highest generation of their chunk. O(slots that have memory).
    ///
    /// The first chunk stays, and so does one with a slot that is retired or detached.
    pub fn trim(&mut self) {
        loop {
            self.put_idle(self.slots.at_hand.keys().len());
            let emptied = self.slots.at_hand.unstore();
            self.slots.give_block(emptied);
            if self.slots.at_hand.keys().is_empty() {
                break;
            }
        }
        let spare = self.slots.at_hand.take_spare();
        self.slots.give_block(spare);
        let fresh = core::mem::replace(&mut self.fresh, self.fresh_end);
        self.make_idle_range(fresh, self.fresh_end);
        self.slots.trim(Self::idle_since);
        self.list_idle();
    }

    /// Makes the list of the chunks with idle slots anew, the first in front.
    pub(super) fn list_idle(&mut self) {
        (self.idle, self.with_idle) = (0, None);
        for number in (0..self.slots.view.count).rev() {
            let Some(chunk) = self.slots.view.chunk(number) else { continue };
            // SAFETY: a chunk in the directory has a header.
            let header = unsafe { &mut *chunk.header() };
            if header.idle != 0 {
                header.next = self.with_idle.replace(chunk.at);
                self.idle += header.idle;
            }
        }
    }

    /// Of a chunk whose slots are all idle, the highest of their words.
    fn idle_since(chunk: ChunkOf<K, V>) -> Option<K::Bits> {
        // SAFETY: it is in the directory.
        if unsafe { (*chunk.header()).idle } != Shape::<K, V>::SLOTS {
            return None;
        }
        // SAFETY: a chunk has so many words.
        (0..Shape::<K, V>::SLOTS).map(|place| unsafe { *chunk.slot(place).word() }).max()
    }
}
