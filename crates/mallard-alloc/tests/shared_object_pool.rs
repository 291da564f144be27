//! Tests of object pools in the modes `sync::LockFree` and `sync::ThreadCached`.
#![cfg(all(feature = "std", target_has_atomic = "64", not(loom)))]

use mallard::sync::{self, Growing, Shared};
use mallard::{handles, Chunk, DefaultHeap, Growth, ObjectPool, Source};
use std::alloc::Layout;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc;
use std::thread;

const fn steps(native: usize, miri: usize) -> usize {
    if cfg!(miri) {
        miri
    } else {
        native
    }
}

/// Counts the values that are alive.
struct Counted<'c>(&'c AtomicIsize, usize);

impl<'c> Counted<'c> {
    fn new(live: &'c AtomicIsize, value: usize) -> Self {
        live.fetch_add(1, SeqCst);
        Self(live, value)
    }
}
impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

/// Makes a pool with room for `count` objects.
trait Make: Shared + 'static {
    fn pool<T>(count: usize) -> ObjectPool<T, Self>
    where
        Self: Sized;
}
impl Make for sync::LockFree {
    fn pool<T>(count: usize) -> ObjectPool<T, Self> {
        ObjectPool::fixed(count)
    }
}
impl Make for sync::ThreadCached {
    fn pool<T>(_: usize) -> ObjectPool<T, Self> {
        ObjectPool::with_mode()
    }
}

fn each_object_in_a_shared_pool_is_dropped_once<M: Make>() {
    let live = AtomicIsize::new(0);
    let mut pool: ObjectPool<Counted, M> = M::pool(3 * steps(10_000, 60) + 200);
    let (send, receive) = mpsc::channel::<handles::Box<'_, Counted, M>>();
    let kept = AtomicUsize::new(0);
    thread::scope(|s| {
        for t in 0..3 {
            let (pool, send, live, kept) = (&pool, send.clone(), &live, &kept);
            s.spawn(move || {
                for i in 0..steps(10_000, 60) {
                    let object = pool.make(Counted::new(live, i));
                    match i % 7 {
                        t if t < 3 => send.send(object).unwrap(),
                        3 if t == 0 => {
                            kept.fetch_add(1, SeqCst);
                            std::mem::forget(object);
                        }
                        4 => assert_eq!(handles::Box::into_inner(object).1, i),
                        _ => drop(object),
                    }
                }
            });
        }
        drop(send);
        s.spawn(move || receive.into_iter().for_each(drop));
    });
    assert_eq!(live.load(SeqCst) as usize, kept.load(SeqCst));
    assert_eq!(pool.len(), kept.load(SeqCst));
    assert_eq!(pool.iter_mut().count(), pool.len());
    pool.clear();
    assert_eq!(live.load(SeqCst), 0);
    for i in 0..100 {
        std::mem::forget(pool.make(Counted::new(&live, i)));
    }
    drop(pool);
    assert_eq!(live.load(SeqCst), 0);
}

fn shared_pools_hold_objects_of_any_size_and_alignment<M: Make>() {
    #[repr(align(256))]
    #[derive(PartialEq, Debug)]
    struct Aligned(u8);
    fn try_it<T: PartialEq + std::fmt::Debug + Send, M: Make>(make: impl Fn(usize) -> T) {
        let count = steps(3000, 40);
        let mut pool: ObjectPool<T, M> = M::pool(count);
        let boxes: Vec<_> = (0..count).map(|i| pool.make(make(i))).collect();
        for (i, object) in boxes.iter().enumerate() {
            assert_eq!((&raw const **object).addr() % align_of::<T>(), 0);
            assert_eq!(**object, make(i));
        }
        drop(boxes);
        assert!(pool.is_empty());
        pool.trim(0);
        assert_eq!(pool.statistics().chunks, 0);
    }
    try_it::<Aligned, M>(|i| Aligned(i as u8));
    if !cfg!(miri) {
        try_it::<(), M>(|_| ());
        try_it::<u8, M>(|i| i as u8);
        try_it::<[u8; 3], M>(|i| [i as u8; 3]);
        try_it::<[u64; 300], M>(|i| [i as u64; 300]);
        try_it::<[u64; 3000], M>(|i| [i as u64; 3000]);
    }
}

/// A source that counts its chunks, and panics when the test requests it.
struct Moody(AtomicBool, AtomicIsize);

