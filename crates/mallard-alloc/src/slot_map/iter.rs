//! The iterators of a slot map.

use super::SlotMap;
use crate::base::source::{DefaultHeap, Source};
use crate::slot_map::key::{Key, Words};
use crate::slot_map::keyed::{map_traits, FreeKeys, Slot, Slots, View, Walk};
use core::iter::FusedIterator;
use core::marker::PhantomData;

/// An iterator over all keys and elements in slot order, from [`SlotMap::iter`].
///
/// ```
/// # use mallard::{Key32, SlotMap};
/// # let mut map: SlotMap<Key32, u32> = SlotMap::new();
/// # let key = map.insert(7);
/// assert_eq!(map.iter().next(), Some((key, &7)));
/// ```
pub struct Iter<'a, K: Key, V> {
    walk: Walk<K, V>,
    left: usize,
    end: End<'a, K, V>,
    marker: PhantomData<&'a V>,
}

/// An iterator over all keys and mutable elements in slot order, from [`SlotMap::iter_mut`].
///
/// ```
/// # use mallard::{Key32, SlotMap};
/// # let mut map: SlotMap<Key32, u32> = SlotMap::new();
/// # let key = map.insert(7);
/// map.iter_mut().for_each(|(_, value)| *value += 1);
/// assert_eq!(map[key], 8);
/// ```
pub struct IterMut<'a, K: Key, V> {
    walk: Walk<K, V>,
    left: usize,
    end: End<'a, K, V>,
    marker: PhantomData<&'a mut V>,
}

/// A guard that ends an iteration. Dropping the guard clears stale marks (the mark bits of free
/// slots), so that the next iteration need not test each slot.
struct End<'a, K: Key, V> {
    owed: bool,
    free_keys: &'a FreeKeys<K::Bits>,
    view: &'a View<K, V>,
}

impl<K: Key, V> Clone for End<'_, K, V> {
    fn clone(&self) -> Self {
        Self { ..*self }
    }
}
impl<'a, K: Key, V> End<'a, K, V> {
    fn new<S: Source>(slots: &'a Slots<K, V, S>) -> Self {
        Self {
            owed: slots.free_keys.has_stale_marks(),
            free_keys: &slots.free_keys,
            view: &slots.view,
        }
    }
    #[inline(always)]
    fn reach(&mut self) {
        if core::mem::take(&mut self.owed) {
            self.free_keys.unmark_all(self.view);
        }
    }
}

// SAFETY: the iterator gives access only to shared references to the elements.
unsafe impl<K: Key, V: Sync> Send for Iter<'_, K, V> {}
// SAFETY: the reasons are the same as for `Send`.
unsafe impl<K: Key, V: Sync> Sync for Iter<'_, K, V> {}
// SAFETY: the iterator gives access to exclusive references to the elements.
unsafe impl<K: Key, V: Send> Send for IterMut<'_, K, V> {}
// SAFETY: through a shared reference to the iterator, no element can be reached.
unsafe impl<K: Key, V: Sync> Sync for IterMut<'_, K, V> {}

/// Returns the key of a live slot.
///
/// # Safety
/// The slot is live.
#[inline(always)]
pub(crate) unsafe fn key_of<K: Key, V>(slot: Slot<K, V>) -> K {
    // SAFETY: the caller guarantees that the slot is live, so its word is its key.
    Words::<K>::known(unsafe { *slot.word() })
}

impl<'a, K: Key, V> Iter<'a, K, V> {
    /// Makes an iterator over `left` live slots.
    #[inline]
    pub(crate) fn new<S: Source>(slots: &'a Slots<K, V, S>, left: usize) -> Self {
        Self { walk: slots.walk(), left, end: End::new(slots), marker: PhantomData }
    }
}
impl<'a, K: Key, V> IterMut<'a, K, V> {
    /// Makes an iterator over `left` live slots.
    #[inline]
    pub(crate) fn new<S: Source>(slots: &'a mut Slots<K, V, S>, left: usize) -> Self {
        Self { walk: slots.walk(), left, end: End::new(slots), marker: PhantomData }
    }
}

