//! Tests the cores of `sync::ThreadCached` and `sync::LockFree` pools, without the pool types
//! around them.
#![cfg(all(feature = "std", target_has_atomic = "64", not(loom)))]

mod pool;
mod thread_caches;

use mallard::sync::{Core, SlotShape};
use mallard::{Growth, Validity};
use pool::*;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{mpsc, Mutex};
use std::thread;

fn random_operations_have_the_same_results_as_a_model<C: Core<Books>>(
    grows: bool,
    shape: SlotShape,
    seed: u64,
) {
    let books = Books::default();
    let mut pool = with_room::<C>(grows, shape, steps(20_000, 200), &books);
    assert_eq!(books.bytes(), 0, "a new core takes no memory");
    let mut random = Random(seed | 1);
    let mut live: Vec<Block> = Vec::new();
    for step in 0..steps(60_000, 150) {
        let free = random.below(100) >= if step / steps(500, 40) % 2 == 0 { 60 } else { 40 };
        match random.below(steps(2000, 50)) {
            0 => {
                pool.0.trim(random.below(2) << 17);
                assert_eq!(pool.live(), live.len());
            }
            1 => {
                pool.0.reset();
                live.clear();
                assert_eq!(pool.live(), 0);
            }
            2 if random.below(3) == 0 => {
                pool.0.release();
                live.clear();
                assert_eq!(books.bytes(), 0);
                assert_eq!(pool.0.statistics().bytes_taken, 0);
            }
            3..8 => {
                assert_eq!(pool.blocks(), live.iter().copied().collect());
                assert_eq!(pool.0.statistics().bytes_taken as isize, books.bytes());
                if let Some(block) = live.first() {
                    let p = block.0.as_ptr();
                    assert_eq!(pool.0.classify(p), Validity::Valid);
                    let inside = p.wrapping_add(shape.stride / 2);
                    assert_eq!(pool.0.classify(inside), Validity::Invalid);
                    pool.free(*block, 7);
                    assert_eq!(pool.0.classify(p), Validity::Invalid);
                    live.remove(0);
                }
                assert_eq!(pool.0.classify(&raw const step as *const u8), Validity::Miss);
            }
            _ if free && !live.is_empty() => {
                let block = live.swap_remove(random.below(live.len()));
                pool.free(block, 7);
            }
            _ => live.push(pool.make(7).unwrap()),
        }
    }
    assert_eq!(pool.live(), live.len());
    drop(pool);
    assert_eq!(books.bytes(), 0);
}

fn recovers_after_the_source_refused<C: Core<Books>>() {
    let books = Books::default();
    let pool = Pool::<C>::new(WORD, Growth::fixed(WORD.chunk), &books);
    let mut live = Vec::new();
    for successes in 0..4 {
        books.fail_after(successes + 1);
        while let Some(block) = pool.make(1) {
            live.push(block);
        }
        assert!(pool.make(1).is_none());
        assert_eq!(pool.live(), live.len());
    }
    assert!(!live.is_empty());
    while let Some(block) = live.pop() {
        pool.free(block, 1);
    }
    let again: Vec<_> = (0..100).map(|_| pool.make(1).unwrap()).collect();
    again.into_iter().for_each(|block| pool.free(block, 1));
    assert_eq!(pool.live(), 0);
}

fn a_pool_with_a_maximum_holds_exactly_that_many_blocks<C: Core<Books>>() {
    for most in [1, 3, 100, 1000, 5000].into_iter().take(steps(5, 3)) {
        let books = Books::default();
        let shape = SlotShape { most, ..WORD };
        let mut pool = Pool::<C>::new(shape, Growth::none(C::bytes_for(shape, most)), &books);
        for _ in 0..2 {
            let live: Vec<_> = core::iter::from_fn(|| pool.make(1)).collect();
            assert_eq!(live.len(), most);
            live.iter().for_each(|&block| pool.free(block, 1));
            let live: Vec<_> = core::iter::from_fn(|| pool.make(1)).collect();
            assert_eq!(live.len(), most);
            live.iter().for_each(|&block| pool.free(block, 1));
            pool.0.trim(0);
        }
    }
}

