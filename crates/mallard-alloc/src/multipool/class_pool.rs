//! The pool of one size class.

use super::chunks::{Chunk, Chunks};
use super::list::FreeList;
use crate::base::growth::GrowthState;
use crate::{Growth, Source, Statistics, Validity};
use core::alloc::Layout;
use core::cell::Cell;
use core::ptr::{null_mut, NonNull};

/// The size and the alignment of the blocks of a class.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    pub(super) bytes: usize,
    pub(super) align: usize,
}

/// The pool of one size class. Each call passes the source as an argument. The pool has a list of
/// free blocks, and a bump range of slots that were never in use. A slot is not touched before it
/// is allocated. The bump range is the rest of a chunk, or several neighbouring slots of a
/// bootstrap slab.
///
/// The source may call the pool that it serves. So no function keeps a borrow while it calls the
/// source, and each function reads its fields again after the call.
#[repr(C)] // most calls use the first cache line only
pub(super) struct ClassPool {
    free: FreeList,
    fresh: Cell<*mut u8>,
    fresh_end: Cell<*mut u8>,
    shape: Shape,
    chunks: Chunks,
    growth: GrowthState,
    refills: Cell<usize>,
}

impl ClassPool {
    pub(super) const fn new(shape: Shape, growth: Growth) -> Self {
        Self {
            free: FreeList::new(),
            fresh: Cell::new(null_mut()),
            fresh_end: Cell::new(null_mut()),
            shape,
            chunks: Chunks::new(),
            growth: GrowthState::new(growth),
            refills: Cell::new(0),
        }
    }

    /// Allocates a free block, or a slot of the bump range. Never calls the source.
    #[inline(always)]
    pub(super) fn pop(&self) -> Option<NonNull<u8>> {
        if let Some(block) = self.free.pop() {
            return Some(block);
        }
        let fresh = self.fresh.get();
        if fresh == self.fresh_end.get() {
            return None;
        }
        self.fresh.set(fresh.wrapping_add(self.shape.bytes));
        // SAFETY: a bump range that is not empty has slots, and no slot is at address 0.
        Some(unsafe { NonNull::new_unchecked(fresh) })
    }

    /// Frees a block.
    ///
    /// # Safety
    /// `block` is a block of this pool that nobody uses any more.
    #[inline(always)]
    pub(super) unsafe fn push(&self, block: NonNull<u8>) {
        // SAFETY: the caller guarantees that nobody uses the block. The smallest blocks have the
        // size of a link.
        unsafe { self.free.push(block) }
    }

    /// Allocates a block as `pop` does, or else from a new chunk. Returns `None` if the source is
    /// exhausted, or the limit is reached.
    pub(super) fn allocate<S: Source>(&self, source: &S) -> Option<NonNull<u8>> {
        self.refills.set(self.refills.get() + 1);
        if self.is_used_up() {
            self.grow(source)?;
            self.open_next();
        }
        self.pop()
    }

    /// Returns whether an allocation needs a new chunk. If so, the pool has no free block and no
    /// unused slot.
    pub(super) fn is_used_up(&self) -> bool {
        self.free.is_empty() && self.fresh_count() == 0 && !self.open_next()
    }

    /// Makes neighbouring slots the bump range of this pool.
    ///
    /// # Safety
    /// Nobody uses the slots, and they have the shape of this class. The slots exist until
    /// `forget_idle` or `reset` is called.
    pub(super) unsafe fn add_fresh(&self, (begin, end): (*mut u8, *mut u8)) {
        let mut slot = self.fresh.replace(begin);
        let range_end = self.fresh_end.replace(end);
        while let (true, Some(block)) = (slot != range_end, NonNull::new(slot)) {
            // While the source supplied the slab, it may have called this multipool, and that call
            // may have opened a new bump range. The slots of that range are pushed on the free
            // list, so that they are not lost.
            // SAFETY: the block is a slot of the old range, which nobody uses.
            unsafe { self.free.push(block) };
            slot = slot.wrapping_add(self.shape.bytes);
        }
    }

    /// Makes the next chunk the bump range. Returns `false` if there is no next chunk.
    fn open_next(&self) -> bool {
        let Some(chunk) = self.chunks.advance() else { return false };
        self.fresh.set(chunk.begin(self.shape.align));
        self.fresh_end.set(chunk.room_end.get());
        chunk.cut.set(chunk.room_end.get());
        true
    }

    /// Requests one more chunk from the source, and adds the chunk at the end of the list.
    fn grow<S: Source>(&self, source: &S) -> Option<()> {
        let shape = self.shape;
        // The largest padding before the first block.
        let skipped = shape.align.saturating_sub(Chunk::ALIGN);
        let least = Chunk::HEADER_BYTES + skipped + shape.bytes;
        let least = Layout::from_size_align(least, Chunk::ALIGN).ok()?;
        // With a limit, the size of the chunk is reduced to a whole number of blocks, so that no
        // bytes of the limit are wasted after the last block.
        let limited = self.growth.is_limited();
        let taken = self.growth.take(source, least, least.size(), |step| match limited {
            true => step - (step - least.size()) % shape.bytes,
            false => step,
        })?;
        // SAFETY: the source has just supplied the memory, which is larger than a header.
        let chunk = unsafe { self.chunks.add(taken) };
        let begin = chunk.begin(shape.align);
        let room = (chunk.end().addr() - begin.addr()) / shape.bytes * shape.bytes;
        chunk.cut.set(begin);
        chunk.room_end.set(begin.wrapping_add(room));
        Some(())
    }

