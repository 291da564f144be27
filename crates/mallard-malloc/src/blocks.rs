//! The trait that malloc and heaps implement. The `Allocator` implementations are built on it.

use core::alloc::Layout;

/// Allocates and frees raw blocks. Null means failure. Callers never pass a layout of size 0.
pub trait Blocks {
    fn take(&self, layout: Layout) -> *mut u8;

    fn take_zeroed(&self, layout: Layout) -> *mut u8;

    /// # Safety
    /// The block is from this allocator, has this layout, and is no longer used.
    unsafe fn give(&self, block: *mut u8, layout: Layout);

    /// # Safety
    /// The same as for `give`. If the result is not null, the old block is freed.
    unsafe fn resize(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8;
}

/// Moves a block to a new layout: allocates, copies and frees. Used when the alignment changes.
///
/// # Safety
/// The same as for `Blocks::resize`.
#[cfg(any(
    feature = "nightly",
    feature = "allocator-api2-02",
    feature = "allocator-api2-03",
    feature = "allocator-api2-04"
))]
pub unsafe fn move_block(
    blocks: &impl Blocks,
    block: *mut u8,
    from: Layout,
    to: Layout,
) -> *mut u8 {
    let fresh = blocks.take(to);
    if !fresh.is_null() {
        // SAFETY: both blocks are at least as large as the bytes copied, and the new block overlaps
        // no other.
        unsafe { fresh.copy_from_nonoverlapping(block, from.size().min(to.size())) };
        // SAFETY: the caller's promise covers this call.
        unsafe { blocks.give(block, from) };
    }
    fresh
}
