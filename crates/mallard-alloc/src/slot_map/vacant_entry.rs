//! Vacant entries, the functions that change or describe a whole slot map, and its trait
//! implementations.

use super::SlotMap;
use crate::base::source::Source;
use crate::base::statistics::Statistics;
use crate::slot_map::key::{Bits, Key, Words};
use crate::slot_map::keyed::ChunkLayout;

/// The slot of the next element. The key of the slot is known before the element is made.
///
/// ```
/// # use mallard::{Key32, SlotMap};
/// # let mut map: SlotMap<Key32, Key32> = SlotMap::new();
/// let entry = map.vacant_entry();
/// let key = entry.key();
/// assert_eq!(*entry.insert(key), key);
/// ```
pub struct VacantEntry<'a, K: Key, V, S: Source>(&'a mut SlotMap<K, V, S>);

impl<'a, K: Key, V, S: Source> VacantEntry<'a, K, V, S> {
    /// Returns the key of the next element.
    pub fn key(&self) -> K {
        // SAFETY: `vacant_entry` has made sure that there is a free key, and the map has been
        // borrowed since then.
        Words::<K>::known(unsafe { self.0.slots.free_keys.peek() })
    }
    /// Stores the element in the slot, and returns a reference to the element.
    pub fn insert(self, value: V) -> &'a mut V {
        let key = self.0.place(|_| value);
        // SAFETY: the element was just stored.
        unsafe { self.0.get_unchecked_mut(key) }
    }
}

impl<K: Key, V, S: Source> SlotMap<K, V, S> {
    /// Returns the slot of the next element, for elements that contain their own key. Aborts or
    /// panics like `insert`.
    ///
    /// ```
    /// # use mallard::{Key32, SlotMap};
    /// let mut map: SlotMap<Key32, (Key32, &str)> = SlotMap::new();
    /// let entry = map.vacant_entry();
    /// let key = entry.key();
    /// entry.insert((key, "knows itself"));
    /// assert_eq!(map[key].0, key);
    /// ```
    pub fn vacant_entry(&mut self) -> VacantEntry<'_, K, V, S> {
        self.make_ready();
        VacantEntry(self)
    }

    /// Removes all elements and keeps the memory. The keys of the elements and all detached keys
    /// become stale. If a destructor panics, the remaining elements stay in the map.
    pub fn clear(&mut self) {
        self.retain(|_, _| false);
        for number in 0..self.slots.view.count {
            for place in 0..ChunkLayout::<K, V>::SLOTS {
                if self.detached == 0 {
                    return;
                }
                self.give_up_at(number, place);
            }
        }
    }

    fn give_up_at(&mut self, number: usize, place: usize) {
        let Some(chunk) = self.slots.view.chunk(number) else { return };
        let slot = chunk.slot(place);
        // SAFETY: the place is below the number of slots of a chunk.
        let (word, idle) = unsafe { (*slot.word(), slot.is_idle()) };
        if word.to_u64() != 0 && Words::<K>::index(word) == 0 && !idle {
            let index = number * ChunkLayout::<K, V>::SLOTS + place;
            self.give_up(Words::<K>::known(K::Bits::from_u64(word.to_u64() | index as u64)));
        }
    }

    /// Returns the statistics. Elements count as blocks.
    pub fn statistics(&self) -> Statistics {
        let mut s = Statistics { blocks_live: self.len(), ..Statistics::default() };
        s.bytes_live = self.len() * size_of::<V>();
        s.bytes_idle = (self.capacity() - self.len()) * size_of::<V>();
        self.slots.add_to(&mut s);
        s
    }
}

impl<K: Key, V, S: Source> Drop for SlotMap<K, V, S> {
    fn drop(&mut self) {
        // SAFETY: nothing borrows the elements any more.
        unsafe { self.slots.end_all() };
    }
}

#[cfg(feature = "alloc")]
impl<K: Key, V> Default for SlotMap<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

/// The clone has the same keys, including detached keys.
impl<K: Key, V: Clone, S: Source + Clone> Clone for SlotMap<K, V, S> {
    fn clone(&self) -> Self {
        let mut map = Self::with_growth_in(*self.slots.growth(), self.slots.source().clone());
        let places = self.slots.free_keys.places(); // not 0, because the map has an element
        if !map.slots.mirror(&self.slots) || places != 0 && !map.widen(places) {
            map.no_slot_or_memory();
        }
        map.list_idle();
        self.slots.free_keys.for_each(|key| map.make_idle(key));
        (map.fresh, map.fresh_end) = (self.fresh, self.fresh_end);
        (map.retired, map.detached) = (self.retired, self.detached);
        map.slots.clone_values(&self.slots);
        map
    }
}

impl<K: Key, V, S: Source> core::fmt::Debug for VacantEntry<'_, K, V, S> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("VacantEntry").field("key", &self.key()).finish_non_exhaustive()
    }
}
