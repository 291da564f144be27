//! The chunks of one front.

use crate::pool::cached::chunk::{At, Header};
use crate::pool::cached::remote::Inbox;
use crate::pool::cached::thread_cache::Slot;
use crate::pool::chunk_list::Cut;

/// Under a lock, which a thread takes once for many blocks.
pub(crate) struct OwnedChunks {
    /// Those that have blocks, a list. Those with recycled ones come first.
    available: Option<At>,
    count: usize,
}

impl OwnedChunks {
    pub(crate) const NONE: Self = Self { available: None, count: 0 };

    /// A chunk that belongs to the front from now on.
    pub(crate) fn add(&mut self, c: At) {
        self.count += 1;
        c.own.listed.set(false);
        self.list(c);
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    fn list(&mut self, c: At) {
        if c.has_any() && !c.own.listed.replace(true) {
            c.own.next.set(self.available.replace(c));
        }
    }

    /// Of a chunk, bits of one word that were not free.
    pub(crate) fn set_free(&mut self, (c, w, bits): (At, usize, usize)) {
        c.set_free(w, bits);
        self.list(c);
    }

    /// What other threads have freed gets its bits.
    pub(crate) fn collect(&mut self, inbox: &Inbox<Header>) {
        inbox.take_all(|c| {
            // SAFETY: it was posted by who frees, so it is a chunk of this pool.
            let c = unsafe { At::new(c.cast()) };
            c.collect();
            self.list(c);
        });
    }

    /// Writes blocks: those that were in use before, or else those that never were. How many.
    pub(crate) fn take(&mut self, cut: &Cut, inbox: &Inbox<Header>, room: &[Slot]) -> usize {
        if !inbox.is_empty() && !self.available.is_some_and(|c| c.has_recycled()) {
            self.collect(inbox);
        }
        let mut count = 0;
        while let Some(c) = self.available {
            count += c.recycle(cut, &room[count..]);
            if count == 0 {
                count = c.carve(cut, room);
            }
            if c.has_any() {
                break;
            }
            self.available = c.own.next.take();
            c.own.listed.set(false);
        }
        count
    }
}
