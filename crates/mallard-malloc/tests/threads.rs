//! Tests threads that start and exit, and threads that free blocks of other threads.

use mallard_malloc::Mallard;
use std::cell::RefCell;
use std::thread;

#[global_allocator]
static A: Mallard = Mallard;

#[cfg(mallard_engine)]
#[test]
fn blocks_that_other_threads_free_are_reused() {
    use mallard_malloc::statistics;
    use std::sync::mpsc;
    let (to_others, from_us) = mpsc::sync_channel::<Vec<Box<[u8; 200]>>>(4);
    let freeing = thread::spawn(move || from_us.iter().map(|batch| batch.len()).sum::<usize>());
    let mut taken_early = 0;
    for round in 0..2000 {
        to_others.send((0..100).map(|i| Box::new([i; 200])).collect()).unwrap();
        if round == 200 {
            taken_early = statistics().bytes_taken;
        }
    }
    drop(to_others);
    assert_eq!(freeing.join().unwrap(), 200_000);
    let taken = statistics().bytes_taken;
    assert!(taken < taken_early + (16 << 20), "{taken_early} became {taken}");
}

#[test]
fn thread_local_destructors_may_allocate_and_free() {
    struct Last(Vec<String>);
    impl Drop for Last {
        fn drop(&mut self) {
            let more: Vec<String> = self.0.iter().map(|s| s.repeat(2)).collect();
            assert_eq!(more.len(), 50);
        }
    }
    thread_local!(static LAST: RefCell<Option<Last>> = const { RefCell::new(None) });
    for _ in 0..20 {
        thread::spawn(|| {
            let lines = (0..50).map(|i| format!("number {i}")).collect();
            LAST.with(|last| *last.borrow_mut() = Some(Last(lines)));
        })
        .join()
        .unwrap();
    }
}

#[test]
fn blocks_of_an_exited_thread_stay_valid_and_can_be_freed_by_others() {
    let made: Vec<Vec<u64>> =
        (0..50).map(|i| thread::spawn(move || vec![i; 1000])).map(|t| t.join().unwrap()).collect();
    for (i, v) in made.into_iter().enumerate() {
        assert!(v.iter().all(|&x| x == i as u64));
    }
}

#[test]
fn the_child_of_a_fork_with_threads_can_allocate() {
    unsafe extern "C" {
        fn fork() -> i32;
        fn waitpid(child: i32, status: *mut i32, options: i32) -> i32;
        fn _exit(status: i32) -> !;
    }
    let stop = std::sync::atomic::AtomicBool::new(false);
    thread::scope(|s| {
        for _ in 0..3 {
            s.spawn(|| {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    let v: Vec<Vec<u8>> = (1..200).map(|i| vec![1; i * 17]).collect();
                    assert_eq!(v.len(), 199);
                }
            });
        }
        for _ in 0..50 {
            // SAFETY: the child allocates, which Mallard allows, and calls _exit.
            unsafe {
                let child = fork();
                if child == 0 {
                    let v: Vec<String> = (0..1000).map(|i| i.to_string()).collect();
                    let sum = thread::spawn(|| vec![1u8; 100_000].len()).join().unwrap_or(0);
                    _exit(i32::from(v.len() + sum != 101_000));
                }
                let mut status = -1;
                assert_eq!(waitpid(child, &mut status, 0), child);
                assert_eq!(status, 0);
            }
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}
