//! Wraps snmalloc, from its crate.
include!("../../forward.rs");
use snmalloc_sys as sn;

/// Allocates aligned memory. The alignment must be a power of two, which `sn_rust_alloc` requires
/// and the callers of this function guarantee.
unsafe fn aligned(align: usize, bytes: usize) -> *mut c_void {
    sn::sn_rust_alloc(align, bytes)
}
unsafe fn usable(block: *mut c_void) -> usize {
    sn::sn_malloc_usable_size(block)
}
forward!(sn::sn_malloc, sn::sn_free, sn::sn_calloc, sn::sn_realloc, aligned, usable);
