//! Chunks straight from the operating system.

use super::{Mapping, HUGE_PAGE_BYTES, PAGE_BYTES};
use super::{MADV_HUGEPAGE, MAP_HUGETLB, MAP_POPULATE, PROT_BOTH, PROT_NONE};
use crate::base::bits::align_up;
use crate::base::source::PinSource;
use crate::{Chunk, Source};
use core::alloc::Layout;
use core::sync::atomic::{AtomicI32, Ordering};
use std::io;

/// Which pages a chunk is made of. Huge ones save page faults and TLB misses in large chunks
/// that are used to the full, and cost memory in all others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Huge {
    /// Ordinary pages.
    #[default]
    None,
    /// 2 MiB pages where the system has some at hand, else ordinary ones.
    Advise,
    /// 2 MiB pages that the administrator set aside, else no chunk.
    Reserved,
}

/// What chunks are made of, and what is around them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PagesOptions {
    /// Which pages.
    pub huge: Huge,
    /// Before and after each chunk a page that nobody may touch: who does is stopped.
    pub guarded: bool,
    /// All pages at once: a refusal when they are taken, no page faults later.
    pub populated: bool,
}

/// Whole pages from the operating system, zeroed.
///
/// ```
/// use mallard::{Huge, Multipool, Pages, PagesOptions};
/// let pool = Multipool::new_in(Pages::new());
/// let large = Pages::with(PagesOptions { huge: Huge::Advise, ..Default::default() });
/// # let _ = (pool, large);
/// ```
///
/// A chunk is as large as its pages, which its layout tells: 100 bytes become 4 KiB, or 2 MiB
/// with either kind of huge pages, so ask for much there. Any alignment is honoured. A chunk
/// that the system refuses is `None`, `last_error` says why, and nothing of it stays behind.
/// Any thread may call. Each take is a system call or some, and each first touch of a page a
/// fault. Linux on 64-bit machines, with the feature `std`.
#[derive(Debug, Default)]
pub struct Pages {
    options: PagesOptions, // never changed: they say what is around a chunk
    error: AtomicI32,
}

impl Pages {
    /// Ordinary pages, which cost memory when they are touched.
    pub const fn new() -> Self {
        Self::with(PagesOptions { huge: Huge::None, guarded: false, populated: false })
    }
    /// Others.
    pub const fn with(options: PagesOptions) -> Self {
        Self { options, error: AtomicI32::new(0) }
    }

    /// What the system refused last. Refused advice is told too, though the chunk was given.
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
            self.unit() // of a mapping of huge pages no part can be protected alone
        } else {
            0
        }
    }

    fn map(&self, bytes: usize, align: usize) -> io::Result<Mapping> {
        let guard = self.guard_bytes();
        let mut flags = if self.options.huge == Huge::Reserved { MAP_HUGETLB } else { 0 };
        // Before the advice they would be ordinary pages.
        let populate_now = self.options.populated && self.options.huge != Huge::Advise;
        flags |= if populate_now { MAP_POPULATE } else { 0 };
        // The pages in front of the first block are a multiple of its alignment.
        let front = align_up(guard, align);
        let mapped = Mapping::aligned(front + bytes + guard, align, PROT_BOTH, flags)?;
        let mapped = mapped.keep(front - guard, guard + bytes + guard);
        if guard != 0 {
            mapped.protect(0, guard, PROT_NONE)?;
            mapped.protect(guard + bytes, guard, PROT_NONE)?;
        }
        if self.options.huge == Huge::Advise {
            // SAFETY: it is advice on how to hold the pages, which keep their contents.
            if let Err(error) = unsafe { mapped.advise(guard, bytes, MADV_HUGEPAGE) } {
                self.refuse(&error);
            }
            if self.options.populated {
                (0..bytes).step_by(PAGE_BYTES).for_each(|at| {
                    // SAFETY: within the mapping, which nobody has yet.
                    unsafe { mapped.data.add(guard + at).write_volatile(0) }
                });
            }
        }
        Ok(mapped)
    }

    fn refuse(&self, error: &io::Error) {
        self.error.store(error.raw_os_error().unwrap_or(12), Ordering::Relaxed);
        // ENOMEM
    }
}

// SAFETY: a chunk stays mapped until it is given back.
unsafe impl PinSource for Pages {}
// SAFETY: chunks are mappings of their own.
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
                // SAFETY: behind the guard.
                let data = unsafe { mapped.data.add(self.guard_bytes()) };
                core::mem::forget(mapped); // it lives until it is given back
                Some(Chunk { data, layout: whole })
            }
            Err(error) => {
                self.refuse(&error);
                None
            }
        }
    }

    unsafe fn give(&self, chunk: Chunk) {
        let guard = self.guard_bytes();
        // SAFETY: `try_take` has left it so, and nobody uses it any more.
        let data = unsafe { chunk.data.sub(guard) };
        drop(Mapping { data, bytes: guard + chunk.layout.size() + guard });
    }
}
