//! The newest jemalloc that has a crate.
include!("../../forward.rs");
use tikv_jemalloc_sys as je;

unsafe fn aligned(align: usize, bytes: usize) -> *mut c_void {
    je::aligned_alloc(align, bytes)
}
unsafe fn usable(block: *mut c_void) -> usize {
    je::malloc_usable_size(block)
}
forward!(je::malloc, je::free, je::calloc, je::realloc, aligned, usable);
