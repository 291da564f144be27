//! The chunks of a pool that threads share: where a block's header is, and the runs in which
//! chunks come from the source.

use crate::bits::layout;
use crate::growth::GrowthState;
use crate::pool::core_trait::LiveCursor;
use crate::pool::layout::SlotShape;
use crate::source::{Chunk, Source};
use core::cell::Cell;
use core::ops::Range;
use core::ptr::NonNull;

/// What headers, and parts of them that different threads write to, are apart.
pub(crate) const LINE_BYTES: usize = 64;

/// Of nearly all chunks: larger where blocks are large.
pub(crate) const CHUNK_BYTES: usize = 64 << 10;

/// Layout of chunks of equal size; under a limit the last chunk may end early. Slots begin at the first
/// byte of a chunk. The header takes the place of some slots, and is a cache line further on in each of up to 32
/// neighbouring chunks: all at one offset, headers would fight for the same few cache sets
/// (docs/decisions/0003-coloured-headers.md).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    pub(crate) stride: usize,
    /// Alignment of a chunk.
    pub(crate) chunk: usize,
    /// Bytes of a whole chunk; a chunk that ends early has at least `least`.
    pub(crate) bytes: usize,
    least: usize,
    /// What a block counts as.
    pub(crate) block_bytes: usize,
    /// Slots of a chunk, the missing ones included; 0: it is too small for its header.
    pub(crate) count: usize,
    header_bytes: fn(usize) -> usize,
    #[cfg_attr(not(feature = "std"), allow(dead_code))] // only fronts need it
    colours: Colours,
    division: Division,
}

/// By the stride, where nothing remains: stride == odd << shift, and odd * inverse == 1, modulo
/// 2^BITS.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Division {
    inverse: usize,
    shift: u32,
}

impl Division {
    fn by(stride: usize) -> Self {
        let shift = stride.trailing_zeros();
        let mut inverse = 1usize;
        for _ in 0..7 {
            // Newton: each step doubles the bits that are right, and one is to begin with
            let error = 2usize.wrapping_sub((stride >> shift).wrapping_mul(inverse));
            inverse = inverse.wrapping_mul(error);
        }
        Self { inverse, shift }
    }

    #[inline(always)]
    pub(crate) fn of(self, offset: usize) -> usize {
        (offset >> self.shift).wrapping_mul(self.inverse)
    }
}

impl Cut {
    /// `header_bytes(count)`: of a chunk with so many slots. At least `stride_min` apart.
    pub(crate) fn new(
        shape: SlotShape,
        stride_min: usize,
        header_bytes: fn(usize) -> usize,
    ) -> Self {
        let SlotShape { chunk, bytes, .. } = shape;
        let block = shape.stride.max(stride_min).next_multiple_of(shape.align);
        // A chunk of one slot counts as two slots, of which the header is the first.
        let stride = if shape.is_alone() { chunk / 2 } else { block };
        let mut count = (chunk / stride).min(1 << 30);
        let reach = |count| Colours::of(chunk).mask + header_bytes(count);
        if reach(count) > if shape.is_alone() { stride } else { chunk } {
            count = 0;
        }
        // Whether a chunk of this many slots has room for a block, wherever its header is.
        let leaves_one = |&slots: &usize| {
            let hole = match header_bytes(slots) {
                _ if reach(slots) <= stride => 1,
                header => header.div_ceil(stride) + 1,
            };
            slots > hole && reach(slots) <= slots * stride
        };
        let least = match shape.is_alone() {
            true => stride + block,
            false => (1..count).find(leaves_one).map_or(bytes, |slots| slots * stride),
        };
        Self {
            stride,
            chunk,
            bytes,
            least,
            block_bytes: shape.stride,
            colours: Colours::of(chunk),
            count,
            header_bytes,
            division: Division::by(stride),
        }
    }

    pub(crate) fn division(&self) -> Division {
        self.division
    }

