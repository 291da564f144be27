//! The blocks in use during a walk.

use crate::hash::{mix, NumberMap};
use crate::sites::weight_of;

/// Blocks of at least this size are always followed, since memory has room for only few of them.
const LARGE_BYTES: u64 = 64 << 10;

/// A block in use.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Block {
    /// When the block was allocated, in nanoseconds since the stream was opened.
    pub t0: i64,
    /// The address of the block.
    pub addr: u64,
    /// The size in bytes that the program requested last.
    pub size: u64,
    /// The call stack of the allocation: a node of the table `stacks`, or 0 if it is unknown.
    pub node: u32,
    /// The thread of the allocation, as a row of the table `threads`. The number is beyond all rows if a
    /// damaged trace lacks the thread.
    pub thread: u32,
    /// How many blocks of the program this block stands for: 1, unless the trace is sampled or not
    /// all blocks are followed.
    pub weight: f32,
    /// Whether a traced allocator returned the block. Otherwise it is from malloc's family.
    pub is_traced: bool,
}

impl Block {
    /// The bytes of all blocks of the program that this block stands for.
    #[inline]
    pub fn bytes(&self) -> f64 {
        f64::from(self.weight) * self.size as f64
    }
}

/// The blocks in use, by number. If there are too many, every second small block is dropped and the
/// others count double.
pub struct Live {
    blocks: NumberMap<u64, Block>,
    limit: usize,
    one_in: u32,
    sample_bytes: u64,
    /// The latest block at each address of each owner. Only kept if the trace may lack frees.
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

    /// The blocks, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &Block> {
        self.blocks.values()
    }

    /// Number of blocks that are followed.
    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Whether no block is followed.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// One in this many small blocks is followed.
    pub fn one_in(&self) -> u32 {
        self.one_in
    }

    #[inline]
    pub(super) fn follows(&self, id: i64, size: u64) -> bool {
        self.one_in == 1 || size >= LARGE_BYTES || is_chosen(id as u64, self.one_in)
    }

    /// The weight of a followed block of this size.
    #[inline]
    pub(super) fn weight(&self, size: u64) -> f32 {
        let share = if size >= LARGE_BYTES { 1 } else { self.one_in };
        weight_of(size, self.sample_bytes) as f32 * share as f32
    }

    /// Adds a block. Returns an earlier block that must have ended: a block at the same address of the
    /// same owner or, in a damaged trace, a block with the same number.
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

    /// Removes some blocks, and returns them in the order of their numbers.
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

    /// Drops every second small block, repeatedly, until at most half of the limit is used.
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

/// Whether a small block is followed when one in `one_in` blocks is followed. `one_in` is a power of
/// two. A block that is followed for one power is followed for all smaller powers.
#[inline]
fn is_chosen(id: u64, one_in: u32) -> bool {
    mix(id) & u64::from(one_in - 1) == 0
}
