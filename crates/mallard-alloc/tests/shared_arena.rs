//! Tests of `SharedArena`, the arena for several threads.

use crate::common::Random;
use mallard::{BlockAllocator, Chunk, DefaultHeap, Growth, Null, SharedArena, Source};
use std::alloc::Layout;
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};

const ROUNDS: usize = if cfg!(miri) { 40 } else { 5000 };

/// A source that counts the allocated bytes. It is not `Sync`, because the arena calls the source
/// from one thread at a time.
struct Counted(Arc<AtomicUsize>, Cell<usize>);

// SAFETY: every call is passed to the heap.
unsafe impl Source for Counted {
    fn try_take(&self, layout: Layout) -> Option<Chunk> {
        self.1.set(self.1.get() + 1);
        self.0.fetch_add(layout.size(), Ordering::Relaxed);
        DefaultHeap.try_take(layout)
    }
    unsafe fn give(&self, chunk: Chunk) {
        self.1.set(self.1.get() + 1);
        self.0.fetch_sub(chunk.layout.size(), Ordering::Relaxed);
        // SAFETY: the chunk is from the heap.
        unsafe { DefaultHeap.give(chunk) }
    }
}

fn counted() -> (Arc<AtomicUsize>, SharedArena<Counted>) {
    let bytes = Arc::new(AtomicUsize::new(0));
    let arena = SharedArena::new_in(Counted(bytes.clone(), Cell::new(0)));
    (bytes, arena)
}

#[test]
fn a_new_shared_arena_uses_no_memory_and_can_be_static() {
    static SHARED: SharedArena = SharedArena::new();
    let (bytes, mut arena) = counted();
    assert_eq!(arena.statistics().bytes_taken, 0);
    assert_eq!(bytes.load(Ordering::Relaxed), 0);
    let pinned = SHARED.alloc_box(std::future::ready(1)).into_pin();
    drop(pinned);
    let threads: Vec<_> = (0..3).map(|n| std::thread::spawn(move || SHARED.alloc(n))).collect();
    assert_eq!(threads.into_iter().map(|t| *t.join().unwrap()).sum::<i32>(), 3);
}

#[test]
fn blocks_of_several_threads_do_not_overlap() {
    let (bytes, mut arena) = counted();
    for _ in 0..3 {
        let ready = Barrier::new(4);
        std::thread::scope(|s| {
            for thread in 0..4_usize {
                let (arena, ready) = (&arena, &ready);
                s.spawn(move || {
                    ready.wait();
                    let mut random = Random::new(thread as u64);
                    let mut all: Vec<&mut [usize]> = Vec::new();
                    for round in 0..ROUNDS {
                        let value = thread * ROUNDS + round;
                        all.push(arena.alloc_slice_fill_with(1 + random.below(20), |_| value));
                    }
                    for (round, slice) in all.into_iter().enumerate() {
                        assert!(slice.iter().all(|n| *n == thread * ROUNDS + round));
                    }
                });
            }
        });
        let s = arena.statistics();
        assert_eq!(s.bytes_taken, bytes.load(Ordering::Relaxed));
        assert!(s.bytes_live > 4 * ROUNDS * 8);
        arena.reset();
        assert_eq!(arena.statistics().bytes_live, 0);
    }
    arena.trim(0);
    assert_eq!(arena.statistics().bytes_taken, bytes.load(Ordering::Relaxed));
    arena.release();
    assert_eq!(bytes.load(Ordering::Relaxed), 0);
    assert_eq!(*arena.alloc(1), 1); // not allocated in the memory that the release has freed
    drop(arena);
    assert_eq!(bytes.load(Ordering::Relaxed), 0);
}

#[test]
fn a_new_thread_reuses_the_memory_of_an_exited_thread() {
    let (bytes, arena) = counted();
    std::thread::scope(|s| {
        s.spawn(|| arena.alloc(1)).join().unwrap();
        let taken = bytes.load(Ordering::Relaxed);
        for _ in 0..10 {
            s.spawn(|| arena.alloc(1)).join().unwrap();
        }
        assert_eq!(bytes.load(Ordering::Relaxed), taken);
    });
}

/// Threads are not joined before others start, so only the arena itself orders a thread that exits
/// before the thread that reuses its chunks. A thread sanitizer checks that this is sufficient.
#[test]
fn a_new_thread_can_reuse_the_memory_of_an_exited_thread_that_was_not_joined() {
    let (_, mut arena) = counted();
    let count = if cfg!(miri) { 20 } else { 300 };
    std::thread::scope(|s| {
        for thread in 0..count {
            let arena = &arena;
            s.spawn(move || {
                let all: Vec<_> = (0..20).map(|n| arena.alloc(thread * 100 + n)).collect();
                assert!(all.into_iter().enumerate().all(|(n, value)| *value == thread * 100 + n));
            });
        }
    });
    assert_eq!(arena.statistics().bytes_live, count * 20 * size_of::<usize>());
}

