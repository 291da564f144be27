//! What is done to all of a pool at once, while no other thread is inside a call; though threads
//! may end meanwhile.

use super::{CachedCore, Shared};
use crate::lock::Held;
use crate::pool::cached::thread_cache::Front;
use crate::source::Source;

impl<S: Source> CachedCore<S> {
    /// Every free block gets its bit.
    pub(super) fn settle(&self) -> Held<'_, Shared> {
        let shared = self.shared.lock();
        self.fronts(&shared).for_each(|f| f.settle(&self.cut));
        shared
    }

    /// Lists all chunks anew, after some have gone or have been emptied.
    pub(super) fn list_all(&self, shared: &Shared) {
        self.fronts(shared).for_each(Front::clear);
        self.for_each_chunk(shared, |c| c.owner().chunks().add(c));
    }

    /// Gives back fronts where `gone` says so.
    pub(super) fn give_fronts(&self, shared: &mut Shared, gone: impl Fn(&Front) -> bool) {
        let mut at = core::mem::replace(&mut shared.fronts, core::ptr::null());
        // SAFETY: it is in the list, or was until now.
        while let Some(front) = unsafe { at.as_ref() } {
            at = front.of_pool.0.next.get();
            if !gone(front) {
                front.of_pool.0.next.set(core::mem::replace(&mut shared.fronts, front));
                continue;
            }
            let taken = front.of_pool.0.taken;
            shared.refills += front.refills();
            shared.flushes += front.flushes();
            shared.front_bytes -= taken.layout.size();
            // SAFETY: what the source gave; no thread leads here, nor any chunk.
            unsafe { self.source.give(taken) }
        }
    }

    pub(super) fn give_all(&self) {
        let mut guard = self.shared.lock();
        let shared = &mut *guard;
        self.fronts(shared).for_each(Front::clear);
        shared.runs.release(&self.cut, &shared.growth, &self.source);
        shared.slots = 0;
        self.give_fronts(shared, |_| true);
    }
}
