//! Tracks the memory of the recorded processes while events are read: on which pages blocks are,
//! and which pages are resident according to the kernel.

use crate::hash::NumberMap;
use crate::memory::Parts;
use crate::occupancy::{Heap, Occupancy};
use crate::rounding::Rounding;
use std::collections::BTreeMap;

/// A mapping of a process, and how much of the mapping is resident and not backed by a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mapped {
    /// The first address of the mapping.
    pub start: u64,
    /// The address after the last byte.
    pub end: u64,
    /// The number of resident bytes that no file backs. 0 if the mapping no longer exists.
    pub anonymous: u64,
}

/// What the kernel reported about the mappings of a process at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct MappedChange {
    /// Resident bytes of the recorder that are backed by files.
    pub recorder: u64,
    /// The mappings that have changed since the previous reading.
    pub mappings: Vec<Mapped>,
}

/// The resident memory of a process, as the kernel reported it at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Resident {
    /// Resident bytes of the process.
    pub rss: u64,
    /// Resident bytes that no file backs.
    pub anonymous: u64,
    /// The changes of the mappings. `None` if only the two sums were read. Reading the mappings
    /// takes long, so they are read less often.
    pub mapped: Option<MappedChange>,
}

/// The heap and the mappings of one process.
struct Process {
    occupancy: Occupancy,
    /// The mappings. Key: first address. Value: (end address, resident bytes that no file backs).
    mappings: BTreeMap<u64, (u64, u64)>,
    /// The sums from the last reading of the mappings. `None` before the first reading.
    at_mappings: Option<AtMappings>,
}

/// Sums that can be computed only from the mappings. They change little between two readings of the
/// mappings.
#[derive(Clone, Copy, Default)]
struct AtMappings {
    /// Resident bytes of mappings that never held a block.
    stacks: u64,
    /// Resident bytes of the recorder that are backed by files.
    recorder: u64,
    /// The number of pages within large blocks that were never touched.
    untouched: u64,
}

impl Process {
    fn new(rounding: Rounding) -> Self {
        let occupancy = Occupancy::new(rounding);
        Process { occupancy, mappings: BTreeMap::new(), at_mappings: None }
    }

    /// Applies changes of the mappings, and computes the sums again.
    fn map(&mut self, change: MappedChange) {
        for mapped in change.mappings {
            if mapped.anonymous == 0 || mapped.end <= mapped.start {
                self.mappings.remove(&mapped.start);
            } else {
                self.mappings.insert(mapped.start, (mapped.end, mapped.anonymous));
            }
        }
        let mut now = AtMappings { recorder: change.recorder, ..AtMappings::default() };
        for (&start, &(end, bytes)) in &self.mappings {
            let filled = self.occupancy.within(start, end);
            if filled.has_had_blocks() {
                now.untouched += filled.untouched(bytes);
            } else {
                now.stacks = now.stacks.saturating_add(bytes);
            }
        }
        self.at_mappings = Some(now);
    }

    /// Divides `rss` resident bytes into parts. `anonymous` of these bytes are backed by no file,
    /// so they are in stacks or heaps. Returns `None` if the mappings were not read yet.
    fn parts(&self, rss: u64, anonymous: u64) -> Option<Parts> {
        let at_mappings = self.at_mappings?;
        let anonymous = anonymous.min(rss);
        let recorder = at_mappings.recorder.min(rss - anonymous);
        let stacks = at_mappings.stacks.min(anonymous);
        let filled = self.occupancy.within(0, u64::MAX).without(at_mappings.untouched);
        let (heap, stacks) = match filled.divide(anonymous - stacks) {
            Some(heap) => (heap, stacks),
            None => (Heap::default(), anonymous),
        };
        let signed = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
        Some(Parts {
            resident: signed(rss),
            live: signed(heap.live),
            rounding: signed(heap.rounding),
            fragmented: signed(heap.fragmented),
            kept: signed(heap.kept),
            code: signed(rss - anonymous - recorder),
            stacks: signed(stacks),
            recorder: signed(recorder),
        })
    }
}

/// The heaps and mappings of all processes.
#[derive(Default)]
pub(crate) struct Heaps {
    /// The processes. Each process has the index of its table of blocks. Traced allocators have
    /// tables, too, but their entries here are `None`.
    processes: Vec<Option<Box<Process>>>,
    /// The resident memory at samples that the reader has not reached yet, by sample number.
    announced: NumberMap<u64, Resident>,
    rounding: Rounding,
    is_whole: bool,
}

impl Heaps {
    /// Makes an empty set of processes. `is_whole` is false if the stream is sampled and therefore
    /// lacks some blocks. The pages of these blocks are unknown, so [`Heaps::parts`] then returns
    /// `None`.
    pub fn new(is_whole: bool) -> Self {
        Heaps { is_whole, ..Heaps::default() }
    }

    /// Sets the rounding rule for processes that are added from now on.
    pub fn set_rounding(&mut self, rounding: Rounding) {
        self.rounding = rounding;
    }

    /// Returns the rounding rule of the first process that still has a heap.
    pub fn rounding(&self) -> Rounding {
        let first = self.processes.iter().flatten().next();
        first.map_or(self.rounding, |process| process.occupancy.rounding())
    }

    /// Stores the resident memory at a sample until [`Heaps::parts`] asks for that sample.
    pub fn announce(&mut self, number: u64, resident: Resident) {
        self.announced.insert(number, resident);
    }

