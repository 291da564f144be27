//! The pool of one size class.

use super::list::{sorted, Elements, FreeList, Link};
use crate::bits::align_up;
use crate::growth::GrowthState;
use crate::{Chunk, Growth, Source, Statistics, Validity};
use core::alloc::Layout;
use core::cell::Cell;
use core::ptr::{null_mut, NonNull};

/// Size and alignment of blocks.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    pub(super) bytes: usize,
    pub(super) align: usize,
}

/// The pool of one size class, without its source, which each call passes: a list of free blocks, and
/// a bump range of slots that were never in use. A slot is not touched before it is allocated. The bump
/// range is the rest of a chunk, or slots of a bootstrap slab.
///
/// ```text
///     chunks   first -> ... -> current | -> ... -> null
///              in use, free, or fresh  | never in use
/// ```
///
/// The source may call the pool that it serves. So no function keeps a borrow while it calls the
/// source, and each looks again afterwards.
#[repr(C)] // most calls use the first cache line only
pub(super) struct ClassPool {
    free: FreeList,
    fresh: Cell<*mut u8>,
    fresh_end: Cell<*mut u8>,
    shape: Shape,
    first: Cell<*mut Header>,
    current: Cell<*mut Header>,
    growth: GrowthState,
    refills: Cell<usize>,
}

/// The beginning of a chunk. A link comes first, because `sorted` sorts chunks as it sorts free blocks.
#[repr(C)]
struct Header {
    next: *mut Header,
    taken: Chunk,
    idle: usize, // during `trim`: free blocks, or `GOES` if the chunk goes back
}

const GOES: usize = usize::MAX;

impl ClassPool {
    pub(super) const fn new(shape: Shape, growth: Growth) -> Self {
        Self {
            free: FreeList::new(),
            fresh: Cell::new(null_mut()),
            fresh_end: Cell::new(null_mut()),
            shape,
            first: Cell::new(null_mut()),
            current: Cell::new(null_mut()),
            growth: GrowthState::new(growth),
            refills: Cell::new(0),
        }
    }

    /// A free block or a slot of the bump range. Never calls the source.
    #[inline(always)]
    pub(super) fn pop(&self) -> Option<NonNull<u8>> {
        if let Some(block) = self.free.pop() {
            return Some(block);
        }
        let fresh = self.fresh.get();
        if fresh == self.fresh_end.get() {
            return None;
        }
        self.fresh.set(fresh.wrapping_add(self.shape.bytes));
        // SAFETY: a range that is not empty has slots, and none is at address 0.
        Some(unsafe { NonNull::new_unchecked(fresh) })
    }

    /// # Safety
    /// `block` is a block of this pool that nobody uses any more.
    #[inline(always)]
    pub(super) unsafe fn push(&self, block: NonNull<u8>) {
        // SAFETY: the caller promises it; the smallest blocks have the size of a link.
        unsafe { self.free.push(block) }
    }

    /// A block as `pop` has one, or else of a new chunk. `None`: the source or the limit refuses.
    pub(super) fn allocate<S: Source>(&self, source: &S) -> Option<NonNull<u8>> {
        self.refills.set(self.refills.get() + 1);
        if !self.is_used_up() {
            return self.pop();
        }
        self.grow(source)?;
        self.open_next();
        self.pop()
    }

    /// Whether the next block needs a new chunk.
    pub(super) fn is_used_up(&self) -> bool {
        self.free.is_empty() && self.fresh.get() == self.fresh_end.get() && !self.open_next()
    }

    /// Makes neighbouring slots the bump range.
    ///
    /// # Safety
    /// Nobody uses them, they fit the shape, and they stay until `gather` or `release`.
    pub(super) unsafe fn add_fresh(&self, (begin, end): (*mut u8, *mut u8)) {
        let mut slot = self.fresh.replace(begin);
        let range_end = self.fresh_end.replace(end);
        while let (true, Some(block)) = (slot != range_end, NonNull::new(slot)) {
            // Only if the source called back when the slab was made, and that call took a chunk.
            // SAFETY: slots of the old range, which nobody uses.
            unsafe { self.free.push(block) };
            slot = slot.wrapping_add(self.shape.bytes);
        }
    }

    /// Moves the bump range into the list of free blocks, if its slots are `lent` by a slab.
    pub(super) fn gather(&self, lent: impl Fn(*const u8) -> bool) {
        if self.fresh.get() != self.fresh_end.get() && lent(self.fresh.get()) {
            // SAFETY: an empty range.
            unsafe { self.add_fresh((null_mut(), null_mut())) };
        }
    }

    pub(super) fn free_blocks(&self) -> &FreeList {
        &self.free
    }

    pub(super) fn has_free(&self, p: *const u8) -> bool {
        self.is_fresh(p) || self.free.has(p)
    }

