//! Wraps snmalloc, from its crate.
include!("../../forward.rs");
use snmalloc_sys as sn;

/// Allocates aligned memory. `sn_rust_alloc` requires that the alignment is a power of two, and so
/// do the functions that call this one.
unsafe fn aligned(align: usize, bytes: usize) -> *mut c_void {
    sn::sn_rust_alloc(align, bytes)
}
unsafe fn usable(block: *mut c_void) -> usize {
    sn::sn_malloc_usable_size(block)
}
forward!(sn::sn_malloc, sn::sn_free, sn::sn_calloc, sn::sn_realloc, aligned, usable);
