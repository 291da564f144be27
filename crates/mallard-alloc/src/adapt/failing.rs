//! The adaptor whose calls fail on purpose, for tests.

use crate::adapt::prelude::*;
use crate::{CallCounts, Counted};
use core::cell::Cell;

/// Determines which calls fail. [`Failures`] and any `Fn(Layout, usize) -> bool` are rules.
///
/// ```
/// use mallard::{Failing, FailureRule, Multipool};
/// let large = |layout: std::alloc::Layout, _number: usize| layout.size() > 4096;
/// let memory = Failing::new(large, Multipool::new());
/// # let _ = memory;
/// ```
pub trait FailureRule {
    /// Returns whether the call for `layout` with this number fails. The first call has number 0.
    fn fails(&self, layout: Layout, number: usize) -> bool;
}

impl<F: Fn(Layout, usize) -> bool> FailureRule for F {
    fn fails(&self, layout: Layout, number: usize) -> bool {
        self(layout, number)
    }
}

/// A rule that selects the calls that fail by their numbers. The first call has number 0.
///
/// ```
/// use mallard::Failures;
/// let one = Failures::at(3); // number 3 alone
/// let few = Failures { count: 10, ..Failures::at(3) }; // 3 to 12
/// let some = Failures { every: 10, ..Failures::at(9) }; // 9, 19, 29, ...
/// # let _ = (one, few, some);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failures {
    /// The number of the first call that fails.
    pub first: usize,
    /// Number of consecutive calls that fail.
    pub count: usize,
    /// The pattern repeats after `every` calls. 0 means that the pattern does not repeat.
    pub every: usize,
}

impl Failures {
    /// The rule that no call fails.
    pub const NEVER: Self = Self::at(usize::MAX);
    /// Returns the rule that only the call with this number fails.
    pub const fn at(first: usize) -> Self {
        Self { first, count: 1, every: 0 }
    }
}

impl FailureRule for Failures {
    fn fails(&self, _: Layout, number: usize) -> bool {
        let Some(after) = number.checked_sub(self.first) else { return false };
        after.checked_rem(self.every).unwrap_or(after) < self.count
    }
}

/// An adaptor that makes calls fail as if memory were exhausted. Its rule selects these calls, and
/// the wrapped allocator is not called. Tests use `Failing` to run code paths that otherwise never
/// run. Also known as fault injection.
///
/// ```
/// use mallard::{BlockAllocator, Failing, Multipool, Failures};
/// use std::alloc::Layout;
/// let memory = Failing::new(Failures::at(1), Multipool::new());
/// assert!(memory.try_allocate(Layout::new::<u64>()).is_some());
/// assert!(memory.try_allocate(Layout::new::<u64>()).is_none());
///
/// let no_large = Failing::new(|l: Layout, _: usize| l.size() > 4096, Multipool::new());
/// # let _ = no_large;
/// ```
///
/// Calls that grow a block in place have no number, and never fail because of the rule. `Failing`
/// is for one thread at a time. [`for_each_failure`] lets one call after the other fail.
#[derive(Debug)]
#[doc(alias = "fault injection")]
pub struct Failing<A, R = Failures> {
    inner: A,
    rule: R,
    calls: Cell<usize>,
    failed: Cell<usize>,
}

adaptor!(Failing [R: FailureRule]);

impl<A, R> Failing<A, R> {
    /// Wraps `inner`, and fails the calls that `rule` selects.
    pub const fn new(rule: R, inner: A) -> Self {
        Self { inner, rule, calls: Cell::new(0), failed: Cell::new(0) }
    }

    /// Continues with another rule. The next call has number 0, and no call counts as failed.
    pub fn restart(&mut self, rule: R) {
        self.rule = rule;
        self.calls.set(0);
        self.failed.set(0);
    }

    /// Returns the number of calls since construction or the last `restart`.
    pub fn calls(&self) -> usize {
        self.calls.get()
    }
    /// Returns the number of calls that the rule made fail. Failures of the wrapped allocator do
    /// not count.
    pub fn failed(&self) -> usize {
        self.failed.get()
    }

    /// # Safety
    /// The same as for `Source::give`.
    #[inline]
    unsafe fn give_to<S: Source>(&self, below: &S, chunk: Chunk) {
        // SAFETY: the caller's guarantee is passed on unchanged.
        unsafe { below.give(chunk) }
    }
    #[inline]
    fn expand(&self, _: Change, below: impl FnOnce() -> bool) -> bool {
        below()
    }
    fn forget_all(&self) {}
}

impl<A, R: FailureRule> Failing<A, R> {
    #[inline]
    fn take_from<S: Source>(&self, below: &S, layout: Layout) -> Option<Chunk> {
        let number = self.calls.replace(self.calls.get() + 1);
        if self.rule.fails(layout, number) {
            self.failed.set(self.failed.get() + 1);
            return None;
        }
        below.try_take(layout)
    }
}

/// Runs `f` repeatedly. Allocation 0 fails in the first run, allocation 1 in the second run, and so
/// on, until a run ends without a failure. So each error path of `f` runs once. Returns the number
/// of failures.
///
/// ```
/// use mallard::{for_each_failure, BlockAllocator, Multipool};
/// use std::alloc::Layout;
/// let failures = for_each_failure(Multipool::new(), |memory| {
///     let Some(a) = memory.try_allocate(Layout::new::<u64>()) else { return };
///     if let Some(b) = memory.try_allocate(Layout::new::<[u64; 9]>()) {
///         // SAFETY: the block is from `memory`, with this layout.
///         unsafe { memory.deallocate(b, Layout::new::<[u64; 9]>()) };
///     }
///     // SAFETY: the block is from `memory`, with this layout.
///     unsafe { memory.deallocate(a, Layout::new::<u64>()) };
/// });
/// assert_eq!(failures, 2);
/// ```
///
/// # Panics
/// If `f` panics, leaks a block, or frees a block with another size than it was allocated with.
pub fn for_each_failure<A: BlockAllocator>(
    memory: A,
    mut f: impl FnMut(&Failing<Counted<A>>),
) -> usize {
    let mut memory = Failing::new(Failures::NEVER, Counted::new(memory));
    for number in 0.. {
        memory.restart(Failures::at(number));
        f(&memory);
        let counts = memory.inner().counts();
        assert!(counts.is_balanced(), "{}", Unbalanced { number, counts });
        if memory.failed() == 0 {
            return number;
        }
    }
    unreachable!("the function `f` never stops allocating")
}

struct Unbalanced {
    number: usize,
    counts: CallCounts,
}

impl core::fmt::Display for Unbalanced {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Self { number, counts } = self;
        let (blocks, bytes) = (counts.blocks_live(), counts.bytes_live());
        f.write_str("mallard: ")?;
        match blocks {
            0 => f.write_str("blocks were freed with incorrect sizes")?,
            1.. => write!(f, "{blocks} block(s) leaked")?,
            _ => write!(f, "{} block(s) freed too often", -blocks)?,
        }
        write!(
            f,
            " when allocation {number} failed, or when no allocation failed\n  \
             in a function under for_each_failure: bytes allocated and freed differ by {}\n  \
             help: run the function alone on a `Failing` with `Failures::at({number})`",
            bytes.unsigned_abs()
        )
    }
}
