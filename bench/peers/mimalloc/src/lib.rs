//! mimalloc 3, from its crate.
include!("../../forward.rs");
use libmimalloc_sys as mi;

unsafe fn aligned(align: usize, bytes: usize) -> *mut c_void {
    mi::mi_malloc_aligned(bytes, align)
}
unsafe fn usable(block: *mut c_void) -> usize {
    mi::mi_usable_size(block)
}
forward!(mi::mi_malloc, mi::mi_free, mi::mi_calloc, mi::mi_realloc, aligned, usable);
