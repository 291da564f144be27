//! Computes the address map, which shows where in memory the blocks are at several moments. Bytes
//! in use are counted in granules, which are aligned ranges of memory. A cell of the map consists
//! of whole granules.

use crate::hash::NumberMap;

/// log2 of the size of the smallest granules, in bytes.
const SHIFT_MIN: u32 = 8;
/// log2 of the size of the largest granules, in bytes. Two such granules cover all addresses.
const SHIFT_MAX: u32 = 63;
/// The maximum number of granules. If there are more, the granule size doubles.
const GRANULES_MAX: usize = 8192;
/// The maximum number of adjacent cells without blocks inside a range.
const GAP_MAX: u64 = 8;

/// The fill level of each memory cell with live blocks, at several moments.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AddressMap {
    /// The moments, in time order.
    pub moments: Vec<i64>,
    /// The index in `moments` of the program's peak.
    pub peak: Option<usize>,
    /// The size of a cell in bytes, a power of two.
    pub bytes_per_cell: u64,
    /// The address ranges that had blocks: the first address, and the address after the last byte.
    /// A range consists of whole cells.
    pub ranges: Vec<(u64, u64)>,
    /// The fill level of each cell from 0 to 255, for each moment. Each list has the cells of all
    /// ranges, in order.
    pub fill: Vec<Vec<u8>>,
}

/// The bytes in use in each granule. A granule is 2^`shift` bytes of memory.
#[derive(Debug, Clone, Default)]
pub(super) struct Granules {
    pub shift: u32,
    pub bytes: NumberMap<u64, i64>,
}

impl Granules {
    pub fn new(shift: u32) -> Granules {
        Granules { shift, bytes: NumberMap::default() }
    }

    /// Adds the bytes of a block, or subtracts them if `sign` is -1.
    #[inline]
    pub fn add(&mut self, addr: u64, size: u64, sign: i64) {
        if size == 0 {
            return;
        }
        let last_byte = addr.saturating_add(size - 1);
        let (first, last) = (addr >> self.shift, last_byte >> self.shift);
        if first == last {
            *self.bytes.entry(first).or_default() += sign * size as i64;
        } else {
            self.add_to_many(addr, last_byte, sign);
        }
    }

    fn add_to_many(&mut self, addr: u64, last_byte: u64, sign: i64) {
        // A block that extends over too many granules first needs larger granules.
        while (last_byte >> self.shift) - (addr >> self.shift) >= GRANULES_MAX as u64 {
            self.coarsen();
        }
        for granule in addr >> self.shift..=last_byte >> self.shift {
            let begin = (granule << self.shift).max(addr);
            let end = (granule << self.shift | ((1 << self.shift) - 1)).min(last_byte);
            *self.bytes.entry(granule).or_default() += sign * (end - begin + 1) as i64;
        }
    }

    /// Doubles the granule size.
    fn coarsen(&mut self) {
        let mut coarse = Granules::new(self.shift + 1);
        for (granule, bytes) in self.bytes.drain() {
            *coarse.bytes.entry(granule >> 1).or_default() += bytes;
        }
        *self = coarse;
    }

    /// Doubles the granule size until there are at most [`GRANULES_MAX`] granules.
    #[inline]
    fn limit(&mut self) {
        while self.bytes.len() > GRANULES_MAX && self.shift < SHIFT_MAX {
            self.coarsen();
        }
    }
}

/// The ranges of an address map, divided into cells.
pub(super) struct Layout {
    shift: u32,
    /// The first cell of each range, and the cell after its last cell.
    ranges: Vec<(u64, u64)>,
    /// The number of cells in front of each range, which are the cells of all earlier ranges.
    before: Vec<usize>,
    cells: usize,
}

