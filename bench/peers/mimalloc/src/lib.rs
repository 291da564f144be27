//! Wraps mimalloc 3. The crate builds mimalloc with mimalloc's own CMakeLists.txt.
include!("../../forward.rs");
use libmimalloc_sys2 as mi;

extern "C" {
    fn mi_new(bytes: usize) -> *mut c_void;
    fn mi_new_aligned(bytes: usize, align: usize) -> *mut c_void;
}

unsafe fn aligned(align: usize, bytes: usize) -> *mut c_void {
    mi::mi_malloc_aligned(bytes, align)
}
unsafe fn usable(block: *mut c_void) -> usize {
    mi::mi_usable_size(block)
}
forward!(
    mi::mi_malloc, mi::mi_free, mi::mi_calloc, mi::mi_realloc, aligned, usable;
    mi_new, mi_new_aligned, mi::mi_free_size
);

/// Exports mimalloc's heaps to programs that open this library by name.
#[no_mangle]
pub unsafe extern "C" fn peer_heap_new() -> *mut mi::mi_heap_t {
    mi::mi_heap_new()
}
#[no_mangle]
pub unsafe extern "C" fn peer_heap_malloc(heap: *mut mi::mi_heap_t, bytes: usize) -> *mut c_void {
    mi::mi_heap_malloc(heap, bytes)
}
#[no_mangle]
pub unsafe extern "C" fn peer_heap_destroy(heap: *mut mi::mi_heap_t) {
    mi::mi_heap_destroy(heap);
}
