//! Tracks instances on one thread whose ends are known from call stacks (`End::Sure`).
//!
//! Such an instance ends at the first event whose call stack lacks the function, so an allocation
//! belongs to all instances that are open. The thread has one sum over all allocations, and each
//! instance stores the value of this sum at its begin. The instances are sorted by their begins. A
//! block belongs to all open instances that began before the allocation.

use super::clocks::Clock;
use super::instance::{Ended, Run, Signature};
use crate::instances::Running;

/// An open instance, without the fields that change at each free. Those are arrays in [`Opened`].
#[derive(Debug, Clone, Copy, Default)]
struct Open {
    candidate: u16,
    t0: i64,
    cpu0: f64,
    bytes0: i64,
    signature0: Signature,
    /// The number of frees, and the growth in bytes, of blocks that belong to this instance and to
    /// no inner instance.
    freed: u64,
    grown: i64,
    run: Run,
    /// The value of `Opened::changes` when the frees in `run` were made.
    run_after: u64,
}

/// The open instances of a thread.
#[derive(Default)]
pub(super) struct Opened {
    open: Vec<Open>,
    candidates: Vec<u16>,
    /// The number of blocks that the thread had allocated before each instance began.
    begins: Vec<u32>,
    /// For each instance, `bytes` minus the bytes that the instance has in use.
    offsets: Vec<i64>,
    peaks: Vec<i64>,
    /// The numbers of blocks and bytes that the thread has allocated with a candidate on the call
    /// stack.
    blocks: u32,
    bytes: i64,
    signature: Signature,
    /// The number of allocations and reallocs. After each of them, the final frees of all instances
    /// are counted anew.
    changes: u64,
    /// The time of the last event with a call stack.
    last_t: i64,
}

impl Opened {
    /// Returns whether no instance is open.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Handles the call stack of an event. Calls `ended` with each instance that ends because of
    /// the event.
    #[inline]
    pub fn step(&mut self, of: Running, clock: &mut Clock, ended: &mut dyn FnMut(Ended)) {
        match self.first_over(of.list(), of.same, of.kept().len()) {
            Some(first) => self.end_from(first, clock, ended),
            None => self.end_unless(of.kept(), clock, ended),
        }
    }

    /// Returns the index of the first instance that is over. Returns `None` if a later instance is
    /// still running, so that the instances that are over are not all at the end of the list.
    #[inline]
    fn first_over(&self, list: &[u16], same: usize, kept_on: usize) -> Option<usize> {
        let open = &self.candidates;
        let common = same.min(open.len());
        if open[..common] != list[..common] {
            return None;
        }
        let also = open[common..].iter().zip(&list[common..kept_on]);
        let first = common + also.take_while(|(a, b)| a == b).count();
        let rest = &list[first.min(kept_on)..kept_on];
        open[first..].iter().all(|candidate| !rest.contains(candidate)).then_some(first)
    }

    #[inline]
    fn end_from(&mut self, first: usize, clock: &mut Clock, ended: &mut dyn FnMut(Ended)) {
        while self.open.len() > first {
            self.end(self.open.len() - 1, clock, ended);
        }
    }

    /// Ends the instances of all candidates that are not in `kept`.
    #[cold]
    pub fn end_unless(&mut self, kept: &[u16], clock: &mut Clock, ended: &mut dyn FnMut(Ended)) {
        for index in (0..self.open.len()).rev() {
            if !kept.contains(&self.candidates[index]) {
                self.end(index, clock, ended);
            }
        }
    }

    /// Ends all instances.
    pub fn end_all(&mut self, clock: &mut Clock, ended: &mut dyn FnMut(Ended)) {
        self.end_from(0, clock, ended);
    }