macro_rules! walk {
    ($name:ident, $item:ty, $slot:ident => $give:expr) => {
        impl<'a, K: Key, V> Iterator for $name<'a, K, V> {
            type Item = $item;
            #[inline]
            fn next(&mut self) -> Option<Self::Item> {
                let Some($slot) = self.walk.next() else {
                    self.end.reach();
                    return None;
                };
                self.left -= 1;
                // SAFETY: the walk over the live slots returns each live slot once.
                Some(unsafe { $give })
            }
            #[inline]
            fn size_hint(&self) -> (usize, Option<usize>) {
                (self.left, Some(self.left))
            }
            #[inline]
            fn count(self) -> usize {
                self.left
            }
            #[inline]
            fn fold<B, F: FnMut(B, Self::Item) -> B>(mut self, init: B, mut f: F) -> B {
                // SAFETY: the walk over the live slots returns each live slot once.
                let sum = self.walk.fold(init, |sum, $slot| f(sum, unsafe { $give }));
                self.end.reach();
                sum
            }
        }
        impl<K: Key, V> ExactSizeIterator for $name<'_, K, V> {}
        impl<K: Key, V> FusedIterator for $name<'_, K, V> {}
        $crate::slot_map::keyed::debug_left!([K: Key, V] $name<'_, K, V>, stringify!($name));
    };
}
walk! { Iter, (K, &'a V), slot => (key_of(slot), slot.value().as_ref()) }
walk! { IterMut, (K, &'a mut V), slot => (key_of(slot), slot.value().as_mut()) }

impl<K: Key, V> Clone for Iter<'_, K, V> {
    fn clone(&self) -> Self {
        Self {
            walk: self.walk.clone(),
            left: self.left,
            end: self.end.clone(),
            marker: PhantomData,
        }
    }
}

/// An iterator over all keys, from [`SlotMap::keys`].
///
/// ```
/// # use mallard::{Key32, SlotMap};
/// # let mut map: SlotMap<Key32, u32> = SlotMap::new();
/// # let key = map.insert(7);
/// assert!(map.keys().eq([key]));
/// ```
pub struct Keys<'a, K: Key, V>(pub(crate) Iter<'a, K, V>);
/// An iterator over all elements, from [`SlotMap::values`].
///
/// ```
/// # use mallard::{Key32, SlotMap};
/// # let mut map: SlotMap<Key32, u32> = SlotMap::new();
/// # let key = map.insert(7);
/// assert_eq!(map.values().sum::<u32>(), 7);
/// ```
pub struct Values<'a, K: Key, V>(pub(crate) Iter<'a, K, V>);
/// An iterator over all elements, with mutable references, from [`SlotMap::values_mut`].
///
/// ```
/// # use mallard::{Key32, SlotMap};
/// # let mut map: SlotMap<Key32, u32> = SlotMap::new();
/// # let key = map.insert(7);
/// map.values_mut().for_each(|value| *value *= 2);
/// assert_eq!(map[key], 14);
/// ```
pub struct ValuesMut<'a, K: Key, V>(pub(crate) IterMut<'a, K, V>);
/// An iterator over the keys and elements of a map by value.
///
/// ```
/// # use mallard::{Key32, SlotMap};
/// # let mut map: SlotMap<Key32, u32> = SlotMap::new();
/// # let key = map.insert(7);
/// assert_eq!(map.into_iter().collect::<Vec<_>>(), [(key, 7)]);
/// ```
pub struct IntoIter<K: Key, V, S: Source = DefaultHeap>(SlotMap<K, V, S>, Walk<K, V>);
/// An iterator over the keys of a map by value, from [`SlotMap::into_keys`].
///
/// ```
/// # use mallard::{Key32, SlotMap};
/// # let mut map: SlotMap<Key32, u32> = SlotMap::new();
/// # let key = map.insert(7);
/// assert!(map.into_keys().eq([key]));
/// ```
pub struct IntoKeys<K: Key, V, S: Source = DefaultHeap>(IntoIter<K, V, S>);
/// An iterator over the elements of a map by value, from [`SlotMap::into_values`].
///
/// ```
/// # use mallard::{Key32, SlotMap};
/// # let mut map: SlotMap<Key32, u32> = SlotMap::new();
/// # let key = map.insert(7);
/// assert!(map.into_values().eq([7]));
/// ```
pub struct IntoValues<K: Key, V, S: Source = DefaultHeap>(IntoIter<K, V, S>);
/// An iterator that removes all elements, from [`SlotMap::drain`].
///
/// ```
/// # use mallard::{Key32, SlotMap};
/// # let mut map: SlotMap<Key32, u32> = SlotMap::new();
/// # let key = map.insert(7);
/// assert!(map.drain().eq([(key, 7)]) && map.is_empty());
/// ```
pub struct Drain<'a, K: Key, V, S: Source = DefaultHeap>(&'a mut SlotMap<K, V, S>, Walk<K, V>);

