//! An arena for several threads.

use crate::arena::blocks::Blocks;
use crate::arena::finalizers::{Owned, SharedFinalizers};
use crate::arena::methods::{object_methods, owning_methods};
use crate::arena::objects::{self, ObjectArena};
use crate::arena::{Box, GROWTH};
use crate::base::allocator::BlockAllocator;
use crate::base::bits::dangling;
use crate::base::source::PinSource;
use crate::threads::lock::{Held, Locked};
use crate::threads::registry::{ThreadKey, ThreadPart};
use crate::{Cause, Chunk, DefaultHeap, Full, Growth, Source, Statistics};
use core::alloc::Layout;
use core::fmt;
use core::mem::{self, MaybeUninit};
use core::ptr::{self, NonNull};

/// Gives blocks to any thread, each from a part of its own: without a lock or an atomic
/// read-modify-write while that has room. All die together. Needs the feature `std`.
///
/// ```
/// let mut request = mallard::SharedArena::new();
/// std::thread::scope(|s| {
///     for n in 0..4 {
///         let request = &request;
///         s.spawn(move || *request.alloc(n) += 1);
///     }
/// });
/// request.reset(); // all threads are done with it: the borrow says so
/// ```
///
/// A part is an arena, and grows as one: 1 KiB, by four to 16 MiB; the limit of its growth
/// bounds all parts together. The part of a thread that has ended goes on being filled by the
/// next new thread. A block is taken back, or grows in place, if it is the last of the calling
/// thread. Values that are owned, and boxes, may be dropped by another thread.
///
/// Any thread may call what takes `&self`. The source must not call back. Threads may end
/// before the arena or after, and allocate while they end.
///
/// ```compile_fail,E0502
/// let mut request = mallard::SharedArena::new();
/// let one = request.alloc(1);
/// request.reset(); // `one` is still used
/// *one = 2;
/// ```
/// ```compile_fail,E0277
/// let request = mallard::SharedArena::new();
/// request.own(std::rc::Rc::new(1)); // it would be dropped by any thread
/// ```
/// ```compile_fail,E0597
/// use mallard::{Buffer, SharedArena};
/// let mut bytes = [std::mem::MaybeUninit::uninit(); 1 << 16];
/// let request = SharedArena::new_in(Buffer::new(&mut bytes));
/// request.own_pin(String::new()); // forget the arena, and the bytes are free
/// ```
pub struct SharedArena<S: Source = DefaultHeap, const MIN_ALIGN: usize = 1> {
    /// Finds the part of a thread. Ends at each release, so that no thread finds a part that is gone.
    key: ThreadKey,
    owned: SharedFinalizers,
    shared: Locked<Shared<S, MIN_ALIGN>>,
}

/// What is under the lock.
struct Shared<S: Source, const M: usize> {
    source: S,
    growth: Growth,
    taken: usize,
    /// Those of all threads; only the owner of a part calls its blocks.
    parts: *mut Part<M>,
    /// For threads that have no part: those that are ending, and those without memory for one.
    house: Blocks<M>,
}

#[repr(C, align(128))] // two lines: processors fetch them in pairs
struct Part<const M: usize> {
    thread: ThreadPart, // first: the registry of threads has its address
    blocks: Blocks<M>,
    next: *mut Part<M>,
    taken: Chunk,
}

// SAFETY: parts are reached by their owners alone, but for what takes `&mut self`. All else is
// under the lock, which `S: Send` makes enough, or atomic. What is owned is `Send`.
unsafe impl<S: Source + Send, const M: usize> Send for SharedArena<S, M> {}
// SAFETY: the same.
unsafe impl<S: Source + Send, const M: usize> Sync for SharedArena<S, M> {}

/// The source, as far as the limit of all parts allows.
struct Limited<'a, S>(&'a S, usize);

// SAFETY: passed on to the source.
unsafe impl<S: Source> Source for Limited<'_, S> {
    fn try_take(&self, layout: Layout) -> Option<Chunk> {
        (layout.size() <= self.1).then(|| self.0.try_take(layout))?
    }
    unsafe fn give(&self, chunk: Chunk) {
        // SAFETY: it is from there.
        unsafe { self.0.give(chunk) }
    }
}

impl SharedArena {
    /// Takes nothing.
    pub const fn new() -> Self {
        Self::new_in(DefaultHeap)
    }
    /// Each part grows as `growth` says; its limit is of all together. Takes nothing.
    pub const fn with_growth(growth: Growth) -> Self {
        Self::with_growth_in(growth, DefaultHeap)
    }
}

impl<S: Source> SharedArena<S> {
    /// Chunks come from `source`, one call at a time. Takes nothing.
    pub const fn new_in(source: S) -> Self {
        Self::with_growth_in(GROWTH, source)
    }
    /// Grows as `growth` says, from `source`. Takes nothing.
    pub const fn with_growth_in(growth: Growth, source: S) -> Self {
        Self::with_min_align_in(growth, source)
    }
}

