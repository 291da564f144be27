//! Tests the properties of a global allocator that programs rely on.

#[cfg(mallard_engine)]
use mallard_malloc::statistics;
use mallard_malloc::Mallard;
use std::alloc::{GlobalAlloc, Layout};
use std::collections::HashMap;

#[global_allocator]
static A: Mallard = Mallard;

fn layout(bytes: usize, align: usize) -> Layout {
    Layout::from_size_align(bytes, align).unwrap()
}

/// Returns the test value of byte `i` of a block with this seed.
fn byte(seed: usize, i: usize) -> u8 {
    (seed.wrapping_mul(31).wrapping_add(i).wrapping_mul(0x9e37_79b9) >> 13) as u8
}

fn fill(block: *mut u8, bytes: usize, seed: usize) {
    for i in 0..bytes {
        // SAFETY: the block has `bytes` bytes.
        unsafe { block.add(i).write(byte(seed, i)) };
    }
}

fn holds(block: *const u8, bytes: usize, seed: usize) -> bool {
    // SAFETY: the block has `bytes` bytes, and all were written.
    (0..bytes).all(|i| unsafe { block.add(i).read() } == byte(seed, i))
}

#[test]
fn blocks_are_aligned_to_any_power_of_two_up_to_64_mib() {
    for shift in 0..=26 {
        for bytes in [1, 15, 16, 17, 100, 1000, 1024, 1025, 5000, 16384, 100_000, 3 << 20] {
            let l = layout(bytes, 1 << shift);
            // SAFETY: the size is not 0; each block is freed once, with the layout it was allocated
            // with.
            unsafe {
                let (block, zeroed) = (A.alloc(l), A.alloc_zeroed(l));
                assert!(!block.is_null() && !zeroed.is_null());
                assert_eq!(block as usize % l.align(), 0, "{l:?}");
                assert_eq!(zeroed as usize % l.align(), 0, "{l:?}, zeroed");
                block.write(1);
                block.add(bytes - 1).write(1);
                A.dealloc(block, l);
                A.dealloc(zeroed, l);
            }
        }
    }
}

#[test]
fn a_zeroed_block_in_reused_memory_reads_as_zero() {
    for bytes in [1, 16, 33, 1000, 5000, 16384, 60_000, 1 << 20, 5 << 20, 40 << 20] {
        for align in [1, 32, 4096, 65536] {
            let l = layout(bytes, align);
            // SAFETY: the size is not 0; each block is freed once, with the layout it was allocated
            // with.
            unsafe {
                let block = A.alloc(l);
                block.write_bytes(0xff, bytes);
                A.dealloc(block, l);
                let zeroed = A.alloc_zeroed(l);
                let words = std::slice::from_raw_parts(zeroed, bytes).chunks(4096);
                assert!(words.into_iter().all(|w| w == &[0; 4096][..w.len()]), "{l:?}");
                A.dealloc(zeroed, l);
            }
        }
    }
}

#[test]
fn realloc_keeps_contents_and_alignment() {
    let sizes = [
        1,
        7,
        16,
        17,
        40,
        100,
        128,
        129,
        500,
        1024,
        1025,
        4000,
        16383,
        16384,
        16385,
        70_000,
        1 << 20,
        (1 << 20) + 1,
        3 << 20,
        33 << 20,
    ];
    for align in [1, 16, 32, 64, 4096, 8192, 32768] {
        for from in sizes {
            for to in sizes {
                // SAFETY: no size is 0; the block is freed once, with the layout of its last resize.
                unsafe {
                    let block = A.alloc(layout(from, align));
                    fill(block, from.min(9000), from);
                    let moved = A.realloc(block, layout(from, align), to);
                    assert!(!moved.is_null());
                    assert_eq!(moved as usize % align, 0, "{from} to {to}, {align}");
                    assert!(holds(moved, from.min(to).min(9000), from), "{from} to {to}, {align}");
                    moved.add(to - 1).write(1);
                    A.dealloc(moved, layout(to, align));
                }
            }
        }
    }
}