    /// Of a block: its number in its chunk.
    #[cfg_attr(not(feature = "std"), allow(dead_code))] // only fronts need it
    #[inline(always)]
    pub(crate) fn slot_of(&self, block: NonNull<u8>) -> usize {
        let offset = block.addr().get() & (self.chunk - 1);
        debug_assert!(offset % self.stride == 0);
        self.division.of(offset)
    }

    /// `header_of` where the size of chunks is known as the program runs.
    #[cfg_attr(not(feature = "std"), allow(dead_code))] // only fronts need it
    #[inline(always)]
    pub(crate) fn header_of(&self, p: NonNull<u8>) -> NonNull<u8> {
        self.colours.header_of(p, self.chunk)
    }

    /// `header` may be any pointer into the chunk that is good for all of it.
    #[inline(always)]
    pub(crate) fn block_at(&self, header: NonNull<u8>, slot: usize) -> NonNull<u8> {
        let base = header.as_ptr().map_addr(|a| a & !(self.chunk - 1));
        // SAFETY: a slot lies in its chunk, which does not begin at 0.
        unsafe { NonNull::new_unchecked(base.wrapping_add(slot * self.stride)) }
    }

    /// The slots of the chunk with this header and this many bytes, at most `most` of them.
    pub(crate) fn slots(&self, header: NonNull<u8>, bytes: usize, most: usize) -> Slots {
        let offset = header.addr().get() & (self.chunk - 1);
        let count = self.count.min(bytes / self.stride);
        let begin = offset / self.stride;
        let end = (offset + (self.header_bytes)(count)).div_ceil(self.stride).min(count);
        match begin.min(end) {
            begin if most <= begin => {
                Slots { count: most as u32, hole: (most as u32, most as u32) }
            }
            begin => Slots {
                count: most.saturating_add(end - begin).min(count) as u32,
                hole: (begin as u32, end as u32),
            },
        }
    }

    /// Bytes of chunks that surely hold `count` blocks.
    pub(crate) fn bytes_for(&self, count: usize) -> usize {
        let hole = match self.bytes == self.chunk {
            true => (self.header_bytes)(self.count).div_ceil(self.stride) + 1,
            false => 1,
        };
        match self.count.saturating_sub(hole) {
            0 => usize::MAX,
            each => count.div_ceil(each).max(1).saturating_mul(self.bytes),
        }
    }

    /// The part of a step that chunks can use: whole chunks, or a part of one chunk.
    fn useful(&self, bytes: usize) -> usize {
        match bytes / self.bytes {
            0 => (bytes / self.stride * self.stride).max(self.least),
            chunks => chunks * self.bytes,
        }
    }

    /// Where the chunk with this header begins.
    fn base(&self, header: NonNull<u8>) -> usize {
        header.addr().get() & !(self.chunk - 1)
    }

    /// The slot that begins at `p`, an address in the chunk with this header.
    pub(crate) fn slot_at(&self, header: NonNull<u8>, p: *const u8) -> Option<usize> {
        let offset = p.addr() - self.base(header);
        let slot = offset / self.stride;
        (offset % self.stride == 0 && slot < self.count).then_some(slot)
    }
}

/// Which slots of a chunk are blocks: those below `count` but for a hole, where the header is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slots {
    count: u32,
    hole: (u32, u32),
}

impl Slots {
    pub(crate) fn count(&self) -> usize {
        self.count as usize
    }
    pub(crate) fn hole(&self) -> Range<usize> {
        self.hole.0 as usize..self.hole.1 as usize
    }
    pub(crate) fn contains(&self, slot: usize) -> bool {
        slot < self.count() && !self.hole().contains(&slot)
    }
    /// Of those below `end`, how many are blocks.
    pub(crate) fn below(&self, end: usize) -> usize {
        let hole = self.hole();
        end.min(hole.start) + end.saturating_sub(hole.end)
    }
    pub(crate) fn capacity(&self) -> usize {
        self.below(self.count())
    }
    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> {
        let hole = self.hole();
        (0..hole.start).chain(hole.end..self.count())
    }
}

