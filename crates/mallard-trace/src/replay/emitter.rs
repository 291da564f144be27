//! Adds ops to the streams of threads, and adds dependencies (edges) between threads.

use super::clocks::Clocks;
use super::format::{op, Op};
use super::streams::Streams;

/// The ops of all threads, and the vector clock of each thread.
pub(super) struct Emitter {
    pub streams: Streams,
    clocks: Clocks,
    /// The number of dependencies between threads so far.
    pub edges: u64,
    /// Number of calls so far.
    pub calls: u64,
}

impl Emitter {
    pub fn new(streams: Streams) -> Self {
        Emitter { streams, clocks: Clocks::default(), edges: 0, calls: 0 }
    }

    /// Adds a thread, which `creator` starts now. The first thread has no creator.
    pub fn add_thread(&mut self, recorded: u64, start_ns: u64, creator: Option<usize>) -> usize {
        let thread = self.streams.threads();
        self.streams.add_thread(recorded, start_ns);
        self.clocks.add_thread();
        if let Some(creator) = creator {
            self.streams.push(creator, Op::new(op::START, 0, thread as u32));
            self.clocks.wait(thread, 0, creator, self.streams.position(creator));
            self.edges += 1;
        }
        thread
    }

    /// Makes a thread wait until another thread has reached a position, unless earlier waits
    /// already guarantee that position.
    ///
    /// In the recorded order, the other thread has already reached the position. So each wait is
    /// for something earlier in this order, and a replay cannot deadlock.
    #[inline]
    pub fn wait_for(&mut self, thread: usize, other: usize, position: u64) {
        debug_assert!(position <= self.streams.position(other));
        if thread != other && !self.clocks.knows(thread, other, position) {
            self.wait(thread, other, position);
        }
    }

    fn wait(&mut self, thread: usize, other: usize, position: u64) {
        self.streams.push(thread, Op::new(op::WAIT, position, other as u32));
        self.streams.publish(other, position);
        self.clocks.wait(thread, self.streams.position(thread), other, position);
        self.edges += 1;
    }

    /// Adds an op that is not a call. Returns the position of the thread after the op.
    pub fn push(&mut self, thread: usize, op: Op) -> u64 {
        self.streams.push(thread, op);
        self.streams.position(thread)
    }

    /// Adds a call. Returns the position of the thread after the call.
    #[inline]
    pub fn call(&mut self, thread: usize, op: Op) -> u64 {
        self.calls += 1;
        self.push(thread, op)
    }
}
