//! The bump pointer of an arena, and the slow path that moves it to another chunk.

use super::chunks::{chunk_layout, Chunks, Footer, CHUNK_ALIGN};
use crate::base::bits::{align_up, dangling, PAGE_BYTES};
use crate::base::growth::GrowthState;
use crate::{Growth, Source, Statistics};
use core::alloc::Layout;
use core::cell::Cell;
use core::mem::MaybeUninit;
use core::ptr::{self, NonNull};

/// The bump pointer of an arena, and its chunks.
///
/// Invariants between any two calls:
///
/// - `cursor..end` is free. If the arena has no memory, both are [`NOWHERE`], and the arena counts
///   as full.
/// - Otherwise `end` is the address of the footer of the *current* chunk. Both pointers are derived
///   from the pointer to that chunk, so they may access all of the chunk.
/// - `cursor`, `end` and the start of every chunk are multiples of `M`.
#[repr(C)] // the two fields of the hot path come first
pub(crate) struct Blocks<const M: usize> {
    cursor: Cell<*mut u8>,
    end: Cell<*mut u8>,
    chunks: Chunks,
    growth: GrowthState,
}

const NOWHERE: *mut u8 = ptr::without_provenance_mut(CHUNK_ALIGN);

/// A position to which a rewind returns. It consists of the cursor, and of the newest chunk in use
/// at that moment. If no newer chunk has come into use since, the cursor is still in the same
/// chunk, and the rewind need not look for the chunk.
#[derive(Clone, Copy)]
pub(crate) struct Position {
    used: *mut Footer,
    cursor: *mut u8,
}

/// The free bytes at the end of a chunk.
pub(crate) struct Run {
    pub(crate) start: *mut u8,
    pub(crate) end: *mut u8,
}

impl<const M: usize> Blocks<M> {
    pub(crate) const fn new(growth: Growth) -> Self {
        assert!(M.is_power_of_two() && M <= CHUNK_ALIGN, "MIN_ALIGN is 1, 2, 4, 8 or 16");
        Self {
            cursor: Cell::new(NOWHERE),
            end: Cell::new(NOWHERE),
            chunks: Chunks::new(),
            growth: GrowthState::new(growth),
        }
    }

    /// Allocates a block for one `T`, or returns `None` if the current chunk has no room. If
    /// `ALIGNED` is true, the caller guarantees that the cursor is aligned for `T`.
    ///
    /// Adding the size of a small `T` to the cursor cannot wrap, because no chunk reaches into the
    /// last page of the address space. This addition takes one or two instructions less than a
    /// subtraction of the size from the end.
    #[inline(always)]
    pub(crate) fn bump_for<T, const ALIGNED: bool>(&self) -> Option<NonNull<u8>> {
        debug_assert!(size_of::<T>() != 0);
        if const { size_of::<T>() + align_of::<T>() > PAGE_BYTES - CHUNK_ALIGN } {
            return self.bump(Layout::new::<T>());
        }
        let cursor = self.cursor.get();
        let block = match ALIGNED || align_of::<T>() <= M {
            true => cursor,
            false => cursor.map_addr(|a| align_up(a, align_of::<T>())),
        };
        let next = block.wrapping_add(align_up(size_of::<T>(), M));
        if next.addr() > self.end.get().addr() {
            return None;
        }
        self.cursor.set(next);
        // SAFETY: `cursor` is above 0, and neither aligning nor adding wrapped.
        Some(unsafe { NonNull::new_unchecked(block) })
    }

    /// Returns a block for any layout with a size above 0, or `None` if the current chunk has no
    /// room for the block.
    ///
    /// One comparison suffices for every size and alignment. `needed` cannot overflow, because
    /// `padding` is less than the alignment, a `Layout` guarantees that its size rounded up to its
    /// alignment fits `isize`, and `M` adds less than 16.
    #[inline(always)]
    pub(crate) fn bump(&self, layout: Layout) -> Option<NonNull<u8>> {
        let cursor = self.cursor.get();
        let padding = match M > 1 && layout.align() <= M {
            true => 0, // the other branch also computes 0, but the compiler does not find out
            false => cursor.addr().wrapping_neg() & (layout.align() - 1),
        };
        let needed = padding + align_up(layout.size(), M);
        if needed > self.room() {
            return None;
        }
        self.cursor.set(cursor.wrapping_add(needed));
        // SAFETY: `cursor` is above 0, and moves up inside one chunk.
        Some(unsafe { NonNull::new_unchecked(cursor.wrapping_add(padding)) })
    }

