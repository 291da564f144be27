//! Computes statistics of the block sizes of each region.

use super::places::{unpacked, Places};
use crate::hash::NumberMap;
use crate::histogram::size_bucket;
use crate::measures::entropy;

/// Statistics of the block sizes of a region.
#[derive(Debug, Clone, Default)]
pub(super) struct Sizes {
    /// Number of different sizes that blocks had.
    pub count: u32,
    /// The share of blocks with the most frequent size. The size of a block is that after its last
    /// resize.
    pub one_size_share: f64,
    /// The entropy of the size classes, in bits.
    pub variation_bits: f64,
}

/// Accumulates the sizes of a region, in ascending order.
#[derive(Clone, Default)]
struct Counts {
    sizes: u32,
    /// The current size, and its count.
    current: Option<(u64, u64)>,
    most: u64,
    all: u64,
    classes: Vec<f64>,
}

impl Counts {
    fn add(&mut self, size: u64, count: u64) {
        match &mut self.current {
            Some((same, sum)) if *same == size => *sum += count,
            current => {
                *current = Some((size, count));
                self.sizes += 1;
            }
        }
        self.most = self.most.max(self.current.map_or(0, |(_, sum)| sum));
        self.all += count;
        let class = usize::from(size_bucket(size));
        if class >= self.classes.len() {
            self.classes.resize(class + 1, 0.0);
        }
        self.classes[class] += count as f64;
    }

    fn finish(&self) -> Sizes {
        Sizes {
            count: self.sizes,
            one_size_share: self.most as f64 / self.all.max(1) as f64,
            variation_bits: if self.all > 0 { entropy(&self.classes) } else { 0.0 },
        }
    }
}

/// Computes the statistics of each region. `sizes` has the number of blocks for each list of
/// regions and each size.
pub(super) fn of(places: &impl Places, sizes: &NumberMap<u64, u64>, regions: usize) -> Vec<Sizes> {
    let mut sorted: Vec<(u64, u32, u64)> = Vec::with_capacity(sizes.len());
    for (&key, &count) in sizes {
        let (list, size) = unpacked(key);
        sorted.push((size, list, count));
    }
    sorted.sort_unstable();
    let mut counts = vec![Counts::default(); regions];
    for (size, list, count) in sorted {
        for &region in places.members(list) {
            counts[usize::from(region)].add(size, count);
        }
    }
    counts.iter().map(Counts::finish).collect()
}
