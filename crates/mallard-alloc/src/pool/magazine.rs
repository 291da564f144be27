//! Free blocks of one size, in an array.

use crate::source::Chunk;
use core::cell::Cell;
use core::ptr::{null_mut, NonNull};

type Block = NonNull<u8>;

/// A stack of pointers beside the blocks, so that neither push nor pop reads or writes a free
/// block. The name is Bonwick's ("Magazines and Vmem", 2001).
///
/// `low <= top <= high`. Without memory it is empty and full at once: all three null.
#[repr(C)]
pub(crate) struct Magazine {
    top: Cell<*mut Block>,
    low: Cell<*mut Block>,
    high: Cell<*mut Block>,
    /// Of the memory at `low`.
    bytes: Cell<usize>,
    reloaded: Cell<bool>,
}

impl Magazine {
    pub(crate) const fn new() -> Self {
        Self {
            top: Cell::new(null_mut()),
            low: Cell::new(null_mut()),
            high: Cell::new(null_mut()),
            bytes: Cell::new(0),
            reloaded: Cell::new(false),
        }
    }

    pub(crate) fn has_memory(&self) -> bool {
        !self.low.get().is_null()
    }
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.top.get() == self.low.get()
    }
    #[inline(always)]
    pub(crate) fn is_full(&self) -> bool {
        self.top.get() == self.high.get()
    }
    pub(crate) fn len(&self) -> usize {
        (self.top.get().addr() - self.low.get().addr()) / size_of::<Block>()
    }
    pub(crate) fn capacity(&self) -> usize {
        (self.high.get().addr() - self.low.get().addr()) / size_of::<Block>()
    }

    #[inline(always)]
    pub(crate) fn pop(&self) -> Option<Block> {
        if self.is_empty() {
            return None;
        }
        let top = self.top.get().wrapping_sub(1);
        self.top.set(top);
        // SAFETY: not empty, so there is one below what was the top.
        Some(unsafe { top.read() })
    }

    /// `false` when full.
    #[inline(always)]
    pub(crate) fn push(&self, block: Block) -> bool {
        if self.is_full() {
            return false;
        }
        let top = self.top.get();
        // SAFETY: not full, so the top is within the array.
        unsafe { top.write(block) };
        self.top.set(top.wrapping_add(1));
        true
    }

    /// What it holds, oldest first.
    pub(crate) fn blocks(&self) -> &[Block] {
        if !self.has_memory() {
            return &[];
        }
        // SAFETY: all below the top are written. Callers let go of it before they push or pop.
        unsafe { core::slice::from_raw_parts(self.low.get(), self.len()) }
    }

    /// Lets `f` write to the first `room` places of an empty array, and say how many it wrote.
    pub(crate) fn load(&self, room: usize, f: impl FnOnce(*mut Block) -> usize) {
        debug_assert!(self.is_empty() && room <= self.capacity());
        self.reloaded.set(true);
        self.top.set(self.low.get().wrapping_add(f(self.low.get())));
    }

    /// Whether anything was loaded since this was asked last.
    pub(crate) fn was_reloaded(&self) -> bool {
        self.reloaded.replace(false)
    }

    pub(crate) fn clear(&self) {
        self.top.set(self.low.get());
        self.reloaded.set(false);
    }

    /// Forgets the oldest `count`.
    pub(crate) fn drop_oldest(&self, count: usize) {
        let left = self.len() - count;
        let low = self.low.get();
        // SAFETY: both are within what is written.
        unsafe { low.copy_from(low.wrapping_add(count), left) };
        self.top.set(low.wrapping_add(left));
    }

    /// Moves what it holds into a larger array of `entries`, at the front of `memory`. Gives the
    /// memory it leaves, which is the caller's again.
    ///
    /// # Safety
    /// `memory` is the caller's to give, and has room.
    pub(crate) unsafe fn move_to(&self, memory: Chunk, entries: usize) -> Option<Chunk> {
        let (low, len) = (memory.data.cast::<Block>().as_ptr(), self.len());
        if len != 0 {
            // SAFETY: they are written, and `memory` is larger and another.
            unsafe { low.copy_from_nonoverlapping(self.low.get(), len) };
        }
        let old = self.memory();
        self.low.set(low);
        self.top.set(low.wrapping_add(len));
        self.high.set(low.wrapping_add(entries));
        self.bytes.set(memory.layout.size());
        old
    }

    /// What the source gave.
    fn memory(&self) -> Option<Chunk> {
        let data = NonNull::new(self.low.get())?.cast();
        let layout = crate::bits::layout(self.bytes.get(), align_of::<Block>())?;
        Some(Chunk { data, layout })
    }

    /// Empties it. Its memory is the caller's.
    pub(crate) fn forget(&self) -> Option<Chunk> {
        let memory = self.memory();
        self.low.set(null_mut());
        self.high.set(null_mut());
        self.clear();
        memory
    }
}