    /// Returns a block of any size that is aligned for `T`, or `None` if the current chunk has no
    /// room for the block. A size of 0 always fits and needs no separate test.
    ///
    /// If the end of a chunk is aligned for `T`, rounding the cursor up never passes the end, and
    /// fewer instructions are needed.
    #[inline(always)]
    pub(crate) fn bump_many<T>(&self, layout: Layout) -> Option<NonNull<u8>> {
        debug_assert!(layout.align() == align_of::<T>());
        if size_of::<T>() == 0 || (align_of::<T>() > CHUNK_ALIGN && layout.size() == 0) {
            return Some(dangling(layout));
        }
        if align_of::<T>() > CHUNK_ALIGN {
            return self.bump(layout);
        }
        let cursor = self.cursor.get();
        let block = match align_of::<T>() <= M {
            true => cursor,
            false => cursor.map_addr(|a| align_up(a, align_of::<T>())),
        };
        let bytes = align_up(layout.size(), M);
        if bytes > self.end.get().addr() - block.addr() {
            return None;
        }
        self.cursor.set(block.wrapping_add(bytes));
        // SAFETY: `cursor` is above 0, and moved up inside one chunk.
        Some(unsafe { NonNull::new_unchecked(block) })
    }

    /// Frees `block` if it is the arena's last block.
    #[inline(always)]
    pub(crate) fn pop(&self, block: NonNull<u8>, bytes: usize) {
        let (cursor, bytes) = (self.cursor.get(), align_up(bytes, M));
        if block.addr().get().wrapping_add(bytes) == cursor.addr() {
            // The new cursor is derived from the old cursor and not from `block`. In Rust, a
            // pointer derived from `block` may access only the block, but the cursor must reach the
            // whole chunk.
            self.cursor.set(cursor.wrapping_sub(bytes));
        }
    }

    /// Grows or shrinks a block in place. Only the last block can grow, while its chunk has room.
    /// If the result is `false`, nothing has changed.
    #[inline(always)]
    pub(crate) fn expand(&self, block: NonNull<u8>, from: Layout, to: Layout) -> bool {
        let (cursor, start) = (self.cursor.get(), block.addr().get());
        // A larger alignment is possible only if the block's address happens to have this
        // alignment.
        if to.align() > from.align() && start & (to.align() - 1) != 0 {
            return false;
        }
        if from.size() == 0 {
            return to.size() == 0 && to.align() <= from.align();
        }
        if start.wrapping_add(align_up(from.size(), M)) != cursor.addr() {
            return to.size() <= from.size();
        }
        if to.size() > self.end.get().addr() - start {
            return false;
        }
        self.cursor.set(cursor.with_addr(start + align_up(to.size(), M)));
        true
    }

    /// Allocates in an idle chunk that has room, or in a new chunk. On failure nothing has
    /// changed. Every caller is a cold function.
    pub(crate) fn grow(&self, source: &impl Source, layout: Layout) -> Option<NonNull<u8>> {
        let chunk = self.next_chunk(source, layout)?;
        // SAFETY: the chunk is alive, and `next_chunk` chose it because `layout` fits.
        let (begin, padding) = unsafe { (chunk.as_ref().begin(), chunk.as_ref().place(layout)?) };
        let block = begin.wrapping_add(padding);
        self.enter(chunk, block.wrapping_add(align_up(layout.size(), M)));
        NonNull::new(block)
    }

