//! Keeps the threads of a replay from running far ahead of each other.
//!
//! A recording does not show the queues and barriers of the program. Without them, a thread that
//! only allocates would run ahead of the thread that frees, and the replay would have more blocks
//! in use than the program. So the recording is divided into steps. A thread begins a step only
//! when all other threads have reached the end of the step before the previous one.
//!
//! A wait costs time that the program did not spend, so steps are long if blocks are freed by the
//! threads that allocated them. The length of a step is counted in bytes: a byte that another
//! thread frees counts in full, and an allocated byte as an eighth.

use super::emitter::Emitter;

/// The minimum length of a step is the peak of the bytes in use, divided by this number.
const PEAK_PART: u64 = 16;
/// This many allocated bytes count as one byte that another thread frees.
const ALLOCATED_PART: u64 = 8;

/// Divides a recording into steps.
#[derive(Default)]
pub(super) struct Lead {
    /// The minimum length of a step, in counted bytes.
    step_bytes: u64,
    /// The index of the current step. `bytes` are the bytes counted in it.
    step: u64,
    bytes: u64,
    /// For each thread, the last step in which it has waited.
    waited: Vec<u64>,
    /// Positions of all threads at the end of the previous step. `older` has those of the step
    /// before.
    last: Vec<u64>,
    older: Vec<u64>,
    /// The threads with ops in the step before the previous one, with their positions at the end of
    /// that step.
    before: Vec<(usize, u64)>,
}

impl Lead {
    /// Makes steps of at least `step_bytes` counted bytes.
    pub fn new(step_bytes: u64) -> Lead {
        Lead { step_bytes, ..Lead::default() }
    }

    /// Counts the bytes of an allocation. This may end the current step.
    #[inline]
    pub fn allocated(&mut self, bytes: u64, peak: u64, emitter: &Emitter) {
        self.count(bytes / ALLOCATED_PART, peak, emitter);
    }

    /// Counts the bytes of a block that another thread than the allocating thread frees. This may
    /// end the current step.
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

    /// Makes a thread wait for the other threads before its first op in a step.
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
