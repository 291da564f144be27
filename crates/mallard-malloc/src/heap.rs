//! Heaps: parts of malloc that are freed at once.

use crate::blocks::Blocks;
use crate::code::code_of;
use crate::limit::Limits;
use crate::raw;
use alloc::alloc::handle_alloc_error;
use core::alloc::Layout;
use core::ffi::c_int;
use core::fmt;
use core::marker::PhantomData;
use core::mem::size_of;
use core::ptr::NonNull;

mod numbers;
mod values;

pub use numbers::HeapStatistics;

mod sharing {
    pub trait Sharing {
        const THREADS: core::ffi::c_int;
    }
}

/// Of a [`Heap`]: one thread at a time has it, and allocates without a lock.
#[derive(Debug)]
pub enum OneThread {}

/// Of a [`SharedHeap`]: any thread allocates, one after the other.
#[derive(Debug)]
pub enum AnyThread {}

impl sharing::Sharing for OneThread {
    const THREADS: c_int = 0;
}
impl sharing::Sharing for AnyThread {
    const THREADS: c_int = 1;
}

/// A [`Heap`] that threads share: `Sync`, with a lock around what they allocate.
///
/// ```
/// use mallard_malloc::Heap;
/// let heap = Heap::shared();
/// std::thread::scope(|threads| {
///     for i in 0..4 {
///         let heap = &heap;
///         threads.spawn(move || assert_eq!(*heap.alloc(i), i));
///     }
/// });
/// assert_eq!(heap.statistics().blocks_live, 4);
/// ```
pub type SharedHeap = Heap<AnyThread>;

/// Blocks of any size, freed one by one by any thread, or all at once.
///
/// ```
/// let mut request = mallard_malloc::Heap::new();
/// for i in 0..1000 {
///     let name = request.alloc_str("a name, or whatever else a request needs");
///     assert_eq!(name.len(), 40);
///     *request.alloc(i) += 1;
/// }
/// request.reset(); // all of them; or release(), or the end of the heap
/// ```
///
/// A part of Mallard's malloc, which need not be the program's, with its memory for itself:
/// chunks of 64 KiB, and twice as much each time up to 4 MiB, since what grew tends to grow on.
/// Blocks above 1 MiB have memory of their own. `release` gives all of it to the rest of the
/// program and `reset` keeps the chunks, in a time that does not depend on the number of blocks. A
/// heap without blocks takes less than 4 KiB, and thousands of heaps are no burden.
///
/// `Send` and not `Sync`: one thread has it at a time. [`Heap::shared`] makes one that is both.
///
/// Blocks are raw memory: [`deallocate`](Heap::deallocate) frees one early, and from another
/// thread [`mallard_malloc::deallocate`](crate::deallocate). What [`alloc`](Heap::alloc) gives is
/// a reference, whose value is not dropped. With a feature, `Heap` and `&Heap` implement `Allocator`:
/// a container in a heap drops its elements.
pub struct Heap<Sharing = OneThread> {
    raw: NonNull<raw::Heap>,
    of: PhantomData<Sharing>,
}

// SAFETY: the engine knows of one thread that it is with; another that comes here has the heap from
// that one, and says so before it takes the slow path. Blocks are freed by any thread.
unsafe impl<Sharing> Send for Heap<Sharing> {}
// SAFETY: such a heap has a lock.
unsafe impl Sync for Heap<AnyThread> {}

impl Heap {
    /// A heap without blocks. Where there is no memory for one, `handle_alloc_error` ends the
    /// program.
    ///
    /// ```
    /// let heap = mallard_malloc::Heap::new();
    /// assert_eq!(heap.statistics().bytes_taken, 0);
    /// ```
    pub fn new() -> Self {
        Self::make()
    }
}

impl Default for Heap {
    fn default() -> Self {
        Self::new()
    }
}

impl SharedHeap {
    /// The same, for threads to share.
    ///
    /// ```
    /// static HEAP: std::sync::OnceLock<mallard_malloc::SharedHeap> = std::sync::OnceLock::new();
    /// let text = HEAP.get_or_init(mallard_malloc::Heap::shared).alloc_str("for all");
    /// assert_eq!(text, "for all");
    /// ```
    pub fn shared() -> Self {
        Self::make()
    }
}

