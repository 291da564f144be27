//! Where chunks come from: the heap, a caller's bytes, nothing, another allocator.

use crate::base::allocator::{BlockAllocator, Owning};
use core::alloc::Layout;
use core::cell::Cell;
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ptr::NonNull;

/// What a source gives. `give` gets exactly what `try_take` gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Its first byte, aligned as `layout` says.
    pub data: NonNull<u8>,
    /// Its size, at least what was asked for, and the alignment that was asked for.
    pub layout: Layout,
}

/// Gives chunks, which allocators cut into blocks.
///
/// # Safety
/// A chunk is memory that nobody else uses, aligned, at least as large as was asked, and stays
/// where it is, wherever the source is moved, until it is given back or the source ends.
pub unsafe trait Source {
    /// A chunk, or `None` when there is none. Allocators ask for a byte or more.
    fn try_take(&self, layout: Layout) -> Option<Chunk>;

    /// Takes a chunk back.
    ///
    /// # Safety
    /// `chunk` is what this source gave, and was not given back since.
    unsafe fn give(&self, chunk: Chunk);

    /// Whether `try_take` may panic. Where it never does, a caller's loop keeps in registers what
    /// else it would write back for whoever unwinds: a push to a `Vec` in an arena, compiled with
    /// `codegen-units = 1`, takes 0.35 ns instead of 0.96. Should it do so nevertheless, the program
    /// may end.
    #[inline(always)]
    fn may_panic(&self) -> bool {
        true
    }
}

/// The global allocator of the program. Needs the feature `alloc`; without it this is [`Null`].
#[cfg(feature = "alloc")]
#[derive(Clone, Copy, Debug, Default)]
pub struct DefaultHeap;

#[cfg(feature = "alloc")]
// SAFETY: what the global allocator gives is the caller's until it is given back.
unsafe impl Source for DefaultHeap {
    #[inline]
    fn try_take(&self, layout: Layout) -> Option<Chunk> {
        if layout.size() == 0 {
            return None; // of which the global allocator has no blocks
        }
        // SAFETY: the size is not 0.
        let data = NonNull::new(unsafe { alloc::alloc::alloc(layout) })?;
        Some(Chunk { data, layout })
    }
    #[inline]
    unsafe fn give(&self, chunk: Chunk) {
        // SAFETY: it is from `try_take`, with this layout.
        unsafe { alloc::alloc::dealloc(chunk.data.as_ptr(), chunk.layout) }
    }
    #[inline(always)]
    fn may_panic(&self) -> bool {
        false
    }
}

/// The global allocator of the program. Needs the feature `alloc`; without it this is [`Null`].
#[cfg(not(feature = "alloc"))]
pub use Null as DefaultHeap;

/// Gives nothing: turns any allocator into one that is full.
#[derive(Clone, Copy, Debug, Default)]
pub struct Null;

// SAFETY: it gives nothing.
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

/// The caller's bytes, from first to last. What is given back comes again only if it was
/// the last that was taken.
///
/// ```
/// use core::mem::MaybeUninit;
/// let mut bytes = [MaybeUninit::<u8>::uninit(); 1024];
/// let buffer = mallard::Buffer::new(&mut bytes);
/// # let _ = buffer;
/// ```
#[derive(Debug)]
pub struct Buffer<'b> {
    begin: *const u8,
    cursor: Cell<*mut u8>,
    end: *mut u8,
    bytes: PhantomData<&'b mut [MaybeUninit<u8>]>,
}

// SAFETY: it has the bytes to itself, as the `&mut` that it was made of did.
unsafe impl Send for Buffer<'_> {}

impl<'b> Buffer<'b> {
    /// Gives `bytes`, which are its own as long as it lives.
    pub fn new(bytes: &'b mut [MaybeUninit<u8>]) -> Self {
        let range = bytes.as_mut_ptr_range();
        let begin = range.start.cast::<u8>();
        Self { begin, cursor: Cell::new(begin), end: range.end.cast(), bytes: PhantomData }
    }

    /// Bytes that are left, alignment aside.
    pub fn left(&self) -> usize {
        self.end.addr() - self.cursor.get().addr()
    }
}

// SAFETY: a chunk lies between two positions of the cursor, in bytes that outlive this.
unsafe impl Source for Buffer<'_> {
    fn try_take(&self, layout: Layout) -> Option<Chunk> {
        let cursor = self.cursor.get();
        let skipped = cursor.addr().wrapping_neg() & (layout.align() - 1);
        if skipped > self.left() || layout.size() > self.left() - skipped {
            return None;
        }
        // SAFETY: within the bytes, as was just tested.
        let data = unsafe { cursor.add(skipped) };
        // SAFETY: the same.
        self.cursor.set(unsafe { data.add(layout.size()) });
        Some(Chunk { data: NonNull::new(data)?, layout })
    }
    unsafe fn give(&self, chunk: Chunk) {
        let data = chunk.data.as_ptr();
        if data.wrapping_add(chunk.layout.size()) == self.cursor.get() {
            self.cursor.set(data);
        }
    }
    #[inline(always)]
    fn may_panic(&self) -> bool {
        false
    }
}

// SAFETY: its chunks lie in its bytes, which are borrowed for it alone.
unsafe impl Owning for Buffer<'_> {
    fn owns(&self, p: *const u8) -> bool {
        p >= self.begin && p < self.end
    }
}

// SAFETY: an allocator's block is a chunk that keeps its promises.
unsafe impl<A: BlockAllocator + ?Sized> Source for &A {
    #[inline]
    fn try_take(&self, layout: Layout) -> Option<Chunk> {
        Some(Chunk { data: self.try_allocate(layout)?, layout })
    }
    #[inline]
    unsafe fn give(&self, chunk: Chunk) {
        // SAFETY: it is a block that was given with this layout.
        unsafe { self.deallocate(chunk.data, chunk.layout) }
    }
}
