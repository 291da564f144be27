//! Sources of chunks: the heap, a buffer of the caller, an empty source, or another allocator.

use crate::base::allocator::{BlockAllocator, Owns};
use crate::base::bits::dangling;
use core::alloc::Layout;
use core::cell::Cell;
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ptr::NonNull;

/// A piece of memory from a source. A chunk is returned with the address and layout with which the
/// source supplied it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// The first byte, with the alignment in `layout`.
    pub data: NonNull<u8>,
    /// The real size, which is at least the requested size, and the requested alignment.
    pub layout: Layout,
}

/// Supplies chunks, which allocators cut into blocks. Also known as an upstream or backing
/// allocator.
///
/// ```
/// use mallard::{Arena, Chunk, DefaultHeap, Source};
/// use std::{alloc::Layout, cell::Cell};
///
/// /// The heap, and how many chunks were taken from it.
/// #[derive(Default)]
/// struct CountedHeap(Cell<usize>);
/// // SAFETY: chunks are those of the heap.
/// unsafe impl Source for CountedHeap {
///     fn try_take(&self, layout: Layout) -> Option<Chunk> {
///         self.0.set(self.0.get() + 1);
///         DefaultHeap.try_take(layout)
///     }
///     unsafe fn give(&self, chunk: Chunk) {
///         // SAFETY: the chunk is from the heap.
///         unsafe { DefaultHeap.give(chunk) }
///     }
/// }
/// let arena = Arena::new_in(CountedHeap::default());
/// arena.alloc(1);
/// assert_eq!(arena.source().0.get(), 1);
/// ```
///
/// # Safety
/// A chunk is aligned memory that nothing else uses, at least as large as requested. A chunk keeps
/// its address until the chunk is returned or the source is dropped, even if the source is moved.
#[doc(alias = "upstream")]
pub unsafe trait Source {
    /// Allocates a chunk. Returns `None` if the source is exhausted. Allocators request at least 1
    /// byte.
    fn try_take(&self, layout: Layout) -> Option<Chunk>;

    /// Returns a chunk to the source.
    ///
    /// # Safety
    /// `chunk` is exactly a chunk that this source supplied, and was not returned since.
    unsafe fn give(&self, chunk: Chunk);

    /// Returns the number of bytes that no chunk uses, if the source can supply only a fixed number
    /// of bytes, as a [`Buffer`] does. Pools and slot maps call this function before they request
    /// their first memory. If the source may have too few bytes, depending on its address, they
    /// request no memory, and return an error with the number of missing bytes.
    fn bytes_left(&self) -> Option<usize> {
        None
    }

    /// Returns whether `try_take` may panic. If this function returns `false` and `try_take` panics
    /// nevertheless, the program may abort.
    ///
    /// If the result is `false`, the compiler may keep the caller's variables in registers, because
    /// nothing unwinds through the call. For example, a push to a `Vec` in an arena then takes 0.35
    /// ns instead of 0.96 ns (with `codegen-units = 1`).
    #[inline(always)]
    fn may_panic(&self) -> bool {
        true
    }
}

/// The program's global allocator, as a source. Needs the feature `alloc`. Without this feature,
/// `DefaultHeap` is another name of [`Null`].
///
/// ```
/// use mallard::{DefaultHeap, Multipool};
/// let pool = Multipool::new_in(DefaultHeap); // the same as Multipool::new()
/// # let _ = pool;
/// ```
#[cfg(feature = "alloc")]
#[derive(Clone, Copy, Debug, Default)]
pub struct DefaultHeap;

#[cfg(feature = "alloc")]
// SAFETY: nothing but the caller uses a block of the global allocator until the block is deallocated.
unsafe impl Source for DefaultHeap {
    #[inline]
    fn try_take(&self, layout: Layout) -> Option<Chunk> {
        if layout.size() == 0 {
            return None; // the global allocator has no blocks of size 0
        }
        // SAFETY: the size is not 0.
        let data = NonNull::new(unsafe { alloc::alloc::alloc(layout) })?;
        Some(Chunk { data, layout })
    }
    #[inline]
    unsafe fn give(&self, chunk: Chunk) {
        // SAFETY: the chunk is from `try_take`, with this layout.
        unsafe { alloc::alloc::dealloc(chunk.data.as_ptr(), chunk.layout) }
    }
    #[inline(always)]
    fn may_panic(&self) -> bool {
        false
    }
}

/// Another name of [`Null`], for builds without the feature `alloc`.
#[cfg(not(feature = "alloc"))]
pub use Null as DefaultHeap;

/// A source without memory. An allocator over this source is always full.
///
/// ```
/// use mallard::{BlockAllocator, Multipool, Null};
/// let full = Multipool::new_in(Null);
/// assert!(full.try_allocate(std::alloc::Layout::new::<u64>()).is_none());
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Null;

// SAFETY: the source `Null` returns no chunks.
unsafe impl Source for Null {
    fn try_take(&self, _: Layout) -> Option<Chunk> {
        None
    }
    unsafe fn give(&self, _: Chunk) {}
    #[inline(always)]
    fn may_panic(&self) -> bool {
        false
    }
}

