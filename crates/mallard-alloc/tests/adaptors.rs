//! Tests the adaptors, each of which adds one feature to an allocator and is an allocator too.

use crate::common::{Flaky, Random};
use mallard::{
    for_each_failure, BlockAllocator, Budget, Buffer, BySize, Chunk, Counted, DefaultHeap, Event,
    Failing, FailureRule, Failures, Fallback, Limited, Measured, Multipool, Null, Owns, Resettable,
    Source, Spin, Synchronized, Traced,
};
use std::alloc::Layout;
use std::cell::RefCell;
use std::mem::MaybeUninit;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr::NonNull;

fn layout(bytes: usize) -> Layout {
    Layout::from_size_align(bytes, 8).unwrap()
}

fn free<A: BlockAllocator>(of: &A, block: NonNull<u8>, bytes: usize) {
    // SAFETY: each test frees a block only once, with the layout of the block.
    unsafe { of.deallocate(block, layout(bytes)) }
}

#[test]
fn a_counted_allocator_reports_totals_and_peaks() {
    let memory = Counted::new(Multipool::new());
    let (a, b) = (memory.allocate(layout(10)), memory.allocate(layout(30)));
    free(&memory, a, 10);
    assert!(memory.try_allocate(layout(isize::MAX as usize - 7)).is_none());
    let counts = memory.counts();
    assert_eq!((counts.allocations, counts.frees, counts.failures), (2, 1, 1));
    assert_eq!((counts.blocks_peak, counts.bytes_peak), (2, 40));
    assert_eq!((counts.blocks_live(), counts.bytes_live()), (1, 30));
    // SAFETY: the block is in use.
    assert!(unsafe { memory.try_expand(b, layout(30), layout(32)) });
    assert_eq!(memory.counts().bytes_live(), 32);
    free(&memory, b, 32);
    assert!(memory.counts().is_balanced());
    let mut json = String::new();
    memory.counts().write_json(&mut json).unwrap();
    assert!(json.starts_with("{\"allocations\":2,\"frees\":2,"), "{json}");
    assert!(memory.counts().to_string().contains("bytes_peak       40"));
}

#[test]
fn a_counting_scope_has_separate_counts_and_peaks() {
    let memory = Counted::new(DefaultHeap);
    let old = memory.allocate(layout(100));
    {
        let outer = memory.scope();
        let a = memory.allocate(layout(50));
        {
            let inner = memory.scope();
            free(&memory, old, 100);
            let b = memory.allocate(layout(20));
            assert_eq!(inner.counts().bytes_peak, 0);
            assert_eq!(inner.counts().bytes_live(), -80);
            free(&memory, b, 20);
        }
        free(&memory, a, 50);
        assert_eq!(outer.counts().bytes_peak, 50);
        assert_eq!(outer.counts().allocations, 2);
    }
    assert_eq!(memory.counts().bytes_peak, 150);
    assert!(memory.counts().is_balanced());
}

#[test]
fn a_counted_source_counts_the_bytes_of_its_chunks() {
    let pool = Multipool::new_in(Counted::new(Flaky::new()));
    let block = pool.allocate(layout(40_000));
    assert!(pool.source().counts().bytes_live() > 40_000);
    free(&pool, block, 40_000);
    assert!(pool.source().counts().is_balanced());
}

#[test]
fn a_reset_counts_all_blocks_as_freed_and_restores_the_budget() {
    let mut memory = Limited::new(Budget::bytes(50), Counted::new(Multipool::new()));
    memory.allocate(layout(50));
    assert!(memory.try_allocate(layout(1)).is_none());
    memory.reset();
    assert!(memory.inner().counts().is_balanced());
    assert_eq!(memory.left(), memory.most());
    memory.allocate(layout(50));
    memory.release();
    memory.trim(0);
    assert_eq!(memory.statistics().bytes_taken, 0);
}

#[test]
fn a_limited_allocator_allows_the_last_byte_of_the_budget_and_no_more() {
    let memory = Limited::new(Budget { bytes: 100, blocks: 2 }, Multipool::new());
    let a = memory.allocate(layout(60));
    assert!(memory.try_allocate(layout(41)).is_none());
    assert!(memory.last_failure().contains("too few bytes"));
    let b = memory.allocate(layout(40));
    assert!(memory.try_allocate(layout(0)).is_none());
    assert!(memory.last_failure().contains("block budget"));
    // SAFETY: the blocks are in use.
    unsafe {
        assert!(!memory.try_expand(a, layout(60), layout(61)));
        assert!(memory.try_expand(b, layout(40), layout(33)));
        assert!(memory.try_expand(a, layout(60), layout(64)));
        assert!(!memory.try_expand(b, layout(33), layout(900)));
    }
    assert_eq!(memory.left(), Budget { bytes: 3, blocks: 0 });
    free(&memory, a, 64);
    free(&memory, b, 33);
    assert_eq!(memory.left(), memory.most());
}

