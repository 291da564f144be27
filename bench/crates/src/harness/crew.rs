//! A group of threads that exist before the clock starts. All of them start a job at the same time.

use super::clock::{process_cpu_ns, wall_ns};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex, PoisonError};
use std::thread::JoinHandle;

/// The time of a job. The wall time goes from the moment when the first thread starts to the moment when
/// the last thread is done. The CPU time is the sum over all threads.
#[derive(Clone, Copy)]
pub struct Spent {
    pub wall_ns: f64,
    pub cpu_ns: f64,
}

/// A function that all threads of the group run. `None` ends the threads.
type Job = Option<*const (dyn Fn(usize) + Sync)>;

struct Shared {
    started: Barrier,
    finished: Barrier,
    job: Mutex<Job>,
    /// The start and end of each thread, as the bits of an f64.
    spans: Vec<[AtomicU64; 2]>,
}

// SAFETY: a job is `Sync`, and stays valid until all threads have passed `finished`, because `run`
// waits there.
unsafe impl Send for Shared {}
// SAFETY: the reasons are the same as for `Send`.
unsafe impl Sync for Shared {}

pub struct Crew {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Crew {
    pub fn new(count: usize) -> Self {
        let shared = Arc::new(Shared {
            started: Barrier::new(count + 1),
            finished: Barrier::new(count + 1),
            job: Mutex::new(None),
            spans: (0..count).map(|_| Default::default()).collect(),
        });
        let threads = (0..count)
            .map(|i| {
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || live(&shared, i))
            })
            .collect();
        let crew = Self { shared, threads };
        crew.run(&|_| {}); // waits until all threads have started
        crew
    }

    pub fn len(&self) -> usize {
        self.threads.len()
    }

    pub fn is_empty(&self) -> bool {
        self.threads.is_empty()
    }

    /// Calls `job(i)` in each thread `i`, at the same time.
    pub fn run(&self, job: &(dyn Fn(usize) + Sync)) -> Spent {
        let job: *const (dyn Fn(usize) + Sync + '_) = job;
        // SAFETY: only the lifetime changes, and the threads no longer use the job when `run`
        // returns.
        let job: *const (dyn Fn(usize) + Sync + 'static) = unsafe { std::mem::transmute(job) };
        *self.shared.job.lock().unwrap_or_else(PoisonError::into_inner) = Some(job);
        let cpu = process_cpu_ns();
        self.shared.started.wait();
        self.shared.finished.wait();
        let cpu_ns = process_cpu_ns() - cpu;
        let time = |end: usize| {
            let load = move |s: &[AtomicU64; 2]| f64::from_bits(s[end].load(Ordering::Relaxed));
            self.shared.spans.iter().map(load)
        };
        let first = time(0).fold(f64::INFINITY, f64::min);
        let last = time(1).fold(0.0, f64::max);
        Spent { wall_ns: last - first, cpu_ns }
    }
}

fn live(shared: &Shared, index: usize) {
    loop {
        shared.started.wait();
        let job = *shared.job.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(job) = job else { return };
        let note = |end: usize| {
            shared.spans[index][end].store(wall_ns().to_bits(), Ordering::Relaxed);
        };
        note(0);
        // SAFETY: `run` waits until every thread has passed `finished`.
        unsafe { (*job)(index) };
        note(1);
        shared.finished.wait();
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        *self.shared.job.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.shared.started.wait();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
