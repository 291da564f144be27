//! Heaps, which are allocators whose blocks can all be freed together.

use crate::blocks::Blocks;
use crate::class_offset::class_offset_of;
use crate::ffi;
use crate::limit::Limits;
use alloc::alloc::handle_alloc_error;
use core::alloc::Layout;
use core::ffi::c_int;
use core::fmt;
use core::marker::PhantomData;
use core::mem::size_of;
use core::ptr::NonNull;

mod statistics;
mod values;

pub use statistics::HeapStatistics;

mod sharing {
    pub trait Sharing {
        const THREADS: core::ffi::c_int;
    }
}

/// The type argument of a [`Heap`] that one thread at a time uses. Such a heap allocates without a
/// lock.
#[derive(Debug)]
pub enum OneThread {}

/// The type argument of a [`SharedHeap`], in which any thread can allocate, under a lock.
#[derive(Debug)]
pub enum AnyThread {}

impl sharing::Sharing for OneThread {
    const THREADS: c_int = 0;
}
impl sharing::Sharing for AnyThread {
    const THREADS: c_int = 1;
}

/// A [`Heap`] that threads share. Such a heap is `Sync`, and allocates under a lock.
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

/// An allocator of blocks of any size. Any thread can free a block, and `reset` frees all blocks
/// together. Also known as a region or memory context.
///
/// ```
/// let mut request = mallard_malloc::Heap::new();
/// for i in 0..1000 {
///     let name = request.alloc_str("a name, or whatever else a request needs");
///     assert_eq!(name.len(), 40);
///     *request.alloc(i) += 1;
/// }
/// request.reset(); // frees all blocks, as do release() and drop
/// ```
///
/// A heap gets memory from Mallard's engine, whatever the program's global allocator is. The first
/// chunk has 64 KiB, and each later chunk is twice as large, up to 4 MiB, because a heap that has
/// grown tends to grow more. Each block above 1 MiB has separate memory. `release` returns all
/// memory to the engine, and `reset` keeps the chunks. The time of both does not depend on the
/// number of blocks. An empty heap needs less than 4 KiB, so a program may have thousands of heaps.
///
/// A `Heap` is `Send` and not `Sync`, so only one thread at a time can use it. [`Heap::shared`]
/// makes a heap that is `Send` and `Sync`.
///
/// Blocks are raw memory. [`deallocate`](Heap::deallocate) frees a block before the heap is reset.
/// A thread without access to the heap calls [`mallard_malloc::deallocate`](crate::deallocate)
/// instead. [`alloc`](Heap::alloc) returns a reference to a value, and the value is never dropped.
/// With a feature such as `allocator-api2-02`, `Heap` and `&Heap` implement `Allocator`. A
/// container in a heap drops its elements.
pub struct Heap<Sharing = OneThread> {
    raw: NonNull<ffi::Heap>,
    of: PhantomData<Sharing>,
}

// SAFETY: the engine records which thread uses the heap. A thread that received the heap from
// another thread updates the record before a slow path. Any thread may free blocks.
unsafe impl<Sharing> Send for Heap<Sharing> {}
// SAFETY: a shared heap holds its lock in each call that changes the heap.
unsafe impl Sync for Heap<AnyThread> {}

