//! malloc, as Rust's global allocator.

use crate::blocks::Blocks;
#[cfg(mallard_engine)]
use crate::{code::code_of, raw};
use core::alloc::{GlobalAlloc, Layout};

/// The allocator of a whole program.
///
/// ```
/// #[global_allocator]
/// static A: mallard_malloc::Mallard = mallard_malloc::Mallard;
///
/// fn main() {
///     let words: Vec<String> = "a program as before".split(' ').map(String::from).collect();
///     assert_eq!(words.len(), 4);
///     assert!(mallard_malloc::stats().blocks_live >= 5);
/// }
/// ```
///
/// Any thread allocates, and any thread frees. Alignments may be of any size. A size that is not
/// to be had is refused with null, which `Vec::try_reserve` tells as an error, and
/// `handle_alloc_error` otherwise.
///
/// The engine supports Linux on x86-64 with glibc. On every other target this type is the system's
/// allocator, `std::alloc::System`, so that a program builds there too; the rest of this crate is absent.
///
/// With a feature for them, it is an `Allocator` too, for a container whose memory is Mallard's
/// in a program whose global allocator is another. All values of this type are the same heap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mallard;

#[cfg(mallard_engine)]
impl Blocks for Mallard {
    #[inline(always)]
    fn take(&self, layout: Layout) -> *mut u8 {
        let (bytes, align) = (layout.size(), layout.align());
        if let Some(code) = code_of(layout) {
            // SAFETY: the code is that of the size.
            return unsafe { raw::mallard_rust_pop(bytes, code) };
        }
        // SAFETY: `align` is a power of two.
        unsafe { raw::mallard_rust_allocate(bytes, align) }
    }

    #[inline]
    fn take_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the alignment is a power of two.
        unsafe { raw::mallard_rust_allocate_zeroed(layout.size(), layout.align()) }
    }

    #[inline(always)]
    unsafe fn give(&self, block: *mut u8, _: Layout) {
        // SAFETY: the caller's promise.
        unsafe { raw::mallard_rust_deallocate(block) }
    }

    #[inline]
    unsafe fn resize(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe { raw::mallard_rust_reallocate(block, layout.size(), layout.align(), bytes) }
    }
}

// SAFETY: blocks are aligned and as large as was asked, nobody else's until they are freed, and
// no call unwinds.
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
        // SAFETY: the caller's promise.
        unsafe { self.give(block, layout) }
    }
    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe { self.resize(block, layout, bytes) }
    }
}
