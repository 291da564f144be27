//! Blocks by moving a cursor; everything dies at once.

pub(crate) mod blocks;
mod boxed;
mod boxed_traits;
mod chunks;
pub(crate) mod finalizers;
pub(crate) mod growing;
pub(crate) mod methods;
pub(crate) mod objects;
mod scope;

pub use boxed::Box;
#[doc(hidden)]
pub use boxed::InArena;
pub use boxed_traits::IntoIter;
pub use scope::{Guard, Scope};

use crate::base::allocator::{BlockAllocator, Owns};
use crate::base::bits::{dangling, out_of_memory};
use crate::base::resettable::resettable;
use crate::base::source::PinSource;
use crate::{Cause, Chunk, DefaultHeap, Full, Growth, Source, Statistics};
use blocks::{Blocks, Position};
use core::alloc::Layout;
use core::fmt;
use core::mem::MaybeUninit;
use core::ptr::{self, NonNull};
use finalizers::{Entry, Finalizers, Owned};
use methods::{object_methods, owning_methods};
use objects::Home;

/// Gives blocks by moving a cursor through a chunk; frees them all together.
///
/// ```
/// let mut arena = mallard::Arena::new(); // takes nothing
/// let node = arena.alloc((1, "one")); // its destructor never runs
/// node.0 += 1;
/// let line = arena.alloc_fmt(format_args!("{} {}", node.0, node.1));
/// assert_eq!(line, "2 one");
/// let list = arena.own(vec![1, 2, 3]); // its destructor will
/// let even = arena.alloc_iter(list.iter().filter(|n| **n % 2 == 0));
/// assert_eq!(even, [&2]);
/// arena.reset(); // all gone, memory kept
/// ```
///
/// Takes 1 KiB for the first block, then four times as much each, to 16 MiB. A request too big
/// for the next step gets a chunk of its own size; the chunk with more room left stays current,
/// so one large table neither wastes the rest of a chunk nor inflates later ones. A step that the
/// source refuses is halved, down to the request itself. A [`Growth`] says otherwise, and limits
/// what is held.
///
/// Blocks rise from low addresses to high, each beginning where the last one ended, but for
/// alignment. A block that is given back is free if it was the last one; the last one also
/// grows in place. A value of no size is dangling and costs nothing; alignment is honoured, to
/// whatever the source can give. With `MIN_ALIGN`, a power of two to 16, blocks begin at
/// multiples of it, which saves instructions for those that need no more.
///
/// Names are as in `bumpalo`, but for iterators: `alloc_iter` does what `alloc_slice_fill_iter`
/// does, and knows no length.
///
/// Functions that begin with `try_` give the value, or its maker, back when memory is refused;
/// the others end the program then. A failed call has changed nothing. One thread at a time: an
/// arena can be sent, not shared; see `SharedArena`.
///
/// ```compile_fail,E0502
/// let mut arena = mallard::Arena::new();
/// let one = arena.alloc(1);
/// arena.reset(); // `one` is still used
/// *one = 2;
/// ```
/// ```compile_fail,E0505
/// let arena = mallard::Arena::new();
/// let one = arena.alloc(1);
/// drop(arena);
/// *one = 2;
/// ```
/// ```compile_fail,E0277
/// let arena = mallard::Arena::new();
/// std::thread::scope(|s| {
///     s.spawn(|| arena.alloc(1));
/// });
/// ```
/// A pinned value needs memory that stays when the arena is forgotten, and a caller's bytes do not
/// stay:
/// ```compile_fail,E0597
/// use mallard::{Arena, Buffer};
/// let mut bytes = [std::mem::MaybeUninit::uninit(); 4096];
/// let arena = Arena::new_in(Buffer::new(&mut bytes));
/// arena.own_pin(String::new()); // forget the arena, and the bytes are free
/// ```
#[repr(C)] // the cursor first
pub struct Arena<S: Source = DefaultHeap, const MIN_ALIGN: usize = 1> {
    blocks: Blocks<MIN_ALIGN>,
    owned: Finalizers,
    source: S,
}

