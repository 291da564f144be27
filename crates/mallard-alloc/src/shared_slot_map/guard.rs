//! The guard that keeps one element of a shared slot map alive.

use super::memory::Slot;
use super::{Access, Guarded, SharedSlotMap};
use crate::base::source::{DefaultHeap, Source};
use crate::slot_map::key::Key;
use core::fmt;
use core::ops::Deref;

/// A guard that keeps one element alive, even if another thread removes it. [`SharedSlotMap::get`]
/// returns guards.
///
/// A leaked guard keeps the element alive until the map is dropped.
///
/// ```
/// use mallard::{Key64, SharedSlotMap};
/// let map: SharedSlotMap<Key64, String> = SharedSlotMap::new();
/// let key = map.insert("duck".into());
/// let guard = map.get(key).unwrap();
/// assert!(map.remove(key));
/// assert_eq!((&**guard, guard.key()), ("duck", key)); // the element is still there
/// ```
pub struct Guard<'a, K: Key, V, A: Access<V> = Guarded, S: Source = DefaultHeap> {
    map: &'a SharedSlotMap<K, V, A, S>,
    slot: &'a Slot<V>,
    key: K,
}

// SAFETY: a guard is a shared reference to the element, and dropping the guard may drop the
// element.
unsafe impl<K: Key, V: Send + Sync, A: Access<V>, S: Source + Send> Send for Guard<'_, K, V, A, S> {}
// SAFETY: a guard is a shared reference to the element, and dropping a clone may drop the element.
unsafe impl<K: Key, V: Send + Sync, A: Access<V>, S: Source + Send> Sync for Guard<'_, K, V, A, S> {}

impl<'a, K: Key, V, A: Access<V>, S: Source> Guard<'a, K, V, A, S> {
    /// Makes a guard for the element of a key.
    ///
    /// # Safety
    /// The element of the key is in this slot of the map, and the caller has counted a guard in the
    /// slot's state.
    #[inline(always)]
    pub(super) unsafe fn new(
        map: &'a SharedSlotMap<K, V, A, S>,
        slot: &'a Slot<V>,
        key: K,
    ) -> Self {
        Self { map, slot, key }
    }

    /// Returns the key of the element. The key is stale if the element was removed.
    pub fn key(&self) -> K {
        self.key
    }
}

impl<K: Key, V, A: Access<V>, S: Source> Deref for Guard<'_, K, V, A, S> {
    type Target = V;
    #[inline(always)]
    fn deref(&self) -> &V {
        // SAFETY: while there is a guard, the element stays and nothing writes to it.
        unsafe { &*self.slot.value() }
    }
}

impl<K: Key, V, A: Access<V>, S: Source> Clone for Guard<'_, K, V, A, S> {
    fn clone(&self) -> Self {
        self.slot.state.hold();
        Self { ..*self }
    }
}

impl<K: Key, V, A: Access<V>, S: Source> Drop for Guard<'_, K, V, A, S> {
    #[inline]
    fn drop(&mut self) {
        if self.slot.state.let_go() {
            self.end();
        }
    }
}

impl<K: Key, V, A: Access<V>, S: Source> Guard<'_, K, V, A, S> {
    #[cold]
    #[inline(never)]
    fn end(&self) {
        // SAFETY: this guard was the last guard of a removed element.
        unsafe { self.map.finish(self.slot, self.key, self.map.memory.current_cache()) };
    }
}

impl<K: Key, V: fmt::Debug, A: Access<V>, S: Source> fmt::Debug for Guard<'_, K, V, A, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
