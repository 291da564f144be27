#![doc = include_str!("../README.md")]
#![no_std]
#![cfg_attr(feature = "nightly", feature(allocator_api))]

extern crate alloc;

mod blocks;
#[cfg(any(
    feature = "nightly",
    feature = "allocator-api2-02",
    feature = "allocator-api2-03",
    feature = "allocator-api2-04"
))]
mod bridges;
mod code;
mod heap;
mod limit;
mod mallard;
mod raw;
mod statistics;

pub use heap::{AnyThread, Heap, HeapStatistics, OneThread, SharedHeap};
pub use limit::{set_limits, Limits};
pub use mallard::Mallard;
pub use statistics::{print_stats, stats, trim, ClassStatistics, Statistics};

use core::ptr::NonNull;

/// How many bytes of a block may be written to: at least as many as were asked for.
///
/// # Safety
/// `block` is one of [`Mallard`] or of a heap, and is not freed meanwhile.
///
/// ```
/// use core::alloc::Layout;
/// let heap = mallard_malloc::Heap::new();
/// let block = heap.allocate(Layout::new::<[u8; 100]>());
/// // SAFETY: the heap has not freed it.
/// assert_eq!(unsafe { mallard_malloc::usable_bytes(block) }, 112);
/// ```
pub unsafe fn usable_bytes(block: NonNull<u8>) -> usize {
    // SAFETY: the caller's promise.
    unsafe { raw::mallard_usable_size(block.as_ptr()) }
}

/// Frees a block of [`Mallard`] or of any heap, in any thread: what a thread calls that has a block
/// and not its heap.
///
/// # Safety
/// `block` is one of those, and nobody uses it any more. If it is of a heap, this returns before
/// the heap is reset, released or dropped.
///
/// ```
/// use core::alloc::Layout;
/// let mut heap = mallard_malloc::Heap::new();
/// let block = heap.allocate(Layout::new::<u64>()).as_ptr() as usize;
/// std::thread::spawn(move || {
///     let block = core::ptr::NonNull::new(block as *mut u8).unwrap();
///     // SAFETY: nobody else has it, and the heap waits for this thread.
///     unsafe { mallard_malloc::deallocate(block) };
/// })
/// .join()
/// .unwrap();
/// heap.release();
/// ```
pub unsafe fn deallocate(block: NonNull<u8>) {
    // SAFETY: the caller's promise.
    unsafe { raw::mallard_rust_deallocate(block.as_ptr()) }
}