// SAFETY: its memory is its own, reached through it and what borrows it alone. What it drops by
// itself is `Send`, but for what a scope owns, which is gone when the arena can be sent.
unsafe impl<S: Source + Send, const M: usize> Send for Arena<S, M> {}

/// A point to come back to, of one arena. Marks nest: rewind the newest first.
#[derive(Clone, Copy)]
pub struct Mark {
    position: Position,
    owned: *mut Entry,
}

impl fmt::Debug for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mark").finish_non_exhaustive()
    }
}

/// By four, since all steps of an arena that doubles are as much as twice the last, and when
/// so much is free many heaps let the system have it; from what they find without a search: see
/// docs/decisions/0023.
pub(crate) const GROWTH: Growth = Growth { first: 1024, max: 1 << 24, num: 4, ..Growth::new() };

impl Arena {
    /// Takes nothing.
    #[inline]
    pub const fn new() -> Self {
        Self::new_in(DefaultHeap)
    }
    /// Grows as `growth` says, and never beyond its limit. Takes nothing.
    ///
    /// ```
    /// use mallard::{Arena, Growth};
    /// let small = Arena::with_growth(Growth::new().limit(10_000));
    /// assert!(small.try_alloc_uninit_slice::<u8>(8_000).is_ok());
    /// assert!(small.try_alloc_uninit_slice::<u8>(8_000).is_err());
    /// ```
    pub const fn with_growth(growth: Growth) -> Self {
        Self::with_growth_in(growth, DefaultHeap)
    }
    /// Takes a chunk with room for `bytes` now; without memory the program ends.
    pub fn with_capacity(bytes: usize) -> Self {
        let arena = Self::new();
        arena.reserve(bytes);
        arena
    }
}

impl<S: Source> Arena<S> {
    /// Chunks come from `source`. Takes nothing.
    pub const fn new_in(source: S) -> Self {
        Self::with_growth_in(GROWTH, source)
    }
    /// Grows as `growth` says, from `source`. Takes nothing.
    pub const fn with_growth_in(growth: Growth, source: S) -> Self {
        Self::with_min_align_in(growth, source)
    }
}

impl<const M: usize> Arena<DefaultHeap, M> {
    /// Blocks begin at multiples of `MIN_ALIGN`. Takes nothing.
    ///
    /// ```
    /// let words = mallard::Arena::<_, 8>::with_min_align();
    /// let (a, b) = (words.alloc(1_u8), words.alloc(2_u8));
    /// assert_eq!(&raw const *b as usize - &raw const *a as usize, 8);
    /// ```
    pub const fn with_min_align() -> Self {
        Self::with_min_align_in(GROWTH, DefaultHeap)
    }
}

impl<S: Source, const M: usize> Arena<S, M> {
    /// Blocks begin at multiples of `MIN_ALIGN`; growth and source are one's own.
    pub const fn with_min_align_in(growth: Growth, source: S) -> Self {
        Self { blocks: Blocks::new(growth), owned: Finalizers::new(), source }
    }

    /// Takes what is needed for `bytes` more without another chunk, alignment aside.
    pub fn reserve(&self, bytes: usize) {
        if self.try_reserve(bytes).is_err() {
            objects::refuse::<u8>(bytes);
        }
    }
    /// Takes what is needed for `bytes` more without another chunk, alignment aside.
    pub fn try_reserve(&self, bytes: usize) -> Result<(), Full> {
        if bytes > self.blocks.room() {
            let layout = Layout::array::<u8>(bytes).map_err(|_| Full::no_memory(()))?;
            let block = self.grow(layout).ok_or(Full::no_memory(()))?;
            self.blocks.pop(block, bytes);
        }
        Ok(())
    }

