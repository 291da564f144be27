//! The adaptor that counts calls, blocks and bytes.

use crate::adapt::prelude::*;
use crate::base::statistics::write_json;
use core::cell::Cell;
use core::fmt;

/// Numbers of calls, blocks and bytes. A block that a `reset` or `release` frees counts as freed.
///
/// ```
/// let counts = mallard::CallCounts { allocations: 3, frees: 1, ..Default::default() };
/// assert_eq!(counts.blocks_live(), 2);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct CallCounts {
    /// Number of calls that returned a block.
    pub allocations: usize,
    /// Number of calls that freed a block.
    pub frees: usize,
    /// Number of calls that failed because there was no memory.
    pub failures: usize,
    /// Bytes allocated since construction.
    pub bytes_allocated: usize,
    /// Bytes freed since construction.
    pub bytes_freed: usize,
    /// The largest number of blocks in use at the same time.
    pub blocks_peak: usize,
    /// The largest number of bytes in use at the same time. This peak may be reached at another
    /// time than `blocks_peak`.
    pub bytes_peak: usize,
}

impl CallCounts {
    /// Returns the number of blocks in use. The number is negative in a scope that counts more
    /// frees than allocations, because blocks from before the scope were freed.
    pub const fn blocks_live(&self) -> isize {
        self.allocations.wrapping_sub(self.frees) as isize
    }
    /// Returns the number of bytes in use. In a scope, the number may be negative, as for
    /// `blocks_live`.
    pub const fn bytes_live(&self) -> isize {
        self.bytes_allocated.wrapping_sub(self.bytes_freed) as isize
    }
    /// Returns whether all blocks were freed, each with the size that was requested.
    pub const fn is_balanced(&self) -> bool {
        self.blocks_live() == 0 && self.bytes_live() == 0
    }

    /// Returns the counts of the calls since `before` was read. The peaks are relative to the
    /// blocks and bytes that were in use at that time.
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

    /// Returns each number with its name, in the order in which the C++ library prints them.
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

    /// Writes the numbers as one JSON object on one line.
    pub fn write_json(&self, to: &mut dyn fmt::Write) -> fmt::Result {
        write_json(&self.fields(), to)
    }
}

/// Prints one number per line.
impl fmt::Display for CallCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fields().iter().try_for_each(|(name, value)| writeln!(f, "{name:<16} {value}"))
    }
}

/// An adaptor that counts exactly, for an allocator or source, the allocations, frees, failures and
/// bytes, and the peaks of blocks and bytes in use. (The `statistics` of an allocator cost its
/// calls nothing, but contain no totals and no peaks.)
///
/// ```
/// use mallard::{BlockAllocator, Counted, Multipool};
/// use std::alloc::Layout;
/// let memory = Counted::new(Multipool::new());
/// let block = memory.allocate(Layout::new::<u64>());
/// // SAFETY: the block is from `memory`, with this layout.
/// unsafe { memory.deallocate(block, Layout::new::<u64>()) };
/// assert!(memory.counts().is_balanced());
/// assert_eq!(memory.counts().bytes_peak, 8);
/// ```
///
/// Around an allocator, bytes are counted as requested by the callers. Around a source, bytes are
/// counted as supplied by the source. Growing a block in place counts bytes, but no call. `Counted`
/// is for one thread at a time, so several threads need a [`Synchronized`](crate::Synchronized)
/// around it. A call costs about ten instructions more.
#[derive(Debug, Default)]
pub struct Counted<A> {
    inner: A,
    now: Cell<CallCounts>,
}

adaptor!(Counted []);

impl<A> Counted<A> {
    /// Wraps `inner`, and counts the calls to it.
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

    /// Returns the counts since construction.
    pub fn counts(&self) -> CallCounts {
        self.now.get()
    }

    /// Returns the wrapped allocator.
    pub fn into_inner(self) -> A {
        self.inner
    }

    /// Opens a scope, which counts the calls from now on separately, with separate peaks, until the
    /// returned scope is dropped.
    ///
    /// Scopes nest. An outer scope counts the calls of its inner scopes too, and an inner scope
    /// must be dropped first. An open scope costs nothing.
    ///
    /// ```
    /// # use mallard::{BlockAllocator, Counted, Multipool};
    /// # let memory = Counted::new(Multipool::new());
    /// let parsing = memory.scope();
    /// // ...
    /// println!("{}", parsing.counts()); // peaks are relative to what was in use before
    /// ```
    pub fn scope(&self) -> CountingScope<'_> {
        let before = self.counts();
        self.change(|now| (now.blocks_peak, now.bytes_peak) = (0, 0));
        CountingScope { of: &self.now, before }
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
    /// The same as for `Source::give`.
    #[inline]
    unsafe fn give_to<S: Source>(&self, below: &S, chunk: Chunk) {
        self.change(|now| {
            now.frees += 1;
            now.bytes_freed += chunk.layout.size();
        });
        // SAFETY: the caller's guarantee is passed on unchanged.
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

/// Changes the counts, and raises the peaks if more blocks or bytes are in use than ever before.
#[inline]
fn change(counts: &Cell<CallCounts>, f: impl FnOnce(&mut CallCounts)) {
    let mut now = counts.get();
    f(&mut now);
    now.blocks_peak = now.blocks_peak.max(now.blocks_live().max(0) as usize);
    now.bytes_peak = now.bytes_peak.max(now.bytes_live().max(0) as usize);
    counts.set(now);
}

/// The counts for one part of a program, from [`Counted::scope`].
#[derive(Debug)]
pub struct CountingScope<'a> {
    of: &'a Cell<CallCounts>,
    before: CallCounts,
}

impl CountingScope<'_> {
    /// Returns the counts since the scope was opened.
    pub fn counts(&self) -> CallCounts {
        self.of.get().since(&self.before)
    }
}

impl Drop for CountingScope<'_> {
    fn drop(&mut self) {
        change(self.of, |now| {
            now.blocks_peak = now.blocks_peak.max(self.before.blocks_peak);
            now.bytes_peak = now.bytes_peak.max(self.before.bytes_peak);
        });
    }
}
