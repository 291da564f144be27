//! Large blocks, each of which is a separate chunk.

use crate::base::bits::{align_up, layout};
use crate::{Chunk, Source, Statistics};
use core::alloc::Layout;
use core::cell::Cell;
use core::ptr::{null_mut, NonNull};

/// The large blocks of a multipool. A footer after each block links the block to the others, so
/// that `release` finds all large blocks. Unlike a header, a footer needs no padding before the
/// block.
pub(super) struct LargeBlocks {
    first: Cell<*mut Footer>, // the list begins with the newest block
}

struct Footer {
    next: *mut Footer,
    previous: *mut Footer,
    taken: Chunk,
}

fn footer_offset(bytes: usize) -> usize {
    align_up(bytes, align_of::<Footer>())
}

impl LargeBlocks {
    pub(super) const fn new() -> Self {
        Self { first: Cell::new(null_mut()) }
    }

    /// Allocates a block from the source. `bytes` is not 0.
    pub(super) fn allocate<S: Source>(
        &self,
        source: &S,
        bytes: usize,
        align: usize,
    ) -> Option<NonNull<u8>> {
        let behind = footer_offset(bytes).checked_add(size_of::<Footer>())?;
        let taken = source.try_take(layout(behind, align.max(align_of::<Footer>()))?)?;
        let next = self.first.get();
        // SAFETY: the source has just supplied the chunk, which has room for the block and, after
        // the block, an aligned footer. The next footer is in the list.
        unsafe {
            let footer = taken.data.add(footer_offset(bytes)).cast::<Footer>();
            footer.write(Footer { next, previous: null_mut(), taken });
            if !next.is_null() {
                (*next).previous = footer.as_ptr();
            }
            self.first.set(footer.as_ptr());
        }
        Some(taken.data)
    }

    /// Frees a large block.
    ///
    /// # Safety
    /// `block` is a block that `allocate` returned for a request of `bytes` bytes, and nobody uses
    /// the block any more.
    pub(super) unsafe fn deallocate<S: Source>(
        &self,
        source: &S,
        block: NonNull<u8>,
        bytes: usize,
    ) {
        // SAFETY: `allocate` wrote the footer after the block. The footer's neighbours in the list
        // exist.
        unsafe {
            let Footer { next, previous, taken } =
                block.add(footer_offset(bytes)).cast::<Footer>().read();
            if !next.is_null() {
                (*next).previous = previous;
            }
            if previous.is_null() {
                self.first.set(next);
            } else {
                (*previous).next = next;
            }
            source.give(taken);
        }
    }

    /// Returns whether the footer of a block stays in place when the size of the block changes.
    pub(super) fn may_stay(from: Layout, to: Layout) -> bool {
        footer_offset(from.size()) == footer_offset(to.size())
    }

    pub(super) fn release<S: Source>(&self, source: &S) {
        while let Some(footer) = NonNull::new(self.first.get()) {
            // SAFETY: the footer is in the list, and leaves the list before its memory is returned.
            unsafe {
                let Footer { next, taken, .. } = footer.read();
                self.first.set(next);
                source.give(taken);
            }
        }
    }

    fn iter(&self) -> impl Iterator<Item = &Footer> {
        let mut at = self.first.get();
        core::iter::from_fn(move || {
            // SAFETY: a footer of the list exists while its block exists.
            let footer = unsafe { at.as_ref() }?;
            at = footer.next;
            Some(footer)
        })
    }

    /// Returns whether `p` is the first byte of a block. Returns `None` if `p` is in no large
    /// block. O(large blocks).
    pub(super) fn find(&self, p: *const u8) -> Option<bool> {
        self.iter().find_map(|footer| {
            let offset = p.addr().wrapping_sub(footer.taken.data.addr().get());
            (offset < footer.taken.layout.size()).then_some(offset == 0)
        })
    }

    pub(super) fn add_to(&self, s: &mut Statistics) {
        for footer in self.iter() {
            s.blocks_live += 1;
            s.bytes_live += footer.taken.layout.size();
            s.bytes_taken += footer.taken.layout.size();
        }
    }
}
