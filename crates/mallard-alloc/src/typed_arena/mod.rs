//! An arena for values of one type, which it drops.

mod iter;
mod series;

pub use iter::IterMut;

use crate::arena::blocks::Blocks;
use crate::arena::objects::refuse;
use crate::arena::GROWTH;
use crate::{DefaultHeap, Full, Growth, Source, Statistics};
use core::alloc::Layout;
use core::cell::Cell;
use core::fmt;
use core::marker::PhantomData;
use core::mem;
use core::ptr::NonNull;
use series::Series;

/// Keeps values of one type side by side, and drops them when it goes.
///
/// ```
/// use core::cell::Cell;
/// struct Node<'a> {
///     name: String, // is dropped
///     next: Cell<Option<&'a Node<'a>>>, // nodes may form cycles
/// }
/// let nodes = mallard::TypedArena::new(); // takes nothing
/// let a = nodes.alloc(Node { name: "a".into(), next: Cell::new(None) });
/// let b = nodes.alloc(Node { name: "b".into(), next: Cell::new(Some(a)) });
/// a.next.set(Some(b));
/// assert_eq!(b.next.get().unwrap().name, "a");
/// ```
///
/// Grows as an [`Arena`](crate::Arena) does: 4 KiB, by four to 16 MiB, or as a [`Growth`] says.
/// Values do not move. They are visited and dropped in the order in which they were made; if one
/// panics, the others are dropped nevertheless. Values of no size are counted, dropped, and cost
/// nothing. One thread at a time: it can be sent if its values can.
///
/// ```compile_fail,E0597
/// struct Noisy<'a>(&'a String);
/// impl Drop for Noisy<'_> {
///     fn drop(&mut self) { println!("{}", self.0); }
/// }
/// let arena = mallard::TypedArena::new();
/// let name = String::new(); // goes before the arena, whose values would look at it
/// arena.alloc(Noisy(&name));
/// ```
/// ```compile_fail,E0502
/// let mut arena = mallard::TypedArena::new();
/// let one = arena.alloc(1);
/// arena.reset(); // `one` is still used
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
    /// Owns values of exactly this type.
    values: PhantomData<Cell<T>>,
}

/// All of the arena, without its type. So the compiler, which does not look into `drop_values`,
/// asks of a type in an arena only what its own destructor needs: that is what lets values
/// refer to each other.
struct Store<S: Source> {
    blocks: Blocks<1>,
    /// Those of no size.
    sizeless: Cell<usize>,
    /// Drops so many values from a place on.
    drop_values: unsafe fn(NonNull<u8>, usize),
    value_bytes: usize,
    source: S,
}

// SAFETY: it has its values and its memory to itself.
unsafe impl<T: Send, S: Source + Send> Send for TypedArena<T, S> {}

/// # Safety
/// So many values are there, or anywhere if they have no size, and are of nobody else.
unsafe fn drop_values<T>(first: NonNull<u8>, count: usize) {
    let first = if size_of::<T>() == 0 { NonNull::dangling() } else { first.cast::<T>() };
    // SAFETY: as was promised. A panic does not keep the rest of a slice from being dropped.
    unsafe { NonNull::slice_from_raw_parts(first, count).drop_in_place() }
}

impl<T> TypedArena<T> {
    /// Takes nothing.
    pub const fn new() -> Self {
        Self::new_in(DefaultHeap)
    }
    /// Grows as `growth` says, and never beyond its limit. Takes nothing.
    pub const fn with_growth(growth: Growth) -> Self {
        Self::with_growth_in(growth, DefaultHeap)
    }
    /// Takes room for `count` values now; without memory the program ends.
    pub fn with_capacity(count: usize) -> Self {
        let arena = Self::new();
        arena.reserve(count);
        arena
    }
}

impl<T, S: Source> TypedArena<T, S> {
    /// Chunks come from `source`. Takes nothing.
    pub const fn new_in(source: S) -> Self {
        Self::with_growth_in(GROWTH, source)
    }
    /// Grows as `growth` says, from `source`. Takes nothing.
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

    /// Moves `value` here. Without memory the program ends.
    #[inline(always)]
    #[allow(clippy::mut_from_ref)] // each call has a place of its own
    pub fn alloc(&self, value: T) -> &mut T {
        match self.place() {
            // SAFETY: a place for a value, of nobody else, for as long as the arena is borrowed.
            Some(mut place) => unsafe {
                place.write(value);
                place.as_mut()
            },
            None => refuse::<T>(1),
        }
    }
    /// Moves `value` here, or gives it back.
    #[inline(always)]
    #[allow(clippy::mut_from_ref)]
    pub fn try_alloc(&self, value: T) -> Result<&mut T, Full<T>> {
        match self.place() {
            // SAFETY: a place for a value, of nobody else, for as long as the arena is borrowed.
            Some(mut place) => unsafe {
                place.write(value);
                Ok(place.as_mut())
            },
            None => Err(Full::no_memory(value)),
        }
    }

