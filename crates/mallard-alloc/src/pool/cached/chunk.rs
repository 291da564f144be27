//! A chunk of a pool that has a front for each thread.

use crate::loom::atomic::{AtomicU32, AtomicUsize, Ordering::*};
use crate::pool::cached::remote::{Posted, Remote};
use crate::pool::cached::thread_cache::{Front, Slot};
use crate::pool::chunk_list::{ChunkHead, Cut, Slots};
use core::cell::Cell;
use core::ops::Deref;
use core::ptr::NonNull;

pub(crate) const WORD_BITS: usize = usize::BITS as usize;

/// Then come the remote words and, from the next line on, the free words.
///
/// A slot that is carved is in use, or in some front, or free here: then it has a bit in
/// one of the two.
#[repr(C)]
pub(crate) struct Header {
    head: ChunkHead,
    /// The front that the chunk belongs to for good.
    owner: *const Front,
    words: usize,
    pub(crate) own: Own,
    remote: Line<Remote<Header>>,
}

#[repr(align(64))]
pub(crate) struct Line<T>(pub(crate) T);

/// For the owner. What statistics look at while others work is atomic, but only ever written
/// by one thread at a time.
#[repr(align(64))]
pub(crate) struct Own {
    /// The chunks of its owner that have blocks to give: a list.
    pub(crate) next: Cell<Option<At>>,
    pub(crate) listed: Cell<bool>,
    /// Words with a free bit.
    partial: Cell<u32>,
    /// The word that gave slots last.
    hint: Cell<u32>,
    carved: AtomicU32,
    slots: Slots,
}

const fn words_for(slots: usize) -> usize {
    slots.div_ceil(WORD_BITS)
}
const fn words_bytes(words: usize) -> usize {
    (words * size_of::<AtomicUsize>()).next_multiple_of(64)
}

/// For `Cut::new`.
pub(crate) fn header_bytes(count: usize) -> usize {
    size_of::<Header>() + 2 * words_bytes(words_for(count))
}

impl Posted for Header {
    fn remote(&self) -> &Remote<Self> {
        &self.remote.0
    }
}

/// A header of a chunk of a pool that lives, good for the whole chunk.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct At(NonNull<Header>);

impl Deref for At {
    type Target = Header;
    #[inline(always)]
    fn deref(&self) -> &Header {
        // SAFETY: it lives, and is only ever shared.
        unsafe { self.0.as_ref() }
    }
}

impl At {
    /// # Safety
    /// `header` is what `begin` wrote, in a pool that lives as long as this is used.
    #[inline(always)]
    pub(crate) unsafe fn new(header: NonNull<u8>) -> Self {
        Self(header.cast())
    }

    /// # Safety
    /// `header` has a `ChunkHead`, and behind it nothing yet; `slots` are its own, and `owner`
    /// lives as long.
    pub(crate) unsafe fn begin(header: NonNull<u8>, slots: Slots, owner: *const Front) -> Self {
        let at = Self(header.cast());
        let own = Own {
            next: Cell::new(None),
            listed: Cell::new(false),
            partial: Cell::new(0),
            hint: Cell::new(0),
            carved: AtomicU32::new(0),
            slots,
        };
        let words = words_for(slots.count());
        // SAFETY: there is room for a header, which nobody else knows of.
        unsafe {
            let h = at.0.as_ptr();
            (&raw mut (*h).owner).write(owner);
            (&raw mut (*h).words).write(words);
            (&raw mut (*h).own).write(own);
            (&raw mut (*h).remote).write(Line(Remote::new()));
            for w in 0..words {
                at.word_at(w, 0).write(AtomicUsize::new(0));
                at.word_at(w, words_bytes(words)).write(AtomicUsize::new(0));
            }
        }
        at.uncarve();
        at
    }

    /// Not from a reference to the header: it goes beyond it.
    #[inline(always)]
    fn word_at(self, w: usize, offset: usize) -> NonNull<AtomicUsize> {
        let bytes = size_of::<Header>() + offset + w * size_of::<AtomicUsize>();
        // SAFETY: the chunk has room for the words behind its header.
        unsafe { self.0.byte_add(bytes).cast() }
    }
    fn free_word(&self, w: usize) -> &AtomicUsize {
        debug_assert!(w < self.words);
        // SAFETY: `begin` wrote it, and it lives as long as the header.
        unsafe { self.word_at(w, words_bytes(self.words)).as_ref() }
    }
    fn remote_word(&self, w: usize) -> &AtomicUsize {
        debug_assert!(w < self.words);
        // SAFETY: the same.
        unsafe { self.word_at(w, 0).as_ref() }
    }

    #[inline]
    pub(crate) fn owner(&self) -> &Front {
        // SAFETY: a front lives as long as it owns chunks.
        unsafe { &*self.owner }
    }
    pub(crate) fn header(self) -> NonNull<u8> {
        self.0.cast()
    }

    fn carved(&self) -> usize {
        self.own.carved.load(Relaxed) as usize
    }
    /// Moves `carved` on, and past the hole.
    fn carve_to(&self, slot: usize) {
        let hole = self.own.slots.hole();
        let slot = if slot == hole.start { hole.end } else { slot };
        self.own.carved.store(slot as u32, Relaxed);
    }

