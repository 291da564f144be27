//! What malloc and heaps have in common: the four calls that the bridges are made of.

use core::alloc::Layout;

/// Null is a refusal. No layout has a size of 0.
pub trait Blocks {
    fn take(&self, layout: Layout) -> *mut u8;

    fn take_zeroed(&self, layout: Layout) -> *mut u8;

    /// # Safety
    /// A block of this allocator with this layout, which nobody uses any more.
    unsafe fn give(&self, block: *mut u8, layout: Layout);

    /// # Safety
    /// The same; unless null is returned, the block is the new one's.
    unsafe fn resize(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8;
}

/// Bytes of the smaller one, from a block to another.
///
/// # Safety
/// As for `Blocks::resize`, of a layout whose alignment changes.
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
        // SAFETY: both have so many bytes, and one is new.
        unsafe { fresh.copy_from_nonoverlapping(block, from.size().min(to.size())) };
        // SAFETY: the caller's promise.
        unsafe { blocks.give(block, from) };
    }
    fresh
}
