//! Arenas allocate blocks by moving a pointer, and free all of them together.

pub(crate) mod blocks;
mod boxed;
mod boxed_traits;
mod chunks;
pub(crate) mod finalizers;
pub(crate) mod growing;
pub(crate) mod methods;
pub(crate) mod object_arena;
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
use object_arena::ObjectArena;

/// An arena (bump allocator): allocates blocks by moving a pointer through chunks, and frees all
/// blocks together.
///
/// ```
/// let mut arena = mallard::Arena::new(); // takes no memory yet
/// let node = arena.alloc((1, "one")); // the destructor of this value never runs
/// node.0 += 1;
/// let line = arena.alloc_fmt(format_args!("{} {}", node.0, node.1));
/// assert_eq!(line, "2 one");
/// let list = arena.own(vec![1, 2, 3]); // the destructor of this value runs at the reset
/// let even = arena.alloc_iter(list.iter().filter(|n| **n % 2 == 0));
/// assert_eq!(even, [&2]);
/// arena.reset(); // frees everything and keeps the memory
/// ```
///
/// **Growth.** The first chunk has 1 KiB. Each later chunk is four times as large as the one
/// before, up to 16 MiB. A request that is larger than the next chunk gets a chunk just large
/// enough for the request, and does not enlarge later chunks. Afterwards, the arena continues in
/// the new chunk or in the previous one, whichever has more free bytes. So a large block does not
/// waste the rest of the previous chunk. When the source cannot supply a chunk, the arena requests
/// half the size, then a quarter, and so on down to the size of the request. A [`Growth`] changes
/// these numbers, and can limit the bytes held.
///
/// **Blocks.** Addresses rise, and each block begins where the last one ended, except for
/// alignment. Only the block that was allocated last can be freed or grow in place, unless it is a
/// large block with a separate chunk. A zero-sized value has a dangling address and uses no memory.
/// Every alignment that the source can provide works. `MIN_ALIGN` is a power of two up to 16, and
/// all blocks begin at multiples of `MIN_ALIGN`. A larger `MIN_ALIGN` saves instructions for types
/// that need no larger alignment.
///
/// **Errors.** A function whose name begins with `try_` returns an error if there is no memory. The
/// error contains the value, or the closure that was to make the value. Any other function calls
/// `handle_alloc_error`, which aborts the program. Without the feature `alloc`, such a function
/// panics instead. A failed call changes nothing.
///
/// **Threads.** An arena is `Send` and not `Sync`. `SharedArena` is for several threads.
///
/// The functions have the same names as in the crate `bumpalo`, except that `alloc_iter` does what
/// `alloc_slice_fill_iter` does in `bumpalo`, and also accepts iterators of unknown length.
///
/// ```compile_fail,E0502
/// let mut arena = mallard::Arena::new();
/// let one = arena.alloc(1);
/// arena.reset(); // `one` is still in use
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
/// A pinned value needs memory that stays valid if the arena is leaked. The memory of a borrowed
/// buffer does not stay valid:
/// ```compile_fail,E0597
/// use mallard::{Arena, Buffer};
/// let mut bytes = [std::mem::MaybeUninit::uninit(); 4096];
/// let arena = Arena::new_in(Buffer::new(&mut bytes));
/// arena.own_pin(String::new()); // leak the arena, and the bytes are free
/// ```
#[doc(alias = "bump allocator")]
#[doc(alias = "region")]
#[repr(C)] // the cursor comes first
pub struct Arena<S: Source = DefaultHeap, const MIN_ALIGN: usize = 1> {
    blocks: Blocks<MIN_ALIGN>,
    owned: Finalizers,
    source: S,
}

// SAFETY: the memory of an arena is reachable only through the arena and through values that borrow
// the arena. Values that the arena itself drops are `Send`. Values of a scope are dropped before
// the arena can be sent.
unsafe impl<S: Source + Send, const M: usize> Send for Arena<S, M> {}

/// A position in an arena, for [`Arena::rewind`]. A rewind to a mark makes all later marks stale.
///
/// ```
/// let arena = mallard::Arena::new();
/// let mark = arena.mark();
/// arena.alloc(7);
/// // SAFETY: nothing made after the mark is used any more.
/// unsafe { arena.rewind(mark) };
/// assert_eq!(arena.statistics().bytes_live, 0);
/// ```
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

