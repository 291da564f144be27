//! Processes the events of a program in time order, assigns an ID to each block, and makes the rows
//! of the table `events`.

mod rows;

use crate::blocks::{Block, Blocks};
use crate::clock::Clock;
use crate::format::{self, Kind};
use crate::heaps::{Heaps, Resident};
use crate::lifetimes::{join, Event, Left, Visitor};
use crate::memory::Parts;
use crate::merge::Timed;
use crate::overlap::{Overlaps, TimedCall};
use crate::rounding::Rounding;
use crate::sites::{Allocation, Free, Now, Sites};
use crate::tables::schema::EVENTS;
use crate::tables::{Tables, GROUP_ROWS};
use rows::EventRows;

/// An event of a thread. The call stack is a node of the call stack tree.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    pub t: u64,
    pub addr: u64,
    pub what: u64,
    pub dur: u32,
    pub node: u32,
    /// Index of the thread.
    pub thread: u32,
    /// Index of the table of blocks: each process and each traced allocator has one.
    pub table: u32,
    pub fresh: u16,
}

/// The mmap threshold: a malloc maps blocks of at least this size directly, which may take long.
const SIZE_OF_MAPPINGS: u64 = 128 << 10;

/// The maximum duration in ns of a call whose block is not mapped directly. If a call took longer,
/// another thread probably used the CPU core in the meantime, so the excess is not counted.
const SMALL_NS_MAX: i32 = 1_000_000;

impl Call {
    pub fn op(&self) -> u8 {
        (self.what >> format::OP_SHIFT & 63) as u8
    }

    fn size(&self) -> u64 {
        self.what & format::SIZE_MAX
    }

    fn align_log2(&self) -> u8 {
        (self.what >> format::ALIGN_SHIFT & 63) as u8
    }

    fn flags(&self) -> u16 {
        (self.what >> format::FLAGS_SHIFT & 0xfff) as u16
    }
}

impl Timed for Call {
    #[inline]
    fn t(&self) -> u64 {
        self.t
    }
}

/// A message to the ledger. Messages are sent in the order of the event stream.
pub(crate) enum Message {
    /// The thread with the index `thread` belongs to a process.
    Thread { thread: u32, tid: i32, process: i32, is_forked: bool },
    /// A checkpoint: tick `t` is at `ns` nanoseconds since the stream was opened.
    Checkpoint { t: u64, ns: u64 },
    /// The resident memory of a process at the sample `number`. The message precedes the MEMORY
    /// event of this sample.
    Resident { number: u64, resident: Resident },
    /// How malloc rounds sizes in processes that first allocate after this message.
    Rounding(Rounding),
    /// The next events, in time order. They include events of the kinds MEMORY and PROCESS_END. In
    /// a MEMORY event, `addr` is the number of the sample.
    Calls(Vec<Call>),
}

/// The live bytes and blocks of the program at the moment of a sample.
pub(crate) struct LiveSample {
    pub number: u64,
    pub ns: i64,
    pub live: (f64, f64),
    /// The parts of the process's resident memory. `None` if the system did not report enough.
    pub parts: Option<Parts>,
}

/// Counts of events by kind, and of irregular events, such as frees without an allocation.
#[derive(Debug, Clone, Default, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Counts {
    /// Number of rows in the table `events`.
    pub events: u64,
    /// Calls that returned a new block, including calls of realloc.
    pub allocations: u64,
    /// Calls that freed a block.
    pub frees: u64,
    /// Calls of realloc.
    pub reallocs: u64,
    /// Calls that failed.
    pub failed: u64,
    /// Frees of the null pointer.
    pub null_frees: u64,
    /// Resets of traced allocators.
    pub resets: u64,
    /// Blocks that were allocated.
    pub blocks: u64,
    /// Frees of blocks whose allocation is not in the stream.
    pub unknown_frees: u64,
    /// Frees of unknown blocks in a process made by fork. The parent probably allocated these
    /// blocks before the fork.
    pub inherited_frees: u64,
    /// Blocks whose free is missing in the stream, because their address was allocated again.
    pub missed_frees: u64,
    /// Calls of realloc whose first or second record is missing.
    pub broken_reallocs: u64,
    /// Marks that the program set: begins and ends of regions.
    pub marks: u64,
}

/// The state of a thread.
#[derive(Default)]
struct ThreadState {
    tid: i32,
    process: i32,
    is_forked: bool,
    /// ID of the block that the thread allocated last, or -1.
    last_block: i64,
    events: u64,
    realloc: Option<Realloc>,
}

/// A realloc that has begun and not returned.
struct Realloc {
    /// The block to resize, if it is known. The block is in no table until realloc has returned,
    /// since another thread may already have got its address.
    block: Option<Block>,
    addr: u64,
    table: u32,
    fresh: u16,
}

