//! Counts the blocks of each call stack that allocates (site): live bytes, peaks and lifetimes.
//!
//! All numbers are updated at each event, in time order. A new peak of the whole program would
//! change all sites. Instead, a site stores its live bytes at that peak later, just before they
//! change next. When a block is freed that was in use at the site's last peak, its pages are added
//! to the pages of the peak. A higher peak discards these pages.

use crate::growth::{self, Levels};
use crate::histogram::{log_bucket, size_bucket, Histogram};
use crate::measures::{Pages, OBSERVATIONS_MIN};
use crate::memory::{Growing, MemorySummary};
use crate::slices::{Slices, Width};
use crate::touched::Touched;

/// The maximum number of sites. Additional call stacks are counted together, in the site of the
/// empty call stack.
const SITES_MAX: usize = 1 << 19;
/// The maximum length of the list of sites whose memory only grows.
const GROWING_MAX: usize = 100;
/// The minimum number of live blocks of a site that counts as growing.
const GROWING_BLOCKS_MIN: f64 = 8.0;
/// The value at a node of the call stack tree that has no site.
const NO_SITE: u32 = u32::MAX;

/// The counts of the blocks that one call stack has allocated. In a sampled stream, sums are
/// estimates for all blocks.
#[derive(Debug, Clone, Default)]
#[repr(C)] // the fields that each event changes come first, to touch few cache lines
pub struct Site {
    /// The serial number of the program's peak to which `at_peak_bytes` belongs.
    epoch: u64,
    /// Bytes in use.
    pub live_bytes: f64,
    /// Blocks in use.
    pub live_allocs: f64,
    /// The maximum of the bytes in use.
    pub peak_bytes: f64,
    /// Sums of squared block sizes: for the blocks in use, for the blocks at the peak, and for all
    /// blocks.
    pub squares: (f64, f64, f64),
    /// Recorded calls: the number of observations.
    pub recorded: i64,
    /// Number of allocated blocks.
    pub allocs: f64,
    /// Allocated bytes, including growth by realloc.
    pub bytes: f64,
    /// Recorded allocations.
    pub recorded_allocs: i64,
    /// The smallest and the largest size that a block had.
    pub size_range: (u64, u64),
    /// The alignments of all blocks. Bit n is set if a block had the alignment 2^n.
    pub alignments: u64,
    /// Blocks in use at the moment of `peak_bytes`.
    pub peak_allocs: f64,
    /// The moment of `peak_bytes`, in nanoseconds.
    pub peak_t: i64,
    /// The ID of the first block that was allocated after the moment of `peak_bytes`.
    peak_next: i64,
    /// The pages of blocks that were in use when the site had `touched_at` bytes in use at its
    /// peak, and that have been freed since.
    touched: Touched,
    /// The value of `peak_bytes` for which `touched` was collected.
    touched_at: f64,
    /// Bytes in use over time.
    pub levels: Levels,
    /// Bytes in use at the peak of the whole program.
    pub at_peak_bytes: f64,
    /// Number of freed blocks.
    pub frees: f64,
    /// The number of blocks that another thread freed than the one that allocated them.
    pub cross_thread: f64,
    /// The number of blocks that were freed before their thread allocated another block.
    pub short_lived: f64,
    /// The total time in ns of the calls whose time was measured. After `finish`, the estimated
    /// time of all calls.
    pub call_ns: i64,
    /// Number of timed calls.
    pub timed: i64,
    /// The number of other threads inside a timed call during each timed call: the sum, and the sum
    /// of squares. After `finish`, estimates of the number of threads inside any call.
    pub overlaps: (f64, f64),
    /// The sizes of the blocks. A block that was resized in place counts with its last size.
    pub sizes: Histogram,
    /// The lifetimes of the freed blocks, in nanoseconds.
    pub lives: Histogram,
    /// Number of calls in each time slice.
    pub ops: Slices,
    /// Calls of realloc for blocks that this call stack allocated.
    pub reallocs: f64,
    /// Blocks and bytes that were in use when their process exited.
    pub left: (f64, f64),
    /// Calls that failed.
    pub failed: i64,
    /// The call stack, a node of the call stack tree.
    pub node: u32,
}

impl Site {
    /// Returns the number of different alignments.
    pub fn alignment_count(&self) -> u32 {
        self.alignments.count_ones()
    }

    /// Stores `at_peak_bytes` if the whole program has had a new peak. Must be called before
    /// `live_bytes` changes.
    #[inline]
    fn note_peak(&mut self, epoch: u64) {
        if self.epoch != epoch {
            self.at_peak_bytes = self.live_bytes;
            self.epoch = epoch;
        }
    }

