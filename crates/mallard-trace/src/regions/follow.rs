//! Tracks the blocks of regions, and counts which of them outlive their instances.

use super::clocks::Clock;
use super::escapes::Escapes;
use super::instance::Ended;
use super::places::{key, ListSum, Places};
use super::region::Limits;
use super::sure::Opened;
use super::tally::{Costs, Tally};
use crate::hash::NumberMap;
use crate::histogram::{size_bound, size_bucket};
use crate::rows::Row;

/// The maximum number of entries in `Following::sizes`, each for a list of regions and a size. If
/// there are more, further sizes are rounded up to size classes.
const SIZES_MAX: usize = 1 << 20;

/// A block in use that was allocated in a region.
#[derive(Debug, Clone, Copy)]
struct Block {
    size: u64,
    /// The index of the allocating thread.
    thread: u32,
    /// The number of blocks that the thread had allocated in regions before this block.
    serial: u32,
    /// The place of the allocation, as an index for [`Places`].
    place: u32,
}

/// A block in 16 bytes, as the table stores it.
#[derive(Debug, Clone, Copy)]
struct Packed {
    /// The size in the lower 40 bits, and the thread in the bits above.
    what: u64,
    serial: u32,
    place: u32,
}

const THREAD_SHIFT: u32 = 40;
const THREADS_MAX: u32 = 1 << 24;

impl Packed {
    fn of(block: Block) -> Packed {
        Packed {
            what: block.size | u64::from(block.thread) << THREAD_SHIFT,
            serial: block.serial,
            place: block.place,
        }
    }

    fn block(self) -> Block {
        Block {
            size: self.what & ((1 << THREAD_SHIFT) - 1),
            thread: (self.what >> THREAD_SHIFT) as u32,
            serial: self.serial,
            place: self.place,
        }
    }
}

/// The blocks in use, by block ID.
#[derive(Default)]
struct Live {
    blocks: NumberMap<u64, Packed>,
    limit: usize,
}

impl Live {
    /// Adds a block. Returns false if the table is full.
    #[inline]
    fn insert(&mut self, id: i64, block: Block) -> bool {
        if self.blocks.len() >= self.limit || block.thread >= THREADS_MAX {
            return false;
        }
        self.blocks.insert(id as u64, Packed::of(block));
        true
    }

    /// Removes a block.
    #[inline]
    fn remove(&mut self, id: i64) -> Option<Block> {
        self.blocks.remove(&(id as u64)).map(Packed::block)
    }

    /// Returns all blocks, in no particular order.
    fn into_blocks(self) -> impl Iterator<Item = Block> {
        self.blocks.into_values().map(Packed::block)
    }
}

/// A thread of the program, with its open instances.
#[derive(Default)]
pub(super) struct Thread {
    pub tid: i32,
    pub clock: Clock,
    pub opened: Opened,
}

/// A block that a call has resized or freed.
pub(super) struct Changed {
    /// The list of the regions at the block's place.
    pub list: u32,
    /// The index of the allocating thread.
    pub thread: usize,
    /// The size before the call.
    pub size: u64,
}

/// The tracked blocks of regions, and sums over these blocks. The caller determines when instances
/// end.
#[derive(Default)]
pub(super) struct Following {
    pub threads: Vec<Thread>,
    /// For each region, the sums over its instances.
    pub tallies: Vec<Tally>,
    pub lists: Vec<ListSum>,
    /// The number of blocks for each list of regions and each size. [`key`] packs both into a key.
    pub sizes: NumberMap<u64, u64>,
    /// The blocks that outlived their instances. `left` has the blocks that were still in use when
    /// the recording ended.
    pub escapes: Escapes,
    pub left: Escapes,
    /// The number of blocks that were not tracked, because the table of blocks was full.
    pub not_followed: u64,
    pub limits: Limits,
    pub costs: Costs,
    live: Live,
}

impl Following {
    pub fn new(regions: usize, lists: usize, limits: Limits, costs: Costs) -> Following {
        let mut tallies = Vec::new();
        tallies.resize_with(regions, Tally::default);
        let lists = vec![ListSum::default(); lists];
        let live = Live { limit: limits.blocks, ..Live::default() };
        Following { tallies, lists, limits, costs, live, ..Following::default() }
    }

    /// Calls the function `end` with the open instances of a thread. The function ends some of
    /// them. `is_finished` is true if the program ended these instances, and false if the recording
    /// ended.
    #[inline]
    pub fn end(
        &mut self,
        thread: usize,
        is_finished: bool,
        end: impl FnOnce(&mut Opened, &mut Clock, &mut dyn FnMut(Ended)),
    ) {
        let Thread { tid, clock, opened } = &mut self.threads[thread];
        if opened.is_empty() {
            return;
        }
        end(opened, clock, &mut |ended| {
            let ended = Ended { thread: thread as u32, is_finished, ..ended };
            let tally = &mut self.tallies[usize::from(ended.candidate)];
            tally.add(&ended, *tid, self.limits.lanes, &self.costs);
        });
    }

