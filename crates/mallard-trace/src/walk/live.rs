//! Stores the blocks in use during a walk over the events.

use crate::hash::{mix, NumberMap};
use crate::sites::weight_of;

/// The minimum size in bytes of blocks that are always tracked. Only few blocks of this size fit
/// into memory.
const LARGE_BYTES: u64 = 64 << 10;

/// A block in use.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Block {
    /// When the block was allocated, in nanoseconds since the stream was opened.
    pub t0: i64,
    /// The address of the block.
    pub addr: u64,
    /// The requested size in bytes, after the last realloc.
    pub size: u64,
    /// The call stack of the allocation: a node of the table `stacks`, or 0 if unknown.
    pub node: u32,
    /// The allocating thread, as a row index in the table `threads`. The index exceeds the number
    /// of rows if a corrupt trace lacks the thread.
    pub thread: u32,
    /// The number of the program's blocks for which this block stands. 1, unless the trace is
    /// sampled or some blocks are not tracked.
    pub weight: f32,
    /// Whether the block is from a traced allocator. Otherwise it is from malloc or a related
    /// function.
    pub is_traced: bool,
}

impl Block {
    /// Returns the bytes of all blocks of the program that this block stands for.
    #[inline]
    pub fn bytes(&self) -> f64 {
        f64::from(self.weight) * self.size as f64
    }
}

/// The blocks in use, by block ID. If there are too many blocks, every second small block is
/// removed, and each remaining small block counts double.
pub struct Live {
    blocks: NumberMap<u64, Block>,
    limit: usize,
    one_in: u32,
    sample_bytes: u64,
    /// The ID of the latest block at each address of each owner. `None` if the trace cannot lack
    /// frees.
    by_addr: Option<NumberMap<(u32, u64), u64>>,
}

impl Live {
    pub(super) fn new(sample_bytes: u64, limit: usize, has_missed_frees: bool) -> Live {
        Live {
            blocks: NumberMap::default(),
            limit: limit.max(1),
            one_in: 1,
            sample_bytes,
            by_addr: has_missed_frees.then(NumberMap::default),
        }
    }

    /// Returns the blocks, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &Block> {
        self.blocks.values()
    }

    /// Returns the number of tracked blocks.
    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Returns whether no block is tracked.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Returns N if one of N small blocks is tracked.
    pub fn one_in(&self) -> u32 {
        self.one_in
    }

    #[inline]
    pub(super) fn follows(&self, id: i64, size: u64) -> bool {
        self.one_in == 1 || size >= LARGE_BYTES || is_chosen(id as u64, self.one_in)
    }

    /// Returns the weight of a tracked block of this size.
    #[inline]
    pub(super) fn weight(&self, size: u64) -> f32 {
        let share = if size >= LARGE_BYTES { 1 } else { self.one_in };
        weight_of(size, self.sample_bytes) as f32 * share as f32
    }

    /// Adds a block. Returns an earlier block that must have been freed. This is a block of the
    /// same owner at the same address or, in a corrupt trace, a block with the same ID.
    #[inline]
    pub(super) fn insert(&mut self, id: i64, block: Block, owner: u32) -> Option<Block> {
        let same_id = self.blocks.insert(id as u64, block);
        let by_addr = self.by_addr.as_mut()?;
        let before = by_addr.insert((owner, block.addr), id as u64).filter(|&old| old != id as u64);
        let is_there = |old: &Block| old.addr == block.addr;
        let same_addr = before.filter(|old| self.blocks.get(old).is_some_and(is_there));
        same_id.or(same_addr.and_then(|old| self.blocks.remove(&old)))
    }

    #[inline]
    pub(super) fn remove(&mut self, id: i64) -> Option<Block> {
        self.blocks.remove(&(id as u64))
    }

    /// Changes the size of a block. Returns the block and its old size.
    pub(super) fn resize(&mut self, id: i64, size: u64) -> Option<(Block, u64)> {
        let block = self.blocks.get_mut(&(id as u64))?;
        let from = std::mem::replace(&mut block.size, size);
        Some((*block, from))
    }

    /// Removes the blocks for which `is_taken` returns true, and returns them sorted by ID.
    pub(super) fn take_all(&mut self, is_taken: impl Fn(&Block) -> bool) -> Vec<Block> {
        let mut taken: Vec<(u64, Block)> =
            self.blocks.extract_if(|_, block| is_taken(block)).collect();
        taken.sort_unstable_by_key(|&(id, _)| id);
        taken.into_iter().map(|(_, block)| block).collect()
    }

    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.blocks.len() >= self.limit && self.one_in < 1 << 20
    }

    /// Removes every second small block, and repeats this until at most half of the limit is used.
    #[cold]
    pub(super) fn thin(&mut self) {
        while self.blocks.len() > self.limit / 2 && self.one_in < 1 << 20 {
            self.one_in *= 2;
            let one_in = self.one_in;
            self.blocks.retain(|&id, block| {
                let is_large = block.size >= LARGE_BYTES;
                block.weight *= if is_large { 1.0 } else { 2.0 };
                is_large || is_chosen(id, one_in)
            });
        }
        if let Some(by_addr) = &mut self.by_addr {
            by_addr.retain(|_, id| self.blocks.contains_key(id));
        }
    }
}

/// Returns whether a small block is tracked if one of `one_in` blocks is tracked. `one_in` is a
/// power of two. A block that is tracked for a power of two is also tracked for all smaller powers.
#[inline]
fn is_chosen(id: u64, one_in: u32) -> bool {
    mix(id) & u64::from(one_in - 1) == 0
}
