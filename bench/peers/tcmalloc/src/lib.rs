//! Wraps Google's tcmalloc, whose sources are in the crate. tcmalloc's `malloc` and operators are
//! aliases of the functions that are named below.
include!("../../forward.rs");
use libtcmalloc_sys as _;

extern "C" {
    fn TCMallocInternalMalloc(bytes: usize) -> *mut c_void;
    fn TCMallocInternalFree(block: *mut c_void);
    fn TCMallocInternalCalloc(count: usize, bytes: usize) -> *mut c_void;
    fn TCMallocInternalRealloc(block: *mut c_void, bytes: usize) -> *mut c_void;
    fn TCMallocInternalMemalign(align: usize, bytes: usize) -> *mut c_void;
    fn TCMallocInternalMallocSize(block: *mut c_void) -> usize;
    fn TCMallocInternalNew(bytes: usize) -> *mut c_void;
    fn TCMallocInternalNewAligned(bytes: usize, align: usize) -> *mut c_void;
    fn TCMallocInternalDeleteSized(block: *mut c_void, bytes: usize);
}

forward!(
    TCMallocInternalMalloc, TCMallocInternalFree, TCMallocInternalCalloc, TCMallocInternalRealloc,
    TCMallocInternalMemalign, TCMallocInternalMallocSize;
    TCMallocInternalNew, TCMallocInternalNewAligned, TCMallocInternalDeleteSized
);
