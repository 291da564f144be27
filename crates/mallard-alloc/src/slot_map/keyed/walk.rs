//! Iteration over live slots by their mark bits, many slots at a time.

use super::chunk::{ChunkLayout, Slot, SlotChunk, GROUP};
use super::view::View;
use crate::slot_map::key::Key;
use core::marker::PhantomData;
use core::ptr::NonNull;
use core::sync::atomic::Ordering::Relaxed;

/// An iteration over the live slots of a map, in order. A chunk is read when the iteration reaches
/// it.
pub(crate) struct Walk<K, V> {
    directory: *const NonNull<u8>,
    stand_in: NonNull<u8>,
    /// The number of directory entries, and how many of them are direct.
    count: usize,
    direct: usize,
    /// The number of the directory entry to visit next.
    number: usize,
    chunk: NonNull<u8>,
    group: usize,
    /// The mark bits for those slots of the current group that were not visited yet.
    bits: usize,
    /// Whether mark bits of slots without an element may be set.
    stale_marks: bool,
    marker: PhantomData<(K, V)>,
}

impl<K, V> Clone for Walk<K, V> {
    fn clone(&self) -> Self {
        Self { ..*self }
    }
}

impl<K: Key, V> Walk<K, V> {
    /// Makes an iteration over the chunks of `view`. While the iteration is used, the chunks must
    /// stay in place, and no chunk may be removed.
    #[inline]
    pub(crate) fn new(view: &View<K, V>, stale_marks: bool) -> Self {
        Self {
            directory: view.directory,
            stand_in: view.stand_in,
            count: view.count,
            direct: view.direct(),
            number: 0,
            chunk: view.stand_in,
            group: ChunkLayout::<K, V>::GROUPS - 1,
            bits: 0,
            stale_marks,
            marker: PhantomData,
        }
    }

    /// Returns the next live slot (slot with an element). The caller may remove the element of the
    /// returned slot. The elements of slots that were not returned yet must not be removed.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> Option<Slot<K, V>> {
        while self.find_group() {
            if let Some(slot) = self.take() {
                return Some(slot);
            }
        }
        None
    }

    /// Calls `f` for each remaining slot.
    #[inline(always)]
    pub(crate) fn fold<A>(mut self, mut sum: A, mut f: impl FnMut(A, Slot<K, V>) -> A) -> A {
        while self.find_group() {
            if self.bits == !0 && !self.stale_marks {
                // All slots of the group are live, so the loop has no test, and the compiler can
                // unroll it.
                let (chunk, first) = (SlotChunk::new(self.chunk), self.group * GROUP);
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

    /// Moves to the next group of slots with unvisited mark bits, unless the current group has such
    /// bits. Returns `false` if there is no such group.
    #[inline(always)]
    fn find_group(&mut self) -> bool {
        while self.bits == 0 {
            self.group += 1;
            if self.group == ChunkLayout::<K, V>::GROUPS {
                self.group -= 1; // at the end, the last group stays the current group
                let at = (self.directory, self.stand_in, self.direct);
                let next = next_chunk::<K, V>(at, self.number, self.count);
                let Some((chunk, number)) = next else { return false };
                (self.chunk, self.number, self.group) = (chunk, number, 0);
            }
            let marks = SlotChunk::<K, V>::new(self.chunk).marks(self.group);
            // SAFETY: `group` is below the number of groups of a chunk.
            self.bits = unsafe { (*marks).load(Relaxed) };
        }
        true
    }

    /// Visits the next marked slot of the current group. Requires that the group has a marked slot.
    /// Returns the slot if it is live.
    #[inline(always)]
    fn take(&mut self) -> Option<Slot<K, V>> {
        let place = self.group * GROUP + self.bits.trailing_zeros() as usize;
        self.bits &= self.bits - 1;
        let slot = SlotChunk::new(self.chunk).slot(place);
        // SAFETY: the slot is in a chunk.
        (!self.stale_marks || unsafe { slot.is_live() }).then_some(slot)
    }
}

/// Returns the next chunk, from a directory entry on, and the number of the entry after it. This
/// function is not a method, so that the fields of a `Walk` can be in registers.
#[inline(never)]
fn next_chunk<K: Key, V>(
    (directory, stand_in, direct): (*const NonNull<u8>, NonNull<u8>, usize),
    mut number: usize,
    count: usize,
) -> Option<(NonNull<u8>, usize)> {
    while number < count {
        // SAFETY: `number` is below the number of entries.
        let chunk = unsafe { *directory.add(number) };
        // SAFETY: entries point to chunks, and a chunk has a header.
        let own = unsafe { (*SlotChunk::<K, V>::new(chunk).header()).number };
        number += 1;
        if chunk != stand_in || own == number - 1 || number > direct {
            return Some((chunk, number));
        }
    }
    None
}
