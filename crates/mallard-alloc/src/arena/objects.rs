//! Makes objects in arenas. Each function here implements an `alloc` function and its `try_alloc`
//! function.
#![allow(clippy::mut_from_ref)] // each call returns a separate block

use super::growing::{Growing, NoMemory, Text};
use super::object_arena::ObjectArena;
use crate::base::allocator::FreesBlock;
use crate::base::bits::out_of_memory;
use core::alloc::Layout;
use core::fmt::{self, Write};
use core::mem;
use core::ptr::NonNull;

/// Moves a value into a block. Returns the value in the error if there is no memory.
///
/// This function does not call `make` with a closure that returns `value`. With such a closure, the
/// compiler would write the value word by word, and storing a value of 64 bytes would take a fifth
/// longer.
#[inline(always)]
pub(crate) fn put<A: ObjectArena, T>(arena: &A, value: T) -> Result<&mut T, T> {
    let Some(block) = arena.try_place::<T>() else { return Err(value) };
    // SAFETY: the block is for one `T`, new, and valid for as long as the arena is borrowed.
    unsafe {
        block.write(value);
        Ok(&mut *block.as_ptr())
    }
}

/// Makes a value in its final place. Returns `f` in the error if there is no memory. If `f` panics,
/// the block is freed.
#[inline(always)]
pub(crate) fn make<A: ObjectArena, T, F: FnOnce() -> T>(arena: &A, f: F) -> Result<&mut T, F> {
    let Some(block) = arena.try_place::<T>() else { return Err(f) };
    let unused = FreesBlock(arena, block.cast(), Layout::new::<T>());
    // SAFETY: the block is for one `T`, and new.
    unsafe { block.write(f()) };
    mem::forget(unused);
    // SAFETY: the value is initialised, and valid for as long as the arena is borrowed.
    Ok(unsafe { &mut *block.as_ptr() })
}

/// Makes a value in its final place. If `f` fails or panics, the block is freed.
#[inline(always)]
pub(crate) fn make_or<A: ObjectArena, T, E, F>(arena: &A, f: F) -> Result<Result<&mut T, E>, F>
where
    F: FnOnce() -> Result<T, E>,
{
    let Some(block) = arena.try_place::<T>() else { return Err(f) };
    let unused = FreesBlock(arena, block.cast(), Layout::new::<T>());
    Ok(f().map(|value| {
        mem::forget(unused);
        // SAFETY: the block is for one `T`, new, and valid for as long as the arena is borrowed.
        unsafe {
            block.write(value);
            &mut *block.as_ptr()
        }
    }))
}

/// Returns a copy of a slice.
#[inline(always)]
pub(crate) fn copy<'a, A: ObjectArena, T: Copy>(arena: &'a A, from: &[T]) -> Option<&'a mut [T]> {
    let block = arena.try_place_many::<T>(Layout::for_value(from))?;
    // SAFETY: the block is new, has room for all elements, and is valid for as long as the arena is
    // borrowed.
    unsafe {
        core::ptr::copy_nonoverlapping(from.as_ptr(), block.as_ptr(), from.len());
        Some(&mut *NonNull::slice_from_raw_parts(block, from.len()).as_ptr())
    }
}

/// Returns a slice of all items that `items` yields.
#[inline]
pub(crate) fn collect<A: ObjectArena, T>(
    arena: &A,
    items: impl IntoIterator<Item = T>,
) -> Result<NonNull<[T]>, NoMemory> {
    let items = items.into_iter();
    let mut slice = Growing::with_capacity(arena, items.size_hint().0).ok_or(NoMemory)?;
    slice.extend(items)?;
    Ok(slice.finish())
}

/// Returns a slice of `f(0)`, `f(1)`, ...
#[inline(always)]
pub(crate) fn fill<A: ObjectArena, T>(
    arena: &A,
    count: usize,
    f: impl FnMut(usize) -> T,
) -> Option<&mut [T]> {
    let mut slice = Growing::with_capacity(arena, count)?;
    slice.fill_with(f);
    // SAFETY: the slice is new, and valid for as long as the arena is borrowed.
    Some(unsafe { &mut *slice.finish().as_ptr() })
}

/// Writes formatted text to the arena. `Ok(Err)` means that a formatting trait returned an error.
pub(crate) fn format<'a, A: ObjectArena>(
    arena: &'a A,
    args: fmt::Arguments<'_>,
) -> Result<Result<&'a mut str, fmt::Error>, NoMemory> {
    let bytes = Growing::with_capacity(arena, 0).ok_or(NoMemory)?;
    let mut text = Text { bytes, no_memory: false };
    match text.write_fmt(args) {
        // SAFETY: the block is new, and contains the bytes of strings, one string after the other.
        Ok(()) => Ok(Ok(unsafe {
            core::str::from_utf8_unchecked_mut(&mut *text.bytes.finish().as_ptr())
        })),
        Err(_) if text.no_memory => Err(NoMemory),
        Err(error) => Ok(Err(error)),
    }
}

/// Aborts the program because there is no memory for `count` objects of type `T`.
#[cold]
#[inline(never)]
pub(crate) fn no_memory_for<T>(count: usize) -> ! {
    let all = Layout::array::<T>(count);
    out_of_memory(all.unwrap_or(Layout::new::<T>()))
}

/// Panics as `format!` does.
#[cold]
#[inline(never)]
pub(crate) fn formatting_failed() -> ! {
    panic!("a formatting trait implementation returned an error")
}
