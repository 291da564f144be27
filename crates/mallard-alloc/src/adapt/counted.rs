//! An adaptor that counts calls, blocks and bytes.

use crate::adapt::prelude::*;
use core::cell::Cell;
use core::fmt;

/// Calls, and bytes as the callers said them. A block that goes with a `reset` or a `release`
/// is freed then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct CallCounts {
    /// Calls that gave a block.
    pub allocations: usize,
    /// Of blocks.
    pub frees: usize,
    /// Calls that gave none.
    pub failures: usize,
    /// Ever.
    pub bytes_allocated: usize,
    /// Ever.
    pub bytes_freed: usize,
    /// The most blocks in use at once.
    pub blocks_peak: usize,
    /// The most bytes in use at once, perhaps not at that moment.
    pub bytes_peak: usize,
}

impl CallCounts {
    /// In use. Negative for a stretch of a program that freed what was older.
    pub const fn blocks_live(&self) -> isize {
        self.allocations.wrapping_sub(self.frees) as isize
    }
    /// In use. Negative for a stretch of a program that freed what was older.
    pub const fn bytes_live(&self) -> isize {
        self.bytes_allocated.wrapping_sub(self.bytes_freed) as isize
    }
    /// Whether all that was allocated was freed, each with the size that was asked for.
    pub const fn is_balanced(&self) -> bool {
        self.blocks_live() == 0 && self.bytes_live() == 0
    }

    /// Of what came after `before`; peaks are above what was live then.
    fn since(&self, before: &Self) -> Self {
        Self {
            allocations: self.allocations - before.allocations,
            frees: self.frees - before.frees,
            failures: self.failures - before.failures,
            bytes_allocated: self.bytes_allocated - before.bytes_allocated,
            bytes_freed: self.bytes_freed - before.bytes_freed,
            blocks_peak: self.blocks_peak.wrapping_sub(before.blocks_live() as usize),
            bytes_peak: self.bytes_peak.wrapping_sub(before.bytes_live() as usize),
        }
    }

    /// The figures by name, in the order of the C++ report.
    pub fn fields(&self) -> [(&'static str, isize); 9] {
        [
            ("allocations", self.allocations as isize),
            ("frees", self.frees as isize),
            ("failures", self.failures as isize),
            ("blocks_live", self.blocks_live()),
            ("blocks_peak", self.blocks_peak as isize),
            ("bytes_live", self.bytes_live()),
            ("bytes_peak", self.bytes_peak as isize),
            ("bytes_allocated", self.bytes_allocated as isize),
            ("bytes_freed", self.bytes_freed as isize),
        ]
    }

    /// One JSON object on one line.
    pub fn write_json(&self, to: &mut dyn fmt::Write) -> fmt::Result {
        for (i, (name, value)) in self.fields().into_iter().enumerate() {
            write!(to, "{}\"{name}\":{value}", if i == 0 { "{" } else { "," })?;
        }
        to.write_str("}")
    }
}

/// A line a field.
impl fmt::Display for CallCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in self.fields() {
            writeln!(f, "{name:<16} {value}")?;
        }
        Ok(())
    }
}

/// Counts what goes through it, exactly: allocations, frees, failures, bytes, and the most that
/// was in use at once. An allocator's own `statistics` cost nothing and know neither totals nor
/// peaks.
///
/// ```
/// use mallard::{BlockAllocator, Counted, Multipool};
/// use std::alloc::Layout;
/// let memory = Counted::new(Multipool::new());
/// let block = memory.allocate(Layout::new::<u64>());
/// // SAFETY: it is from there, with this layout.
/// unsafe { memory.deallocate(block, Layout::new::<u64>()) };
/// assert!(memory.counts().is_balanced());
/// assert_eq!(memory.counts().bytes_peak, 8);
/// ```
///
/// Bytes are those asked for; of a source, those it gave. A block that grows in place counts
/// its new bytes, and is no call. Fails when what it wraps does. One thread at a time, or a
/// [`Synchronized`](crate::Synchronized) around it. Costs some ten instructions a call.
#[derive(Debug, Default)]
pub struct Counted<A> {
    inner: A,
    now: Cell<CallCounts>,
}