impl<S> Heap<S> {
    fn make() -> Self
    where
        S: sharing::Sharing,
    {
        let options = raw::HeapOptions {
            struct_bytes: size_of::<raw::HeapOptions>(),
            threads: S::THREADS,
            reserved: 0,
            limit_soft_bytes: 0,
            limit_bytes: 0,
            met: None,
            context: core::ptr::null_mut(),
        };
        // SAFETY: the options are what malloc.h asks for.
        match NonNull::new(unsafe { raw::mallard_heap_create(&options) }) {
            Some(raw) => Self { raw, of: PhantomData },
            None => handle_alloc_error(Layout::new::<[usize; 512]>()),
        }
    }

    /// A block, or `None` when memory is refused. One of size 0 is dangling, and costs nothing.
    ///
    /// ```
    /// use core::alloc::Layout;
    /// let heap = mallard_malloc::Heap::new();
    /// assert!(heap.try_allocate(Layout::array::<u64>(10).unwrap()).is_some());
    /// assert!(heap.try_allocate(Layout::array::<u8>(isize::MAX as usize).unwrap()).is_none());
    /// ```
    #[inline]
    pub fn try_allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        if layout.size() == 0 {
            return Some(dangling(layout));
        }
        NonNull::new(self.take(layout))
    }

    /// A block; where memory is refused, `handle_alloc_error` ends the program.
    ///
    /// ```
    /// use core::alloc::Layout;
    /// let heap = mallard_malloc::Heap::new();
    /// let block = heap.allocate(Layout::from_size_align(100, 64).unwrap());
    /// assert_eq!(block.as_ptr() as usize % 64, 0);
    /// ```
    #[inline]
    pub fn allocate(&self, layout: Layout) -> NonNull<u8> {
        match self.try_allocate(layout) {
            Some(block) => block,
            None => handle_alloc_error(layout),
        }
    }

    /// As `try_allocate`; it reads as zero.
    ///
    /// ```
    /// use core::alloc::Layout;
    /// let heap = mallard_malloc::Heap::new();
    /// let block = heap.try_allocate_zeroed(Layout::new::<u64>()).unwrap().cast::<u64>();
    /// // SAFETY: so large, and zero is a number.
    /// assert_eq!(unsafe { block.read() }, 0);
    /// ```
    #[inline]
    pub fn try_allocate_zeroed(&self, layout: Layout) -> Option<NonNull<u8>> {
        if layout.size() == 0 {
            return Some(dangling(layout));
        }
        NonNull::new(self.take_zeroed(layout))
    }

    /// Frees a block.
    ///
    /// # Safety
    /// It came from this heap with this layout, was not freed since, and nobody uses it any more.
    ///
    /// ```
    /// use core::alloc::Layout;
    /// let heap = mallard_malloc::Heap::new();
    /// let block = heap.allocate(Layout::new::<u64>());
    /// // SAFETY: nobody else has it.
    /// unsafe { heap.deallocate(block, Layout::new::<u64>()) };
    /// assert_eq!(heap.statistics().blocks_live, 0);
    /// ```
    #[inline]
    pub unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
        if layout.size() != 0 {
            // SAFETY: the caller's promise.
            unsafe { self.give(block.as_ptr(), layout) }
        }
    }

    /// The block with another size, perhaps elsewhere; `None`: refused, and it is as it was.
    ///
    /// # Safety
    /// As for `deallocate`. Neither size is 0, and the new one, rounded up to the alignment, is
    /// at most `isize::MAX`.
    ///
    /// ```
    /// use core::alloc::Layout;
    /// let heap = mallard_malloc::Heap::new();
    /// let (few, many) = (Layout::array::<u8>(10).unwrap(), 10_000);
    /// let block = heap.allocate(few);
    /// // SAFETY: of this heap, with this layout.
    /// let block = unsafe { heap.try_reallocate(block, few, many) }.unwrap();
    /// assert!(heap.owns(block.as_ptr()));
    /// ```
    #[inline]
    pub unsafe fn try_reallocate(
        &self,
        block: NonNull<u8>,
        layout: Layout,
        bytes: usize,
    ) -> Option<NonNull<u8>> {
        // SAFETY: the caller's promise.
        NonNull::new(unsafe { self.resize(block.as_ptr(), layout, bytes) })
    }

    /// Frees every block, and keeps the memory for those to come.
    ///
    /// ```
    /// let mut heap = mallard_malloc::Heap::new();
    /// heap.alloc([0u8; 1000]);
    /// heap.reset();
    /// let numbers = heap.statistics();
    /// assert_eq!((numbers.blocks_live, numbers.chunks), (0, 1));
    /// ```
    pub fn reset(&mut self) {
        // SAFETY: nobody borrows from it.
        unsafe { raw::mallard_heap_reset(self.raw.as_ptr()) }
    }

    /// Frees every block, and gives the memory to the rest of the program.
    ///
    /// ```
    /// let mut heap = mallard_malloc::Heap::new();
    /// heap.alloc([0u8; 1000]);
    /// heap.release();
    /// assert_eq!(heap.statistics().bytes_taken, 0);
    /// ```
    pub fn release(&mut self) {
        // SAFETY: nobody borrows from it.
        unsafe { raw::mallard_heap_release(self.raw.as_ptr()) }
    }

    /// Gives chunks without a block to the rest of the program, as long as the heap has more than
    /// `keep` bytes.
    ///
    /// ```
    /// let mut heap = mallard_malloc::Heap::new();
    /// heap.alloc([0u8; 1000]);
    /// heap.reset();
    /// heap.trim(0);
    /// assert_eq!(heap.statistics().chunks, 0);
    /// ```
    pub fn trim(&self, keep: usize) {
        // SAFETY: moves nothing that anybody has; the heap is this thread's, or has a lock.
        unsafe {
            raw::mallard_heap_adopt(self.raw.as_ptr());
            raw::mallard_heap_trim(self.raw.as_ptr(), keep);
        }
    }

    /// Whether `p` points into memory of this heap, in use or not. O(1).
    ///
    /// ```
    /// let heap = mallard_malloc::Heap::new();
    /// let (inside, outside) = (heap.alloc(1), 1);
    /// assert!(heap.owns(inside) && !heap.owns(&outside));
    /// ```
    pub fn owns<T>(&self, p: *const T) -> bool {
        // SAFETY: any address may be asked about.
        unsafe { raw::mallard_heap_owns(self.raw.as_ptr(), p.cast()) != 0 }
    }

    /// Sets how much memory it may take: chunks, and large blocks.
    ///
    /// ```
    /// use core::alloc::Layout;
    /// use mallard_malloc::{Heap, Limits};
    /// let plugin = Heap::new();
    /// plugin.set_limits(Limits { hard: 16 << 20, ..Limits::default() });
    /// assert!(plugin.try_allocate(Layout::new::<[u8; 20 << 20]>()).is_none());
    /// ```
    pub fn set_limits(&self, limits: Limits) {
        let (met, context) = limits.call();
        // SAFETY: the call fits its context, which is a function and so lives for ever.
        unsafe {
            raw::mallard_heap_limit(self.raw.as_ptr(), limits.soft, limits.hard, met, context)
        }
    }
}

