//! The free keys of a slot map: the keys of the next elements.

use super::view::View;
use crate::base::bits::{align_up, layout};
use crate::base::source::Chunk;
use crate::slot_map::key::Key;
use core::alloc::Layout;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

/// A stack of free keys, in blocks. All blocks except the current block are full. Without memory
/// the stack looks empty to `pop` and full to `push`.
///
/// ```text
///         current block                        full blocks
/// | unmarked | marked | no key |      | full block | -> | full block |
/// bottom     low      top      high   stored
/// ```
///
/// Every slot has a mark bit, by which iterators find live slots. The bit of a live slot is set, and the
/// slot is called marked. A free key is *marked* if its slot is marked, and *unmarked* otherwise.
/// `remove` leaves the mark bit set and pushes a marked key. `insert` takes a marked key. So neither
/// function writes a bit.
///
/// The mark of a free slot is stale, so an iterator that may meet a stale mark must test each slot.
/// When the iterator ends, it removes all stale marks (`unmark_all`), so that the next iterator
/// need not test. An iterator has only a shared reference to the map, so `unmark_all` changes only
/// atomics. These are the mark bits, `low`, and the numbers of unmarked keys in full blocks.
pub(crate) struct FreeKeys<W> {
    pub(crate) top: *mut W,
    low: AtomicPtr<W>,
    high: *mut W,
    bottom: *mut W,
    block: Option<NonNull<Block>>,
    stored: Option<NonNull<Block>>,
    /// The number of keys in full blocks.
    stored_keys: usize,
    /// Whether a full block has marked keys.
    stored_marked: AtomicBool,
    /// An empty block in reserve. It saves calls to the source when the top moves back and forth
    /// between two blocks.
    spare: Option<NonNull<Block>>,
    unmarking: AtomicBool,
}

/// The header of a block of keys.
pub(crate) struct Block {
    next: Option<NonNull<Block>>,
    /// The layout of the source's chunk that contains the block.
    layout: Layout,
    /// The maximum number of keys in the block.
    places: usize,
    /// The number of unmarked keys in the block, if the block is full.
    unmarked: AtomicUsize,
}

impl Block {
    const ALIGN: usize = if align_of::<Block>() < 8 { 8 } else { align_of::<Block>() };
    const KEYS_AT: usize = align_up(size_of::<Block>(), 8);

    pub(crate) const fn layout<W>(places: usize) -> Option<Layout> {
        layout(Self::KEYS_AT + places * size_of::<W>(), Self::ALIGN)
    }
    /// Makes a block in a chunk of the source.
    ///
    /// # Safety
    /// The chunk has this layout and has room for `places` keys, and nothing else uses the chunk.
    pub(crate) unsafe fn make(at: NonNull<u8>, layout: Layout, places: usize) -> NonNull<Block> {
        let block = at.cast::<Block>();
        let unmarked = AtomicUsize::new(0);
        // SAFETY: the caller meets the safety conditions of this function.
        unsafe { block.write(Self { next: None, layout, places, unmarked }) };
        block
    }
    /// Returns the next block of the same list.
    ///
    /// # Safety
    /// `block` points to a block.
    pub(super) unsafe fn next(block: NonNull<Block>) -> Option<NonNull<Block>> {
        // SAFETY: the caller meets the safety conditions of this function.
        unsafe { block.as_ref().next }
    }
    /// Returns the chunk of the source that contains the block.
    ///
    /// # Safety
    /// `block` points to a block.
    pub(super) unsafe fn chunk(block: NonNull<Block>) -> Chunk {
        // SAFETY: the caller meets the safety conditions of this function.
        Chunk { data: block.cast(), layout: unsafe { block.as_ref().layout } }
    }
    fn keys<W>(block: NonNull<Block>) -> *mut W {
        block.as_ptr().wrapping_byte_add(Self::KEYS_AT).cast()
    }
}