adaptor!(Counted []);

impl<A> Counted<A> {
    /// Counts what goes through to `inner`.
    pub const fn new(inner: A) -> Self {
        let none = CallCounts {
            allocations: 0,
            frees: 0,
            failures: 0,
            bytes_allocated: 0,
            bytes_freed: 0,
            blocks_peak: 0,
            bytes_peak: 0,
        };
        Self { inner, now: Cell::new(none) }
    }

    /// Until now.
    pub fn counts(&self) -> CallCounts {
        self.now.get()
    }

    /// What was wrapped.
    pub fn into_inner(self) -> A {
        self.inner
    }

    /// Counts a stretch of a program by itself, with a peak of its own. Stretches nest,
    /// strictly; each counts what those inside it count. Costs nothing while it lasts.
    ///
    /// ```
    /// # use mallard::{BlockAllocator, Counted, Multipool};
    /// # let memory = Counted::new(Multipool::new());
    /// let parsing = memory.stretch();
    /// // ...
    /// println!("{}", parsing.counts()); // peaks are above what was in use before
    /// ```
    pub fn stretch(&self) -> Stretch<'_> {
        let before = self.counts();
        self.change(|now| (now.blocks_peak, now.bytes_peak) = (0, 0));
        Stretch { of: &self.now, before }
    }

    #[inline]
    fn change(&self, f: impl FnOnce(&mut CallCounts)) {
        change(&self.now, f);
    }

    #[inline]
    fn take_from<S: Source>(&self, below: &S, layout: Layout) -> Option<Chunk> {
        let taken = below.try_take(layout);
        self.change(|now| match &taken {
            Some(chunk) => {
                now.allocations += 1;
                now.bytes_allocated += chunk.layout.size();
            }
            None => now.failures += 1,
        });
        taken
    }

    /// # Safety
    /// As for `Source::give`.
    #[inline]
    unsafe fn give_to<S: Source>(&self, below: &S, chunk: Chunk) {
        self.change(|now| {
            now.frees += 1;
            now.bytes_freed += chunk.layout.size();
        });
        // SAFETY: passed on as it was given.
        unsafe { below.give(chunk) }
    }

    #[inline]
    fn expand(&self, of: Change, below: impl FnOnce() -> bool) -> bool {
        let done = below();
        if done {
            self.change(|now| {
                now.bytes_allocated += of.to.size().saturating_sub(of.from.size());
                now.bytes_freed += of.from.size().saturating_sub(of.to.size());
            });
        }
        done
    }

    fn forget_all(&self) {
        self.change(|now| (now.frees, now.bytes_freed) = (now.allocations, now.bytes_allocated));
    }
}

/// And whoever changes what is live has a new peak, perhaps.
#[inline]
fn change(counts: &Cell<CallCounts>, f: impl FnOnce(&mut CallCounts)) {
    let mut now = counts.get();
    f(&mut now);
    now.blocks_peak = now.blocks_peak.max(now.blocks_live().max(0) as usize);
    now.bytes_peak = now.bytes_peak.max(now.bytes_live().max(0) as usize);
    counts.set(now);
}

/// Counts a stretch of a program: [`Counted::stretch`].
#[derive(Debug)]
pub struct Stretch<'a> {
    of: &'a Cell<CallCounts>,
    before: CallCounts,
}

impl Stretch<'_> {
    /// Since its beginning.
    pub fn counts(&self) -> CallCounts {
        self.of.get().since(&self.before)
    }
}

impl Drop for Stretch<'_> {
    fn drop(&mut self) {
        change(self.of, |now| {
            now.blocks_peak = now.blocks_peak.max(self.before.blocks_peak);
            now.bytes_peak = now.bytes_peak.max(self.before.bytes_peak);
        });
    }
}
