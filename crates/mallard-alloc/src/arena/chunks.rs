//! The chunks of an arena, in two lists: the chunks in use, and the idle chunks.

use crate::base::bits::{align_up, PAGE_BYTES};
use crate::base::source::{Chunk, Source};
use core::alloc::Layout;
use core::cell::Cell;
use core::ptr::{self, NonNull};

/// The metadata of a chunk, stored after its blocks, so that the first block is aligned like the
/// chunk.
#[repr(C, align(16))]
pub(crate) struct Footer {
    /// The next older chunk of the same list.
    pub(crate) next: *mut Footer,
    /// The chunk that came into use after this one. Undefined in the newest chunk.
    pub(crate) newer: *mut Footer,
    /// The end of the blocks. This field is up to date only while the cursor is in another chunk.
    pub(crate) fill: *mut u8,
    pub(crate) taken: Chunk,
}

pub(crate) const CHUNK_ALIGN: usize = align_of::<Footer>();
pub(crate) const FOOTER_BYTES: usize = size_of::<Footer>();

impl Footer {
    /// Writes a footer at the end of `taken`. Returns `None` if the chunk reaches into the last
    /// page of the address space, because the hot path adds small sizes to addresses without a test
    /// for overflow.
    ///
    /// # Safety
    /// `taken` belongs to the caller, is aligned to `CHUNK_ALIGN`, and is larger than a footer.
    pub(crate) unsafe fn make(taken: Chunk) -> Option<NonNull<Footer>> {
        let bytes = taken.layout.size();
        taken.data.addr().get().checked_add(bytes)?.checked_add(PAGE_BYTES)?;
        let offset = (bytes & !(CHUNK_ALIGN - 1)) - FOOTER_BYTES;
        let data = taken.data.as_ptr();
        let footer = Footer { next: ptr::null_mut(), newer: ptr::null_mut(), fill: data, taken };
        // SAFETY: the footer lies in the chunk, and is aligned because the start of the chunk and
        // the offset are.
        unsafe {
            let place = data.add(offset).cast::<Footer>();
            place.write(footer);
            Some(NonNull::new_unchecked(place))
        }
    }

    /// Returns the address of the first block.
    pub(crate) fn begin(&self) -> *mut u8 {
        self.taken.data.as_ptr()
    }
    /// Returns the number of bytes that blocks can use.
    pub(crate) fn bytes(&self) -> usize {
        ptr::from_ref(self).addr() - self.begin().addr()
    }
    /// Returns the offset at which the first block of `layout` would begin, if the layout fits.
    pub(crate) fn place(&self, layout: Layout) -> Option<usize> {
        let padding = self.begin().addr().wrapping_neg() & (layout.align() - 1);
        (padding + layout.size() <= self.bytes()).then_some(padding)
    }
    fn owns(&self, p: *const u8) -> bool {
        p.addr().wrapping_sub(self.begin().addr()) < self.bytes()
    }
}

/// Returns the layout of a chunk for one `layout` and a footer. Returns `None` if the size of the
/// chunk overflows.
pub(crate) fn chunk_layout(layout: Layout) -> Option<Layout> {
    let bytes = align_up(layout.size(), CHUNK_ALIGN).checked_add(FOOTER_BYTES)?;
    crate::base::bits::layout(bytes, layout.align().max(CHUNK_ALIGN))
}

/// Two lists of chunks, newest first. Every chunk is in one list. `oldest_used` is the last chunk
/// of the list `used`, unless that list is empty.
///
/// All pointers are null, or point to footers that stay valid until their chunks are returned.
pub(crate) struct Chunks {
    used: Cell<*mut Footer>,
    oldest_used: Cell<*mut Footer>,
    idle: Cell<*mut Footer>,
    uses: Cell<usize>,
}

impl Chunks {
    pub(crate) const fn new() -> Self {
        Self {
            used: Cell::new(ptr::null_mut()),
            oldest_used: Cell::new(ptr::null_mut()),
            idle: Cell::new(ptr::null_mut()),
            uses: Cell::new(0),
        }
    }

    /// Returns the newest chunk in use, or null.
    #[inline(always)]
    pub(crate) fn used(&self) -> *mut Footer {
        self.used.get()
    }
    /// Returns the oldest chunk in use. Undefined if no chunk is in use.
    #[inline(always)]
    pub(crate) fn oldest_used(&self) -> *mut Footer {
        self.oldest_used.get()
    }
    /// Returns how many times a chunk was put into use.
    pub(crate) fn uses(&self) -> usize {
        self.uses.get()
    }

    /// Puts a chunk that is in no list into use.
    pub(crate) fn put_to_use(&self, chunk: NonNull<Footer>) {
        let (chunk, before) = (chunk.as_ptr(), self.used.replace(chunk.as_ptr()));
        self.uses.set(self.uses.get() + 1);
        if before.is_null() {
            self.oldest_used.set(chunk);
        } else {
            // SAFETY: a chunk in a list of the arena is alive.
            unsafe { (*before).newer = chunk };
        }
        // SAFETY: the chunk is alive, and nothing else refers to it.
        unsafe { (*chunk).next = before };
    }

