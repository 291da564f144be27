//! Tests of block pools, and of object pools in the mode `sync::Mutex`.

use crate::common::Flaky;
use mallard::handles::Box;
use mallard::{sync, BlockAllocator, Chunk, DefaultHeap, Growth, ObjectPool, Owns, Pool, Source};
use std::alloc::Layout;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicUsize, Ordering};

const MANY: usize = if cfg!(miri) { 60 } else { 20_000 };

fn layout(bytes: usize, align: usize) -> Layout {
    Layout::from_size_align(bytes, align).unwrap()
}

#[test]
fn pools_with_small_chunks_use_most_of_a_small_limit() {
    fn fills<M: sync::Growing>(beside: usize) -> usize {
        let pool: Pool<M> = Pool::with_growth(layout(64, 8), Growth::none(32 << 10));
        let mut blocks: Vec<_> = std::iter::from_fn(|| pool.try_allocate(layout(64, 8))).collect();
        let count = blocks.len();
        // SAFETY: the blocks are from this pool, with this layout, and each block is freed once.
        blocks.drain(..).for_each(|block| unsafe { pool.deallocate(block, layout(64, 8)) });
        assert!(pool.statistics().bytes_taken <= (32 << 10) + beside);
        assert!(pool.try_allocate(layout(64, 8)).is_some());
        count
    }
    // 32 KiB hold 512 blocks, minus the space of the chunk headers.
    assert!(fills::<sync::Unshared<1024>>(0) >= 400);
    assert!(fills::<sync::Mutex<1024>>(0) >= 400);
    assert!(fills::<sync::ThreadCached<1024>>(2048) >= 300); // the thread cache uses the rest
}

#[test]
fn requests_that_fit_get_a_block_and_larger_ones_fail() {
    let source = Flaky::new();
    let mut pool: Pool<sync::Unshared, _> = Pool::new_in(layout(40, 16), source.clone());
    assert_eq!(pool.block(), layout(48, 16));
    assert!(pool.try_allocate(layout(49, 1)).is_none());
    assert!(pool.try_allocate(layout(8, 32)).is_none());
    assert_eq!(source.calls(), 0);
    let nothing = pool.allocate(layout(0, 64));
    assert_eq!(nothing.addr().get() % 64, 0);
    let block = pool.allocate(layout(33, 16));
    assert!(pool.owns(block.as_ptr()) && !pool.owns(nothing.as_ptr()));
    // SAFETY: the blocks are from this pool, with these layouts.
    unsafe {
        block.write_bytes(7, 48);
        assert!(pool.try_expand(block, layout(33, 16), layout(48, 8)));
        assert!(!pool.try_expand(block, layout(48, 8), layout(49, 8)));
        pool.deallocate(block, layout(48, 8));
        pool.deallocate(nothing, layout(0, 64));
    }
    assert_eq!(pool.len(), 0);
    pool.allocate(layout(48, 16));
    pool.for_each(|_| ());
    pool.clear();
    assert!(pool.is_empty());
}

#[test]
fn a_batch_allocates_all_blocks_or_none() {
    let pool: Pool = Pool::fixed(layout(24, 8), 100);
    let mut blocks = [MaybeUninit::uninit(); 60];
    assert!(pool.try_allocate_batch(&mut blocks));
    let mut more = [MaybeUninit::uninit(); 60];
    assert!(!pool.try_allocate_batch(&mut more));
    assert_eq!(pool.available(), 40);
    // SAFETY: `try_allocate_batch` initialised the array.
    let blocks = blocks.map(|block| unsafe { block.assume_init() });
    // SAFETY: the blocks are from this pool, and in use.
    unsafe { pool.deallocate_batch(&blocks) };
    assert_eq!(pool.available(), 100);
}