/// Processes events in time order: see the comment of the module.
pub(crate) struct Ledger {
    clock: Clock,
    blocks: Blocks,
    heaps: Heaps,
    sites: Sites,
    counts: Counts,
    samples: Vec<LiveSample>,
    threads: Vec<ThreadState>,
    overlaps: Overlaps,
    events: EventRows,
    tables: Tables,
    has_failed: bool,
    has_addresses: bool,
    last_ns: i64,
}

impl Ledger {
    /// Makes a ledger without events. If `has_addresses` is false, addresses only distinguish
    /// blocks, and the rows of `events` contain no addresses.
    pub fn new(clock: Clock, sample_bytes: u64, tables: Tables, has_addresses: bool) -> Self {
        Ledger {
            clock,
            blocks: Blocks::default(),
            heaps: Heaps::new(sample_bytes == 0),
            sites: Sites::new(sample_bytes),
            counts: Counts::default(),
            samples: Vec::new(),
            threads: Vec::new(),
            overlaps: Overlaps::default(),
            events: EventRows::new(),
            tables,
            has_failed: false,
            has_addresses,
            last_ns: 0,
        }
    }

    /// Handles a message of the importing thread.
    pub fn take(&mut self, message: Message) {
        match message {
            Message::Thread { thread, tid, process, is_forked } => {
                self.thread(thread, tid, process, is_forked);
            }
            Message::Checkpoint { t, ns } => self.clock.checkpoint(t, ns),
            Message::Resident { number, resident } => self.heaps.announce(number, resident),
            Message::Rounding(rounding) => self.heaps.set_rounding(rounding),
            Message::Calls(calls) => calls.iter().for_each(|call| self.call(call)),
        }
    }

    /// Stores which process the thread with the index `thread` belongs to.
    fn thread(&mut self, thread: u32, tid: i32, process: i32, is_forked: bool) {
        let index = thread as usize;
        if self.threads.len() <= index {
            self.threads
                .resize_with(index + 1, || ThreadState { last_block: -1, ..Default::default() });
        }
        let state = &mut self.threads[index];
        (state.tid, state.process, state.is_forked) = (tid, process, is_forked);
    }

    /// Returns whether writing the tables has failed. `finish` returns the error.
    pub fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Processes the next event.
    fn call(&mut self, call: &Call) {
        use Kind::*;
        let ns = self.clock.ns(call.t);
        let kind = Kind::of(call.op());
        if kind == Memory {
            let (number, live) = (call.addr, self.sites.live());
            let parts = self.heaps.parts(number, call.table as usize);
            return self.samples.push(LiveSample { number, ns, live, parts });
        }
        self.last_ns = ns;
        self.blocks.reach(call.table as usize);
        match kind {
            Allocation | TracedAllocation | TracedReset | Free | TracedFree => {
                let is_free = matches!(kind, Free | TracedFree);
                let old =
                    if is_free { self.blocks.remove(call.table as usize, call.addr) } else { None };
                join(self, Joined { kind, call, ns, old: old.as_ref(), old_alloc: None });
            }
            ReallocFrom => self.realloc_from(call, ns),
            ReallocTo => self.realloc_to(call, ns),
            RegionBegin | RegionEnd => {
                self.counts.marks += 1;
                self.event(call, ns, -1, None, false);
            }
            ProcessEnd => self.end_process(call.table as usize, ns),
            // These records are never converted into a `Call`.
            Memory | UnknownCall | Module | Process | ThreadStart | ThreadEnd | Cpu
            | Checkpoint | RegionName | Thread | Name | Lost | End | Unknown => {}
        }
    }

    fn now(&self, ns: i64) -> Now {
        Now { ns, next: self.blocks.count() }
    }

    /// Adds the block that a call has returned. Returns the ID of the block.
    fn new_block(&mut self, call: &Call, ns: i64) -> i64 {
        let id = self.blocks.number();
        let (size, align_log2, node) = (call.size(), call.align_log2(), call.node);
        let now = self.now(ns);
        let site = self.sites.allocate(&Allocation { node, size, align_log2 }, &now);
        let block = Block { id, t0: ns, addr: call.addr, size, thread: call.thread, site };
        self.threads[call.thread as usize].last_block = id;
        if format::is_family(call.op()) {
            self.heaps.add(call.table as usize, call.addr, size);
        }
        if let Some(old) = self.blocks.insert(call.table as usize, block) {
            self.counts.missed_frees += 1;
            self.end_block(call.table, &old, ns, None);
        }
        self.timed(call, site);
        id
    }

