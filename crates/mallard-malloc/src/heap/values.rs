//! Functions that store values in heaps.

use super::Heap;
use core::alloc::Layout;
use core::ptr::NonNull;

impl<S> Heap<S> {
    /// Moves a value into the heap. The value is never dropped, so memory that the value owns
    /// outside the heap leaks. Memory that the value owns in this heap is freed with the heap.
    ///
    /// ```
    /// let heap = mallard_malloc::Heap::new();
    /// let point = heap.alloc((1.0, 2.0));
    /// point.0 += 1.0;
    /// assert_eq!(*point, (2.0, 2.0));
    /// ```
    #[inline]
    #[allow(clippy::mut_from_ref)] // each call returns a different block
    pub fn alloc<T>(&self, value: T) -> &mut T {
        let block = self.allocate(Layout::new::<T>()).cast::<T>();
        // SAFETY: the block has the size and alignment of T and is new. `reset` and `release` borrow
        // the heap mutably, so the reference cannot outlive the block.
        unsafe {
            block.write(value);
            &mut *block.as_ptr()
        }
    }

    /// Copies a slice into the heap.
    ///
    /// ```
    /// let heap = mallard_malloc::Heap::new();
    /// let primes = heap.alloc_slice_copy(&[2, 3, 5]);
    /// primes[0] = 7;
    /// assert_eq!(primes, [7, 3, 5]);
    /// ```
    #[inline]
    #[allow(clippy::mut_from_ref)] // each call returns a different block
    pub fn alloc_slice_copy<T: Copy>(&self, values: &[T]) -> &mut [T] {
        let block = self.allocate(Layout::for_value(values)).cast::<T>();
        // SAFETY: the block is new and has the size and alignment of the slice, and T is `Copy`. As
        // in `alloc`, the reference cannot outlive the block.
        unsafe {
            block.copy_from_nonoverlapping(NonNull::from(values).cast(), values.len());
            core::slice::from_raw_parts_mut(block.as_ptr(), values.len())
        }
    }

    /// Copies a string into the heap.
    ///
    /// ```
    /// let heap = mallard_malloc::Heap::new();
    /// assert_eq!(heap.alloc_str("mallard"), "mallard");
    /// ```
    #[inline]
    #[allow(clippy::mut_from_ref)] // each call returns a different block
    pub fn alloc_str(&self, text: &str) -> &mut str {
        // SAFETY: the bytes are a copy of a string.
        unsafe { core::str::from_utf8_unchecked_mut(self.alloc_slice_copy(text.as_bytes())) }
    }
}
