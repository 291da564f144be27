//! Secondary maps, which store additional values for the keys of a slot map.

mod iter;
#[cfg(feature = "serde")]
mod serde;
mod sparse;

pub use crate::slot_map::{Iter, IterMut, Keys, Values, ValuesMut};
pub use iter::{Drain, IntoIter};
pub use sparse::{SparseDrain, SparseIntoIter, SparseIter, SparseIterMut, SparseSecondaryMap};

use crate::base::bits::out_of_memory;
use crate::base::full::{Cause, Full};
use crate::base::growth::Growth;
use crate::base::source::{DefaultHeap, Source};
use crate::base::statistics::Statistics;
use crate::slot_map::key::{Bits, Key, Words};
use crate::slot_map::keyed::{free_word, ChunkLayout, Slot, Slots};
use core::alloc::Layout;

/// A map of additional values for the keys of a [`SlotMap`](crate::SlotMap). The values are in
/// slots with the same indices.
///
/// ```
/// use mallard::{Key32, SecondaryMap, SlotMap};
/// let mut enemies: SlotMap<Key32, &str> = SlotMap::new();
/// let mut speeds: SecondaryMap<Key32, f32> = SecondaryMap::new();
/// let (duck, swan) = (enemies.insert("duck"), enemies.insert("swan"));
/// speeds.insert(swan, 3.0);
/// for (key, name) in &enemies {
///     if let Some(speed) = speeds.get_mut(key) {
///         *speed += name.len() as f32;
///     }
/// }
/// assert_eq!((speeds.get(duck), speeds[swan]), (None, 7.0));
/// ```
///
/// The secondary map does not refer to the slot map. So when an element is removed from the slot
/// map, its value stays in the secondary map, until a value is inserted for a newer key of the same
/// slot. To visit only the values of live elements, iterate over the slot map, or `retain` the keys
/// that the slot map contains. A value for an older key never replaces a value for a newer key,
/// unless generations wrap.
///
/// A lookup costs as much as in the slot map. The map allocates a chunk for each group of
/// neighbouring indices that has values. If only a few of many keys have values, use a
/// [`SparseSecondaryMap`]. Values do not move. Threads and errors are as for the slot map.
pub struct SecondaryMap<K: Key, V, S: Source = DefaultHeap> {
    slots: Slots<K, V, S>,
    len: usize,
}

// SAFETY: the map has exclusive use of its chunks and their values.
unsafe impl<K: Key, V: Send, S: Source + Send> Send for SecondaryMap<K, V, S> {}
// SAFETY: nothing can be changed through a shared reference.
unsafe impl<K: Key, V: Sync, S: Source + Sync> Sync for SecondaryMap<K, V, S> {}

#[cfg(feature = "alloc")]
impl<K: Key, V> SecondaryMap<K, V> {
    /// Makes an empty map, without allocating.
    pub const fn new() -> Self {
        Self::new_in(DefaultHeap)
    }
    /// Makes an empty map that grows by the rule `growth`, by at least one chunk in each step. The
    /// limit applies to all memory of the map.
    pub const fn with_growth(growth: Growth) -> Self {
        Self::with_growth_in(growth, DefaultHeap)
    }
}

