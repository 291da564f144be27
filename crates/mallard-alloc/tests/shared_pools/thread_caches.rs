//! Tests the caches of `sync::ThreadCached` when threads start and exit.

use super::pool::*;
use mallard::sync::{Core, SlotShape};
use mallard::Growth;
use std::sync::{mpsc, Arc, Barrier};
use std::thread;

type CachedPool = Pool<Cached>;

#[test]
fn a_new_thread_reclaims_the_cache_of_an_exited_thread() {
    let books = Books::default();
    let pool = Arc::new(CachedPool::new(WORD, Growth::new(), &books));
    let mut bytes = 0;
    for i in 0..steps(200, 10) {
        let pool = pool.clone();
        thread::spawn(move || {
            let some: Vec<_> = (0..100).map(|_| pool.make(i).unwrap()).collect();
            some.into_iter().for_each(|block| pool.free(block, i));
        })
        .join()
        .unwrap();
        if i == 0 {
            bytes = books.bytes();
        }
        assert_eq!(books.bytes(), bytes);
    }
}

#[test]
fn a_pool_may_be_dropped_before_its_threads_exit() {
    let books = Books::default();
    let barrier = Barrier::new(2);
    let pool = Arc::new(CachedPool::new(WORD, Growth::new(), &books));
    thread::scope(|s| {
        let (theirs, barrier) = (pool.clone(), &barrier);
        s.spawn(move || {
            let block = theirs.make(1).unwrap();
            theirs.free(block, 1);
            drop(theirs);
            barrier.wait();
            barrier.wait();
            // Each thread has a table of its caches. The next pool uses the same table entry as the
            // destroyed pool, but has another id.
            let books = Books::default();
            let next = CachedPool::new(WORD, Growth::new(), &books);
            let block = next.make(2).unwrap();
            next.free(block, 2);
        });
        barrier.wait();
        drop(pool);
        assert_eq!(books.bytes(), 0);
        barrier.wait();
    });
}

#[test]
fn a_thread_may_have_caches_of_any_number_of_pools() {
    let books = Books::default();
    let pools: Vec<_> =
        (0..steps(300, 12)).map(|_| CachedPool::new(WORD, Growth::new(), &books)).collect();
    for round in 0..3 {
        let some: Vec<_> = pools.iter().map(|p| p.make(round).unwrap()).collect();
        pools.iter().zip(some).for_each(|(p, block)| p.free(block, round));
    }
    assert!(pools.iter().all(|p| p.live() == 0 && p.0.statistics().refills == 1));
    drop(pools);
    assert_eq!(books.bytes(), 0);
}

#[test]
fn a_thread_local_destructor_may_allocate_and_free() {
    struct Late(Option<(Arc<CachedPool>, Block)>);
    impl Drop for Late {
        fn drop(&mut self) {
            let Some((pool, block)) = self.0.take() else { return };
            pool.free(block, 5);
            let more: Vec<_> = (0..50).map(|_| pool.make(6).unwrap()).collect();
            more.into_iter().for_each(|block| pool.free(block, 6));
        }
    }
    std::thread_local!(static FIRST: core::cell::RefCell<Late> = const { core::cell::RefCell::new(Late(None)) });
    std::thread_local!(static LAST: core::cell::RefCell<Late> = const { core::cell::RefCell::new(Late(None)) });
    let books = Books::default();
    let pool = Arc::new(CachedPool::new(WORD, Growth::new(), &books));
    let theirs = pool.clone();
    thread::spawn(move || {
        // Thread-local values are destroyed in reverse order. FIRST is registered before the cache,
        // so it is destroyed after the cache. LAST is destroyed before the cache.
        FIRST.with(|_| ());
        let (a, b) = (theirs.make(5).unwrap(), theirs.make(5).unwrap());
        LAST.with(|l| l.borrow_mut().0 = Some((theirs.clone(), a)));
        FIRST.with(|f| f.borrow_mut().0 = Some((theirs.clone(), b)));
    })
    .join()
    .unwrap();
    assert_eq!(pool.live(), 0);
    let pool = Arc::into_inner(pool).unwrap();
    drop(pool);
    assert_eq!(books.bytes(), 0);
}

#[test]
fn a_thread_without_memory_for_a_cache_can_use_the_pool() {
    // The source has memory for one cache only.
    let books = Books::default();
    let pool = CachedPool::new(WORD, Growth::new(), &books);
    let first = pool.make(1).unwrap();
    books.fail_after(1);
    thread::scope(|s| {
        s.spawn(|| {
            let some: Vec<_> = core::iter::from_fn(|| pool.make(2)).collect();
            assert!(some.len() > 100);
            some.into_iter().for_each(|block| pool.free(block, 2));
        });
    });
    pool.free(first, 1);
    assert_eq!(pool.live(), 0);
}

#[test]
fn a_pool_at_its_limit_moves_free_blocks_between_threads() {
    let books = Books::default();
    let shape = SlotShape { most: 200, ..WORD };
    let pool = CachedPool::new(shape, Growth::none(65536), &books);
    let (to, from) = mpsc::channel::<Block>();
    let pool = &pool;
    let barrier = &Barrier::new(2);
    thread::scope(|s| {
        s.spawn(move || {
            // The consumer thread makes its cache, which is empty.
            let own = pool.make(8).unwrap();
            pool.free(own, 8);
            barrier.wait();
            from.into_iter().for_each(|block| pool.free(block, 8));
        });
        barrier.wait();
        for _ in 0..steps(20_000, 100) {
            let block = loop {
                match pool.make(8) {
                    Some(block) => break block,
                    None => thread::yield_now(),
                }
            };
            to.send(block).unwrap();
        }
        drop(to);
    });
    assert_eq!(pool.live(), 0);
}
