#![cfg_attr(mallard_engine, doc = include_str!("../README.md"))]
#![cfg_attr(
    not(mallard_engine),
    doc = "Mallard's global allocator on a target without its engine: the system's allocator."
)]
#![no_std]
#![cfg_attr(feature = "nightly", feature(allocator_api))]
#![cfg_attr(docsrs, feature(doc_cfg))] // docs.rs shows which feature each item needs

extern crate alloc;

#[cfg(any(
    feature = "nightly",
    feature = "allocator-api2-02",
    feature = "allocator-api2-03",
    feature = "allocator-api2-04"
))]
mod allocator_api;
mod blocks;
#[cfg(mallard_engine)]
mod class_offset;
#[cfg(mallard_engine)]
mod ffi;
#[cfg(mallard_engine)]
mod heap;
#[cfg(mallard_engine)]
mod limit;
mod mallard;
#[cfg(mallard_engine)]
mod statistics;
#[cfg(not(mallard_engine))]
mod system;

pub use mallard::Mallard;

#[cfg(mallard_engine)]
pub use {
    heap::{AnyThread, Heap, HeapStatistics, OneThread, SharedHeap},
    limit::{set_limits, Limits},
    statistics::{print_statistics, statistics, trim, ClassStatistics, Statistics},
};

#[cfg(mallard_engine)]
use core::ptr::NonNull;

#[cfg(all(feature = "override", not(mallard_engine)))]
compile_error!(
    "mallard-malloc: the feature `override` is for Linux on x86-64 with glibc\n  \
    on other targets the crate has no malloc that could replace the system's\n  \
    help: leave the feature out, or enable it for that target only"
);

/// Returns the usable size of a block in bytes, which is at least the requested size.
///
/// # Safety
/// `block` must be from [`Mallard`] or from a heap, and no thread may free it during the call.
///
/// ```
/// use core::alloc::Layout;
/// let heap = mallard_malloc::Heap::new();
/// let block = heap.allocate(Layout::new::<[u8; 100]>());
/// // SAFETY: the block is in use.
/// assert_eq!(unsafe { mallard_malloc::usable_bytes(block) }, 112);
/// ```
#[cfg(mallard_engine)]
pub unsafe fn usable_bytes(block: NonNull<u8>) -> usize {
    // SAFETY: the caller guarantees what this call requires.
    unsafe { ffi::mallard_usable_size(block.as_ptr()) }
}

/// Frees a block of [`Mallard`] or of any heap. Any thread may call this function, also a thread
/// without access to the block's heap.
///
/// # Safety
/// `block` must be from [`Mallard`] or from a heap, and must no longer be used. If the block is
/// from a heap, this call must return before the heap is reset, released or dropped.
///
/// ```
/// use core::alloc::Layout;
/// let mut heap = mallard_malloc::Heap::new();
/// let block = heap.allocate(Layout::new::<u64>()).as_ptr() as usize;
/// std::thread::spawn(move || {
///     let block = core::ptr::NonNull::new(block as *mut u8).unwrap();
///     // SAFETY: nothing else uses the block, and the heap outlives this thread.
///     unsafe { mallard_malloc::deallocate(block) };
/// })
/// .join()
/// .unwrap();
/// heap.release();
/// ```
#[cfg(mallard_engine)]
pub unsafe fn deallocate(block: NonNull<u8>) {
    // SAFETY: the caller guarantees what this call requires.
    unsafe { ffi::mallard_rust_deallocate(block.as_ptr()) }
}
