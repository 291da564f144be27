//! What an allocator may offer beside blocks, so that what is around it can pass it on.

use crate::Statistics;

/// Can free all blocks at once. Callable only by who has the allocator to himself: a block that
/// is in use borrows it, or was made by `unsafe` calls.
pub trait Resettable {
    /// Frees every block and keeps the memory.
    fn reset(&mut self);
    /// Frees every block and gives the memory back.
    fn release(&mut self);
    /// Gives back what is idle, beyond `keep` bytes in each of its parts.
    fn trim(&mut self, keep: usize);
}

/// Can say what it holds: arenas, pools and multipools, and whatever is around them.
pub trait Measured {
    /// What is held.
    fn statistics(&self) -> Statistics;
}

impl<A: Measured + ?Sized> Measured for &A {
    fn statistics(&self) -> Statistics {
        (**self).statistics()
    }
}
