//! The blocks in use that some candidate has allocated.

use crate::hash::NumberMap;

/// A block in use.
#[derive(Debug, Clone, Copy)]
pub(super) struct Block {
    pub size: u64,
    /// The thread of the allocation, as an index.
    pub thread: u32,
    /// The number of the allocation among the allocations of its thread.
    pub serial: u32,
    /// The call stack of the allocation.
    pub node: u32,
}

/// A block as the table stores it: 16 bytes.
#[derive(Debug, Clone, Copy)]
struct Packed {
    /// The size in the lower 40 bits, the thread above.
    what: u64,
    serial: u32,
    node: u32,
}

const THREAD_SHIFT: u32 = 40;
const THREADS_MAX: u32 = 1 << 24;

impl Packed {
    fn of(block: Block) -> Packed {
        Packed {
            what: block.size | u64::from(block.thread) << THREAD_SHIFT,
            serial: block.serial,
            node: block.node,
        }
    }

    fn block(self) -> Block {
        Block {
            size: self.what & ((1 << THREAD_SHIFT) - 1),
            thread: (self.what >> THREAD_SHIFT) as u32,
            serial: self.serial,
            node: self.node,
        }
    }
}

/// The blocks in use, by their numbers.
pub(super) struct Live {
    blocks: NumberMap<u64, Packed>,
    limit: usize,
}

impl Live {
    pub fn new(limit: usize) -> Live {
        Live { blocks: NumberMap::default(), limit }
    }

    /// Adds a block. Returns whether there was room for the block.
    #[inline]
    pub fn insert(&mut self, id: i64, block: Block) -> bool {
        if self.blocks.len() >= self.limit || block.thread >= THREADS_MAX {
            return false;
        }
        self.blocks.insert(id as u64, Packed::of(block));
        true
    }

    /// Removes a block.
    #[inline]
    pub fn remove(&mut self, id: i64) -> Option<Block> {
        self.blocks.remove(&(id as u64)).map(Packed::block)
    }

    /// All blocks, in no order.
    pub fn into_blocks(self) -> impl Iterator<Item = Block> {
        self.blocks.into_values().map(Packed::block)
    }
}