    fn is_fresh(&self, p: *const u8) -> bool {
        p >= self.fresh.get() && p < self.fresh_end.get()
    }

    /// Whether it never had a chunk nor slots of a slab.
    pub(super) fn is_untouched(&self) -> bool {
        self.first.get().is_null() && self.fresh_end.get().is_null()
    }

    /// What `p` is to the chunks of this pool, slots of slabs aside.
    pub(super) fn classify(&self, p: *const u8) -> Validity {
        let mut opened = !self.current.get().is_null();
        for header in self.chunks() {
            let slots = self.slots(header.taken);
            if p.addr().wrapping_sub(header.taken.data.addr().get()) < header.taken.layout.size() {
                let offset = p.addr().wrapping_sub(slots.0.addr());
                let valid = opened
                    && p >= slots.0
                    && p < slots.1
                    && offset % self.shape.bytes == 0
                    && !self.has_free(p);
                return if valid { Validity::Valid } else { Validity::Invalid };
            }
            opened &= !core::ptr::eq(header, self.current.get());
        }
        Validity::Miss
    }

    /// Frees all blocks. They are allocated in address order again.
    pub(super) fn reset(&self) {
        self.free.clear();
        self.fresh.set(null_mut());
        self.fresh_end.set(null_mut());
        self.current.set(null_mut());
    }

    pub(super) fn release<S: Source>(&self, source: &S) {
        self.reset();
        while let Some(header) = NonNull::new(self.first.get()) {
            // SAFETY: a chunk of this pool, which leaves the list before it is given back.
            let header = unsafe { header.read() };
            self.first.set(header.next);
            self.give(source, header.taken);
        }
        self.growth.restart();
    }

    /// Gives back chunks without a block in use, except `keep` bytes. The list of free blocks is sorted,
    /// and has no slots of slabs, nor has the bump range.
    pub(super) fn trim<S: Source>(&self, source: &S, mut keep: usize) {
        let (opened, unopened) = self.split();
        let mut free = self.free.iter().peekable();
        // SAFETY: chunks of this pool; nobody else uses their headers.
        for header in unsafe { Elements::from(opened.cast::<Link>()) }.map(NonNull::cast::<Header>)
        {
            // SAFETY: the same.
            let header = unsafe { &mut *header.as_ptr() };
            let (begin, end) = self.slots(header.taken);
            header.idle = 0;
            while free.next_if(|b| b.as_ptr() < end).is_some() {
                header.idle += 1;
            }
            if self.is_fresh(self.fresh.get())
                && self.fresh.get() >= begin
                && self.fresh.get() < end
            {
                header.idle += self.fresh_count();
            }
            if header.idle < (end.addr() - begin.addr()) / self.shape.bytes {
                continue;
            }
            if header.taken.layout.size() <= keep {
                keep -= header.taken.layout.size();
                continue;
            }
            header.idle = GOES;
            self.forget_range_in(header.taken);
        }
        self.forget_free_blocks_of(opened);
        let last = self.give_and_link(source, opened, null_mut(), |h| h.idle == GOES);
        self.current.set(last);
        self.give_and_link(source, unopened, last, |h| {
            let stays = h.taken.layout.size() <= keep;
            keep -= if stays { h.taken.layout.size() } else { 0 };
            !stays
        });
    }

    pub(super) fn add_to(&self, s: &mut Statistics) {
        let at_hand = self.free.iter().count() + self.fresh_count();
        let mut opened = !self.current.get().is_null();
        // Free blocks of slabs are in the list too. Their slabs are counted elsewhere, so the numbers
        // here may go below 0 meanwhile: they wrap.
        for header in self.chunks() {
            let slots = self.slots(header.taken);
            let blocks = (slots.1.addr() - slots.0.addr()) / self.shape.bytes;
            s.chunks += 1;
            if opened {
                s.blocks_live += blocks;
                s.bytes_live += blocks * self.shape.bytes;
            } else {
                s.bytes_idle += blocks * self.shape.bytes;
            }
            opened &= !core::ptr::eq(header, self.current.get());
        }
        s.blocks_live = s.blocks_live.wrapping_sub(at_hand);
        s.bytes_live = s.bytes_live.wrapping_sub(at_hand * self.shape.bytes);
        s.bytes_idle += at_hand * self.shape.bytes;
        s.bytes_taken += self.growth.taken();
        s.growths += self.growth.steps();
        s.refills += self.refills.get();
    }

    fn fresh_count(&self) -> usize {
        (self.fresh_end.get().addr() - self.fresh.get().addr()) / self.shape.bytes
    }

    fn chunks(&self) -> impl Iterator<Item = &Header> {
        // SAFETY: the list of this pool's chunks, each of which begins with a header.
        unsafe { Elements::from(self.first.get().cast()).map(|h| h.cast::<Header>().as_ref()) }
    }