    /// Adds the pages of a block to the pages of the peak, if the block was in use at the peak.
    /// Must be called for each block when it is freed, or after the last event.
    #[inline]
    fn end_block(&mut self, block: &Ended) {
        if block.id < self.peak_next && self.peak_allocs >= OBSERVATIONS_MIN as f64 {
            self.touched_now().add(block.addr, block.size);
        }
    }

    /// Returns the pages of the last peak. If they belong to an earlier, lower peak, discards them
    /// first.
    fn touched_now(&mut self) -> &mut Touched {
        if self.touched_at != self.peak_bytes {
            self.touched_at = self.peak_bytes;
            self.touched.clear();
        }
        &mut self.touched
    }

    /// Returns the pages that the blocks of the site touched when `peak_bytes` were in use. The
    /// result is empty if there were fewer blocks than a measure needs.
    pub fn pages_at_peak(&mut self) -> Pages {
        self.touched_now().pages()
    }

    /// Returns the site's entry in the list of growing sites, or `None` if its live bytes also
    /// shrink or if it has only few blocks.
    fn growth(&self) -> Option<Growing> {
        let windows = self.levels.windows().filter(growth::only_grows)?;
        let (blocks, bytes) = (self.live_allocs + self.left.0, self.live_bytes + self.left.1);
        (blocks >= GROWING_BLOCKS_MIN).then(|| Growing {
            stack: self.node as i32,
            live_bytes: bytes as i64,
            live_allocs: blocks as i64,
            first_bytes: windows[0] as i64,
        })
    }

    /// Removes a recorded block, which stands for `weight` blocks.
    #[inline]
    fn shrink(&mut self, block: &Ended, weight: f64) {
        let size = block.size as f64;
        self.end_block(block);
        self.live_bytes -= weight * size;
        self.live_allocs -= weight;
        self.squares.0 -= weight * size * size;
    }

    #[inline]
    fn grow(&mut self, bytes: f64, blocks: f64, squares: f64, now: &Now) {
        self.live_bytes += bytes;
        self.live_allocs += blocks;
        self.squares.0 += squares;
        if self.live_bytes > self.peak_bytes {
            self.peak_bytes = self.live_bytes;
            self.peak_allocs = self.live_allocs;
            self.peak_t = now.ns;
            self.peak_next = now.next;
            self.squares.1 = self.squares.0;
        }
    }
}

/// The time of a change, and the number of blocks allocated until then.
#[derive(Debug, Clone, Copy)]
pub struct Now {
    /// The time in nanoseconds.
    pub ns: i64,
    /// Number of blocks allocated so far, including the block that is being allocated.
    pub next: i64,
}

/// A block that is freed, or that remains in use at the end.
#[derive(Debug, Clone, Copy)]
pub struct Ended {
    /// The site that counts the block.
    pub site: u32,
    /// The ID of the block.
    pub id: i64,
    /// The address of the block.
    pub addr: u64,
    /// The size of the block in bytes.
    pub size: u64,
}

/// An allocation that succeeded.
#[derive(Debug, Clone, Copy)]
pub struct Allocation {
    /// The call stack, a node of the call stack tree.
    pub node: u32,
    /// Size in bytes.
    pub size: u64,
    /// log2 of the alignment.
    pub align_log2: u8,
}

/// Returns how many blocks of the program a recorded block of `size` bytes stands for, if one
/// sample was recorded every `sample_bytes` bytes on average.
#[inline]
pub fn weight_of(size: u64, sample_bytes: u64) -> f64 {
    if sample_bytes == 0 {
        return 1.0;
    }
    let size = size.max(1) as f64;
    -1.0 / (-size / sample_bytes as f64).exp_m1()
}

/// All sites, and the totals of the whole program.
pub struct Sites {
    sites: Vec<Site>,
    /// The site of each node of the call stack tree, or `NO_SITE`.
    by_node: Vec<u32>,
    merged: u64,
    sample_bytes: u64,
    epoch: u64,
    width: Width,
    /// The live bytes and the peak of the whole program. `finish` computes the other fields.
    whole: Site,
}

impl Sites {
    /// Makes an empty list. `sample_bytes` is from the header of the event stream.
    pub fn new(sample_bytes: u64) -> Self {
        let root = Site::default();
        let whole = Site { size_range: (u64::MAX, 0), ..Site::default() };
        Sites {
            sites: vec![root],
            by_node: vec![0],
            merged: 0,
            sample_bytes,
            epoch: 0,
            width: Width::default(),
            whole,
        }
    }

    /// Returns how many blocks of the program a recorded block of this size stands for.
    #[inline]
    pub fn weight(&self, size: u64) -> f64 {
        weight_of(size, self.sample_bytes)
    }

    /// Returns the index of the site of a call stack. Adds the site if it does not exist.
    #[inline]
    pub fn site(&mut self, node: u32) -> u32 {
        match self.by_node.get(node as usize) {
            Some(&site) if site != NO_SITE => site,
            _ => self.new_site(node),
        }
    }