    pub(super) fn has_free(&self, p: *const u8) -> bool {
        self.is_fresh(p) || self.free.has(p)
    }
    fn is_fresh(&self, p: *const u8) -> bool {
        p >= self.fresh.get() && p < self.fresh_end.get()
    }
    fn fresh_count(&self) -> usize {
        (self.fresh_end.get().addr() - self.fresh.get().addr()) / self.shape.bytes
    }

    /// Returns whether this pool never had a chunk or a slot of a slab.
    pub(super) fn is_untouched(&self) -> bool {
        self.chunks.is_empty() && self.fresh_end.get().is_null()
    }

    /// Returns whether `p` is a block in use, another address in a chunk, or outside the chunks of
    /// this pool. Does not search the slabs.
    pub(super) fn classify(&self, p: *const u8) -> Validity {
        let Some(chunk) = self.chunks.find(p) else { return Validity::Miss };
        let begin = chunk.begin(self.shape.align);
        let is_slot =
            p >= begin && p < chunk.cut.get() && (p.addr() - begin.addr()) % self.shape.bytes == 0;
        match is_slot && !self.has_free(p) {
            true => Validity::Valid,
            false => Validity::Invalid,
        }
    }

    /// Frees all blocks. Later allocations use the blocks in address order again.
    pub(super) fn reset(&self) {
        self.free.clear();
        self.fresh.set(null_mut());
        self.fresh_end.set(null_mut());
        self.chunks.iter().for_each(|chunk| chunk.cut.set(chunk.begin(self.shape.align)));
        self.chunks.rewind();
    }

    pub(super) fn release<S: Source>(&self, source: &S) {
        self.reset();
        self.chunks.iter().for_each(|chunk| chunk.set_in_use(0));
        self.chunks.give_idle(source, |bytes| self.growth.gave(bytes));
        self.growth.restart();
    }

    /// Sorts the free blocks. For each free block whose chunk is in `chunks`, subtracts 1 from the
    /// chunk's number of blocks in use.
    pub(super) fn count_free(&self, chunks: &Chunks) {
        self.free.sort();
        let mut chunk_of = chunks.finder();
        for block in self.free.iter() {
            if let Some(chunk) = chunk_of(block) {
                chunk.take_off(1);
            }
        }
        if let (true, Some(chunk)) = (self.fresh_count() != 0, chunks.find(self.fresh.get())) {
            chunk.take_off(self.fresh_count());
        }
    }

    /// Discards the free blocks in idle chunks (chunks without a block in use).
    pub(super) fn forget_idle(&self, chunks: &Chunks) {
        let mut chunk_of = chunks.finder();
        self.free.remove(|block| chunk_of(block).is_some_and(Chunk::is_idle));
        if chunks.find(self.fresh.get()).is_some_and(Chunk::is_idle) {
            self.fresh.set(null_mut());
            self.fresh_end.set(null_mut());
        }
    }

    /// Returns to the source the chunks without a block in use, but keeps `keep` bytes of them.
    pub(super) fn trim<S: Source>(&self, source: &S, mut keep: usize) {
        for chunk in self.chunks.iter() {
            chunk.set_in_use(chunk.cut_bytes(self.shape.align) / self.shape.bytes);
        }
        self.count_free(&self.chunks);
        for chunk in self.chunks.iter().filter(|chunk| chunk.is_idle()) {
            if chunk.bytes <= keep {
                keep -= chunk.bytes;
                chunk.set_in_use(1); // so that the chunk stays
            }
        }
        self.forget_idle(&self.chunks);
        self.chunks.give_idle(source, |bytes| self.growth.gave(bytes));
    }

    pub(super) fn add_to(&self, s: &mut Statistics) {
        let at_hand = self.free.iter().count() + self.fresh_count();
        for chunk in self.chunks.iter() {
            let cut = chunk.cut_bytes(self.shape.align);
            s.chunks += 1;
            s.blocks_live += cut / self.shape.bytes;
            s.bytes_live += cut;
            s.bytes_idle += chunk.room_end.get().addr() - chunk.cut.get().addr();
        }
        // The free list also contains blocks of slabs, which are counted elsewhere. So the numbers
        // here may be below 0 until the slabs are added, and the subtractions wrap.
        s.blocks_live = s.blocks_live.wrapping_sub(at_hand);
        s.bytes_live = s.bytes_live.wrapping_sub(at_hand * self.shape.bytes);
        s.bytes_idle += at_hand * self.shape.bytes;
        s.bytes_taken += self.growth.taken();
        s.growths += self.growth.steps();
        s.refills += self.refills.get();
    }
}
