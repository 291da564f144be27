//! The layout of one chunk of keyed slots.

use crate::base::bits::{align_up, layout};
use crate::slot_map::key::{Bits, Key, Words};
use core::alloc::Layout;
use core::marker::PhantomData;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The approximate size of a chunk in bytes.
const CHUNK_BYTES: usize = 1 << 14;

/// The number of slots whose bits are in one machine word.
pub(crate) const GROUP: usize = usize::BITS as usize;

/// The layout of a chunk:
///
/// ```text
/// | words | mark bits | idle bits | header | values |
/// ```
///
/// Words are stored apart from values. This layout needs less padding, but costs one more cache
/// miss for an element that is not in the cache. With 100,000 u64 values and 4-byte words, a lookup
/// takes 2.4 ns instead of 3.6 ns, and removing and inserting an element takes 11.0 ns instead of
/// 11.8 ns.
pub(crate) struct ChunkLayout<K, V>(PhantomData<(K, V)>);

impl<K: Key, V> ChunkLayout<K, V> {
    const WORD: usize = size_of::<K::Bits>();

    /// The number of slots of a chunk: a power of two.
    pub(crate) const SLOTS: usize = {
        let wanted = CHUNK_BYTES / (Self::WORD + size_of::<V>());
        let floor = if wanted < 8 { 8 } else { 1 << wanted.ilog2() };
        if floor < Words::<K>::SLOTS_MAX {
            floor
        } else {
            Words::<K>::SLOTS_MAX
        }
    };
    /// The number of groups of a chunk. The mark bits of one group are in one machine word.
    pub(crate) const GROUPS: usize = Self::SLOTS.div_ceil(GROUP);
    const GROUP_BYTES: usize = size_of::<usize>();
    const MARKS_AT: usize = align_up(Self::SLOTS * Self::WORD, Self::GROUP_BYTES);
    const IDLE_AT: usize = Self::MARKS_AT + Self::GROUP_BYTES * Self::GROUPS;
    const HEADER_AT: usize = Self::IDLE_AT + Self::GROUP_BYTES * Self::GROUPS;
    const VALUES_AT: usize = align_up(Self::HEADER_AT + size_of::<Header>(), align_of::<V>());
    pub(super) const ALIGN: usize = if align_of::<V>() < 64 { 64 } else { align_of::<V>() };
    pub(super) const BYTES: usize =
        align_up(Self::VALUES_AT + Self::SLOTS * size_of::<V>(), Self::ALIGN);
    /// The number of chunks that keys can address.
    pub(super) const CHUNKS_MAX: usize = Words::<K>::SLOTS_MAX / Self::SLOTS;

    /// Returns the layout of a chunk. Returns `None` if its size overflows `isize`.
    pub(crate) const fn layout() -> Option<Layout> {
        layout(Self::BYTES, Self::ALIGN)
    }
}

/// The header of a chunk.
pub(crate) struct Header {
    /// The number of the chunk, which determines the chunk's entry in the directory.
    pub(crate) number: usize,
    /// How many idle bits of the chunk are set.
    pub(crate) idle: usize,
    /// The next chunk in the same list.
    pub(crate) next: Option<NonNull<u8>>,
    /// The size of the growth step in bytes, if this chunk is the first chunk of the step, and
    /// otherwise 0.
    pub(crate) run_bytes: usize,
}

/// The address of a slot chunk. A copy is a plain address, and does not keep the chunk alive.
pub(crate) struct SlotChunk<K, V> {
    pub(crate) at: NonNull<u8>,
    marker: PhantomData<(K, V)>,
}

impl<K, V> Clone for SlotChunk<K, V> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<K, V> Copy for SlotChunk<K, V> {}

impl<K: Key, V> SlotChunk<K, V> {
    #[inline(always)]
    pub(crate) fn new(at: NonNull<u8>) -> Self {
        Self { at, marker: PhantomData }
    }
    #[inline(always)]
    pub(crate) fn slot(self, place: usize) -> Slot<K, V> {
        Slot { chunk: self, place }
    }
    #[inline(always)]
    fn part<T>(self, at: usize) -> *mut T {
        self.at.as_ptr().wrapping_add(at).cast()
    }
    /// Returns the mark bits of a group of slots, by which iterators find slots with elements. The
    /// bit of a slot with an element is set. The bit of any other slot may be set (see `FreeKeys`).
    /// The bits are atomic, because an iterator with a shared reference may remove stale marks.
    #[inline(always)]
    pub(crate) fn marks(self, group: usize) -> *mut AtomicUsize {
        self.part::<AtomicUsize>(ChunkLayout::<K, V>::MARKS_AT).wrapping_add(group)
    }
    #[inline(always)]
    pub(crate) fn idle(self, group: usize) -> *mut usize {
        self.part::<usize>(ChunkLayout::<K, V>::IDLE_AT).wrapping_add(group)
    }
    #[inline(always)]
    pub(crate) fn header(self) -> *mut Header {
        self.part(ChunkLayout::<K, V>::HEADER_AT)
    }

    /// Initialises everything except the values.
    ///
    /// # Safety
    /// The caller has exclusive use of the memory of a chunk.
    pub(super) unsafe fn init(self, header: Header) {
        // SAFETY: the caller meets the safety conditions of this function.
        unsafe {
            self.at.write_bytes(0, ChunkLayout::<K, V>::HEADER_AT);
            self.header().write(header);
        }
    }
}

