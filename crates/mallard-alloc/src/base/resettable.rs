//! Traits that an allocator may implement in addition to `BlockAllocator`. Adaptors around the
//! allocator implement them too.

use crate::base::statistics::Statistics;

/// Frees all blocks together. The caller needs exclusive access. Safe references to blocks borrow
/// the allocator, so the compiler ensures that no such reference is left. Raw pointers to blocks
/// become invalid.
///
/// ```
/// use mallard::{Arena, Counted, Resettable};
/// let mut arena = Counted::new(Arena::new()); // the adaptor passes the calls on
/// arena.reset();
/// ```
pub trait Resettable {
    /// Frees every block and keeps the memory.
    fn reset(&mut self);
    /// Frees every block and returns all memory to the source.
    fn release(&mut self);
    /// Returns idle memory to the source, except for `keep` bytes. A multipool keeps `keep` bytes
    /// for each size class, and a shared arena for each thread.
    fn trim(&mut self, keep: usize);
}

/// Returns the statistics of an allocator. Arenas, pools, multipools, and the adaptors around them
/// implement this trait.
///
/// ```
/// use mallard::{Arena, Measured, Multipool};
/// fn total(parts: &[&dyn Measured]) -> usize {
///     parts.iter().map(|part| part.statistics().bytes_taken).sum()
/// }
/// assert_eq!(total(&[&Arena::new(), &Multipool::new()]), 0); // nothing is taken yet
/// ```
pub trait Measured {
    /// Returns the statistics of the allocator now.
    fn statistics(&self) -> Statistics;
}

impl<A: Measured + ?Sized> Measured for &A {
    fn statistics(&self) -> Statistics {
        (**self).statistics()
    }
}

/// Implements `Resettable` and `Measured` for a type that has functions of the same names. `$reset`
/// is the name of the type's function that frees every block and keeps the memory.
macro_rules! resettable {
    ([$($params:tt)*] $type:ty, $reset:ident) => {
        impl<$($params)*> $crate::Resettable for $type {
            fn reset(&mut self) {
                self.$reset();
            }
            fn release(&mut self) {
                self.release();
            }
            fn trim(&mut self, keep: usize) {
                self.trim(keep);
            }
        }
        impl<$($params)*> $crate::Measured for $type {
            fn statistics(&self) -> $crate::Statistics {
                self.statistics()
            }
        }
    };
}
pub(crate) use resettable;
