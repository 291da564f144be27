//! How blocks that other threads free come back to whom their chunk belongs.

use crate::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::*};
use core::ptr::NonNull;

/// In the header of a chunk, for threads that do not own it.
///
/// - words: a bit for each slot that was freed elsewhere. Beside this.
/// - summary: a bit for each word (modulo `usize::BITS`) that has bits, or had.
///
/// Who makes a word other than 0 sets its summary bit; who makes the summary other than 0 posts
/// the chunk. The owner takes the summary, and then its words. So the bits of a word come
/// either before the owner takes it, or whoever brings the first of them says so after that;
/// and between two takings of its summary a chunk is posted once, so one link is enough.
/// Every step is a read-modify-write of one word: all threads agree on the order of those, and
/// no fence between two words is needed.
pub(crate) struct Remote<T> {
    summary: AtomicUsize,
    next: AtomicPtr<T>,
}

impl<T> Remote<T> {
    pub(crate) fn new() -> Self {
        Self { summary: AtomicUsize::new(0), next: AtomicPtr::new(core::ptr::null_mut()) }
    }

    /// Adds `bits` to `word`, which is the one numbered `at`. Whether the chunk is to be posted.
    #[must_use]
    pub(crate) fn free(&self, word: &AtomicUsize, at: usize, bits: usize) -> bool {
        word.fetch_or(bits, AcqRel) == 0
            && self.summary.fetch_or(1 << (at % usize::BITS as usize), AcqRel) == 0
    }

    /// The owner's: which words to take, of a chunk that was posted.
    pub(crate) fn take_summary(&self) -> usize {
        self.summary.swap(0, AcqRel)
    }
}

/// What can be posted.
pub(crate) trait Posted: Sized {
    fn remote(&self) -> &Remote<Self>;
}

/// Chunks that have something for their owner.
pub(crate) struct Inbox<T> {
    head: AtomicPtr<T>,
}

impl<T: Posted> Inbox<T> {
    pub(crate) fn new() -> Self {
        Self { head: AtomicPtr::new(core::ptr::null_mut()) }
    }

    /// # Safety
    /// `chunk` is in no inbox, and `Remote::free` said that it is to be posted to this one,
    /// its owner's. It lives until it was taken out.
    pub(crate) unsafe fn post(&self, chunk: NonNull<T>) {
        // SAFETY: it lives.
        let next = &unsafe { chunk.as_ref() }.remote().next;
        let mut head = self.head.load(Relaxed);
        loop {
            next.store(head, Relaxed);
            match self.head.compare_exchange_weak(head, chunk.as_ptr(), Release, Relaxed) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    /// Takes all out, and calls `f` with each of them. `f` takes the summary.
    pub(crate) fn take_all(&self, mut f: impl FnMut(NonNull<T>)) {
        if self.head.load(Relaxed).is_null() {
            return;
        }
        let mut at = self.head.swap(core::ptr::null_mut(), Acquire);
        while let Some(chunk) = NonNull::new(at) {
            // SAFETY: what was posted lives, and its link stays until `f` takes the summary.
            at = unsafe { chunk.as_ref() }.remote().next.load(Relaxed);
            f(chunk);
        }
    }

    /// Forgets all, while nobody else is at it.
    pub(crate) fn clear(&self) {
        self.head.store(core::ptr::null_mut(), Relaxed);
    }
}
