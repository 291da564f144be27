//! Tests of multipools.

use crate::common::{Flaky, Random};
use mallard::{AsSource, BlockAllocator, Growth, Multipool, Owns, Source, Validity};
use std::alloc::Layout;
use std::ptr::NonNull;

fn layout(bytes: usize, align: usize) -> Layout {
    Layout::from_size_align(bytes, align).unwrap()
}

/// A block in use, filled with one byte value.
struct Live {
    block: NonNull<u8>,
    layout: Layout,
    fill: u8,
}

impl Live {
    fn new(block: NonNull<u8>, layout: Layout, fill: u8) -> Self {
        assert_eq!(block.addr().get() % layout.align(), 0);
        // SAFETY: the block has `layout.size()` bytes.
        unsafe { block.write_bytes(fill, layout.size()) };
        Self { block, layout, fill }
    }
    fn check(&self) {
        for i in (0..self.layout.size()).step_by(if cfg!(miri) { 61 } else { 1 }) {
            // SAFETY: the block is in use, and `new` filled it.
            assert_eq!(unsafe { self.block.add(i).read() }, self.fill, "byte {i} was overwritten");
        }
    }
    fn free<A: BlockAllocator>(self, to: &A) {
        self.check();
        // SAFETY: the block is from the allocator `to`, with this layout.
        unsafe { to.deallocate(self.block, self.layout) };
    }
}

fn random_layout(random: &mut Random) -> Layout {
    let bytes = match random.below(10) {
        0 => 0,
        1 => random.below(if cfg!(miri) { 36_000 } else { 80_000 }),
        2 | 3 => random.below(4_000),
        _ => random.below(200),
    };
    let most = if random.below(8) == 0 { 10 } else { 5 };
    layout(bytes, 1 << random.below(most))
}

fn random_program<S: Source>(pool: &mut Multipool<S>, seed: u64) {
    let mut random = Random::new(seed);
    let mut live: Vec<Live> = Vec::new();
    for step in 0..if cfg!(miri) { 150 } else { 6_000 } {
        match random.below(100) {
            0 => {
                live.clear();
                pool.reset();
            }
            1 => {
                live.clear();
                pool.release();
            }
            2..5 => pool.trim(random.below(3) * 4096),
            5..50 => {
                if !live.is_empty() {
                    live.swap_remove(random.below(live.len())).free(pool);
                }
            }
            50..55 => {
                if let Some(at) = live.len().checked_sub(1).map(|n| random.below(n + 1)) {
                    let of = &mut live[at];
                    let to = layout(random.below(of.layout.size() * 2 + 1), of.layout.align());
                    of.check();
                    // SAFETY: the block is in use, with this layout.
                    if of.layout.size() != 0 && unsafe { pool.try_expand(of.block, of.layout, to) }
                    {
                        *of = Live::new(of.block, to, of.fill);
                    }
                }
            }
            _ => {
                let layout = random_layout(&mut random);
                if let Some(block) = pool.try_allocate(layout) {
                    live.push(Live::new(block, layout, step as u8));
                }
            }
        }
        if step % if cfg!(miri) { 50 } else { 500 } == 0 {
            let in_memory = live.iter().filter(|l| l.layout.size() != 0);
            assert_eq!(pool.statistics().blocks_live, in_memory.clone().count());
            for l in in_memory {
                l.check();
                assert_eq!(pool.classify(l.block.as_ptr()), Validity::Valid);
                // SAFETY: the address is within the block.
                let inside = unsafe { l.block.as_ptr().add(l.layout.size() - 1) };
                assert!(pool.owns(inside));
                assert!(l.layout.size() == 1 || pool.classify(inside) == Validity::Invalid);
            }
            let s = pool.statistics();
            assert!(s.bytes_live + s.bytes_idle <= s.bytes_taken, "{s}");
        }
    }
    for l in live {
        l.free(pool);
    }
    assert_eq!(pool.statistics().blocks_live, 0);
}

