//! Tests containers of other crates in Mallard's allocators, and allocators of other crates as sources.
#![cfg(feature = "allocator-api2-02")]

use crate::common::Flaky;
use allocator_api2_02::alloc::{Allocator, Global};
use allocator_api2_02::{boxed::Box, vec::Vec};
use mallard::allocator_api2_02::FromAllocator;
use mallard::{AsSource, BlockAllocator, Multipool};
use std::alloc::Layout;
use std::cell::Cell;
use std::ptr::NonNull;

/// A bump allocator with one chunk. Like an arena, it can expand its last block.
struct Bump {
    base: NonNull<u8>,
    used: Cell<usize>,
}
const BUMP: Layout = Layout::new::<[u128; 4096]>();

impl Bump {
    fn new() -> Self {
        // SAFETY: the size is not 0.
        let base = NonNull::new(unsafe { std::alloc::alloc(BUMP) }).unwrap();
        Self { base, used: Cell::new(0) }
    }
}
impl Drop for Bump {
    fn drop(&mut self) {
        // SAFETY: the chunk is from `new`.
        unsafe { std::alloc::dealloc(self.base.as_ptr(), BUMP) }
    }
}

// SAFETY: blocks are disjoint parts of the chunk.
unsafe impl BlockAllocator for Bump {
    fn try_allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        let begin = self.used.get().next_multiple_of(layout.align());
        if begin + layout.size() > BUMP.size() {
            return None;
        }
        self.used.set(begin + layout.size());
        // SAFETY: the block is within the chunk.
        Some(unsafe { self.base.add(begin) })
    }
    unsafe fn deallocate(&self, _: NonNull<u8>, _: Layout) {}
    unsafe fn try_expand(&self, block: NonNull<u8>, from: Layout, to: Layout) -> bool {
        let begin = block.addr().get() - self.base.addr().get();
        let fits = begin + from.size() == self.used.get() && begin + to.size() <= BUMP.size();
        if fits {
            self.used.set(begin + to.size());
        }
        fits
    }
}

#[test]
fn a_vec_in_the_last_block_grows_in_place() {
    let bump = AsSource(Bump::new());
    let mut numbers = Vec::new_in(&bump);
    numbers.push(0_u32);
    let at = numbers.as_ptr();
    numbers.extend(1..10_000);
    assert_eq!(numbers.as_ptr(), at);
    assert!(numbers.iter().copied().eq(0..10_000));
    numbers.truncate(10);
    numbers.shrink_to_fit();
    assert_eq!(numbers.as_ptr(), at);
    assert_eq!(bump.0.used.get(), 40);
}

#[test]
fn containers_allocate_from_a_multipool_by_reference_and_by_value() {
    let books = Flaky::new();
    let pool = Multipool::new_in(books.clone());
    let mut numbers = Vec::new_in(&pool);
    let mut map = hashbrown::HashMap::new_in(&pool);
    for i in 0..if cfg!(miri) { 100 } else { 10_000_u64 } {
        numbers.push(i);
        map.insert(i, Box::new_in(i * 2, &pool));
    }
    assert!(map.iter().all(|(k, v)| **v == k * 2));
    assert_eq!(numbers.len(), map.len());
    numbers.shrink_to_fit();
    drop((numbers, map));
    assert_eq!(pool.statistics().blocks_live, 0);
    let mut owned = Vec::new_in(pool);
    owned.extend([1, 2, 3]);
    let moved = owned;
    assert_eq!(moved, [1, 2, 3]);
}

#[test]
fn allocate_zeroed_and_grow_zeroed_return_zeroed_bytes() {
    let pool = Multipool::new();
    let of = |bytes| Layout::from_size_align(bytes, 4).unwrap();
    let dirty = Allocator::allocate(&pool, of(40)).unwrap().cast::<u8>();
    // SAFETY: the blocks are from this pool with these layouts, and the bytes are within them.
    unsafe {
        dirty.write_bytes(7, 40);
        Allocator::deallocate(&pool, dirty, of(40));
        let zeroed = pool.allocate_zeroed(of(36)).unwrap();
        assert!(zeroed.as_ref().iter().all(|&byte| byte == 0));
        let in_place = pool.grow_zeroed(zeroed.cast(), of(36), of(40)).unwrap();
        assert_eq!(in_place.cast::<u8>(), zeroed.cast());
        let moved = pool.grow_zeroed(in_place.cast(), of(40), of(400)).unwrap();
        assert!(moved.as_ref().iter().all(|&byte| byte == 0));
        let aligned = Layout::from_size_align(400, 4096).unwrap();
        let moved = pool.grow(moved.cast(), of(400), aligned).unwrap();
        assert_eq!(moved.cast::<u8>().addr().get() % 4096, 0);
        let none = pool.shrink(moved.cast(), aligned, of(0)).unwrap();
        let again = pool.grow(none.cast(), of(0), of(8)).unwrap();
        Allocator::deallocate(&pool, again.cast(), of(8));
    }
    assert_eq!(pool.statistics().blocks_live, 0);
}

#[test]
fn a_failed_growth_is_an_error_and_keeps_the_block() {
    let books = Flaky::new();
    let pool = Multipool::new_in(books.clone());
    let mut numbers = Vec::new_in(&pool);
    numbers.push(1_u64);
    books.fail_after(0);
    assert!(numbers.try_reserve(100_000).is_err());
    assert_eq!(numbers, [1]);
}

#[test]
fn an_allocator_of_another_crate_can_be_a_source() {
    let pool = Multipool::new_in(FromAllocator(Global));
    let above = Multipool::new_in(FromAllocator(&pool));
    let mut numbers = Vec::new_in(&above);
    numbers.extend(0..1000);
    assert!(pool.statistics().blocks_live > 0);
}

/// Tests that a vector grows in shared arenas, file arenas and segments of shared memory.
#[test]
#[cfg(target_os = "linux")]
#[cfg_attr(miri, ignore)] // Miri cannot map files
fn a_vector_grows_in_shared_arenas_files_and_segments() {
    fn grows<A: Allocator>(allocator: A) -> A {
        let mut numbers = Vec::new_in(allocator);
        numbers.extend(0..1000_u32);
        numbers.shrink_to_fit();
        assert!(numbers.iter().copied().eq(0..1000));
        let boxed = Box::new_in(7, numbers.allocator());
        assert_eq!(*boxed, 7);
        drop(boxed);
        let (.., allocator) = numbers.into_raw_parts_with_alloc(); // the block is freed with the allocator
        allocator
    }
    let mut shared = grows(mallard::SharedArena::new());
    assert!(shared.statistics().bytes_live >= 4000);
    std::thread::spawn(move || grows(shared)).join().unwrap();
    grows(&mallard::SharedMemory::anonymous(1 << 20).unwrap());
    let path = std::env::temp_dir().join(format!("mallard-bridge-{}", std::process::id()));
    let options = mallard::FileOptions { sync: false, ..Default::default() };
    // SAFETY: nothing else writes to this file.
    let mut file = grows(unsafe { mallard::FileArena::open(&path, &options) }.unwrap());
    assert!(file.statistics().bytes_used >= 4000);
    file.commit().unwrap();
    std::fs::remove_file(path).unwrap();
}