// SAFETY: every call is passed to the heap, which fulfils the contract of `Source`.
unsafe impl Source for &Moody {
    fn try_take(&self, layout: Layout) -> Option<Chunk> {
        assert!(!self.0.load(SeqCst), "the source panics");
        self.1.fetch_add(1, SeqCst);
        DefaultHeap.try_take(layout)
    }
    unsafe fn give(&self, chunk: Chunk) {
        self.1.fetch_sub(1, SeqCst);
        // SAFETY: the chunk is from the heap.
        unsafe { DefaultHeap.give(chunk) }
    }
}

fn a_source_that_panics_spoils_nothing<M: Shared + Growing>() {
    for calls in 0..4 {
        let source = Moody(AtomicBool::new(false), AtomicIsize::new(0));
        let growth = Growth::fixed(65536);
        let pool: ObjectPool<[u64; 32], M, _> = ObjectPool::with_growth_in(growth, &source);
        let mut boxes = Vec::new();
        while source.1.load(SeqCst) < calls {
            boxes.push(pool.make([1; 32]));
        }
        source.0.store(true, SeqCst);
        let fails = AssertUnwindSafe(|| {
            let mut more = Vec::new();
            loop {
                more.push(pool.make([2; 32]));
            }
        });
        assert!(catch_unwind(fails).is_err());
        source.0.store(false, SeqCst);
        let live = boxes.len();
        assert_eq!(pool.len(), live);
        boxes.extend((0..1000).map(|_| pool.make([3; 32])));
        assert_eq!(pool.len(), live + 1000);
        drop(boxes);
        drop(pool);
        assert_eq!(source.1.load(SeqCst), 0);
    }
}

fn a_constructor_that_panics_leaks_no_slot<M: Shared>() {
    let pool: ObjectPool<String, M> = ObjectPool::fixed(1);
    for _ in 0..3 {
        let fails = AssertUnwindSafe(|| pool.make_with(|| panic!("the constructor panics")));
        assert!(catch_unwind(fails).is_err());
        assert!(pool.try_make("fits".into()).is_ok());
    }
    let only = pool.make("one".into());
    assert_eq!(pool.try_make("two".into()).unwrap_err().into_inner(), "two");
    drop(only);
}

macro_rules! tests_of {
    ($name:ident, $mode:ty) => {
        mod $name {
            use super::*;
            #[test]
            fn each_object_in_a_shared_pool_is_dropped_once() {
                super::each_object_in_a_shared_pool_is_dropped_once::<$mode>();
            }
            #[test]
            fn shared_pools_hold_objects_of_any_size_and_alignment() {
                super::shared_pools_hold_objects_of_any_size_and_alignment::<$mode>();
            }
            #[test]
            fn a_constructor_that_panics_leaks_no_slot() {
                super::a_constructor_that_panics_leaks_no_slot::<$mode>();
            }
        }
    };
}
tests_of!(lock_free, sync::LockFree);
tests_of!(thread_cached, sync::ThreadCached);

#[test]
#[cfg_attr(miri, ignore)] // takes too long under Miri, because of many chunks
fn a_growing_pool_stays_usable_after_its_source_panics() {
    a_source_that_panics_spoils_nothing::<sync::ThreadCached>();
    a_source_that_panics_spoils_nothing::<sync::Mutex>();
}

#[test]
fn a_lock_free_pool_stays_usable_after_its_source_panics() {
    let source = Moody(AtomicBool::new(true), AtomicIsize::new(0));
    let pool: ObjectPool<u64, sync::LockFree, _> = ObjectPool::fixed_in(100, &source);
    assert!(catch_unwind(AssertUnwindSafe(|| pool.make(1))).is_err());
    source.0.store(false, SeqCst);
    let all: Vec<_> = (0..100).map(|i| pool.make(i)).collect();
    source.0.store(true, SeqCst);
    assert!(pool.try_make(7).is_err(), "a full pool does not call the source");
    drop(all);
    drop(pool);
    assert_eq!(source.1.load(SeqCst), 0);
}

#[test]
fn a_static_pool_serves_threads_that_outlive_its_boxes() {
    static POOL: ObjectPool<String, sync::ThreadCached> = ObjectPool::with_mode();
    let threads: Vec<_> = (0..3)
        .map(|i| thread::spawn(move || POOL.make(i.to_string())))
        .map(|thread| thread.join().unwrap())
        .collect();
    let read: Vec<_> = threads.iter().map(|s| s.as_str()).collect();
    assert_eq!(read, ["0", "1", "2"]);
}
