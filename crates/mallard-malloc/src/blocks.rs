//! Defines the trait `Blocks`, which malloc and heaps implement. The `Allocator` implementations
//! call its methods.

use core::alloc::Layout;

/// Allocates and frees raw blocks. A null pointer means that the call failed. Callers never pass a
/// layout of size 0.
pub trait Blocks {
    fn take(&self, layout: Layout) -> *mut u8;

    fn take_zeroed(&self, layout: Layout) -> *mut u8;

    /// # Safety
    /// The block must be from this allocator, must have this layout, and must no longer be used.
    unsafe fn give(&self, block: *mut u8, layout: Layout);

    /// # Safety
    /// The requirements are those of `give`. If the result is not null, the old block is freed.
    unsafe fn resize(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8;
}

/// Moves a block to a new block with another layout by allocating, copying and freeing. This
/// function is used when the alignment changes.
///
/// # Safety
/// The requirements are those of `Blocks::resize`.
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
        // SAFETY: the caller guarantees what this call requires.
        unsafe { blocks.give(block, from) };
    }
    fresh
}
