//! The keys that the next elements get.

use super::View;
use crate::base::bits::{align_up, layout};
use crate::base::source::Chunk;
use crate::slot_map::key::Key;
use core::alloc::Layout;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

/// A stack of keys: blocks of them, of which all but one are full. Without memory it is empty and
/// full.
///
/// ```text
/// | parked | ready | no key |      | full block | -> | full block |
/// bottom   low     top      high   stored
/// ```
///
/// The slots of those that are ready have a mark, as the living have: so where keys come and go no
/// bit is written. The slots of those that are parked have none. Who walks over the map and meets
/// the marks of the ready must ask each slot; at the end of the walk it removes them and parks all,
/// so that others need not. This is why `low`, and what says the same of full blocks, may change
/// under a shared reference; all else does not.
pub(crate) struct AtHand<W> {
    pub(crate) top: *mut W,
    low: AtomicPtr<W>,
    high: *mut W,
    bottom: *mut W,
    block: Option<NonNull<Block>>,
    stored: Option<NonNull<Block>>,
    /// In the full blocks.
    stored_keys: usize,
    /// Whether there are ready ones among them.
    stored_ready: AtomicBool,
    /// One empty block, so that who goes to and fro between two of them takes none.
    spare: Option<NonNull<Block>>,
    parking: AtomicBool,
}

/// What is in front of a block of keys.
pub(crate) struct Block {
    next: Option<NonNull<Block>>,
    /// Of the chunk that it is.
    layout: Layout,
    /// Places for keys.
    places: usize,
    /// How many of its keys are parked, if it is full.
    parked: AtomicUsize,
}

impl Block {
    const ALIGN: usize = if align_of::<Block>() < 8 { 8 } else { align_of::<Block>() };
    const KEYS_AT: usize = align_up(size_of::<Block>(), 8);

    pub(crate) const fn layout<W>(places: usize) -> Option<Layout> {
        layout(Self::KEYS_AT + places * size_of::<W>(), Self::ALIGN)
    }
    /// Makes one of a chunk.
    ///
    /// # Safety
    /// It is memory of this layout for at least so many places, and nobody else uses it.
    pub(crate) unsafe fn make(at: NonNull<u8>, layout: Layout, places: usize) -> NonNull<Block> {
        let block = at.cast::<Block>();
        let parked = AtomicUsize::new(0);
        // SAFETY: as the caller says.
        unsafe { block.write(Self { next: None, layout, places, parked }) };
        block
    }
    /// # Safety
    /// It is a block.
    pub(super) unsafe fn next(block: NonNull<Block>) -> Option<NonNull<Block>> {
        // SAFETY: as the caller says.
        unsafe { block.as_ref().next }
    }
    /// # Safety
    /// It is a block.
    pub(super) unsafe fn chunk(block: NonNull<Block>) -> Chunk {
        // SAFETY: as the caller says.
        Chunk { data: block.cast(), layout: unsafe { block.as_ref().layout } }
    }
    fn keys<W>(block: NonNull<Block>) -> *mut W {
        block.as_ptr().wrapping_byte_add(Self::KEYS_AT).cast()
    }
}

