//! Functions that drop or clone all elements of a map.

use super::{ChunkLayout, Slots, Walk};
use crate::base::source::Source;
use crate::slot_map::key::{Key, Words};

impl<K: Key, V, S: Source> Slots<K, V, S> {
    /// Drops all values. If a destructor panics, the other destructors still run.
    ///
    /// # Safety
    /// Nothing uses the values, the words or the bits any more.
    pub(crate) unsafe fn end_all(&mut self) {
        struct Rest<K: Key, V>(Walk<K, V>);
        impl<K: Key, V> Rest<K, V> {
            fn end(&mut self) {
                while let Some(slot) = self.0.next() {
                    // SAFETY: the walk over the live slots returns each live slot once.
                    unsafe { slot.value().drop_in_place() };
                }
            }
        }
        impl<K: Key, V> Drop for Rest<K, V> {
            fn drop(&mut self) {
                self.end();
            }
        }
        if core::mem::needs_drop::<V>() {
            Rest(self.walk()).end();
        }
    }

    /// Allocates chunks for all slots of `other`, with the same words and bits, but without live
    /// elements. Returns `false` if there is not enough memory.
    pub(crate) fn mirror(&mut self, other: &Self) -> bool {
        if other.view.count != 0 && !self.make_room(other.direct, other.room) {
            return false;
        }
        let direct = other.view.count.min(other.direct);
        for number in 0..direct {
            // SAFETY: `number` is below the number of direct entries of both directories.
            unsafe { *self.resume_at(number) = *other.resume_at(number) };
        }
        for place in 0..other.view.count {
            let Some(from) = other.view.chunk(place) else { continue };
            // SAFETY: a chunk in the directory has a header.
            let Some(to) = self.put(unsafe { (*from.header()).number }) else { return false };
            for place in 0..ChunkLayout::<K, V>::SLOTS {
                let (from, to) = (from.slot(place), to.slot(place));
                // SAFETY: both slots are in chunks.
                unsafe {
                    if !from.is_live() {
                        *to.word() = *from.word();
                    }
                    if from.is_idle() {
                        to.make_idle();
                    }
                }
            }
            // SAFETY: a chunk in the directory has a header.
            unsafe { (*to.header()).idle = (*from.header()).idle };
        }
        if self.far == 0 {
            self.view.count = self.view.count.max(direct);
        }
        true
    }

    /// Clones the values of `other`. The caller has called `mirror`. If a clone panics, the
    /// elements that were cloned before are live.
    pub(crate) fn clone_values(&mut self, other: &Self)
    where
        V: Clone,
    {
        let mut walk = other.walk();
        while let Some(from) = walk.next() {
            // SAFETY: the walk returns only live slots.
            let (key, value) = unsafe { (*from.word(), from.value().as_ref().clone()) };
            let index = Words::<K>::index(key);
            let Some(chunk) = self.chunk_of(index / ChunkLayout::<K, V>::SLOTS) else { return };
            let to = chunk.slot(index % ChunkLayout::<K, V>::SLOTS);
            // SAFETY: `mirror` allocated a chunk for each chunk of `other`, and nothing else uses
            // the new chunks.
            unsafe {
                to.begin(key, value);
                to.mark();
            }
        }
    }
}
