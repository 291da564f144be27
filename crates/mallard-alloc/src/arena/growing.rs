//! A slice under construction, in a block that grows in place while it is the arena's last block.

use super::object_arena::ObjectArena;
use crate::base::allocator::FreesBlock;
use core::alloc::Layout;
use core::fmt;
use core::mem;
use core::ptr::{self, NonNull};

/// A slice under construction. If the slice is dropped unfinished, it drops its elements and frees
/// its block.
pub(crate) struct Growing<'a, A: ObjectArena, T> {
    arena: &'a A,
    data: NonNull<T>,
    len: usize,
    capacity: usize,
}

/// The error of a slice for whose elements there is no memory.
pub(crate) struct NoMemory;

impl<'a, A: ObjectArena, T> Growing<'a, A, T> {
    #[inline]
    pub(crate) fn with_capacity(arena: &'a A, capacity: usize) -> Option<Self> {
        let data = arena.try_place_many(Layout::array::<T>(capacity).ok()?)?;
        Some(Self { arena, data, len: 0, capacity })
    }

    /// Makes room for `more` elements, in place if possible.
    #[cold]
    #[inline(never)]
    fn reserve(&mut self, more: usize) -> Result<(), NoMemory> {
        let least = self.len.checked_add(more).ok_or(NoMemory)?;
        let roomy = least.max(self.capacity.saturating_mul(2)).max(64 / size_of::<T>().max(1));
        let from = self.layout();
        for capacity in [roomy, least] {
            let Ok(to) = Layout::array::<T>(capacity) else { continue };
            // SAFETY: the block is from this arena, with this layout.
            if unsafe { self.arena.try_expand(self.data.cast(), from, to) } {
                self.capacity = capacity;
                return Ok(());
            }
        }
        for capacity in [roomy, least] {
            if let Some(moved) = Self::with_capacity(self.arena, capacity) {
                // SAFETY: the new block has room for the `len` elements of the old one. The old block
                // is from this arena, with this layout.
                unsafe {
                    ptr::copy_nonoverlapping(self.data.as_ptr(), moved.data.as_ptr(), self.len);
                    self.arena.deallocate(self.data.cast(), from);
                }
                (self.data, self.capacity) = (moved.data, capacity);
                mem::forget(moved);
                return Ok(());
            }
        }
        Err(NoMemory)
    }

    fn layout(&self) -> Layout {
        // SAFETY: the block was allocated with this layout.
        unsafe { Layout::array::<T>(self.capacity).unwrap_unchecked() }
    }

    /// Appends all items that `items` yields.
    #[inline]
    pub(crate) fn extend(&mut self, mut items: impl Iterator<Item = T>) -> Result<(), NoMemory> {
        loop {
            self.fill(&mut items);
            let Some(item) = items.next() else { return Ok(()) };
            if self.len == self.capacity {
                self.reserve(1)?;
            }
            // SAFETY: `len` is below `capacity`.
            unsafe { self.data.add(self.len).write(item) };
            self.len += 1;
        }
    }

    /// Appends the items that `items` yields, until the block is full.
    #[inline(always)]
    fn fill(&mut self, items: &mut impl Iterator<Item = T>) {
        let (data, capacity) = (self.data, self.capacity);
        let mut len = Len::of(&mut self.len);
        while len.now < capacity {
            let Some(item) = items.next() else { return };
            // SAFETY: `len` is below `capacity`.
            unsafe { data.add(len.now).write(item) };
            len.now += 1;
        }
    }

    /// Fills an empty slice to its capacity with `f(0)`, `f(1)`, ...
    #[inline(always)]
    pub(crate) fn fill_with(&mut self, mut f: impl FnMut(usize) -> T) {
        let (data, capacity) = (self.data, self.capacity);
        let mut len = Len::of(&mut self.len);
        for n in 0..capacity {
            // SAFETY: `n` is below `capacity`.
            unsafe { data.add(n).write(f(n)) };
            len.now = n + 1;
        }
    }

    /// Returns the elements without dropping them, and frees the unused capacity.
    #[inline]
    pub(crate) fn finish(self) -> NonNull<[T]> {
        if self.len < self.capacity {
            // SAFETY: the block is from this arena with this layout, and the size of fewer elements
            // fits `isize` too. If the block cannot shrink in place, it keeps its size, which is
            // harmless.
            unsafe {
                let to = Layout::array::<T>(self.len).unwrap_unchecked();
                let _ = self.arena.try_expand(self.data.cast(), self.layout(), to);
            }
        }
        let done = NonNull::slice_from_raw_parts(self.data, self.len);
        mem::forget(self);
        done
    }
}

impl<A: ObjectArena, T> Drop for Growing<'_, A, T> {
    fn drop(&mut self) {
        // `_block` frees the block even if a destructor panics.
        let _block = FreesBlock(self.arena, self.data.cast(), self.layout());
        // SAFETY: `len` elements are initialised, and nothing else drops them.
        unsafe { ptr::slice_from_raw_parts_mut(self.data.as_ptr(), self.len).drop_in_place() }
    }
}

/// A length in a local variable, which the compiler can keep in a register. `drop` writes the
/// length back.
pub(crate) struct Len<'a> {
    kept: &'a mut usize,
    pub(crate) now: usize,
}

impl<'a> Len<'a> {
    pub(crate) fn of(kept: &'a mut usize) -> Self {
        let now = *kept;
        Self { kept, now }
    }
}

impl Drop for Len<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        *self.kept = self.now;
    }
}

/// Text under construction.
pub(crate) struct Text<'a, A: ObjectArena> {
    pub(crate) bytes: Growing<'a, A, u8>,
    /// Whether a write failed because there was no memory. Otherwise a formatting trait failed.
    pub(crate) no_memory: bool,
}

impl<A: ObjectArena> fmt::Write for Text<'_, A> {
    #[inline]
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let bytes = &mut self.bytes;
        if text.len() > bytes.capacity - bytes.len && bytes.reserve(text.len()).is_err() {
            self.no_memory = true;
            return Err(fmt::Error);
        }
        // SAFETY: the block has room for `text`, and `text` is not in this block.
        unsafe {
            let to = bytes.data.as_ptr().add(bytes.len);
            ptr::copy_nonoverlapping(text.as_ptr(), to, text.len());
        }
        bytes.len += text.len();
        Ok(())
    }
}
