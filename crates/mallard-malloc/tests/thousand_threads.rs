//! Tests a thousand short-lived threads, in a separate process. The statistics cover the whole
//! process, and a thread that starts while another test forks gets a new cache, so other tests
//! would change the result.
#![cfg(mallard_engine)]

use mallard_malloc::{statistics, Mallard};
use std::thread;

#[global_allocator]
static A: Mallard = Mallard;

#[test]
fn a_thousand_exited_threads_leave_no_memory_behind() {
    let work = || {
        let all: Vec<String> = (0..100).map(|i| format!("line {i} of this thread")).collect();
        assert_eq!(all[99], "line 99 of this thread");
    };
    thread::spawn(work).join().unwrap();
    let before = statistics();
    for _ in 0..250 {
        thread::scope(|s| (0..4).for_each(|_| drop(s.spawn(work))));
    }
    let after = statistics();
    assert!(after.threads <= before.threads + 8, "{} threads", after.threads);
    assert!(after.bytes_taken < before.bytes_taken + (8 << 20), "{after}");
}
