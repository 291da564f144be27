//! An arena that several threads share.

use crate::arena::blocks::Blocks;
use crate::arena::finalizers::{Owned, SharedFinalizers};
use crate::arena::methods::{object_methods, owning_methods};
use crate::arena::object_arena::ObjectArena;
use crate::arena::objects;
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

/// An arena for any number of threads. Each thread allocates from a separate arena (its *part*),
/// without a lock or an atomic read-modify-write while the current chunk has room. All blocks are
/// freed together. Needs the feature `std`.
///
/// ```
/// let mut request = mallard::SharedArena::new();
/// std::thread::scope(|s| {
///     for n in 0..4 {
///         let request = &request;
///         s.spawn(move || *request.alloc(n) += 1);
///     }
/// });
/// request.reset(); // the borrow checker knows that all threads are done with the arena
/// ```
///
/// Each part grows like an [`Arena`](crate::Arena). A limit in the growth applies to all parts
/// together. When a thread exits, the next new thread continues with the part of the exited thread.
/// Only the block that the calling thread allocated last can be freed, or grow in place. Owned
/// values and boxes may be dropped by another thread.
///
/// Any thread may call the functions that take `&self`. The source must not call the arena. Threads
/// may exit before or after the arena is dropped, and may allocate while they exit.
///
/// ```compile_fail,E0502
/// let mut request = mallard::SharedArena::new();
/// let one = request.alloc(1);
/// request.reset(); // `one` is still in use
/// *one = 2;
/// ```
/// ```compile_fail,E0277
/// let request = mallard::SharedArena::new();
/// request.own(std::rc::Rc::new(1)); // another thread could drop it
/// ```
/// ```compile_fail,E0597
/// use mallard::{Buffer, SharedArena};
/// let mut bytes = [std::mem::MaybeUninit::uninit(); 1 << 16];
/// let request = SharedArena::new_in(Buffer::new(&mut bytes));
/// request.own_pin(String::new()); // leak the arena, and the bytes are free
/// ```
pub struct SharedArena<S: Source = DefaultHeap, const MIN_ALIGN: usize = 1> {
    /// Finds the part of the calling thread. Each `release` invalidates the key, so that no thread
    /// finds a part that was freed.
    key: ThreadKey,
    owned: SharedFinalizers,
    shared: Locked<Shared<S, MIN_ALIGN>>,
}

/// The state that the arena's lock protects.
struct Shared<S: Source, const M: usize> {
    source: S,
    growth: Growth,
    taken: usize,
    /// The parts of the arena. Each part serves one thread.
    parts: *mut Part<M>,
    /// The blocks for threads without a part. Such threads are exiting, or there was no memory for
    /// a part.
    fallback: Blocks<M>,
}

#[repr(C, align(128))] // two cache lines, because processors fetch lines in pairs
struct Part<const M: usize> {
    thread: ThreadPart, // comes first: the thread registry stores its address
    blocks: Blocks<M>,
    next: *mut Part<M>,
    taken: Chunk,
}

// SAFETY: a part is used only by its thread, or with `&mut self`. Everything else is atomic, or
// used under the lock. So one thread at a time uses the source, as `S: Send` allows. Owned values
// are `Send`.
unsafe impl<S: Source + Send, const M: usize> Send for SharedArena<S, M> {}
// SAFETY: the reasons are the same as for `Send`.
unsafe impl<S: Source + Send, const M: usize> Sync for SharedArena<S, M> {}

/// The source, restricted to the bytes that the limit of the whole arena still allows.
struct Limited<'a, S>(&'a S, usize);

// SAFETY: every call is passed to the wrapped source.
unsafe impl<S: Source> Source for Limited<'_, S> {
    fn try_take(&self, layout: Layout) -> Option<Chunk> {
        (layout.size() <= self.1).then(|| self.0.try_take(layout))?
    }
    unsafe fn give(&self, chunk: Chunk) {
        // SAFETY: the caller's guarantee is passed on unchanged.
        unsafe { self.0.give(chunk) }
    }
}

impl SharedArena {
    /// Makes an empty arena, without allocating.
    pub const fn new() -> Self {
        Self::new_in(DefaultHeap)
    }
    /// Makes an empty arena in which the part of each thread grows by the rule `growth`, without
    /// allocating. The limit of `growth` applies to all threads together.
    pub const fn with_growth(growth: Growth) -> Self {
        Self::with_growth_in(growth, DefaultHeap)
    }
}