/// Where in a chunk the header stands, by the bits of its number.
#[derive(Clone, Copy, Debug)]
struct Colours {
    shift: u32,
    mask: usize,
}

impl Colours {
    #[inline(always)]
    const fn of(chunk: usize) -> Self {
        let count = match chunk >> 11 {
            0 => 1,
            n if n > 32 => 32,
            n => n,
        };
        Self {
            shift: chunk.trailing_zeros() - LINE_BYTES.trailing_zeros(),
            mask: (count - 1) * LINE_BYTES,
        }
    }

    #[inline(always)]
    fn header_of(self, p: NonNull<u8>, chunk: usize) -> NonNull<u8> {
        let header = p.as_ptr().map_addr(|a| (a & !(chunk - 1)) | ((a >> self.shift) & self.mask));
        // SAFETY: a chunk does not begin at 0.
        unsafe { NonNull::new_unchecked(header) }
    }
}

/// The header of the chunk that `p` points into; it may be used as far as `p` may.
#[inline(always)]
pub(crate) fn header_of(p: NonNull<u8>, chunk: usize) -> NonNull<u8> {
    Colours::of(chunk).header_of(p, chunk)
}

/// What every header begins with.
#[repr(C)]
pub(crate) struct ChunkHead {
    /// Who gave the blocks of the chunk.
    pub(crate) core: *const (),
    // Of the first chunk of a run:
    taken: Option<Chunk>,
    begun: Cell<usize>,
    older: Cell<Option<NonNull<ChunkHead>>>,
}

/// Chunks as they come from the source: several at a time, where growth says so.
///
/// Chunks of a run that have a header: `begun`. All runs but the newest have begun all of
/// theirs, and that one all but `spare`.
pub(crate) struct Runs {
    newest: Option<NonNull<ChunkHead>>,
    spare: usize,
}

// SAFETY: it has what it points to, which is no part of a thread.
unsafe impl Send for Runs {}

impl Runs {
    pub(crate) const fn new() -> Self {
        Self { newest: None, spare: 0 }
    }

    /// Takes a chunk and writes its `ChunkHead` only. Returns the address of the head, and the bytes
    /// of the chunk.
    pub(crate) fn take<S: Source>(
        &mut self,
        cut: &Cut,
        growth: &GrowthState,
        source: &S,
        core: *const (),
    ) -> Option<(NonNull<u8>, usize)> {
        if cut.count == 0 {
            return None;
        }
        if let (Some(newest), true) = (self.newest, self.spare != 0) {
            self.spare -= 1;
            // SAFETY: a run in the list has its first header, and so many chunks.
            let run = unsafe { newest.as_ref() };
            let number = run.begun.get();
            run.begun.set(number + 1);
            let head = ChunkHead { core, taken: None, begun: 0.into(), older: None.into() };
            // SAFETY: `spare` was not 0, so this chunk is part of the run, and nobody's.
            return Some((unsafe { begin(run_header(run, cut, number), head) }, cut.bytes));
        }
        let least = layout(cut.least, cut.chunk)?;
        let taken = growth.take(source, least, cut.bytes, |step| cut.useful(step))?;
        let bytes = taken.layout.size();
        self.spare = (bytes / cut.bytes).max(1) - 1;
        let older = Cell::new(self.newest);
        let head = ChunkHead { core, taken: Some(taken), begun: 1.into(), older };
        // SAFETY: the chunk was just taken.
        let header = unsafe { begin(header_of(taken.data, cut.chunk), head) };
        self.newest = Some(header.cast());
        Some((header, bytes.min(cut.bytes)))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.newest.is_none()
    }

    /// The headers of all chunks.
    pub(crate) fn for_each(&self, cut: &Cut, mut f: impl FnMut(NonNull<u8>)) {
        let mut at = self.newest;
        while let Some(run) = at {
            // SAFETY: a run in the list has its first header.
            let run = unsafe { run.as_ref() };
            (0..run.begun.get()).for_each(|i| f(run_header(run, cut, i)));
            at = run.older.get();
        }
    }