#[test]
fn a_limited_allocator_restores_the_budget_when_the_wrapped_allocator_fails() {
    let memory = Limited::new(Budget::bytes(100), Null);
    assert!(BlockAllocator::try_allocate(&memory, layout(60)).is_none());
    assert_eq!(memory.left(), memory.most());
    assert!(memory.last_failure().contains("the wrapped allocator"));
}

/// A source that returns chunks that are one page larger than requested.
struct Generous;
// SAFETY: all chunks are chunks of the heap.
unsafe impl Source for Generous {
    fn try_take(&self, of: Layout) -> Option<Chunk> {
        DefaultHeap.try_take(Layout::from_size_align(of.size() + 4096, of.align()).ok()?)
    }
    unsafe fn give(&self, chunk: Chunk) {
        // SAFETY: the chunk is from the heap.
        unsafe { DefaultHeap.give(chunk) }
    }
}

#[test]
fn a_limited_source_counts_bytes_that_the_source_adds_to_a_request() {
    let source = Limited::new(Budget::bytes(6000), Generous);
    let chunk = source.try_take(layout(100)).unwrap();
    assert_eq!(source.left().bytes, 6000 - 4196);
    assert!(source.try_take(layout(1000)).is_none());
    assert_eq!(source.left().bytes, 6000 - 4196);
    // SAFETY: the chunk was allocated from this source.
    unsafe { source.give(chunk) };
    assert_eq!(source.left(), source.most());
}

#[test]
fn an_allocator_over_a_limited_source_uses_most_of_the_budget() {
    let pool = Multipool::new_in(Limited::new(Budget::bytes(100_000), DefaultHeap));
    let mut blocks = 0;
    while pool.try_allocate(layout(64)).is_some() {
        blocks += 1;
    }
    assert!(blocks * 64 > 90_000, "{blocks}");
}

#[test]
fn failures_are_selected_by_call_number() {
    let failing = |rule: Failures| -> Vec<usize> {
        (0..30).filter(|&number| rule.fails(layout(1), number)).collect()
    };
    assert_eq!(failing(Failures::at(3)), [3]);
    assert_eq!(failing(Failures { count: 3, ..Failures::at(3) }), [3, 4, 5]);
    assert_eq!(failing(Failures { every: 10, ..Failures::at(9) }), [9, 19, 29]);
    assert_eq!(failing(Failures::NEVER), [0; 0]);
}

#[test]
fn a_failing_allocator_follows_any_rule_and_counts_failures() {
    let memory = Failing::new(|of: Layout, _| of.size() > 100, Multipool::new());
    assert!(memory.try_allocate(layout(100)).is_some());
    assert!(memory.try_allocate(layout(101)).is_none());
    assert_eq!((memory.calls(), memory.failed()), (2, 1));
}

#[test]
fn every_allocation_fails_once_in_for_each_failure() {
    let mut runs = 0;
    let refused = for_each_failure(Multipool::new(), |memory| {
        runs += 1;
        let blocks: Vec<_> = (0..5).map_while(|_| memory.try_allocate(layout(24))).collect();
        blocks.into_iter().for_each(|block| free(memory, block, 24));
    });
    assert_eq!((refused, runs), (5, 6));
}

#[test]
fn a_leak_on_one_error_path_is_reported_by_for_each_failure() {
    let mut run = || {
        for_each_failure(Multipool::new(), |memory| {
            let Some(a) = memory.try_allocate(layout(24)) else { return };
            let Some(b) = memory.try_allocate(layout(24)) else { return };
            free(memory, a, 24);
            free(memory, b, 24);
        })
    };
    let message =
        *catch_unwind(AssertUnwindSafe(&mut run)).unwrap_err().downcast::<String>().unwrap();
    assert!(message.starts_with("mallard: 1 block(s) leaked when allocation 1"), "{message}");
    assert!(message.contains("help: "));
}

#[test]
fn a_traced_allocator_reports_each_call_in_order() {
    let seen = RefCell::new(Vec::new());
    let mut memory = Traced::new(Multipool::new(), |event: &Event| seen.borrow_mut().push(*event));
    let block = memory.allocate(layout(33));
    // SAFETY: the block is in use.
    assert!(unsafe { memory.try_expand(block, layout(33), layout(40)) });
    free(&memory, block, 40);
    let absurd = layout(isize::MAX as usize - 7);
    assert!(memory.try_allocate(absurd).is_none());
    memory.reset();
    let at = block.as_ptr().cast_const();
    let expected = [
        Event::Allocate { block: at, layout: layout(33) },
        Event::Expand { block: at, from: layout(33), to: layout(40) },
        Event::Deallocate { block: at, layout: layout(40) },
        Event::Fail { layout: absurd },
        Event::Reset,
    ];
    assert_eq!(*seen.borrow(), expected);
}

