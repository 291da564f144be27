#![doc = include_str!("../README.md")]
#![no_std]
#![cfg_attr(feature = "nightly", feature(allocator_api))]
#![cfg_attr(docsrs, feature(doc_cfg))] // docs.rs says which feature each item needs

extern crate alloc;

mod blocks;
#[cfg(any(
    feature = "nightly",
    feature = "allocator-api2-02",
    feature = "allocator-api2-03",
    feature = "allocator-api2-04"
))]
mod bridges;
#[cfg(mallard_engine)]
mod code;
#[cfg(mallard_engine)]
mod heap;
#[cfg(mallard_engine)]
mod limit;
mod mallard;
#[cfg(mallard_engine)]
mod raw;
#[cfg(mallard_engine)]
mod statistics;
#[cfg(not(mallard_engine))]
mod system;

pub use mallard::Mallard;

#[cfg(mallard_engine)]
pub use {
    heap::{AnyThread, Heap, HeapStatistics, OneThread, SharedHeap},
    limit::{set_limits, Limits},
    statistics::{print_stats, stats, trim, ClassStatistics, Statistics},
};

#[cfg(mallard_engine)]
use core::ptr::NonNull;

#[cfg(all(feature = "override", not(mallard_engine)))]
compile_error!(
    "mallard-malloc: the feature `override` is for Linux on x86-64 with glibc\n  \
     elsewhere the crate has no malloc to put in the place of the system's\n  \
     help: leave the feature out, or turn it on for that target alone"
);

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
#[cfg(mallard_engine)]
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
#[cfg(mallard_engine)]
pub unsafe fn deallocate(block: NonNull<u8>) {
    // SAFETY: the caller's promise.
    unsafe { raw::mallard_rust_deallocate(block.as_ptr()) }
}
