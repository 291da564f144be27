//! Wraps jemalloc, in the newest version that has a crate.
include!("../../forward.rs");
use tikv_jemalloc_sys as je;

unsafe fn aligned(align: usize, bytes: usize) -> *mut c_void {
    je::aligned_alloc(align, bytes)
}
unsafe fn usable(block: *mut c_void) -> usize {
    je::malloc_usable_size(block)
}
unsafe fn new(bytes: usize) -> *mut c_void {
    let block = je::malloc(bytes);
    if block.is_null() {
        std::process::abort();
    }
    block
}
unsafe fn aligned_new(bytes: usize, align: usize) -> *mut c_void {
    let block = je::aligned_alloc(align, bytes);
    if block.is_null() {
        std::process::abort();
    }
    block
}
unsafe fn sized_delete(block: *mut c_void, bytes: usize) {
    if !block.is_null() {
        je::sdallocx(block, bytes, 0);
    }
}
forward!(
    je::malloc, je::free, je::calloc, je::realloc, aligned, usable;
    new, aligned_new, sized_delete
);
