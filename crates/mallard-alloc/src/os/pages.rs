//! The source of whole pages from the operating system.

use super::system::{Mapping, HUGE_PAGE_BYTES, PAGE_BYTES};
use super::system::{MADV_HUGEPAGE, MAP_HUGETLB, MAP_POPULATE, PROT_BOTH, PROT_NONE};
use crate::base::bits::align_up;
use crate::base::source::PinSource;
use crate::{Chunk, Source};
use core::alloc::Layout;
use core::sync::atomic::{AtomicI32, Ordering};
use std::io;

/// The kind of pages of a chunk. Huge pages save page faults and TLB misses in large chunks that
/// are fully used, and waste memory in all other chunks.
///
/// ```
/// use mallard::{Huge, Pages, PagesOptions};
/// let pages = Pages::with(PagesOptions { huge: Huge::Advise, ..Default::default() });
/// # let _ = pages;
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Huge {
    /// Ordinary pages of 4 KiB.
    #[default]
    None,
    /// Transparent huge pages of 2 MiB where the system has some, and otherwise ordinary pages.
    Advise,
    /// Pages of 2 MiB that the administrator reserved. If too few are free, the chunk request
    /// fails.
    Reserved,
}

/// Options of [`Pages`]: the kind of pages, and the guard pages around each chunk.
///
/// ```
/// use mallard::{Pages, PagesOptions};
/// let guarded = Pages::with(PagesOptions { guarded: true, ..Default::default() });
/// # let _ = guarded;
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PagesOptions {
    /// The kind of pages.
    pub huge: Huge,
    /// Whether there is an inaccessible guard page before and after each chunk. An access to a
    /// guard page raises SIGSEGV.
    pub guarded: bool,
    /// Whether the system allocates all pages of a chunk in `try_take`. If so, `try_take` fails if
    /// memory is short, and later accesses cause no page faults.
    pub populated: bool,
}

/// A source of whole, zeroed pages from the operating system.
///
/// ```
/// use mallard::{Huge, Multipool, Pages, PagesOptions};
/// let pool = Multipool::new_in(Pages::new());
/// let large = Pages::with(PagesOptions { huge: Huge::Advise, ..Default::default() });
/// # let _ = (pool, large);
/// ```
///
/// The size of a chunk is rounded up to whole pages, and the layout of the chunk has the rounded
/// size. For example, a request for 100 bytes gets 4 KiB, or 2 MiB with huge pages. So with huge
/// pages, request chunks of several MiB. Chunks can have any alignment. When a system call fails,
/// `try_take` returns `None`, `last_error` returns the reason, and nothing stays mapped. Any thread
/// may call the source. Allocating a chunk costs system calls, and the first touch of a page costs
/// a page fault. `Pages` exists on 64-bit Linux, with the feature `std`.
#[derive(Debug, Default)]
pub struct Pages {
    options: PagesOptions, // never changed, because `give` must compute the range of `try_take`
    error: AtomicI32,
}

impl Pages {
    /// Makes a source of ordinary pages. The system allocates a page when it is first touched.
    pub const fn new() -> Self {
        Self::with(PagesOptions { huge: Huge::None, guarded: false, populated: false })
    }
    /// Makes a source of pages with these options.
    pub const fn with(options: PagesOptions) -> Self {
        Self { options, error: AtomicI32::new(0) }
    }

    /// Returns the last error of a system call. If the system rejects the advice to use huge pages,
    /// that is an error too, although `try_take` returned the chunk.
    pub fn last_error(&self) -> Option<io::Error> {
        match self.error.load(Ordering::Relaxed) {
            0 => None,
            code => Some(io::Error::from_raw_os_error(code)),
        }
    }

    const fn unit(&self) -> usize {
        match self.options.huge {
            Huge::None => PAGE_BYTES,
            _ => HUGE_PAGE_BYTES,
        }
    }
    const fn guard_bytes(&self) -> usize {
        if self.options.guarded {
            self.unit() // a part of a huge page cannot be protected alone
        } else {
            0
        }
    }

    fn map(&self, bytes: usize, align: usize) -> io::Result<Mapping> {
        let guard = self.guard_bytes();
        let mut flags = if self.options.huge == Huge::Reserved { MAP_HUGETLB } else { 0 };
        // With `Advise`, pages must be populated after the advice, because earlier pages are
        // ordinary.
        let populate_now = self.options.populated && self.options.huge != Huge::Advise;
        flags |= if populate_now { MAP_POPULATE } else { 0 };
        // The guard in front of the first block is rounded up to the alignment of the block.
        let front = align_up(guard, align);
        let mapped = Mapping::aligned(front + bytes + guard, align, PROT_BOTH, flags)?;
        let mapped = mapped.keep(front - guard, guard + bytes + guard);
        if guard != 0 {
            mapped.protect(0, guard, PROT_NONE)?;
            mapped.protect(guard + bytes, guard, PROT_NONE)?;
        }
        if self.options.huge == Huge::Advise {
            // SAFETY: this advice changes the kind of pages, and not their contents.
            if let Err(error) = unsafe { mapped.advise(guard, bytes, MADV_HUGEPAGE) } {
                self.record_error(&error);
            }
            if self.options.populated {
                (0..bytes).step_by(PAGE_BYTES).for_each(|at| {
                    // SAFETY: the address is within the mapping, which nothing uses yet.
                    unsafe { mapped.data.add(guard + at).write_volatile(0) }
                });
            }
        }
        Ok(mapped)
    }

    fn record_error(&self, error: &io::Error) {
        // The error number 12 is ENOMEM.
        self.error.store(error.raw_os_error().unwrap_or(12), Ordering::Relaxed);
    }
}

// SAFETY: a chunk stays mapped until the chunk is returned.
unsafe impl PinSource for Pages {}
// SAFETY: each chunk is a separate mapping.
unsafe impl Source for Pages {
    fn try_take(&self, layout: Layout) -> Option<Chunk> {
        let bytes = align_up(layout.size(), self.unit());
        let whole = Layout::from_size_align(bytes, layout.align()).ok()?;
        let around = layout.align().max(HUGE_PAGE_BYTES).saturating_mul(4);
        let most = (isize::MAX as usize).saturating_sub(around);
        if bytes < layout.size() || bytes > most {
            return None;
        }
        match self.map(bytes, layout.align().max(self.unit())) {
            Ok(mapped) => {
                // SAFETY: the chunk begins after the guard.
                let data = unsafe { mapped.data.add(self.guard_bytes()) };
                core::mem::forget(mapped); // the mapping stays until the chunk is returned
                Some(Chunk { data, layout: whole })
            }
            Err(error) => {
                self.record_error(&error);
                None
            }
        }
    }

    unsafe fn give(&self, chunk: Chunk) {
        let guard = self.guard_bytes();
        // SAFETY: `try_take` mapped the guard in front of the chunk, and nothing uses the chunk any
        // more.
        let data = unsafe { chunk.data.sub(guard) };
        drop(Mapping { data, bytes: guard + chunk.layout.size() + guard });
    }
}