    /// Whether it has blocks to give.
    pub(crate) fn has_any(&self) -> bool {
        self.has_recycled() || self.carved() < self.own.slots.count()
    }
    pub(crate) fn has_recycled(&self) -> bool {
        self.own.partial.get() != 0
    }
    /// Blocks that it can hold.
    pub(crate) fn capacity(&self) -> usize {
        self.own.slots.capacity()
    }
    /// Of them, those that were given out at least once.
    pub(crate) fn carved_blocks(&self) -> usize {
        self.own.slots.below(self.carved())
    }
    fn sum(&self, word: impl Fn(usize) -> usize) -> usize {
        (0..self.words).map(|w| word(w).count_ones() as usize).sum()
    }
    /// Of those carved, those that are free with the owner.
    pub(crate) fn free_blocks(&self) -> usize {
        self.sum(|w| self.free_word(w).load(Relaxed))
    }
    /// Of those carved, those that were freed elsewhere and not yet collected.
    pub(crate) fn remote_blocks(&self) -> usize {
        self.sum(|w| self.remote_word(w).load(Relaxed))
    }
    pub(crate) fn is_idle(&self) -> bool {
        self.carved_blocks() == self.free_blocks()
    }
    pub(crate) fn is_carved(&self, slot: usize) -> bool {
        slot < self.carved() && self.own.slots.contains(slot)
    }
    /// Whether the slot has a bit here.
    pub(crate) fn is_free(&self, slot: usize) -> bool {
        let (w, bit) = (slot / WORD_BITS, 1 << (slot % WORD_BITS));
        (self.free_word(w).load(Relaxed) | self.remote_word(w).load(Relaxed)) & bit != 0
    }

    // --- under the lock of its owner

    /// Several of one word, none of which was free.
    pub(crate) fn set_free(&self, w: usize, bits: usize) {
        let word = self.free_word(w);
        let before = word.load(Relaxed);
        debug_assert!(before & bits == 0, "freed twice");
        word.store(before | bits, Relaxed);
        if before == 0 && bits != 0 {
            self.own.partial.set(self.own.partial.get() + 1);
        }
    }

    /// Writes recycled blocks, the highest address first, so that taking them from the end
    /// walks memory forwards. How many: none only if there are none.
    pub(crate) fn recycle(&self, cut: &Cut, room: &[Slot]) -> usize {
        let mut count = 0;
        while count < room.len() && self.has_recycled() {
            let w = self.own.hint.get() as usize;
            let word = self.free_word(w);
            let mut bits = word.load(Relaxed);
            let more = (bits.count_ones() as usize).min(room.len() - count);
            for slot in room[count..count + more].iter().rev() {
                let block = cut.block_at(self.header(), w * WORD_BITS + ctz(bits));
                slot.store(block.as_ptr(), Relaxed);
                bits &= bits - 1;
            }
            count += more;
            word.store(bits, Relaxed);
            if bits != 0 {
                break;
            }
            self.own.partial.set(self.own.partial.get() - (more != 0) as u32);
            let words = words_for(self.carved()) as u32;
            self.own.hint.set(if w != 0 { w as u32 } else { words } - 1);
        }
        count
    }

    /// The same for blocks that were never given out.
    pub(crate) fn carve(&self, cut: &Cut, room: &[Slot]) -> usize {
        let (carved, hole) = (self.carved(), self.own.slots.hole());
        let end = if carved < hole.start { hole.start } else { self.own.slots.count() };
        let count = (end - carved).min(room.len());
        for (i, slot) in room[..count].iter().rev().enumerate() {
            slot.store(cut.block_at(self.header(), carved + i).as_ptr(), Relaxed);
        }
        self.carve_to(carved + count);
        count
    }

    /// Takes what other threads have freed, of a chunk that was posted.
    pub(crate) fn collect(&self) {
        let mut summary = self.remote().take_summary();
        while summary != 0 {
            for w in (ctz(summary)..self.words).step_by(WORD_BITS) {
                self.set_free(w, self.remote_word(w).swap(0, AcqRel));
            }
            summary &= summary - 1;
        }
    }

    // --- for every thread, at any time

    /// Several of one word, which others have had.
    pub(crate) fn free_remotely(&self, w: usize, bits: usize) {
        if self.remote().free(self.remote_word(w), w, bits) {
            // SAFETY: the owner's inbox, in which the chunk is not, as `free` has just said.
            unsafe { self.owner().inbox().post(self.0) }
        }
    }

    // --- while no other thread is inside a call

    /// Every slot is as if never given out.
    pub(crate) fn uncarve(&self) {
        let _ = self.remote().take_summary();
        for w in 0..self.words {
            self.free_word(w).store(0, Relaxed);
            self.remote_word(w).store(0, Relaxed);
        }
        self.own.partial.set(0);
        self.own.hint.set(0);
        self.own.listed.set(false);
        self.carve_to(0);
    }

    /// The first slot from `from` on that is carved and has no bit.
    pub(crate) fn next_used(&self, from: usize) -> Option<usize> {
        let carved = self.carved();
        let mut at = from;
        while at < carved {
            let used = !self.free_word(at / WORD_BITS).load(Relaxed) >> (at % WORD_BITS);
            if used == 0 {
                at = (at / WORD_BITS + 1) * WORD_BITS;
                continue;
            }
            at += ctz(used);
            if self.is_carved(at) {
                return Some(at);
            }
            at = (at + 1).max(self.own.slots.hole().end);
        }
        None
    }
}

fn ctz(bits: usize) -> usize {
    bits.trailing_zeros() as usize
}
