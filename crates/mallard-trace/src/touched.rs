//! Counts the pages that blocks touch, by the number of bytes in blocks on each page.

use crate::measures::{Pages, PAGE_BYTES};

/// The number of entries from which entries for the same page are merged.
const ENTRIES_MIN: usize = 1 << 16;

/// The pages that some blocks touch.
///
/// Uses 16 bytes of memory for each page, and up to twice as much until entries for the same page
/// are merged.
#[derive(Debug, Clone, Default)]
pub(crate) struct Touched {
    /// Entries for the first and the last page of each block, with the number of the block's bytes
    /// on that page.
    entries: Vec<(u64, u32)>,
    /// The number of entries at which entries for the same page are merged next.
    limit: usize,
    /// The number of pages between the first and the last page of a block. No other block touches
    /// these pages.
    between: u64,
}

impl Touched {
    /// Removes all blocks.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.between = 0;
    }

    /// Adds a block.
    pub fn add(&mut self, addr: u64, size: u64) {
        if size == 0 {
            return;
        }
        let end = addr.saturating_add(size);
        let (first, last) = (addr / PAGE_BYTES, (end - 1) / PAGE_BYTES);
        if first == last {
            self.entries.push((first, size as u32));
        } else {
            self.entries.push((first, (PAGE_BYTES - addr % PAGE_BYTES) as u32));
            self.entries.push((last, (end - last * PAGE_BYTES) as u32));
            self.between += last - first - 1;
        }
        if self.entries.len() >= self.limit.max(ENTRIES_MIN) {
            self.join();
            self.limit = 2 * self.entries.len();
        }
    }

    /// Merges the entries for the same page, and adds up their bytes.
    fn join(&mut self) {
        self.entries.sort_unstable();
        self.entries.dedup_by(|next, kept| {
            let is_same = next.0 == kept.0;
            if is_same {
                kept.1 = kept.1.saturating_add(next.1);
            }
            is_same
        });
    }

    /// Returns the pages, grouped by the number of bytes in blocks on each page.
    pub fn pages(&mut self) -> Pages {
        self.join();
        let mut pages = Pages::default();
        pages.add(self.between, PAGE_BYTES);
        for &(_, bytes) in &self.entries {
            pages.add(1, u64::from(bytes));
        }
        pages
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_and_last_pages_of_a_block_are_listed_and_the_pages_between_are_counted() {
        let touched = |addr, size| {
            let mut touched = Touched::default();
            touched.add(addr, size);
            (touched.entries, touched.between)
        };
        assert_eq!(touched(4096, 4096), (vec![(1, 4096)], 0));
        assert_eq!(touched(4090, 10), (vec![(0, 6), (1, 4)], 0));
        assert_eq!(touched(4095, 4096 * 3 + 2), (vec![(0, 1), (4, 1)], 3));
        assert_eq!(touched(4096, 0), (vec![], 0));
    }

    #[test]
    fn blocks_on_the_same_page_are_merged_so_that_memory_stays_bounded() {
        let mut touched = Touched::default();
        for i in 0..10 * ENTRIES_MIN as u64 {
            touched.add(i % 4096 * 8, 8);
        }
        assert!(touched.entries.capacity() <= 2 * ENTRIES_MIN);
        touched.join();
        assert_eq!(touched.entries.len(), 8);
        assert_eq!(touched.entries[0], (0, 10 * 16 * 4096));
    }
}
