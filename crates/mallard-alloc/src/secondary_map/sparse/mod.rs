//! The sparse secondary map, a hash table for the values of a few keys.

mod iter;
mod table;

pub use iter::{SparseDrain, SparseIntoIter, SparseIter, SparseIterMut};

use crate::base::bits::out_of_memory;
use crate::base::full::{Cause, Full};
use crate::base::source::{DefaultHeap, Source};
use crate::slot_map::key::{Bits, Key, Words};
use core::alloc::Layout;
use table::Table;

/// A map of additional values for a few keys of a [`SlotMap`](crate::SlotMap). The map is a hash
/// table, which allocates memory only for keys that have a value.
///
/// ```
/// use mallard::{Key32, SlotMap, SparseSecondaryMap};
/// let mut enemies: SlotMap<Key32, &str> = SlotMap::new();
/// let mut titles: SparseSecondaryMap<Key32, &str> = SparseSecondaryMap::new();
/// let swan = enemies.insert("swan");
/// titles.insert(swan, "Queen");
/// assert_eq!(titles.get(swan), Some(&"Queen"));
/// ```
///
/// A sparse map differs from a [`SecondaryMap`](crate::SecondaryMap) in three ways:
/// - Values move when the table grows. Each time the table doubles its size.
/// - Iterators return the values in no particular order.
/// - A lookup costs a few cycles more.
pub struct SparseSecondaryMap<K: Key, V, S: Source = DefaultHeap> {
    // A place is used, and has a value, if its word is not 0. The search for a key starts
    // at the place that its index hashes to. All places from there up to the key's place are
    // used. At least one place is unused, so every search ends.
    table: Table<K, V>,
    len: usize,
    source: S,
}

// SAFETY: the map has exclusive use of its table and its values.
unsafe impl<K: Key, V: Send, S: Source + Send> Send for SparseSecondaryMap<K, V, S> {}
// SAFETY: nothing can be changed through a shared reference.
unsafe impl<K: Key, V: Sync, S: Source + Sync> Sync for SparseSecondaryMap<K, V, S> {}

#[cfg(feature = "alloc")]
impl<K: Key, V> SparseSecondaryMap<K, V> {
    /// Makes an empty map, without allocating.
    pub const fn new() -> Self {
        Self::new_in(DefaultHeap)
    }
}

impl<K: Key, V, S: Source> SparseSecondaryMap<K, V, S> {
    /// Makes an empty map whose memory comes from `source`, without allocating.
    pub const fn new_in(source: S) -> Self {
        Self { table: Table::NONE, len: 0, source }
    }
    /// Returns the source of the memory.
    pub fn source(&self) -> &S {
        &self.source
    }
    /// Returns the number of values.
    pub fn len(&self) -> usize {
        self.len
    }
    /// Returns whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// Returns the number of values for which the map has memory, including the values in the map.
    pub fn capacity(&self) -> usize {
        self.table.places() / 4 * 3
    }

