//! Tests how threads exchange the free slots of a shared slot map.

#[allow(dead_code)] // this program uses only a part of the module
mod common;

use common::Random;
use mallard::shared_slot_map::Guarded;
use mallard::{Chunk, DefaultHeap, Key32, Key64, SharedSlotMap, Source};
use std::alloc::Layout;
use std::sync::Barrier;
use std::time::{Duration, Instant};

mallard::key_type! {
    /// A key type with few slots, so that all slots are soon in use, and with many generations, so
    /// that no slot retires.
    struct FewKeys(12, 2, wrapping);
}

/// The number of steps of a test, which is smaller under Miri.
const MANY: usize = if cfg!(miri) { 100 } else { 20_000 };
const THREADS: usize = if cfg!(miri) { 3 } else { 8 };

#[test]
fn slots_move_from_a_removing_thread_to_an_inserting_one() {
    let map = SharedSlotMap::<Key64, Box<u64>>::new();
    let (send, receive) = std::sync::mpsc::sync_channel::<Key64>(256);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for i in 0..MANY as u64 * if cfg!(miri) { 2 } else { 4 } {
                send.send(map.insert(Box::new(i))).unwrap();
            }
            drop(send);
        });
        scope.spawn(|| {
            for (i, key) in receive.into_iter().enumerate() {
                assert_eq!(*map.take(key).unwrap(), i as u64);
            }
        });
    });
    assert!(map.is_empty());
    if !cfg!(miri) {
        assert!(map.statistics().bytes_taken < 200_000, "{:?}", map.statistics());
    }
}

#[test]
fn many_short_lived_threads_share_the_free_slots() {
    let map = SharedSlotMap::<Key32, u64>::new();
    for _ in 0..if cfg!(miri) { 2 } else { 10 } {
        std::thread::scope(|scope| {
            // Starts more threads than there are thread numbers.
            for t in 0..if cfg!(miri) { 4 } else { 90 } {
                let map = &map;
                scope.spawn(move || {
                    let keys: Vec<_> = (0..200).map(|i| map.insert(i + t)).collect();
                    keys.iter().for_each(|&key| assert!(map.remove(key)));
                });
            }
        });
    }
    assert!(map.is_empty());
}

#[test]
fn slots_that_a_thread_freed_serve_all_threads() {
    let map = SharedSlotMap::<FewKeys, u64>::new();
    let all = || std::iter::from_fn(|| map.try_insert(1).ok()).collect::<Vec<_>>();
    let mine = all();
    mine.iter().for_each(|&key| assert!(map.remove(key)));
    // Another thread gets all slots except those in the cache of this thread.
    let theirs = std::thread::scope(|scope| scope.spawn(all).join().unwrap());
    assert!(mine.len() == 4095 && theirs.len() >= 4095 - 128, "{}", theirs.len());
    theirs.iter().for_each(|&key| assert!(map.remove(key)));
}

#[test]
fn threads_that_fill_and_empty_a_map_exchange_slots() {
    let map = SharedSlotMap::<FewKeys, u64>::new();
    std::thread::scope(|scope| {
        for t in 0..THREADS as u64 {
            let map = &map;
            scope.spawn(move || {
                let (mut random, mut keys) = (Random::new(t), Vec::new());
                for _ in 0..MANY / 100 {
                    let wanted = random.below(2000);
                    keys.extend((0..wanted).map_while(|_| map.try_insert(t).ok()));
                    let kept = random.below(keys.len() + 1);
                    keys.drain(kept..).for_each(|key| assert_eq!(map.take(key), Some(t)));
                }
                keys.drain(..).for_each(|key| assert_eq!(map.take(key), Some(t)));
            });
        }
    });
    assert!(map.is_empty());
}

/// A source over the heap in which each call takes some time.
struct Slow;

// SAFETY: every call is passed to the heap.
unsafe impl Source for Slow {
    fn try_take(&self, layout: Layout) -> Option<Chunk> {
        std::thread::sleep(Duration::from_millis(100));
        DefaultHeap.try_take(layout)
    }
    unsafe fn give(&self, chunk: Chunk) {
        // SAFETY: the chunk is from the heap.
        unsafe { DefaultHeap.give(chunk) }
    }
}

/// Returns the CPU time of the calling thread.
#[cfg(target_os = "linux")]
fn time_on_processor() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(text.split(' ').next().unwrap().parse().unwrap())
}

#[test]
#[cfg(target_os = "linux")]
#[cfg_attr(miri, ignore)] // Miri has no clock of CPU time
fn the_64th_and_later_threads_sleep_while_one_of_them_grows_the_map() {
    let (numbers_taken, done) = (Barrier::new(64), Barrier::new(64));
    std::thread::scope(|scope| {
        for _ in 0..63 {
            scope.spawn(|| {
                // Assigns this thread its number, which is the same in every map.
                SharedSlotMap::<Key32, u8>::new().insert(1);
                numbers_taken.wait();
                done.wait();
            });
        }
        numbers_taken.wait();
        let map = SharedSlotMap::<Key32, [u64; 4], Guarded, _>::new_in(Slow);
        let times = std::thread::scope(|scope| {
            let threads = [(); 3].map(|()| {
                scope.spawn(|| {
                    let (begin, before) = (Instant::now(), time_on_processor());
                    let keys: Vec<_> = (0..200).map(|i| map.insert([i; 4])).collect();
                    let times = (time_on_processor() - before, begin.elapsed());
                    keys.iter().for_each(|&key| assert!(map.remove(key)));
                    times
                })
            });
            threads.map(|thread| thread.join().unwrap())
        });
        done.wait();
        for (used, waited) in times {
            assert!(used < waited / 30, "{used:?} of {waited:?} on a processor");
        }
    });
}