impl<S: Source> SharedArena<S> {
    /// Makes an empty arena whose chunks come from `source`, without allocating. Only one thread at
    /// a time calls the source.
    pub const fn new_in(source: S) -> Self {
        Self::with_growth_in(GROWTH, source)
    }
    /// Makes an empty arena with a growth rule and a source, without allocating.
    pub const fn with_growth_in(growth: Growth, source: S) -> Self {
        Self::with_min_align_in(growth, source)
    }
}

impl<S: Source, const M: usize> SharedArena<S, M> {
    /// Makes an empty arena with a growth rule and a source, whose blocks begin at multiples of
    /// `MIN_ALIGN`.
    pub const fn with_min_align_in(growth: Growth, source: S) -> Self {
        let fallback = Blocks::new(growth);
        let shared = Shared { source, growth, taken: 0, parts: ptr::null_mut(), fallback };
        Self { key: ThreadKey::new(), owned: SharedFinalizers::new(), shared: Locked::new(shared) }
    }

    /// Frees everything and keeps the memory. O(threads), plus the destructors of owned values.
    pub fn reset(&mut self) {
        self.drop_owned();
        self.shared_mut().each(|blocks, _| blocks.reset());
    }
    /// Frees everything and returns all memory to the source.
    pub fn release(&mut self) {
        let end = ReleaseOnDrop(self);
        end.0.drop_owned();
    }
    /// Returns idle chunks to the source, until each thread's part has at most `keep` idle bytes.
    pub fn trim(&mut self, keep: usize) {
        let (shared, mut given) = (self.shared_mut(), 0);
        shared.each(|blocks, source| {
            given += blocks.taken();
            blocks.trim(source, keep);
            given -= blocks.taken();
        });
        shared.taken -= given;
    }
    /// Returns the sum of the statistics of all threads. Unused bytes at the end of a chunk count
    /// as idle.
    pub fn statistics(&mut self) -> Statistics {
        let shared = self.shared_mut();
        let mut all = Statistics::default();
        shared.each(|blocks, _| all = all + blocks.statistics());
        Statistics { bytes_taken: shared.taken, ..all }
    }
    /// Returns whether `p` points into memory of this arena, used or unused.
    pub fn owns(&mut self, p: *const u8) -> bool {
        let mut found = false;
        self.shared_mut().each(|blocks, _| found |= blocks.owns(p));
        found
    }

