//! Statistics of a heap (see [`Heap::statistics`]).

use super::Heap;
use crate::ffi;
use core::mem::size_of;

/// Statistics of a heap, from [`Heap::statistics`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeapStatistics {
    /// Number of blocks that the program uses.
    pub blocks_live: usize,
    /// Sum of the usable sizes of the live blocks.
    pub bytes_live: usize,
    /// Bytes of chunks and large blocks, in use or not.
    pub bytes_taken: usize,
    /// The largest `bytes_taken` so far.
    pub bytes_taken_max: usize,
    /// Number of chunks. All blocks up to 1 MiB are allocated from chunks.
    pub chunks: usize,
    /// Number of blocks above 1 MiB.
    pub large_blocks: usize,
}

impl<S> Heap<S> {
    /// Computes the statistics of this heap. The time is proportional to the heap's memory (one
    /// step for each 16 KiB).
    ///
    /// ```
    /// let heap = mallard_malloc::Heap::new();
    /// heap.alloc([0u64; 8]);
    /// assert_eq!(heap.statistics().bytes_live, 64);
    /// ```
    pub fn statistics(&self) -> HeapStatistics {
        let mut n = ffi::HeapStatistics {
            struct_bytes: size_of::<ffi::HeapStatistics>(),
            ..Default::default()
        };
        // SAFETY: the structure has the layout of malloc.h. This thread owns the heap, or the heap
        // has a lock.
        unsafe {
            ffi::mallard_heap_adopt(self.raw.as_ptr());
            ffi::mallard_heap_stats(self.raw.as_ptr(), &mut n);
        }
        HeapStatistics {
            blocks_live: n.blocks_live,
            bytes_live: n.bytes_live,
            bytes_taken: n.bytes_taken,
            bytes_taken_max: n.bytes_taken_max,
            chunks: n.chunks,
            large_blocks: n.large_blocks,
        }
    }
}
