//! The slow paths of insert and remove. They supply free keys when none are left, and make room
//! when the current block of free keys is full.

use super::SlotMap;
use crate::base::bits::out_of_memory;
use crate::base::full::Cause;
use crate::base::source::Source;
use crate::slot_map::key::{Bits, Key, Words};
use crate::slot_map::keyed::{free_word, Block, ChunkLayout, SlotChunk, GROUP};
use core::alloc::Layout;

/// The number of free keys in the first block. A full block is replaced by a block of twice the
/// size, up to `FREE_KEYS_MAX` keys (4 or 8 KiB). After that, more blocks are added. If there is no
/// memory for another block, slots become idle, that is, their next key is stored in their own
/// word. Making a slot idle and using it again costs as much as another insert and removal.
const FREE_KEYS_FIRST: usize = 64;
const FREE_KEYS_MAX: usize = 1024;

impl<K: Key, V, S: Source> SlotMap<K, V, S> {
    /// Refills the free keys, and returns the address above the last key. Aborts if there is no
    /// memory, and panics if no slot is left.
    #[cold]
    #[inline(never)]
    pub(super) fn refill_or_abort(&mut self) -> *mut K::Bits {
        if !self.refill() {
            self.no_slot_or_memory();
        }
        self.slots.free_keys.top
    }

    /// Returns the size of the first key block in bytes, or 0 if the map has a block already.
    fn first_keys_bytes(&self) -> usize {
        let first = Block::layout::<K::Bits>(FREE_KEYS_FIRST);
        first.filter(|_| self.slots.free_keys.places() == 0).map_or(0, |block| block.size())
    }

    /// Makes the first block of free keys, unless the map has a block. Returns `false` if there is
    /// no memory for the block, or if the source is a buffer that may have no memory for the first
    /// chunk.
    pub(super) fn make_first_keys(&mut self) -> bool {
        self.slots.free_keys.places() != 0
            || self.slots.missing(0, self.first_keys_bytes()) == 0 && self.widen(FREE_KEYS_FIRST)
    }

    /// Returns the cause to report after `refill` has failed.
    #[cold]
    pub(super) fn failure_cause(&self) -> Cause {
        match self.slots.is_at_limit() {
            true => Cause::NoSlot,
            false => self.slots.refusal(0, self.first_keys_bytes()),
        }
    }

    #[cold]
    pub(super) fn no_slot_or_memory(&self) -> ! {
        assert!(
            !self.slots.is_at_limit(),
            "mallard: every slot within the key's index range is in use or retired\n  \
             this call changed nothing\n  \
             help: use a key type with more bits for the index"
        );
        out_of_memory(ChunkLayout::<K, V>::layout().unwrap_or(Layout::new::<V>()))
    }

