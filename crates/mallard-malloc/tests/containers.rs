//! Tests containers in heaps, with the traits of allocator-api2.
#![cfg(mallard_engine)]

use allocator_api2_02::boxed::Box;
use allocator_api2_02::vec::Vec;
use mallard_malloc::{Heap, Mallard};

#[test]
fn a_vector_grows_and_shrinks_in_a_heap() {
    let heap = Heap::new();
    let mut numbers = Vec::new_in(&heap);
    numbers.extend(0..100_000u32);
    assert!(heap.owns(numbers.as_ptr()));
    numbers.truncate(10);
    numbers.shrink_to_fit();
    assert!(heap.owns(numbers.as_ptr()));
    assert_eq!(numbers.as_slice(), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    drop(numbers);
    assert_eq!(heap.statistics().blocks_live, 0);
}

#[test]
fn a_box_in_a_heap_drops_its_value() {
    let heap = Heap::new();
    let value = std::rc::Rc::new(());
    let boxed = Box::new_in(value.clone(), &heap);
    assert_eq!(std::rc::Rc::strong_count(&value), 2);
    drop(boxed);
    assert_eq!(std::rc::Rc::strong_count(&value), 1);
    assert_eq!(heap.statistics().blocks_live, 0);
}

#[test]
fn containers_of_several_threads_share_one_heap() {
    let heap = Heap::shared();
    std::thread::scope(|s| {
        for t in 0..4 {
            let heap = &heap;
            s.spawn(move || {
                let mut all = Vec::new_in(heap);
                (0..1000).for_each(|i| all.push(Box::new_in(i * t, heap)));
                assert_eq!(*all[999], 999 * t);
            });
        }
    });
    assert_eq!(heap.statistics().blocks_live, 0);
}

#[test]
fn mallard_and_heap_implement_every_version_of_the_allocator_trait() {
    fn old<A: allocator_api2_02::alloc::Allocator>(_: A) {}
    old(Mallard);
    #[cfg(feature = "allocator-api2-03")]
    {
        fn newer<A: allocator_api2_03::alloc::Allocator>(_: A) {}
        newer(Mallard);
        newer(&Heap::new());
    }
    #[cfg(feature = "allocator-api2-04")]
    {
        fn newest<A: allocator_api2_04::alloc::Allocator>(_: A) {}
        newest(Mallard);
        newest(&Heap::shared());
    }
}

#[test]
fn a_container_that_owns_its_heap_can_move_to_another_thread() {
    let mut numbers = Vec::new_in(Heap::new());
    numbers.extend(0..10_000u32);
    let numbers = std::thread::spawn(move || {
        numbers.extend(0..10_000);
        assert!(numbers.allocator().owns(numbers.as_ptr()));
        numbers
    });
    assert_eq!(numbers.join().unwrap().len(), 20_000);
}