    fn end(&mut self, index: usize, clock: &mut Clock, ended: &mut dyn FnMut(Ended)) {
        let open = self.open.remove(index);
        self.candidates.remove(index);
        let blocks = u64::from(self.blocks - self.begins.remove(index));
        let live = self.bytes - self.offsets.remove(index);
        let peak = self.peaks.remove(index).max(live);
        let run = if open.run_after == self.changes { open.run } else { Run::default() };
        // Inner instances may still be open. Their frees and their growth belong to this instance,
        // too.
        let inner = self.open[index..].iter();
        let (freed, grown) = inner.fold((open.freed, open.grown), |(freed, grown), inner| {
            (freed + inner.freed, grown + inner.grown)
        });
        // The blocks of this instance also belong to the next outer instance.
        if let Some(outer) = index.checked_sub(1).map(|outer| &mut self.open[outer]) {
            outer.freed += open.freed;
            outer.grown += open.grown;
            if open.run_after == self.changes {
                outer.run_since(self.changes).merge(&run);
            }
        }
        ended(Ended {
            candidate: open.candidate,
            thread: 0,
            t0: open.t0,
            t1: self.last_t,
            cpu_ns: (clock.at(self.last_t) - open.cpu0).max(0.0),
            blocks,
            bytes: (self.bytes - open.bytes0 + grown).max(0) as u64,
            peak: peak.max(0) as u64,
            left_blocks: blocks.saturating_sub(freed),
            signature: self.signature.since(open.signature0, blocks),
            run,
            is_finished: true,
        });
    }

    /// Stores the time of an event with a call stack.
    #[inline]
    pub fn seen(&mut self, now: i64) {
        self.last_t = now;
    }

    /// Adds a block whose call stack has the candidates in `list`. Returns the serial number of the
    /// block.
    #[inline]
    pub fn allocate(&mut self, list: &[u16], size: u64, now: i64, clock: &mut Clock) -> u32 {
        if self.candidates != list {
            self.begin(list, now, clock);
        }
        let serial = self.blocks;
        self.blocks = self.blocks.saturating_add(1);
        self.bytes += size as i64;
        self.signature.add(size);
        self.changes += 1;
        serial
    }

    fn begin(&mut self, list: &[u16], now: i64, clock: &mut Clock) {
        let cpu0 = clock.at(now);
        for &candidate in list {
            if self.candidates.contains(&candidate) {
                continue;
            }
            self.candidates.push(candidate);
            self.begins.push(self.blocks);
            self.offsets.push(self.bytes);
            self.peaks.push(0);
            self.open.push(Open {
                candidate,
                t0: now,
                cpu0,
                bytes0: self.bytes,
                signature0: self.signature,
                ..Open::default()
            });
        }
    }

    /// Returns the candidates of the open instances to which the block `serial` belongs.
    #[inline]
    pub fn owners(&self, serial: u32) -> &[u16] {
        let count = self.begins.iter().rposition(|&begin| begin <= serial).map_or(0, |at| at + 1);
        &self.candidates[..count]
    }

    /// Handles the free of a block that belongs to the first `owners` instances. `by_thread` is
    /// true if the allocating thread frees the block.
    #[inline]
    pub fn free(&mut self, owners: usize, size: u64, now: i64, by_thread: bool, clock: &mut Clock) {
        self.shrink(owners, size as i64);
        let changes = self.changes;
        let Some(open) = owners.checked_sub(1).map(|index| &mut self.open[index]) else { return };
        open.freed += 1;
        let run = open.run_since(changes);
        if by_thread {
            run.add(now, clock.at(now));
        } else {
            run.foreign += 1;
        }
    }

    #[inline]
    fn shrink(&mut self, owners: usize, bytes: i64) {
        let of = self.offsets[..owners].iter_mut().zip(&mut self.peaks[..owners]);
        for (offset, peak) in of {
            *peak = (*peak).max(self.bytes - *offset);
            *offset += bytes;
        }
    }

    /// Handles a realloc of a block that belongs to the first `owners` instances.
    pub fn resize(&mut self, owners: usize, from: u64, to: u64) {
        let growth = to as i64 - from as i64;
        self.shrink(owners, -growth);
        if let Some(open) = owners.checked_sub(1).map(|index| &mut self.open[index]) {
            open.grown += growth.max(0);
        }
        self.changes += 1;
    }
}

impl Open {
    /// Returns the frees since the last allocation or realloc of the thread. Discards older frees.
    #[inline]
    fn run_since(&mut self, changes: u64) -> &mut Run {
        if self.run_after != changes {
            (self.run, self.run_after) = (Run::default(), changes);
        }
        &mut self.run
    }
}