#[test]
fn a_pool_can_be_the_source_of_another_pool() {
    let chunks: Pool = Pool::new(layout(65536, 65536));
    let objects: ObjectPool<u64, sync::Unshared, &Pool> =
        ObjectPool::with_growth_in(Growth::fixed(65536), &chunks);
    let all: Vec<_> = (0..MANY as u64).map(|i| objects.make(i)).collect();
    assert!(all.iter().enumerate().all(|(i, object)| **object == i as u64));
    assert!(chunks.len() >= 3);
    drop(all);
    drop(objects);
    assert_eq!(chunks.len(), 0);
}

/// A source that counts its chunks.
#[derive(Default)]
struct Books(AtomicUsize);

// SAFETY: every call is passed to the heap, which fulfils the contract of `Source`.
unsafe impl Source for &'static Books {
    fn try_take(&self, layout: Layout) -> Option<Chunk> {
        self.0.fetch_add(1, Ordering::Relaxed);
        DefaultHeap.try_take(layout)
    }
    unsafe fn give(&self, chunk: Chunk) {
        self.0.fetch_sub(1, Ordering::Relaxed);
        // SAFETY: the chunk is from the heap.
        unsafe { DefaultHeap.give(chunk) }
    }
}

#[test]
fn threads_can_drop_objects_that_other_threads_created() {
    static BOOKS: Books = Books(AtomicUsize::new(0));
    let growth = Growth { max: 65536, ..Growth::new() };
    let pool: ObjectPool<[usize; 4], sync::Mutex, _> = ObjectPool::with_growth_in(growth, &BOOKS);
    let threads = if cfg!(miri) { 2 } else { 4 };
    let (send, receive) = std::sync::mpsc::channel();
    let receive = std::sync::Mutex::new(receive);
    std::thread::scope(|scope| {
        let (pool, receive) = (&pool, &receive);
        for thread in 0..threads {
            let send = send.clone();
            scope.spawn(move || {
                let mut mine = Vec::new();
                for i in 0..MANY {
                    mine.push(pool.make([thread * MANY + i; 4]));
                    if i % 3 == 0 {
                        send.send(mine.swap_remove(i % mine.len())).unwrap();
                    }
                    if i % 64 == 63 {
                        pool.destroy_batch(mine.drain(..30));
                        drop(pool.make_batch([[i; 4], [i + 1; 4]]));
                    }
                    if let Ok(other) = receive.lock().unwrap().try_recv() {
                        let other: Box<'_, [usize; 4], _, _> = other;
                        assert!(other.iter().all(|n| *n == other[0]));
                    }
                }
                let mut seen: Vec<usize> = mine.iter().map(|object| object[0]).collect();
                seen.sort_unstable();
                seen.dedup();
                assert_eq!(seen.len(), mine.len());
            });
        }
    });
    drop((send, receive));
    assert_eq!(pool.len(), 0);
    drop(pool);
    assert_eq!(BOOKS.0.load(Ordering::Relaxed), 0);
}

#[test]
fn a_panic_in_another_thread_does_not_poison_a_pool() {
    static POOL: ObjectPool<String, sync::Mutex> = ObjectPool::with_mode();
    let kept = POOL.make("kept".into());
    let thread = std::thread::spawn(|| {
        let _object = POOL.make("gone".into());
        POOL.make_with(|| panic!("while it is made"));
    });
    assert!(thread.join().is_err());
    assert_eq!(POOL.len(), 1);
    assert_eq!(*kept, "kept");
    assert_eq!(*POOL.make("more".into()), "more");
}

#[test]
fn threads_that_create_the_first_object_simultaneously_initialise_the_pool_once() {
    for _ in 0..if cfg!(miri) { 2 } else { 50 } {
        let pool: ObjectPool<u64, sync::Mutex> = ObjectPool::fixed(8);
        std::thread::scope(|scope| {
            for i in 0..4 {
                let pool = &pool;
                scope.spawn(move || {
                    let two = pool.make_batch([i, i]);
                    assert_eq!(*two[0] + *two[1], 2 * i);
                });
            }
        });
        assert_eq!((pool.len(), pool.statistics().growths), (0, 1));
    }
}
