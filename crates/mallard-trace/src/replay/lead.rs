//! Prevents threads of a replay from running far ahead of each other.
//!
//! A recording does not show the queues and barriers of the program. Without them, a thread that
//! only allocates would run ahead of the thread that frees, so the replay would have more blocks in
//! use than the program. Therefore the recording is divided into steps. A thread begins a step only
//! when all other threads have finished the step before the previous one.
//!
//! A wait costs time that the program did not spend, so steps are long if threads free their own
//! blocks. The length of a step is measured in bytes. A byte that another thread frees counts in
//! full, and an allocated byte counts as an eighth.

use super::emitter::Emitter;

/// The divisor of the peak bytes in use that gives the minimum length of a step.
const PEAK_PART: u64 = 16;
/// The number of allocated bytes that count as much as one byte that another thread frees.
const ALLOCATED_PART: u64 = 8;

/// Divides a recording into steps.
#[derive(Default)]
pub(super) struct Lead {
    /// The minimum length of a step, in counted bytes.
    step_bytes: u64,
    /// The index of the current step. `bytes` is the number of bytes counted in this step.
    step: u64,
    bytes: u64,
    /// The last step in which each thread has waited.
    waited: Vec<u64>,
    /// The positions of all threads at the end of the previous step. `older` has their positions at
    /// the end of the step before that.
    last: Vec<u64>,
    older: Vec<u64>,
    /// The threads that have ops in the step before the previous one, with their positions at its
    /// end.
    before: Vec<(usize, u64)>,
}

impl Lead {
    /// Makes steps of at least `step_bytes` counted bytes.
    pub fn new(step_bytes: u64) -> Lead {
        Lead { step_bytes, ..Lead::default() }
    }

    /// Counts the bytes of an allocation. Begins a new step if the current step is long enough.
    #[inline]
    pub fn allocated(&mut self, bytes: u64, peak: u64, emitter: &Emitter) {
        self.count(bytes / ALLOCATED_PART, peak, emitter);
    }

    /// Counts the bytes of a block that is freed by another thread than the allocating thread.
    /// Begins a new step if the current step is long enough.
    #[inline]
    pub fn crossed(&mut self, bytes: u64, peak: u64, emitter: &Emitter) {
        self.count(bytes, peak, emitter);
    }

    #[inline]
    fn count(&mut self, bytes: u64, peak: u64, emitter: &Emitter) {
        self.bytes += bytes;
        if self.bytes >= self.step_bytes.max(peak / PEAK_PART) {
            self.end_step(emitter);
        }
    }

    #[cold]
    fn end_step(&mut self, emitter: &Emitter) {
        self.bytes = 0;
        self.step += 1;
        let threads = emitter.streams.threads();
        let now = (0..threads).map(|thread| emitter.streams.position(thread)).collect();
        let last = std::mem::replace(&mut self.last, now);
        let oldest = std::mem::replace(&mut self.older, last);
        let moved = |&(thread, &position): &(usize, &u64)| {
            position > oldest.get(thread).copied().unwrap_or(0)
        };
        let moved = self.older.iter().enumerate().filter(moved);
        self.before = moved.map(|(thread, &position)| (thread, position)).collect();
    }

    /// Makes a thread wait for other threads, if the thread has not waited in the current step yet.
    #[inline]
    pub fn hold_back(&mut self, thread: usize, emitter: &mut Emitter) {
        if self.waited.len() <= thread {
            self.waited.resize(thread + 1, 0);
        }
        if self.waited[thread] != self.step {
            self.waited[thread] = self.step;
            for &(other, position) in &self.before {
                emitter.wait_for(thread, other, position);
            }
        }
    }
}
