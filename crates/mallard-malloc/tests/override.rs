//! Tests that, with the feature `override`, the whole process uses Mallard's malloc.
#![cfg(mallard_engine)]

use mallard_malloc::statistics;
use std::ffi::{c_char, CStr};

unsafe extern "C" {
    fn malloc(bytes: usize) -> *mut u8;
    fn free(block: *mut u8);
    fn strdup(text: *const c_char) -> *mut c_char;
    fn malloc_usable_size(block: *mut u8) -> usize;
}

#[test]
fn with_the_override_feature_malloc_calls_the_malloc_of_mallard() {
    let before = statistics().large_bytes;
    // SAFETY: the block is freed once.
    unsafe {
        let block = malloc(64 << 20);
        assert!(statistics().large_bytes >= before + (64 << 20));
        free(block);
    }
}

#[test]
fn with_the_override_feature_the_c_library_allocates_from_mallard() {
    // SAFETY: the string ends with a zero, and the copy is freed once.
    unsafe {
        let copy = strdup(c"seventeen letters".as_ptr());
        assert_eq!(CStr::from_ptr(copy).to_str(), Ok("seventeen letters"));
        assert_eq!(mallard_malloc::usable_bytes(std::ptr::NonNull::new(copy.cast()).unwrap()), 32);
        assert_eq!(malloc_usable_size(copy.cast()), 32);
        free(copy.cast());
    }
}

#[test]
fn with_the_override_feature_the_rust_system_allocator_allocates_from_mallard() {
    let before = statistics().large_bytes;
    // The block is from the default global allocator, `System`, which calls malloc.
    let block = vec![1u8; 48 << 20];
    assert!(statistics().large_bytes >= before + block.len());
}