    /// Runs `f` with a [`Scope`], all of which is free afterwards. The memory is kept.
    pub fn scope<'env, R>(
        &'env mut self,
        f: impl for<'s> FnOnce(&'s mut Scope<'s, 'env, S, M>) -> R,
    ) -> R {
        scope::run(self, f)
    }
    /// A scope that ends when the guard goes.
    pub fn guard(&mut self) -> Guard<'_, S, M> {
        Guard::new(self)
    }

    /// Where the arena is now, to come back to.
    #[inline(always)]
    pub fn mark(&self) -> Mark {
        Mark { position: self.blocks.position(), owned: self.owned.newest() }
    }
    /// Frees all that came after `mark`, and keeps the memory. What an older block gained in
    /// place since then came after, too. O(1) while the chunk is the same, but for owned values; else
    /// O(chunks). To a mark from before there was any memory, this is a reset.
    ///
    /// # Safety
    /// `mark` is of this arena, and was not passed by a reset, a release or a rewind to an older
    /// mark. Nothing that came after it is used any more, nor do values that are owned use
    /// each other when they are dropped.
    #[inline(always)]
    pub unsafe fn rewind(&self, mark: Mark) {
        // SAFETY: as was promised.
        unsafe {
            self.owned.run_until(mark.owned);
            self.blocks.rewind(mark.position);
        }
    }

    /// Frees everything and keeps all memory; O(1), but for owned values. Begins again in the
    /// newest chunk, the largest but for requests above a step.
    #[inline]
    pub fn reset(&mut self) {
        self.drop_owned();
        self.blocks.reset();
    }
    /// Frees everything and gives all memory back to the source.
    pub fn release(&mut self) {
        let end = End(self);
        end.0.drop_owned();
    }
    /// Gives idle chunks back, the oldest first, until at most `keep` bytes of them are left.
    /// What is in use is not touched.
    pub fn trim(&mut self, keep: usize) {
        self.blocks.trim(&self.source, keep);
    }

    #[inline(always)]
    fn drop_owned(&mut self) {
        // SAFETY: what is borrowed of this ended before it was borrowed exclusively.
        unsafe { self.owned.run_until(ptr::null_mut()) }
    }

    /// What is held. Bytes left behind at the end of a chunk are idle. O(chunks).
    pub fn statistics(&self) -> Statistics {
        self.blocks.statistics()
    }
    /// What is in use of each chunk, the one that came into use first first.
    ///
    /// In an arena where every value had the same type they lie side by side. What alignment
    /// skipped, what was given back but was not last, and entries of owned values lie between.
    pub fn allocated_chunks(&mut self) -> impl Iterator<Item = &[MaybeUninit<u8>]> {
        // SAFETY: within a chunk, borrowed as this is; nothing is borrowed of it otherwise.
        self.blocks.filled().map(|bytes| unsafe { &*bytes.as_ptr() })
    }
    /// Where chunks come from.
    pub fn source(&self) -> &S {
        &self.source
    }

    #[inline(always)]
    fn grow(&self, layout: Layout) -> Option<NonNull<u8>> {
        match self.source.may_panic() {
            true => self.grow_or_panic(layout),
            false => self.grow_without_panic(layout),
        }
    }
    #[cold]
    #[inline(never)]
    fn grow_or_panic(&self, layout: Layout) -> Option<NonNull<u8>> {
        self.blocks.grow(&self.source, layout)
    }
    /// Of this ABI since it says to the compiler that nothing unwinds.
    #[cold]
    #[inline(never)]
    #[allow(improper_ctypes_definitions)] // called from here alone
    extern "C" fn grow_without_panic(&self, layout: Layout) -> Option<NonNull<u8>> {
        self.blocks.grow(&self.source, layout)
    }
    #[cold]
    #[inline(never)]
    fn grow_or_end(&self, layout: Layout) -> NonNull<u8> {
        match self.blocks.grow(&self.source, layout) {
            Some(block) => block,
            None => out_of_memory(layout),
        }
    }
    #[inline(always)]
    fn home(&self) -> &Self {
        self
    }
    #[inline(always)]
    fn finalizers(&self) -> &Finalizers {
        &self.owned
    }
}