#[test]
fn an_exiting_thread_can_allocate() {
    struct AtTheEnd(Arc<SharedArena>);
    impl Drop for AtTheEnd {
        fn drop(&mut self) {
            for n in 0..100 {
                assert_eq!(*self.0.alloc(n), n);
            }
        }
    }
    thread_local!(static LAST: Cell<Option<AtTheEnd>> = const { Cell::new(None) });
    let arena = Arc::new(SharedArena::new());
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let arena = arena.clone();
            std::thread::spawn(move || {
                // Thread-local destructors run in reverse order of registration, so `AtTheEnd`
                // allocates after the destructor of the arena's thread data has run.
                LAST.set(Some(AtTheEnd(arena.clone())));
                arena.alloc(1);
            })
        })
        .collect();
    threads.into_iter().for_each(|t| t.join().unwrap());
    assert!(Arc::into_inner(arena).unwrap().statistics().bytes_live >= 4 * 101 * 4);
}

#[test]
fn one_thread_can_use_many_shared_arenas() {
    let mut arenas: Vec<_> = (0..20).map(|_| SharedArena::new()).collect();
    let blocks: Vec<Vec<*const usize>> =
        (0..10).map(|n| arenas.iter().map(|arena| &raw const *arena.alloc(n)).collect()).collect();
    for row in blocks {
        for (arena, block) in arenas.iter_mut().zip(row) {
            assert!(arena.owns(block.cast()));
        }
    }
    assert!(arenas.iter_mut().all(|arena| arena.statistics().bytes_live == 80));
}

#[test]
fn owned_values_are_dropped_once_by_the_thread_that_frees_them() {
    static DROPS: AtomicUsize = AtomicUsize::new(0);
    struct Counts(usize);
    impl Drop for Counts {
        fn drop(&mut self) {
            DROPS.fetch_add(1, Ordering::Relaxed);
        }
    }
    let mut arena = SharedArena::new();
    std::thread::scope(|s| {
        for _ in 0..4 {
            s.spawn(|| (0..ROUNDS).for_each(|n| arena.own(Counts(n)).0 += 1));
        }
    });
    assert_eq!(DROPS.load(Ordering::Relaxed), 0);
    arena.reset();
    assert_eq!(DROPS.load(Ordering::Relaxed), 4 * ROUNDS);
    arena.own(Counts(1));
    std::thread::spawn(move || drop(arena)).join().unwrap();
    assert_eq!(DROPS.load(Ordering::Relaxed), 4 * ROUNDS + 1);
}

#[test]
fn a_box_may_be_dropped_by_another_thread() {
    let arena = SharedArena::new();
    let boxed = arena.alloc_box(vec![1, 2, 3]);
    std::thread::scope(|s| {
        s.spawn(|| {
            arena.alloc(1);
            assert_eq!(boxed.len(), 3);
            drop(boxed);
        });
    });
    let again = arena.alloc_box(1);
    let place = &raw const *again;
    drop(again);
    assert_eq!(&raw const *arena.alloc_box(2), place);
}

#[test]
fn the_last_block_of_a_thread_grows_in_place() {
    let arena = SharedArena::new();
    let layout = |bytes| Layout::from_size_align(bytes, 8).unwrap();
    let block = arena.alloc_layout(layout(8));
    // SAFETY: the block has this layout now.
    unsafe {
        assert!(arena.try_expand(block, layout(8), layout(80)));
        assert!(arena.try_expand(block, layout(80), layout(16)));
        arena.deallocate(block, layout(16));
    }
    assert_eq!(arena.alloc_layout(layout(8)), block);
    assert_eq!(arena.alloc_iter((0..200).filter(|n| n % 2 == 0)).len(), 100);
}

#[test]
fn the_limit_bounds_the_memory_of_all_threads_together() {
    let bytes = Arc::new(AtomicUsize::new(0));
    let source = Counted(bytes.clone(), Cell::new(0));
    let arena = SharedArena::with_growth_in(Growth::new().limit(100_000), source);
    std::thread::scope(|s| {
        for _ in 0..4 {
            s.spawn(|| {
                while arena.try_alloc([0_u8; 500]).is_ok() {}
                assert!(bytes.load(Ordering::Relaxed) <= 100_000);
            });
        }
    });
    assert!(bytes.load(Ordering::Relaxed) > 95_000);
}

#[test]
fn if_the_source_is_exhausted_the_error_returns_the_value() {
    let arena = SharedArena::new_in(Null);
    assert_eq!(arena.try_alloc(String::from("mine")).unwrap_err().into_inner(), "mine");
    assert_eq!(arena.try_own(String::from("mine")).unwrap_err().into_inner(), "mine");
    assert_eq!(arena.alloc_str(""), "");
}
