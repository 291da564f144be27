//! What a heap has.

use super::Heap;
use crate::raw;
use core::mem::size_of;

/// What a heap has; see [`Heap::statistics`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeapStatistics {
    /// Blocks that the program has.
    pub blocks_live: usize,
    /// Their usable sizes.
    pub bytes_live: usize,
    /// In chunks and large blocks.
    pub bytes_taken: usize,
    /// The most that this was.
    pub bytes_taken_max: usize,
    /// Of which all but large blocks are cut.
    pub chunks: usize,
    /// Above 1 MiB.
    pub large_blocks: usize,
}

impl<S> Heap<S> {
    /// Counts: O(memory taken / 16 KiB).
    ///
    /// ```
    /// let heap = mallard_malloc::Heap::new();
    /// heap.alloc([0u64; 8]);
    /// assert_eq!(heap.statistics().bytes_live, 64);
    /// ```
    pub fn statistics(&self) -> HeapStatistics {
        let mut n = raw::HeapStatistics {
            struct_bytes: size_of::<raw::HeapStatistics>(),
            ..Default::default()
        };
        // SAFETY: the structure is what malloc.h asks for; the heap is this thread's, or has a lock.
        unsafe {
            raw::mallard_heap_adopt(self.raw.as_ptr());
            raw::mallard_heap_stats(self.raw.as_ptr(), &mut n);
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