fn a_thread_can_free_blocks_of_another_thread<C: Core<Books> + Sync>(
    grows: bool,
    producers: usize,
    consumers: usize,
) {
    let books = Books::default();
    let pool = with_room::<C>(grows, WORD, steps(2000, 600), &books);
    let each = steps(100_000, 120);
    let (send, receive) = mpsc::sync_channel::<Block>(512);
    let receive = Mutex::new(receive);
    thread::scope(|s| {
        for _ in 0..producers {
            let send = send.clone();
            let pool = &pool;
            s.spawn(move || {
                for _ in 0..each {
                    send.send(pool.make(9).unwrap()).unwrap();
                }
            });
        }
        drop(send);
        for _ in 0..consumers {
            s.spawn(|| loop {
                let block = receive.lock().unwrap().recv();
                let Ok(block) = block else { return };
                pool.free(block, 9);
            });
        }
    });
    assert_eq!(pool.live(), 0);
    // At any time, the live blocks would fit into the caches of a few threads.
    assert!(pool.0.statistics().bytes_taken < 1 << 20, "{}", pool.0.statistics());
    drop(pool);
    assert_eq!(books.bytes(), 0);
}

/// Starts threads that exit again. Each thread puts blocks into shared bins, and frees the blocks
/// that it finds there.
fn short_lived_threads_can_free_blocks_of_each_other<C: Core<Books> + Sync>(
    grows: bool,
    threads: usize,
    generations: usize,
) {
    let books = Books::default();
    let mut pool = with_room::<C>(grows, WORD, steps(5000, 100), &books);
    let bins: Vec<Mutex<Option<(Block, usize)>>> =
        (0..steps(4096, 32)).map(|_| Mutex::new(None)).collect();
    for generation in 0..generations {
        thread::scope(|s| {
            for t in 0..threads {
                let (pool, bins) = (&pool, &bins);
                s.spawn(move || {
                    let mut random = Random(((generation * 64 + t) as u64 + 1) * 0x9e37_79b9);
                    for i in 0..steps(50_000, 50) {
                        let mark = t << 32 | i;
                        let block = pool.make(mark).unwrap();
                        let bin = &bins[random.below(bins.len())];
                        let old = bin.lock().unwrap().replace((block, mark));
                        if let Some((block, mark)) = old {
                            pool.free(block, mark);
                        }
                    }
                });
            }
        });
        let live: BTreeSet<_> =
            bins.iter().filter_map(|b| Some(b.lock().unwrap().as_ref()?.0)).collect();
        assert_eq!(pool.live(), live.len());
        assert_eq!(pool.blocks(), live);
        match generation % 3 {
            0 => pool.0.trim(0),
            1 if generation % 2 == 0 => {
                bins.iter().for_each(|b| *b.lock().unwrap() = None);
                pool.0.reset();
            }
            1 => {
                bins.iter().for_each(|b| *b.lock().unwrap() = None);
                pool.0.release();
            }
            _ => {}
        }
    }
    for bin in bins {
        if let Some((block, mark)) = bin.into_inner().unwrap() {
            pool.free(block, mark);
        }
    }
    assert_eq!(pool.live(), 0);
    pool.0.trim(0);
    drop(pool);
    assert_eq!(books.bytes(), 0);
}

