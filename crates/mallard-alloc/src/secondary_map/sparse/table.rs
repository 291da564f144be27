//! The table of a sparse secondary map, with one array for words and one array for values. The word
//! of a place is its key, or 0 if the place is unused. Collisions are resolved by linear probing.

use crate::base::bits::{align_up, layout};
use crate::base::source::{Chunk, Source};
use crate::slot_map::key::{Bits, Key, Words};
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ptr::NonNull;

/// The value in a place. The value is initialised if the word of the place is not 0.
pub(super) type Place<V> = MaybeUninit<V>;

/// The hash table. A table without memory has one unused place, in which nothing is stored.
pub(super) struct Table<K: Key, V> {
    words: NonNull<K::Bits>,
    values: NonNull<Place<V>>,
    /// The number of places, which is a power of two.
    places: usize,
    taken: Option<Chunk>,
    marker: PhantomData<V>,
}

static NO_WORD: u64 = 0;

impl<K: Key, V> Table<K, V> {
    pub(super) const NONE: Self = Self {
        // SAFETY: the address of a `static` is not 0. Nothing writes to the static, because `put`
        // needs a table with memory.
        words: unsafe { NonNull::new_unchecked((&raw const NO_WORD).cast_mut().cast()) },
        values: NonNull::dangling(),
        places: 1,
        taken: None,
        marker: PhantomData,
    };

    pub(super) fn take<S: Source>(places: usize, source: &S) -> Option<Self> {
        let align = align_of::<V>().max(align_of::<K::Bits>());
        let values_at = align_up(places.checked_mul(size_of::<K::Bits>())?, align);
        let bytes = places.checked_mul(size_of::<V>())?.checked_add(values_at)?;
        let chunk = source.try_take(layout(bytes, align)?)?;
        let words = chunk.data.cast::<K::Bits>();
        for i in 0..places {
            // SAFETY: `i` is below the number of words at the start of the chunk.
            unsafe { words.add(i).write(K::Bits::from_u64(0)) };
        }
        // SAFETY: the values are in the chunk, after the words.
        let values = unsafe { chunk.data.add(values_at).cast() };
        Some(Self { words, values, places, taken: Some(chunk), marker: PhantomData })
    }
    /// Returns the memory to the source. Requires that the table has no values.
    pub(super) fn give<S: Source>(self, source: &S) {
        if let Some(chunk) = self.taken {
            // SAFETY: the chunk is from `take`.
            unsafe { source.give(chunk) };
        }
    }

    pub(super) fn places(&self) -> usize {
        self.places
    }
    pub(super) fn words(&self) -> &[K::Bits] {
        // SAFETY: the table has `places` words.
        unsafe { core::slice::from_raw_parts(self.words.as_ptr(), self.places) }
    }
    /// Returns a mutable slice of the words. Requires that the table has memory.
    pub(super) fn words_mut(&mut self) -> &mut [K::Bits] {
        debug_assert!(self.taken.is_some());
        // SAFETY: the table has `places` words, and access is exclusive.
        unsafe { core::slice::from_raw_parts_mut(self.words.as_ptr(), self.places) }
    }
    fn value_count(&self) -> usize {
        if self.taken.is_some() {
            self.places
        } else {
            0
        }
    }
    pub(super) fn values(&self) -> &[Place<V>] {
        // SAFETY: the slice has the number of values of the table, which may be uninitialised.
        unsafe { core::slice::from_raw_parts(self.values.as_ptr(), self.value_count()) }
    }
    pub(super) fn words_and_values(&mut self) -> (&[K::Bits], &mut [Place<V>]) {
        let (words, values, count) = (self.words, self.values, self.value_count());
        // SAFETY: words and values are disjoint memory, and access is exclusive.
        unsafe {
            let values = core::slice::from_raw_parts_mut(values.as_ptr(), count);
            (core::slice::from_raw_parts(words.as_ptr(), self.places), values)
        }
    }

    /// Returns the value in a place.
    ///
    /// # Safety
    /// The place is used.
    pub(super) unsafe fn value(&self, place: usize) -> &V {
        // SAFETY: the caller guarantees that the place is used.
        unsafe { self.values()[place].assume_init_ref() }
    }
    /// Returns a mutable reference to the value in a place.
    ///
    /// # Safety
    /// The place is used.
    pub(super) unsafe fn value_mut(&mut self, place: usize) -> &mut V {
        // SAFETY: the caller guarantees that the place is used.
        unsafe { self.words_and_values().1[place].assume_init_mut() }
    }

    fn home_of(&self, index: usize) -> usize {
        // The high bits of the product depend on all bits of the index, so they select the place.
        let product = (index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (product >> 32) as usize & (self.places - 1)
    }
    /// Returns the place of an index, or the unused place where the index would be stored.
    pub(super) fn place_of(&self, index: usize) -> usize {
        let mut place = self.home_of(index);
        loop {
            let word = self.words()[place];
            if word == K::Bits::from_u64(0) || Words::<K>::index(word) == index {
                return place;
            }
            place = (place + 1) & (self.places - 1);
        }
    }
    /// Stores a value in an unused place. Requires that the table has memory.
    pub(super) fn put(&mut self, place: usize, word: K::Bits, value: V) {
        self.words_and_values().1[place].write(value);
        self.words_mut()[place] = word;
    }
    /// Removes the value in a place, and leaves the place unused.
    pub(super) fn take_at(&mut self, place: usize) -> Option<(K::Bits, V)> {
        let word = self.words()[place];
        if word == K::Bits::from_u64(0) {
            return None;
        }
        self.words_mut()[place] = K::Bits::from_u64(0);
        // SAFETY: the word was not 0, so the place was used.
        Some((word, unsafe { self.values()[place].assume_init_read() }))
    }
    /// Removes the value in a used place, and moves later values into the gap, so that searches for
    /// these values do not end at the gap.
    pub(super) fn remove(&mut self, place: usize) -> V {
        let mask = self.places - 1;
        // SAFETY: the caller guarantees that the place is used.
        let value = unsafe { self.values()[place].assume_init_read() };
        let (mut hole, mut next) = (place, (place + 1) & mask);
        loop {
            let word = self.words()[next];
            if word == K::Bits::from_u64(0) {
                break;
            }
            // A value may move to the gap (`hole`), unless the gap is before the place to which the
            // value's index hashes.
            let home = self.home_of(Words::<K>::index(word));
            if next.wrapping_sub(home) & mask >= next.wrapping_sub(hole) & mask {
                // SAFETY: the place `next` is used, and the gap is not.
                let moved = unsafe { self.values()[next].assume_init_read() };
                self.put(hole, word, moved);
                hole = next;
            }
            next = (next + 1) & mask;
        }
        self.words_mut()[hole] = K::Bits::from_u64(0);
        value
    }
}