#[test]
fn random_operations_read_the_bytes_that_they_wrote() {
    for seed in 0..if cfg!(miri) { 1 } else { 8 } {
        let books = Flaky::new();
        let mut pool = Multipool::new_in(books.clone());
        random_program(&mut pool, seed);
        pool.trim(0);
        drop(pool);
        assert_eq!(books.taken(), 0);
    }
}

#[test]
fn with_a_growth_rule_and_a_limit_random_operations_read_the_bytes_that_they_wrote() {
    for seed in 0..if cfg!(miri) { 1 } else { 8 } {
        let growth = Growth::linear(600, 100).limit(20_000);
        random_program(&mut Multipool::with_growth_in(growth, Flaky::new()), seed);
    }
}

#[test]
fn random_operations_read_the_bytes_that_they_wrote_in_a_multipool_over_another() {
    let books = Flaky::new();
    let below = Multipool::new_in(books.clone());
    random_program(&mut Multipool::new_in(&below), 7);
    assert_eq!(below.statistics().blocks_live, 0);
    random_program(&mut Multipool::new_in(AsSource(below)), 7);
}

#[test]
fn a_new_multipool_allocates_no_memory_and_is_small() {
    static FRESH: std::sync::Mutex<Multipool> = std::sync::Mutex::new(Multipool::new());
    assert_eq!(FRESH.lock().unwrap().statistics().bytes_taken, 0);
    assert!(size_of::<Multipool>() < 800, "{}", size_of::<Multipool>());
}

#[test]
fn the_first_blocks_of_many_sizes_share_a_few_slabs() {
    let books = Flaky::new();
    let pool = Multipool::new_in(books.clone());
    for bytes in (8..=400).step_by(16) {
        pool.allocate(layout(bytes, 8));
    }
    assert!(books.taken() < 32 << 10, "{}", books.taken());
    assert!(books.calls() < 12, "{}", books.calls());
}

#[test]
fn the_block_that_was_freed_last_is_allocated_first() {
    let pool = Multipool::new();
    let of = layout(40, 8);
    let (a, b) = (pool.allocate(of), pool.allocate(of));
    // SAFETY: the blocks are from this multipool.
    unsafe {
        pool.deallocate(a, of);
        pool.deallocate(b, of);
    }
    assert_eq!(pool.allocate(of), b);
    assert_eq!(pool.allocate(of), a);
}

#[test]
fn a_block_of_0_bytes_uses_no_memory_of_the_source() {
    let pool = Multipool::new_in(mallard::Null);
    let of = layout(0, 32);
    let block = pool.try_allocate(of).unwrap();
    assert_eq!(block.addr().get() % 32, 0);
    // SAFETY: the block is from this multipool.
    unsafe { pool.deallocate(block, of) };
    assert!(pool.try_allocate(layout(1, 1)).is_none());
    assert!(pool.try_allocate(layout(isize::MAX as usize - 63, 64)).is_none());
}

#[test]
fn an_allocation_that_fails_changes_nothing() {
    for sizes in [[24, 40, 1000], [33_000, 16_000, 8], [200, 32_768, 3000]] {
        for successes in 0.. {
            let books = Flaky::new();
            let pool = Multipool::new_in(books.clone());
            books.fail_after(successes);
            let mut refused = 0;
            for bytes in sizes {
                let before = pool.statistics();
                if pool.try_allocate(layout(bytes, 8)).is_none() {
                    refused += 1;
                    let after = pool.statistics();
                    assert_eq!(before.blocks_live, after.blocks_live);
                    books.recover();
                    assert!(pool.try_allocate(layout(bytes, 8)).is_some());
                    books.fail_after(0);
                }
            }
            if refused == 0 {
                break;
            }
        }
    }
}