fn statistics_and_classify_may_run_concurrently_with_other_calls<C: Core<Books> + Sync>(
    grows: bool,
) {
    let books = Books::default();
    let pool = with_room::<C>(grows, WORD, steps(5000, 200), &books);
    let done = AtomicBool::new(false);
    thread::scope(|s| {
        let workers: Vec<_> = (0..2)
            .map(|_| {
                s.spawn(|| {
                    for round in 0..steps(300, 2) {
                        let live: Vec<_> =
                            (0..steps(1 + round * 7, 40)).map(|_| pool.make(3).unwrap()).collect();
                        live.into_iter().for_each(|block| pool.free(block, 3));
                    }
                })
            })
            .collect();
        s.spawn(|| {
            let own = pool.make(4).unwrap();
            while !done.load(SeqCst) {
                let s = pool.0.statistics();
                assert!(s.bytes_taken as isize <= books.bytes() || cfg!(miri));
                let _ = pool.0.classify(own.0.as_ptr());
            }
            pool.free(own, 4);
        });
        workers.into_iter().for_each(|w| w.join().unwrap());
        done.store(true, SeqCst);
    });
    assert_eq!(pool.live(), 0);
}

macro_rules! tests_of {
    ($name:ident, $core:ty, $grows:expr) => {
        mod $name {
            use super::*;
            #[test]
            fn random_operations_have_the_same_results_as_a_model() {
                for (i, (stride, align)) in
                    [(16, 8), (8, 8), (24, 8), (40, 8), (64, 64), (208, 16), (512, 512)]
                        .into_iter()
                        .enumerate()
                {
                    super::random_operations_have_the_same_results_as_a_model::<$core>(
                        $grows,
                        shape(stride, align, usize::MAX),
                        i as u64 * 77,
                    );
                }
            }
            #[test]
            fn a_pool_with_a_maximum_holds_exactly_that_many_blocks() {
                super::a_pool_with_a_maximum_holds_exactly_that_many_blocks::<$core>();
            }
            #[test]
            fn a_thread_can_free_blocks_of_another_thread() {
                super::a_thread_can_free_blocks_of_another_thread::<$core>($grows, 1, 1);
                if cfg!(miri) {
                    return;
                }
                super::a_thread_can_free_blocks_of_another_thread::<$core>($grows, 2, 1);
                super::a_thread_can_free_blocks_of_another_thread::<$core>($grows, 1, 3);
            }
            #[test]
            fn short_lived_threads_can_free_blocks_of_each_other() {
                super::short_lived_threads_can_free_blocks_of_each_other::<$core>($grows, 2, 3);
                super::short_lived_threads_can_free_blocks_of_each_other::<$core>(
                    $grows,
                    4,
                    steps(8, 1),
                );
            }
            #[test]
            fn statistics_and_classify_may_run_concurrently_with_other_calls() {
                super::statistics_and_classify_may_run_concurrently_with_other_calls::<$core>(
                    $grows,
                );
            }
        }
    };
}
tests_of!(thread_cached, Cached, true);
tests_of!(lock_free, LockFree, false);

#[test]
fn a_growing_pool_works_again_after_the_source_has_failed() {
    recovers_after_the_source_refused::<Cached>();
}

#[test]
fn a_lock_free_pool_allocates_all_its_memory_in_one_request_or_none() {
    let books = Books::default();
    let count = steps(5000, 100);
    let pool = with_room::<LockFree>(false, WORD, count, &books);
    books.fail_after(1);
    assert!(pool.make(1).is_none(), "the source refuses");
    assert_eq!(books.bytes(), 0);
    books.fail_after(2);
    let live: Vec<_> = core::iter::from_fn(|| pool.make(1)).collect();
    assert_eq!(live.len(), count, "one call of the source, for all blocks");
    live.iter().for_each(|&block| pool.free(block, 1));
    assert_eq!(pool.live(), 0);
}

#[test]
fn simultaneous_first_allocations_from_a_lock_free_pool_all_succeed() {
    for _ in 0..steps(200, 5) {
        let books = Books::default();
        let pool = &with_room::<LockFree>(false, WORD, 4, &books);
        thread::scope(|s| {
            (0..4).for_each(|_| {
                s.spawn(|| pool.make(1).unwrap());
            });
        });
        assert_eq!(pool.live(), 4);
    }
}