fn dangling(layout: Layout) -> NonNull<u8> {
    // SAFETY: no alignment is 0.
    unsafe { NonNull::new_unchecked(core::ptr::without_provenance_mut(layout.align())) }
}

impl<S> Drop for Heap<S> {
    fn drop(&mut self) {
        // SAFETY: nobody borrows from it.
        unsafe { raw::mallard_heap_destroy(self.raw.as_ptr()) }
    }
}

impl<S> fmt::Debug for Heap<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Heap").field("at", &self.raw).finish_non_exhaustive()
    }
}

impl<S> Blocks for Heap<S> {
    #[inline(always)]
    fn take(&self, layout: Layout) -> *mut u8 {
        let (heap, bytes, align) = (self.raw.as_ptr(), layout.size(), layout.align());
        if let Some(code) = code_of(layout) {
            // SAFETY: the code is that of the size.
            return unsafe { raw::mallard_rust_heap_pop(heap, bytes, code) };
        }
        // SAFETY: `align` is a power of two.
        unsafe { raw::mallard_rust_heap_allocate(heap, bytes, align) }
    }

    #[inline]
    fn take_zeroed(&self, layout: Layout) -> *mut u8 {
        let (bytes, align) = (layout.size(), layout.align());
        // SAFETY: `align` is a power of two.
        unsafe { raw::mallard_rust_heap_allocate_zeroed(self.raw.as_ptr(), bytes, align) }
    }

    #[inline(always)]
    unsafe fn give(&self, block: *mut u8, _: Layout) {
        // SAFETY: the caller's promise.
        unsafe { raw::mallard_rust_heap_deallocate(self.raw.as_ptr(), block) }
    }

    #[inline]
    unsafe fn resize(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        let (heap, now, align) = (self.raw.as_ptr(), layout.size(), layout.align());
        // SAFETY: the caller's promise.
        unsafe { raw::mallard_rust_heap_reallocate(heap, block, now, align, bytes) }
    }
}