    /// Ends all instances of a thread.
    pub fn end_thread(&mut self, thread: usize, is_finished: bool) {
        self.end(thread, is_finished, |opened, clock, ended| opened.end_all(clock, ended));
    }

    /// Adds an allocated block. `list` is the list of regions at the block's place.
    #[inline]
    pub fn allocate(
        &mut self,
        places: &impl Places,
        row: &Row,
        thread: usize,
        (place, list): (u32, u32),
    ) {
        let Thread { opened, clock, .. } = &mut self.threads[thread];
        let serial = opened.allocate(places.members(list), row.size, row.t_ns, clock);
        let sum = &mut self.lists[list as usize];
        sum.blocks += 1;
        sum.bytes += row.size;
        sum.calls += 1;
        self.count_size(list, row.size);
        let block = Block { size: row.size, thread: thread as u32, serial, place };
        self.insert(places, row.alloc, block, serial != u32::MAX);
    }

    #[inline]
    fn insert(&mut self, places: &impl Places, id: i64, block: Block, is_numbered: bool) {
        if !is_numbered || !self.live.insert(id, block) {
            self.not_followed += 1;
            self.leave(places, &block);
        }
    }

    /// Handles the free of a block by the thread `by`. Returns `None` if the block is not tracked.
    #[inline]
    pub fn free(&mut self, places: &impl Places, row: &Row, by: usize) -> Option<Changed> {
        let block = self.live.remove(row.old_block())?;
        let (list, thread, size) = (places.list(block.place), block.thread as usize, block.size);
        let is_own = thread == by;
        let sum = &mut self.lists[list as usize];
        sum.calls += 1;
        sum.foreign_frees += u64::from(!is_own);
        let Thread { opened, clock, .. } = &mut self.threads[thread];
        let owners = opened.owners(block.serial);
        self.escapes.add(block.place, places.members(list), owners, size, !is_own);
        let owners = owners.len();
        opened.free(owners, size, row.t_ns, is_own, clock);
        Some(Changed { list, thread, size })
    }

    /// Handles a successful realloc. The block stays in its instances, even if realloc has moved
    /// it. Returns `None` if the block is not tracked.
    pub fn resize(&mut self, places: &impl Places, row: &Row) -> Option<Changed> {
        let block = self.live.remove(row.old_alloc)?;
        let (list, thread) = (places.list(block.place), block.thread as usize);
        let (from, to) = (block.size, row.size.max(1));
        let Thread { opened, .. } = &mut self.threads[thread];
        let owners = opened.owners(block.serial).len();
        opened.resize(owners, from, to);
        let sum = &mut self.lists[list as usize];
        sum.calls += 1;
        sum.bytes += to.saturating_sub(from);
        self.discount_size(list, from);
        self.count_size(list, to);
        self.insert(places, row.alloc, Block { size: to, ..block }, true);
        Some(Changed { list, thread, size: from })
    }

    #[inline]
    fn count_size(&mut self, list: u32, size: u64) {
        if let Some(count) = self.sizes.get_mut(&key(list, size)) {
            *count += 1;
            return;
        }
        let is_full = self.sizes.len() >= SIZES_MAX;
        let size = if is_full { size_bound(size_bucket(size)) } else { size };
        *self.sizes.entry(key(list, size)).or_default() += 1;
    }

    /// Subtracts a size that `count_size` has counted. The size still counts as a size that
    /// occurred, even if its number is then 0.
    fn discount_size(&mut self, list: u32, size: u64) {
        let keys = [size, size_bound(size_bucket(size))].map(|size| key(list, size));
        if let Some(key) = keys.into_iter().find(|key| self.sizes.contains_key(key)) {
            self.sizes.entry(key).and_modify(|count| *count = count.saturating_sub(1));
        }
    }

    /// Counts a block that is still in use at the end, or that is not tracked.
    fn leave(&mut self, places: &impl Places, block: &Block) {
        self.left.add(block.place, places.regions(block.place), &[], block.size, false);
    }

    /// Ends the instances that are open after the last event, and counts the blocks in use.
    pub fn finish(&mut self, places: &impl Places) {
        (0..self.threads.len()).for_each(|thread| self.end_thread(thread, false));
        let live = std::mem::take(&mut self.live);
        live.into_blocks().for_each(|block| self.leave(places, &block));
    }
}