    fn process(&mut self, table: usize) -> &mut Process {
        if self.processes.len() <= table {
            self.processes.resize_with(table + 1, || None);
        }
        let rounding = self.rounding;
        self.processes[table].get_or_insert_with(|| Box::new(Process::new(rounding)))
    }

    /// Adds a block.
    #[inline]
    pub fn add(&mut self, table: usize, addr: u64, size: u64) {
        if !self.is_whole {
            return;
        }
        match self.processes.get_mut(table) {
            Some(Some(process)) => process.occupancy.add(addr, size),
            _ => self.process(table).occupancy.add(addr, size),
        }
    }

    /// Removes a block that was added with the same size.
    #[inline]
    pub fn remove(&mut self, table: usize, addr: u64, size: u64) {
        if let Some(Some(process)) = self.processes.get_mut(table) {
            process.occupancy.remove(addr, size);
        }
    }

    /// Discards the data about a process that has exited.
    pub fn forget(&mut self, table: usize) {
        if let Some(process) = self.processes.get_mut(table) {
            *process = None;
        }
    }

    /// Divides the resident memory of a process at a sample into parts. Returns `None` if the
    /// kernel did not report the resident memory, or if the mappings of the process were never
    /// read.
    pub fn parts(&mut self, number: u64, table: usize) -> Option<Parts> {
        let resident = self.announced.remove(&number).filter(|_| self.is_whole)?;
        let process = self.process(table);
        process.occupancy.sort();
        if let Some(change) = resident.mapped {
            process.map(change);
        }
        process.parts(resident.rss, resident.anonymous)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapped(start: u64, end: u64, anonymous: u64) -> Mapped {
        Mapped { start, end, anonymous }
    }

    fn resident(rss: u64, anonymous: u64, mappings: &[Mapped]) -> Resident {
        let mapped = MappedChange { recorder: 0x2000, mappings: mappings.to_vec() };
        Resident { rss, anonymous, mapped: Some(mapped) }
    }

    #[test]
    fn resident_memory_is_divided_into_heaps_stacks_and_files() {
        let mut heaps = Heaps::new(true);
        heaps.add(0, 0x10010, 4000);
        let mappings = [mapped(0x10000, 0x20000, 0x3000), mapped(0x7f000, 0x80000, 0x1000)];
        heaps.announce(5, resident(0xa000, 0x4000, &mappings));
        let parts = heaps.parts(5, 0).unwrap();
        assert_eq!((parts.live, parts.rounding, parts.fragmented), (4000, 16, 80));
        assert_eq!((parts.kept, parts.stacks), (0x2000, 0x1000));
        assert_eq!((parts.code, parts.recorder), (0x4000, 0x2000));
        let sum: i64 = parts.named().iter().map(|&(_, bytes)| bytes).sum();
        assert_eq!(sum, parts.resident);
        // Until the mappings are read again, a change of `anonymous` counts as a change of the
        // heap.
        heaps.add(0, 0x12010, 4000);
        heaps.announce(6, Resident { rss: 0xb000, anonymous: 0x5000, mapped: None });
        let next = heaps.parts(6, 0).unwrap();
        assert_eq!((next.live, next.kept, next.stacks), (8000, 0x2000, 0x1000));
        // Only mappings that have changed are reported again.
        heaps.announce(7, resident(0xa000, 0x4000, &[mapped(0x7f000, 0, 0)]));
        let last = heaps.parts(7, 0).unwrap();
        assert_eq!((last.stacks, last.live, last.kept), (0, 8000, 0x2000));
        assert_eq!(heaps.parts(8, 0), None);
    }

    #[test]
    fn memory_that_was_untouched_when_the_mappings_were_read_is_not_live() {
        let mut heaps = Heaps::new(true);
        heaps.add(0, 0x1000_0010, 64 << 20); // 1 MiB of the block is touched
        heaps.add(0, 0x2000_0010, 100); // 1 MiB was freed around the block
        let mappings =
            [mapped(0x1000_0000, 0x1500_0000, 1 << 20), mapped(0x2000_0000, 0x2500_0000, 1 << 20)];
        heaps.announce(0, resident(4 << 20, 2 << 20, &mappings));
        let parts = heaps.parts(0, 0).unwrap();
        assert_eq!((parts.live + parts.rounding + parts.fragmented) >> 10, 1024 + 4);
        assert_eq!(parts.kept >> 10, 1024 - 4);
    }

    #[test]
    fn sampled_recordings_and_recordings_without_mappings_have_no_memory_breakdown() {
        let mut heaps = Heaps::new(false);
        heaps.add(0, 0x10010, 4000);
        heaps.announce(0, resident(0xa000, 0x4000, &[]));
        assert_eq!(heaps.parts(0, 0), None);
        let mut heaps = Heaps::new(true);
        heaps.announce(0, Resident { rss: 1, anonymous: 1, mapped: None });
        assert_eq!(heaps.parts(0, 0), None);
    }

    #[test]
    fn contradictory_memory_figures_do_no_harm() {
        let mut heaps = Heaps::new(true);
        heaps.add(0, 16, 40);
        let mappings = [mapped(0, u64::MAX, u64::MAX), mapped(1, 2, u64::MAX)];
        heaps.announce(0, resident(5000, u64::MAX, &mappings));
        let parts = heaps.parts(0, 0).unwrap();
        assert_eq!((parts.resident, parts.code, parts.recorder), (5000, 0, 0));
        assert!(parts.named().iter().all(|&(_, bytes)| (0..=5000).contains(&bytes)), "{parts:?}");
    }
}
