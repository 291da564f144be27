//! Tests the addresses of an arena's blocks, and how an arena grows.

use super::layout;
use crate::common::Flaky;
use mallard::{Arena, BlockAllocator, Buffer, Growth, Owns, Source};
use std::mem::MaybeUninit;

#[test]
fn a_new_arena_owns_no_memory() {
    let source = Flaky::new();
    let arena = Arena::new_in(source.clone());
    assert_eq!((source.taken(), arena.statistics().chunks), (0, 0));
    drop(arena);
    static EMPTY: std::sync::Mutex<Arena> = std::sync::Mutex::new(Arena::new());
    assert_eq!(EMPTY.lock().unwrap().statistics().bytes_taken, 0);
}

#[test]
fn blocks_have_rising_addresses_without_gaps() {
    let arena = Arena::new();
    let blocks: Vec<_> = (0..10).map(|_| arena.alloc_layout(layout(3, 1)).addr().get()).collect();
    assert!(blocks.windows(2).all(|pair| pair[1] == pair[0] + 3));
}

#[test]
fn with_a_minimum_alignment_each_block_begins_at_a_multiple_of_it() {
    let arena = Arena::<_, 8>::with_min_align();
    let a = arena.alloc(1_u8) as *mut u8;
    let b = arena.alloc_str("twelve bytes").as_mut_ptr();
    let c = arena.alloc(2_u8) as *mut u8;
    assert_eq!((b.addr() - a.addr(), c.addr() - b.addr()), (8, 16));
    let aligned = arena.alloc_layout(layout(1, 64));
    assert_eq!(aligned.addr().get() % 64, 0);
    // SAFETY: this is the last block, with its layout.
    unsafe { arena.deallocate(aligned, layout(1, 64)) };
    assert_eq!(arena.alloc_layout(layout(5, 64)), aligned);
}

#[test]
fn chunks_grow_by_4x_from_1_kib() {
    let source = Flaky::new();
    let arena = Arena::new_in(source.clone());
    let mut held = Vec::new();
    for _ in 0..400 {
        arena.alloc([0_u8; 100]);
        held.push(source.taken());
    }
    held.dedup();
    assert_eq!(held, [1024, 1024 + 4096, 1024 + 4096 + 16384, 1024 + 4096 + 16384 + 65536]);
}

#[test]
fn a_large_request_gets_its_own_chunk_and_the_current_one_stays() {
    let source = Flaky::new();
    let arena = Arena::new_in(source.clone());
    let before = arena.alloc(1_u8) as *mut u8;
    arena.alloc_uninit_slice::<u8>(100_000);
    assert!(source.taken() < 1024 + 100_200);
    let after = arena.alloc(1_u8) as *mut u8;
    assert_eq!(after.addr(), before.addr() + 1);
}

#[test]
fn a_chunk_request_that_fails_is_halved_down_to_the_requested_size() {
    let mut bytes = [MaybeUninit::uninit(); 3000];
    let arena = Arena::new_in(Buffer::new(&mut bytes));
    assert!(arena.try_alloc([0_u8; 700]).is_ok());
    assert!(arena.try_alloc([0_u8; 700]).is_ok());
    assert!(arena.try_alloc([0_u8; 4000]).is_err());
}

#[test]
fn the_last_chunk_request_is_reduced_to_the_rest_of_the_limit() {
    let source = Flaky::new();
    let arena = Arena::with_growth_in(Growth::new().limit(10_000), source.clone());
    let count = (0..2000).take_while(|_| arena.try_alloc([0_u8; 10]).is_ok()).count();
    assert!((950..=1000).contains(&count), "{count}");
    assert!(source.taken() <= 10_000);
}

#[test]
#[cfg_attr(miri, ignore)] // Miri aborts if the heap returns null
fn requests_for_impossible_sizes_fail() {
    let arena = Arena::new();
    arena.alloc(1_u8);
    let half = isize::MAX as usize;
    for bytes in [half, half - 15, half - 16, half - 47, half - 63, half - 64] {
        assert!(arena.try_alloc_layout(layout(bytes, 1)).is_err());
    }
    assert!(arena.try_alloc_layout(layout(1, 1 << 62)).is_err());
    assert!(arena.try_alloc_layout(layout(half & !15, 16)).is_err());
    assert!(arena.try_alloc_uninit_slice::<u64>(usize::MAX / 4).is_err());
    assert!(arena.try_alloc_iter(std::iter::repeat(1)).is_err());
    assert_eq!(arena.statistics().chunks, 1);
}

