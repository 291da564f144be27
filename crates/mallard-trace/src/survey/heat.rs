//! Counts blocks by size and lifetime.

use crate::walk::Block;

/// The maximum size in each column except the last.
const SIZE_BOUNDS: [u64; 14] = [
    16,
    32,
    64,
    128,
    256,
    512,
    1 << 10,
    2 << 10,
    4 << 10,
    16 << 10,
    64 << 10,
    256 << 10,
    1 << 20,
    16 << 20,
];

/// The names of the columns, which are the maximum sizes.
pub const SIZES: [&str; 15] = [
    "16 B", "32 B", "64 B", "128 B", "256 B", "512 B", "1 KiB", "2 KiB", "4 KiB", "16 KiB",
    "64 KiB", "256 KiB", "1 MiB", "16 MiB", "more",
];

/// The names of the rows, which are ranges of lifetimes.
pub const LIVES: [&str; 10] = [
    "< 1 us",
    "< 10 us",
    "< 100 us",
    "< 1 ms",
    "< 10 ms",
    "< 100 ms",
    "< 1 s",
    "< 10 s",
    "longer",
    "never freed",
];

/// The number of cells.
pub(super) const CELLS: usize = SIZES.len() * LIVES.len();

/// The index of the row for the longest lifetimes. `NEVER` is the row for blocks that were never
/// freed.
const LONGER: usize = LIVES.len() - 2;
const NEVER: usize = LIVES.len() - 1;

/// Counts of blocks by size and lifetime. Cell `life * SIZES.len() + size` belongs to row `life`
/// and column `size`. A block counts with its last size.
#[derive(Debug, Clone, PartialEq)]
pub struct Heat {
    /// The number of blocks in each cell.
    pub all: Vec<f64>,
    /// The bytes of the blocks in each cell.
    pub bytes: Vec<f64>,
}

impl Default for Heat {
    fn default() -> Heat {
        Heat { all: vec![0.0; CELLS], bytes: vec![0.0; CELLS] }
    }
}

impl Heat {
    #[inline]
    pub(super) fn add(&mut self, cell: usize, block: &Block) {
        self.all[cell] += f64::from(block.weight);
        self.bytes[cell] += block.bytes();
    }
}

/// Returns the index of the cell for a size and a lifetime in nanoseconds. The lifetime `None`
/// means that the block was never freed.
#[inline]
pub(super) fn cell(size: u64, life_ns: Option<i64>) -> usize {
    let column = SIZE_BOUNDS.partition_point(|&bound| bound < size);
    let row = life_ns.map_or(NEVER, |ns| {
        let mut bound = 1000;
        let mut row = 0;
        while row < LONGER && ns >= bound {
            bound *= 10;
            row += 1;
        }
        row
    });
    row * SIZES.len() + column
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(size: u64, life_ns: Option<i64>) -> (&'static str, &'static str) {
        let cell = cell(size, life_ns);
        (SIZES[cell % SIZES.len()], LIVES[cell / SIZES.len()])
    }

    #[test]
    fn a_size_belongs_to_the_first_heat_map_column_that_is_not_smaller() {
        assert_eq!(names(0, None), ("16 B", "never freed"));
        assert_eq!(names(16, Some(0)), ("16 B", "< 1 us"));
        assert_eq!(names(17, Some(999)), ("32 B", "< 1 us"));
        assert_eq!(names(16 << 20, Some(1000)), ("16 MiB", "< 10 us"));
        assert_eq!(names(u64::MAX, Some(9_999_999_999)), ("more", "< 10 s"));
        assert_eq!(names(1 << 20, Some(10_000_000_000)), ("1 MiB", "longer"));
        assert_eq!(names(1, Some(i64::MAX)), ("16 B", "longer"));
    }
}