impl<K: Key, V, S: Source> SecondaryMap<K, V, S> {
    /// Makes an empty map whose memory comes from `source`, without allocating.
    pub const fn new_in(source: S) -> Self {
        Self::with_growth_in(Growth::fixed(1), source)
    }
    /// Makes an empty map with a growth rule (see [`with_growth`](SecondaryMap::with_growth)) and a
    /// source.
    pub const fn with_growth_in(growth: Growth, source: S) -> Self {
        Self { slots: Slots::new(growth, source), len: 0 }
    }
    /// Returns the source of the memory.
    pub fn source(&self) -> &S {
        self.slots.source()
    }
    /// Returns the number of values.
    pub fn len(&self) -> usize {
        self.len
    }
    /// Returns whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Stores the value of `key` and returns the old value. If the key is null, or if a newer key
    /// of the same slot has a value, `value` is dropped.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self.place(key, value) {
            Ok(before) => before,
            Err(full) if full.cause() == Cause::StaleKey => None,
            Err(_) => out_of_memory(ChunkLayout::<K, V>::layout().unwrap_or(Layout::new::<V>())),
        }
    }
    /// Stores the value of `key` and returns the old value. Returns `value` in the error if the key
    /// is null, if a newer key of the same slot has a value, or if there is no memory.
    pub fn try_insert(&mut self, key: K, value: V) -> Result<Option<V>, Full<V>> {
        self.place(key, value)
    }
    /// Returns the value of `key`, and makes it with `make` if the key has no value. Returns `None`
    /// if the key is null, or if a newer key of the same slot has a value.
    ///
    /// ```
    /// # use mallard::{Key32, SecondaryMap, SlotMap};
    /// # let mut map: SlotMap<Key32, ()> = SlotMap::new();
    /// # let mut counts: SecondaryMap<Key32, u32> = SecondaryMap::new();
    /// # let key = map.insert(());
    /// *counts.get_or_insert_with(key, || 0).unwrap() += 1;
    /// # assert_eq!(counts[key], 1);
    /// ```
    pub fn get_or_insert_with(&mut self, key: K, make: impl FnOnce() -> V) -> Option<&mut V> {
        if !self.contains_key(key) {
            self.insert(key, make());
        }
        self.get_mut(key)
    }

    fn place(&mut self, key: K, value: V) -> Result<Option<V>, Full<V>> {
        let word = key.to_bits();
        if key.index() == 0 || key.generation() == 0 || word.to_u64() > Words::<K>::VALUE_MAX {
            return Err(Full::because(Cause::StaleKey, value));
        }
        let Some(slot) = self.slot_for(key) else {
            return Err(Full::because(self.slots.refusal(Self::chunk_number(key), 0), value));
        };
        // SAFETY: the slot is in a chunk. If its word is not 0, the slot is live.
        unsafe {
            let there = *slot.word();
            if there > word {
                return Err(Full::because(Cause::StaleKey, value));
            }
            if there == free_word::<K>() {
                slot.begin(word, value);
                slot.mark();
                self.len += 1;
                return Ok(None);
            }
            let before = core::mem::replace(slot.value().as_mut(), value);
            *slot.word() = word;
            Ok((there == word).then_some(before))
        }
    }

    fn chunk_number(key: K) -> usize {
        key.index() / ChunkLayout::<K, V>::SLOTS
    }
    fn slot_for(&mut self, key: K) -> Option<Slot<K, V>> {
        let number = Self::chunk_number(key);
        let chunk = match self.slots.chunk_of(number) {
            Some(chunk) => chunk,
            None if self.slots.missing(number, 0) != 0 => return None,
            None => self.slots.put(number)?,
        };
        Some(chunk.slot(key.index() % ChunkLayout::<K, V>::SLOTS))
    }

    /// Returns whether the key has a value.
    #[inline]
    pub fn contains_key(&self, key: K) -> bool {
        self.slots.find(key).is_some()
    }
    /// Returns the value of a key.
    #[inline]
    pub fn get(&self, key: K) -> Option<&V> {
        // SAFETY: the slot is live, so it has a value.
        Some(unsafe { self.slots.find(key)?.value().as_ref() })
    }
    /// Returns a mutable reference to the value of a key.
    #[inline]
    pub fn get_mut(&mut self, key: K) -> Option<&mut V> {
        // SAFETY: the slot is live, so it has a value.
        Some(unsafe { self.slots.find(key)?.value().as_mut() })
    }
    /// Returns mutable references to the values of several keys. Returns `None` if a key has no
    /// value or occurs twice.
    pub fn get_disjoint_mut<const N: usize>(&mut self, keys: [K; N]) -> Option<[&mut V; N]> {
        let mut slots = [None; N];
        for (i, &key) in keys.iter().enumerate() {
            slots[i] = Some(self.slots.find(key)?);
            if keys[..i].contains(&key) {
                return None;
            }
        }
        // SAFETY: each slot is live, and differs from all slots before it.
        Some(slots.map(|slot| unsafe { slot.unwrap_unchecked().value().as_mut() }))
    }

    /// Removes the value of a key and returns it.
    #[inline]
    pub fn remove(&mut self, key: K) -> Option<V> {
        let slot = self.slots.find(key)?;
        // SAFETY: `find` returned a live slot.
        Some(unsafe { self.take_at(slot) }.1)
    }

    /// Removes the value of a slot.
    ///
    /// # Safety
    /// The slot is live.
    unsafe fn take_at(&mut self, slot: Slot<K, V>) -> (K, V) {
        self.len -= 1;
        // SAFETY: the caller guarantees that the slot is live, so its word is its key.
        unsafe {
            let key = Words::<K>::known(*slot.word());
            slot.unmark();
            (key, slot.end(free_word::<K>()))
        }
    }

    /// Removes all values and keeps the memory. If a destructor panics, the remaining values stay
    /// in the map.
    pub fn clear(&mut self) {
        self.retain(|_, _| false);
    }

    /// Returns memory without values to the source. The first chunk stays.
    pub fn trim(&mut self) {
        self.slots.trim(|chunk| {
            // SAFETY: the chunk is in the directory, and `group` is below its number of groups.
            let marks = |group| unsafe { *(*chunk.marks(group)).as_ptr() };
            (0..ChunkLayout::<K, V>::GROUPS).all(|group| marks(group) == 0).then(free_word::<K>)
        });
    }

    /// Returns the statistics. Values count as blocks.
    pub fn statistics(&self) -> Statistics {
        let mut s = Statistics { blocks_live: self.len, ..Statistics::default() };
        s.bytes_live = self.len * size_of::<V>();
        s.bytes_idle = self.slots.capacity() * size_of::<V>() - s.bytes_live;
        self.slots.add_to(&mut s);
        s
    }
}

impl<K: Key, V, S: Source> Drop for SecondaryMap<K, V, S> {
    fn drop(&mut self) {
        // SAFETY: nothing borrows the values any more.
        unsafe { self.slots.end_all() };
    }
}

#[cfg(feature = "alloc")]
impl<K: Key, V> Default for SecondaryMap<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Key, V: Clone, S: Source + Clone> Clone for SecondaryMap<K, V, S> {
    fn clone(&self) -> Self {
        let mut map = Self::with_growth_in(*self.slots.growth(), self.slots.source().clone());
        if !map.slots.mirror(&self.slots) {
            out_of_memory(ChunkLayout::<K, V>::layout().unwrap_or(Layout::new::<V>()));
        }
        map.slots.clone_values(&self.slots);
        map.len = self.len;
        map
    }
}