    #[cold]
    fn new_site(&mut self, node: u32) -> u32 {
        if self.sites.len() >= SITES_MAX {
            self.merged += 1;
            return 0;
        }
        let site = self.sites.len() as u32;
        self.sites.push(Site { node, ..Site::default() });
        if self.by_node.len() <= node as usize {
            self.by_node.resize(node as usize + 1, NO_SITE);
        }
        self.by_node[node as usize] = site;
        site
    }

    /// Counts an allocation. Returns the index of its site.
    #[inline]
    pub fn allocate(&mut self, allocation: &Allocation, now: &Now) -> u32 {
        let &Allocation { node, size, align_log2 } = allocation;
        let index = self.site(node);
        let weight = self.weight(size);
        let slice = self.width.slice(now.ns);
        let (bytes, square) = (weight * size as f64, weight * (size as f64) * (size as f64));
        let site = &mut self.sites[index as usize];
        if site.recorded_allocs == 0 {
            site.size_range = (size, size);
        }
        site.size_range = (site.size_range.0.min(size), site.size_range.1.max(size));
        site.recorded_allocs += 1;
        site.recorded += 1;
        site.allocs += weight;
        site.bytes += bytes;
        site.alignments |= 1 << (align_log2 & 63);
        site.sizes.add(size_bucket(size), weight);
        site.ops.add(self.width, slice, weight);
        site.squares.2 += square;
        site.note_peak(self.epoch);
        site.levels.note(self.width, slice, site.live_bytes);
        site.grow(bytes, weight, square, now);
        self.grow_whole(bytes, weight, square, now);
        index
    }

    #[inline]
    fn grow_whole(&mut self, bytes: f64, blocks: f64, squares: f64, now: &Now) {
        let before = self.whole.peak_bytes;
        self.whole.grow(bytes, blocks, squares, now);
        self.epoch += u64::from(self.whole.peak_bytes > before);
    }

    /// Counts the free of a block of a site. `free.is_a_call` is false if the stream has no call
    /// that freed the block.
    #[inline]
    pub fn free(&mut self, block: &Ended, free: &Free, now: &Now) {
        let weight = self.weight(block.size);
        let slice = self.width.slice(now.ns);
        let site = &mut self.sites[block.site as usize];
        site.note_peak(self.epoch);
        site.levels.note(self.width, slice, site.live_bytes);
        if free.is_a_call {
            site.recorded += 1;
            site.ops.add(self.width, slice, weight);
        }
        site.frees += weight;
        site.cross_thread += if free.is_cross_thread { weight } else { 0.0 };
        site.short_lived += if free.is_short_lived { weight } else { 0.0 };
        site.lives.add(log_bucket(free.life_ns), weight);
        site.shrink(block, weight);
        self.whole.shrink(block, weight);
    }

    /// Counts a block that was still in use when its process exited, at the time `ns`.
    pub fn leave(&mut self, block: &Ended, ns: i64) {
        let slice = self.width.slice(ns);
        let weight = self.weight(block.size);
        let site = &mut self.sites[block.site as usize];
        site.note_peak(self.epoch);
        // In this slice, the level is the number of live bytes before the process exited.
        site.levels.note(self.width, slice + 1, site.live_bytes);
        for site in [site, &mut self.whole] {
            site.shrink(block, weight);
            site.left.0 += weight;
            site.left.1 += weight * block.size as f64;
        }
    }

    /// Adds the pages of a block that is in use at the end of the stream to the pages of the peak.
    pub fn remain(&mut self, block: &Ended) {
        self.sites[block.site as usize].end_block(block);
        self.whole.end_block(block);
    }

    /// Counts a realloc that did not move the block. The block then counts with its new size.
    pub fn resize(&mut self, index: u32, from: u64, to: u64, now: &Now) {
        let (weight, new_weight) = (self.weight(from), self.weight(to));
        let blocks = new_weight - weight;
        let slice = self.width.slice(now.ns);
        let site = &mut self.sites[index as usize];
        site.size_range = (site.size_range.0.min(to), site.size_range.1.max(to));
        site.sizes.remove(size_bucket(from), weight);
        site.sizes.add(size_bucket(to), new_weight);
        site.allocs += blocks;
        let (from, to) = (from as f64, to as f64);
        let bytes = new_weight * to - weight * from;
        let square = new_weight * to * to - weight * from * from;
        site.note_peak(self.epoch);
        site.levels.note(self.width, slice, site.live_bytes);
        site.recorded += 1;
        site.reallocs += weight;
        site.bytes += bytes.max(0.0);
        site.squares.2 += square.max(0.0);
        site.ops.add(self.width, slice, weight);
        site.grow(bytes, blocks, square, now);
        self.grow_whole(bytes, blocks, square, now);
    }