impl<W: Copy> AtHand<W> {
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
            stored_ready: AtomicBool::new(false),
            spare: None,
            parking: AtomicBool::new(false),
        }
    }
    /// Whether none is ready.
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
    /// Of the block that is not full.
    pub(crate) fn places(&self) -> usize {
        (self.high.addr() - self.bottom.addr()) / size_of::<W>()
    }

    /// What the next element gets.
    ///
    /// # Safety
    /// One is ready.
    #[inline(always)]
    pub(crate) unsafe fn peek(&self) -> W {
        debug_assert!(!self.is_empty());
        // SAFETY: below the top is a key.
        unsafe { *self.top.sub(1) }
    }
    /// # Safety
    /// One is ready.
    #[inline(always)]
    pub(crate) unsafe fn pop(&mut self) {
        // SAFETY: the top stays at the low end or above it.
        self.top = unsafe { self.top.sub(1) };
    }
    /// # Safety
    /// It is not full. The slot of the key is marked.
    #[inline(always)]
    pub(crate) unsafe fn push(&mut self, key: W) {
        debug_assert!(!self.is_full());
        // SAFETY: the top is below the high end.
        unsafe {
            *self.top = key;
            self.top = self.top.add(1);
        }
    }

    /// Whether there are marks of slots that are not alive.
    #[inline]
    pub(crate) fn is_doubtful(&self) -> bool {
        self.top != self.low.load(Ordering::Acquire) || self.stored_ready.load(Ordering::Acquire)
    }

    /// Parks all, and removes their marks. Others may walk meanwhile, and do the same.
    #[cold]
    #[inline(never)]
    pub(crate) fn park<K: Key<Bits = W>, V>(&self, view: &View<K, V>) {
        #[cfg(target_has_atomic = "8")]
        if !self.parking.swap(true, Ordering::Acquire) {
            let mut stored = self.stored;
            while let Some(block) = stored {
                // SAFETY: the blocks in the list are this stack's.
                let Block { next, places, parked, .. } = unsafe { block.as_ref() };
                let keys = Block::keys::<W>(block);
                self.unmark(
                    view,
                    keys.wrapping_add(parked.load(Ordering::Relaxed)),
                    keys.wrapping_add(*places),
                );
                parked.store(*places, Ordering::Relaxed);
                stored = *next;
            }
            self.unmark(view, self.low.load(Ordering::Relaxed), self.top);
            self.stored_ready.store(false, Ordering::Release);
            self.low.store(self.top, Ordering::Release);
            self.parking.store(false, Ordering::Release);
        }
        #[cfg(not(target_has_atomic = "8"))]
        let _ = (view, &self.parking);
    }

    #[cfg(target_has_atomic = "8")]
    fn unmark<K: Key<Bits = W>, V>(&self, view: &View<K, V>, from: *mut W, to: *mut W) {
        let mut at = from;
        while at != to {
            // SAFETY: these are keys, whose slots are in chunks. Nobody else changes marks: for that
            // one must be here, or have the map to itself.
            unsafe { view.slot_of(*at).unmark() };
            at = at.wrapping_add(1);
        }
    }

    /// Makes `most` of the parked ready, and gives them. None is ready, and the block is not empty.
    pub(crate) fn unpark(&mut self, most: usize) -> &[W] {
        let len = self.keys().len();
        let count = most.min(len);
        *self.low.get_mut() = self.top.wrapping_sub(count);
        &self.keys()[len - count..]
    }

    /// Those of the block that is not full, from the one that comes last to the next.
    pub(crate) fn keys(&self) -> &[W] {
        let len = (self.top.addr() - self.bottom.addr()) / size_of::<W>();
        // SAFETY: those from the bottom to the top are keys.
        unsafe { core::slice::from_raw_parts(self.bottom, len) }
    }
    /// The same, to change their order. All are ready.
    pub(crate) fn keys_mut(&mut self) -> &mut [W] {
        let len = self.keys().len();
        // SAFETY: the same, and this has them to itself.
        unsafe { core::slice::from_raw_parts_mut(self.bottom, len) }
    }
    /// Calls `f` for all keys.
    pub(crate) fn for_each(&self, mut f: impl FnMut(W)) {
        self.keys().iter().copied().for_each(&mut f);
        let mut stored = self.stored;
        while let Some(block) = stored {
            // SAFETY: the blocks in the list are this stack's, and full.
            unsafe {
                let keys = Block::keys::<W>(block);
                (0..block.as_ref().places).for_each(|i| f(*keys.wrapping_add(i)));
                stored = block.as_ref().next;
            }
        }
    }
    /// The `count` of the block that come last are no longer in it.
    pub(crate) fn forget(&mut self, count: usize) {
        let parked = self.parked();
        self.keys_mut().copy_within(count.., 0);
        self.top = self.top.wrapping_sub(count);
        *self.low.get_mut() = self.bottom.wrapping_add(parked.saturating_sub(count));
    }
    fn parked(&mut self) -> usize {
        (self.low.get_mut().addr() - self.bottom.addr()) / size_of::<W>()
    }

    /// Goes on in an empty block; the one there was is full, and stored.
    pub(crate) fn store(&mut self, empty: NonNull<Block>) {
        if let Some(mut full) = self.block {
            let parked = self.parked();
            self.stored_keys += self.places();
            *self.stored_ready.get_mut() |= parked != self.places();
            // SAFETY: it is this stack's, and nobody else uses it.
            let full_block = unsafe { full.as_mut() };
            *full_block.parked.get_mut() = parked;
            full_block.next = self.stored.replace(full);
        }
        self.go_on_in(empty, 0, 0);
    }
    /// Goes on in the full block that was stored last. The one there is is empty.
    pub(crate) fn unstore(&mut self) -> Option<NonNull<Block>> {
        let mut full = self.stored?;
        let emptied = self.block;
        // SAFETY: it is this stack's, and nobody else uses it.
        let (places, parked) = unsafe {
            self.stored = full.as_ref().next;
            (full.as_ref().places, *full.as_mut().parked.get_mut())
        };
        self.stored_keys -= places;
        self.go_on_in(full, places, parked);
        if self.stored.is_none() {
            *self.stored_ready.get_mut() = false;
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
    fn go_on_in(&mut self, block: NonNull<Block>, keys: usize, parked: usize) {
        // SAFETY: it is this stack's from now on.
        let places = unsafe {
            (*block.as_ptr()).next = None;
            block.as_ref().places
        };
        self.block = Some(block);
        self.bottom = Block::keys(block);
        self.high = self.bottom.wrapping_add(places);
        self.top = self.bottom.wrapping_add(keys);
        *self.low.get_mut() = self.bottom.wrapping_add(parked);
    }

    /// Moves to a larger block, and gives the one there was. Nothing is stored.
    pub(crate) fn widen(&mut self, to: NonNull<Block>) -> Option<NonNull<Block>> {
        let (len, parked, before) = (self.keys().len(), self.parked(), self.block);
        // SAFETY: it has more places, which are others.
        unsafe { ptr::copy_nonoverlapping(self.bottom, Block::keys(to), len) };
        self.go_on_in(to, len, parked);
        before
    }

    /// The blocks that it has, as lists.
    pub(super) fn into_lists(self) -> [Option<NonNull<Block>>; 3] {
        [self.block, self.stored, self.spare]
    }
}