    /// Moves a cursor on to the next chunk in the order of `for_each`; its header.
    pub(crate) fn next(&self, cut: &Cut, cursor: &mut LiveCursor) -> Option<NonNull<u8>> {
        let (run, number) = match NonNull::new(cursor.take.cast::<ChunkHead>()) {
            None => (self.newest?, 0),
            Some(at) => {
                // SAFETY: it came from here, and no run has gone since.
                let run = unsafe { at.as_ref() };
                let data = run.taken.map_or(0, |t| t.data.addr().get());
                let number = (cursor.chunk.addr() - data) / cut.bytes + 1;
                match number < run.begun.get() {
                    true => (at, number),
                    false => (run.older.get()?, 0),
                }
            }
        };
        // SAFETY: a run in the list has its first header.
        let header = run_header(unsafe { run.as_ref() }, cut, number);
        *cursor = LiveCursor { take: run.as_ptr().cast(), chunk: header.as_ptr(), slot: 0 };
        Some(header)
    }

    /// The header of the chunk that `p` is in; O(runs).
    pub(crate) fn find(&self, cut: &Cut, p: *const u8) -> Option<NonNull<u8>> {
        let mut at = self.newest;
        while let Some(run) = at {
            // SAFETY: a run in the list has its first header.
            let run = unsafe { run.as_ref() };
            let taken = run.taken?;
            let offset = p.addr().wrapping_sub(taken.data.addr().get());
            if offset < taken.layout.size() {
                let number = offset / cut.bytes;
                return (number < run.begun.get()).then(|| run_header(run, cut, number));
            }
            at = run.older.get();
        }
        None
    }

    /// Gives back the runs of which every chunk is idle, but for `keep` bytes; `gone` is told
    /// of each chunk before.
    pub(crate) fn give_idle<S: Source>(
        &mut self,
        (cut, growth, source): (&Cut, &GrowthState, &S),
        mut keep: usize,
        mut is_idle: impl FnMut(NonNull<u8>) -> bool,
        mut gone: impl FnMut(NonNull<u8>),
    ) {
        let mut newer: Option<NonNull<ChunkHead>> = None;
        let mut at = self.newest;
        while let Some(first) = at {
            // SAFETY: a run in the list has its first header.
            let run = unsafe { first.as_ref() };
            let (chunks, older, taken) = (run.begun.get(), run.older.get(), run.taken);
            at = older;
            let bytes = taken.map_or(0, |t| t.layout.size());
            let idle = (0..chunks).all(|i| is_idle(run_header(run, cut, i)));
            if !idle || bytes <= keep {
                keep -= if idle { bytes } else { 0 };
                newer = Some(first);
                continue;
            }
            (0..chunks).for_each(|i| gone(run_header(run, cut, i)));
            match newer {
                // SAFETY: it stays in the list.
                Some(newer) => unsafe { newer.as_ref() }.older.set(older),
                None => (self.newest, self.spare) = (older, 0),
            }
            growth.gave(bytes);
            if let Some(taken) = taken {
                // SAFETY: what the source gave, out of the list, with no block in use.
                unsafe { source.give(taken) }
            }
        }
    }

    /// Gives back all.
    pub(crate) fn release<S: Source>(&mut self, cut: &Cut, growth: &GrowthState, source: &S) {
        self.give_idle((cut, growth, source), 0, |_| true, |_| ());
        growth.restart();
    }
}

fn run_header(run: &ChunkHead, cut: &Cut, number: usize) -> NonNull<u8> {
    let data = run.taken.map_or(NonNull::dangling(), |t| t.data);
    // SAFETY: the run has that chunk.
    header_of(unsafe { data.add(number * cut.bytes) }, cut.chunk)
}

/// # Safety
/// `at` is where the header of a chunk belongs that has none.
unsafe fn begin(at: NonNull<u8>, head: ChunkHead) -> NonNull<u8> {
    // SAFETY: there is room for a header, aligned to a line.
    unsafe { at.cast::<ChunkHead>().write(head) };
    at
}