#[test]
fn trim_returns_idle_memory_to_the_source() {
    let books = Flaky::new();
    let mut pool = Multipool::new_in(books.clone());
    let of = layout(48, 16);
    let count = if cfg!(miri) { 400 } else { 40_000 };
    let blocks: Vec<_> = (0..count).map(|i| Live::new(pool.allocate(of), of, i as u8)).collect();
    let most = books.taken();
    let mut kept = Vec::new();
    for (i, block) in blocks.into_iter().enumerate() {
        if i < 10 || i == count / 2 {
            kept.push(block);
        } else {
            block.free(&pool);
        }
    }
    pool.trim(0);
    assert!(books.taken() < most);
    kept.iter().for_each(Live::check);
    for i in 0..count {
        kept.push(Live::new(pool.allocate(of), of, i as u8));
    }
    kept.into_iter().for_each(|block| block.free(&pool));
    pool.trim(usize::MAX);
    let with_all = pool.statistics();
    pool.trim(0);
    assert_eq!(pool.statistics().chunks, 0);
    // `trim` keeps no slabs (the pages of small blocks), and under Miri the multipool has only
    // slabs.
    assert!(cfg!(miri) || with_all.bytes_taken > pool.statistics().bytes_taken);
}

#[test]
fn reset_keeps_the_memory_for_later_blocks() {
    let books = Flaky::new();
    let mut pool = Multipool::new_in(books.clone());
    let fill = |pool: &Multipool<Flaky>| {
        for i in 0..if cfg!(miri) { 300 } else { 5000 } {
            let of = layout(8 + i % 300, 1);
            Live::new(pool.allocate(of), of, i as u8);
        }
    };
    fill(&pool);
    let calls = books.calls();
    pool.reset();
    assert_eq!(pool.statistics().blocks_live, 0);
    fill(&pool);
    assert_eq!(books.calls(), calls);
}

#[test]
fn a_multipool_with_blocks_in_use_may_move_to_another_thread() {
    let pool = Multipool::new();
    let of = layout(50_000, 8);
    let large = Live::new(pool.allocate(of), of, 3);
    let moved = Box::new(pool);
    let another = Live::new(moved.allocate(of), of, 4);
    large.free(&*moved);
    another.free(&*moved);
    std::thread::spawn(move || moved.allocate(layout(10, 1)).addr()).join().unwrap();
}

/// A source that allocates from the multipool it serves.
struct CallsBack(std::cell::OnceCell<std::rc::Weak<Multipool<CallsBack>>>);

// SAFETY: every call is passed to the heap, which fulfils the contract of `Source`.
unsafe impl Source for CallsBack {
    fn try_take(&self, of: Layout) -> Option<mallard::Chunk> {
        if let Some(above) = self.0.get().and_then(std::rc::Weak::upgrade) {
            thread_local!(static DEPTH: std::cell::Cell<usize> = const { std::cell::Cell::new(0) });
            if DEPTH.get() < 3 {
                DEPTH.set(DEPTH.get() + 1);
                let bytes = layout(64, 8);
                Live::new(above.allocate(bytes), bytes, 1);
                DEPTH.set(DEPTH.get() - 1);
            }
        }
        mallard::DefaultHeap.try_take(of)
    }
    unsafe fn give(&self, chunk: mallard::Chunk) {
        // SAFETY: the chunk is from the heap.
        unsafe { mallard::DefaultHeap.give(chunk) }
    }
}

#[test]
fn a_source_may_call_the_multipool_that_calls_it() {
    for growth in [None, Some(Growth::fixed(1024))] {
        let source = CallsBack(Default::default());
        let pool = std::rc::Rc::new(match growth {
            None => Multipool::new_in(source),
            Some(growth) => Multipool::with_growth_in(growth, source),
        });
        pool.source().0.set(std::rc::Rc::downgrade(&pool)).unwrap();
        let of = layout(64, 8);
        let blocks: Vec<_> = (0..500).map(|i| Live::new(pool.allocate(of), of, i as u8)).collect();
        blocks.into_iter().for_each(|block| block.free(&*pool));
    }
}
