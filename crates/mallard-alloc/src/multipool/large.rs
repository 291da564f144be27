//! Blocks too big for a pool: straight from the source, and remembered.

use crate::bits::{align_up, layout};
use crate::{Chunk, Source, Statistics};
use core::alloc::Layout;
use core::cell::Cell;
use core::ptr::{null_mut, NonNull};

/// Each block has a footer behind it, so alignment needs no room in front, and a block can be
/// given back alone or with all others.
pub(super) struct LargeBlocks {
    first: Cell<*mut Footer>, // newest first
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

    /// `bytes` is not 0.
    pub(super) fn allocate<S: Source>(
        &self,
        source: &S,
        bytes: usize,
        align: usize,
    ) -> Option<NonNull<u8>> {
        let behind = footer_offset(bytes).checked_add(size_of::<Footer>())?;
        let taken = source.try_take(layout(behind, align.max(align_of::<Footer>()))?)?;
        let next = self.first.get();
        // SAFETY: the chunk is ours and has room for the footer, which is aligned, behind the
        // block; the next one is in the list.
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

    /// # Safety
    /// `block` is from `allocate` for so many bytes, and no longer used.
    pub(super) unsafe fn deallocate<S: Source>(
        &self,
        source: &S,
        block: NonNull<u8>,
        bytes: usize,
    ) {
        // SAFETY: its footer is behind it, and was made there; neighbours in the list are alive.
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

    /// Whether a block keeps its footer when its size changes so.
    pub(super) fn may_stay(from: Layout, to: Layout) -> bool {
        footer_offset(from.size()) == footer_offset(to.size())
    }

    pub(super) fn release<S: Source>(&self, source: &S) {
        while let Some(footer) = NonNull::new(self.first.get()) {
            // SAFETY: it is of the list, and is taken out before its memory goes.
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
            // SAFETY: a footer of the list, which lives as long as its block.
            let footer = unsafe { at.as_ref() }?;
            at = footer.next;
            Some(footer)
        })
    }

    /// Whether `p` is in a block, and if so whether at its beginning; O(large blocks).
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
