//! The same for a few of many keys, in a hash table.

mod iter;
mod table;

pub use iter::{SparseDrain, SparseIntoIter, SparseIter, SparseIterMut};

use crate::base::bits::out_of_memory;
use crate::base::full::{Cause, Full};
use crate::base::source::{DefaultHeap, Source};
use crate::slot_map::key::{Bits, Key, Words};
use core::alloc::Layout;
use core::mem::MaybeUninit;
use table::Table;

/// Values for a few of the keys that a [`SlotMap`](crate::SlotMap) gave: memory for what is set alone.
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
/// As [`SecondaryMap`](crate::SecondaryMap), but for this: values move when it grows, which it does by
/// doubling; iterators are in no order; and a lookup costs a few cycles more.
pub struct SparseSecondaryMap<K: Key, V, S: Source = DefaultHeap> {
    // A place is taken if its word is not 0, and then has a value. Between the place that a key's index
    // hashes to and the one it is in, all are taken. At least one is not.
    table: Table<K, V>,
    len: usize,
    source: S,
}

// SAFETY: it has its table and what is in it to itself.
unsafe impl<K: Key, V: Send, S: Source + Send> Send for SparseSecondaryMap<K, V, S> {}
// SAFETY: by a shared reference nothing can be changed.
unsafe impl<K: Key, V: Sync, S: Source + Sync> Sync for SparseSecondaryMap<K, V, S> {}

#[cfg(feature = "alloc")]
impl<K: Key, V> SparseSecondaryMap<K, V> {
    /// An empty map. Takes nothing.
    pub const fn new() -> Self {
        Self::new_in(DefaultHeap)
    }
}

impl<K: Key, V, S: Source> SparseSecondaryMap<K, V, S> {
    /// An empty map of this source. Takes nothing.
    pub const fn new_in(source: S) -> Self {
        Self { table: Table::NONE, len: 0, source }
    }
    /// Where its memory comes from.
    pub fn source(&self) -> &S {
        &self.source
    }
    /// Values.
    pub fn len(&self) -> usize {
        self.len
    }
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// Values for which there is memory, those there are included.
    pub fn capacity(&self) -> usize {
        self.table.places() / 4 * 3
    }

    /// The value of `key` from now on; gives the one it had. The value is dropped if the key is null or
    /// there is one for a newer key of the same slot.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        if !Self::is_outdated(key) && !self.try_reserve(1) {
            out_of_memory(Layout::new::<V>());
        }
        self.try_insert(key, value).ok().flatten()
    }
    /// The same; the value comes back when the key is null or outdated, or memory is refused.
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
                // SAFETY: it is taken.
                let before = core::mem::replace(unsafe { self.table.value_mut(place) }, value);
                self.table.words_mut()[place] = word;
                Ok((there == word).then_some(before))
            }
        }
    }
    fn is_outdated(key: K) -> bool {
        key.index() == 0 || key.generation() == 0 || key.to_bits().to_u64() > Words::<K>::VALUE_MAX
    }

    /// The value of `key`, inserted from `make()` if there is none. `None` if the key is null or outdated.
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

    /// Makes memory for `more` further values; without memory the program ends.
    pub fn reserve(&mut self, more: usize) {
        if !self.try_reserve(more) {
            out_of_memory(Layout::array::<V>(more).unwrap_or(Layout::new::<V>()));
        }
    }
    /// Makes memory for so many more values. False: refused, and nothing has changed.
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
    /// Whether there is a value for this key.
    pub fn contains_key(&self, key: K) -> bool {
        self.find(key).is_some()
    }
    /// The value of a key.
    pub fn get(&self, key: K) -> Option<&V> {
        // SAFETY: it is taken.
        self.find(key).map(|place| unsafe { self.table.value(place) })
    }
    /// The same, to change it.
    pub fn get_mut(&mut self, key: K) -> Option<&mut V> {
        // SAFETY: it is taken.
        self.find(key).map(|place| unsafe { self.table.value_mut(place) })
    }
    /// The values of several keys at once; `None` if a key has no value or is given twice.
    pub fn get_disjoint_mut<const N: usize>(&mut self, keys: [K; N]) -> Option<[&mut V; N]> {
        let mut places = [0; N];
        for (i, &key) in keys.iter().enumerate() {
            places[i] = self.find(key)?;
            if places[..i].contains(&places[i]) {
                return None;
            }
        }
        let values = self.table.words_and_values().1.as_mut_ptr();
        // SAFETY: each place is taken, and another than all before it.
        Some(places.map(|place| unsafe { (*values.add(place)).assume_init_mut() }))
    }
    /// Takes the value of a key out.
    pub fn remove(&mut self, key: K) -> Option<V> {
        let place = self.find(key)?;
        Some(self.remove_at(place))
    }

    fn remove_at(&mut self, place: usize) -> V {
        self.len -= 1;
        self.table.remove(place)
    }

    /// Removes those for which `keep(key, value)` is false. If it panics, or a destructor does, the
    /// rest stays.
    pub fn retain(&mut self, mut keep: impl FnMut(K, &mut V) -> bool) {
        // From a place that is not taken, so that nothing comes from the far end where something goes.
        let free = |word: &K::Bits| *word == K::Bits::from_u64(0);
        let begin = self.table.words().iter().position(free).unwrap_or(0);
        for i in 1..self.table.places() {
            let place = (begin + i) % self.table.places();
            loop {
                let word = self.table.words()[place];
                if word == K::Bits::from_u64(0) {
                    break;
                }
                // SAFETY: it is taken.
                if keep(Words::<K>::known(word), unsafe { self.table.value_mut(place) }) {
                    break;
                }
                drop(self.remove_at(place));
            }
        }
    }
    /// Removes all values and returns them one after another. Dropping the iterator drops the remaining
    /// values; leaking the iterator leaves them in the map.
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
    /// Removes all. Memory is kept.
    pub fn clear(&mut self) {
        self.retain(|_, _| false);
    }

    /// All values and their keys, in no order.
    pub fn iter(&self) -> SparseIter<'_, K, V> {
        SparseIter::new(self.table.words(), self.table.values(), self.len)
    }
    /// The same, to change the values.
    pub fn iter_mut(&mut self) -> SparseIterMut<'_, K, V> {
        let (words, values) = self.table.words_and_values();
        SparseIterMut::new(words, values, self.len)
    }
    /// All keys.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = K> + '_ {
        self.iter().map(|(key, _)| key)
    }
    /// All values.
    pub fn values(&self) -> impl ExactSizeIterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }
    /// All values, to change them.
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
                self.end(); // those after one whose destructor panicked
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

/// What is in a place, if its word says so.
type Place<V> = MaybeUninit<V>;
