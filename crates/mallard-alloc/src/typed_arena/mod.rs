//! An arena for values of one type, which the arena drops.

mod iter;
mod series;
mod store;

pub use iter::IterMut;

use crate::arena::blocks::Blocks;
use crate::arena::objects::no_memory_for;
use crate::arena::GROWTH;
use crate::{DefaultHeap, Full, Growth, Source, Statistics};
use core::alloc::Layout;
use core::cell::Cell;
use core::fmt;
use core::marker::PhantomData;
use core::mem;
use core::ptr::NonNull;
use series::Series;
use store::{ReleaseOnDrop, Store};

/// An arena for values of one type, which stores the values next to each other, and drops them when
/// the arena is dropped.
///
/// ```
/// use core::cell::Cell;
/// struct Node<'a> {
///     name: String, // the arena drops it
///     next: Cell<Option<&'a Node<'a>>>, // nodes may form cycles
/// }
/// let nodes = mallard::TypedArena::new(); // takes no memory yet
/// let a = nodes.alloc(Node { name: "a".into(), next: Cell::new(None) });
/// let b = nodes.alloc(Node { name: "b".into(), next: Cell::new(Some(a)) });
/// a.next.set(Some(b));
/// assert_eq!(b.next.get().unwrap().name, "a");
/// ```
///
/// The arena grows like an [`Arena`](crate::Arena). Each chunk is four times as large as the one
/// before, up to 16 MiB, unless a [`Growth`] sets other sizes. Values do not move. They are
/// iterated and dropped in the order in which they were made. If a destructor panics, the other
/// destructors still run. Zero-sized values are counted and dropped, and use no memory. A typed
/// arena is `Send` if its values are, and is not `Sync`.
///
/// ```compile_fail,E0597
/// struct Noisy<'a>(&'a String);
/// impl Drop for Noisy<'_> {
///     fn drop(&mut self) { println!("{}", self.0); }
/// }
/// let arena = mallard::TypedArena::new();
/// let name = String::new(); // dropped before the arena, whose values would still use it
/// arena.alloc(Noisy(&name));
/// ```
/// ```compile_fail,E0502
/// let mut arena = mallard::TypedArena::new();
/// let one = arena.alloc(1);
/// arena.reset(); // `one` is still in use
/// *one = 2;
/// ```
/// ```compile_fail
/// fn shorter<'a>(arena: &mallard::TypedArena<&'static str>, s: &'a str) {
///     let arena: &mallard::TypedArena<&'a str> = arena;
///     arena.alloc(s);
/// }
/// ```
pub struct TypedArena<T, S: Source = DefaultHeap> {
    store: Store<S>,
    /// Makes the arena invariant in `T`, because the arena owns values of exactly this type.
    values: PhantomData<Cell<T>>,
}

// SAFETY: the arena has exclusive use of its values and its memory.
unsafe impl<T: Send, S: Source + Send> Send for TypedArena<T, S> {}

/// Drops `count` values.
///
/// # Safety
/// `first` is the first of `count` values, unless the values are zero-sized. Nothing else uses the
/// values.
unsafe fn drop_values<T>(first: NonNull<u8>, count: usize) {
    let first = if size_of::<T>() == 0 { NonNull::dangling() } else { first.cast::<T>() };
    // SAFETY: the caller guarantees that `count` values begin at `first`. If a destructor panics,
    // the rest of the slice is dropped.
    unsafe { NonNull::slice_from_raw_parts(first, count).drop_in_place() }
}

impl<T> TypedArena<T> {
    /// Makes an empty arena, without allocating.
    pub const fn new() -> Self {
        Self::new_in(DefaultHeap)
    }
    /// Makes an empty arena that grows by the rule `growth`, without allocating.
    pub const fn with_growth(growth: Growth) -> Self {
        Self::with_growth_in(growth, DefaultHeap)
    }
    /// Makes an arena with room for `count` values. Aborts if there is no memory.
    pub fn with_capacity(count: usize) -> Self {
        let arena = Self::new();
        arena.reserve(count);
        arena
    }
}

impl<T, S: Source> TypedArena<T, S> {
    /// Makes an empty arena whose chunks come from `source`, without allocating.
    pub const fn new_in(source: S) -> Self {
        Self::with_growth_in(GROWTH, source)
    }
    /// Makes an empty arena with a growth rule and a source, without allocating.
    pub const fn with_growth_in(growth: Growth, source: S) -> Self {
        let store = Store {
            blocks: Blocks::new(growth),
            sizeless: Cell::new(0),
            drop_values: drop_values::<T>,
            value_bytes: size_of::<T>(),
            source,
        };
        Self { store, values: PhantomData }
    }

    /// Moves `value` into the arena. Aborts if there is no memory.
    #[inline(always)]
    #[allow(clippy::mut_from_ref)] // each call returns a separate place
    pub fn alloc(&self, value: T) -> &mut T {
        match self.place() {
            // SAFETY: the place is new, has room for one value, and is valid while the arena is
            // borrowed.
            Some(mut place) => unsafe {
                place.write(value);
                place.as_mut()
            },
            None => no_memory_for::<T>(1),
        }
    }
    /// Moves `value` into the arena. If there is no memory, returns the value in the error.
    #[inline(always)]
    #[allow(clippy::mut_from_ref)]
    pub fn try_alloc(&self, value: T) -> Result<&mut T, Full<T>> {
        match self.place() {
            // SAFETY: the place is new, has room for one value, and is valid while the arena is
            // borrowed.
            Some(mut place) => unsafe {
                place.write(value);
                Ok(place.as_mut())
            },
            None => Err(Full::no_memory(value)),
        }
    }

