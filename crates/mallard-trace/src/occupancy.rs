//! Tracks which pages of a process hold live blocks, and how full these pages are.

use crate::hash::NumberMap;
use crate::measures::PAGE_BYTES;
use crate::rounding::Rounding;
use std::collections::BTreeMap;

/// The number of pages in a group. A group covers 256 KiB of addresses.
const PAGES: u64 = 64;
/// The number of whole pages from which a block is large. The whole pages of a large block are
/// stored as a range.
const LARGE_PAGES_MIN: u64 = PAGES;

/// The bytes of live blocks on one or several pages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Bytes {
    /// Bytes that the program requested.
    asked: u64,
    /// Bytes that the malloc uses: `asked`, and what the malloc adds.
    taken: u64,
}

impl Bytes {
    fn add(&mut self, more: Bytes) {
        self.asked += more.asked;
        self.taken += more.taken;
    }

    /// Subtracts bytes, but never below 0. In a corrupt stream, blocks may overlap, so sums may be
    /// wrong.
    fn subtract(&mut self, less: Bytes) {
        self.asked = self.asked.saturating_sub(less.asked);
        self.taken = self.taken.saturating_sub(less.taken);
    }

    fn is_whole(self) -> bool {
        self.asked >= PAGE_BYTES
    }
}

/// Totals over pages with live blocks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Filled {
    /// Number of pages that have live blocks, but are not filled by a single block.
    shared: u64,
    /// The bytes of live blocks on the shared pages.
    bytes: Bytes,
    /// The number of pages that a single block fills. The program may never have touched such a
    /// page.
    whole: u64,
    /// Whether any of the pages has ever had a block.
    has_had_blocks: bool,
}

impl Filled {
    /// Returns whether any of the pages has ever had a block.
    pub fn has_had_blocks(&self) -> bool {
        self.has_had_blocks
    }

    /// Estimates the number of untouched pages within large blocks. `resident` is the number of
    /// resident bytes on these and the surrounding pages. Pages that several blocks share count as
    /// touched, because malloc touched them when it allocated the blocks.
    pub fn untouched(&self, resident: u64) -> u64 {
        let rest = (resident / PAGE_BYTES).saturating_sub(self.shared);
        self.whole.saturating_sub(rest)
    }

    /// Returns the totals without `untouched` pages within large blocks.
    pub fn without(self, untouched: u64) -> Filled {
        Filled { whole: self.whole.saturating_sub(untouched), ..self }
    }

    fn add(&mut self, more: &Filled) {
        self.shared += more.shared;
        self.bytes.add(more.bytes);
        self.whole += more.whole;
        self.has_had_blocks |= more.has_had_blocks;
    }

    fn add_page(&mut self, page: Bytes) {
        if page.is_whole() {
            self.whole += 1;
        } else if page.taken > 0 {
            self.shared += 1;
            self.bytes.add(page);
        }
    }

    fn subtract_page(&mut self, page: Bytes) {
        if page.is_whole() {
            self.whole -= 1;
        } else if page.taken > 0 {
            self.shared -= 1;
            self.bytes.subtract(page);
        }
    }
}

/// A group of adjacent pages.
#[derive(Clone)]
struct Group {
    pages: [(u32, u32); PAGES as usize],
    /// Bit n is set if page n has ever had a block.
    had_blocks: u64,
    /// The totals over `pages`.
    filled: Filled,
}

impl Group {
    fn page(&self, page: usize) -> Bytes {
        let (asked, taken) = self.pages[page];
        Bytes { asked: u64::from(asked), taken: u64::from(taken) }
    }

    /// Adds the bytes of a block to a page, or subtracts them.
    #[inline]
    fn change(&mut self, page: usize, by: Bytes, adds: bool) {
        let mut bytes = self.page(page);
        self.filled.subtract_page(bytes);
        if adds {
            bytes.add(by);
            self.had_blocks |= 1 << page;
        } else {
            bytes.subtract(by);
        }
        self.filled.add_page(bytes);
        let part = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
        self.pages[page] = (part(bytes.asked), part(bytes.taken));
    }

    /// Returns the totals over the pages `first..end` of the group.
    fn between(&self, first: usize, end: usize) -> Filled {
        let mut filled = Filled::default();
        for page in first..end {
            filled.add_page(self.page(page));
            filled.has_had_blocks |= self.had_blocks >> page & 1 == 1;
        }
        filled
    }
}

