//! Tracks instances on one thread that end when their last block is freed.
//!
//! A block belongs to the open instance of every candidate on its call stack, because none of these
//! instances can end before the block is freed. So the call stack of a block determines the
//! instances to which the block belongs.

use super::clocks::Clock;
use super::instance::{Ended, Run, Signature};

/// The open instance of a candidate. There is no open instance if no block of the candidate is in
/// use.
#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    live_blocks: u64,
    live_bytes: u64,
    peak: u64,
    blocks: u64,
    bytes: u64,
    signature: Signature,
    t0: i64,
    cpu0: f64,
    run: Run,
}

/// The open instances of a thread, by candidate.
#[derive(Default)]
pub(super) struct Draining {
    slots: Vec<Slot>,
}

impl Draining {
    /// Adds a block. `list` has the candidates on the block's call stack.
    #[inline]
    pub fn allocate(&mut self, list: &[u16], size: u64, now: i64, clock: &mut Clock) {
        for &candidate in list {
            let index = usize::from(candidate);
            if index >= self.slots.len() {
                self.slots.resize(index + 1, Slot::default());
            }
            let slot = &mut self.slots[index];
            if slot.live_blocks == 0 {
                *slot = Slot { t0: now, cpu0: clock.at(now), ..Slot::default() };
            } else if slot.run.own + slot.run.foreign > 0 {
                slot.run = Run::default();
            }
            slot.live_blocks += 1;
            slot.blocks += 1;
            slot.bytes += size;
            slot.live_bytes += size;
            slot.peak = slot.peak.max(slot.live_bytes);
            slot.signature.add(size);
        }
    }

    /// Handles the free of a block. `list` has the candidates on the block's call stack. Calls
    /// `ended` with each instance that ends because of this free.
    #[inline]
    pub fn free(
        &mut self,
        list: &[u16],
        (size, now, by_thread): (u64, i64, bool),
        clock: &mut Clock,
        ended: &mut dyn FnMut(Ended),
    ) {
        let cpu = clock.at(now);
        for &candidate in list {
            let Some(slot) = self.slots.get_mut(usize::from(candidate)) else { continue };
            slot.live_blocks = slot.live_blocks.saturating_sub(1);
            slot.live_bytes = slot.live_bytes.saturating_sub(size);
            if by_thread {
                slot.run.add(now, cpu);
            } else {
                slot.run.foreign += 1;
            }
            if slot.live_blocks == 0 {
                ended(slot.end(candidate, now, cpu));
            }
        }
    }

    /// Handles a realloc of a block. `list` has the candidates on the block's call stack.
    pub fn resize(&mut self, list: &[u16], from: u64, to: u64) {
        for &candidate in list {
            let Some(slot) = self.slots.get_mut(usize::from(candidate)) else { continue };
            slot.live_bytes = (slot.live_bytes + to).saturating_sub(from);
            slot.peak = slot.peak.max(slot.live_bytes);
            slot.bytes += to.saturating_sub(from);
            slot.run = Run::default();
        }
    }

    /// Ends each instance that still has blocks in use, and calls `ended` with it.
    pub fn end_all(&mut self, now: i64, clock: &mut Clock, ended: &mut dyn FnMut(Ended)) {
        let cpu = clock.at(now);
        for (slot, candidate) in self.slots.iter().zip(0..) {
            if slot.live_blocks > 0 {
                ended(Ended { is_finished: false, ..slot.end(candidate, now, cpu) });
            }
        }
    }
}

impl Slot {
    fn end(&self, candidate: u16, now: i64, cpu: f64) -> Ended {
        Ended {
            candidate,
            thread: 0,
            t0: self.t0,
            t1: now,
            cpu_ns: (cpu - self.cpu0).max(0.0),
            blocks: self.blocks,
            bytes: self.bytes,
            peak: self.peak,
            left_blocks: self.live_blocks,
            signature: self.signature.since(Signature::default(), self.blocks),
            run: self.run,
            is_finished: true,
        }
    }
}
