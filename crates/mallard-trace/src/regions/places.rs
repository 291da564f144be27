//! Assigns indices to the places at which blocks are allocated, and lists the regions that are
//! running at a place.

use crate::hash::NumberMap;
use std::collections::HashMap;

/// Indices of the places at which blocks are allocated. Many places have the same list of regions.
pub(super) trait Places {
    /// Returns the index of the list of regions at a place.
    fn list(&self, place: u32) -> u32;
    /// Returns the regions in a list, the outermost first.
    fn members(&self, list: u32) -> &[u16];
    /// Returns the call stack of a place.
    fn node(&self, place: u32) -> u32;

    /// Returns the regions that are running at a place, the outermost first.
    #[inline]
    fn regions(&self, place: u32) -> &[u16] {
        self.members(self.list(place))
    }
}

/// Sums over all places with the same list of regions.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ListSum {
    pub blocks: u64,
    pub bytes: u64,
    pub calls: u64,
    pub foreign_frees: u64,
}

impl ListSum {
    pub fn add(&mut self, other: &ListSum) {
        self.blocks += other.blocks;
        self.bytes += other.bytes;
        self.calls += other.calls;
        self.foreign_frees += other.foreign_frees;
    }
}

/// Packs a list of regions with a size or a call stack into a key of a map.
pub(super) fn key(list: u32, other: u64) -> u64 {
    u64::from(list) << 40 | other
}

/// Unpacks the list, and the size or call stack, from a key.
pub(super) fn unpacked(key: u64) -> (u32, u64) {
    ((key >> 40) as u32, key & ((1 << 40) - 1))
}

/// The places inside marked regions. A place is the list of open regions and the call stack of an
/// allocation.
#[derive(Default)]
pub(super) struct MarkedPlaces {
    /// The lists of open regions, the outermost first. A list contains each region only once.
    lists: Vec<Vec<u16>>,
    by_regions: HashMap<Vec<u16>, u32>,
    /// The list and the call stack of each place.
    places: Vec<(u32, u32)>,
    by_place: NumberMap<u64, u32>,
}

impl MarkedPlaces {
    /// Returns the number of lists.
    pub fn lists(&self) -> usize {
        self.lists.len()
    }

    /// Returns the index of the list with the regions in `open`. A region that is open several
    /// times, because of recursion, occurs repeatedly in `open`.
    pub fn list_of(&mut self, open: &[u16]) -> u32 {
        let mut once: Vec<u16> = Vec::with_capacity(open.len());
        for region in open {
            if !once.contains(region) {
                once.push(*region);
            }
        }
        let next = self.lists.len() as u32;
        *self.by_regions.entry(once).or_insert_with_key(|once| {
            self.lists.push(once.clone());
            next
        })
    }

    /// Returns the place of a list and a call stack. Adds the place if it is new.
    pub fn place_of(&mut self, list: u32, node: u32) -> u32 {
        *self.by_place.entry(u64::from(list) << 32 | u64::from(node)).or_insert_with(|| {
            self.places.push((list, node));
            self.places.len() as u32 - 1
        })
    }
}

impl Places for MarkedPlaces {
    fn list(&self, place: u32) -> u32 {
        self.places[place as usize].0
    }

    fn members(&self, list: u32) -> &[u16] {
        &self.lists[list as usize]
    }

    fn node(&self, place: u32) -> u32 {
        self.places[place as usize].1
    }
}