#[test]
fn alignments_up_to_2_mib_work() {
    let source = Flaky::new();
    let arena = Arena::new_in(source.clone());
    for shift in 0..=if cfg!(miri) { 13 } else { 21 } {
        arena.alloc(1_u8);
        assert_eq!(arena.alloc_layout(layout(5, 1 << shift)).addr().get() % (1 << shift), 0);
    }
    #[repr(align(256))]
    struct Wide(u8);
    let wide = arena.alloc(Wide(3));
    assert_eq!(((&raw const *wide).addr() % 256, wide.0), (0, 3));
}

#[test]
fn only_the_last_block_is_reused_after_a_free() {
    let arena = Arena::new();
    let (a, b) = (arena.alloc_layout(layout(16, 8)), arena.alloc_layout(layout(16, 8)));
    // SAFETY: each block is freed once, with its layout.
    unsafe {
        arena.deallocate(a, layout(16, 8));
        arena.deallocate(b, layout(16, 8));
    }
    assert_eq!(arena.alloc_layout(layout(16, 8)), b);
}

#[test]
fn the_last_block_grows_and_shrinks_in_place() {
    let arena = Arena::new();
    let first = arena.alloc_layout(layout(8, 8));
    let block = arena.alloc_layout(layout(8, 8));
    // SAFETY: each block has this layout now.
    unsafe {
        assert!(arena.try_expand(block, layout(8, 8), layout(800, 8)));
        assert!(!arena.try_expand(block, layout(800, 8), layout(80_000, 8)));
        assert!(!arena.try_expand(block, layout(800, 8), layout(800, 16)));
        assert!(arena.try_expand(block, layout(800, 8), layout(16, 8)));
        assert!(!arena.try_expand(first, layout(8, 8), layout(16, 8)));
        assert!(arena.try_expand(first, layout(8, 8), layout(4, 8)));
        assert!(arena.try_expand(first, layout(4, 8), layout(2, 16))); // the address is aligned by chance
    }
    assert_eq!(arena.alloc_layout(layout(1, 1)).addr().get(), block.addr().get() + 16);
}

#[test]
fn an_arena_can_be_the_source_of_another_arena() {
    let source = Flaky::new();
    let outer = Arena::new_in(source.clone());
    let by_reference = Arena::new_in(&outer);
    let by_value = Arena::new_in(Arena::new_in(source.clone()));
    assert_eq!(by_reference.alloc_str("a").len() + by_value.alloc_str("b").len(), 2);
    assert!(by_value.source().statistics().bytes_live >= 1024);
    let chunk = outer.try_take(layout(100, 8)).unwrap();
    assert!(outer.owns(chunk.data.as_ptr()));
    // SAFETY: the chunk was just allocated from this source.
    unsafe { outer.give(chunk) };
}

#[test]
fn blocks_keep_their_addresses_when_the_arena_moves() {
    let mut arena = Arena::new();
    let place = arena.alloc(5_u32) as *mut u32;
    assert!(arena.owns(place.cast()));
    let mut moved = std::mem::take(&mut arena);
    assert!(moved.owns(place.cast()) && !arena.owns(place.cast()));
    assert!(!moved.owns(std::ptr::null()));
    moved.reset();
    assert_eq!(std::thread::spawn(move || *moved.alloc(6)).join().unwrap(), 6);
}

#[test]
fn allocated_chunks_yields_the_used_bytes_oldest_first() {
    let mut arena = Arena::<_, 4>::with_min_align();
    for n in 0..2000_u32 {
        arena.alloc(n);
    }
    let mut next = 0;
    for part in arena.allocated_chunks() {
        for bytes in part.chunks(4) {
            // SAFETY: all values in the arena are numbers.
            let number = unsafe { bytes.as_ptr().cast::<u32>().read() };
            assert_eq!(number, next);
            next += 1;
        }
    }
    assert_eq!(next, 2000);
}

#[test]
fn reserved_capacity_is_requested_in_one_chunk() {
    let source = Flaky::new();
    let arena = Arena::new_in(source.clone());
    arena.reserve(10_000);
    let calls = source.calls();
    arena.alloc_iter(0..10_000_u16 / 2);
    assert_eq!(source.calls(), calls);
    assert!(Arena::with_capacity(100_000).statistics().bytes_idle >= 100_000);
}