/// One slot, which is a place in a chunk. A copy is a plain address, and does not keep the chunk
/// alive.
pub(crate) struct Slot<K, V> {
    pub(crate) chunk: SlotChunk<K, V>,
    place: usize,
}

impl<K, V> Clone for Slot<K, V> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<K, V> Copy for Slot<K, V> {}

impl<K: Key, V> Slot<K, V> {
    /// Returns the address of the slot's word.
    ///
    /// # Safety
    /// The slot is in a chunk, or is slot 0 of the static chunk that an empty map uses.
    #[inline(always)]
    pub(crate) unsafe fn word(self) -> *mut K::Bits {
        // SAFETY: a chunk begins with one word for each slot.
        unsafe { self.chunk.at.cast().add(self.place).as_ptr() }
    }
    /// Returns the address of the slot's value.
    ///
    /// # Safety
    /// The slot is in a chunk.
    #[inline(always)]
    pub(crate) unsafe fn value(self) -> NonNull<V> {
        // SAFETY: a chunk has one value for each slot at this offset.
        unsafe { self.chunk.at.add(ChunkLayout::<K, V>::VALUES_AT).cast().add(self.place) }
    }
    #[inline(always)]
    pub(crate) fn bit(self) -> usize {
        1 << (self.place % GROUP)
    }

    /// Returns whether the slot is live (has an element). Only the word of a live slot has an
    /// index.
    ///
    /// # Safety
    /// The slot is in a chunk.
    #[inline(always)]
    pub(crate) unsafe fn is_live(self) -> bool {
        // SAFETY: the caller meets the safety conditions of this function.
        Words::<K>::index(unsafe { *self.word() }) != 0
    }
    /// Returns whether the slot is idle. An idle slot is free, and its next key is in its word
    /// instead of in `FreeKeys`.
    ///
    /// # Safety
    /// The slot is in a chunk that nothing changes at the same time.
    pub(crate) unsafe fn is_idle(self) -> bool {
        // SAFETY: the caller meets the safety conditions of this function.
        unsafe { *self.chunk.idle(self.place / GROUP) & self.bit() != 0 }
    }

    /// Stores an element in the slot. Requires that the slot's mark bit is set, or will be set
    /// before the next iteration.
    ///
    /// # Safety
    /// The slot is in a chunk that nothing else uses, and is not live.
    #[inline(always)]
    pub(crate) unsafe fn begin(self, key: K::Bits, value: V) {
        // SAFETY: the caller meets the safety conditions of this function.
        unsafe {
            self.value().write(value);
            *self.word() = key;
        }
    }
    /// Removes the element of the slot, and returns its value. `word` becomes the word of the slot.
    ///
    /// # Safety
    /// The slot is live, nothing else uses its chunk, and `word` has no index.
    #[inline(always)]
    pub(crate) unsafe fn end(self, word: K::Bits) -> V {
        debug_assert!(Words::<K>::index(word) == 0);
        // SAFETY: the caller meets the safety conditions of this function.
        unsafe {
            *self.word() = word;
            self.value().read()
        }
    }

    /// Sets the slot's mark bit, by which iterators find the slot.
    ///
    /// # Safety
    /// The slot is in a chunk whose mark bits nothing else changes.
    #[inline(always)]
    pub(crate) unsafe fn mark(self) {
        // SAFETY: a single slot is always in one group.
        unsafe { self.mark_many(1) }
    }
    /// Sets the mark bits of `count` slots, beginning with this slot.
    ///
    /// # Safety
    /// The conditions of `mark` hold for all these slots. `count` is at least 1, and all slots are
    /// in one group.
    #[inline(always)]
    pub(crate) unsafe fn mark_many(self, count: usize) {
        debug_assert!(count != 0 && self.place % GROUP + count <= GROUP);
        // SAFETY: the group of a slot is below the number of groups of a chunk.
        let marks = unsafe { &*self.chunk.marks(self.place / GROUP) };
        let bits = (!0 >> (GROUP - count)) << (self.place % GROUP);
        marks.store(marks.load(Relaxed) | bits, Relaxed);
    }
    /// Clears the slot's mark bit, so that iterators skip the slot.
    ///
    /// # Safety
    /// The conditions of `mark` hold.
    #[inline(always)]
    pub(crate) unsafe fn unmark(self) {
        // SAFETY: the group of a slot is below the number of groups of a chunk.
        let marks = unsafe { &*self.chunk.marks(self.place / GROUP) };
        marks.store(marks.load(Relaxed) & !self.bit(), Relaxed);
    }
    /// Sets the slot's idle bit, and clears its mark bit.
    ///
    /// # Safety
    /// The slot is in a chunk that nothing else uses.
    pub(crate) unsafe fn make_idle(self) {
        // SAFETY: the caller meets the safety conditions of this function.
        unsafe {
            *self.chunk.idle(self.place / GROUP) |= self.bit();
            self.unmark();
        }
    }
}

/// Returns 0, which is the word of a slot that no key identifies.
#[inline(always)]
pub(crate) fn free_word<K: Key>() -> K::Bits {
    K::Bits::from_u64(0)
}
