//! Who may call a pool at the same time, as a type; and the one place that knows of loom.

use crate::{Growth, Source, Statistics, Validity};
use core::ptr::NonNull;

/// What shared code is made of: loom's where a model is checked.
#[allow(unused_imports)] // not every feature uses all
pub(crate) mod atomic {
    #[cfg(not(loom))]
    pub(crate) use core::sync::atomic::*;
    #[cfg(loom)]
    pub(crate) use loom::sync::atomic::*;
}

/// The slots of a pool: what is in a chunk beside its header.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct SlotShape {
    /// From one slot to the next: a multiple of `align`, at least 1.
    pub stride: usize,
    /// Of every slot.
    pub align: usize,
    /// Bytes of a chunk, and what it is aligned to: a power of two, so that the address of a
    /// block leads to its chunk. At least 8 slots fit.
    pub chunk: usize,
    /// The most slots that there may ever be at a time.
    pub most: usize,
}

/// Where a visit of the slots in use stands; its meaning is the core's.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct LiveCursor {
    pub take: *mut u8,
    pub chunk: *mut u8,
    pub slot: usize,
}

impl LiveCursor {
    /// Before the first.
    pub const START: Self =
        Self { take: core::ptr::null_mut(), chunk: core::ptr::null_mut(), slot: 0 };
}

/// What keeps the slots of one pool. It stays at one address from its first call to its last:
/// chunks lead to it.
///
/// # Safety
/// Blocks are as `BlockAllocator` wants them. Those functions that take `&self` may be called by
/// as many threads at once as the mode says.
#[doc(hidden)]
pub unsafe trait Core<S: Source>: Sized {
    /// Takes nothing from the source.
    fn new(shape: SlotShape, growth: Growth, source: S) -> Self;

    /// Bytes from the source that surely hold `count` slots, and all that is beside them; the
    /// core itself aside.
    fn bytes_for(shape: SlotShape, count: usize) -> usize {
        // At least 8 slots fit, and what is beside them is less than they are.
        let chunks = count.saturating_mul(shape.stride).saturating_mul(2) / shape.chunk + 2;
        chunks.saturating_mul(shape.chunk)
    }

    /// A slot, or `None`: the limit or the source refuses. Uninitialised.
    fn try_allocate(&self) -> Option<NonNull<u8>>;

    /// # Safety
    /// `block` is this core's, in use, and no longer used.
    unsafe fn deallocate(&self, block: NonNull<u8>);

    /// The core that gave `block`; `shape` is its own, `most` aside.
    ///
    /// # Safety
    /// `block` is in use, and its core outlives `'a`.
    unsafe fn of<'a>(block: NonNull<u8>, shape: &SlotShape) -> &'a Self;

    /// All slots in use, in address order within a chunk. `f` must not panic nor call the pool.
    fn for_each_live(&mut self, f: &mut dyn FnMut(NonNull<u8>));

    /// The next slot in use, in the order of `for_each_live`. Between the first call and the
    /// last nothing is allocated or freed.
    fn next_live(&mut self, cursor: &mut LiveCursor) -> Option<NonNull<u8>>;

    /// All are free; memory is kept.
    fn reset(&mut self);
    /// All are free; memory goes back to the source.
    fn release(&mut self);
    /// Idle chunks go back to the source, but for `keep` bytes.
    fn trim(&mut self, keep: usize);

    /// What is held; exact when no other thread is inside.
    fn statistics(&self) -> Statistics;
    /// What `p` is; exact when no other thread is inside.
    fn classify(&self, p: *const u8) -> Validity;
    /// Where chunks come from.
    fn source(&self) -> &S;
}
