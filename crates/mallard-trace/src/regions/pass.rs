//! Follows the instances of all candidates through the events.

use super::candidates::Candidates;
use super::clocks::{Clock, Clocks};
use super::drained::Draining;
use super::escapes::Escapes;
use super::exact::Exact;
use super::instance::Ended;
use super::live::{Block, Live};
use super::region::Limits;
use super::sure::Opened;
use super::tally::{Costs, Tally};
use crate::error::Result;
use crate::format::{is_mark, op};
use crate::hash::NumberMap;
use crate::histogram::{size_bound, size_bucket};
use crate::replay::threads::Process;
use crate::rows::{read_ahead, Row, Wanted};
use crate::tables::schema::EVENTS;
use crate::trace::Trace;

/// The greatest number of entries in `Passed::sizes`, each for a list of candidates and a size. Beyond
/// that, sizes are rounded up to size classes.
const SIZES_MAX: usize = 1 << 20;

/// Sums over all call stacks that have the same list of candidates.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ListSum {
    pub blocks: u64,
    pub bytes: u64,
    pub calls: u64,
    pub foreign_frees: u64,
}

/// The results of the pass over the events.
pub(super) struct Passed {
    /// The sums of each candidate over its instances with sure and with drained ends.
    pub sure: Vec<Tally>,
    pub drained: Vec<Tally>,
    pub lists: Vec<ListSum>,
    /// The number of blocks for each list of candidates and each size: see `key`.
    pub sizes: NumberMap<u64, u64>,
    /// The number of blocks for each list of candidates and each call stack that freed them: see `key`.
    pub freed: NumberMap<u64, u64>,
    /// Blocks that outlived the instances with sure ends, and blocks that were in use at the end.
    pub escapes: Escapes,
    pub left: Escapes,
    /// Blocks that were not followed, because the table of blocks was full.
    pub not_followed: u64,
    /// Frees without a call stack.
    pub frees_without_stack: u64,
    pub other_processes: u64,
    pub has_cpu: bool,
    /// Number of calls of malloc's family.
    pub calls: u64,
    /// The regions that the program marks, if it has marks.
    pub exact: Option<Exact>,
}

impl Passed {
    /// Packs a list of candidates with a size or a call stack into a key of `sizes` or `freed`.
    fn key(list: u32, other: u64) -> u64 {
        u64::from(list) << 40 | other
    }

    /// The list and the size or call stack of a key.
    pub fn unpacked(key: u64) -> (u32, u64) {
        ((key >> 40) as u32, key & ((1 << 40) - 1))
    }
}

/// A thread of the program.
struct Thread {
    tid: i32,
    events_left: u64,
    opened: Opened,
    draining: Draining,
    clock: Clock,
}

pub(super) struct Pass<'a> {
    candidates: &'a Candidates,
    limits: Limits,
    costs: Costs,
    clocks: Clocks,
    threads: Vec<Thread>,
    by_tid: NumberMap<u32, u32>,
    /// The thread of the last row.
    last: Option<(i32, usize)>,
    events_of: NumberMap<u32, u64>,
    live: Live,
    passed: Passed,
    last_t: i64,
}

impl<'a> Pass<'a> {
    /// Reads all events of the process that did the most.
    pub fn over(trace: &Trace, candidates: &'a Candidates, limits: Limits) -> Result<Passed> {
        let process = Process::read(trace, None)?;
        let mut pass = Pass::new(trace, candidates, limits, &process)?;
        let wanted =
            Wanted { proc: process.others > 0, stack: true, fresh: true, ..Wanted::default() };
        read_ahead(&trace.table(&EVENTS)?, wanted, |rows| {
            for row in 0..rows.len() {
                if rows.process(row).is_none_or(|of| Some(of) == process.number) {
                    pass.row(&rows.row(row));
                }
            }
            Ok(())
        })?;
        pass.passed.other_processes = process.others;
        Ok(pass.finish())
    }

    fn new(
        trace: &Trace,
        candidates: &'a Candidates,
        limits: Limits,
        process: &Process,
    ) -> Result<Self> {
        let note = |name: &str| trace.manifest().notes.get(name).and_then(|ns| ns.as_f64());
        let clocks = Clocks::read(trace)?;
        let costs = Costs {
            recording_ns: note("recording_ns_per_event").unwrap_or(0.0),
            free_ns: note("ns_per_free").unwrap_or(0.0),
            has_cpu: clocks.is_known,
        };
        let count = candidates.all.len();
        let tallies = || (0..count).map(|_| Tally::default()).collect::<Vec<Tally>>();
        let events_of =
            process.threads.iter().map(|thread| (thread.tid as u32, thread.events)).collect();
        Ok(Pass {
            candidates,
            limits,
            costs,
            threads: Vec::new(),
            by_tid: NumberMap::default(),
            last: None,
            events_of,
            live: Live::new(limits.blocks),
            passed: Passed {
                sure: tallies(),
                drained: tallies(),
                lists: vec![ListSum::default(); candidates.lists()],
                sizes: NumberMap::default(),
                freed: NumberMap::default(),
                escapes: Escapes::default(),
                left: Escapes::default(),
                not_followed: 0,
                frees_without_stack: 0,
                other_processes: 0,
                has_cpu: clocks.is_known,
                calls: 0,
                exact: None,
            },
            clocks,
            last_t: 0,
        })
    }

