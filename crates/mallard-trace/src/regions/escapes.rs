//! Counts the blocks that outlive instances, by call stack.

use super::places::Places;
use crate::hash::NumberMap;

/// Blocks that outlived an instance of a region.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Escaped {
    pub blocks: u64,
    pub bytes: u64,
    /// The number of these blocks that another thread freed.
    pub foreign: u64,
}

impl Escaped {
    pub fn add(&mut self, other: &Escaped) {
        self.blocks += other.blocks;
        self.bytes += other.bytes;
        self.foreign += other.foreign;
    }
}

/// Blocks that escaped from (outlived) their regions, by region and by the place of their
/// allocation.
#[derive(Default)]
pub(super) struct Escapes {
    /// Blocks that escaped from all regions at their place except the outermost `n` regions. The
    /// key consists of the place and `n`.
    from: NumberMap<u64, Escaped>,
    /// Blocks that escaped from a region, but not from all regions inside it. The key consists of
    /// the place and of the region from which the blocks escaped.
    odd: NumberMap<u64, Escaped>,
}

/// The lowest bit of the place in a key.
const SHIFT: u32 = 16;

impl Escapes {
    /// Counts a block whose place has the regions in `list`. The regions in `owners` have open
    /// instances to which the block belongs, so the block has not escaped from them.
    #[inline]
    pub fn add(&mut self, place: u32, list: &[u16], owners: &[u16], size: u64, is_foreign: bool) {
        if owners.len() == list.len() {
            return;
        }
        let escaped = Escaped { blocks: 1, bytes: size, foreign: is_foreign.into() };
        let key = |low: u64| u64::from(place) << SHIFT | low;
        if list.starts_with(owners) {
            self.from.entry(key(owners.len() as u64)).or_default().add(&escaped);
            return;
        }
        for &region in list.iter().filter(|region| !owners.contains(region)) {
            self.odd.entry(key(u64::from(region))).or_default().add(&escaped);
        }
    }

    /// Calls `visit` with a region, a call stack, and the blocks of this call stack that escaped
    /// from the region. May visit the same pair repeatedly, each time with other blocks.
    pub fn visit(&self, places: &impl Places, mut visit: impl FnMut(u16, u32, &Escaped)) {
        for (key, escaped) in in_order(&self.from) {
            let (place, kept) = ((key >> SHIFT) as u32, (key & 0xffff) as usize);
            let list = places.regions(place);
            for &region in &list[kept.min(list.len())..] {
                visit(region, places.node(place), escaped);
            }
        }
        for (key, escaped) in in_order(&self.odd) {
            visit(key as u16, places.node((key >> SHIFT) as u32), escaped);
        }
    }
}

fn in_order(map: &NumberMap<u64, Escaped>) -> Vec<(u64, &Escaped)> {
    let mut all: Vec<(u64, &Escaped)> = map.iter().map(|(&key, escaped)| (key, escaped)).collect();
    all.sort_unstable_by_key(|&(key, _)| key);
    all
}
