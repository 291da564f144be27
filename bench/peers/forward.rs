// Exports malloc and its relatives for the library of a competing allocator (a peer). Each function
// jumps to the peer's own function. The source of each peer includes this file.
use std::ffi::{c_int, c_void};

/// Exports malloc and its relatives, and the C++ operators, which call these functions. If memory
/// runs out, the operators abort.
///
/// The operators of libstdc++ are not used, because they would cost the peer an additional call. A
/// peer with its own operators names them as arguments: `new`, aligned `new`, and sized `delete`.
macro_rules! forward {
    ($malloc:path, $free:path, $calloc:path, $realloc:path, $aligned:path, $usable:path) => {
        unsafe fn or_abort(block: *mut c_void) -> *mut c_void {
            if block.is_null() {
                std::process::abort();
            }
            block
        }
        unsafe fn plain_new(bytes: usize) -> *mut c_void {
            or_abort($malloc(bytes))
        }
        unsafe fn plain_aligned_new(bytes: usize, align: usize) -> *mut c_void {
            or_abort($aligned(align, bytes))
        }
        unsafe fn plain_sized_delete(block: *mut c_void, _bytes: usize) {
            $free(block);
        }
        forward!(
            $malloc, $free, $calloc, $realloc, $aligned, $usable;
            plain_new, plain_aligned_new, plain_sized_delete
        );
    };
    ($malloc:path, $free:path, $calloc:path, $realloc:path, $aligned:path, $usable:path;
     $new:path, $aligned_new:path, $sized_delete:path) => {
        #[no_mangle]
        pub unsafe extern "C" fn malloc(bytes: usize) -> *mut c_void {
            $malloc(bytes)
        }
        #[no_mangle]
        pub unsafe extern "C" fn free(block: *mut c_void) {
            $free(block);
        }
        #[no_mangle]
        pub unsafe extern "C" fn cfree(block: *mut c_void) {
            $free(block);
        }
        #[no_mangle]
        pub unsafe extern "C" fn calloc(count: usize, bytes: usize) -> *mut c_void {
            $calloc(count, bytes)
        }
        #[no_mangle]
        pub unsafe extern "C" fn realloc(block: *mut c_void, bytes: usize) -> *mut c_void {
            $realloc(block, bytes)
        }
        #[no_mangle]
        pub unsafe extern "C" fn reallocarray(
            block: *mut c_void,
            count: usize,
            bytes: usize,
        ) -> *mut c_void {
            match count.checked_mul(bytes) {
                Some(all) => $realloc(block, all),
                None => std::ptr::null_mut(),
            }
        }
        #[no_mangle]
        pub unsafe extern "C" fn memalign(align: usize, bytes: usize) -> *mut c_void {
            $aligned(align, bytes)
        }
        #[no_mangle]
        pub unsafe extern "C" fn aligned_alloc(align: usize, bytes: usize) -> *mut c_void {
            $aligned(align, bytes)
        }
        #[no_mangle]
        pub unsafe extern "C" fn posix_memalign(
            result: *mut *mut c_void,
            align: usize,
            bytes: usize,
        ) -> c_int {
            const EINVAL: c_int = 22;
            const ENOMEM: c_int = 12;
            if !align.is_power_of_two() || align % std::mem::size_of::<usize>() != 0 {
                return EINVAL;
            }
            let block = $aligned(align, bytes);
            if block.is_null() {
                return ENOMEM;
            }
            *result = block;
            0
        }
        #[no_mangle]
        pub unsafe extern "C" fn valloc(bytes: usize) -> *mut c_void {
            $aligned(4096, bytes)
        }
        #[no_mangle]
        pub unsafe extern "C" fn pvalloc(bytes: usize) -> *mut c_void {
            $aligned(4096, (bytes + 4095) & !4095)
        }
        #[no_mangle]
        pub unsafe extern "C" fn malloc_usable_size(block: *mut c_void) -> usize {
            $usable(block)
        }

        #[no_mangle]
        pub unsafe extern "C" fn _Znwm(bytes: usize) -> *mut c_void {
            $new(bytes)
        }
        #[no_mangle]
        pub unsafe extern "C" fn _Znam(bytes: usize) -> *mut c_void {
            $new(bytes)
        }
        #[no_mangle]
        pub unsafe extern "C" fn _ZnwmSt11align_val_t(bytes: usize, align: usize) -> *mut c_void {
            $aligned_new(bytes, align)
        }
        #[no_mangle]
        pub unsafe extern "C" fn _ZdlPv(block: *mut c_void) {
            $free(block);
        }
        #[no_mangle]
        pub unsafe extern "C" fn _ZdaPv(block: *mut c_void) {
            $free(block);
        }
        #[no_mangle]
        pub unsafe extern "C" fn _ZdlPvm(block: *mut c_void, bytes: usize) {
            $sized_delete(block, bytes);
        }
        #[no_mangle]
        pub unsafe extern "C" fn _ZdaPvm(block: *mut c_void, bytes: usize) {
            $sized_delete(block, bytes);
        }
        #[no_mangle]
        pub unsafe extern "C" fn _ZdlPvmSt11align_val_t(
            block: *mut c_void,
            _bytes: usize,
            _align: usize,
        ) {
            $free(block);
        }
    };
}