    /// Returns the place of the next value. The caller writes the value before it calls anything
    /// else.
    #[inline(always)]
    fn place(&self) -> Option<NonNull<T>> {
        if size_of::<T>() == 0 {
            self.store.sizeless.set(self.store.sizeless.get() + 1);
            return Some(NonNull::dangling());
        }
        // The cursor is always aligned for `T`, because it begins at the start of a chunk that is
        // aligned for `T`, and moves by whole values.
        match self.store.blocks.bump_for::<T, true>() {
            Some(place) => Some(place.cast()),
            None => self.grow(),
        }
    }
    #[cold]
    #[inline(never)]
    fn grow(&self) -> Option<NonNull<T>> {
        Some(self.store.blocks.grow(&self.store.source, Layout::new::<T>())?.cast())
    }

    /// Allocates a slice of all items that `items` yields. Aborts if there is no memory.
    ///
    /// ```
    /// let arena = mallard::TypedArena::new();
    /// assert_eq!(arena.alloc_extend(1..4), [1, 2, 3]);
    /// ```
    ///
    /// `items` may use the arena. If `items` panics, the values that `items` has yielded are
    /// dropped.
    #[allow(clippy::mut_from_ref)]
    pub fn alloc_extend(&self, items: impl IntoIterator<Item = T>) -> &mut [T] {
        match self.try_alloc_extend(items) {
            Ok(slice) => slice,
            Err(_) => no_memory_for::<T>(1),
        }
    }
    /// Allocates a slice of all items that `items` yields. If there is no memory, the values are
    /// dropped.
    #[allow(clippy::mut_from_ref)]
    pub fn try_alloc_extend(&self, items: impl IntoIterator<Item = T>) -> Result<&mut [T], Full> {
        let items = items.into_iter();
        let slice = if size_of::<T>() == 0 {
            let count = items.map(mem::forget).count();
            self.store.sizeless.set(self.store.sizeless.get() + count);
            NonNull::slice_from_raw_parts(NonNull::dangling(), count)
        } else {
            let mut series = Series::new(&self.store);
            series.reserve(items.size_hint().0).ok_or(Full::no_memory(()))?;
            series.extend(items).ok_or(Full::no_memory(()))?;
            series.finish()
        };
        // SAFETY: the slice is new, and valid while the arena is borrowed.
        Ok(unsafe { &mut *slice.as_ptr() })
    }

    /// Makes room for `count` more values in one chunk. Aborts if there is no memory.
    pub fn reserve(&self, count: usize) {
        if self.try_reserve(count).is_err() {
            no_memory_for::<T>(count);
        }
    }
    /// Makes room for `count` more values in one chunk.
    pub fn try_reserve(&self, count: usize) -> Result<(), Full> {
        if size_of::<T>() != 0 {
            Series::<T, S>::new(&self.store).reserve(count).ok_or(Full::no_memory(()))?;
        }
        Ok(())
    }

    /// Returns the number of values. O(chunks).
    pub fn len(&self) -> usize {
        self.store.sizeless.get() + self.store.parts().map(|part| part.1).sum::<usize>()
    }
    /// Returns whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Returns an iterator over all values, in the order in which they were made.
    pub fn iter_mut(&mut self) -> IterMut<'_, T> {
        let sizeless =
            NonNull::slice_from_raw_parts(NonNull::dangling(), self.store.sizeless.get());
        // SAFETY: values of size 0 may be at any aligned address. If the size of `T` is not 0, the
        // slice is empty.
        let part = unsafe { &mut *sizeless.as_ptr() }.iter_mut();
        IterMut { part, parts: self.store.blocks.filled(), values: PhantomData }
    }
    /// Moves all values into a vector, in the order in which they were made.
    #[cfg(feature = "alloc")]
    pub fn into_vec(mut self) -> alloc::vec::Vec<T> {
        let mut all = alloc::vec::Vec::with_capacity(self.len());
        for value in self.iter_mut() {
            // SAFETY: nothing can panic before the arena discards the values below, because the
            // vector has room for all of them.
            all.push(unsafe { core::ptr::read(value) });
        }
        self.store.forget();
        all
    }

    /// Drops all values and keeps the memory. The arena continues in its newest chunk, which is the
    /// largest, unless a slice was so large that it got a separate chunk.
    ///
    /// ```
    /// let mut arena = mallard::TypedArena::new();
    /// arena.alloc(String::from("duck"));
    /// arena.reset();
    /// assert!(arena.is_empty());
    /// ```
    pub fn reset(&mut self) {
        self.store.drop_all();
    }
    /// Drops all values and returns all memory to the source.
    pub fn release(&mut self) {
        let end = ReleaseOnDrop(&mut self.store);
        end.0.drop_all();
    }
    /// Returns idle chunks to the source, oldest first, until at most `keep` idle bytes are left.
    pub fn trim(&mut self, keep: usize) {
        self.store.blocks.trim(&self.store.source, keep);
    }
    /// Returns the statistics. Values count as blocks.
    pub fn statistics(&self) -> Statistics {
        Statistics { blocks_live: self.len(), ..self.store.blocks.statistics() }
    }
    /// Returns the source of the chunks.
    pub fn source(&self) -> &S {
        &self.store.source
    }
}

impl<T, S: Source + Default> FromIterator<T> for TypedArena<T, S> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let arena = Self::new_in(S::default());
        arena.alloc_extend(items);
        arena
    }
}

impl<T> Default for TypedArena<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, S: Source> fmt::Debug for TypedArena<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TypedArena").field(&self.statistics()).finish()
    }
}