/// The pages of one process that hold live blocks.
///
/// Uses 0.6 KiB of memory for each 256 KiB of addresses in which a block begins or ends, and an
/// entry for each block of 256 KiB or more. Also stores which pages have ever had a block, because
/// only pages of the heap have blocks.
pub(crate) struct Occupancy {
    rounding: Rounding,
    index: NumberMap<u64, u32>,
    groups: Vec<Group>,
    /// The group that was changed last: its number (page number / 64) and its index in `groups`.
    last: (u64, u32),
    /// The groups sorted by address, as (number, index). `sort` updates the list.
    sorted: Vec<(u64, u32)>,
    /// The whole pages of large blocks. Key: first page. Value: number of pages.
    large: BTreeMap<u64, u64>,
}

impl Occupancy {
    /// Makes a set of pages without blocks.
    pub fn new(rounding: Rounding) -> Self {
        Occupancy {
            rounding,
            index: NumberMap::default(),
            groups: Vec::new(),
            last: (u64::MAX, 0),
            sorted: Vec::new(),
            large: BTreeMap::new(),
        }
    }

    /// Returns the rule by which sizes are rounded up.
    pub fn rounding(&self) -> Rounding {
        self.rounding
    }

    /// Adds a block.
    #[inline]
    pub fn add(&mut self, addr: u64, size: u64) {
        self.change(addr, size, true);
    }

    /// Removes a block that was added with the same size.
    #[inline]
    pub fn remove(&mut self, addr: u64, size: u64) {
        self.change(addr, size, false);
    }

    #[inline]
    fn change(&mut self, addr: u64, size: u64, adds: bool) {
        let taken = self.rounding.taken(addr, size);
        let first = addr / PAGE_BYTES;
        let last = addr.saturating_add(taken - 1) / PAGE_BYTES;
        if first == last {
            return self.change_page(first, Bytes { asked: size, taken }, adds);
        }
        let (asked_end, taken_end) = (addr.saturating_add(size), addr.saturating_add(taken));
        let on = |page: u64| {
            let begin = (page * PAGE_BYTES).max(addr);
            let end = page.saturating_add(1).saturating_mul(PAGE_BYTES);
            let part = |block_end: u64| block_end.min(end).saturating_sub(begin);
            Bytes { asked: part(asked_end), taken: part(taken_end) }
        };
        self.change_page(first, on(first), adds);
        let whole = last - first - 1;
        if whole < LARGE_PAGES_MIN {
            (first + 1..last).for_each(|page| self.change_page(page, on(page), adds));
        } else if adds {
            self.large.insert(first + 1, whole);
        } else {
            self.large.remove(&(first + 1));
        }
        self.change_page(last, on(last), adds);
    }

    #[inline]
    fn change_page(&mut self, page: u64, by: Bytes, adds: bool) {
        let number = page / PAGES;
        if self.last.0 != number {
            self.last = (number, self.find(number));
        }
        self.groups[self.last.1 as usize].change((page % PAGES) as usize, by, adds);
    }

    /// Returns the index of a group. Adds the group if it does not exist.
    fn find(&mut self, number: u64) -> u32 {
        let next = self.groups.len() as u32;
        let index = *self.index.entry(number).or_insert(next);
        if index == next {
            self.groups.push(Group {
                pages: [(0, 0); PAGES as usize],
                had_blocks: 0,
                filled: Filled::default(),
            });
        }
        index
    }

    /// Sorts the groups by address. Must be called between adding blocks and [`Occupancy::within`].
    pub fn sort(&mut self) {
        if self.sorted.len() != self.groups.len() {
            self.sorted = self.index.iter().map(|(&number, &index)| (number, index)).collect();
            self.sorted.sort_unstable();
        }
    }

    /// Returns the totals over the pages of an address range.
    pub fn within(&self, start: u64, end: u64) -> Filled {
        let (first, end) = (start / PAGE_BYTES, end.div_ceil(PAGE_BYTES));
        let mut filled = Filled::default();
        let from = self.sorted.partition_point(|&(number, _)| number < first / PAGES);
        for &(number, index) in &self.sorted[from..] {
            let begin = number * PAGES;
            if begin >= end {
                break;
            }
            let group = &self.groups[index as usize];
            if begin >= first && begin + PAGES <= end {
                filled.add(&group.filled);
                filled.has_had_blocks |= group.had_blocks != 0;
            } else {
                let page = |page: u64| page.clamp(begin, begin + PAGES) - begin;
                filled.add(&group.between(page(first) as usize, page(end) as usize));
            }
        }
        filled.whole += self.large_within(first, end);
        filled.has_had_blocks |= filled.whole > 0;
        filled
    }