    /// Makes sure that there is a free key. Returns `false`, and leaves the elements and keys
    /// unchanged, if no free key can be added.
    #[cold]
    #[inline(never)]
    pub(super) fn refill(&mut self) -> bool {
        if self.slots.free_keys.keys().is_empty() {
            let emptied = self.slots.free_keys.unstore();
            self.slots.give_block(emptied);
        }
        if !self.slots.free_keys.is_empty() {
            return true;
        }
        if !self.slots.free_keys.keys().is_empty() {
            self.mark_some();
            return true;
        }
        if !self.make_first_keys() {
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

    /// Sets the slots' mark bits for a few unmarked free keys. If the slots of all free keys were
    /// marked, the next iterator would have to test each slot.
    fn mark_some(&mut self) {
        for &key in self.slots.free_keys.mark_some(GROUP / 2) {
            // SAFETY: the slot of a free key is in a chunk, and there is no iterator now.
            unsafe { self.slots.view.slot_of(key).mark() };
        }
    }

    /// Replaces the current block of free keys by a larger block. Returns `false` if there is no
    /// memory.
    pub(super) fn widen(&mut self, places: usize) -> bool {
        let Some(block) = self.slots.take_block(places) else { return false };
        let before = self.slots.free_keys.widen(block);
        self.slots.give_block(before);
        true
    }

    /// Makes room for one more free key, if the map has memory. Returns the address above the last
    /// free key.
    #[cold]
    #[inline(never)]
    pub(super) fn make_room_for_key(&mut self) -> *mut K::Bits {
        let places = self.slots.free_keys.places();
        if places == 0 {
            return self.slots.free_keys.top; // no memory, so no element can be removed
        }
        if places >= FREE_KEYS_MAX || !self.widen(2 * places) {
            let spare = self.slots.free_keys.take_spare();
            match spare.or_else(|| self.slots.take_block(FREE_KEYS_MAX)) {
                Some(block) => self.slots.free_keys.store(block),
                None => self.move_to_idle(places / 2),
            }
        }
        self.slots.free_keys.top
    }

    /// Removes the `count` free keys that would be used last, and makes their slots idle. An idle
    /// slot stores its next key in its own word.
    fn move_to_idle(&mut self, count: usize) {
        for i in 0..count {
            let key = self.slots.free_keys.keys()[i];
            self.make_idle(key);
        }
        self.slots.free_keys.forget(count);
    }

    pub(super) fn make_idle(&mut self, key: K::Bits) {
        let slot = self.slots.view.slot_of(key);
        // SAFETY: the slot is in a chunk, and is free.
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

    /// Adds the next keys of idle slots to the free keys, until half of the block is full.
    fn take_idle(&mut self) {
        let half = self.slots.free_keys.places() / 2;
        while let Some(at) = self.with_idle {
            if self.slots.free_keys.keys().len() >= half {
                return;
            }
            let chunk = SlotChunk::<K, V>::new(at);
            let before = self.slots.free_keys.keys().len();
            for group in 0..ChunkLayout::<K, V>::GROUPS {
                self.take_group(chunk, group, half);
            }
            self.slots.free_keys.keys_mut()[before..].reverse(); // low indices are used next
            let taken = self.slots.free_keys.keys().len() - before;
            // SAFETY: the chunks in the list are in the directory, and have a header.
            let header = unsafe { &mut *chunk.header() };
            self.idle -= taken;
            header.idle -= taken;
            if header.idle == 0 {
                self.with_idle = header.next;
            }
        }
    }

    fn take_group(&mut self, chunk: SlotChunk<K, V>, group: usize, most: usize) {
        // SAFETY: the chunk is in the directory, and `group` is below its number of groups.
        let (bits, number) = unsafe { (&mut *chunk.idle(group), (*chunk.header()).number) };
        let first = number * ChunkLayout::<K, V>::SLOTS;
        while *bits != 0 && self.slots.free_keys.keys().len() < most {
            let place = group * GROUP + bits.trailing_zeros() as usize;
            *bits &= *bits - 1;
            let slot = chunk.slot(place);
            // SAFETY: the word of an idle slot is its next key without the index. The block has
            // places for `most` more keys.
            unsafe {
                self.slots
                    .free_keys
                    .push(K::Bits::from_u64((*slot.word()).to_u64() | (first + place) as u64));
                *slot.word() = free_word::<K>();
                slot.mark();
            }
        }
    }

    /// Adds keys of fresh (never used) slots to the free keys. Only a few slots are added at a
    /// time, so that a map touches its memory only as it grows. All of these slots are in one
    /// group, whose mark bits are in one machine word.
    fn take_fresh(&mut self) {
        let number = self.fresh / ChunkLayout::<K, V>::SLOTS;
        let generation = self.fresh_generation(number);
        let place = self.fresh % ChunkLayout::<K, V>::SLOTS;
        let most = (GROUP - place % GROUP).min(self.slots.free_keys.places() / 2);
        let count = most.min(ChunkLayout::<K, V>::SLOTS - place).min(self.fresh_end - self.fresh);
        for i in (self.fresh..self.fresh + count).rev() {
            // SAFETY: there are no free keys, and the block has room for twice as many keys as are
            // pushed.
            unsafe { self.slots.free_keys.push(Words::<K>::key(i, generation)) };
        }
        let first = self.slots.view.slot_of(Words::<K>::key(self.fresh, generation));
        // SAFETY: the group has at least `count` more slots in this chunk, and there is no iterator
        // now.
        unsafe { first.mark_many(count) };
        self.fresh += count;
    }

    pub(super) fn fresh_generation(&self, number: usize) -> u64 {
        // SAFETY: the directory has an entry for every chunk of the map.
        let word = unsafe { *self.slots.resume_at(number) };
        (word.to_u64() >> K::INDEX_BITS).max(1)
    }

    /// Adds a chunk. Its slots become fresh slots (never used), or idle slots if another chunk
    /// still has fresh slots.
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
        let begin = number * ChunkLayout::<K, V>::SLOTS + (number == 0) as usize;
        let end = (number + 1) * ChunkLayout::<K, V>::SLOTS;
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
            let generation = self.fresh_generation(i / ChunkLayout::<K, V>::SLOTS);
            self.make_idle(Words::<K>::key(i, generation));
        }
    }

    /// Allocates memory for `more` further elements. Aborts or panics like `insert`.
    ///
    /// ```
    /// # use mallard::{Key32, SlotMap};
    /// let mut map: SlotMap<Key32, u64> = (0..5000).fold(SlotMap::new(), |mut map, i| {
    ///     map.insert(i);
    ///     map
    /// });
    /// map.reserve(5000); // memory for 5000 more elements, as with a `Vec`
    /// assert!(map.capacity() >= 10_000);
    /// ```
    pub fn reserve(&mut self, more: usize) {
        if !self.try_reserve(more) {
            self.no_slot_or_memory();
        }
    }
    /// Allocates memory for `more` further elements. Returns `false` if there is not enough memory.
    pub fn try_reserve(&mut self, more: usize) -> bool {
        let Some(count) = self.len().checked_add(more) else { return false };
        if more != 0 && !self.make_first_keys() {
            return false;
        }
        while self.capacity() < count {
            if !self.add_chunk() {
                return false;
            }
        }
        true
    }

    /// Returns to the source each growth step whose chunks are all empty. Stale keys stay stale,
    /// because a chunk that is added again continues with the highest generation of the old chunk's
    /// slots. O(slots with memory).
    ///
    /// The first chunk is never returned, and neither is a chunk with a retired or detached slot.
    pub fn trim(&mut self) {
        loop {
            self.move_to_idle(self.slots.free_keys.keys().len());
            let emptied = self.slots.free_keys.unstore();
            self.slots.give_block(emptied);
            if self.slots.free_keys.keys().is_empty() {
                break;
            }
        }
        let spare = self.slots.free_keys.take_spare();
        self.slots.give_block(spare);
        let fresh = core::mem::replace(&mut self.fresh, self.fresh_end);
        self.make_idle_range(fresh, self.fresh_end);
        self.slots.trim(Self::idle_since);
        self.list_idle();
    }

    /// Rebuilds the list of chunks with idle slots, with the first chunk at the front.
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

    /// Returns the highest word of the slots of a chunk, if all slots are idle. Returns `None` if
    /// not all slots are idle.
    fn idle_since(chunk: SlotChunk<K, V>) -> Option<K::Bits> {
        // SAFETY: the chunk is in the directory, and has a header.
        if unsafe { (*chunk.header()).idle } != ChunkLayout::<K, V>::SLOTS {
            return None;
        }
        // SAFETY: `place` is below the number of slots of a chunk.
        (0..ChunkLayout::<K, V>::SLOTS).map(|place| unsafe { *chunk.slot(place).word() }).max()
    }
}
