//! The regions that the program marks itself: instances with exact ends.
//!
//! A program without marks costs nothing here. The blocks of marked regions are followed apart from
//! those of the candidates, since any allocation may be inside of a marked region.

use super::clocks::Clock;
use super::escapes::Escaped;
use super::instance::Ended;
use super::live::{Block, Live};
use super::region::Limits;
use super::sure::Opened;
use super::tally::{Costs, Tally};
use crate::format::op;
use crate::hash::NumberMap;
use crate::rows::Row;
use std::collections::HashMap;

/// The marks of a thread, and the instances that are open.
struct Thread {
    tid: i32,
    clock: Clock,
    /// The numbers of the begun regions, the outermost first. A recursive region occurs repeatedly.
    begun: Vec<u16>,
    /// The regions in `begun`, each listed once.
    open: Vec<u16>,
    instances: Opened,
}

/// The sums of a marked region over its instances.
#[derive(Default)]
pub(super) struct Marked {
    /// The node that stands for the name of the region.
    pub node: u32,
    pub tally: Tally,
    pub blocks: u64,
    pub bytes: u64,
    pub calls: u64,
    pub foreign_frees: u64,
    pub escaped: Escaped,
    /// Number of blocks by size.
    pub sizes: NumberMap<u64, u64>,
    /// Escaped blocks by call stack.
    pub escaped_of: NumberMap<u32, Escaped>,
}

/// The greatest number of regions. The marks of further regions are left out.
const REGIONS_MAX: usize = 4096;

/// All marked regions.
pub(super) struct Exact {
    pub regions: Vec<Marked>,
    pub not_followed: u64,
    numbers: NumberMap<u32, u16>,
    threads: NumberMap<u32, Thread>,
    /// The blocks in use. The `node` of such a block is an index in `places`.
    live: Live,
    /// Pairs of a list of open regions and the call stack of an allocation in them, each pair once.
    places: Vec<(Vec<u16>, u32)>,
    by_place: HashMap<(Vec<u16>, u32), u32>,
    limits: Limits,
    costs: Costs,
}

impl Exact {
    pub fn new(limits: Limits, costs: Costs) -> Exact {
        Exact {
            regions: Vec::new(),
            not_followed: 0,
            numbers: NumberMap::default(),
            threads: NumberMap::default(),
            live: Live::new(limits.blocks),
            places: Vec::new(),
            by_place: HashMap::new(),
            limits,
            costs,
        }
    }

    /// Handles a mark of a thread. `clock` is the clock of the thread.
    pub fn mark(&mut self, row: &Row, index: usize, clock: &Clock) {
        let Some(region) = self.number(row.stack as u32) else { return };
        let thread = self.threads.entry(index as u32).or_insert_with(|| Thread {
            tid: row.tid,
            clock: clock.clone(),
            begun: Vec::new(),
            open: Vec::new(),
            instances: Opened::default(),
        });
        if row.op == op::REGION_BEGIN {
            thread.begun.push(region);
        } else if let Some(at) = thread.begun.iter().rposition(|&begun| begun == region) {
            thread.begun.truncate(at);
        }
        thread.open.clear();
        for &begun in &thread.begun {
            if !thread.open.contains(&begun) {
                thread.open.push(begun);
            }
        }
        thread.instances.seen(row.t_ns);
        self.end_unless_open(index, true);
    }

    /// The number of a region, by the node that stands for its name.
    fn number(&mut self, node: u32) -> Option<u16> {
        if let Some(&number) = self.numbers.get(&node) {
            return Some(number);
        }
        let number = self.regions.len();
        if number >= REGIONS_MAX {
            return None;
        }
        self.regions.push(Marked { node, ..Marked::default() });
        self.numbers.insert(node, number as u16);
        Some(number as u16)
    }

    /// Ends the instances of a thread whose regions are over.
    fn end_unless_open(&mut self, index: usize, is_finished: bool) {
        let Some(thread) = self.threads.get_mut(&(index as u32)) else { return };
        let Thread { tid, clock, open, instances, .. } = thread;
        instances.end_unless(open, clock, &mut |ended| {
            let ended = Ended { thread: index as u32, is_finished, ..ended };
            let tally = &mut self.regions[usize::from(ended.candidate)].tally;
            tally.add(&ended, *tid, self.limits.lanes, &self.costs);
        });
    }

