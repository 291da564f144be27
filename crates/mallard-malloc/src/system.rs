//! Implements [`Mallard`] on targets without the engine by forwarding to the system's allocator.

extern crate std;

use crate::blocks::Blocks;
use crate::Mallard;
use core::alloc::{GlobalAlloc, Layout};
use std::alloc::System;

impl Blocks for Mallard {
    #[inline]
    fn take(&self, layout: Layout) -> *mut u8 {
        // SAFETY: callers never pass a layout of size 0.
        unsafe { System.alloc(layout) }
    }

    #[inline]
    fn take_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: callers never pass a layout of size 0.
        unsafe { System.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn give(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller guarantees what this call requires.
        unsafe { System.dealloc(block, layout) }
    }

    #[inline]
    unsafe fn resize(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: the caller guarantees what this call requires.
        unsafe { System.realloc(block, layout, bytes) }
    }
}