#[cfg(mallard_engine)]
#[test]
fn a_vector_that_shrinks_gradually_frees_its_memory() {
    let mut live = Vec::new();
    for _ in 0..1000 {
        let mut v: Vec<u8> = Vec::with_capacity(1 << 13);
        while v.capacity() > 16 {
            let half = v.capacity() / 2;
            v.shrink_to(half);
        }
        live.push(v);
    }
    let taken: usize = live
        .iter()
        .map(|v| {
            let block = std::ptr::NonNull::new(v.as_ptr().cast_mut()).unwrap();
            // SAFETY: the block is from the global allocator, which is Mallard.
            unsafe { mallard_malloc::usable_bytes(block) }
        })
        .sum();
    assert!(taken < 1000 * 64, "{taken}");
}

#[test]
fn random_malloc_operations_have_the_same_results_as_a_model() {
    let mut model: HashMap<usize, (usize, Layout, usize)> = HashMap::new();
    let mut random = 88_172_645_463_325_252_u64;
    let mut next = |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random >> 16) as usize % below
    };
    for step in 0..40_000 {
        let slot = next(500);
        let shift = 1 + next(15);
        let bytes = 1 + next(1 << shift);
        // SAFETY: no size is 0; a block that `model` lists is freed once, with its layout.
        unsafe {
            match model.remove(&slot) {
                None => {
                    let l = layout(bytes, 1 << next(8));
                    let zeroed = next(2) == 0;
                    let block = if zeroed { A.alloc_zeroed(l) } else { A.alloc(l) };
                    assert_eq!(block as usize % l.align(), 0);
                    assert!(!zeroed || (0..bytes).all(|i| block.add(i).read() == 0));
                    fill(block, bytes, step);
                    model.insert(slot, (block as usize, l, step));
                }
                Some((block, l, seed)) => {
                    let block = block as *mut u8;
                    assert!(holds(block, l.size(), seed), "step {step}");
                    if next(2) == 0 {
                        A.dealloc(block, l);
                        continue;
                    }
                    let moved = A.realloc(block, l, bytes);
                    assert!(holds(moved, bytes.min(l.size()), seed), "step {step}");
                    fill(moved, bytes, step);
                    model.insert(slot, (moved as usize, layout(bytes, l.align()), step));
                }
            }
        }
    }
    for (block, l, seed) in model.into_values() {
        assert!(holds(block as *mut u8, l.size(), seed));
        // SAFETY: `model` lists only live blocks.
        unsafe { A.dealloc(block as *mut u8, l) };
    }
}

#[test]
fn an_impossible_size_returns_null_and_leaves_the_block_unchanged() {
    let most = isize::MAX as usize;
    // SAFETY: sizes are not 0, and at most isize::MAX when rounded up to the alignment.
    unsafe {
        assert!(A.alloc(layout(most, 1)).is_null());
        assert!(A.alloc(layout(most - (1 << 30), 1 << 21)).is_null());
        assert!(A.alloc(layout(1, 1 << 62)).is_null());
        assert!(A.alloc_zeroed(layout(most, 1)).is_null());
        assert!(A.alloc_zeroed(layout(1 << 62, 1 << 40)).is_null());
        for (bytes, align) in [(100, 8), (100, 64), (20_000, 8), (2 << 20, 1 << 21)] {
            let l = layout(bytes, align);
            let block = A.alloc(l);
            fill(block, bytes, 7);
            assert!(A.realloc(block, l, most - align).is_null());
            assert!(holds(block, bytes, 7));
            A.dealloc(block, l);
        }
    }
    assert!(Vec::<u64>::new().try_reserve(1 << 59).is_err());
}

#[cfg(mallard_engine)]
#[test]
fn a_freed_huge_block_is_returned_to_the_system() {
    let huge = vec![1u8; 100 << 20];
    let with = statistics();
    assert!(with.large_bytes >= huge.len());
    drop(huge);
    assert!(statistics().bytes_returned >= with.bytes_returned + (100 << 20));
}

#[cfg(mallard_engine)]
#[test]
fn statistics_count_live_blocks_by_class_as_text_and_json() {
    let boxes: Vec<Box<[u8; 320]>> = (0..1000).map(|_| Box::new([1; 320])).collect();
    let after = statistics();
    assert!(after.classes().find(|c| c.bytes == 320).unwrap().live >= boxes.len());
    assert!(after.to_string().contains("  320 bytes: "), "{after}");
    let json = after.json().to_string();
    assert!(json.starts_with("{\"blocks_live\":") && json.ends_with("]}\n"), "{json}");
}