#[allow(clippy::mut_from_ref)] // each call has a block of its own
impl<'s, S: Source, const M: usize> Arena<S, M> {
    object_methods!('s, &'s Self, Self);
    // Until the arena forgets them, which no borrow says when, and may be in another thread.
    owning_methods!('s, &'s Self, PinSource, Send + 'static);
}

/// Gives all memory back when what may panic is done.
struct End<'a, S: Source, const M: usize>(&'a mut Arena<S, M>);

impl<S: Source, const M: usize> Drop for End<'_, S, M> {
    #[inline]
    fn drop(&mut self) {
        self.0.blocks.release(&self.0.source);
    }
}

impl<S: Source, const M: usize> Drop for Arena<S, M> {
    #[inline]
    fn drop(&mut self) {
        self.release();
    }
}

impl<S: Source, const M: usize> Home for Arena<S, M> {
    #[inline(always)]
    fn try_place<T>(&self) -> Option<NonNull<T>> {
        let layout = Layout::new::<T>();
        if size_of::<T>() == 0 {
            return Some(dangling(layout).cast());
        }
        match self.blocks.bump_for::<T, false>() {
            Some(block) => Some(block.cast()),
            None => Some(self.grow(layout)?.cast()),
        }
    }
    #[inline(always)]
    fn try_place_many<T>(&self, layout: Layout) -> Option<NonNull<T>> {
        match self.blocks.bump_many::<T>(layout) {
            Some(block) => Some(block.cast()),
            None => Some(self.grow(layout)?.cast()),
        }
    }
}

// SAFETY: blocks are cut from chunks of the source, one after the other, and end with the arena
// or when it is borrowed exclusively.
unsafe impl<S: Source, const M: usize> BlockAllocator for Arena<S, M> {
    #[inline(always)]
    fn try_allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        if layout.size() == 0 {
            return Some(dangling(layout));
        }
        match self.blocks.bump(layout) {
            Some(block) => Some(block),
            None => self.grow(layout),
        }
    }
    /// Frees the last block; otherwise does nothing.
    #[inline(always)]
    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
        self.blocks.pop(block, layout.size());
    }
    /// Grows the last block while its chunk has room. Shrinking is always possible, and frees
    /// what is cut off if the block is the last.
    #[inline(always)]
    unsafe fn try_expand(&self, block: NonNull<u8>, from: Layout, to: Layout) -> bool {
        self.blocks.expand(block, from, to)
    }
    #[inline(always)]
    fn allocate(&self, layout: Layout) -> NonNull<u8> {
        if layout.size() == 0 {
            return dangling(layout);
        }
        match self.blocks.bump(layout) {
            Some(block) => block,
            None => self.grow_or_end(layout),
        }
    }
}

// SAFETY: its blocks lie in its chunks, which are nobody else's.
unsafe impl<S: Source, const M: usize> Owns for Arena<S, M> {
    fn owns(&self, p: *const u8) -> bool {
        self.blocks.owns(p)
    }
}

// SAFETY: a block is a chunk that keeps its promises: it stays where it is when the arena, which
// keeps its state beside the chunks, is moved.
unsafe impl<S: Source, const M: usize> Source for Arena<S, M> {
    fn try_take(&self, layout: Layout) -> Option<Chunk> {
        Some(Chunk { data: self.try_allocate(layout)?, layout })
    }
    unsafe fn give(&self, chunk: Chunk) {
        // SAFETY: it is a block of this layout.
        unsafe { self.deallocate(chunk.data, chunk.layout) }
    }
}

impl<S: Source + Default, const M: usize> Default for Arena<S, M> {
    fn default() -> Self {
        Self::with_min_align_in(GROWTH, S::default())
    }
}

impl<S: Source, const M: usize> fmt::Debug for Arena<S, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Arena").field(&self.statistics()).finish()
    }
}

resettable!([S: Source, const M: usize] Arena<S, M>, reset);
