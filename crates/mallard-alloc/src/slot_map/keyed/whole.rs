//! What is done with all slots at once.

use super::{Shape, Slots, Walk};
use crate::base::source::Source;
use crate::slot_map::key::{Key, Words};

impl<K: Key, V, S: Source> Slots<K, V, S> {
    /// Ends all values. If a destructor panics, the others end all the same.
    ///
    /// # Safety
    /// Nobody uses them any more, and slots and bits are asked no more.
    pub(crate) unsafe fn end_all(&mut self) {
        struct Rest<K: Key, V>(Walk<K, V>);
        impl<K: Key, V> Rest<K, V> {
            fn end(&mut self) {
                while let Some(slot) = self.0.next() {
                    // SAFETY: it is alive, and met once.
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

    /// Takes chunks for all that `other` has, with its words and bits; but none is alive.
    /// False: refused.
    pub(crate) fn mirror(&mut self, other: &Self) -> bool {
        if other.view.count != 0 && !self.make_room(other.by_number, other.room) {
            return false;
        }
        let by_number = other.view.count.min(other.by_number);
        for number in 0..by_number {
            // SAFETY: both directories have an entry for it.
            unsafe { *self.resume_at(number) = *other.resume_at(number) };
        }
        for place in 0..other.view.count {
            let Some(from) = other.view.chunk(place) else { continue };
            // SAFETY: chunks in the directory have a header.
            let Some(to) = self.put(unsafe { (*from.header()).number }) else { return false };
            for place in 0..Shape::<K, V>::SLOTS {
                let (from, to) = (from.slot(place), to.slot(place));
                // SAFETY: both are in chunks.
                unsafe {
                    if !from.is_live() {
                        *to.word() = *from.word();
                    }
                    if from.is_idle() {
                        to.make_idle();
                    }
                }
            }
            // SAFETY: chunks in the directory have a header.
            unsafe { (*to.header()).idle = (*from.header()).idle };
        }
        if self.far == 0 {
            self.view.count = self.view.count.max(by_number);
        }
        true
    }

    /// After `mirror`, the values. If one panics, those before it are alive.
    pub(crate) fn clone_values(&mut self, other: &Self)
    where
        V: Clone,
    {
        let mut walk = other.walk();
        while let Some(from) = walk.next() {
            // SAFETY: it is alive.
            let (key, value) = unsafe { (*from.word(), from.value().as_ref().clone()) };
            let index = Words::<K>::index(key);
            let Some(chunk) = self.chunk_of(index / Shape::<K, V>::SLOTS) else { return };
            let to = chunk.slot(index % Shape::<K, V>::SLOTS);
            // SAFETY: there is a chunk for each of the other's, and nobody else uses it.
            unsafe {
                to.begin(key, value);
                to.mark();
            }
        }
    }
}
