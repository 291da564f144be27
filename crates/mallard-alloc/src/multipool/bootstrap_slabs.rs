//! Bootstrap slabs: the first memory of a multipool, which all size classes share.

use super::class_pool::Shape;
use crate::bits::layout;
use crate::{Chunk, Source, Statistics};
use core::cell::Cell;
use core::ptr::{null_mut, NonNull};

/// Slabs of 1, 4, 16, 64 and 256 KiB, from which blocks of any size class are cut in address order.
/// A chunk for each class would cost a small container more than its blocks: 64 strings have 24 sizes.
///
/// ```text
///     header | 40 B | 24 B | 640 B | not cut yet ...   | 5 | 2 | 4 |
///                                  cut                 kinds       end
/// ```
///
/// From the end down stands the size class of each block, its kind, in a byte each, so that a slab can
/// be read block by block. A freed block goes to the pool of its class.
pub(super) struct BootstrapSlabs {
    first: Cell<*mut Slab>, // the oldest of the list
    current: Cell<*mut Slab>,
    step: Cell<usize>, // bytes of the next slab
}

struct Slab {
    next: *mut Slab, // the one made after this
    taken: Chunk,
    cut: *mut u8,
    kinds: *mut u8,
    in_use: Cell<usize>, // blocks in use, during `trim`
}

const STEP_FIRST: usize = 1 << 10;
const STEP_MAX: usize = 1 << 18;
const STEP_FACTOR: usize = 4;
const BLOCKS_MIN: usize = 4; // of the size for which a slab is made

/// Bytes of the blocks that are cut together: 512 of small blocks, of which a container usually has
/// many, and 256 of larger blocks, so that a few of them do not take the room of many small ones.
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

impl Slab {
    fn begin(&self) -> *mut u8 {
        self.taken.data.as_ptr().wrapping_add(size_of::<Slab>())
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

    /// Cuts several blocks: `batch_bytes`, at most an eighth of the slab, at least one block.
    fn cut_off(&mut self, shape: Shape, kind: usize) -> (*mut u8, *mut u8) {
        let begin = align_up(self.cut, shape.align);
        let room = self.kinds.addr() - begin.addr();
        let wanted = batch_bytes(shape).min(self.taken.layout.size() / 8) / shape.bytes;
        let count = wanted.clamp(1, room / (shape.bytes + 1));
        self.cut = begin.wrapping_add(count * shape.bytes);
        self.kinds = self.kinds.wrapping_sub(count);
        // SAFETY: nothing between `cut` and the old `kinds` is in use.
        unsafe { self.kinds.write_bytes(kind as u8, count) };
        (begin, self.cut)
    }

    /// The blocks that were cut, each with its kind.
    fn blocks<'a>(&self, shapes: &'a [Shape]) -> impl Iterator<Item = (*mut u8, usize)> + 'a {
        let (mut at, mut kind, last) = (self.begin(), self.end(), self.kinds);
        core::iter::from_fn(move || {
            if kind == last {
                return None;
            }
            kind = kind.wrapping_sub(1);
            // SAFETY: the kinds stand from `kinds` to the end.
            let of = usize::from(unsafe { kind.read() });
            let block = align_up(at, shapes[of].align);
            at = block.wrapping_add(shapes[of].bytes);
            Some((block, of))
        })
    }
}

impl BootstrapSlabs {
    pub(super) const fn new() -> Self {
        Self {
            first: Cell::new(null_mut()),
            current: Cell::new(null_mut()),
            step: Cell::new(STEP_FIRST),
        }
    }

    /// No slabs, for a multipool with a growth of the caller's.
    pub(super) const fn none() -> Self {
        Self { step: Cell::new(STEP_MAX + 1), ..Self::new() }
    }

    /// Cuts neighbouring blocks: the beginning of the first, and the end of the last. `None`: the slabs
    /// are used up, or the source is exhausted.
    pub(super) fn cut<S: Source>(
        &self,
        source: &S,
        shape: Shape,
        kind: usize,
    ) -> Option<(*mut u8, *mut u8)> {
        loop {
            // SAFETY: a slab of the list; no call of the source is using it.
            if let Some(slab) = unsafe { self.current.get().as_mut() } {
                if slab.has_room(shape) {
                    return Some(slab.cut_off(shape, kind));
                }
            }
            self.go_on(source, shape.bytes)?;
        }
    }

    pub(super) fn owns(&self, p: *const u8) -> bool {
        self.slabs().any(|slab| slab.has(p))
    }

    /// The kind of a block that was cut, in use or free.
    pub(super) fn kind_of(&self, p: *const u8, shapes: &[Shape]) -> Option<usize> {
        let slab = self.slabs().find(|slab| slab.has(p))?;
        slab.blocks(shapes).find(|&(block, _)| block.cast_const() == p).map(|(_, kind)| kind)
    }

