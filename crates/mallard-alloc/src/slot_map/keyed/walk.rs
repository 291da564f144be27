//! Walking keyed slots by their marks, many at a time.

use super::{ChunkOf, Shape, Slot, View, GROUP};
use crate::slot_map::key::Key;
use core::marker::PhantomData;
use core::ptr::NonNull;
use core::sync::atomic::Ordering::Relaxed;

/// Walks the live slots of a map, in their order; what is there is asked when it gets there.
pub(crate) struct Walk<K, V> {
    directory: *const NonNull<u8>,
    stand_in: NonNull<u8>,
    /// Number of entries, and of direct entries among them.
    count: usize,
    by_number: usize,
    /// The next to go to.
    number: usize,
    chunk: NonNull<u8>,
    group: usize,
    /// Those of this group that are still to come.
    bits: usize,
    /// Whether a mark may be of a slot that is not alive.
    doubtful: bool,
    marker: PhantomData<(K, V)>,
}

impl<K, V> Clone for Walk<K, V> {
    fn clone(&self) -> Self {
        Self { ..*self }
    }
}

impl<K: Key, V> Walk<K, V> {
    /// The chunks of `view` stay where they are, and are not fewer, while it is used.
    #[inline]
    pub(crate) fn new(view: &View<K, V>, doubtful: bool) -> Self {
        Self {
            directory: view.directory,
            stand_in: view.stand_in,
            count: view.count,
            by_number: view.by_number(),
            number: 0,
            chunk: view.stand_in,
            group: Shape::<K, V>::GROUPS - 1,
            bits: 0,
            doubtful,
            marker: PhantomData,
        }
    }

    /// The next live slot. What it meets may end at once, and no other before it is met.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> Option<Slot<K, V>> {
        while self.find_group() {
            if let Some(slot) = self.take() {
                return Some(slot);
            }
        }
        None
    }

    /// Calls `f` for each that is left.
    #[inline(always)]
    pub(crate) fn fold<A>(mut self, mut sum: A, mut f: impl FnMut(A, Slot<K, V>) -> A) -> A {
        while self.find_group() {
            if self.bits == !0 && !self.doubtful {
                // All of them are alive: a loop that a compiler can unroll.
                let (chunk, first) = (ChunkOf::new(self.chunk), self.group * GROUP);
                self.bits = 0;
                sum = (first..first + GROUP).fold(sum, |sum, place| f(sum, chunk.slot(place)));
            }
            while self.bits != 0 {
                if let Some(slot) = self.take() {
                    sum = f(sum, slot);
                }
            }
        }
        sum
    }

    /// Goes on to a group that has one more, unless this has. False: there is none.
    #[inline(always)]
    fn find_group(&mut self) -> bool {
        while self.bits == 0 {
            self.group += 1;
            if self.group == Shape::<K, V>::GROUPS {
                self.group -= 1; // at the end it stays there
                let at = (self.directory, self.stand_in, self.by_number);
                let next = next_chunk::<K, V>(at, self.number, self.count);
                let Some((chunk, number)) = next else { return false };
                (self.chunk, self.number, self.group) = (chunk, number, 0);
            }
            let marks = ChunkOf::<K, V>::new(self.chunk).marks(self.group);
            // SAFETY: a chunk has so many groups of marks.
            self.bits = unsafe { (*marks).load(Relaxed) };
        }
        true
    }

    /// The next of this group, which has one, if it is alive.
    #[inline(always)]
    fn take(&mut self) -> Option<Slot<K, V>> {
        let place = self.group * GROUP + self.bits.trailing_zeros() as usize;
        self.bits &= self.bits - 1;
        let slot = ChunkOf::new(self.chunk).slot(place);
        // SAFETY: it is in a chunk.
        (!self.doubtful || unsafe { slot.is_live() }).then_some(slot)
    }
}

/// The next chunk from a place on, and the place after its own. Not a method, so that a walk can
/// be in registers.
#[inline(never)]
fn next_chunk<K: Key, V>(
    (directory, stand_in, by_number): (*const NonNull<u8>, NonNull<u8>, usize),
    mut number: usize,
    count: usize,
) -> Option<(NonNull<u8>, usize)> {
    while number < count {
        // SAFETY: the directory has an entry for each number below the count.
        let chunk = unsafe { *directory.add(number) };
        // SAFETY: entries name chunks, and those have a header.
        let own = unsafe { (*ChunkOf::<K, V>::new(chunk).header()).number };
        number += 1;
        if chunk != stand_in || own == number - 1 || number > by_number {
            return Some((chunk, number));
        }
    }
    None
}
