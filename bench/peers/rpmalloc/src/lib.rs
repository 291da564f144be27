//! Wraps rpmalloc 1.4, from its crate. rpmalloc needs a call at the start and at the end of each thread.
include!("../../forward.rs");
use rpmalloc_sys as rp;
use std::sync::atomic::{AtomicU32, Ordering};

unsafe fn aligned(align: usize, bytes: usize) -> *mut c_void {
    rp::rpaligned_alloc(align, bytes)
}
unsafe fn usable(block: *mut c_void) -> usize {
    rp::rpmalloc_usable_size(block)
}
forward!(rp::rpmalloc, rp::rpfree, rp::rpcalloc, rp::rprealloc, aligned, usable);

type Start = unsafe extern "C" fn(*mut c_void) -> *mut c_void;
type Create = unsafe extern "C" fn(*mut c_void, *const c_void, Start, *mut c_void) -> c_int;

extern "C" {
    fn dlsym(library: *mut c_void, name: *const u8) -> *mut c_void;
    fn pthread_key_create(key: *mut u32, at_end: unsafe extern "C" fn(*mut c_void)) -> c_int;
    fn pthread_setspecific(key: u32, value: *const c_void) -> c_int;
    // Declares this function again, because the crate declares it without its argument.
    fn rpmalloc_thread_finalize(release_caches: c_int);
}

const NEXT_LIBRARY: *mut c_void = -1isize as *mut c_void;
static KEY: AtomicU32 = AtomicU32::new(u32::MAX);

unsafe extern "C" fn at_end(_: *mut c_void) {
    rpmalloc_thread_finalize(1);
}

/// What a new thread has to call: the start function and its argument. The new thread frees this
/// object.
struct Task(Start, *mut c_void);

unsafe extern "C" fn begin(task: *mut c_void) -> *mut c_void {
    rp::rpmalloc_thread_initialize();
    let Task(start, argument) = task.cast::<Task>().read();
    rp::rpfree(task);
    pthread_setspecific(KEY.load(Ordering::Relaxed), NEXT_LIBRARY);
    start(argument)
}

#[no_mangle]
pub unsafe extern "C" fn pthread_create(
    thread: *mut c_void,
    attributes: *const c_void,
    start: Start,
    argument: *mut c_void,
) -> c_int {
    let next = dlsym(NEXT_LIBRARY, b"pthread_create\0".as_ptr());
    let create = std::mem::transmute::<*mut c_void, Create>(next);
    // Makes the key without a lock. No lock is needed, because the program has only one thread
    // until the first call returns.
    if KEY.load(Ordering::Relaxed) == u32::MAX {
        let mut key = 0;
        pthread_key_create(&mut key, at_end);
        KEY.store(key, Ordering::Relaxed);
    }
    let task = rp::rpmalloc(std::mem::size_of::<Task>());
    task.cast::<Task>().write(Task(start, argument));
    create(thread, attributes, begin, task)
}