    /// The beginning of the first slot of a chunk, and the end of the last.
    fn slots(&self, taken: Chunk) -> (*mut u8, *mut u8) {
        let data = taken.data.as_ptr();
        let end = data.addr() + taken.layout.size();
        let begin = align_up(data.addr() + size_of::<Header>(), self.shape.align);
        let count = (end - begin) / self.shape.bytes;
        (data.with_addr(begin), data.with_addr(begin + count * self.shape.bytes))
    }

    /// Makes the bump range of the chunk after the current one. `false`: there is none.
    fn open_next(&self) -> bool {
        let next = match NonNull::new(self.current.get()) {
            None => self.first.get(),
            // SAFETY: a chunk of this pool.
            Some(current) => unsafe { current.as_ref().next },
        };
        let Some(header) = NonNull::new(next) else { return false };
        // SAFETY: a chunk of this pool.
        let (begin, end) = self.slots(unsafe { header.as_ref().taken });
        self.current.set(next);
        self.fresh.set(begin);
        self.fresh_end.set(end);
        true
    }

    /// Takes one more chunk, and lists it behind the others.
    fn grow<S: Source>(&self, source: &S) -> Option<()> {
        let shape = self.shape;
        let skipped = shape.align.saturating_sub(align_of::<Header>()); // at most, behind the header
        let least = size_of::<Header>() + skipped + shape.bytes;
        let least = Layout::from_size_align(least, align_of::<Header>()).ok()?;
        // Under a limit, a step ends with the last block that it has room for.
        let limited = self.growth.is_limited();
        let taken = self.growth.take(source, least, least.size(), |step| match limited {
            true => step - (step - least.size()) % shape.bytes,
            false => step,
        })?;
        let header = taken.data.cast::<Header>();
        // SAFETY: the chunk was just taken, and has room for the header.
        unsafe { header.write(Header { next: null_mut(), taken, idle: 0 }) };
        let mut last = self.current.get();
        if last.is_null() {
            last = self.first.get();
        }
        if last.is_null() {
            self.first.set(header.as_ptr());
            return Some(());
        }
        // SAFETY: the list of this pool's chunks.
        unsafe {
            while !(*last).next.is_null() {
                last = (*last).next;
            }
            (*last).next = header.as_ptr();
        }
        Some(())
    }

    fn give<S: Source>(&self, source: &S, taken: Chunk) {
        self.growth.gave(taken.layout.size());
        // SAFETY: the source gave it, and no block of it is in use.
        unsafe { source.give(taken) }
    }

    /// Takes all chunks out: those that had a bump range, sorted by address, and the others.
    fn split(&self) -> (*mut Header, *mut Header) {
        let first = self.first.replace(null_mut());
        let Some(current) = NonNull::new(self.current.replace(null_mut())) else {
            return (null_mut(), first);
        };
        // SAFETY: chunks of this pool, in a list that nobody else has now.
        unsafe {
            let unopened = core::mem::replace(&mut (*current.as_ptr()).next, null_mut());
            (sorted(first.cast()).cast(), unopened)
        }
    }

    fn forget_range_in(&self, taken: Chunk) {
        let (begin, end) = self.slots(taken);
        if self.fresh_end.get() > begin && self.fresh_end.get() <= end {
            self.fresh.set(null_mut());
            self.fresh_end.set(null_mut());
        }
    }

    /// Forgets the free blocks of chunks that go. Both lists are sorted.
    fn forget_free_blocks_of(&self, chunks: *mut Header) {
        // SAFETY: a list of chunks, which does not change meanwhile.
        let mut chunks = unsafe { Elements::from(chunks.cast()) }
            // SAFETY: each begins with its header.
            .map(|h| unsafe { h.cast::<Header>().as_ref() })
            .peekable();
        self.free.take_out(|block| {
            while chunks.next_if(|h| block.as_ptr() >= self.slots(h.taken).1).is_some() {}
            chunks.peek().is_some_and(|h| h.idle == GOES)
        });
    }

    /// Gives back the chunks that go, and links the others behind `last`, or as the first if `last` is
    /// null. Returns the last chunk of the list.
    fn give_and_link<S: Source>(
        &self,
        source: &S,
        chunks: *mut Header,
        mut last: *mut Header,
        mut goes: impl FnMut(&Header) -> bool,
    ) -> *mut Header {
        // SAFETY: a list of chunks; the iterator has passed each before it goes.
        for header in unsafe { Elements::from(chunks.cast()) } {
            let header = header.cast::<Header>().as_ptr();
            // SAFETY: a chunk of this pool, and `last` is another.
            unsafe {
                if goes(&*header) {
                    self.give(source, (*header).taken);
                    continue;
                }
                (*header).next = null_mut();
                if last.is_null() {
                    self.first.set(header);
                } else {
                    (*last).next = header;
                }
            }
            last = header;
        }
        last
    }
}