    #[inline]
    fn thread(&mut self, tid: i32) -> usize {
        match self.last {
            Some((last, index)) if last == tid => index,
            _ => {
                let index = self.find_thread(tid);
                self.last = Some((tid, index));
                index
            }
        }
    }

    fn find_thread(&mut self, tid: i32) -> usize {
        if let Some(&index) = self.by_tid.get(&(tid as u32)) {
            return index as usize;
        }
        self.by_tid.insert(tid as u32, self.threads.len() as u32);
        self.threads.push(Thread {
            tid,
            events_left: self.events_of.get(&(tid as u32)).copied().unwrap_or(u64::MAX),
            opened: Opened::default(),
            draining: Draining::default(),
            clock: self.clocks.take(tid),
        });
        self.threads.len() - 1
    }

    /// Handles an event. The order is the same as in the compiler of replays: first the call stack ends
    /// instances, then the call is counted.
    #[inline]
    fn row(&mut self, row: &Row) {
        let index = self.thread(row.tid);
        self.last_t = row.t_ns;
        if is_mark(row.op) {
            self.mark(row, index);
        } else if row.stack >= 0 {
            let Thread { opened, clock, tid, .. } = &mut self.threads[index];
            let (passed, tid) = (&mut self.passed, *tid);
            let mut ended =
                |ended| end(&mut passed.sure, ended, (index, tid), &self.limits, &self.costs);
            opened.step(self.candidates, (row.stack, row.fresh), clock, &mut ended);
            opened.seen(row.t_ns);
        }
        match row.op {
            op::MALLOC..=op::PVALLOC if row.alloc >= 0 => {
                self.passed.calls += 1;
                self.allocate(row, index);
            }
            op::REALLOC_TO => {
                self.passed.calls += 1;
                self.realloc(row, index);
            }
            op::FREE..=op::FREE_ALIGNED_SIZED if row.alloc >= 0 => {
                self.passed.calls += 1;
                self.passed.frees_without_stack += u64::from(row.stack < 0);
                self.free(row, index, row.alloc);
            }
            _ => {}
        }
        let thread = &mut self.threads[index];
        thread.events_left = thread.events_left.saturating_sub(1);
        if thread.events_left == 0 {
            self.end_thread(index);
        }
    }

    #[cold]
    fn mark(&mut self, row: &Row, index: usize) {
        let (limits, costs) = (self.limits, self.costs);
        let exact = self.passed.exact.get_or_insert_with(|| Exact::new(limits, costs));
        exact.mark(row, index, &self.threads[index].clock);
    }

    #[cold]
    fn end_thread(&mut self, index: usize) {
        if let Some(exact) = &mut self.passed.exact {
            exact.end_thread(index, true);
        }
        let Thread { opened, clock, tid, .. } = &mut self.threads[index];
        let (passed, tid) = (&mut self.passed, *tid);
        let mut ended =
            |ended| end(&mut passed.sure, ended, (index, tid), &self.limits, &self.costs);
        opened.end_all(clock, &mut ended);
    }

    fn allocate(&mut self, row: &Row, index: usize) {
        if let Some(exact) = &mut self.passed.exact {
            exact.allocate(row, index);
        }
        let list_number = self.candidates.list(row.stack);
        let list = self.candidates.members(list_number);
        if list.is_empty() || row.stack < 0 {
            return;
        }
        let Thread { opened, draining, clock, .. } = &mut self.threads[index];
        let serial = opened.allocate(list, row.size, row.t_ns, clock);
        draining.allocate(list, row.size, row.t_ns, clock);
        let sum = &mut self.passed.lists[list_number as usize];
        sum.blocks += 1;
        sum.bytes += row.size;
        sum.calls += 1;
        self.count_size(list_number, row.size);
        let (thread, node) = (index as u32, row.stack as u32);
        let block = Block { size: row.size, thread, serial, node };
        if serial == u32::MAX || !self.live.insert(row.alloc, block) {
            self.passed.not_followed += 1;
            self.leave(&block);
        }
    }