/// A source whose chunks are in a buffer of the caller. Chunks come from the front of the buffer.
/// When the newest chunk is returned, its bytes can be used again. The bytes of any other returned
/// chunk stay unusable.
///
/// ```
/// use core::mem::MaybeUninit;
/// use mallard::{Arena, Buffer};
/// let mut bytes = [MaybeUninit::<u8>::uninit(); 1024];
/// let arena = Arena::new_in(Buffer::new(&mut bytes)); // an arena on the stack
/// assert_eq!(*arena.alloc(7), 7);
/// ```
#[derive(Debug)]
pub struct Buffer<'b> {
    begin: *const u8,
    cursor: Cell<*mut u8>,
    end: *mut u8,
    bytes: PhantomData<&'b mut [MaybeUninit<u8>]>,
}

// SAFETY: a buffer has exclusive use of its bytes, like the `&mut` that it was made from.
unsafe impl Send for Buffer<'_> {}

impl<'b> Buffer<'b> {
    /// Makes a source that uses `bytes`.
    pub fn new(bytes: &'b mut [MaybeUninit<u8>]) -> Self {
        let range = bytes.as_mut_ptr_range();
        let begin = range.start.cast::<u8>();
        Self { begin, cursor: Cell::new(begin), end: range.end.cast(), bytes: PhantomData }
    }

    /// Returns the number of bytes that no chunk uses. Alignment may make some of these bytes
    /// unusable.
    pub fn left(&self) -> usize {
        self.end.addr() - self.cursor.get().addr()
    }
}

// SAFETY: a chunk lies between two positions of the cursor, in bytes that outlive the buffer.
unsafe impl Source for Buffer<'_> {
    fn try_take(&self, layout: Layout) -> Option<Chunk> {
        let cursor = self.cursor.get();
        let skipped = cursor.addr().wrapping_neg() & (layout.align() - 1);
        if skipped > self.left() || layout.size() > self.left() - skipped {
            return None;
        }
        // SAFETY: the test above keeps the sum within the bytes of the buffer.
        let data = unsafe { cursor.add(skipped) };
        // SAFETY: the test above keeps the sum within the bytes of the buffer.
        self.cursor.set(unsafe { data.add(layout.size()) });
        Some(Chunk { data: NonNull::new(data)?, layout })
    }
    unsafe fn give(&self, chunk: Chunk) {
        let data = chunk.data.as_ptr();
        if data.wrapping_add(chunk.layout.size()) == self.cursor.get() {
            self.cursor.set(data);
        }
    }
    fn bytes_left(&self) -> Option<usize> {
        Some(self.left())
    }
    #[inline(always)]
    fn may_panic(&self) -> bool {
        false
    }
}

// SAFETY: all chunks lie in the bytes, which are borrowed exclusively.
unsafe impl Owns for Buffer<'_> {
    fn owns(&self, p: *const u8) -> bool {
        p >= self.begin && p < self.end
    }
}

/// Returns how many more bytes a buffer needs for a block of `bytes` bytes aligned to `align`,
/// wherever the buffer begins. The result is at most `u32::MAX`, and 0 for other sources.
///
/// An allocator requests no memory from a buffer that may be too small for the first element.
/// Otherwise the address of the buffer, which may differ from run to run, would decide whether the
/// buffer is large enough.
pub(crate) fn bytes_missing(source: &impl Source, bytes: usize, align: usize) -> u32 {
    let left = source.bytes_left().unwrap_or(usize::MAX);
    let missing = bytes.saturating_add(align - 1).saturating_sub(left);
    missing.try_into().unwrap_or(u32::MAX)
}

// SAFETY: a block of an allocator fulfils what `Source` guarantees of a chunk.
unsafe impl<A: BlockAllocator + ?Sized> Source for &A {
    #[inline]
    fn try_take(&self, layout: Layout) -> Option<Chunk> {
        Some(Chunk { data: self.try_allocate(layout)?, layout })
    }
    #[inline]
    unsafe fn give(&self, chunk: Chunk) {
        // SAFETY: the chunk is a block that was allocated with this layout.
        unsafe { self.deallocate(chunk.data, chunk.layout) }
    }
}

// SAFETY: `Null` allocates only blocks of size 0, which have no memory.
unsafe impl BlockAllocator for Null {
    fn try_allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        (layout.size() == 0).then(|| dangling(layout))
    }
    unsafe fn deallocate(&self, _: NonNull<u8>, _: Layout) {}
}

#[cfg(feature = "alloc")]
// SAFETY: a chunk of the heap is exactly as large as requested, so `deallocate` can compute the
// layout of the chunk.
unsafe impl BlockAllocator for DefaultHeap {
    #[inline]
    fn try_allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        if layout.size() == 0 {
            return Some(dangling(layout));
        }
        Some(self.try_take(layout)?.data)
    }
    #[inline]
    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
        if layout.size() != 0 {
            // SAFETY: `try_take` returned this chunk for this layout.
            unsafe { self.give(Chunk { data: block, layout }) }
        }
    }
}

/// A source whose chunks stay valid until they are returned, even if the source and the allocator
/// over it are leaked. Pinned objects need such a source, because a pinned object that is leaked
/// with its pool keeps its memory for ever.
///
/// # Safety
/// No chunk is reused or unmapped unless it was returned.
#[doc(alias = "pin")]
pub unsafe trait PinSource: Source {}

// SAFETY: the heap reuses a block only after it was deallocated.
unsafe impl PinSource for DefaultHeap {}
// SAFETY: a `'static` borrow never ends, so nothing else uses the bytes.
unsafe impl PinSource for Buffer<'static> {}