    /// Ends all instances of a thread: the thread or the recording has ended.
    pub fn end_thread(&mut self, index: usize, is_finished: bool) {
        if let Some(thread) = self.threads.get_mut(&(index as u32)) {
            thread.begun.clear();
            thread.open.clear();
            self.end_unless_open(index, is_finished);
        }
    }

    /// Adds a block, if its thread is inside of a marked region.
    pub fn allocate(&mut self, row: &Row, index: usize) {
        let thread = self.threads.get_mut(&(index as u32));
        let Some(thread) = thread.filter(|thread| !thread.open.is_empty()) else { return };
        let Thread { clock, open, instances, .. } = thread;
        let serial = instances.allocate(open, row.size, row.t_ns, clock);
        instances.seen(row.t_ns);
        for &region in open.iter() {
            let of = &mut self.regions[usize::from(region)];
            of.blocks += 1;
            of.bytes += row.size;
            of.calls += 1;
            *of.sizes.entry(row.size).or_default() += 1;
        }
        let place = (open.clone(), row.stack.max(0) as u32);
        let next = self.places.len() as u32;
        let number = *self.by_place.entry(place.clone()).or_insert(next);
        if number == next {
            self.places.push(place);
        }
        let block = Block { size: row.size, thread: index as u32, serial, node: number };
        if serial == u32::MAX || !self.live.insert(row.alloc, block) {
            self.not_followed += 1;
            self.leave(&block);
        }
    }

    /// Counts the free of a block by a thread.
    pub fn free(&mut self, row: &Row, by: usize, alloc: i64) {
        let Some(block) = self.live.remove(alloc) else { return };
        let is_foreign = block.thread as usize != by;
        let (list, node) = &self.places[block.node as usize];
        let Some(thread) = self.threads.get_mut(&block.thread) else { return };
        let owners = thread.instances.owners(block.serial);
        let escaped = Escaped { blocks: 1, bytes: block.size, foreign: is_foreign.into() };
        for region in list {
            let of = &mut self.regions[usize::from(*region)];
            of.calls += 1;
            of.foreign_frees += u64::from(is_foreign);
            if !owners.contains(region) {
                of.escaped.add(&escaped);
                of.escaped_of.entry(*node).or_default().add(&escaped);
            }
        }
        let owners = owners.len();
        thread.instances.free(owners, block.size, row.t_ns, !is_foreign, &mut thread.clock);
        if !is_foreign {
            thread.instances.seen(row.t_ns);
        }
    }

    /// Counts a realloc of a block. The block stays in its instances.
    pub fn resize(&mut self, row: &Row) {
        let Some(block) = self.live.remove(row.old_alloc) else { return };
        let (from, to) = (block.size, row.size.max(1));
        let Some(thread) = self.threads.get_mut(&block.thread) else { return };
        let owners = thread.instances.owners(block.serial).len();
        thread.instances.resize(owners, from, to);
        for &region in &self.places[block.node as usize].0 {
            let of = &mut self.regions[usize::from(region)];
            of.calls += 1;
            of.bytes += to.saturating_sub(from);
        }
        let block = Block { size: to, ..block };
        if !self.live.insert(row.alloc, block) {
            self.not_followed += 1;
            self.leave(&block);
        }
    }

    /// Counts a block that is in use at the end.
    fn leave(&mut self, block: &Block) {
        let (list, node) = &self.places[block.node as usize];
        let escaped = Escaped { blocks: 1, bytes: block.size, foreign: 0 };
        for &region in list {
            let of = &mut self.regions[usize::from(region)];
            of.escaped.add(&escaped);
            of.escaped_of.entry(*node).or_default().add(&escaped);
        }
    }

    /// Ends all instances, and counts the blocks in use.
    pub fn finish(&mut self) {
        let mut threads: Vec<u32> = self.threads.keys().copied().collect();
        threads.sort_unstable();
        threads.into_iter().for_each(|thread| self.end_thread(thread as usize, false));
        let live = std::mem::replace(&mut self.live, Live::new(0));
        live.into_blocks().for_each(|block| self.leave(&block));
    }
}