    #[inline]
    fn count_size(&mut self, list: u32, size: u64) {
        let sizes = &mut self.passed.sizes;
        if let Some(count) = sizes.get_mut(&Passed::key(list, size)) {
            *count += 1;
            return;
        }
        let size = if sizes.len() < SIZES_MAX { size } else { size_bound(size_bucket(size)) };
        *sizes.entry(Passed::key(list, size)).or_default() += 1;
    }

    fn free(&mut self, row: &Row, by: usize, alloc: i64) {
        if let Some(exact) = &mut self.passed.exact {
            exact.free(row, by, alloc);
        }
        // If the block is not in the table, no candidate allocated the block.
        let Some(block) = self.live.remove(alloc) else { return };
        let list_number = self.candidates.list(block.node as i32);
        let list = self.candidates.members(list_number);
        let owner = block.thread as usize;
        let is_own = owner == by;
        let sum = &mut self.passed.lists[list_number as usize];
        sum.calls += 1;
        sum.foreign_frees += u64::from(!is_own);
        if let Ok(stack) = u64::try_from(row.stack) {
            *self.passed.freed.entry(Passed::key(list_number, stack)).or_default() += 1;
        }
        let Thread { opened, draining, clock, tid, .. } = &mut self.threads[owner];
        let owners = opened.owners(block.serial);
        self.passed.escapes.add(block.node, list, owners, block.size, !is_own);
        let owners = owners.len();
        opened.free(owners, block.size, row.t_ns, is_own, clock);
        let (passed, tid) = (&mut self.passed, *tid);
        let mut ended =
            |ended| end(&mut passed.drained, ended, (owner, tid), &self.limits, &self.costs);
        draining.free(list, (block.size, row.t_ns, is_own), clock, &mut ended);
    }

    fn realloc(&mut self, row: &Row, index: usize) {
        match (row.old_alloc, row.alloc) {
            (old, new) if old >= 0 && new >= 0 => self.resize(row),
            (old, _) if old >= 0 && row.size == 0 => self.free(row, index, old),
            (old, new) if old < 0 && new >= 0 => self.allocate(row, index),
            _ => {} // a realloc that failed changes nothing
        }
    }

    /// Handles a realloc that succeeded. The block stays in its instances, even if it has moved.
    fn resize(&mut self, row: &Row) {
        if let Some(exact) = &mut self.passed.exact {
            exact.resize(row);
        }
        let Some(block) = self.live.remove(row.old_alloc) else { return };
        let (from, to) = (block.size, row.size.max(1));
        let list_number = self.candidates.list(block.node as i32);
        let list = self.candidates.members(list_number);
        let Thread { opened, draining, .. } = &mut self.threads[block.thread as usize];
        let owners = opened.owners(block.serial).len();
        opened.resize(owners, from, to);
        draining.resize(list, from, to);
        let sum = &mut self.passed.lists[list_number as usize];
        sum.calls += 1;
        sum.bytes += to.saturating_sub(from);
        let block = Block { size: to, ..block };
        if !self.live.insert(row.alloc, block) {
            self.passed.not_followed += 1;
            self.leave(&block);
        }
    }

    /// Counts a block that is in use at the end, or whose end will not be seen.
    fn leave(&mut self, block: &Block) {
        let list = self.candidates.on(block.node as i32);
        self.passed.left.add(block.node, list, &[], block.size, false);
    }

    fn finish(mut self) -> Passed {
        for index in 0..self.threads.len() {
            self.end_open(index);
        }
        let live = std::mem::replace(&mut self.live, Live::new(0));
        live.into_blocks().for_each(|block| self.leave(&block));
        if let Some(exact) = &mut self.passed.exact {
            exact.finish();
            self.passed.not_followed += exact.not_followed;
        }
        self.passed
    }

    /// Ends the instances of a thread that are open after the last event.
    fn end_open(&mut self, index: usize) {
        let Thread { opened, draining, clock, tid, .. } = &mut self.threads[index];
        let thread = (index, *tid);
        let (sure, drained) = (&mut self.passed.sure, &mut self.passed.drained);
        opened.end_all(clock, &mut |ended| {
            let ended = Ended { is_finished: false, ..ended };
            end(sure, ended, thread, &self.limits, &self.costs);
        });
        draining.end_all(self.last_t, clock, &mut |ended| {
            end(drained, ended, thread, &self.limits, &self.costs);
        });
    }
}

/// Adds an instance that has ended on a thread to the sums of its candidate.
#[inline]
fn end(
    tallies: &mut [Tally],
    ended: Ended,
    (index, tid): (usize, i32),
    limits: &Limits,
    costs: &Costs,
) {
    let ended = Ended { thread: index as u32, ..ended };
    tallies[usize::from(ended.candidate)].add(&ended, tid, limits.lanes, costs);
}