    /// A place that the caller fills before anything else happens.
    #[inline(always)]
    fn place(&self) -> Option<NonNull<T>> {
        if size_of::<T>() == 0 {
            self.store.sizeless.set(self.store.sizeless.get() + 1);
            return Some(NonNull::dangling());
        }
        // The cursor goes from value to value, from the beginning of a chunk that is aligned
        // for them.
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

    /// All that `items` gives, side by side. Without memory the program ends.
    ///
    /// ```
    /// let arena = mallard::TypedArena::new();
    /// assert_eq!(arena.alloc_extend(1..4), [1, 2, 3]);
    /// ```
    ///
    /// `items` may use the arena. If it panics, what it gave is dropped.
    #[allow(clippy::mut_from_ref)]
    pub fn alloc_extend(&self, items: impl IntoIterator<Item = T>) -> &mut [T] {
        match self.try_alloc_extend(items) {
            Ok(slice) => slice,
            Err(_) => refuse::<T>(1),
        }
    }
    /// All that `items` gives, side by side; without memory, what it gave is dropped.
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
        // SAFETY: made just now, of nobody else, for as long as the arena is borrowed.
        Ok(unsafe { &mut *slice.as_ptr() })
    }

    /// Takes what is needed for `count` more values without another chunk.
    pub fn reserve(&self, count: usize) {
        if self.try_reserve(count).is_err() {
            refuse::<T>(count);
        }
    }
    /// Takes what is needed for `count` more values without another chunk.
    pub fn try_reserve(&self, count: usize) -> Result<(), Full> {
        if size_of::<T>() != 0 {
            Series::<T, S>::new(&self.store).reserve(count).ok_or(Full::no_memory(()))?;
        }
        Ok(())
    }

    /// How many values there are; O(chunks).
    pub fn len(&self) -> usize {
        self.store.sizeless.get() + self.store.parts().map(|part| part.1).sum::<usize>()
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// All values, in the order in which they were made.
    pub fn iter_mut(&mut self) -> IterMut<'_, T> {
        let sizeless =
            NonNull::slice_from_raw_parts(NonNull::dangling(), self.store.sizeless.get());
        // SAFETY: values of no size are wherever there is no room for any.
        let part = unsafe { &mut *sizeless.as_ptr() }.iter_mut();
        IterMut { part, parts: self.store.blocks.filled(), values: PhantomData }
    }
    /// All values, moved into a vector in the order in which they were made.
    #[cfg(feature = "alloc")]
    pub fn into_vec(mut self) -> alloc::vec::Vec<T> {
        let mut all = alloc::vec::Vec::with_capacity(self.len());
        for value in self.iter_mut() {
            // SAFETY: moved out, since the arena forgets it below before anything can panic:
            // there is room for all of them.
            all.push(unsafe { core::ptr::read(value) });
        }
        self.store.forget();
        all
    }

    /// Drops all values and keeps the memory. Begins again in the newest chunk, the largest but
    /// for series above a step.
    pub fn reset(&mut self) {
        self.store.drop_all();
    }
    /// Drops all values and gives all memory back to the source.
    pub fn release(&mut self) {
        let end = End(&mut self.store);
        end.0.drop_all();
    }
    /// Gives idle chunks back, the oldest first, until at most `keep` bytes of them are left.
    pub fn trim(&mut self, keep: usize) {
        self.store.blocks.trim(&self.store.source, keep);
    }
    /// What is held; values count as blocks.
    pub fn statistics(&self) -> Statistics {
        Statistics { blocks_live: self.len(), ..self.store.blocks.statistics() }
    }
    /// Where chunks come from.
    pub fn source(&self) -> &S {
        &self.store.source
    }
}

impl<S: Source> Store<S> {
    /// The values of each chunk: from where, and how many.
    fn parts(&self) -> impl Iterator<Item = (NonNull<u8>, usize)> + '_ {
        let bytes = self.value_bytes.max(1);
        self.blocks.filled().map(move |part| (part.cast(), part.len() / bytes))
    }

    /// All values are dropped, whatever panics, and the memory is empty.
    fn drop_all(&mut self) {
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

    /// The values are no longer there.
    fn forget(&mut self) {
        self.sizeless.set(0);
        self.blocks.reset();
    }
}

/// Drops the values of all parts; after a panic, those that are left.
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
        // SAFETY: so many values are there, and are forgotten when all are dropped.
        unsafe { (others.0)(first, count) };
        mem::forget(others);
    }
}

/// Gives all memory back when what may panic is done.
struct End<'a, S: Source>(&'a mut Store<S>);

impl<S: Source> Drop for End<'_, S> {
    fn drop(&mut self) {
        self.0.blocks.release(&self.0.source);
    }
}

impl<S: Source> Drop for Store<S> {
    fn drop(&mut self) {
        let end = End(self);
        end.0.drop_all();
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