    /// Stores the value of `key` and returns the old value. If the key is null, or if a newer key
    /// of the same slot has a value, `value` is dropped.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        if !Self::is_outdated(key) && !self.try_reserve(1) {
            out_of_memory(Layout::new::<V>());
        }
        self.try_insert(key, value).ok().flatten()
    }
    /// Stores the value of `key` and returns the old value. Returns `value` in the error if the key
    /// is null, if a newer key of the same slot has a value, or if there is no memory.
    pub fn try_insert(&mut self, key: K, value: V) -> Result<Option<V>, Full<V>> {
        let word = key.to_bits();
        if Self::is_outdated(key) {
            return Err(Full::because(Cause::StaleKey, value));
        }
        if !self.try_reserve(1) {
            return Err(Full::no_memory(value));
        }
        let place = self.table.place_of(key.index());
        match self.table.words()[place] {
            there if there > word => Err(Full::because(Cause::StaleKey, value)),
            there if there == K::Bits::from_u64(0) => {
                self.table.put(place, word, value);
                self.len += 1;
                Ok(None)
            }
            there => {
                // SAFETY: the place is used.
                let before = core::mem::replace(unsafe { self.table.value_mut(place) }, value);
                self.table.words_mut()[place] = word;
                Ok((there == word).then_some(before))
            }
        }
    }
    fn is_outdated(key: K) -> bool {
        key.index() == 0 || key.generation() == 0 || key.to_bits().to_u64() > Words::<K>::VALUE_MAX
    }

    /// Returns the value of `key`, and makes it with `make` if the key has no value. Returns `None`
    /// if the key is null, or if a newer key of the same slot has a value.
    ///
    /// ```
    /// # use mallard::{Key32, SlotMap, SparseSecondaryMap};
    /// # let mut map: SlotMap<Key32, ()> = SlotMap::new();
    /// # let mut counts: SparseSecondaryMap<Key32, u32> = SparseSecondaryMap::new();
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

    /// Allocates memory for `more` further values. Aborts if there is no memory.
    pub fn reserve(&mut self, more: usize) {
        if !self.try_reserve(more) {
            out_of_memory(Layout::array::<V>(more).unwrap_or(Layout::new::<V>()));
        }
    }
    /// Allocates memory for `more` further values. Returns `false`, and changes nothing, if there
    /// is no memory.
    pub fn try_reserve(&mut self, more: usize) -> bool {
        let Some(wanted) = self.len.checked_add(more) else { return false };
        if wanted <= self.capacity() {
            return true;
        }
        let Some(places) =
            (wanted / 3 + 1).checked_next_power_of_two().and_then(|q| q.checked_mul(4))
        else {
            return false;
        };
        let Some(mut larger) = Table::take(places, &self.source) else { return false };
        for place in 0..self.table.places() {
            if let Some((word, value)) = self.table.take_at(place) {
                larger.put(larger.place_of(Words::<K>::index(word)), word, value);
            }
        }
        core::mem::replace(&mut self.table, larger).give(&self.source);
        true
    }

    fn find(&self, key: K) -> Option<usize> {
        let place = self.table.place_of(key.index());
        (self.table.words()[place] == key.to_bits()).then_some(place)
    }
    /// Returns whether the key has a value.
    pub fn contains_key(&self, key: K) -> bool {
        self.find(key).is_some()
    }
    /// Returns the value of a key.
    pub fn get(&self, key: K) -> Option<&V> {
        // SAFETY: `find` returns used places.
        self.find(key).map(|place| unsafe { self.table.value(place) })
    }
    /// Returns a mutable reference to the value of a key.
    pub fn get_mut(&mut self, key: K) -> Option<&mut V> {
        // SAFETY: `find` returns used places.
        self.find(key).map(|place| unsafe { self.table.value_mut(place) })
    }
    /// Returns mutable references to the values of several keys. Returns `None` if a key has no
    /// value or occurs twice.
    pub fn get_disjoint_mut<const N: usize>(&mut self, keys: [K; N]) -> Option<[&mut V; N]> {
        let mut places = [0; N];
        for (i, &key) in keys.iter().enumerate() {
            places[i] = self.find(key)?;
            if places[..i].contains(&places[i]) {
                return None;
            }
        }
        let values = self.table.words_and_values().1.as_mut_ptr();
        // SAFETY: each place is used, and differs from all places before it.
        Some(places.map(|place| unsafe { (*values.add(place)).assume_init_mut() }))
    }
    /// Removes the value of a key and returns it.
    pub fn remove(&mut self, key: K) -> Option<V> {
        let place = self.find(key)?;
        Some(self.remove_at(place))
    }

    fn remove_at(&mut self, place: usize) -> V {
        self.len -= 1;
        self.table.remove(place)
    }

    /// Removes the values for which `keep(key, value)` is false. If `keep` or a destructor panics,
    /// the remaining values stay in the map.
    pub fn retain(&mut self, mut keep: impl FnMut(K, &mut V) -> bool) {
        // The loop starts at an unused place, so that a removal never moves a value from the end of
        // the table to its start.
        let free = |word: &K::Bits| *word == K::Bits::from_u64(0);
        let begin = self.table.words().iter().position(free).unwrap_or(0);
        for i in 1..self.table.places() {
            let place = (begin + i) % self.table.places();
            loop {
                let word = self.table.words()[place];
                if word == K::Bits::from_u64(0) {
                    break;
                }
                // SAFETY: the word is not 0, so the place is used.
                if keep(Words::<K>::known(word), unsafe { self.table.value_mut(place) }) {
                    break;
                }
                drop(self.remove_at(place));
            }
        }
    }
    /// Removes all values, one after another. Dropping the iterator removes the remaining values.
    /// If the iterator is leaked, the remaining values stay in the map.
    ///
    /// ```
    /// # use mallard::{Key32, SlotMap, SparseSecondaryMap};
    /// # let mut map: SlotMap<Key32, ()> = SlotMap::new();
    /// # let mut names: SparseSecondaryMap<Key32, &str> = SparseSecondaryMap::new();
    /// # let key = map.insert(());
    /// names.insert(key, "duck");
    /// assert_eq!(names.drain().collect::<Vec<_>>(), [(key, "duck")]);
    /// assert!(names.is_empty());
    /// ```
    pub fn drain(&mut self) -> SparseDrain<'_, K, V, S> {
        SparseDrain(self, 0)
    }
    /// Removes all values and keeps the memory.
    pub fn clear(&mut self) {
        self.retain(|_, _| false);
    }

    /// Returns an iterator over all keys and values, in any order.
    pub fn iter(&self) -> SparseIter<'_, K, V> {
        SparseIter::new(self.table.words(), self.table.values(), self.len)
    }
    /// Returns an iterator over all keys and mutable values.
    pub fn iter_mut(&mut self) -> SparseIterMut<'_, K, V> {
        let (words, values) = self.table.words_and_values();
        SparseIterMut::new(words, values, self.len)
    }
    /// Returns an iterator over all keys.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = K> + '_ {
        self.iter().map(|(key, _)| key)
    }
    /// Returns an iterator over all values.
    pub fn values(&self) -> impl ExactSizeIterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }
    /// Returns an iterator over all values, mutably.
    pub fn values_mut(&mut self) -> impl ExactSizeIterator<Item = &mut V> {
        self.iter_mut().map(|(_, value)| value)
    }
}

impl<K: Key, V, S: Source> Drop for SparseSecondaryMap<K, V, S> {
    fn drop(&mut self) {
        struct Rest<'a, K: Key, V, S: Source>(&'a mut SparseSecondaryMap<K, V, S>, usize);
        impl<K: Key, V, S: Source> Rest<'_, K, V, S> {
            fn end(&mut self) {
                while self.1 < self.0.table.places() {
                    self.1 += 1;
                    drop(self.0.table.take_at(self.1 - 1));
                }
            }
        }
        impl<K: Key, V, S: Source> Drop for Rest<'_, K, V, S> {
            fn drop(&mut self) {
                self.end(); // drops the values after a value whose destructor panicked
                core::mem::replace(&mut self.0.table, Table::NONE).give(&self.0.source);
            }
        }
        Rest(self, 0).end();
    }
}

#[cfg(feature = "alloc")]
impl<K: Key, V> Default for SparseSecondaryMap<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Key, V: Clone, S: Source + Clone> Clone for SparseSecondaryMap<K, V, S> {
    fn clone(&self) -> Self {
        let mut map = Self::new_in(self.source.clone());
        map.extend(self.iter().map(|(key, value)| (key, value.clone())));
        map
    }
}