/// The default growth. Each chunk is four times as large as the one before.
///
/// With a factor of 2, all chunks of an arena together are twice as large as the last chunk. When
/// the chunks are freed together, many heaps return the memory to the system, so the next arena
/// causes page faults again. With a factor of 4, the heap finds the next chunk without a search.
/// See docs/decisions/0023.
pub(crate) const GROWTH: Growth = Growth { first: 1024, max: 1 << 24, num: 4, ..Growth::new() };

impl Arena {
    /// Makes an empty arena, without allocating.
    #[inline]
    pub const fn new() -> Self {
        Self::new_in(DefaultHeap)
    }
    /// Makes an empty arena that grows by the rule `growth`, without allocating.
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
    /// Makes an arena with a chunk that has room for `bytes`. Aborts if there is no memory.
    pub fn with_capacity(bytes: usize) -> Self {
        let arena = Self::new();
        arena.reserve(bytes);
        arena
    }
}

impl<S: Source> Arena<S> {
    /// Makes an empty arena whose chunks come from `source`, without allocating.
    ///
    /// ```
    /// use mallard::{Arena, AsSource, Multipool};
    /// let arena = Arena::new_in(AsSource(Multipool::new())); // chunks are blocks of a multipool
    /// assert_eq!(*arena.alloc(7), 7);
    /// ```
    pub const fn new_in(source: S) -> Self {
        Self::with_growth_in(GROWTH, source)
    }
    /// Makes an empty arena with a growth rule and a source, without allocating.
    pub const fn with_growth_in(growth: Growth, source: S) -> Self {
        Self::with_min_align_in(growth, source)
    }
}

impl<const M: usize> Arena<DefaultHeap, M> {
    /// Makes an empty arena whose blocks begin at multiples of `MIN_ALIGN`, without allocating.
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
    /// Makes an empty arena with a growth rule and a source, whose blocks begin at multiples of
    /// `MIN_ALIGN`.
    pub const fn with_min_align_in(growth: Growth, source: S) -> Self {
        Self { blocks: Blocks::new(growth), owned: Finalizers::new(), source }
    }

    /// Makes room for `bytes` more in one chunk, not counting alignment. Aborts if there is no
    /// memory.
    pub fn reserve(&self, bytes: usize) {
        if self.try_reserve(bytes).is_err() {
            objects::no_memory_for::<u8>(bytes);
        }
    }
    /// Makes room for `bytes` more in one chunk, not counting alignment.
    pub fn try_reserve(&self, bytes: usize) -> Result<(), Full> {
        if bytes > self.blocks.room() {
            let layout = Layout::array::<u8>(bytes).map_err(|_| Full::no_memory(()))?;
            let block = self.grow(layout).ok_or(Full::no_memory(()))?;
            self.blocks.pop(block, bytes);
        }
        Ok(())
    }

