//! Remote frees. A block that another thread frees returns to the owner of the block's chunk.

use crate::loom::atomic::{AtomicPtr, AtomicUsize, Ordering::*};
use core::ptr::NonNull;

/// The part of a chunk's header through which threads free blocks of the chunk if they do not own
/// the chunk.
///
/// - words (stored outside this struct): a bit for each slot, which another thread sets when it
///   frees the slot.
/// - summary: a bit for each word (word number modulo `usize::BITS`), which is set while the word
///   may have bits.
///
/// The thread that changes a word from 0 sets the word's bit in the summary. The thread that
/// changes the summary from 0 posts the chunk to its owner's inbox. The owner first reads and
/// clears the summary, and then the words whose bits were set in the summary. A bit that is set
/// after the owner has cleared its word is not lost, because the thread that set the first such bit
/// found the word 0, and posts the chunk again. Until the owner clears the summary, a chunk is
/// posted only once, so a chunk needs only one link.
///
/// Every step is an atomic read-modify-write of one word. All threads agree on the order of such
/// steps, so no fence between two words is needed.
pub(crate) struct Remote<T> {
    summary: AtomicUsize,
    next: AtomicPtr<T>,
}

impl<T> Remote<T> {
    pub(crate) fn new() -> Self {
        Self { summary: AtomicUsize::new(0), next: AtomicPtr::new(core::ptr::null_mut()) }
    }

    /// Sets `bits` in `word`, which has the index `at`. Returns whether the caller has to post the
    /// chunk.
    #[must_use]
    pub(crate) fn free(&self, word: &AtomicUsize, at: usize, bits: usize) -> bool {
        word.fetch_or(bits, AcqRel) == 0
            && self.summary.fetch_or(1 << (at % usize::BITS as usize), AcqRel) == 0
    }

    /// Clears the summary of a posted chunk and returns its old value, which has a bit for each
    /// word that the owner has to collect.
    pub(crate) fn take_summary(&self) -> usize {
        self.summary.swap(0, AcqRel)
    }
}

/// A chunk that can be posted to an inbox.
pub(crate) trait Posted: Sized {
    fn remote(&self) -> &Remote<Self>;
}

/// The chunks of one owner in which other threads have freed blocks.
pub(crate) struct Inbox<T> {
    head: AtomicPtr<T>,
}

impl<T: Posted> Inbox<T> {
    pub(crate) fn new() -> Self {
        Self { head: AtomicPtr::new(core::ptr::null_mut()) }
    }

    /// Adds a chunk to the inbox.
    ///
    /// # Safety
    /// `self` is the inbox of the chunk's owner. `chunk` is in no inbox, and `Remote::free`
    /// returned that the caller has to post the chunk. The chunk exists until it is removed from
    /// the inbox.
    pub(crate) unsafe fn post(&self, chunk: NonNull<T>) {
        // SAFETY: the caller guarantees that the chunk exists.
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

    /// Returns whether the inbox is empty. This test is cheaper than `take_all`. `take_all` does
    /// not begin with this test, because loom would then not try the orders in which other threads
    /// act before the test.
    pub(crate) fn is_empty(&self) -> bool {
        self.head.load(Relaxed).is_null()
    }

    /// Removes all chunks from the inbox, and calls `f` with each chunk. `f` has to call
    /// `take_summary` for the chunk.
    pub(crate) fn take_all(&self, mut f: impl FnMut(NonNull<T>)) {
        let mut at = self.head.swap(core::ptr::null_mut(), Acquire);
        while let Some(chunk) = NonNull::new(at) {
            // SAFETY: a posted chunk exists. No thread posts the chunk again before `f` has called
            // `take_summary`, so its link does not change.
            at = unsafe { chunk.as_ref() }.remote().next.load(Relaxed);
            f(chunk);
        }
    }

    /// Discards all chunks. Requires that no other thread is inside a call of the pool.
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
    // SAFETY: loom checks how threads use the blocks, and everything else is atomic.
    unsafe impl Sync for Pool {}
    // SAFETY: the reasons are the same as for `Sync`.
    unsafe impl Send for Pool {}

    /// Word and bit of a chunk's three blocks. Two blocks have bits in one word, and the third
    /// block in another.
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
            // SAFETY: the loom model checks that no other thread uses the block.
            c.blocks[block].with_mut(|b| unsafe { *b += 1 });
            let (w, bit) = PLACES[block];
            if c.remote.free(&c.words[w], w, bit) {
                // SAFETY: `free` returned that this thread has to post the chunk.
                unsafe { self.inbox.post(NonNull::from(c)) }
            }
        }
        /// Collects all blocks that were freed, and returns their number.
        fn collect(&self) -> u32 {
            let mut count = 0;
            self.inbox.take_all(|c| {
                // SAFETY: the inbox holds only chunks of this pool.
                let c = unsafe { c.as_ref() };
                let mut summary = c.remote.take_summary();
                while summary != 0 {
                    let w = summary.trailing_zeros() as usize;
                    summary &= summary - 1;
                    let bits = c.words[w].swap(0, AcqRel);
                    for (i, _) in
                        PLACES.iter().enumerate().filter(|(_, p)| p.0 == w && p.1 & bits != 0)
                    {
                        // SAFETY: the loom model checks that no other thread uses the block.
                        c.blocks[i].with_mut(|b| unsafe { *b += 1 });
                        count += 1;
                    }
                }
            });
            count
        }
    }

    /// Checks that the owner collects each block once, after the thread that freed the block has
    /// finished with the block. The threads free their blocks while the owner collects.
    fn every_block_returns_once(chunks: usize, threads: &'static [&'static [(usize, usize)]]) {
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
    fn each_block_is_returned_once_if_two_threads_free_blocks_in_one_bitmap_word() {
        every_block_returns_once(1, &[&[(0, 0)], &[(0, 1)]]);
    }
    #[test]
    fn each_block_is_returned_once_if_two_threads_free_blocks_in_two_bitmap_words() {
        every_block_returns_once(1, &[&[(0, 0), (0, 1)], &[(0, 2)]]);
    }
    #[test]
    fn each_block_is_returned_once_if_a_chunk_is_queued_again_while_the_inbox_is_emptied() {
        every_block_returns_once(1, &[&[(0, 0), (0, 1), (0, 2)]]);
    }
    #[test]
    fn each_block_is_returned_once_if_two_threads_free_blocks_of_two_chunks() {
        every_block_returns_once(2, &[&[(0, 0), (1, 0)], &[(1, 1)]]);
    }
}
