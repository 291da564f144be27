//! The first memory of a multipool, cut as asked, whatever the sizes.

use super::class_core::Shape;
use crate::bits::layout;
use crate::{Chunk, Source, Statistics};
use core::cell::Cell;
use core::ptr::{null_mut, NonNull};

/// Pieces of 1, 4, 16, 64 and 256 KiB, cut from the front. A chunk for each of its sizes
/// would cost a structure of few blocks more than the blocks: 64 strings have 24 sizes.
///
/// ```text
///     header | 40 B | 24 B | 640 B | not cut yet ...   | 5 | 2 | 4 |
///                                  cut                 kinds       end
/// ```
///
/// From the end down stands what size each block is of, a byte each, so that a piece can
/// be read block by block. A block that is freed is its pool's to give out again.
pub(super) struct Starter {
    first: Cell<*mut Piece>, // the oldest
    current: Cell<*mut Piece>,
    step: Cell<usize>, // bytes of the next piece
}

struct Piece {
    next: *mut Piece, // made after this one
    taken: Chunk,
    cut: *mut u8,
    kinds: *mut u8,
    in_use: Cell<usize>, // blocks, while `trim` counts them
}

const STEP_FIRST: usize = 1 << 10;
const STEP_MAX: usize = 1 << 18;
const STEP_FACTOR: usize = 4;
const BLOCKS_MIN: usize = 4; // in a piece

/// Half a KiB of small blocks, of which a structure most often has many; a quarter of larger
/// ones, so that a few of them do not take the room of many.
fn batch_bytes(shape: Shape) -> usize {
    if shape.bytes <= 64 {
        512
    } else {
        256
    }
}

fn align_up(p: *mut u8, align: usize) -> *mut u8 {
    p.map_addr(|at| crate::bits::align_up(at, align))
}

impl Piece {
    fn begin(&self) -> *mut u8 {
        self.taken.data.as_ptr().wrapping_add(size_of::<Piece>())
    }
    fn end(&self) -> *mut u8 {
        self.taken.data.as_ptr().wrapping_add(self.taken.layout.size())
    }
    fn has(&self, p: *const u8) -> bool {
        p.addr().wrapping_sub(self.taken.data.addr().get()) < self.taken.layout.size()
    }
    fn rewind(&mut self) {
        (self.cut, self.kinds) = (self.begin(), self.end());
    }
    fn has_room(&self, shape: Shape) -> bool {
        align_up(self.cut, shape.align).addr() + shape.bytes < self.kinds.addr()
    }

    /// A batch, at most an eighth of the piece, at least one.
    fn cut_off(&mut self, shape: Shape, kind: usize) -> (*mut u8, *mut u8) {
        let begin = align_up(self.cut, shape.align);
        let room = self.kinds.addr() - begin.addr();
        let wanted = batch_bytes(shape).min(self.taken.layout.size() / 8) / shape.bytes;
        let count = wanted.clamp(1, room / (shape.bytes + 1));
        self.cut = begin.wrapping_add(count * shape.bytes);
        self.kinds = self.kinds.wrapping_sub(count);
        // SAFETY: between `cut` and what was `kinds` nothing is used.
        unsafe { self.kinds.write_bytes(kind as u8, count) };
        (begin, self.cut)
    }

    /// Each block that was cut, and its kind.
    fn blocks<'a>(&self, shapes: &'a [Shape]) -> impl Iterator<Item = (*mut u8, usize)> + 'a {
        let (mut at, mut kind, last) = (self.begin(), self.end(), self.kinds);
        core::iter::from_fn(move || {
            if kind == last {
                return None;
            }
            kind = kind.wrapping_sub(1);
            // SAFETY: from `kinds` to the end there are kinds.
            let of = usize::from(unsafe { kind.read() });
            let block = align_up(at, shapes[of].align);
            at = block.wrapping_add(shapes[of].bytes);
            Some((block, of))
        })
    }
}

impl Starter {
    pub(super) const fn new() -> Self {
        Self {
            first: Cell::new(null_mut()),
            current: Cell::new(null_mut()),
            step: Cell::new(STEP_FIRST),
        }
    }

    /// For a growth that is not the usual one: never a piece.
    pub(super) const fn none() -> Self {
        Self { step: Cell::new(STEP_MAX + 1), ..Self::new() }
    }

    /// Blocks side by side, from the first to the end of the last; none when the pieces are used
    /// up, or the source is dry.
    pub(super) fn cut<S: Source>(
        &self,
        source: &S,
        shape: Shape,
        kind: usize,
    ) -> Option<(*mut u8, *mut u8)> {
        loop {
            // SAFETY: a piece of this starter, which no call of a source is looking at.
            if let Some(piece) = unsafe { self.current.get().as_mut() } {
                if piece.has_room(shape) {
                    return Some(piece.cut_off(shape, kind));
                }
            }
            self.go_on(source, shape.bytes)?;
        }
    }

    pub(super) fn owns(&self, p: *const u8) -> bool {
        self.pieces().any(|piece| piece.has(p))
    }