    fn timed(&mut self, call: &Call, site: u32) {
        if call.dur == 0 {
            return;
        }
        let ns = self.clock.duration_ns(call.dur);
        let is_small = call.size() < SIZE_OF_MAPPINGS;
        self.sites.time(site, if is_small { ns.min(SMALL_NS_MAX) } else { ns });
        let begin = call.t.saturating_sub(u64::from(call.dur));
        let timed = TimedCall { begin, end: call.t, thread: call.thread, site };
        let sites = &mut self.sites;
        self.overlaps.add(timed, &mut |site, others| sites.overlap(site, f64::from(others)));
    }

    fn count_unknown_block(&mut self, call: &Call) {
        let is_forked = self.threads[call.thread as usize].is_forked;
        let count = if is_forked {
            &mut self.counts.inherited_frees
        } else {
            &mut self.counts.unknown_frees
        };
        *count += 1;
    }

    /// Removes the blocks of a process that has exited. No call freed these blocks.
    fn end_process(&mut self, table: usize, ns: i64) {
        self.heaps.forget(table);
        for block in self.blocks.take_all(table) {
            self.sites.leave(&block.ended(), ns);
        }
    }

    /// Records the end of a block. `by` is the call that freed the block, if there was one.
    fn end_block(&mut self, table: u32, block: &Block, ns: i64, by: Option<&Call>) {
        self.heaps.remove(table as usize, block.addr, block.size);
        let thread = &self.threads[block.thread as usize];
        let free = Free {
            life_ns: (ns - block.t0).max(0) as u64,
            is_cross_thread: by.is_some_and(|call| call.thread != block.thread),
            is_short_lived: thread.last_block == block.id,
            is_a_call: by.is_some(),
        };
        let now = self.now(ns);
        self.sites.free(&block.ended(), &free, &now);
    }

    fn realloc_from(&mut self, call: &Call, ns: i64) {
        let block = match call.addr {
            0 => None,
            addr => self.blocks.remove(call.table as usize, addr),
        };
        if call.addr != 0 && block.is_none() {
            self.count_unknown_block(call);
        }
        self.abandon_realloc(call.thread as usize, ns);
        self.threads[call.thread as usize].realloc =
            Some(Realloc { block, addr: call.addr, table: call.table, fresh: call.fresh });
    }

    /// Adds the block of an unfinished realloc to its table again, because the second record of
    /// this realloc is missing.
    fn abandon_realloc(&mut self, thread: usize, ns: i64) {
        let Some(realloc) = self.threads[thread].realloc.take() else { return };
        self.counts.broken_reallocs += 1;
        self.put_back(realloc.table, realloc.block, ns);
    }

    fn put_back(&mut self, table: u32, block: Option<Block>, ns: i64) {
        let Some(block) = block else { return };
        if let Some(other) = self.blocks.insert(table as usize, block) {
            self.counts.missed_frees += 1;
            self.end_block(table, &other, ns, None);
        }
    }

    fn realloc_to(&mut self, call: &Call, ns: i64) {
        let realloc = self.threads[call.thread as usize].realloc.take();
        self.counts.reallocs += 1;
        self.counts.broken_reallocs += u64::from(realloc.is_none());
        // Both records of the realloc become one row, so frames that are new in the first record
        // must count as new in the row.
        let fresh = realloc.as_ref().map_or(0, |realloc| realloc.fresh).max(call.fresh);
        let call = &Call { fresh, ..*call };
        let (old, from) = realloc.map_or((None, 0), |realloc| (realloc.block, realloc.addr));
        let old_alloc = match (&old, from) {
            (Some(block), _) => Some(block.id),
            (None, 0) => None,
            (None, _) => Some(-1),
        };
        let kind = Kind::ReallocTo;
        join(self, Joined { kind, call, ns, old: old.as_ref(), old_alloc });
    }

    /// Handles a realloc that did not move its block.
    fn resize_in_place(&mut self, call: &Call, ns: i64, mut block: Block) -> i64 {
        let now = self.now(ns);
        self.sites.resize(block.site, block.size, call.size(), &now);
        self.timed(call, block.site);
        self.heaps.remove(call.table as usize, block.addr, block.size);
        self.heaps.add(call.table as usize, block.addr, call.size());
        block.size = call.size();
        let id = block.id;
        self.put_back(call.table, Some(block), ns);
        id
    }

    fn event(&mut self, call: &Call, ns: i64, alloc: i64, old_alloc: Option<i64>, has_addr: bool) {
        self.counts.events += 1;
        let thread = &mut self.threads[call.thread as usize];
        thread.events += 1;
        let rows = &mut self.events;
        rows.proc.push(thread.process);
        rows.tid.push(thread.tid);
        rows.t_ns.push(ns);
        rows.dur_ns.push(self.clock.duration_ns(call.dur));
        rows.op.push(i32::from(call.op()));
        rows.flags.push(i32::from(call.flags()));
        rows.size.push(call.size() as i64);
        rows.align.push(i32::from(call.align_log2()));
        rows.alloc.push(alloc);
        rows.old_alloc.push(old_alloc);
        let has_addr = has_addr && self.has_addresses && call.addr != 0;
        rows.addr.push(has_addr.then_some(call.addr as i64));
        rows.stack.push((call.node != 0).then_some(call.node as i32));
        rows.fresh.push(i32::from(call.fresh as i16));
        if rows.proc.len() == GROUP_ROWS {
            let columns = std::mem::replace(&mut self.events, EventRows::new()).into_columns();
            self.has_failed |= !self.tables.write(&EVENTS, columns);
        }
    }