impl<W: Copy> FreeKeys<W> {
    pub(super) const fn new() -> Self {
        let nowhere = NonNull::<W>::dangling().as_ptr();
        Self {
            top: nowhere,
            low: AtomicPtr::new(nowhere),
            high: nowhere,
            bottom: nowhere,
            block: None,
            stored: None,
            stored_keys: 0,
            stored_marked: AtomicBool::new(false),
            spare: None,
            unmarking: AtomicBool::new(false),
        }
    }
    /// Returns whether the current block has no marked key.
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.top == self.low.load(Ordering::Relaxed)
    }
    #[inline(always)]
    pub(crate) fn is_full(&self) -> bool {
        self.top == self.high
    }
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.stored_keys + (self.top.addr() - self.bottom.addr()) / size_of::<W>()
    }
    /// Returns the maximum number of keys in the current block.
    pub(crate) fn places(&self) -> usize {
        (self.high.addr() - self.bottom.addr()) / size_of::<W>()
    }

    /// Returns the key of the next element.
    ///
    /// # Safety
    /// There is a marked key.
    #[inline(always)]
    pub(crate) unsafe fn peek(&self) -> W {
        debug_assert!(!self.is_empty());
        // SAFETY: there is a key below the top.
        unsafe { *self.top.sub(1) }
    }
    /// Removes the key that `peek` returns.
    ///
    /// # Safety
    /// There is a marked key.
    #[inline(always)]
    pub(crate) unsafe fn pop(&mut self) {
        // SAFETY: there is a marked key, so the top stays at `low` or above it.
        self.top = unsafe { self.top.sub(1) };
    }
    /// Adds a key.
    ///
    /// # Safety
    /// The current block is not full. The slot of the key is marked.
    #[inline(always)]
    pub(crate) unsafe fn push(&mut self, key: W) {
        debug_assert!(!self.is_full());
        // SAFETY: the top is below `high`.
        unsafe {
            *self.top = key;
            self.top = self.top.add(1);
        }
    }

    /// Returns whether the mark bits of some slots without an element are set.
    #[inline]
    pub(crate) fn has_stale_marks(&self) -> bool {
        self.top != self.low.load(Ordering::Acquire) || self.stored_marked.load(Ordering::Acquire)
    }

    /// Clears the mark bits of the slots of all free keys. Other threads may iterate at the same
    /// time, and may call this function too.
    #[cold]
    #[inline(never)]
    pub(crate) fn unmark_all<K: Key<Bits = W>, V>(&self, view: &View<K, V>) {
        #[cfg(target_has_atomic = "8")]
        if !self.unmarking.swap(true, Ordering::Acquire) {
            let mut stored = self.stored;
            while let Some(block) = stored {
                // SAFETY: the blocks in the list belong to this stack.
                let Block { next, places, unmarked, .. } = unsafe { block.as_ref() };
                let keys = Block::keys::<W>(block);
                self.unmark(
                    view,
                    keys.wrapping_add(unmarked.load(Ordering::Relaxed)),
                    keys.wrapping_add(*places),
                );
                unmarked.store(*places, Ordering::Relaxed);
                stored = *next;
            }
            self.unmark(view, self.low.load(Ordering::Relaxed), self.top);
            self.stored_marked.store(false, Ordering::Release);
            self.low.store(self.top, Ordering::Release);
            self.unmarking.store(false, Ordering::Release);
        }
        #[cfg(not(target_has_atomic = "8"))]
        let _ = (view, &self.unmarking);
    }

    #[cfg(target_has_atomic = "8")]
    fn unmark<K: Key<Bits = W>, V>(&self, view: &View<K, V>, from: *mut W, to: *mut W) {
        let mut at = from;
        while at != to {
            // SAFETY: `at` is the address of a key, and the slot of the key is in a chunk. Nothing
            // else changes mark bits: only one thread at a time runs this function, and all other
            // changes need exclusive access to the map.
            unsafe { view.slot_of(*at).unmark() };
            at = at.wrapping_add(1);
        }
    }

    /// Turns up to `most` unmarked keys into marked keys, and returns these keys. The caller has to
    /// set the mark bits of their slots. Requires that no key is marked yet, and that the current
    /// block is not empty.
    pub(crate) fn mark_some(&mut self, most: usize) -> &[W] {
        let len = self.keys().len();
        let count = most.min(len);
        *self.low.get_mut() = self.top.wrapping_sub(count);
        &self.keys()[len - count..]
    }

    /// Returns the keys of the current block. The last key is used next.
    pub(crate) fn keys(&self) -> &[W] {
        let len = (self.top.addr() - self.bottom.addr()) / size_of::<W>();
        // SAFETY: there are keys from the bottom to the top.
        unsafe { core::slice::from_raw_parts(self.bottom, len) }
    }
    /// Returns the keys of the current block, so that the caller can change the order of the keys.
    /// All of these keys are marked.
    pub(crate) fn keys_mut(&mut self) -> &mut [W] {
        let len = self.keys().len();
        // SAFETY: there are keys from the bottom to the top, and access is exclusive.
        unsafe { core::slice::from_raw_parts_mut(self.bottom, len) }
    }
    /// Calls `f` with every key.
    pub(crate) fn for_each(&self, mut f: impl FnMut(W)) {
        self.keys().iter().copied().for_each(&mut f);
        let mut stored = self.stored;
        while let Some(block) = stored {
            // SAFETY: the blocks in the list belong to this stack, and are full.
            unsafe {
                let keys = Block::keys::<W>(block);
                (0..block.as_ref().places).for_each(|i| f(*keys.wrapping_add(i)));
                stored = block.as_ref().next;
            }
        }
    }
    /// Removes the `count` keys of the current block that would be used last.
    pub(crate) fn forget(&mut self, count: usize) {
        let unmarked = self.unmarked();
        self.keys_mut().copy_within(count.., 0);
        self.top = self.top.wrapping_sub(count);
        *self.low.get_mut() = self.bottom.wrapping_add(unmarked.saturating_sub(count));
    }
    fn unmarked(&mut self) -> usize {
        (self.low.get_mut().addr() - self.bottom.addr()) / size_of::<W>()
    }

    /// Moves the current block, which is full, to the full blocks, and makes the block `empty` the
    /// current block.
    pub(crate) fn store(&mut self, empty: NonNull<Block>) {
        if let Some(mut full) = self.block {
            let unmarked = self.unmarked();
            self.stored_keys += self.places();
            *self.stored_marked.get_mut() |= unmarked != self.places();
            // SAFETY: the block belongs to this stack, and access is exclusive.
            let full_block = unsafe { full.as_mut() };
            *full_block.unmarked.get_mut() = unmarked;
            full_block.next = self.stored.replace(full);
        }
        self.continue_in(empty, 0, 0);
    }
    /// Makes the full block that was stored last the current block. Requires that the present
    /// current block is empty. Returns the empty block if it is not needed as the spare block.
    pub(crate) fn unstore(&mut self) -> Option<NonNull<Block>> {
        let mut full = self.stored?;
        let emptied = self.block;
        // SAFETY: the block belongs to this stack, and access is exclusive.
        let (places, unmarked) = unsafe {
            self.stored = full.as_ref().next;
            (full.as_ref().places, *full.as_mut().unmarked.get_mut())
        };
        self.stored_keys -= places;
        self.continue_in(full, places, unmarked);
        if self.stored.is_none() {
            *self.stored_marked.get_mut() = false;
        }
        match self.spare {
            Some(_) => emptied,
            None => {
                self.spare = emptied;
                None
            }
        }
    }
    pub(crate) fn take_spare(&mut self) -> Option<NonNull<Block>> {
        self.spare.take()
    }
    fn continue_in(&mut self, block: NonNull<Block>, keys: usize, unmarked: usize) {
        // SAFETY: the block belongs to this stack from now on.
        let places = unsafe {
            (*block.as_ptr()).next = None;
            block.as_ref().places
        };
        self.block = Some(block);
        self.bottom = Block::keys(block);
        self.high = self.bottom.wrapping_add(places);
        self.top = self.bottom.wrapping_add(keys);
        *self.low.get_mut() = self.bottom.wrapping_add(unmarked);
    }

    /// Moves all keys to a larger block, and returns the old block. Requires that no other block is
    /// stored.
    pub(crate) fn widen(&mut self, to: NonNull<Block>) -> Option<NonNull<Block>> {
        let (len, unmarked, before) = (self.keys().len(), self.unmarked(), self.block);
        // SAFETY: the new block is larger, and does not overlap the old one.
        unsafe { ptr::copy_nonoverlapping(self.bottom, Block::keys(to), len) };
        self.continue_in(to, len, unmarked);
        before
    }

    /// Returns all blocks, as up to three linked lists.
    pub(super) fn into_block_lists(self) -> [Option<NonNull<Block>>; 3] {
        [self.block, self.stored, self.spare]
    }
}
