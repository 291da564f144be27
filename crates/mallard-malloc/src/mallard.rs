//! Mallard's malloc as Rust's global allocator.

use crate::blocks::Blocks;
#[cfg(mallard_engine)]
use crate::{class_offset::class_offset_of, ffi};
use core::alloc::{GlobalAlloc, Layout};

/// The global allocator of a program.
///
/// ```
/// #[global_allocator]
/// static A: mallard_malloc::Mallard = mallard_malloc::Mallard;
///
/// fn main() {
///     let words: Vec<String> = "an unchanged Rust program".split(' ').map(String::from).collect();
///     assert_eq!(words.len(), 4);
///     # #[cfg(mallard_engine)]
///     assert!(mallard_malloc::statistics().blocks_live >= 5);
/// }
/// ```
///
/// Any thread can allocate, and any thread can free any block. Every alignment is supported. If
/// there is no memory, the allocator returns a null pointer. Then `Vec::try_reserve` returns an
/// error, and most other code calls `handle_alloc_error`.
///
/// The engine supports Linux on x86-64 with glibc. On every other target this type forwards to the
/// system's allocator, `std::alloc::System`, so that a program also builds there. On these targets
/// the crate contains nothing else.
///
/// With a feature such as `allocator-api2-02`, `Mallard` implements `Allocator` too, so a container
/// can use Mallard in a program with another global allocator. All values of this type are the same
/// allocator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mallard;

#[cfg(mallard_engine)]
impl Blocks for Mallard {
    #[inline(always)]
    fn take(&self, layout: Layout) -> *mut u8 {
        let (bytes, align) = (layout.size(), layout.align());
        if let Some(offset) = class_offset_of(layout) {
            // SAFETY: `offset` is the class offset of `bytes`.
            return unsafe { ffi::mallard_rust_pop(bytes, offset) };
        }
        // SAFETY: `align` is a power of two.
        unsafe { ffi::mallard_rust_allocate(bytes, align) }
    }

    #[inline]
    fn take_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the alignment is a power of two.
        unsafe { ffi::mallard_rust_allocate_zeroed(layout.size(), layout.align()) }
    }

    #[inline(always)]
    unsafe fn give(&self, block: *mut u8, _: Layout) {
        // SAFETY: the caller guarantees what this call requires.
        unsafe { ffi::mallard_rust_deallocate(block) }
    }

    #[inline]
    unsafe fn resize(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: the caller guarantees what this call requires.
        unsafe { ffi::mallard_rust_reallocate(block, layout.size(), layout.align(), bytes) }
    }
}

// SAFETY: blocks have the requested size and alignment, do not overlap until they are freed, and no
// call unwinds.
unsafe impl GlobalAlloc for Mallard {
    #[inline(always)]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.take(layout)
    }
    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        self.take_zeroed(layout)
    }
    #[inline(always)]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller guarantees what this call requires.
        unsafe { self.give(block, layout) }
    }
    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: the caller guarantees what this call requires.
        unsafe { self.resize(block, layout, bytes) }
    }
}
