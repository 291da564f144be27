//! The places of a hash table: words, and values for those that are not 0.

use super::Place;
use crate::base::bits::{align_up, layout};
use crate::base::source::{Chunk, Source};
use crate::slot_map::key::{Bits, Key, Words};
use core::marker::PhantomData;
use core::ptr::NonNull;

/// Without memory it has one place, which is not taken, and nobody puts anything there.
pub(super) struct Table<K: Key, V> {
    words: NonNull<K::Bits>,
    values: NonNull<Place<V>>,
    /// A power of two.
    places: usize,
    taken: Option<Chunk>,
    marker: PhantomData<V>,
}

static NO_WORD: u64 = 0;

impl<K: Key, V> Table<K, V> {
    pub(super) const NONE: Self = Self {
        // SAFETY: a static is not at null. It is never written: no value is put before there is memory.
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
            // SAFETY: the chunk begins with so many.
            unsafe { words.add(i).write(K::Bits::from_u64(0)) };
        }
        // SAFETY: the chunk is larger.
        let values = unsafe { chunk.data.add(values_at).cast() };
        Some(Self { words, values, places, taken: Some(chunk), marker: PhantomData })
    }
    /// Nothing is in it any more.
    pub(super) fn give<S: Source>(self, source: &S) {
        if let Some(chunk) = self.taken {
            // SAFETY: it is from `take`.
            unsafe { source.give(chunk) };
        }
    }

    pub(super) fn places(&self) -> usize {
        self.places
    }
    pub(super) fn words(&self) -> &[K::Bits] {
        // SAFETY: there are so many words.
        unsafe { core::slice::from_raw_parts(self.words.as_ptr(), self.places) }
    }
    /// Only of a table that has memory.
    pub(super) fn words_mut(&mut self) -> &mut [K::Bits] {
        debug_assert!(self.taken.is_some());
        // SAFETY: there are so many words, and this has them to itself.
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
        // SAFETY: there are so many values, which may have none in them.
        unsafe { core::slice::from_raw_parts(self.values.as_ptr(), self.value_count()) }
    }
    pub(super) fn words_and_values(&mut self) -> (&[K::Bits], &mut [Place<V>]) {
        let (words, values, count) = (self.words, self.values, self.value_count());
        // SAFETY: as above; they are different memory, and this has it to itself.
        unsafe {
            let values = core::slice::from_raw_parts_mut(values.as_ptr(), count);
            (core::slice::from_raw_parts(words.as_ptr(), self.places), values)
        }
    }

    /// # Safety
    /// The place is taken.
    pub(super) unsafe fn value(&self, place: usize) -> &V {
        // SAFETY: as the caller says.
        unsafe { self.values()[place].assume_init_ref() }
    }
    /// # Safety
    /// The place is taken.
    pub(super) unsafe fn value_mut(&mut self, place: usize) -> &mut V {
        // SAFETY: as the caller says.
        unsafe { self.words_and_values().1[place].assume_init_mut() }
    }

    fn home_of(&self, index: usize) -> usize {
        // The high bits of a product depend on all bits of the index; 1 place takes none of them.
        let product = (index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (product >> 32) as usize & (self.places - 1)
    }
    /// Where an index is, or would be put.
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
    /// Into a place that is not taken, of a table that has memory.
    pub(super) fn put(&mut self, place: usize, word: K::Bits, value: V) {
        self.words_and_values().1[place].write(value);
        self.words_mut()[place] = word;
    }
    /// Takes out what is in a place, and leaves a hole there.
    pub(super) fn take_at(&mut self, place: usize) -> Option<(K::Bits, V)> {
        let word = self.words()[place];
        if word == K::Bits::from_u64(0) {
            return None;
        }
        self.words_mut()[place] = K::Bits::from_u64(0);
        // SAFETY: it was taken.
        Some((word, unsafe { self.values()[place].assume_init_read() }))
    }
    /// Takes out what is in a place that is taken; what came after it moves up.
    pub(super) fn remove(&mut self, place: usize) -> V {
        let mask = self.places - 1;
        // SAFETY: it is taken.
        let value = unsafe { self.values()[place].assume_init_read() };
        let (mut hole, mut next) = (place, (place + 1) & mask);
        loop {
            let word = self.words()[next];
            if word == K::Bits::from_u64(0) {
                break;
            }
            // It may go to the hole if that is not before its home.
            let home = self.home_of(Words::<K>::index(word));
            if next.wrapping_sub(home) & mask >= next.wrapping_sub(hole) & mask {
                // SAFETY: it is taken, and the hole is not.
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