impl Layout {
    /// Chooses the smallest cell size for which there are at most `cells_max` cells. Without such a
    /// size, chooses the maximum cell size.
    fn new(touched: &Granules, cells_max: usize) -> Layout {
        let mut granules: Vec<u64> = touched.bytes.keys().copied().collect();
        granules.sort_unstable();
        let mut shift = touched.shift;
        loop {
            let ranges = ranges_of(&granules);
            let cells: u64 = ranges.iter().map(|(begin, end)| end - begin).sum();
            if cells <= cells_max as u64 || shift >= SHIFT_MAX {
                return Layout::of(shift, ranges);
            }
            shift += 1;
            granules.iter_mut().for_each(|granule| *granule >>= 1);
            granules.dedup();
        }
    }

    fn of(shift: u32, ranges: Vec<(u64, u64)>) -> Layout {
        let mut cells = 0;
        let mut before = Vec::with_capacity(ranges.len());
        for (begin, end) in &ranges {
            before.push(cells);
            cells += (end - begin) as usize;
        }
        Layout { shift, ranges, before, cells }
    }

    /// Returns the index of a cell in the map, if the cell is in a range.
    fn index(&self, cell: u64) -> Option<usize> {
        let range = self.ranges.partition_point(|&(_, end)| end <= cell);
        let &(begin, end) = self.ranges.get(range)?;
        (begin..end).contains(&cell).then(|| self.before[range] + (cell - begin) as usize)
    }

    /// Computes the fill level of each cell, from 0 to 255. Granules must not be larger than cells.
    pub fn fill<'a>(
        &self,
        shift: u32,
        granules: impl Iterator<Item = (&'a u64, &'a i64)>,
    ) -> Vec<u8> {
        let mut bytes = vec![0i64; self.cells];
        for (&granule, &used) in granules {
            if let Some(index) = self.index(granule >> (self.shift - shift)) {
                bytes[index] += used;
            }
        }
        let share = |&used: &i64| {
            let used = used.max(0) as u128;
            (used * 255).div_ceil(1 << self.shift).min(255) as u8
        };
        bytes.iter().map(share).collect()
    }
}

/// Merges cells into ranges. Cells with at most [`GAP_MAX`] cells between them are in one range.
fn ranges_of(cells: &[u64]) -> Vec<(u64, u64)> {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for &cell in cells {
        match ranges.last_mut() {
            Some((_, end)) if cell - *end <= GAP_MAX => *end = cell + 1,
            _ => ranges.push((cell, cell + 1)),
        }
    }
    ranges
}

/// The state of memory at a moment.
struct Moment {
    t_ns: i64,
    is_peak: bool,
    shift: u32,
    granules: Vec<(u64, i64)>,
}

/// Tracks the bytes in use, and stores them at several moments.
pub(super) struct Map {
    now: Granules,
    /// The moments that the pass has not reached yet. The next moment is the last element.
    coming: Vec<i64>,
    moments: Vec<Moment>,
}

impl Map {
    /// Makes a map of a run from 0 to `end_ns` with at most `moments` moments, including the peak.
    pub fn new(end_ns: i64, moments: usize) -> Map {
        let parts = moments.saturating_sub(1).max(1) as i64;
        let moment = |part: i64| (i128::from(end_ns) * i128::from(part) / i128::from(parts)) as i64;
        let mut coming: Vec<i64> = (1..=parts).rev().map(moment).collect();
        coming.dedup();
        Map { now: Granules::new(SHIFT_MIN), coming, moments: Vec::new() }
    }

    /// Stores the state at each moment before the next event, whose time is `t_ns`.
    #[inline]
    pub fn before(&mut self, t_ns: i64) {
        while self.coming.last().is_some_and(|&next| next < t_ns) {
            let t_ns = self.coming.pop().unwrap_or_default();
            self.keep(t_ns, false);
        }
    }

    /// Stores the state at the peak of the program. Must be called at the peak.
    pub fn peak(&mut self, t_ns: i64) {
        self.before(t_ns);
        self.keep(t_ns, true);
    }

