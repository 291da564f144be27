//! Tests `trim`. This test has a separate process, so that no other test has idle memory.
#![cfg(mallard_engine)]

use mallard_malloc::{statistics, trim, Mallard};

#[global_allocator]
static A: Mallard = Mallard;

#[test]
fn trim_returns_all_idle_memory() {
    let boxes: Vec<Box<[u8; 320]>> = (0..1000).map(|_| Box::new([1; 320])).collect();
    assert!(trim(0) || statistics().bytes_idle == 0);
    drop(boxes);
    assert!(trim(0) || statistics().bytes_idle == 0);
}
