//! Tests the statistics of the whole process, in a program whose global allocator is not Mallard.
//! The tests run one after the other, so the numbers are exact.
#![cfg(mallard_engine)]

use mallard_malloc::{statistics, Heap};
use std::sync::{Mutex, MutexGuard, PoisonError};

fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn dropping_a_heap_returns_its_memory_to_the_system() {
    let _alone = alone();
    drop(Heap::new());
    let before = statistics().bytes_live;
    for _ in 0..2000 {
        let heap = Heap::new();
        heap.alloc_slice_copy(&[1u8; 40_000]);
        heap.alloc([0u64; 100]);
    }
    assert!(statistics().bytes_live < before + (1 << 20));
}

#[cfg(feature = "allocator-api2-02")]
#[test]
fn mallard_works_together_with_another_global_allocator() {
    use allocator_api2_02::vec::Vec;
    use mallard_malloc::Mallard;
    let _alone = alone();
    let before = statistics().blocks_live;
    let mut numbers = Vec::with_capacity_in(10, Mallard);
    numbers.push(1u64);
    assert_eq!(statistics().blocks_live, before + 1);
    let nothing: Vec<u8, Mallard> = Vec::new_in(Mallard);
    assert_eq!(nothing.len() + numbers.len(), 1);
}