impl<K: Key, V> Clone for Keys<'_, K, V> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}
impl<K: Key, V> Clone for Values<'_, K, V> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

macro_rules! project {
    ([$($generics:tt)*] $name:ty, $item:ty, $of:pat => $give:expr) => {
        impl<$($generics)*> Iterator for $name {
            type Item = $item;
            #[inline]
            fn next(&mut self) -> Option<Self::Item> {
                let $of = self.0.next()?;
                Some($give)
            }
            #[inline]
            fn size_hint(&self) -> (usize, Option<usize>) {
                self.0.size_hint()
            }
            #[inline]
            fn fold<B, F: FnMut(B, Self::Item) -> B>(self, init: B, mut f: F) -> B {
                self.0.fold(init, |sum, $of| f(sum, $give))
            }
        }
        impl<$($generics)*> ExactSizeIterator for $name {}
        impl<$($generics)*> FusedIterator for $name {}
        $crate::slot_map::keyed::debug_left!([$($generics)*] $name, stringify!($name));
    };
}
project! { ['a, K: Key, V] Keys<'a, K, V>, K, (key, _) => key }
project! { ['a, K: Key, V] Values<'a, K, V>, &'a V, (_, value) => value }
project! { ['a, K: Key, V] ValuesMut<'a, K, V>, &'a mut V, (_, value) => value }
project! { [K: Key, V, S: Source] IntoKeys<K, V, S>, K, (key, _) => key }
project! { [K: Key, V, S: Source] IntoValues<K, V, S>, V, (_, value) => value }

/// Implements the iterators that remove the elements of a map, which are `IntoIter($Map, Walk)` and
/// `Drain(&mut $Map, Walk)`. The map has to have the functions `take_at`, `retain` and `len`.
macro_rules! removing_iterators {
    ($Map:ident) => {
        // SAFETY: the walk visits only slots of the map that the iterator owns.
        unsafe impl<K: Key, V: Send, S: Source + Send> Send for IntoIter<K, V, S> {}
        // SAFETY: the reasons are the same as for `Send`.
        unsafe impl<K: Key, V: Sync, S: Source + Sync> Sync for IntoIter<K, V, S> {}
        // SAFETY: the walk visits only slots of the map that the iterator borrows.
        unsafe impl<K: Key, V: Send, S: Source + Send> Send for Drain<'_, K, V, S> {}
        // SAFETY: the reasons are the same as for `Send`.
        unsafe impl<K: Key, V: Sync, S: Source + Sync> Sync for Drain<'_, K, V, S> {}

        $crate::slot_map::removing_iterators!([K: Key, V, S: Source] IntoIter<K, V, S>);
        $crate::slot_map::removing_iterators!([K: Key, V, S: Source] Drain<'_, K, V, S>);

        impl<K: Key, V, S: Source> Drop for Drain<'_, K, V, S> {
            fn drop(&mut self) {
                self.0.retain(|_, _| false);
            }
        }
        impl<K: Key, V, S: Source> IntoIterator for $Map<K, V, S> {
            type Item = (K, V);
            type IntoIter = IntoIter<K, V, S>;
            fn into_iter(self) -> Self::IntoIter {
                let walk = self.slots.walk(); // valid if the map moves, as chunks do not
                IntoIter(self, walk)
            }
        }
    };
    ([$($generics:tt)*] $name:ty) => {
        impl<$($generics)*> Iterator for $name {
            type Item = (K, V);
            #[inline]
            fn next(&mut self) -> Option<Self::Item> {
                let slot = self.1.next()?;
                // SAFETY: the walk returns only live slots.
                Some(unsafe { self.0.take_at(slot) })
            }
            #[inline]
            fn size_hint(&self) -> (usize, Option<usize>) {
                (self.0.len(), Some(self.0.len()))
            }
        }
        impl<$($generics)*> ExactSizeIterator for $name {}
        impl<$($generics)*> core::iter::FusedIterator for $name {}
        $crate::slot_map::keyed::debug_left!([$($generics)*] $name, stringify!($name));
    };
}
pub(crate) use removing_iterators;
removing_iterators!(SlotMap);

impl<K: Key, V, S: Source> SlotMap<K, V, S> {
    /// Returns an iterator over all keys and elements, in slot order.
    ///
    /// The iterator skips 64 unused slots at a time. `for_each`, `sum` and all other functions that
    /// use `fold` also visit 64 used slots at a time, without testing each slot. A `for` loop
    /// visits one slot at a time.
    #[inline]
    pub fn iter(&self) -> Iter<'_, K, V> {
        Iter::new(&self.slots, self.len())
    }
    /// Returns an iterator over all keys and mutable elements.
    #[inline]
    pub fn iter_mut(&mut self) -> IterMut<'_, K, V> {
        let len = self.len();
        IterMut::new(&mut self.slots, len)
    }
    /// Returns an iterator over all keys.
    #[inline]
    pub fn keys(&self) -> Keys<'_, K, V> {
        Keys(self.iter())
    }
    /// Returns an iterator over all elements.
    #[inline]
    pub fn values(&self) -> Values<'_, K, V> {
        Values(self.iter())
    }
    /// Returns an iterator over all elements, mutably.
    #[inline]
    pub fn values_mut(&mut self) -> ValuesMut<'_, K, V> {
        ValuesMut(self.iter_mut())
    }
    /// Consumes the map and returns an iterator over its keys.
    pub fn into_keys(self) -> IntoKeys<K, V, S> {
        IntoKeys(self.into_iter())
    }
    /// Consumes the map and returns an iterator over its elements.
    pub fn into_values(self) -> IntoValues<K, V, S> {
        IntoValues(self.into_iter())
    }
    /// Removes all elements, one after another. Detached keys stay detached. Dropping the iterator
    /// removes the remaining elements. If the iterator is leaked, the remaining elements stay in
    /// the map.
    ///
    /// ```
    /// # use mallard::{Key32, SlotMap};
    /// let mut map: SlotMap<Key32, u32> = SlotMap::new();
    /// let key = map.insert(7);
    /// assert_eq!(map.drain().collect::<Vec<_>>(), [(key, 7)]);
    /// assert!(map.is_empty() && !map.contains_key(key));
    /// ```
    pub fn drain(&mut self) -> Drain<'_, K, V, S> {
        let walk = self.slots.walk();
        Drain(self, walk)
    }

    /// Removes the elements for which `keep(key, value)` is false. Each element is visited once. If
    /// `keep` or a destructor panics, the remaining elements stay.
    ///
    /// ```
    /// # use mallard::{Key32, SlotMap};
    /// let mut map: SlotMap<Key32, u32> = SlotMap::new();
    /// let (odd, even) = (map.insert(1), map.insert(2));
    /// map.retain(|_, value| *value % 2 == 0);
    /// assert!(!map.contains_key(odd) && map.contains_key(even));
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

map_traits!(SlotMap, Iter, IterMut);
