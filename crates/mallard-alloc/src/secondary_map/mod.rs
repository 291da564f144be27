//! More values for the keys of a slot map, beside it.

mod iter;
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
use crate::slot_map::keyed::{no_word, Shape, Slot, Slots};
use core::alloc::Layout;

/// Values for keys that a [`SlotMap`](crate::SlotMap) gave, in slots of its own by the same numbers.
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
/// It does not know the map. What was set for a key that is stale in the map by now is found by
/// that key until its slot is set again, for a newer key; walk the map and not this to meet only
/// what is alive, or `retain` what the map contains. An older key never replaces a newer
/// one, while generations do not wrap.
///
/// A lookup costs what one in the map does. There is memory, in chunks, about those slots that
/// were set; for a few of many see [`SparseSecondaryMap`]. Values do not move. Threads and refused memory are as
/// with the map.
pub struct SecondaryMap<K: Key, V, S: Source = DefaultHeap> {
    slots: Slots<K, V, S>,
    len: usize,
}

// SAFETY: it has its chunks and what is in them to itself.
unsafe impl<K: Key, V: Send, S: Source + Send> Send for SecondaryMap<K, V, S> {}
// SAFETY: by a shared reference nothing can be changed.
unsafe impl<K: Key, V: Sync, S: Source + Sync> Sync for SecondaryMap<K, V, S> {}

#[cfg(feature = "alloc")]
impl<K: Key, V> SecondaryMap<K, V> {
    /// An empty map. Takes nothing.
    pub const fn new() -> Self {
        Self::new_in(DefaultHeap)
    }
    /// An empty map with steps of one's own; each is a chunk at least. The limit counts all that the
    /// map takes.
    pub const fn with_growth(growth: Growth) -> Self {
        Self::with_growth_in(growth, DefaultHeap)
    }
}

impl<K: Key, V, S: Source> SecondaryMap<K, V, S> {
    /// An empty map of this source. Takes nothing.
    pub const fn new_in(source: S) -> Self {
        Self::with_growth_in(Growth::fixed(1), source)
    }
    /// The same, with steps of one's own, as [`with_growth`](SecondaryMap::with_growth) has them.
    pub const fn with_growth_in(growth: Growth, source: S) -> Self {
        Self { slots: Slots::new(growth, source), len: 0 }
    }
    /// Where its memory comes from.
    pub fn source(&self) -> &S {
        self.slots.source()
    }
    /// Values.
    pub fn len(&self) -> usize {
        self.len
    }
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The value of `key` from now on; gives the one it had. The value is dropped if the key is null or
    /// there is one for a newer key of the same slot.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self.place(key, value) {
            Ok(before) => before,
            Err(full) if full.cause() == Cause::StaleKey => None,
            Err(_) => out_of_memory(Shape::<K, V>::layout().unwrap_or(Layout::new::<V>())),
        }
    }
    /// The same; the value comes back when the key is null or outdated, or memory is refused.
    pub fn try_insert(&mut self, key: K, value: V) -> Result<Option<V>, Full<V>> {
        self.place(key, value)
    }
    /// The value of `key`; if it has none, what `make` gives. `None` if the key is null or outdated.
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
        let Some(slot) = self.slot_for(key) else { return Err(Full::no_memory(value)) };
        // SAFETY: the slot is in a chunk; if it has a word, it is alive.
        unsafe {
            let there = *slot.word();
            if there > word {
                return Err(Full::because(Cause::StaleKey, value));
            }
            if there == no_word::<K>() {
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

    fn slot_for(&mut self, key: K) -> Option<Slot<K, V>> {
        let number = key.index() / Shape::<K, V>::SLOTS;
        let chunk = match self.slots.chunk_of(number) {
            Some(chunk) => chunk,
            None => self.slots.put(number)?,
        };
        Some(chunk.slot(key.index() % Shape::<K, V>::SLOTS))
    }

    /// Whether there is a value for this key.
    #[inline]
    pub fn contains_key(&self, key: K) -> bool {
        self.slots.find(key).is_some()
    }
    /// The value of a key.
    #[inline]
    pub fn get(&self, key: K) -> Option<&V> {
        // SAFETY: a live slot has a value.
        Some(unsafe { self.slots.find(key)?.value().as_ref() })
    }
    /// The same, to change it.
    #[inline]
    pub fn get_mut(&mut self, key: K) -> Option<&mut V> {
        // SAFETY: a live slot has a value.
        Some(unsafe { self.slots.find(key)?.value().as_mut() })
    }
    /// The values of several keys at once; `None` if one has none or is given twice.
    pub fn get_disjoint_mut<const N: usize>(&mut self, keys: [K; N]) -> Option<[&mut V; N]> {
        let mut slots = [None; N];
        for (i, &key) in keys.iter().enumerate() {
            slots[i] = Some(self.slots.find(key)?);
            if keys[..i].contains(&key) {
                return None;
            }
        }
        // SAFETY: each is alive, and another than all before it.
        Some(slots.map(|slot| unsafe { slot.unwrap_unchecked().value().as_mut() }))
    }

    /// Takes the value of a key out.
    #[inline]
    pub fn remove(&mut self, key: K) -> Option<V> {
        let slot = self.slots.find(key)?;
        // SAFETY: it is alive.
        Some(unsafe { self.take_at(slot) }.1)
    }

    /// # Safety
    /// The slot is alive.
    unsafe fn take_at(&mut self, slot: Slot<K, V>) -> (K, V) {
        self.len -= 1;
        // SAFETY: the word of a live slot is its key.
        unsafe {
            let key = Words::<K>::known(*slot.word());
            slot.unmark();
            (key, slot.end(no_word::<K>()))
        }
    }

    /// Removes all. Memory is kept. If a destructor panics, the rest stays.
    pub fn clear(&mut self) {
        self.retain(|_, _| false);
    }

    /// Gives memory back in which there is no value. The first chunk stays.
    pub fn trim(&mut self) {
        self.slots.trim(|chunk| {
            // SAFETY: it is in the directory, and has so many groups.
            let marks = |group| unsafe { *(*chunk.marks(group)).as_ptr() };
            (0..Shape::<K, V>::GROUPS).all(|group| marks(group) == 0).then(no_word::<K>)
        });
    }

    /// What it holds.
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
        // SAFETY: nobody uses them any more.
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
            out_of_memory(Shape::<K, V>::layout().unwrap_or(Layout::new::<V>()));
        }
        map.slots.clone_values(&self.slots);
        map.len = self.len;
        map
    }
}