    fn large_within(&self, first: u64, end: u64) -> u64 {
        let before = self.large.range(..first).next_back();
        let within = |(&begin, &pages): (&u64, &u64)| {
            begin.saturating_add(pages).min(end).saturating_sub(begin.max(first))
        };
        before.into_iter().chain(self.large.range(first..end.max(first))).map(within).sum()
    }
}

/// The parts of the resident bytes of a heap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Heap {
    /// Bytes that the program requested and has not freed.
    pub live: u64,
    /// Bytes that the malloc adds to live blocks.
    pub rounding: u64,
    /// Free bytes on pages with a live block.
    pub fragmented: u64,
    /// Bytes on pages without a live block.
    pub kept: u64,
}

impl Filled {
    /// Divides `resident` bytes, which are on these pages and the surrounding pages, into parts.
    /// Returns `None` if no page ever had a block.
    pub fn divide(&self, resident: u64) -> Option<Heap> {
        if !self.has_had_blocks {
            return None;
        }
        let shared = self.shared * PAGE_BYTES;
        let whole = self.whole * PAGE_BYTES;
        let (asked, taken) = (self.bytes.asked.min(shared), self.bytes.taken.min(shared));
        let taken = taken.max(asked);
        if resident < shared {
            let part = |bytes: u64| (bytes as u128 * resident as u128 / shared as u128) as u64;
            let (live, rounding) = (part(asked), part(taken - asked));
            return Some(Heap { live, rounding, fragmented: resident - live - rounding, kept: 0 });
        }
        let rest = resident - shared;
        Some(Heap {
            live: asked + rest.min(whole),
            rounding: taken - asked,
            fragmented: shared - taken,
            kept: rest.saturating_sub(whole),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn occupancy(blocks: &[(u64, u64)]) -> Occupancy {
        let mut occupancy = Occupancy::new(Rounding::Glibc);
        blocks.iter().for_each(|&(addr, size)| occupancy.add(addr, size));
        occupancy.sort();
        occupancy
    }

    #[test]
    fn the_resident_bytes_of_a_heap_divide_into_four_parts() {
        // Two blocks of 40 bytes on the first of four resident pages.
        let heap = occupancy(&[(0x10010, 40), (0x10040, 40)]).within(0x10000, 0x14000);
        let heap = heap.divide(4 * PAGE_BYTES).unwrap();
        assert_eq!(heap, Heap { live: 80, rounding: 16, fragmented: 4000, kept: 3 * 4096 });
    }

    #[test]
    fn memory_that_never_contained_a_block_is_not_counted_as_heap() {
        let mut occupancy = occupancy(&[(0x10010, 40)]);
        occupancy.remove(0x10010, 40);
        assert_eq!(occupancy.within(0x11000, 0x14000).divide(4096), None);
        let kept = Heap { kept: 8192, ..Heap::default() };
        assert_eq!(occupancy.within(0x10000, 0x14000).divide(8192), Some(kept));
    }

    #[test]
    fn the_untouched_part_of_a_large_block_is_not_resident() {
        let occupancy = occupancy(&[(0x1000_0010, 64 << 20)]);
        let heap = occupancy.within(0x1000_0000, 0x2000_0000).divide(1 << 20).unwrap();
        assert_eq!((heap.kept, heap.live + heap.rounding + heap.fragmented), (0, 1 << 20));
        assert!(heap.live > (1 << 20) - 8192, "{heap:?}");
        // A range that begins within a large block contains only a part of the block's pages.
        let part = occupancy.within(0x1100_0000, 0x2000_0000);
        assert_eq!(part.whole * PAGE_BYTES, (64 << 20) - (16 << 20));
    }

    #[test]
    fn overlapping_blocks_in_a_corrupt_event_log_never_exceed_resident_memory() {
        let blocks: Vec<(u64, u64)> = (0..5000).map(|i| (0x10000 + i % 7, 1 << (i % 50))).collect();
        let mut occupancy = occupancy(&blocks);
        for resident in [0, 1, 4096, 1 << 20, 1 << 40] {
            let heap = occupancy.within(0, u64::MAX).divide(resident).unwrap();
            assert_eq!(heap.live + heap.rounding + heap.fragmented + heap.kept, resident);
        }
        blocks.iter().for_each(|&(addr, size)| occupancy.remove(addr, size));
        assert_eq!(occupancy.within(0, u64::MAX).shared, 0);
    }
}
