//! The guard that keeps one element of a shared slot map alive.

use super::memory::Slot;
use super::{Access, Guarded, SharedSlotMap};
use crate::base::source::{DefaultHeap, Source};
use crate::slot_map::key::Key;
use core::fmt;
use core::ops::Deref;

/// Keeps one element alive, even if another thread removes it. Returned by [`SharedSlotMap::get`].
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

// SAFETY: a guard is a shared reference to the element, and may drop the element in its own thread.
unsafe impl<K: Key, V: Send + Sync, A: Access<V>, S: Source + Send> Send for Guard<'_, K, V, A, S> {}
// SAFETY: a guard is a shared reference to the element, and a clone of it may drop the element.
unsafe impl<K: Key, V: Send + Sync, A: Access<V>, S: Source + Send> Sync for Guard<'_, K, V, A, S> {}

impl<'a, K: Key, V, A: Access<V>, S: Source> Guard<'a, K, V, A, S> {
    /// Makes a guard.
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

    /// Returns the key of the element, which may be stale by now.
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
        // SAFETY: this guard was the last of an element that was removed.
        unsafe { self.map.finish(self.slot, self.key, self.map.memory.current_cache()) };
    }
}

impl<K: Key, V: fmt::Debug, A: Access<V>, S: Source> fmt::Debug for Guard<'_, K, V, A, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