    /// Runs `f` with a [`Scope`], and then frees everything made in the scope. Keeps the memory.
    pub fn scope<'env, R>(
        &'env mut self,
        f: impl for<'s> FnOnce(&'s mut Scope<'s, 'env, S, M>) -> R,
    ) -> R {
        scope::run(self, f)
    }
    /// Opens a scope that ends when the returned guard is dropped. Use a guard where a closure does
    /// not fit.
    pub fn guard(&mut self) -> Guard<'_, S, M> {
        Guard::new(self)
    }

    /// Returns the current position, for [`rewind`](Self::rewind).
    #[inline(always)]
    pub fn mark(&self) -> Mark {
        Mark { position: self.blocks.position(), owned: self.owned.newest() }
    }
    /// Frees everything allocated after `mark`, and keeps the memory. If an older block has grown
    /// in place since the mark, the added bytes are freed too. The time is constant if the mark is
    /// in the current chunk, and otherwise O(chunks), plus the time for the destructors of owned
    /// values. If the arena had no memory at `mark`, the call is a reset.
    ///
    /// ```
    /// let arena = mallard::Arena::new();
    /// let kept = arena.alloc(1);
    /// let mark = arena.mark();
    /// arena.alloc(2);
    /// // SAFETY: nothing made after the mark is used any more.
    /// unsafe { arena.rewind(mark) };
    /// assert_eq!((*kept, arena.statistics().bytes_live), (1, 4));
    /// ```
    ///
    /// # Safety
    /// `mark` is from this arena, and since `mark` was made the arena was not reset, released, or
    /// rewound to an older mark. Nothing that was made after the mark is used any more, and owned
    /// values do not use each other while they are dropped.
    #[inline(always)]
    pub unsafe fn rewind(&self, mark: Mark) {
        // SAFETY: the caller guarantees what both calls require.
        unsafe {
            self.owned.run_until(mark.owned);
            self.blocks.rewind(mark.position);
        }
    }

    /// Frees everything and keeps all memory. The time is constant, plus the time for the
    /// destructors of owned values. The arena continues in its newest chunk, which is the largest,
    /// unless a request was so large that it got a separate chunk.
    #[inline]
    pub fn reset(&mut self) {
        self.drop_owned();
        self.blocks.reset();
    }
    /// Frees everything and returns all memory to the source.
    pub fn release(&mut self) {
        let end = ReleaseOnDrop(self);
        end.0.drop_owned();
    }
    /// Returns idle chunks to the source, oldest first, until at most `keep` idle bytes are left.
    /// Used chunks stay.
    pub fn trim(&mut self, keep: usize) {
        self.blocks.trim(&self.source, keep);
    }

    #[inline(always)]
    fn drop_owned(&mut self) {
        // SAFETY: `&mut self` proves that nothing borrows the values any more.
        unsafe { self.owned.run_until(ptr::null_mut()) }
    }

    /// Returns the statistics of the arena. Unused bytes at the end of a chunk count as idle.
    /// O(chunks).
    pub fn statistics(&self) -> Statistics {
        self.blocks.statistics()
    }
    /// Returns the used bytes of each chunk, in the order in which the chunks came into use.
    ///
    /// If every value in the arena has the same type, the values are adjacent. Between values of
    /// different types there may be padding, freed blocks, and the list entries of owned values.
    pub fn allocated_chunks(&mut self) -> impl Iterator<Item = &[MaybeUninit<u8>]> {
        // SAFETY: the bytes are in a chunk, and `&mut self` proves that nothing borrows them.
        self.blocks.filled().map(|bytes| unsafe { &*bytes.as_ptr() })
    }
    /// Returns the source of the chunks.
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
    /// Allocates a block when the current chunk is full. `extern "C"` tells the compiler that no
    /// panic unwinds out of this function.
    #[cold]
    #[inline(never)]
    #[allow(improper_ctypes_definitions)] // never called from C
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
    fn arena(&self) -> &Self {
        self
    }
    #[inline(always)]
    fn finalizers(&self) -> &Finalizers {
        &self.owned
    }
}

#[allow(clippy::mut_from_ref)] // each call returns a separate block
impl<'s, S: Source, const M: usize> Arena<S, M> {
    object_methods!('s, &'s Self, Self);
    // The borrow checker does not know when the arena drops owned values, so they must be
    // `'static`. Another thread may drop them, so they must be `Send`.
    owning_methods!('s, &'s Self, PinSource, Send + 'static);
}

/// A guard that returns all memory of the arena to its source when the guard is dropped, also if a
/// destructor panics.
struct ReleaseOnDrop<'a, S: Source, const M: usize>(&'a mut Arena<S, M>);

impl<S: Source, const M: usize> Drop for ReleaseOnDrop<'_, S, M> {
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

impl<S: Source, const M: usize> ObjectArena for Arena<S, M> {
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

// SAFETY: blocks are disjoint parts of chunks from the source. A block is valid until the arena is
// dropped or borrowed exclusively.
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
    /// Frees the block that was allocated last, unless it is a large block with a separate chunk.
    /// Does nothing for any other block.
    #[inline(always)]
    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
        self.blocks.pop(block, layout.size());
    }
    /// Grows the last block while its chunk has room. Every block can shrink. If the last block
    /// shrinks, the bytes after the block become free.
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

// SAFETY: the blocks of an arena lie in its chunks, and these belong to no other allocator.
unsafe impl<S: Source, const M: usize> Owns for Arena<S, M> {
    fn owns(&self, p: *const u8) -> bool {
        self.blocks.owns(p)
    }
}

// SAFETY: a block of an arena fulfils what `Source` guarantees for a chunk. A block keeps its
// address when the arena is moved, because the state of the arena is not in the chunks.
unsafe impl<S: Source, const M: usize> Source for Arena<S, M> {
    fn try_take(&self, layout: Layout) -> Option<Chunk> {
        Some(Chunk { data: self.try_allocate(layout)?, layout })
    }
    unsafe fn give(&self, chunk: Chunk) {
        // SAFETY: the chunk is a block that was allocated with this layout.
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
