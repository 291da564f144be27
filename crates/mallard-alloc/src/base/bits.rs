//! Arithmetic on sizes and addresses.

use core::alloc::Layout;
use core::ptr::NonNull;

/// Pages of this size are what a fresh chunk is cut by.
#[allow(dead_code)] // not every feature uses it
pub(crate) const PAGE_BYTES: usize = 4096;

/// `bytes` rounded up to a multiple of `align`, a power of two. Wraps past the end.
#[inline(always)]
pub(crate) const fn align_up(bytes: usize, align: usize) -> usize {
    bytes.wrapping_add(align - 1) & !(align - 1)
}

/// A layout from parts that are known to be valid: `align` a power of two, and no size that
/// overflows `isize`. None otherwise, never a panic.
#[inline]
pub(crate) const fn layout(bytes: usize, align: usize) -> Option<Layout> {
    match Layout::from_size_align(bytes, align) {
        Ok(layout) => Some(layout),
        Err(_) => None,
    }
}

/// What a zero-sized block is: no memory, and an address that is aligned.
#[inline(always)]
#[allow(dead_code)] // until the arena is here
pub(crate) const fn dangling(layout: Layout) -> NonNull<u8> {
    // SAFETY: an alignment is never zero.
    unsafe { NonNull::new_unchecked(core::ptr::without_provenance_mut(layout.align())) }
}

/// Ends the program as the standard library does when memory is refused.
#[cold]
#[inline(never)]
pub(crate) fn out_of_memory(layout: Layout) -> ! {
    #[cfg(feature = "alloc")]
    alloc::alloc::handle_alloc_error(layout);
    #[cfg(not(feature = "alloc"))]
    panic!("no memory for {} bytes", layout.size());
}
