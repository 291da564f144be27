//! A slice that is being made in a block, which grows in place while it is the last.

use super::objects::Home;
use core::alloc::Layout;
use core::fmt;
use core::mem;
use core::ptr::{self, NonNull};

/// Drops its elements and gives its block back, unless it is finished.
pub(crate) struct Growing<'a, A: Home, T> {
    home: &'a A,
    data: NonNull<T>,
    len: usize,
    capacity: usize,
}

/// Memory was refused.
pub(crate) struct Refused;

impl<'a, A: Home, T> Growing<'a, A, T> {
    #[inline]
    pub(crate) fn with_capacity(home: &'a A, capacity: usize) -> Option<Self> {
        let data = home.try_place_many(Layout::array::<T>(capacity).ok()?)?;
        Some(Self { home, data, len: 0, capacity })
    }

    /// Room for `more` elements, in place if possible.
    #[cold]
    #[inline(never)]
    fn reserve(&mut self, more: usize) -> Result<(), Refused> {
        let least = self.len.checked_add(more).ok_or(Refused)?;
        let roomy = least.max(self.capacity.saturating_mul(2)).max(64 / size_of::<T>().max(1));
        let from = self.layout();
        for capacity in [roomy, least] {
            let Ok(to) = Layout::array::<T>(capacity) else { continue };
            // SAFETY: the block is from there, with this layout.
            if unsafe { self.home.try_expand(self.data.cast(), from, to) } {
                self.capacity = capacity;
                return Ok(());
            }
        }
        for capacity in [roomy, least] {
            if let Some(moved) = Self::with_capacity(self.home, capacity) {
                // SAFETY: two blocks, one full of `len` elements, the other larger. The old one
                // is from there, with this layout.
                unsafe {
                    ptr::copy_nonoverlapping(self.data.as_ptr(), moved.data.as_ptr(), self.len);
                    self.home.deallocate(self.data.cast(), from);
                }
                (self.data, self.capacity) = (moved.data, capacity);
                mem::forget(moved);
                return Ok(());
            }
        }
        Err(Refused)
    }

    fn layout(&self) -> Layout {
        // SAFETY: the block was allocated with it.
        unsafe { Layout::array::<T>(self.capacity).unwrap_unchecked() }
    }

    /// All that `items` gives.
    #[inline]
    pub(crate) fn extend(&mut self, mut items: impl Iterator<Item = T>) -> Result<(), Refused> {
        loop {
            self.fill(&mut items);
            let Some(item) = items.next() else { return Ok(()) };
            if self.len == self.capacity {
                self.reserve(1)?;
            }
            // SAFETY: there is room.
            unsafe { self.data.add(self.len).write(item) };
            self.len += 1;
        }
    }

    /// What `items` gives, while there is room.
    #[inline(always)]
    fn fill(&mut self, items: &mut impl Iterator<Item = T>) {
        let (data, capacity) = (self.data, self.capacity);
        let mut len = Len::of(&mut self.len);
        while len.now < capacity {
            let Some(item) = items.next() else { return };
            // SAFETY: there is room.
            unsafe { data.add(len.now).write(item) };
            len.now += 1;
        }
    }

    /// As many as there is room for, of an empty one.
    #[inline(always)]
    pub(crate) fn fill_with(&mut self, mut f: impl FnMut(usize) -> T) {
        let (data, capacity) = (self.data, self.capacity);
        let mut len = Len::of(&mut self.len);
        for n in 0..capacity {
            // SAFETY: there is room.
            unsafe { data.add(n).write(f(n)) };
            len.now = n + 1;
        }
    }

    /// The elements, which are no longer dropped. What was reserved above them goes back.
    #[inline]
    pub(crate) fn finish(self) -> NonNull<[T]> {
        if self.len < self.capacity {
            // SAFETY: the block is from there, with this layout, and fewer elements fit
            // `isize` as well. Shrinking in place is possible always, where growing is at times;
            // where it never is, the block stays as it is.
            unsafe {
                let to = Layout::array::<T>(self.len).unwrap_unchecked();
                let _ = self.home.try_expand(self.data.cast(), self.layout(), to);
            }
        }
        let done = NonNull::slice_from_raw_parts(self.data, self.len);
        mem::forget(self);
        done
    }
}

impl<A: Home, T> Drop for Growing<'_, A, T> {
    fn drop(&mut self) {
        struct Block<'a, A: Home>(&'a A, NonNull<u8>, Layout);
        impl<A: Home> Drop for Block<'_, A> {
            fn drop(&mut self) {
                // SAFETY: it is from there, and its elements are gone, or lost to a panic.
                unsafe { self.0.deallocate(self.1, self.2) }
            }
        }
        let _block = Block(self.home, self.data.cast(), self.layout());
        // SAFETY: so many are there, and nobody else drops them.
        unsafe { ptr::slice_from_raw_parts_mut(self.data.as_ptr(), self.len).drop_in_place() }
    }
}

/// A length in a local variable, which the compiler can keep in a register.
struct Len<'a> {
    kept: &'a mut usize,
    now: usize,
}

impl<'a> Len<'a> {
    fn of(kept: &'a mut usize) -> Self {
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

/// Text that is being written.
pub(crate) struct Text<'a, A: Home> {
    pub(crate) bytes: Growing<'a, A, u8>,
    /// Why writing failed: memory was refused, not a value.
    pub(crate) refused: bool,
}

impl<A: Home> fmt::Write for Text<'_, A> {
    #[inline]
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let bytes = &mut self.bytes;
        if text.len() > bytes.capacity - bytes.len && bytes.reserve(text.len()).is_err() {
            self.refused = true;
            return Err(fmt::Error);
        }
        // SAFETY: there is room, in a block of its own.
        unsafe {
            let to = bytes.data.as_ptr().add(bytes.len);
            ptr::copy_nonoverlapping(text.as_ptr(), to, text.len());
        }
        bytes.len += text.len();
        Ok(())
    }
}
