//! Macros that implement the traits of maps: indexing, iteration, `Extend`, `Debug`.

use core::fmt;

/// Implements `map[key]`, iteration over references, `Join`, and `Debug` for a map with `get`,
/// `get_mut`, `iter` and `iter_mut`. With the argument `by_insert`, the map has to have
/// `insert(key, value)`, and `Extend` and `FromIterator` are implemented too.
macro_rules! map_traits {
    ($Map:ident, $Iter:ident, $IterMut:ident) => {
        /// Panics if the key has no element.
        impl<K: Key, V, S: Source> core::ops::Index<K> for $Map<K, V, S> {
            type Output = V;
            #[inline]
            #[track_caller]
            fn index(&self, key: K) -> &V {
                match self.get(key) {
                    Some(value) => value,
                    None => $crate::slot_map::keyed::no_element(&key),
                }
            }
        }
        /// Panics if the key has no element.
        impl<K: Key, V, S: Source> core::ops::IndexMut<K> for $Map<K, V, S> {
            #[inline]
            #[track_caller]
            fn index_mut(&mut self, key: K) -> &mut V {
                match self.get_mut(key) {
                    Some(value) => value,
                    None => $crate::slot_map::keyed::no_element(&key),
                }
            }
        }
        impl<'a, K: Key, V, S: Source> IntoIterator for &'a $Map<K, V, S> {
            type Item = (K, &'a V);
            type IntoIter = $Iter<'a, K, V>;
            #[inline]
            fn into_iter(self) -> Self::IntoIter {
                self.iter()
            }
        }
        impl<'a, K: Key, V, S: Source> IntoIterator for &'a mut $Map<K, V, S> {
            type Item = (K, &'a mut V);
            type IntoIter = $IterMut<'a, K, V>;
            #[inline]
            fn into_iter(self) -> Self::IntoIter {
                self.iter_mut()
            }
        }
        impl<K: Key, V, S: Source> $crate::Join<K> for $Map<K, V, S> {
            type Value = V;
            #[inline(always)]
            fn element(&mut self, key: K) -> Option<&mut V> {
                self.get_mut(key)
            }
        }
        impl<K: Key, V, S: Source> $Map<K, V, S> {
            /// Calls `f` with the key and both elements, for each key that has an element both in
            /// this map and in `other`. See [`Join`](crate::Join).
            #[inline]
            pub fn for_each_with<J: $crate::Join<K>>(
                &mut self,
                other: &mut J,
                mut f: impl FnMut(K, &mut V, &mut J::Value),
            ) {
                for (key, value) in self {
                    if let Some(too) = other.element(key) {
                        f(key, value, too);
                    }
                }
            }
        }
        impl<K: Key, V: core::fmt::Debug, S: Source> core::fmt::Debug for $Map<K, V, S> {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.debug_map().entries(self).finish()
            }
        }
    };
    ($Map:ident, $Iter:ident, $IterMut:ident, by_insert) => {
        $crate::slot_map::keyed::map_traits!($Map, $Iter, $IterMut);
        impl<K: Key, V, S: Source> Extend<(K, V)> for $Map<K, V, S> {
            fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, values: I) {
                values.into_iter().for_each(|(key, value)| drop(self.insert(key, value)));
            }
        }
        #[cfg(feature = "alloc")]
        impl<K: Key, V> FromIterator<(K, V)> for $Map<K, V> {
            fn from_iter<I: IntoIterator<Item = (K, V)>>(values: I) -> Self {
                let mut map = Self::new();
                map.extend(values);
                map
            }
        }
    };
}
pub(crate) use map_traits;

/// Implements `Debug` for an iterator. The output is the number of the remaining elements, and not
/// their values.
macro_rules! debug_left {
    ([$($generics:tt)*] $type:ty, $name:expr) => {
        impl<$($generics)*> core::fmt::Debug for $type {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                let name = $name.split('<').next().unwrap_or_default();
                f.debug_struct(name).field("left", &self.len()).finish_non_exhaustive()
            }
        }
    };
}
pub(crate) use debug_left;

#[cold]
#[inline(never)]
#[track_caller]
pub(crate) fn no_element(key: &dyn fmt::Debug) -> ! {
    panic!(
        "mallard: no element has the key {key:?}\n  \
         the element was removed, or the key is of another map\n  \
         help: `get` returns `None` instead"
    )
}