impl<S: Source, const M: usize> SharedArena<S, M> {
    /// Blocks begin at multiples of `MIN_ALIGN`; growth and source are one's own.
    pub const fn with_min_align_in(growth: Growth, source: S) -> Self {
        let house = Blocks::new(growth);
        let shared = Shared { source, growth, taken: 0, parts: ptr::null_mut(), house };
        Self { key: ThreadKey::new(), owned: SharedFinalizers::new(), shared: Locked::new(shared) }
    }

    /// Frees everything and keeps the memory; O(parts), but for owned values.
    pub fn reset(&mut self) {
        self.drop_owned();
        self.shared_mut().each(|blocks, _| blocks.reset());
    }
    /// Frees everything and gives all memory back to the source.
    pub fn release(&mut self) {
        let end = End(self);
        end.0.drop_owned();
    }
    /// Gives the idle chunks of each part back, beyond `keep` bytes of it.
    pub fn trim(&mut self, keep: usize) {
        let (shared, mut given) = (self.shared_mut(), 0);
        shared.each(|blocks, source| {
            given += blocks.taken();
            blocks.trim(source, keep);
            given -= blocks.taken();
        });
        shared.taken -= given;
    }
    /// Of all parts together. Bytes left behind at the end of a chunk are idle.
    pub fn statistics(&mut self) -> Statistics {
        let shared = self.shared_mut();
        let mut all = Statistics::default();
        shared.each(|blocks, _| all = all + blocks.statistics());
        Statistics { bytes_taken: shared.taken, ..all }
    }
    /// Whether `p` points into memory of this arena, in use or not.
    pub fn owns(&mut self, p: *const u8) -> bool {
        let mut found = false;
        self.shared_mut().each(|blocks, _| found |= blocks.owns(p));
        found
    }

    fn drop_owned(&mut self) {
        // SAFETY: what is borrowed of this ended before it was borrowed exclusively.
        unsafe { self.owned.run() }
    }
    fn shared_mut(&mut self) -> &mut Shared<S, M> {
        self.shared.get_mut()
    }
    /// A source that panics leaves nothing half done.
    fn lock(&self) -> Held<'_, Shared<S, M>> {
        self.shared.lock()
    }

    /// The blocks of the calling thread, if it was here lately.
    #[inline(always)]
    fn here(&self) -> Option<&Blocks<M>> {
        let part = self.key.find()?.cast::<Part<M>>();
        // SAFETY: the key finds a part of this arena since its last release, so the part is alive.
        // It belongs to this thread until the thread ends.
        Some(unsafe { &(*part.as_ptr()).blocks })
    }

    /// The thread has no part at hand, or there is no room in it.
    #[cold]
    #[inline(never)]
    fn grow(&self, layout: Layout) -> Option<NonNull<u8>> {
        if layout.size() == 0 {
            return Some(dangling(layout)); // of a slice, and the thread is new here
        }
        let mut shared = self.lock();
        let part = self.part(&mut shared);
        let Shared { source, growth, taken, house, .. } = &mut *shared;
        let blocks = match part {
            // SAFETY: alive, and this thread's, which is here.
            Some(part) => unsafe { &(*part.as_ptr()).blocks },
            None => house,
        };
        blocks.bump(layout).or_else(|| {
            let before = blocks.taken();
            let block = blocks.grow(&Limited(source, growth.limit.saturating_sub(*taken)), layout);
            *taken += blocks.taken() - before;
            block
        })
    }

    /// The part of the calling thread, and from now on at hand.
    fn part(&self, shared: &mut Shared<S, M>) -> Option<NonNull<Part<M>>> {
        if let Some(part) = self.key.find() {
            return Some(part.cast());
        }
        if !self.key.prepare() {
            return None; // the thread is ending, or there is no memory
        }
        let part = shared.abandoned_part().or_else(|| shared.new_part())?;
        // SAFETY: a part in the list is alive.
        let thread = unsafe { &(*part.as_ptr()).thread };
        thread.reclaim();
        self.key.set(thread.into());
        Some(part)
    }

    #[inline(always)]
    fn arena(&self) -> &Self {
        self
    }
    #[inline(always)]
    fn finalizers(&self) -> &SharedFinalizers {
        &self.owned
    }
}

impl<S: Source, const M: usize> Shared<S, M> {
    /// A part whose thread has ended.
    fn abandoned_part(&self) -> Option<NonNull<Part<M>>> {
        // SAFETY: parts in the list are alive, and `next` never changes.
        let parts = core::iter::successors(NonNull::new(self.parts), |part| unsafe {
            NonNull::new((*part.as_ptr()).next)
        });
        // SAFETY: the same.
        parts.into_iter().find(|part| unsafe { (*part.as_ptr()).thread.is_abandoned() })
    }

