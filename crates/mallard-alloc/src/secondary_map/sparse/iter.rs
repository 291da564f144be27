//! The iterators of a sparse secondary map.

use super::table::Place;
use super::SparseSecondaryMap;
use crate::base::source::{DefaultHeap, Source};
use crate::slot_map::key::{Bits, Key, Words};
use crate::slot_map::keyed::{debug_left, map_traits};
use core::iter::FusedIterator;
use core::slice;

/// An iterator over all keys and values in any order, from [`SparseSecondaryMap::iter`].
///
/// ```
/// # use mallard::{Key32, SlotMap, SparseSecondaryMap};
/// # let key = SlotMap::<Key32, ()>::new().insert(());
/// # let mut map: SparseSecondaryMap<Key32, u32> = SparseSecondaryMap::new();
/// map.insert(key, 7);
/// assert!(map.iter().eq([(key, &7)]));
/// ```
pub struct SparseIter<'a, K: Key, V> {
    words: slice::Iter<'a, K::Bits>,
    values: slice::Iter<'a, Place<V>>,
    left: usize,
}
/// An iterator over all keys and mutable values in any order, from
/// [`SparseSecondaryMap::iter_mut`].
///
/// ```
/// # use mallard::{Key32, SlotMap, SparseSecondaryMap};
/// # let key = SlotMap::<Key32, ()>::new().insert(());
/// # let mut map: SparseSecondaryMap<Key32, u32> = SparseSecondaryMap::new();
/// map.insert(key, 7);
/// map.iter_mut().for_each(|(_, value)| *value += 1);
/// assert_eq!(map[key], 8);
/// ```
pub struct SparseIterMut<'a, K: Key, V> {
    words: slice::Iter<'a, K::Bits>,
    values: slice::IterMut<'a, Place<V>>,
    left: usize,
}
/// An iterator that removes all values, from [`SparseSecondaryMap::drain`].
///
/// ```
/// # use mallard::{Key32, SlotMap, SparseSecondaryMap};
/// # let key = SlotMap::<Key32, ()>::new().insert(());
/// # let mut map: SparseSecondaryMap<Key32, u32> = SparseSecondaryMap::new();
/// map.insert(key, 7);
/// assert!(map.drain().eq([(key, 7)]) && map.is_empty());
/// ```
pub struct SparseDrain<'a, K: Key, V, S: Source = DefaultHeap>(
    pub(super) &'a mut SparseSecondaryMap<K, V, S>,
    pub(super) usize,
);
/// An iterator over the keys and values of a map by value.
///
/// ```
/// # use mallard::{Key32, SlotMap, SparseSecondaryMap};
/// # let key = SlotMap::<Key32, ()>::new().insert(());
/// # let mut map: SparseSecondaryMap<Key32, u32> = SparseSecondaryMap::new();
/// map.insert(key, 7);
/// assert!(map.into_iter().eq([(key, 7)]));
/// ```
pub struct SparseIntoIter<K: Key, V, S: Source = DefaultHeap>(SparseSecondaryMap<K, V, S>, usize);

impl<K: Key, V> Clone for SparseIter<'_, K, V> {
    fn clone(&self) -> Self {
        Self { words: self.words.clone(), values: self.values.clone(), left: self.left }
    }
}

macro_rules! walk {
    ($name:ident, $item:ty, $values:ty, $get:ident) => {
        impl<'a, K: Key, V> $name<'a, K, V> {
            pub(super) fn new(words: &'a [K::Bits], values: $values, left: usize) -> Self {
                Self { words: words.iter(), values: values.into_iter(), left }
            }
        }
        impl<'a, K: Key, V> Iterator for $name<'a, K, V> {
            type Item = $item;
            fn next(&mut self) -> Option<Self::Item> {
                loop {
                    let (value, word) = (self.values.next()?, *self.words.next()?);
                    if word != K::Bits::from_u64(0) {
                        self.left -= 1;
                        // SAFETY: a place whose word is not 0 has a value.
                        return Some((Words::<K>::known(word), unsafe { value.$get() }));
                    }
                }
            }
            fn size_hint(&self) -> (usize, Option<usize>) {
                (self.left, Some(self.left))
            }
        }
        impl<K: Key, V> ExactSizeIterator for $name<'_, K, V> {}
        impl<K: Key, V> FusedIterator for $name<'_, K, V> {}
        debug_left!([K: Key, V] $name<'_, K, V>, stringify!($name));
    };
}
walk! { SparseIter, (K, &'a V), &'a [Place<V>], assume_init_ref }
walk! { SparseIterMut, (K, &'a mut V), &'a mut [Place<V>], assume_init_mut }

impl<K: Key, V, S: Source> Drop for SparseDrain<'_, K, V, S> {
    fn drop(&mut self) {
        self.0.clear();
    }
}

macro_rules! take_out {
    ([$($generics:tt)*] $name:ty) => {
        impl<$($generics)*> Iterator for $name {
            type Item = (K, V);
            fn next(&mut self) -> Option<Self::Item> {
                while self.1 < self.0.table.places() {
                    self.1 += 1;
                    if let Some((word, value)) = self.0.table.take_at(self.1 - 1) {
                        self.0.len -= 1;
                        return Some((Words::<K>::known(word), value));
                    }
                }
                None
            }
            fn size_hint(&self) -> (usize, Option<usize>) {
                (self.0.len, Some(self.0.len))
            }
        }
        impl<$($generics)*> ExactSizeIterator for $name {}
        impl<$($generics)*> FusedIterator for $name {}
        debug_left!([$($generics)*] $name, stringify!($name));
    };
}
take_out! { [K: Key, V, S: Source] SparseIntoIter<K, V, S> }
take_out! { [K: Key, V, S: Source] SparseDrain<'_, K, V, S> }

map_traits!(SparseSecondaryMap, SparseIter, SparseIterMut, by_insert);
impl<K: Key, V, S: Source> IntoIterator for SparseSecondaryMap<K, V, S> {
    type Item = (K, V);
    type IntoIter = SparseIntoIter<K, V, S>;
    fn into_iter(self) -> Self::IntoIter {
        SparseIntoIter(self, 0)
    }
}
