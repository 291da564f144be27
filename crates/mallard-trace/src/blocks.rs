//! Assigns an ID to each block of a program, and finds the block that an event refers to.

use crate::hash::NumberMap;
use crate::sites::Ended;

/// A block in use.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Block {
    /// ID of the block. Blocks are numbered in the order of their allocation.
    pub id: i64,
    /// When the block was allocated, in nanoseconds since the stream was opened.
    pub t0: i64,
    /// The address of the block.
    pub addr: u64,
    /// Size of the block in bytes, as requested by the allocation or the last resize.
    pub size: u64,
    /// The thread that allocated the block.
    pub thread: u32,
    /// The index of the block's site.
    pub site: u32,
}

impl Block {
    /// Returns the fields of the block that its site needs to update its figures when the block is
    /// freed.
    #[inline]
    pub fn ended(&self) -> Ended {
        Ended { site: self.site, id: self.id, addr: self.addr, size: self.size }
    }
}

type Table = NumberMap<u64, Block>;

/// The blocks in use. Each process and each traced allocator has a separate table, because a block
/// of one allocator may lie within a block of another. The tables use 64 to 140 bytes of memory for
/// each block in use.
#[derive(Default)]
pub struct Blocks {
    tables: Vec<Table>,
    next: i64,
}

impl Blocks {
    /// Adds empty tables until the index `table` is valid.
    #[inline]
    pub fn reach(&mut self, table: usize) {
        if self.tables.len() <= table {
            self.tables.resize_with(table + 1, Table::default);
        }
    }

    /// Returns the ID for the next block.
    pub fn number(&mut self) -> i64 {
        self.next += 1;
        self.next - 1
    }

    /// Returns the number of IDs that [`Blocks::number`] has returned.
    pub fn count(&self) -> i64 {
        self.next
    }

    /// Adds a block. If the table already has a block at the same address, returns that older
    /// block, whose free is missing in the event stream.
    #[inline]
    pub fn insert(&mut self, table: usize, block: Block) -> Option<Block> {
        self.tables[table].insert(block.addr, block)
    }

    /// Removes the block at an address.
    #[inline]
    pub fn remove(&mut self, table: usize, addr: u64) -> Option<Block> {
        self.tables[table].remove(&addr)
    }

    /// Removes all blocks of a table, and returns them sorted by ID.
    pub fn take_all(&mut self, table: usize) -> Vec<Block> {
        let mut blocks: Vec<Block> = self.tables[table].drain().map(|(_, block)| block).collect();
        blocks.sort_unstable_by_key(|block| block.id);
        blocks
    }

    /// Returns the number of tables.
    pub fn tables(&self) -> usize {
        self.tables.len()
    }
}