    /// Returns a chunk in which `layout` fits. The chunk is in no list.
    fn next_chunk(&self, source: &impl Source, layout: Layout) -> Option<NonNull<Footer>> {
        if let Some(idle) = self.chunks.take_idle(layout) {
            return Some(idle);
        }
        let least = chunk_layout(layout)?;
        // With a limit, a new chunk has room for whole blocks of this layout and nothing more.
        let each = align_up(layout.size().max(1), layout.align().max(M));
        let limited = self.growth.is_limited();
        let taken = self.growth.take(source, least, least.size(), |step| {
            let cut = if limited { (step - least.size()) % each } else { 0 };
            align_up(step - cut, CHUNK_ALIGN).min(step & !(CHUNK_ALIGN - 1))
        })?;
        // SAFETY: the source has just supplied the chunk, with the size and alignment of
        // `chunk_layout`.
        let chunk = unsafe { Footer::make(taken) };
        if chunk.is_none() {
            // The chunk ends too high in the address space, so it is returned. Nothing else has
            // changed, except that later chunks grow as if this chunk had been used.
            self.growth.gave(taken.layout.size());
            // SAFETY: the chunk is returned exactly as the source supplied it.
            unsafe { source.give(taken) };
        }
        chunk
    }

    /// Adds a chunk to the chunks in use. The bytes of the chunk from `rest` on are free. The
    /// cursor moves to this chunk only if the chunk has more room than the current one, so that one
    /// large block does not waste the rest of the current chunk.
    fn enter(&self, chunk: NonNull<Footer>, rest: *mut u8) {
        let end = chunk.as_ptr().cast::<u8>();
        self.chunks.put_to_use(chunk);
        if end.addr() - rest.addr() >= self.room() {
            self.leave();
            self.cursor.set(rest);
            self.end.set(end);
        } else {
            // SAFETY: the chunk is alive, and nothing else refers to it.
            unsafe { (*chunk.as_ptr()).fill = rest };
        }
    }

    /// Stores how full the current chunk is, before the cursor moves to another chunk.
    fn leave(&self) {
        let end = self.end.get();
        if end != NOWHERE {
            // SAFETY: `end` is the footer of the current chunk.
            unsafe { (*end.cast::<Footer>()).fill = self.cursor.get() };
        }
    }

    /// Removes the rest of the current chunk from the arena, so that the caller can fill the rest
    /// while other calls allocate. The arena is full until `close_run` or until another call grows
    /// the arena.
    pub(crate) fn open_run(&self) -> Run {
        self.leave();
        Run { start: self.cursor.replace(NOWHERE), end: self.end.replace(NOWHERE) }
    }

    /// Returns a whole chunk in which `layout` fits, for the caller to fill. The arena's cursor
    /// does not move.
    pub(crate) fn take_run(&self, source: &impl Source, layout: Layout) -> Option<Run> {
        let chunk = self.next_chunk(source, layout)?;
        self.chunks.put_to_use(chunk);
        let end = chunk.as_ptr();
        // SAFETY: the chunk is alive, and nothing else refers to it.
        unsafe {
            (*end).fill = (*end).begin();
            Some(Run { start: (*end).fill, end: end.cast() })
        }
    }

    /// Returns the run of `open_run` or `take_run` to the arena. The caller has filled the run up
    /// to `fill`. The cursor moves to `fill`, unless another call has given the arena a current
    /// chunk since `open_run`.
    pub(crate) fn close_run(&self, run: &Run, fill: *mut u8) {
        if self.end.get() == NOWHERE {
            self.cursor.set(fill);
            self.end.set(run.end);
        } else if run.end != NOWHERE {
            // SAFETY: `run.end` is the footer of a chunk in use.
            unsafe { (*run.end.cast::<Footer>()).fill = fill };
        }
    }

    /// Returns the number of bytes from the cursor to the end of the current chunk.
    #[inline(always)]
    pub(crate) fn room(&self) -> usize {
        self.end.get().addr() - self.cursor.get().addr()
    }

    #[inline(always)]
    pub(crate) fn position(&self) -> Position {
        Position { used: self.chunks.used(), cursor: self.cursor.get() }
    }

    /// Frees all blocks allocated after `to`. If `to` is the start of the arena, this is a reset.
    ///
    /// # Safety
    /// `to` is a position of this arena, recorded since its last reset. No block allocated after
    /// `to` is used any more.
    #[inline(always)]
    pub(crate) unsafe fn rewind(&self, to: Position) {
        if self.chunks.used() == to.used {
            self.cursor.set(to.cursor);
        } else {
            self.rewind_chunks(to);
        }
    }