    #[cold]
    fn keep(&mut self, t_ns: i64, is_peak: bool) {
        let used = self.now.bytes.iter().filter(|(_, bytes)| **bytes > 0);
        let granules = used.map(|(&granule, &bytes)| (granule, bytes)).collect();
        self.moments.push(Moment { t_ns, is_peak, shift: self.now.shift, granules });
    }

    /// Adds the bytes of a block, or subtracts them if `sign` is -1. Ignores blocks whose address
    /// is unknown.
    #[inline]
    pub fn add(&mut self, addr: u64, size: u64, sign: i64) {
        if addr != 0 {
            self.now.add(addr, size, sign);
            self.now.limit();
        }
    }

    /// Sets the bytes in use to 0 in all granules.
    pub fn clear(&mut self) {
        self.now.bytes.values_mut().for_each(|bytes| *bytes = 0);
    }

    /// Returns log2 of the current granule size in bytes.
    pub fn shift(&self) -> u32 {
        self.now.shift
    }

    /// Returns the map and the layout of its cells.
    pub fn finish(self, cells_max: usize) -> (AddressMap, Layout) {
        let layout = Layout::new(&self.now, cells_max);
        let fill = |moment: &Moment| {
            let granules = moment.granules.iter().map(|(granule, bytes)| (granule, bytes));
            layout.fill(moment.shift, granules)
        };
        let address = |cell: u64| u128::from(cell) << layout.shift;
        let range = |&(begin, end): &(u64, u64)| {
            (address(begin) as u64, address(end).min(u128::from(u64::MAX)) as u64)
        };
        let map = AddressMap {
            moments: self.moments.iter().map(|moment| moment.t_ns).collect(),
            peak: self.moments.iter().position(|moment| moment.is_peak),
            bytes_per_cell: 1 << layout.shift,
            ranges: layout.ranges.iter().map(range).collect(),
            fill: self.moments.iter().map(fill).collect(),
        };
        (map, layout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_counted_in_each_granule_of_the_address_map_that_it_overlaps() {
        let mut granules = Granules::new(SHIFT_MIN);
        granules.add(0x1ff, 0x102, 1);
        let mut bytes: Vec<_> = granules.bytes.iter().map(|(&g, &b)| (g, b)).collect();
        bytes.sort_unstable();
        assert_eq!(bytes, [(1, 1), (2, 256), (3, 1)]);
        granules.add(0x1ff, 0x102, -1);
        assert!(granules.bytes.values().all(|&bytes| bytes == 0));
    }

    #[test]
    fn address_map_granules_grow_so_that_memory_stays_bounded() {
        let mut map = Map::new(100, 4);
        for block in 0..100_000u64 {
            map.add(0x7000_0000_0000 + block * 4096, 100, 1);
        }
        assert!(map.now.bytes.len() <= GRANULES_MAX);
        map.add(1 << 20, 1 << 45, 1);
        assert!(map.now.bytes.len() <= 2 * GRANULES_MAX);
        map.add(u64::MAX - 5, u64::MAX, 1);
        let (map, _) = map.finish(1500);
        assert!(map.ranges.len() < 1500);
    }

    #[test]
    fn memory_without_blocks_is_omitted_from_the_address_map() {
        let mut map = Map::new(90, 4);
        map.add(0x10000, 256, 1);
        map.before(40);
        map.add(0x10100, 128, 1);
        map.add(0x7f00_0000_0000, 512, 1);
        map.peak(50);
        map.add(0x10000, 256, -1);
        map.before(i64::MAX);
        let (map, _) = map.finish(1500);
        assert_eq!(map.ranges, [(0x10000, 0x10200), (0x7f00_0000_0000, 0x7f00_0000_0200)]);
        assert_eq!(map.bytes_per_cell, 256);
        assert_eq!((map.moments, map.peak), (vec![30, 50, 60, 90], Some(1)));
        assert_eq!(map.fill[0], [255, 0, 0, 0]);
        assert_eq!(map.fill[1], [255, 128, 255, 255]);
        assert_eq!(map.fill[3], [0, 128, 255, 255]);
    }
}