impl Heap {
    /// Makes a heap without blocks. Calls `handle_alloc_error` if there is no memory.
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
    /// Makes a heap that threads share. Calls `handle_alloc_error` if there is no memory.
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
        let options = ffi::HeapOptions {
            struct_bytes: size_of::<ffi::HeapOptions>(),
            threads: S::THREADS,
            reserved: 0,
            limit_soft_bytes: 0,
            limit_bytes: 0,
            met: None,
            context: core::ptr::null_mut(),
        };
        // SAFETY: the options fulfil what malloc.h requires.
        match NonNull::new(unsafe { ffi::mallard_heap_create(&options) }) {
            Some(raw) => Self { raw, of: PhantomData },
            None => handle_alloc_error(Layout::new::<[usize; 512]>()),
        }
    }

    /// Allocates a block. Returns `None` if there is no memory. A block of size 0 is a dangling
    /// pointer and needs no memory.
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

    /// Allocates a block. Calls `handle_alloc_error` if there is no memory.
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

    /// Allocates a block whose bytes are all 0. Returns `None` if there is no memory.
    ///
    /// ```
    /// use core::alloc::Layout;
    /// let heap = mallard_malloc::Heap::new();
    /// let block = heap.try_allocate_zeroed(Layout::new::<u64>()).unwrap().cast::<u64>();
    /// // SAFETY: the block holds a u64, and zero is a valid u64.
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
    /// The block must be from this heap and must have this layout. The block must not have been
    /// freed, and must no longer be used.
    ///
    /// ```
    /// use core::alloc::Layout;
    /// let heap = mallard_malloc::Heap::new();
    /// let block = heap.allocate(Layout::new::<u64>());
    /// // SAFETY: nothing else uses the block.
    /// unsafe { heap.deallocate(block, Layout::new::<u64>()) };
    /// assert_eq!(heap.statistics().blocks_live, 0);
    /// ```
    #[inline]
    pub unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
        if layout.size() != 0 {
            // SAFETY: the caller guarantees what this call requires.
            unsafe { self.give(block.as_ptr(), layout) }
        }
    }

    /// Resizes a block, which may move. Returns `None` if there is no memory. Then the block is
    /// unchanged.
    ///
    /// # Safety
    /// The requirements are those of `deallocate`. In addition, neither size is 0, and the new
    /// size, rounded up to the alignment, is at most `isize::MAX`.
    ///
    /// ```
    /// use core::alloc::Layout;
    /// let heap = mallard_malloc::Heap::new();
    /// let (few, many) = (Layout::array::<u8>(10).unwrap(), 10_000);
    /// let block = heap.allocate(few);
    /// // SAFETY: the block is from this heap and has this layout.
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
        // SAFETY: the caller guarantees what this call requires.
        NonNull::new(unsafe { self.resize(block.as_ptr(), layout, bytes) })
    }

    /// Frees every block, and keeps the memory for later blocks of this heap.
    ///
    /// ```
    /// let mut heap = mallard_malloc::Heap::new();
    /// heap.alloc([0u8; 1000]);
    /// heap.reset();
    /// let numbers = heap.statistics();
    /// assert_eq!((numbers.blocks_live, numbers.chunks), (0, 1));
    /// ```
    pub fn reset(&mut self) {
        // SAFETY: no reference to a block is live, because `reset` borrows the heap mutably.
        unsafe { ffi::mallard_heap_reset(self.raw.as_ptr()) }
    }

    /// Frees every block, and returns the memory to the engine, so that the whole program can use
    /// the memory.
    ///
    /// ```
    /// let mut heap = mallard_malloc::Heap::new();
    /// heap.alloc([0u8; 1000]);
    /// heap.release();
    /// assert_eq!(heap.statistics().bytes_taken, 0);
    /// ```
    pub fn release(&mut self) {
        // SAFETY: no reference to a block is live, because `release` borrows the heap mutably.
        unsafe { ffi::mallard_heap_release(self.raw.as_ptr()) }
    }

    /// Returns empty chunks to the engine, while the heap holds more than `keep` bytes. The whole
    /// program can use the returned memory.
    ///
    /// ```
    /// let mut heap = mallard_malloc::Heap::new();
    /// heap.alloc([0u8; 1000]);
    /// heap.reset();
    /// heap.trim(0);
    /// assert_eq!(heap.statistics().chunks, 0);
    /// ```
    pub fn trim(&self, keep: usize) {
        // SAFETY: trimming moves no block. This thread owns the heap, or the heap has a lock.
        unsafe {
            ffi::mallard_heap_adopt(self.raw.as_ptr());
            ffi::mallard_heap_trim(self.raw.as_ptr(), keep);
        }
    }

    /// Returns whether `p` points into memory of this heap, allocated or not, in constant time.
    ///
    /// ```
    /// let heap = mallard_malloc::Heap::new();
    /// let (inside, outside) = (heap.alloc(1), 1);
    /// assert!(heap.owns(inside) && !heap.owns(&outside));
    /// ```
    pub fn owns<T>(&self, p: *const T) -> bool {
        // SAFETY: the function accepts any address.
        unsafe { ffi::mallard_heap_owns(self.raw.as_ptr(), p.cast()) != 0 }
    }

    /// Sets limits on the memory of this heap, which consists of chunks and large blocks.
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
        // SAFETY: the context is a function pointer of the type that `met` expects, and stays valid
        // for ever.
        unsafe {
            ffi::mallard_heap_limit(self.raw.as_ptr(), limits.soft, limits.hard, met, context)
        }
    }
}

fn dangling(layout: Layout) -> NonNull<u8> {
    // SAFETY: an alignment is never 0, so the address is not null.
    unsafe { NonNull::new_unchecked(core::ptr::without_provenance_mut(layout.align())) }
}

impl<S> Drop for Heap<S> {
    fn drop(&mut self) {
        // SAFETY: no reference to a block is live, because `drop` borrows the heap mutably.
        unsafe { ffi::mallard_heap_destroy(self.raw.as_ptr()) }
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
        if let Some(offset) = class_offset_of(layout) {
            // SAFETY: `offset` is the class offset of `bytes`.
            return unsafe { ffi::mallard_rust_heap_pop(heap, bytes, offset) };
        }
        // SAFETY: `align` is a power of two.
        unsafe { ffi::mallard_rust_heap_allocate(heap, bytes, align) }
    }

    #[inline]
    fn take_zeroed(&self, layout: Layout) -> *mut u8 {
        let (bytes, align) = (layout.size(), layout.align());
        // SAFETY: `align` is a power of two.
        unsafe { ffi::mallard_rust_heap_allocate_zeroed(self.raw.as_ptr(), bytes, align) }
    }

    #[inline(always)]
    unsafe fn give(&self, block: *mut u8, _: Layout) {
        // SAFETY: the caller guarantees what this call requires.
        unsafe { ffi::mallard_rust_heap_deallocate(self.raw.as_ptr(), block) }
    }

    #[inline]
    unsafe fn resize(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        let (heap, now, align) = (self.raw.as_ptr(), layout.size(), layout.align());
        // SAFETY: the caller guarantees what this call requires.
        unsafe { ffi::mallard_rust_heap_reallocate(heap, block, now, align, bytes) }
    }
}