    #[cold]
    #[inline(never)]
    fn rewind_chunks(&self, to: Position) {
        if to.used.is_null() {
            return self.begin_again();
        }
        self.chunks.retire_until(to.used);
        self.cursor.set(to.cursor);
        self.end.set(self.chunks.end_of(to.cursor));
    }

    /// Frees all blocks and keeps all chunks. The arena continues in its newest chunk, which is the
    /// largest, unless a request was so large that it got a separate chunk.
    #[inline(always)]
    pub(crate) fn reset(&mut self) {
        self.begin_again();
    }

    #[inline(always)]
    fn begin_again(&self) {
        let newest = self.chunks.used();
        if newest.is_null() {
            return; // there is no memory, and the cursor is NOWHERE
        }
        // SAFETY: a chunk in a list of the arena is alive.
        self.cursor.set(unsafe { (*newest).begin() });
        if newest != self.chunks.oldest_used() {
            self.end.set(newest.cast());
            self.chunks.keep_newest();
        }
    }

    /// Frees all blocks and returns all chunks to the source.
    pub(crate) fn release(&mut self, source: &impl Source) {
        self.cursor.set(NOWHERE);
        self.end.set(NOWHERE);
        self.chunks.give_used(source, |bytes| self.growth.gave(bytes));
        self.chunks.give_idle(source, 0, |bytes| self.growth.gave(bytes));
        self.growth.restart();
    }

    /// Returns the oldest idle chunks to the source, until at most `keep` bytes are idle.
    pub(crate) fn trim(&mut self, source: &impl Source, keep: usize) {
        self.chunks.give_idle(source, keep, |bytes| self.growth.gave(bytes));
    }

    /// Returns the number of bytes that the arena holds from the source.
    #[cfg(feature = "std")]
    pub(crate) fn taken(&self) -> usize {
        self.growth.taken()
    }

    pub(crate) fn owns(&self, p: *const u8) -> bool {
        self.chunks.owns(p)
    }

    pub(crate) fn statistics(&self) -> Statistics {
        let mut s = Statistics {
            bytes_taken: self.growth.taken(),
            growths: self.growth.steps(),
            refills: self.chunks.uses(),
            ..Statistics::default()
        };
        self.chunks.each_idle(&mut |chunk| {
            s.chunks += 1;
            s.bytes_idle += chunk.bytes();
        });
        self.chunks.each_used(&mut |chunk| {
            let live = self.fill_of(chunk).addr() - chunk.begin().addr();
            s.chunks += 1;
            s.bytes_live += live;
            s.bytes_idle += chunk.bytes() - live;
        });
        s
    }

    fn fill_of(&self, chunk: &Footer) -> *mut u8 {
        if self.end.get().addr() == ptr::from_ref(chunk).addr() {
            self.cursor.get()
        } else {
            chunk.fill
        }
    }

    /// Returns the used part of each chunk, in the order in which the chunks came into use.
    pub(crate) fn filled(&self) -> Filled<'_, M> {
        let none = self.chunks.used().is_null();
        let oldest = self.chunks.oldest_used();
        Filled { blocks: self, next: if none { ptr::null_mut() } else { oldest } }
    }
}

/// Iterator over the used part of each chunk.
pub(crate) struct Filled<'a, const M: usize> {
    blocks: &'a Blocks<M>,
    next: *mut Footer,
}

impl<const M: usize> Iterator for Filled<'_, M> {
    type Item = NonNull<[MaybeUninit<u8>]>;
    fn next(&mut self) -> Option<Self::Item> {
        // SAFETY: the chunks in a list of the arena are alive.
        let chunk = unsafe { self.next.as_ref() }?;
        let last = self.blocks.chunks.used() == self.next;
        let bytes = self.blocks.fill_of(chunk).addr() - chunk.begin().addr();
        self.next = if last { ptr::null_mut() } else { chunk.newer };
        Some(NonNull::slice_from_raw_parts(chunk.taken.data.cast(), bytes))
    }
}
