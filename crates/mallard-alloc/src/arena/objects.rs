//! Objects in a block of an arena: the one body behind each `alloc` and its `try_alloc`.
#![allow(clippy::mut_from_ref)] // each call has a block of its own

use super::growing::{Growing, Refused, Text};
use crate::base::allocator::BlockAllocator;
use crate::base::bits::out_of_memory;
use core::alloc::Layout;
use core::fmt::{self, Write};
use core::mem;
use core::ptr::NonNull;

/// What objects are made in: an arena of either kind.
pub(crate) trait Home: BlockAllocator {
    /// A block for one `T`.
    #[inline(always)]
    fn try_place<T>(&self) -> Option<NonNull<T>> {
        Some(self.try_allocate(Layout::new::<T>())?.cast())
    }
    /// A block for several: a layout that is aligned as a `T` is.
    #[inline(always)]
    fn try_place_many<T>(&self, layout: Layout) -> Option<NonNull<T>> {
        Some(self.try_allocate(layout)?.cast())
    }
}

/// A block that is given back unless an object comes to be in it.
struct Draft<'a, A: BlockAllocator>(&'a A, NonNull<u8>, Layout);

impl<A: BlockAllocator> Drop for Draft<'_, A> {
    fn drop(&mut self) {
        // SAFETY: it is from there, and nothing is in it.
        unsafe { self.0.deallocate(self.1, self.2) }
    }
}

/// Moves an object to where it will stay. Without memory it comes back.
///
/// Not `make(home, || value)`: what a closure has captured is written word by word, in an order
/// that costs a fifth of the time for 64 bytes.
#[inline(always)]
pub(crate) fn put<A: Home, T>(home: &A, value: T) -> Result<&mut T, T> {
    let Some(block) = home.try_place::<T>() else { return Err(value) };
    // SAFETY: a block for one `T`, of nobody else, for as long as the arena is borrowed.
    unsafe {
        block.write(value);
        Ok(&mut *block.as_ptr())
    }
}

/// Makes an object where it will stay. Without memory, what would have made it comes back.
#[inline(always)]
pub(crate) fn make<A: Home, T, F: FnOnce() -> T>(home: &A, f: F) -> Result<&mut T, F> {
    let Some(block) = home.try_place::<T>() else { return Err(f) };
    let draft = Draft(home, block.cast(), Layout::new::<T>());
    // SAFETY: a block for one `T`, of nobody else.
    unsafe { block.write(f()) };
    mem::forget(draft);
    // SAFETY: it is there now, and stays for as long as the arena is borrowed.
    Ok(unsafe { &mut *block.as_ptr() })
}

/// The same, where making may fail: then the block is given back.
#[inline(always)]
pub(crate) fn make_or<A: Home, T, E, F>(home: &A, f: F) -> Result<Result<&mut T, E>, F>
where
    F: FnOnce() -> Result<T, E>,
{
    let Some(block) = home.try_place::<T>() else { return Err(f) };
    let draft = Draft(home, block.cast(), Layout::new::<T>());
    Ok(f().map(|value| {
        mem::forget(draft);
        // SAFETY: a block for one `T`, of nobody else, for as long as the arena is borrowed.
        unsafe {
            block.write(value);
            &mut *block.as_ptr()
        }
    }))
}

/// A copy of the bytes of a slice.
#[inline(always)]
pub(crate) fn copy<'a, A: Home, T: Copy>(home: &'a A, from: &[T]) -> Option<&'a mut [T]> {
    let block = home.try_place_many::<T>(Layout::for_value(from))?;
    // SAFETY: a block for as many, of nobody else, for as long as the arena is borrowed.
    unsafe {
        core::ptr::copy_nonoverlapping(from.as_ptr(), block.as_ptr(), from.len());
        Some(&mut *NonNull::slice_from_raw_parts(block, from.len()).as_ptr())
    }
}

/// All that `items` gives, side by side.
#[inline]
pub(crate) fn collect<A: Home, T>(
    home: &A,
    items: impl IntoIterator<Item = T>,
) -> Result<NonNull<[T]>, Refused> {
    let items = items.into_iter();
    let mut slice = Growing::with_capacity(home, items.size_hint().0).ok_or(Refused)?;
    slice.extend(items)?;
    Ok(slice.finish())
}

/// `f(0)`, `f(1)`, ..., side by side.
#[inline(always)]
pub(crate) fn fill<A: Home, T>(
    home: &A,
    count: usize,
    f: impl FnMut(usize) -> T,
) -> Option<&mut [T]> {
    let mut slice = Growing::with_capacity(home, count)?;
    slice.fill_with(f);
    // SAFETY: made just now, of nobody else, for as long as the arena is borrowed.
    Some(unsafe { &mut *slice.finish().as_ptr() })
}

/// What `args` print. `Ok(Err)`: a value returned an error.
pub(crate) fn format<'a, A: Home>(
    home: &'a A,
    args: fmt::Arguments<'_>,
) -> Result<Result<&'a mut str, fmt::Error>, Refused> {
    let bytes = Growing::with_capacity(home, 0).ok_or(Refused)?;
    let mut text = Text { bytes, refused: false };
    match text.write_fmt(args) {
        // SAFETY: of strings one after the other, in a block of nobody else.
        Ok(()) => Ok(Ok(unsafe {
            core::str::from_utf8_unchecked_mut(&mut *text.bytes.finish().as_ptr())
        })),
        Err(_) if text.refused => Err(Refused),
        Err(error) => Ok(Err(error)),
    }
}

/// Ends the program: there is no memory for `count` of `T`.
#[cold]
#[inline(never)]
pub(crate) fn refuse<T>(count: usize) -> ! {
    let whole = Layout::array::<T>(count);
    out_of_memory(whole.unwrap_or(Layout::new::<T>()))
}

/// Ends the program as `format!` does.
#[cold]
#[inline(never)]
pub(crate) fn formatting_failed() -> ! {
    panic!("a formatting trait implementation returned an error")
}