    /// Removes the newest chunk in which `layout` fits from the idle chunks, and returns the chunk.
    pub(crate) fn take_idle(&self, layout: Layout) -> Option<NonNull<Footer>> {
        let mut before = ptr::null_mut::<Footer>();
        let mut chunk = self.idle.get();
        // SAFETY: the chunks in a list of the arena are alive.
        unsafe {
            while !chunk.is_null() && (*chunk).place(layout).is_none() {
                before = chunk;
                chunk = (*chunk).next;
            }
            let chunk = NonNull::new(chunk)?;
            let next = chunk.as_ref().next;
            if before.is_null() {
                self.idle.set(next);
            } else {
                (*before).next = next;
            }
            Some(chunk)
        }
    }

    /// Makes the chunks that are newer than `last` idle.
    pub(crate) fn retire_until(&self, last: *mut Footer) {
        let newest = self.used.get();
        if newest == last {
            return;
        }
        let mut oldest = newest;
        // SAFETY: the chunks in a list are alive, and `last` is a chunk of the list, or null (the
        // end of the list).
        unsafe {
            while (*oldest).next != last {
                oldest = (*oldest).next;
            }
            (*oldest).next = self.idle.replace(newest);
        }
        self.used.set(last);
    }

    /// Returns the end of the chunk in use that contains `cursor`, or that ends at `cursor`.
    pub(crate) fn end_of(&self, cursor: *mut u8) -> *mut u8 {
        let mut chunk = self.used.get();
        // SAFETY: the chunks in a list are alive, and one chunk of this list contains the cursor.
        while unsafe { cursor.addr().wrapping_sub((*chunk).begin().addr()) > (*chunk).bytes() } {
            // SAFETY: the chunks in a list are alive, and one chunk of this list contains the cursor.
            chunk = unsafe { (*chunk).next };
        }
        chunk.cast()
    }

    /// Makes all chunks but the newest idle, in constant time. Requires at least two chunks in use.
    #[cold]
    #[inline(never)]
    pub(crate) fn keep_newest(&self) {
        let newest = self.used.get();
        // SAFETY: the chunks in a list of the arena are alive.
        unsafe {
            (*self.oldest_used.get()).next = self.idle.get();
            self.idle.set((*newest).next);
            (*newest).next = ptr::null_mut();
        }
        self.oldest_used.set(newest);
    }

    /// Returns the oldest idle chunks to `source` until at most `keep` bytes are idle. Calls `gave`
    /// with the size of each returned chunk.
    pub(crate) fn give_idle(&self, source: &impl Source, mut keep: usize, gave: impl FnMut(usize)) {
        let mut last = ptr::null_mut::<Footer>();
        let mut chunk = self.idle.get();
        // SAFETY: the chunks in a list of the arena are alive.
        unsafe {
            while !chunk.is_null() && (*chunk).taken.layout.size() <= keep {
                keep -= (*chunk).taken.layout.size();
                last = chunk;
                chunk = (*chunk).next;
            }
            if last.is_null() {
                self.idle.set(ptr::null_mut());
            } else {
                (*last).next = ptr::null_mut();
            }
            give_list(chunk, source, gave);
        }
    }

    /// Returns the chunks in use to `source`. Requires that none of their blocks is used any more.
    /// Calls `gave` with the size of each returned chunk.
    pub(crate) fn give_used(&self, source: &impl Source, gave: impl FnMut(usize)) {
        let newest = self.used.replace(ptr::null_mut());
        // SAFETY: the list was cut off, so nothing else refers to its chunks.
        unsafe { give_list(newest, source, gave) }
    }

    /// Returns whether `p` points into one of the chunks.
    pub(crate) fn owns(&self, p: *const u8) -> bool {
        let mut found = false;
        self.each_used(&mut |chunk| found |= chunk.owns(p));
        self.each_idle(&mut |chunk| found |= chunk.owns(p));
        found
    }
    pub(crate) fn each_used(&self, f: &mut dyn FnMut(&Footer)) {
        each(self.used.get(), f);
    }
    pub(crate) fn each_idle(&self, f: &mut dyn FnMut(&Footer)) {
        each(self.idle.get(), f);
    }
}

fn each(mut chunk: *mut Footer, f: &mut dyn FnMut(&Footer)) {
    // SAFETY: the chunks in a list of the arena are alive.
    while let Some(footer) = unsafe { chunk.as_ref() } {
        f(footer);
        chunk = footer.next;
    }
}

/// Returns every chunk of a list to `source`, and calls `gave` with the size of each chunk.
///
/// # Safety
/// The chunks are from `source`, and nothing else refers to them.
unsafe fn give_list(mut chunk: *mut Footer, source: &impl Source, mut gave: impl FnMut(usize)) {
    while !chunk.is_null() {
        // SAFETY: the footer is valid until its chunk is returned. Each chunk is returned once,
        // exactly as the source supplied it.
        unsafe {
            let taken = (*chunk).taken;
            chunk = (*chunk).next;
            gave(taken.layout.size());
            source.give(taken);
        }
    }
}
