//! The memory of a typed arena, and the code that drops its values.

use crate::arena::blocks::Blocks;
use crate::Source;
use core::cell::Cell;
use core::mem;
use core::ptr::NonNull;

/// The arena without its value type.
///
/// This type does not mention `T`, because it drops values through the function pointer
/// `drop_values`. So the drop check of the compiler lets values borrow each other.
pub(super) struct Store<S: Source> {
    pub(super) blocks: Blocks<1>,
    /// The number of values, if they are zero-sized.
    pub(super) sizeless: Cell<usize>,
    /// A function that drops values. The arguments are the address of the first value and the
    /// number of values.
    pub(super) drop_values: unsafe fn(NonNull<u8>, usize),
    pub(super) value_bytes: usize,
    pub(super) source: S,
}

impl<S: Source> Store<S> {
    /// Returns the first value of each chunk, and the number of values in the chunk.
    pub(super) fn parts(&self) -> impl Iterator<Item = (NonNull<u8>, usize)> + '_ {
        let bytes = self.value_bytes.max(1);
        self.blocks.filled().map(move |part| (part.cast(), part.len() / bytes))
    }

    /// Drops all values and marks all memory as free, even if a destructor panics.
    pub(super) fn drop_all(&mut self) {
        struct Forget<'a, S: Source>(&'a mut Store<S>);
        impl<S: Source> Drop for Forget<'_, S> {
            fn drop(&mut self) {
                self.0.forget();
            }
        }
        let all = Forget(self);
        let sizeless = Some((NonNull::dangling(), all.0.sizeless.get())).filter(|s| s.1 != 0);
        let mut parts = sizeless.into_iter().chain(all.0.parts());
        drop_parts(all.0.drop_values, &mut parts);
    }

    /// Discards all values without dropping them.
    pub(super) fn forget(&mut self) {
        self.sizeless.set(0);
        self.blocks.reset();
    }
}

/// Drops the values of all chunks. If a destructor panics, the remaining values are still dropped.
fn drop_parts(
    drop: unsafe fn(NonNull<u8>, usize),
    parts: &mut dyn Iterator<Item = (NonNull<u8>, usize)>,
) {
    type Parts<'a> = &'a mut dyn Iterator<Item = (NonNull<u8>, usize)>;
    struct Others<'a>(unsafe fn(NonNull<u8>, usize), Parts<'a>);
    impl Drop for Others<'_> {
        fn drop(&mut self) {
            drop_parts(self.0, self.1);
        }
    }
    while let Some((first, count)) = parts.next() {
        let others = Others(drop, &mut *parts);
        // SAFETY: the chunk has `count` values. The arena discards its values once all are dropped.
        unsafe { (others.0)(first, count) };
        mem::forget(others);
    }
}

/// A guard that returns all memory of the arena to its source when the guard is dropped, also if a
/// destructor panics.
pub(super) struct ReleaseOnDrop<'a, S: Source>(pub(super) &'a mut Store<S>);

impl<S: Source> Drop for ReleaseOnDrop<'_, S> {
    fn drop(&mut self) {
        self.0.blocks.release(&self.0.source);
    }
}

impl<S: Source> Drop for Store<S> {
    fn drop(&mut self) {
        let end = ReleaseOnDrop(self);
        end.0.drop_all();
    }
}