    /// Counts the blocks that are still in use, and waits until all rows have been written. Returns
    /// the results.
    pub fn finish(mut self) -> crate::error::Result<Settled> {
        for thread in 0..self.threads.len() {
            self.abandon_realloc(thread, self.last_ns);
        }
        for table in 0..self.blocks.tables() {
            for block in self.blocks.take_all(table) {
                self.sites.remain(&block.ended());
            }
        }
        let mut sites = self.sites;
        self.overlaps.finish(&mut |site, others| sites.overlap(site, f64::from(others)));
        self.counts.blocks = self.blocks.count() as u64;
        self.tables.write(&EVENTS, self.events.into_columns());
        let written = self.tables.finish()?;
        Ok(Settled {
            sites,
            counts: self.counts,
            samples: self.samples,
            rounding: self.heaps.rounding(),
            events: self.threads.iter().map(|thread| thread.events).collect(),
            last_ns: self.last_ns,
            written,
        })
    }
}

/// A call, together with the block that it frees or resizes, if the block is known.
#[derive(Clone, Copy)]
struct Joined<'a> {
    kind: Kind,
    call: &'a Call,
    ns: i64,
    old: Option<&'a Block>,
    /// The ID of the block before a realloc, for the column `old_alloc`.
    old_alloc: Option<i64>,
}

impl Event for Joined<'_> {
    #[inline]
    fn kind(&self) -> Kind {
        self.kind
    }

    #[inline]
    fn has_old(&self) -> bool {
        self.old.is_some()
    }

    #[inline]
    fn has_new(&self) -> bool {
        self.call.addr != 0
    }

    #[inline]
    fn size(&self) -> u64 {
        self.call.size()
    }
}

impl Visitor<Joined<'_>> for Ledger {
    type Done = ();

    #[inline]
    fn begin(&mut self, Joined { call, ns, old_alloc, .. }: Joined) {
        self.counts.allocations += 1;
        let alloc = self.new_block(call, ns);
        self.event(call, ns, alloc, old_alloc, true);
    }

    fn resize(&mut self, of: Joined) {
        let (Joined { call, ns, old_alloc, .. }, Some(block)) = (of, of.old) else { return };
        if block.addr == call.addr {
            let alloc = self.resize_in_place(call, ns, *block);
            self.event(call, ns, alloc, old_alloc, true);
            return;
        }
        self.end_block(call.table, block, ns, Some(call));
        self.sites.moved(block.site, block.size);
        self.begin(of)
    }

    #[inline]
    fn end(&mut self, of: Joined) {
        let (Joined { call, ns, old_alloc, .. }, Some(block)) = (of, of.old) else { return };
        self.counts.frees += 1;
        self.end_block(call.table, block, ns, Some(call));
        let alloc = if old_alloc.is_some() { -1 } else { block.id };
        self.event(call, ns, alloc, old_alloc, false);
    }

    fn leave(&mut self, of: Joined, why: Left) {
        let Joined { call, ns, old, old_alloc, .. } = of;
        match why {
            Left::Failed | Left::ReallocFailed => {
                self.counts.failed += 1;
                self.sites.fail(call.node);
                self.put_back(call.table, old.copied(), ns);
            }
            Left::NoBlock if call.addr == 0 => self.counts.null_frees += 1,
            Left::NoBlock => self.count_unknown_block(call),
        }
        self.event(call, ns, -1, old_alloc, true);
    }

    fn reset(&mut self, Joined { call, ns, .. }: Joined) {
        self.counts.resets += 1;
        for block in self.blocks.take_all(call.table as usize) {
            self.end_block(call.table, &block, ns, Some(call));
        }
        self.event(call, ns, -1, None, false);
    }

    fn pass(&mut self) {}
}

/// The results of a ledger after the last event.
pub(crate) struct Settled {
    pub sites: Sites,
    pub counts: Counts,
    pub samples: Vec<LiveSample>,
    /// How the malloc of the program rounds sizes.
    pub rounding: Rounding,
    /// Number of events, for each thread.
    pub events: Vec<u64>,
    /// The time of the last event, in nanoseconds since the stream was opened.
    pub last_ns: i64,
    pub written: Vec<crate::tables::Written>,
}