    fn drop_owned(&mut self) {
        // SAFETY: `&mut self` proves that nothing borrows the values any more.
        unsafe { self.owned.run() }
    }
    fn shared_mut(&mut self) -> &mut Shared<S, M> {
        self.shared.get_mut()
    }
    /// Locks the state. If the source panics while the lock is held, the state stays valid, because
    /// it is changed only after the source has returned.
    fn lock(&self) -> Held<'_, Shared<S, M>> {
        self.shared.lock()
    }

    /// Returns the blocks of the calling thread. Returns `None` before the thread's first
    /// allocation and while the thread exits.
    #[inline(always)]
    fn own_blocks(&self) -> Option<&Blocks<M>> {
        let part = self.key.find()?.cast::<Part<M>>();
        // SAFETY: the key finds only parts that were made since the last `release`, so the part is
        // alive. The part belongs to this thread until the thread exits.
        Some(unsafe { &(*part.as_ptr()).blocks })
    }

    /// Allocates when the calling thread has no blocks yet, or when its chunk is full.
    #[cold]
    #[inline(never)]
    fn grow(&self, layout: Layout) -> Option<NonNull<u8>> {
        if layout.size() == 0 {
            return Some(dangling(layout)); // a block of size 0 needs no part
        }
        let mut shared = self.lock();
        let part = self.part(&mut shared);
        let Shared { source, growth, taken, fallback, .. } = &mut *shared;
        let blocks = match part {
            // SAFETY: the part is alive, and belongs to the calling thread.
            Some(part) => unsafe { &(*part.as_ptr()).blocks },
            None => fallback,
        };
        blocks.bump(layout).or_else(|| {
            let before = blocks.taken();
            let block = blocks.grow(&Limited(source, growth.limit.saturating_sub(*taken)), layout);
            *taken += blocks.taken() - before;
            block
        })
    }

    /// Returns the part of the calling thread. Reclaims or makes a part if the thread has none.
    fn part(&self, shared: &mut Shared<S, M>) -> Option<NonNull<Part<M>>> {
        if let Some(part) = self.key.find() {
            return Some(part.cast());
        }
        if !self.key.prepare() {
            return None; // the thread is exiting, or there is no memory
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
    /// Finds a part whose thread has exited, so that another thread can reclaim the part.
    fn abandoned_part(&self) -> Option<NonNull<Part<M>>> {
        // SAFETY: parts in the list are alive, and `next` never changes.
        let parts = core::iter::successors(NonNull::new(self.parts), |part| unsafe {
            NonNull::new((*part.as_ptr()).next)
        });
        // SAFETY: parts in the list are alive.
        parts.into_iter().find(|part| unsafe { (*part.as_ptr()).thread.is_abandoned() })
    }

    fn new_part(&mut self) -> Option<NonNull<Part<M>>> {
        let left = self.growth.limit.saturating_sub(self.taken);
        let taken = Limited(&self.source, left).try_take(Layout::new::<Part<M>>())?;
        self.taken += taken.layout.size();
        let part = taken.data.cast::<Part<M>>();
        // SAFETY: the source has just supplied the memory, with the layout of a part.
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

    /// Calls `f` with the blocks of every thread. Requires that no other thread uses the arena.
    fn each(&mut self, mut f: impl FnMut(&mut Blocks<M>, &S)) {
        f(&mut self.fallback, &self.source);
        let mut part = self.parts;
        while !part.is_null() {
            // SAFETY: a part in the list is alive, and the arena is borrowed exclusively.
            unsafe {
                f(&mut (*part).blocks, &self.source);
                part = (*part).next;
            }
        }
    }

    /// Returns all memory to the source. Requires that no other thread uses the arena, and that the
    /// key with which threads find their parts was invalidated.
    fn release(&mut self) {
        self.each(|blocks, source| blocks.release(source));
        let mut part = mem::replace(&mut self.parts, ptr::null_mut());
        self.taken = 0;
        while !part.is_null() {
            // SAFETY: nothing else refers to the part. The part is dropped, and its memory is
            // returned exactly as the source supplied it.
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

#[allow(clippy::mut_from_ref)] // each call returns a separate block
impl<'s, S: Source, const M: usize> SharedArena<S, M> {
    object_methods!('s, &'s Self, Self);
    // Owned values live until the arena frees them, and another thread may free them.
    owning_methods!('s, &'s Self, PinSource, Send + 'static);
}

/// A guard that returns all memory of the arena to its source when the guard is dropped, also if a
/// destructor panics.
struct ReleaseOnDrop<'a, S: Source, const M: usize>(&'a mut SharedArena<S, M>);

impl<S: Source, const M: usize> Drop for ReleaseOnDrop<'_, S, M> {
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
        match self.own_blocks().and_then(Blocks::bump_for::<T, false>) {
            Some(block) => Some(block.cast()),
            None => Some(self.grow(layout)?.cast()),
        }
    }
    #[inline(always)]
    fn try_place_many<T>(&self, layout: Layout) -> Option<NonNull<T>> {
        match self.own_blocks().and_then(|blocks| blocks.bump_many::<T>(layout)) {
            Some(block) => Some(block.cast()),
            None => Some(self.grow(layout)?.cast()),
        }
    }
}

// SAFETY: blocks are disjoint parts of chunks from the source, each used by one thread at a time. A
// block is valid until the arena is dropped or borrowed exclusively.
unsafe impl<S: Source, const M: usize> BlockAllocator for SharedArena<S, M> {
    #[inline(always)]
    fn try_allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        if layout.size() == 0 {
            return Some(dangling(layout));
        }
        match self.own_blocks().and_then(|blocks| blocks.bump(layout)) {
            Some(block) => Some(block),
            None => self.grow(layout),
        }
    }
    /// Frees the block if the calling thread allocated it last. Otherwise does nothing.
    #[inline(always)]
    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
        // The end of another thread's block is never this thread's cursor, because a footer lies
        // between the blocks of two chunks.
        if let Some(blocks) = self.own_blocks() {
            blocks.pop(block, layout.size());
        }
    }
    /// Grows the block that the calling thread allocated last, or shrinks any block.
    #[inline(always)]
    unsafe fn try_expand(&self, block: NonNull<u8>, from: Layout, to: Layout) -> bool {
        match self.own_blocks() {
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