    /// Marks all blocks as never cut.
    pub(super) fn reset(&self) {
        self.for_each(Slab::rewind);
        self.current.set(self.first.get());
    }

    pub(super) fn release<S: Source>(&self, source: &S) {
        self.slabs().for_each(|slab| slab.in_use.set(0));
        self.give_idle(source);
    }

    /// Sets `in_use` of each slab to the number of blocks that were cut. `put_aside` then subtracts the
    /// free ones.
    pub(super) fn count(&self, shapes: &[Shape]) {
        self.slabs().for_each(|slab| slab.in_use.set(slab.blocks(shapes).count()));
    }
    pub(super) fn put_aside(&self, block: NonNull<u8>) {
        if let Some(slab) = self.slabs().find(|slab| slab.has(block.as_ptr())) {
            slab.in_use.set(slab.in_use.get() - 1);
        }
    }
    /// Whether `block` is in a slab whose `in_use` is 0.
    pub(super) fn is_in_idle_slab(&self, block: NonNull<u8>) -> bool {
        self.slabs().any(|slab| slab.has(block.as_ptr()) && slab.in_use.get() == 0)
    }

    /// Gives back the slabs whose `in_use` is 0.
    pub(super) fn give_idle<S: Source>(&self, source: &S) {
        let mut at = self.first.replace(null_mut());
        self.current.set(null_mut());
        if self.step.get() <= STEP_MAX || !at.is_null() {
            self.step.set(STEP_FIRST);
        }
        while let Some(mut slab) = NonNull::new(at) {
            // SAFETY: a slab that is in no list at this moment.
            let slab_ref = unsafe { slab.as_mut() };
            at = core::mem::replace(&mut slab_ref.next, null_mut());
            if slab_ref.in_use.get() == 0 {
                let taken = slab_ref.taken;
                // SAFETY: the source gave it, and no block of it is in use.
                unsafe { source.give(taken) };
            } else {
                self.step.set(taken_step(slab_ref.taken));
                self.append(slab);
                self.current.set(slab.as_ptr());
            }
        }
    }

    /// Adds the slabs, with every block that was cut as live.
    pub(super) fn add_to(&self, s: &mut Statistics, shapes: &[Shape]) {
        for slab in self.slabs() {
            s.bytes_taken += slab.taken.layout.size();
            s.bytes_idle += slab.kinds.addr() - slab.cut.addr();
            s.chunks += 1;
            for (_, kind) in slab.blocks(shapes) {
                s.blocks_live += 1; // or free: then the pool of its class subtracts it
                s.bytes_live += shapes[kind].bytes;
            }
        }
    }

    /// Goes to the next slab, or takes one that has room for some blocks of `bytes`.
    fn go_on<S: Source>(&self, source: &S, bytes: usize) -> Option<()> {
        if bytes > STEP_MAX / BLOCKS_MIN {
            return None;
        }
        // SAFETY: a slab of the list.
        let next = unsafe { self.current.get().as_ref() }.map_or(null_mut(), |slab| slab.next);
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
        let taken = source.try_take(layout(step, align_of::<Slab>())?)?;
        self.step.set(step * STEP_FACTOR);
        let slab = taken.data.cast::<Slab>();
        let mut made = Slab {
            next: null_mut(),
            taken,
            cut: null_mut(),
            kinds: null_mut(),
            in_use: Cell::new(0),
        };
        made.rewind();
        // SAFETY: the chunk was just taken, and has room for the header.
        unsafe { slab.write(made) };
        self.append(slab);
        self.current.set(slab.as_ptr());
        Some(())
    }

    fn append(&self, slab: NonNull<Slab>) {
        let mut last = null_mut();
        self.for_each(|slab| last = slab);
        // SAFETY: null, or a slab of the list.
        match unsafe { last.as_mut() } {
            None => self.first.set(slab.as_ptr()),
            Some(last) => last.next = slab.as_ptr(),
        }
    }

    fn slabs(&self) -> impl Iterator<Item = &Slab> {
        let mut at = self.first.get();
        core::iter::from_fn(move || {
            // SAFETY: no caller gives a slab back meanwhile.
            let slab = unsafe { at.as_ref() }?;
            at = slab.next;
            Some(slab)
        })
    }

    fn for_each(&self, mut f: impl FnMut(&mut Slab)) {
        let mut at = self.first.get();
        // SAFETY: slabs of the list; `f` has no other reference to them.
        while let Some(slab) = unsafe { at.as_mut() } {
            at = slab.next;
            f(slab);
        }
    }
}

fn taken_step(taken: Chunk) -> usize {
    taken.layout.size().saturating_mul(STEP_FACTOR)
}
