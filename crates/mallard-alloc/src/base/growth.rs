//! Growth rules. A rule computes how many bytes an allocator requests from its source at a time (a
//! step). Only slow paths read a `Growth`.

use crate::base::bits::layout;
use crate::base::source::{Chunk, Source};
use core::alloc::Layout;
use core::cell::Cell;

/// A growth rule. The next chunk request has `last * num / den + add` bytes, but at most `max`,
/// where `last` is the size of the previous request.
///
/// ```
/// use mallard::Growth;
/// let doubling = Growth::new(); // 4 KiB, doubling to 1 MiB
/// let slower = Growth { first: 1 << 16, num: 3, den: 2, ..Growth::new() };
/// let linear = Growth::linear(4096, 4096); // 4, 8, 12 KiB, ...
/// let single = Growth::none(1 << 20); // one step, then full
/// let tenths = Growth::custom(|last, _asked| last + last / 10 + 4096).limit(1 << 20);
/// # assert!(single.is_single() && !linear.is_single());
/// ```
///
/// If a block is larger than the next chunk request, the request is just large enough for the
/// block, and later requests do not become larger. `limit` is the maximum number of bytes that the
/// allocator holds. The last chunk request is reduced to what the limit still allows. If the limit
/// is 8 KiB or more, blocks of one size can fill at least nine tenths of the limit. For a pool that
/// threads share, this is so from 16 KiB, and there may be room for one block fewer.
#[derive(Clone, Copy, Debug)]
pub struct Growth {
    /// Bytes of the first step.
    pub first: usize,
    /// The largest step, in bytes.
    pub max: usize,
    /// The factor from one step to the next is `num / den`.
    pub num: usize,
    /// The divisor of the factor from one step to the next. 0 counts as 1.
    pub den: usize,
    /// Bytes added to each step.
    pub add: usize,
    /// The maximum of bytes held at any time.
    pub limit: usize,
    /// A function that returns the size of the next chunk request. The arguments are the size of
    /// the previous one (0 at first), and the size that the allocator needs. If the function panics
    /// although the source declares that it never panics, the program aborts.
    pub rule: Option<fn(last: usize, asked: usize) -> usize>,
}

impl Growth {
    /// Returns the default rule: 4 KiB, doubling up to 1 MiB.
    pub const fn new() -> Self {
        Self { first: 4096, max: 1 << 20, num: 2, den: 1, add: 0, limit: usize::MAX, rule: None }
    }
    /// Returns a rule with a single chunk request of `bytes` bytes.
    pub const fn none(bytes: usize) -> Self {
        Self { first: bytes, max: bytes, num: 1, limit: bytes, ..Self::new() }
    }
    /// Returns a rule whose chunk requests all have `bytes` bytes.
    pub const fn fixed(bytes: usize) -> Self {
        Self { first: bytes, max: bytes, num: 1, ..Self::new() }
    }
    /// Returns a rule in which each chunk request has `add` bytes more than the one before.
    pub const fn linear(first: usize, add: usize) -> Self {
        Self { first, num: 1, add, ..Self::new() }
    }
    /// Returns a rule by which each step is `num / den` times the step before.
    pub const fn exponential(first: usize, num: usize, den: usize) -> Self {
        Self { first, num, den, ..Self::new() }
    }
    /// Returns a rule that calls `rule` with the size of the step before (0 at first) and the size
    /// of the request.
    pub const fn custom(rule: fn(last: usize, asked: usize) -> usize) -> Self {
        Self { rule: Some(rule), max: usize::MAX, ..Self::new() }
    }
    /// Returns the same rule with the limit `bytes`.
    pub const fn limit(self, bytes: usize) -> Self {
        Self { limit: bytes, ..self }
    }

    /// Returns whether the rule allows exactly one chunk request.
    pub const fn is_single(&self) -> bool {
        self.limit <= self.first
    }

    fn next(&self, last: usize, asked: usize) -> usize {
        let step = match self.rule {
            Some(rule) => rule(last, asked),
            None if last == 0 => self.first,
            None => (last.saturating_mul(self.num) / self.den.max(1)).saturating_add(self.add),
        };
        step.min(self.max)
    }
}

impl Default for Growth {
    fn default() -> Self {
        Self::new()
    }
}

/// The growth of one allocator so far.
///
/// A source may call back into the allocator that it serves, and the inner call may change this
/// value. So each function reads the fields again after a call of the source.
#[derive(Debug)]
pub(crate) struct GrowthState {
    growth: Growth,
    last: Cell<usize>,
    taken: Cell<usize>,
    steps: Cell<usize>,
}

#[allow(dead_code)] // not every feature uses all functions
impl GrowthState {
    pub(crate) const fn new(growth: Growth) -> Self {
        Self { growth, last: Cell::new(0), taken: Cell::new(0), steps: Cell::new(0) }
    }

    pub(crate) const fn growth(&self) -> &Growth {
        &self.growth
    }
    pub(crate) fn taken(&self) -> usize {
        self.taken.get()
    }
    pub(crate) fn steps(&self) -> usize {
        self.steps.get()
    }
    pub(crate) fn left(&self) -> usize {
        self.growth.limit.saturating_sub(self.taken())
    }

    pub(crate) fn is_limited(&self) -> bool {
        self.growth.limit != usize::MAX
    }

    /// Takes the next chunk. The chunk has at least `wish` bytes if the limit allows. Its size is
    /// cut to `useful(step)`: the bytes of a step that the allocator can use. If the source has no
    /// memory for a step, half the step is tried, then a quarter, down to `least`. `None` means
    /// that not even `least` fits the limit or the source, and that nothing has changed.
    pub(crate) fn take<S: Source>(
        &self,
        source: &S,
        least: Layout,
        wish: usize,
        useful: impl Fn(usize) -> usize,
    ) -> Option<Chunk> {
        let rule = self.growth.next(self.last.get(), least.size());
        if least.size() > self.left() {
            return None;
        }
        let mut step = rule.max(wish).max(least.size()).min(self.left());
        loop {
            let bytes = useful(step).max(least.size());
            if let Some(chunk) = layout(bytes, least.align()).and_then(|l| source.try_take(l)) {
                self.took_aside(chunk.layout.size());
                self.steps.set(self.steps() + 1);
                self.last.set(step.min(rule));
                return Some(chunk);
            }
            if bytes == least.size() {
                return None;
            }
            step = (step / 2).max(least.size());
        }
    }

    /// Takes a chunk for bookkeeping. The chunk counts towards the limit, but later chunks do not
    /// grow because of it.
    pub(crate) fn take_aside<S: Source>(&self, source: &S, wanted: Layout) -> Option<Chunk> {
        if wanted.size() > self.left() {
            return None;
        }
        let taken = source.try_take(wanted)?;
        self.took_aside(taken.layout.size());
        Some(taken)
    }

    /// Records that a chunk was given back to the source.
    pub(crate) fn gave(&self, bytes: usize) {
        self.taken.set(self.taken() - bytes);
    }

    /// Records bytes that were allocated for bookkeeping. The bytes count towards the limit, but
    /// later chunks do not grow because of them.
    pub(crate) fn took_aside(&self, bytes: usize) {
        self.taken.set(self.taken() + bytes);
    }

    /// Restarts at the first step. The caller has given all memory back.
    pub(crate) fn restart(&self) {
        self.last.set(0);
    }
}
