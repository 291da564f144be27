//! An adaptor that refuses on purpose.

use crate::adapt::prelude::*;
use crate::{CallCounts, Counted};
use core::cell::Cell;

/// Whether to refuse a call. `Refusals`, or any `Fn(Layout, usize) -> bool`.
pub trait RefusalRule {
    /// From what is asked, and the number of the call; the first is 0.
    fn refuses(&self, layout: Layout, number: usize) -> bool;
}

impl<F: Fn(Layout, usize) -> bool> RefusalRule for F {
    fn refuses(&self, layout: Layout, number: usize) -> bool {
        self(layout, number)
    }
}

/// Which calls are refused, by number; the first is 0.
///
/// ```
/// use mallard::Refusals;
/// let one = Refusals::at(3); // number 3 alone
/// let few = Refusals { count: 10, ..Refusals::at(3) }; // 3 to 12
/// let some = Refusals { every: 10, ..Refusals::at(9) }; // 9, 19, 29, ...
/// # let _ = (one, few, some);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusals {
    /// The number of the first.
    pub first: usize,
    /// How many together.
    pub count: usize,
    /// And again, so many calls later; 0: not again.
    pub every: usize,
}

impl Refusals {
    /// None.
    pub const NEVER: Self = Self::at(usize::MAX);
    /// One, by its number.
    pub const fn at(first: usize) -> Self {
        Self { first, count: 1, every: 0 }
    }
}

impl RefusalRule for Refusals {
    fn refuses(&self, _: Layout, number: usize) -> bool {
        let Some(after) = number.checked_sub(self.first) else { return false };
        after.checked_rem(self.every).unwrap_or(after) < self.count
    }
}

/// Refuses what its rule says, as if memory had run out there; what it wraps is not called
/// then. For tests: to see a program fail where it never does.
///
/// ```
/// use mallard::{BlockAllocator, Failing, Multipool, Refusals};
/// use std::alloc::Layout;
/// let memory = Failing::new(Refusals::at(1), Multipool::new());
/// assert!(memory.try_allocate(Layout::new::<u64>()).is_some());
/// assert!(memory.try_allocate(Layout::new::<u64>()).is_none());
///
/// let no_large = Failing::new(|l: Layout, _: usize| l.size() > 4096, Multipool::new());
/// # let _ = no_large;
/// ```
///
/// A block that cannot grow in place is no refusal, so that call has no number. One thread at
/// a time. [`for_each_failure`] tries every number in turn.
#[derive(Debug)]
pub struct Failing<A, R = Refusals> {
    inner: A,
    rule: R,
    calls: Cell<usize>,
    refused: Cell<usize>,
}

adaptor!(Failing [R: RefusalRule]);

impl<A, R> Failing<A, R> {
    /// Refuses by `rule` what is asked of `inner`.
    pub const fn new(rule: R, inner: A) -> Self {
        Self { inner, rule, calls: Cell::new(0), refused: Cell::new(0) }
    }

    /// Goes on with another rule: the next call has number 0, and none was refused.
    pub fn restart(&mut self, rule: R) {
        self.rule = rule;
        self.calls.set(0);
        self.refused.set(0);
    }

    /// Calls so far.
    pub fn calls(&self) -> usize {
        self.calls.get()
    }
    /// Calls that its rule refused, and not what it wraps.
    pub fn refused(&self) -> usize {
        self.refused.get()
    }

    /// # Safety
    /// As for `Source::give`.
    #[inline]
    unsafe fn give_to<S: Source>(&self, below: &S, chunk: Chunk) {
        // SAFETY: passed on as it was given.
        unsafe { below.give(chunk) }
    }
    #[inline]
    fn expand(&self, _: Change, below: impl FnOnce() -> bool) -> bool {
        below()
    }
    fn forget_all(&self) {}
}

impl<A, R: RefusalRule> Failing<A, R> {
    #[inline]
    fn take_from<S: Source>(&self, below: &S, layout: Layout) -> Option<Chunk> {
        let number = self.calls.replace(self.calls.get() + 1);
        if self.rule.refuses(layout, number) {
            self.refused.set(self.refused.get() + 1);
            return None;
        }
        below.try_take(layout)
    }
}

/// Runs `f` again and again, with allocation 0 refused, then 1, then 2, ..., until it asks for
/// no more than it was given. So each way out of it that an allocation can take was taken once.
/// Gives how many were refused.
///
/// ```
/// use mallard::{for_each_failure, BlockAllocator, Multipool};
/// use std::alloc::Layout;
/// let refused = for_each_failure(Multipool::new(), |memory| {
///     let Some(a) = memory.try_allocate(Layout::new::<u64>()) else { return };
///     if let Some(b) = memory.try_allocate(Layout::new::<[u64; 9]>()) {
///         // SAFETY: it is from there, with this layout.
///         unsafe { memory.deallocate(b, Layout::new::<[u64; 9]>()) };
///     }
///     // SAFETY: the same.
///     unsafe { memory.deallocate(a, Layout::new::<u64>()) };
/// });
/// assert_eq!(refused, 2);
/// ```
///
/// # Panics
/// When `f` does, or frees not all that it was given, or with other sizes.
pub fn for_each_failure<A: BlockAllocator>(
    memory: A,
    mut f: impl FnMut(&Failing<Counted<A>>),
) -> usize {
    let mut memory = Failing::new(Refusals::NEVER, Counted::new(memory));
    for number in 0.. {
        memory.restart(Refusals::at(number));
        f(&memory);
        let counts = memory.inner().counts();
        assert!(counts.is_balanced(), "{}", Unbalanced { number, counts });
        if memory.refused() == 0 {
            return number;
        }
    }
    unreachable!("a program that makes no end of allocations")
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
            0 => f.write_str("blocks were freed with wrong sizes")?,
            1.. => write!(f, "{blocks} block(s) leaked")?,
            _ => write!(f, "{} block(s) too many freed", -blocks)?,
        }
        write!(
            f,
            " when allocation {number} was refused, or none any more\n  \
             in a function under for_each_failure: bytes allocated and freed differ by {}\n  \
             help: run it alone on a `Failing` with `Refusals::at({number})`",
            bytes.unsigned_abs()
        )
    }
}