#[test]
fn a_fallback_frees_a_block_where_it_was_allocated() {
    let books = Flaky::new();
    let mut bytes = [MaybeUninit::uninit(); 4096];
    let pool = Multipool::new_in(Fallback::new(Buffer::new(&mut bytes), books.clone()));
    let blocks: Vec<_> = (0..500).map(|_| pool.allocate(layout(48))).collect();
    assert!(books.taken() > 0);
    assert!(pool.source().first().owns(blocks[0].as_ptr()));
    assert!(!pool.source().first().owns(blocks[499].as_ptr()));
    blocks.into_iter().for_each(|block| free(&pool, block, 48));
    drop(pool);
    assert_eq!(books.taken(), 0);
}

#[test]
fn a_fallback_uses_the_second_allocator_when_the_first_is_full() {
    let mut memory = Fallback::new(
        Multipool::new_in(Limited::new(Budget::bytes(4000), DefaultHeap)),
        Counted::new(Multipool::new()),
    );
    let none = memory.allocate(layout(0));
    free(&memory, none, 0);
    let blocks: Vec<_> = (0..100).map(|_| memory.allocate(layout(60))).collect();
    let in_second = memory.second().counts().blocks_live();
    assert!(in_second > 20 && in_second < 100, "{in_second}");
    for block in blocks {
        // SAFETY: the block is in use.
        assert!(unsafe { memory.try_expand(block, layout(60), layout(64)) });
        free(&memory, block, 64);
    }
    assert!(memory.second().counts().is_balanced());
    assert_eq!(memory.statistics().blocks_live, 0);
    memory.release();
}

#[test]
fn a_by_size_allocator_frees_a_block_in_the_allocator_for_blocks_of_that_size() {
    let memory =
        BySize::<100, _, _>::new(Counted::new(Multipool::new()), Counted::new(DefaultHeap));
    let (small, large) = (memory.allocate(layout(100)), memory.allocate(layout(101)));
    assert_eq!(memory.small().counts().blocks_live(), 1);
    assert_eq!(memory.large().counts().blocks_live(), 1);
    // SAFETY: the block is in use.
    unsafe {
        assert!(memory.try_expand(small, layout(100), layout(98)));
        assert!(!memory.try_expand(small, layout(98), layout(104)));
    }
    free(&memory, small, 98);
    free(&memory, large, 101);
    assert!(memory.small().counts().is_balanced() && memory.large().counts().is_balanced());
}

fn hammer<A: BlockAllocator + Sync>(memory: &A) {
    std::thread::scope(|scope| {
        for seed in 0..3 {
            scope.spawn(move || {
                let mut random = Random::new(seed);
                let mut live = Vec::new();
                for _ in 0..if cfg!(miri) { 60 } else { 3000 } {
                    if random.below(3) != 0 {
                        let bytes = 1 + random.below(300);
                        let block = memory.allocate(layout(bytes));
                        // SAFETY: the block is new.
                        unsafe { block.write_bytes(seed as u8, bytes) };
                        live.push((block, bytes));
                    } else if let Some((block, bytes)) = live.pop() {
                        // SAFETY: the block belongs to this thread.
                        assert_eq!(unsafe { block.add(bytes - 1).read() }, seed as u8);
                        free(memory, block, bytes);
                    }
                }
                live.into_iter().for_each(|(block, bytes)| free(memory, block, bytes));
            });
        }
    });
}

#[test]
fn a_synchronized_allocator_serves_any_number_of_threads() {
    static MEMORY: Synchronized<Counted<Multipool>> =
        Synchronized::new(Counted::new(Multipool::new()));
    hammer(&MEMORY);
    assert!(MEMORY.with(Counted::counts).is_balanced());
    assert!(format!("{MEMORY:?}").starts_with("Synchronized"));
    let spinning = Synchronized::<_, Spin>::locked_by(Multipool::new());
    hammer(&spinning);
    assert_eq!(spinning.statistics().blocks_live, 0);
    assert_eq!(spinning.into_inner().statistics().blocks_live, 0);
}

#[test]
fn a_panic_under_the_lock_releases_the_lock() {
    let memory = Synchronized::new(Multipool::new());
    let panics = AssertUnwindSafe(|| memory.with(|_| panic!("on purpose")));
    assert!(catch_unwind(panics).is_err());
    memory.allocate(layout(8));
}