    fn new_part(&mut self) -> Option<NonNull<Part<M>>> {
        let left = self.growth.limit.saturating_sub(self.taken);
        let taken = Limited(&self.source, left).try_take(Layout::new::<Part<M>>())?;
        self.taken += taken.layout.size();
        let part = taken.data.cast::<Part<M>>();
        // SAFETY: taken just now, with the layout of a part.
        unsafe {
            part.write(Part {
                thread: ThreadPart::new(),
                blocks: Blocks::new(self.growth),
                next: self.parts,
                taken,
            })
        };
        self.parts = part.as_ptr();
        Some(part)
    }

    /// The blocks of all parts, and of the house. No other thread is inside.
    fn each(&mut self, mut f: impl FnMut(&mut Blocks<M>, &S)) {
        f(&mut self.house, &self.source);
        let mut part = self.parts;
        while !part.is_null() {
            // SAFETY: in the list, so alive; the arena is borrowed exclusively.
            unsafe {
                f(&mut (*part).blocks, &self.source);
                part = (*part).next;
            }
        }
    }

    /// Gives all back. No other thread is inside, nor comes with the present id.
    fn release(&mut self) {
        self.each(|blocks, source| blocks.release(source));
        let mut part = mem::replace(&mut self.parts, ptr::null_mut());
        self.taken = 0;
        while !part.is_null() {
            // SAFETY: nobody else has it; it is dropped, then given as it was taken.
            unsafe {
                let taken = (*part).taken;
                let next = (*part).next;
                part.drop_in_place();
                self.source.give(taken);
                part = next;
            }
        }
    }
}

#[allow(clippy::mut_from_ref)] // each call has a block of its own
impl<'s, S: Source, const M: usize> SharedArena<S, M> {
    object_methods!('s, &'s Self, Self);
    // Until the arena forgets them, which may be in another thread.
    owning_methods!('s, &'s Self, PinSource, Send + 'static);
}

/// Gives all memory back when what may panic is done.
struct End<'a, S: Source, const M: usize>(&'a mut SharedArena<S, M>);

impl<S: Source, const M: usize> Drop for End<'_, S, M> {
    fn drop(&mut self) {
        self.0.key.end();
        self.0.shared_mut().release();
    }
}

impl<S: Source, const M: usize> Drop for SharedArena<S, M> {
    fn drop(&mut self) {
        self.release();
    }
}

impl<S: Source, const M: usize> ObjectArena for SharedArena<S, M> {
    #[inline(always)]
    fn try_place<T>(&self) -> Option<NonNull<T>> {
        let layout = Layout::new::<T>();
        if size_of::<T>() == 0 {
            return Some(dangling(layout).cast());
        }
        match self.here().and_then(Blocks::bump_for::<T, false>) {
            Some(block) => Some(block.cast()),
            None => Some(self.grow(layout)?.cast()),
        }
    }
    #[inline(always)]
    fn try_place_many<T>(&self, layout: Layout) -> Option<NonNull<T>> {
        match self.here().and_then(|blocks| blocks.bump_many::<T>(layout)) {
            Some(block) => Some(block.cast()),
            None => Some(self.grow(layout)?.cast()),
        }
    }
}

// SAFETY: blocks are cut from chunks of the source, by one thread at a time from each, and end
// with the arena or when it is borrowed exclusively.
unsafe impl<S: Source, const M: usize> BlockAllocator for SharedArena<S, M> {
    #[inline(always)]
    fn try_allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        if layout.size() == 0 {
            return Some(dangling(layout));
        }
        match self.here().and_then(|blocks| blocks.bump(layout)) {
            Some(block) => Some(block),
            None => self.grow(layout),
        }
    }
    /// Frees the last block of the calling thread; otherwise does nothing.
    #[inline(always)]
    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
        // A block of another thread does not end where the cursor of this one is: between
        // the blocks of two chunks is a footer.
        if let Some(blocks) = self.here() {
            blocks.pop(block, layout.size());
        }
    }
    /// Grows the last block of the calling thread; shrinking is always possible.
    #[inline(always)]
    unsafe fn try_expand(&self, block: NonNull<u8>, from: Layout, to: Layout) -> bool {
        match self.here() {
            Some(blocks) => blocks.expand(block, from, to),
            None => to.size() <= from.size() && to.align() <= from.align(),
        }
    }
}

impl<S: Source + Default, const M: usize> Default for SharedArena<S, M> {
    fn default() -> Self {
        Self::with_min_align_in(GROWTH, S::default())
    }
}

impl<S: Source, const M: usize> fmt::Debug for SharedArena<S, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedArena").finish_non_exhaustive()
    }
}
