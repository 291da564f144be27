//! How blocks that other threads free come back to whom their chunk belongs.

use crate::loom::atomic::{AtomicPtr, AtomicUsize, Ordering::*};
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

    /// Whether to call `take_all`, which costs more. Not part of it, for with that test in front
    /// loom does not try what others do before it.
    pub(crate) fn is_empty(&self) -> bool {
        self.head.load(Relaxed).is_null()
    }

    /// Takes all out, and calls `f` with each of them. `f` takes the summary.
    pub(crate) fn take_all(&self, mut f: impl FnMut(NonNull<T>)) {
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

#[cfg(all(test, loom))]
mod models {
    use super::{Inbox, Posted, Remote};
    use crate::loom::atomic::{AtomicUsize, Ordering::AcqRel};
    use crate::loom::{model, sync::Arc, thread, TrackedCell};
    use core::ptr::NonNull;
    use std::vec::Vec;

    struct Chunk {
        remote: Remote<Chunk>,
        words: [AtomicUsize; 2],
        blocks: [TrackedCell<u32>; 3],
    }
    impl Posted for Chunk {
        fn remote(&self) -> &Remote<Self> {
            &self.remote
        }
    }
    struct Pool {
        inbox: Inbox<Chunk>,
        chunks: Vec<Chunk>,
    }
    // SAFETY: blocks are watched, the rest is atomic.
    unsafe impl Sync for Pool {}
    // SAFETY: the same.
    unsafe impl Send for Pool {}

    /// Of a chunk: two of one word, one of another.
    const PLACES: [(usize, usize); 3] = [(0, 1), (0, 2), (1, 1)];

    impl Pool {
        fn new(chunks: usize) -> Arc<Self> {
            let chunk = |_| Chunk {
                remote: Remote::new(),
                words: [AtomicUsize::new(0), AtomicUsize::new(0)],
                blocks: [TrackedCell::new(0), TrackedCell::new(0), TrackedCell::new(0)],
            };
            Arc::new(Pool { inbox: Inbox::new(), chunks: (0..chunks).map(chunk).collect() })
        }
        fn free(&self, chunk: usize, block: usize) {
            let c = &self.chunks[chunk];
            // SAFETY: the model is there to find out.
            c.blocks[block].with_mut(|b| unsafe { *b += 1 });
            let (w, bit) = PLACES[block];
            if c.remote.free(&c.words[w], w, bit) {
                // SAFETY: it was just said so.
                unsafe { self.inbox.post(NonNull::from(c)) }
            }
        }
        /// How many.
        fn collect(&self) -> u32 {
            let mut count = 0;
            self.inbox.take_all(|c| {
                // SAFETY: it is one of ours.
                let c = unsafe { c.as_ref() };
                let mut summary = c.remote.take_summary();
                while summary != 0 {
                    let w = summary.trailing_zeros() as usize;
                    summary &= summary - 1;
                    let bits = c.words[w].swap(0, AcqRel);
                    for (i, _) in
                        PLACES.iter().enumerate().filter(|(_, p)| p.0 == w && p.1 & bits != 0)
                    {
                        // SAFETY: the model is there to find out.
                        c.blocks[i].with_mut(|b| unsafe { *b += 1 });
                        count += 1;
                    }
                }
            });
            count
        }
    }

    /// Each of the threads frees its blocks while the owner collects: none is lost, none
    /// comes before whoever freed it is done with it, none comes twice.
    fn nothing_is_lost(chunks: usize, threads: &'static [&'static [(usize, usize)]]) {
        model(move || {
            let pool = Pool::new(chunks);
            let freeing: Vec<_> = threads
                .iter()
                .map(|blocks| {
                    let pool = pool.clone();
                    thread::spawn(move || blocks.iter().for_each(|&(c, b)| pool.free(c, b)))
                })
                .collect();
            let mut count = pool.collect();
            if threads.len() == 1 {
                count += pool.collect();
            }
            freeing.into_iter().for_each(|t| t.join().unwrap());
            count += pool.collect();
            assert_eq!(count as usize, threads.iter().map(|t| t.len()).sum::<usize>());
            assert_eq!(pool.collect(), 0);
        });
    }

    #[test]
    fn two_bits_of_one_word() {
        nothing_is_lost(1, &[&[(0, 0)], &[(0, 1)]]);
    }
    #[test]
    fn two_words_of_one_chunk() {
        nothing_is_lost(1, &[&[(0, 0), (0, 1)], &[(0, 2)]]);
    }
    #[test]
    fn a_chunk_that_is_posted_again() {
        nothing_is_lost(1, &[&[(0, 0), (0, 1), (0, 2)]]);
    }
    #[test]
    fn two_chunks() {
        nothing_is_lost(2, &[&[(0, 0), (1, 0)], &[(1, 1)]]);
    }
}
