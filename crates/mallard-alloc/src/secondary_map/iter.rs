//! The iterators of a secondary map.

use super::SecondaryMap;
use crate::base::source::{DefaultHeap, Source};
use crate::slot_map::key::Key;
use crate::slot_map::keyed::{map_traits, Walk};
use crate::slot_map::{key_of, removing_iterators, Iter, IterMut, Keys, Values, ValuesMut};

/// An iterator over the keys and values of a map by value.
///
/// ```
/// # use mallard::{Key32, SecondaryMap, SlotMap};
/// # let key = SlotMap::<Key32, ()>::new().insert(());
/// # let mut map: SecondaryMap<Key32, u32> = SecondaryMap::new();
/// map.insert(key, 7);
/// assert!(map.into_iter().eq([(key, 7)]));
/// ```
pub struct IntoIter<K: Key, V, S: Source = DefaultHeap>(SecondaryMap<K, V, S>, Walk<K, V>);
/// An iterator that removes all values, from [`SecondaryMap::drain`].
///
/// ```
/// # use mallard::{Key32, SecondaryMap, SlotMap};
/// # let key = SlotMap::<Key32, ()>::new().insert(());
/// # let mut map: SecondaryMap<Key32, u32> = SecondaryMap::new();
/// map.insert(key, 7);
/// assert!(map.drain().eq([(key, 7)]) && map.is_empty());
/// ```
pub struct Drain<'a, K: Key, V, S: Source = DefaultHeap>(&'a mut SecondaryMap<K, V, S>, Walk<K, V>);

removing_iterators!(SecondaryMap);

impl<K: Key, V, S: Source> SecondaryMap<K, V, S> {
    /// Returns an iterator over all keys and values, in slot order.
    #[inline]
    pub fn iter(&self) -> Iter<'_, K, V> {
        Iter::new(&self.slots, self.len)
    }
    /// Returns an iterator over all keys and mutable values.
    #[inline]
    pub fn iter_mut(&mut self) -> IterMut<'_, K, V> {
        IterMut::new(&mut self.slots, self.len)
    }
    /// Returns an iterator over all keys.
    pub fn keys(&self) -> Keys<'_, K, V> {
        Keys(self.iter())
    }
    /// Returns an iterator over all values.
    pub fn values(&self) -> Values<'_, K, V> {
        Values(self.iter())
    }
    /// Returns an iterator over all values, mutably.
    pub fn values_mut(&mut self) -> ValuesMut<'_, K, V> {
        ValuesMut(self.iter_mut())
    }
    /// Removes all values, one after another. Dropping the iterator removes the remaining values.
    /// If the iterator is leaked, the remaining values stay in the map.
    pub fn drain(&mut self) -> Drain<'_, K, V, S> {
        let walk = self.slots.walk();
        Drain(self, walk)
    }
    /// Removes the values for which `keep(key, value)` is false. If `keep` or a destructor panics,
    /// the remaining values stay in the map.
    ///
    /// ```
    /// # use mallard::{Key32, SecondaryMap, SlotMap};
    /// # let mut map: SlotMap<Key32, ()> = SlotMap::new();
    /// # let mut names: SecondaryMap<Key32, &str> = SecondaryMap::new();
    /// names.insert(map.insert(()), "gone soon");
    /// map.clear();
    /// names.retain(|key, _| map.contains_key(key));
    /// assert!(names.is_empty());
    /// ```
    pub fn retain(&mut self, mut keep: impl FnMut(K, &mut V) -> bool) {
        let mut walk = self.slots.walk();
        while let Some(slot) = walk.next() {
            // SAFETY: the walk returns only live slots.
            let (key, value) = unsafe { (key_of(slot), slot.value().as_mut()) };
            if !keep(key, value) {
                // SAFETY: the walk returns only live slots.
                drop(unsafe { self.take_at(slot) });
            }
        }
    }
}

map_traits!(SecondaryMap, Iter, IterMut, by_insert);