    /// The kind of a block that was cut, whether it is in use or not.
    pub(super) fn kind_of(&self, p: *const u8, shapes: &[Shape]) -> Option<usize> {
        let piece = self.pieces().find(|piece| piece.has(p))?;
        piece.blocks(shapes).find(|&(block, _)| block.cast_const() == p).map(|(_, kind)| kind)
    }

    /// None of its blocks is in use any more.
    pub(super) fn reset(&self) {
        self.for_each(Piece::rewind);
        self.current.set(self.first.get());
    }

    pub(super) fn release<S: Source>(&self, source: &S) {
        self.pieces().for_each(|piece| piece.in_use.set(0));
        self.give_idle(source);
    }

    /// From now on each piece knows how many blocks of it are in use, but for those `put_aside`.
    pub(super) fn count(&self, shapes: &[Shape]) {
        self.pieces().for_each(|piece| piece.in_use.set(piece.blocks(shapes).count()));
    }
    pub(super) fn put_aside(&self, block: NonNull<u8>) {
        if let Some(piece) = self.pieces().find(|piece| piece.has(block.as_ptr())) {
            piece.in_use.set(piece.in_use.get() - 1);
        }
    }
    /// While they know it.
    pub(super) fn is_in_idle_piece(&self, block: NonNull<u8>) -> bool {
        self.pieces().any(|piece| piece.has(block.as_ptr()) && piece.in_use.get() == 0)
    }

    /// Gives back what has no block in use, which was counted.
    pub(super) fn give_idle<S: Source>(&self, source: &S) {
        let mut at = self.first.replace(null_mut());
        self.current.set(null_mut());
        if self.step.get() <= STEP_MAX || !at.is_null() {
            self.step.set(STEP_FIRST);
        }
        while let Some(mut piece) = NonNull::new(at) {
            // SAFETY: a piece of this starter, in no list at this moment.
            let piece_ref = unsafe { piece.as_mut() };
            at = core::mem::replace(&mut piece_ref.next, null_mut());
            if piece_ref.in_use.get() == 0 {
                let taken = piece_ref.taken;
                // SAFETY: it was taken from there, and no block of it is used any more.
                unsafe { source.give(taken) };
            } else {
                self.step.set(taken_step(piece_ref.taken));
                self.append(piece);
                self.current.set(piece.as_ptr());
            }
        }
    }

    /// But for the blocks in use.
    pub(super) fn add_to(&self, s: &mut Statistics, shapes: &[Shape]) {
        for piece in self.pieces() {
            s.bytes_taken += piece.taken.layout.size();
            s.bytes_idle += piece.kinds.addr() - piece.cut.addr();
            s.chunks += 1;
            for (_, kind) in piece.blocks(shapes) {
                s.blocks_live += 1; // or else it is at hand in its core, which knows
                s.bytes_live += shapes[kind].bytes;
            }
        }
    }

    /// To the next piece, with room for some of `bytes`.
    fn go_on<S: Source>(&self, source: &S, bytes: usize) -> Option<()> {
        if bytes > STEP_MAX / BLOCKS_MIN {
            return None;
        }
        // SAFETY: a piece of this starter.
        let next = unsafe { self.current.get().as_ref() }.map_or(null_mut(), |piece| piece.next);
        if !next.is_null() {
            self.current.set(next);
            return Some(());
        }
        let mut step = self.step.get();
        while step < bytes * BLOCKS_MIN {
            step *= STEP_FACTOR;
        }
        if step > STEP_MAX {
            return None;
        }
        let taken = source.try_take(layout(step, align_of::<Piece>())?)?;
        self.step.set(step * STEP_FACTOR);
        let piece = taken.data.cast::<Piece>();
        let mut made = Piece {
            next: null_mut(),
            taken,
            cut: null_mut(),
            kinds: null_mut(),
            in_use: Cell::new(0),
        };
        made.rewind();
        // SAFETY: the chunk is ours and has room for it.
        unsafe { piece.write(made) };
        self.append(piece);
        self.current.set(piece.as_ptr());
        Some(())
    }

    fn append(&self, piece: NonNull<Piece>) {
        let mut last = null_mut();
        self.for_each(|piece| last = piece);
        // SAFETY: null, or a piece of this starter.
        match unsafe { last.as_mut() } {
            None => self.first.set(piece.as_ptr()),
            Some(last) => last.next = piece.as_ptr(),
        }
    }

    fn pieces(&self) -> impl Iterator<Item = &Piece> {
        let mut at = self.first.get();
        core::iter::from_fn(move || {
            // SAFETY: pieces are here until they are given back, which no caller does meanwhile.
            let piece = unsafe { at.as_ref() }?;
            at = piece.next;
            Some(piece)
        })
    }

    fn for_each(&self, mut f: impl FnMut(&mut Piece)) {
        let mut at = self.first.get();
        // SAFETY: the pieces of this starter; `f` knows no other way to them.
        while let Some(piece) = unsafe { at.as_mut() } {
            at = piece.next;
            f(piece);
        }
    }
}

fn taken_step(taken: Chunk) -> usize {
    taken.layout.size().saturating_mul(STEP_FACTOR)
}