    /// Counts a realloc that moved its block. `allocate` counts the new block.
    pub fn moved(&mut self, index: u32, size: u64) {
        self.sites[index as usize].reallocs += self.weight(size);
    }

    /// Counts an allocation that failed.
    pub fn fail(&mut self, node: u32) {
        let index = self.site(node);
        self.sites[index as usize].failed += 1;
    }

    /// Counts the duration of a call.
    #[inline]
    pub fn time(&mut self, index: u32, ns: i32) {
        let site = &mut self.sites[index as usize];
        site.call_ns += i64::from(ns);
        site.timed += 1;
    }

    /// Adds a timed call of the site, during which `others` other threads were inside a call.
    #[inline]
    pub fn overlap(&mut self, index: u32, others: f64) {
        let overlaps = &mut self.sites[index as usize].overlaps;
        overlaps.0 += others;
        overlaps.1 += others * others;
    }

    /// Returns the bytes and blocks in use now.
    pub fn live(&self) -> (f64, f64) {
        (self.whole.live_bytes, self.whole.live_allocs)
    }

    /// Returns the sites that allocated, the totals of the whole program, and the slice width.
    /// `end_ns` is the time when the program ended.
    pub fn finish(mut self, end_ns: i64) -> Finished {
        let slices = self.width.slice(end_ns) + 1;
        let (epoch, width) = (self.epoch, self.width);
        let whole = &mut self.whole;
        for site in &mut self.sites {
            site.note_peak(epoch);
            site.levels.note(width, slices, site.live_bytes);
            whole.allocs += site.allocs;
            whole.bytes += site.bytes;
            whole.frees += site.frees;
            whole.failed += site.failed;
            whole.reallocs += site.reallocs;
            whole.cross_thread += site.cross_thread;
            whole.short_lived += site.short_lived;
            whole.call_ns += site.call_ns;
            whole.timed += site.timed;
            whole.overlaps.0 += site.overlaps.0;
            whole.overlaps.1 += site.overlaps.1;
            whole.recorded += site.recorded;
            whole.recorded_allocs += site.recorded_allocs;
            whole.alignments |= site.alignments;
            whole.squares.2 += site.squares.2;
            whole.sizes.merge(&site.sizes);
            whole.lives.merge(&site.lives);
            whole.ops.merge(width, &mut site.ops);
            if site.recorded_allocs > 0 {
                let (low, high) = &mut whole.size_range;
                *low = site.size_range.0.min(*low);
                *high = site.size_range.1.max(*high);
            }
        }
        // In each thread, the recorder times one of N calls. So of the calls that overlap with a
        // timed call, only one of N was timed, too.
        let calls_per_timed = whole.allocs / whole.timed.max(1) as f64;
        for site in self.sites.iter_mut().chain([&mut *whole]) {
            site.call_ns = (site.call_ns as f64 * calls_per_timed) as i64;
            site.overlaps.0 *= calls_per_timed;
            site.overlaps.1 *= calls_per_timed * calls_per_timed;
        }
        whole.at_peak_bytes = whole.peak_bytes;
        whole.size_range.0 = whole.size_range.0.min(whole.size_range.1);
        self.sites.retain(|site| site.recorded > 0 || site.failed > 0);
        Finished { sites: self.sites, whole: self.whole, width, merged: self.merged }
    }
}

impl Finished {
    /// Lists the sites whose live bytes only grow, and determines which part of the resident memory
    /// causes its size.
    pub fn find_growing(&self, memory: &mut MemorySummary) {
        let mut growing: Vec<Growing> = self.sites.iter().filter_map(Site::growth).collect();
        growing.sort_unstable_by_key(|site| (-site.live_bytes, site.stack));
        memory.growing_sites = growing.len() as u64;
        memory.growing_bytes =
            growing.iter().map(|site| site.live_bytes).fold(0, i64::saturating_add);
        growing.truncate(GROWING_MAX);
        memory.growing = growing;
        memory.find_cause((self.whole.live_bytes + self.whole.left.1) as i64);
    }
}

/// How a block was freed.
#[derive(Debug, Clone, Copy)]
pub struct Free {
    /// The lifetime of the block in nanoseconds.
    pub life_ns: u64,
    /// Whether another thread than the allocating thread freed the block.
    pub is_cross_thread: bool,
    /// Whether the allocating thread allocated no other block before the free.
    pub is_short_lived: bool,
    /// Whether a recorded call freed the block.
    pub is_a_call: bool,
}

/// The sites after the last event.
pub struct Finished {
    /// The sites that allocated.
    pub sites: Vec<Site>,
    /// The totals of the whole program.
    pub whole: Site,
    /// The length of a time slice.
    pub width: Width,
    /// Allocations that were counted for the empty call stack, because the table of sites was full.
    pub merged: u64,
}
