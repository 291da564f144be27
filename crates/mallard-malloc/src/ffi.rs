//! Declares the engine's functions of src/malloc/rust_api.cpp and include/mallard/c/malloc.h.
//! The module `statistics` declares the functions for statistics of malloc.

use core::ffi::{c_int, c_void};

/// An opaque heap of the engine.
#[repr(C)]
pub struct Heap {
    _of_the_engine: [u8; 0],
}

/// The type `mallard_heap_options` of malloc.h.
#[repr(C)]
pub struct HeapOptions {
    pub struct_bytes: usize,
    pub threads: c_int,
    pub reserved: c_int,
    pub limit_soft_bytes: usize,
    pub limit_bytes: usize,
    pub met: Option<LimitMet>,
    pub context: *mut c_void,
}

/// The type `mallard_limit_met` of malloc.h.
pub type LimitMet = extern "C" fn(context: *mut c_void, held: usize, limit: usize);

/// The type `mallard_heap_statistics` of malloc.h.
#[repr(C)]
#[derive(Default)]
pub struct HeapStatistics {
    pub struct_bytes: usize,
    pub blocks_live: usize,
    pub bytes_live: usize,
    pub bytes_taken: usize,
    pub bytes_taken_max: usize,
    pub chunks: usize,
    pub large_blocks: usize,
}

unsafe extern "C" {
    pub fn mallard_rust_pop(bytes: usize, offset: usize) -> *mut u8;
    pub fn mallard_rust_allocate(bytes: usize, align: usize) -> *mut u8;
    pub fn mallard_rust_allocate_zeroed(bytes: usize, align: usize) -> *mut u8;
    pub fn mallard_rust_deallocate(block: *mut u8);
    pub fn mallard_rust_reallocate(
        block: *mut u8,
        bytes: usize,
        align: usize,
        bytes_new: usize,
    ) -> *mut u8;

    pub fn mallard_rust_heap_pop(heap: *mut Heap, bytes: usize, offset: usize) -> *mut u8;
    pub fn mallard_rust_heap_allocate(heap: *mut Heap, bytes: usize, align: usize) -> *mut u8;
    pub fn mallard_rust_heap_allocate_zeroed(
        heap: *mut Heap,
        bytes: usize,
        align: usize,
    ) -> *mut u8;
    pub fn mallard_rust_heap_deallocate(heap: *mut Heap, block: *mut u8);
    pub fn mallard_rust_heap_reallocate(
        heap: *mut Heap,
        block: *mut u8,
        bytes: usize,
        align: usize,
        bytes_new: usize,
    ) -> *mut u8;

    pub fn mallard_usable_size(block: *const u8) -> usize;
    pub fn mallard_trim(keep: usize) -> c_int;
    pub fn mallard_limit(soft: usize, hard: usize, met: Option<LimitMet>, context: *mut c_void);

    pub fn mallard_heap_create(options: *const HeapOptions) -> *mut Heap;
    pub fn mallard_heap_destroy(heap: *mut Heap);
    pub fn mallard_heap_reset(heap: *mut Heap);
    pub fn mallard_heap_release(heap: *mut Heap);
    pub fn mallard_heap_trim(heap: *mut Heap, keep: usize);
    pub fn mallard_heap_adopt(heap: *mut Heap);
    pub fn mallard_heap_limit(
        heap: *mut Heap,
        soft: usize,
        hard: usize,
        met: Option<LimitMet>,
        context: *mut c_void,
    );
    pub fn mallard_heap_owns(heap: *const Heap, p: *const u8) -> c_int;
    pub fn mallard_heap_stats(heap: *mut Heap, out: *mut HeapStatistics) -> c_int;
}
