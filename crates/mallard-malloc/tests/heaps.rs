//! Tests heaps in a program whose global allocator is not Mallard.
#![cfg(mallard_engine)]

use mallard_malloc::{deallocate, Heap, Limits};
use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

#[test]
fn reset_frees_all_blocks_and_keeps_the_memory() {
    let mut heap = Heap::new();
    for round in 0..10 {
        for i in 0..10_000u64 {
            assert_eq!(*heap.alloc(i), i);
        }
        let taken = heap.statistics().bytes_taken;
        assert_eq!(heap.statistics().blocks_live, 10_000);
        heap.reset();
        assert_eq!(heap.statistics().blocks_live, 0, "round {round}");
        assert_eq!(heap.statistics().bytes_taken, taken);
    }
    heap.release();
    assert_eq!(heap.statistics().bytes_taken, 0);
}

#[test]
fn owns_is_true_only_for_blocks_of_the_heap() {
    let (one, other) = (Heap::new(), Heap::shared());
    for bytes in [1, 100, 5000, 100_000, 3 << 20] {
        let layout = Layout::from_size_align(bytes, 1).unwrap();
        let (a, b) = (one.allocate(layout).as_ptr(), other.allocate(layout).as_ptr());
        assert!(one.owns(a) && !one.owns(b) && other.owns(b) && !other.owns(a));
    }
    assert!(!one.owns(std::ptr::null::<u8>()) && !one.owns(&one));
}

#[test]
fn a_heap_and_its_blocks_can_move_between_threads() {
    let mut heap = Heap::new();
    heap.alloc(1u32);
    for i in 2..20usize {
        heap = thread::spawn(move || {
            for _ in 0..i {
                heap.alloc([1u8; 100]);
                heap.alloc([1u8; 100_000]);
            }
            heap.try_allocate_zeroed(Layout::new::<[u8; 4000]>()).unwrap();
            assert!(heap.statistics().blocks_live > i);
            heap.trim(0);
            heap
        })
        .join()
        .unwrap();
    }
    heap.reset();
    assert_eq!(heap.statistics().blocks_live, 0);
}

#[test]
fn other_threads_can_free_blocks_of_a_heap() {
    let mut heap = Heap::new();
    let blocks: Vec<usize> =
        (0..1000).map(|_| heap.allocate(Layout::new::<[u8; 64]>()).as_ptr() as usize).collect();
    thread::spawn(move || {
        for block in blocks {
            // SAFETY: nothing else uses the block, and the heap outlives this thread.
            unsafe { deallocate(NonNull::new(block as *mut u8).unwrap()) };
        }
    })
    .join()
    .unwrap();
    assert_eq!(heap.statistics().blocks_live, 0);
    heap.reset();
}

#[test]
fn several_threads_can_allocate_from_a_shared_heap() {
    let heap = Heap::shared();
    thread::scope(|s| {
        for t in 0..4usize {
            let heap = &heap;
            s.spawn(move || {
                let layout = Layout::array::<usize>(5 + t).unwrap();
                for i in 0..5000 {
                    let block = heap.allocate(layout).cast::<usize>();
                    // SAFETY: the block has this size, and only this thread uses it.
                    unsafe {
                        block.write(t * i);
                        assert_eq!(block.read(), t * i);
                        if i % 2 == 0 {
                            heap.deallocate(block.cast(), layout);
                        }
                    }
                }
            });
        }
    });
    assert_eq!(heap.statistics().blocks_live, 4 * 2500);
}

#[test]
fn reallocated_blocks_stay_in_their_heap_aligned_and_with_their_contents() {
    let heap = Heap::new();
    for align in [1, 16, 64, 4096, 32768] {
        for (from, to) in [(1, 1000), (1000, 1), (100, 20_000), (20_000, 3 << 20), (3 << 20, 50)] {
            let layout = Layout::from_size_align(from, align).unwrap();
            let block = heap.allocate(layout);
            // SAFETY: the block is from this heap and has these sizes.
            unsafe {
                block.write_bytes(0x5a, from);
                let moved = heap.try_reallocate(block, layout, to).unwrap();
                assert!(heap.owns(moved.as_ptr()));
                assert_eq!(moved.as_ptr() as usize % align, 0);
                let kept = std::slice::from_raw_parts(moved.as_ptr(), from.min(to));
                assert!(kept.iter().all(|&b| b == 0x5a));
                heap.deallocate(moved, Layout::from_size_align(to, align).unwrap());
            }
        }
    }
    assert_eq!(heap.statistics().blocks_live, 0);
}

#[test]
fn an_allocation_over_the_limit_calls_the_limit_callback_and_then_fails() {
    static REACHED: AtomicUsize = AtomicUsize::new(0);
    let met = |_, limit| {
        REACHED.store(limit, Ordering::Relaxed);
    };
    let heap = Heap::new();
    heap.set_limits(Limits { soft: 0, hard: 1 << 20, met: Some(met) });
    let layout = Layout::new::<[u8; 1000]>();
    let given = (0..10_000).take_while(|_| heap.try_allocate(layout).is_some()).count();
    assert!((500..1100).contains(&given), "{given}");
    assert_eq!(REACHED.load(Ordering::Relaxed), 1 << 20);
    heap.set_limits(Limits::default());
    assert!(heap.try_allocate(layout).is_some());
}

#[test]
fn a_block_of_size_zero_is_aligned_and_uses_no_memory() {
    let heap = Heap::new();
    let layout = Layout::from_size_align(0, 256).unwrap();
    let block = heap.allocate(layout);
    assert_eq!(block.as_ptr() as usize % 256, 0);
    // SAFETY: the block is from this heap.
    unsafe { heap.deallocate(block, layout) };
    heap.alloc(());
    assert_eq!(heap.alloc_str(""), "");
    assert_eq!(heap.statistics().bytes_taken, 0);
}
