//! Growth rules. A rule computes the size of each chunk request (*step*) that an allocator sends to
//! its source. Only slow paths read a `Growth`.

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
/// is 8 KiB or more, blocks of one size can fill at least nine tenths of the limit. In a pool that
/// threads share, the limit must be 16 KiB or more for the same, and there may be room for one
/// block fewer.
#[derive(Clone, Copy, Debug)]
pub struct Growth {
    /// The size of the first chunk request, in bytes.
    pub first: usize,
    /// The size of the largest chunk request, in bytes.
    pub max: usize,
    /// The numerator of the factor `num / den` from one chunk request to the next.
    pub num: usize,
    /// The denominator of the factor `num / den`. 0 counts as 1.
    pub den: usize,
    /// The number of bytes that are added to each chunk request after the first.
    pub add: usize,
    /// The maximum number of bytes that the allocator holds at any time.
    pub limit: usize,
    /// A function that returns the size of the next chunk request. The arguments are the size of
    /// the previous request (0 at first), and the size that the allocator needs. If the function
    /// panics although `may_panic` of the source is `false`, the program aborts.
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
    /// Returns a rule by which each chunk request is `num / den` times as large as the previous
    /// one.
    pub const fn exponential(first: usize, num: usize, den: usize) -> Self {
        Self { first, num, den, ..Self::new() }
    }
    /// Returns a rule that calls `rule` with the size of the previous chunk request (0 at first)
    /// and the size that the allocator needs.
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
/// value. So each function reads the fields again after a call to the source.
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

    /// Requests the next chunk from the source. The chunk has at least `wish` bytes if the limit
    /// allows. The size of a request is cut to `useful(step)`, which is how many bytes of a step
    /// the allocator can use. If the source fails, half the step is tried, then a quarter, down to
    /// `least`. `None` means that not even `least` fits the limit or the source, and that nothing
    /// has changed.
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

    /// Requests a chunk for bookkeeping. The chunk counts towards the limit, but later chunks do
    /// not grow because of this chunk.
    pub(crate) fn take_aside<S: Source>(&self, source: &S, wanted: Layout) -> Option<Chunk> {
        if wanted.size() > self.left() {
            return None;
        }
        let taken = source.try_take(wanted)?;
        self.took_aside(taken.layout.size());
        Some(taken)
    }

    /// Records that a chunk of `bytes` bytes was returned to the source.
    pub(crate) fn gave(&self, bytes: usize) {
        self.taken.set(self.taken() - bytes);
    }

    /// Records bytes that were allocated for bookkeeping. The bytes count towards the limit, but
    /// later chunks do not grow because of them.
    pub(crate) fn took_aside(&self, bytes: usize) {
        self.taken.set(self.taken() + bytes);
    }

    /// Restarts the growth at the first step. The caller has returned all memory to the source.
    pub(crate) fn restart(&self) {
        self.last.set(0);
    }
}
