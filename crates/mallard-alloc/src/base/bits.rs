//! Arithmetic on sizes and addresses.

use core::alloc::Layout;
use core::ptr::NonNull;

/// The page size that chunk layouts assume. A new chunk is divided into blocks one page at a time.
#[allow(dead_code)] // some feature sets do not use it
pub(crate) const PAGE_BYTES: usize = 4096;

/// Rounds `bytes` up to a multiple of `align`, a power of two. Wraps on overflow.
#[inline(always)]
pub(crate) const fn align_up(bytes: usize, align: usize) -> usize {
    bytes.wrapping_add(align - 1) & !(align - 1)
}

/// Returns the layout of `bytes` at `align`, or `None` if the size overflows `isize` or `align` is
/// not a power of two.
#[inline]
pub(crate) const fn layout(bytes: usize, align: usize) -> Option<Layout> {
    match Layout::from_size_align(bytes, align) {
        Ok(layout) => Some(layout),
        Err(_) => None,
    }
}

/// Returns the address of a zero-sized block. The address is aligned, and does not refer to memory.
#[inline(always)]
pub(crate) const fn dangling(layout: Layout) -> NonNull<u8> {
    // SAFETY: an alignment is at least 1, so the address is not null.
    unsafe { NonNull::new_unchecked(core::ptr::without_provenance_mut(layout.align())) }
}

/// Aborts the program as the standard library does when it is out of memory.
#[cold]
#[inline(never)]
pub(crate) fn out_of_memory(layout: Layout) -> ! {
    #[cfg(feature = "alloc")]
    alloc::alloc::handle_alloc_error(layout);
    #[cfg(not(feature = "alloc"))]
    panic!("no memory for {} bytes", layout.size());
}
