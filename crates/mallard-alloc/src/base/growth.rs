//! How much an allocator takes from its source at a time. Read on slow paths only.

use crate::base::bits::layout;
use crate::base::source::{Chunk, Source};
use core::alloc::Layout;
use core::cell::Cell;

/// Bytes of each step: next = last * num / den + add, never above `max`.
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
/// A single request above the step is served by a step of its own size, which does not
/// inflate those after it. `limit` bounds the sum of all that is held: the last step is
/// clamped to what is left of it. At least nine tenths of a limit of 8 KiB or more can be used, in
/// whole blocks of any size. If threads share a pool, the limit has to be 16 KiB or more, and one block less fits.
#[derive(Clone, Copy, Debug)]
pub struct Growth {
    /// The first step.
    pub first: usize,
    /// The most of any step.
    pub max: usize,
    /// The factor from one step to the next is `num / den`.
    pub num: usize,
    /// See `num`; 0 counts as 1.
    pub den: usize,
    /// What is added to each step.
    pub add: usize,
    /// The most that is held at any time.
    pub limit: usize,
    /// A rule of one's own: from the last step (0 at first) and what is asked, the next. One
    /// that panics ends the program where the source never panics.
    pub rule: Option<fn(last: usize, asked: usize) -> usize>,
}

impl Growth {
    /// 4 KiB, doubling to 1 MiB.
    pub const fn new() -> Self {
        Self { first: 4096, max: 1 << 20, num: 2, den: 1, add: 0, limit: usize::MAX, rule: None }
    }
    /// One step, and never another.
    pub const fn none(bytes: usize) -> Self {
        Self { first: bytes, max: bytes, num: 1, limit: bytes, ..Self::new() }
    }
    /// Steps of one size.
    pub const fn fixed(bytes: usize) -> Self {
        Self { first: bytes, max: bytes, num: 1, ..Self::new() }
    }
    /// Each step `add` bytes more than the last.
    pub const fn linear(first: usize, add: usize) -> Self {
        Self { first, num: 1, add, ..Self::new() }
    }
    /// Each step `num / den` of the last.
    pub const fn exponential(first: usize, num: usize, den: usize) -> Self {
        Self { first, num, den, ..Self::new() }
    }
    /// A rule of one's own: from the last step (0 at first) and what is asked, the next.
    pub const fn custom(rule: fn(last: usize, asked: usize) -> usize) -> Self {
        Self { rule: Some(rule), max: usize::MAX, ..Self::new() }
    }
    /// The same, and never more than `bytes` held.
    pub const fn limit(self, bytes: usize) -> Self {
        Self { limit: bytes, ..self }
    }

    /// Whether there is one step and never another.
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

/// Where one allocator stands in its growth. A source may call the allocator back that it is
/// working for: nothing is kept across such a call.
#[derive(Debug)]
pub(crate) struct GrowthState {
    growth: Growth,
    last: Cell<usize>,
    taken: Cell<usize>,
    steps: Cell<usize>,
}

#[allow(dead_code)] // not every feature uses all
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

    /// Takes the next step: at least `wish` bytes if the limit admits them, cut to their `useful`
    /// part. A step that the source refuses is halved, down to `least`. `None`: the limit or the
    /// source refuses `least` too, and nothing has changed.
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

    /// A chunk of the allocator goes back.
    pub(crate) fn gave(&self, bytes: usize) {
        self.taken.set(self.taken() - bytes);
    }

    /// Bookkeeping beside the steps counts towards the limit too.
    pub(crate) fn took_aside(&self, bytes: usize) {
        self.taken.set(self.taken() + bytes);
    }

    /// All is given back: growth begins anew.
    pub(crate) fn restart(&self) {
        self.last.set(0);
    }
}
