//! The functions that make objects in arenas. Arenas, scopes and shared arenas share this source
//! text.

/// Defines the functions that make objects in an arena. `$s` is the lifetime of the objects.
macro_rules! object_methods {
    ($s:lifetime, $this:ty, $arena:ty) => {
        /// Moves `value` into the arena. The destructor of `value` never runs. If it must run, use
        /// `own` or `alloc_box`.
        ///
        /// Use [`alloc_with`](Self::alloc_with) for a large value. If there is no memory, this
        /// function aborts, like every function here whose name does not begin with `try_`.
        ///
        /// ```
        /// let arena = mallard::Arena::new();
        /// let number = arena.alloc(7);
        /// *number += 1;
        /// assert_eq!(*number, 8);
        /// ```
        #[inline(always)]
        pub fn alloc<T>(self: $this, value: T) -> &$s mut T {
            match objects::put(self.arena(), value) {
                Ok(object) => object,
                Err(_) => objects::no_memory_for::<T>(1),
            }
        }
        /// Moves `value` into the arena. If there is no memory, returns the value in the error.
        #[inline(always)]
        pub fn try_alloc<T>(self: $this, value: T) -> Result<&$s mut T, Full<T>> {
            objects::put(self.arena(), value).map_err(Full::no_memory)
        }
        /// Makes a value in its final place, without copying it. If `f` panics, the block is freed.
        ///
        /// ```
        /// let arena = mallard::Arena::new();
        /// let table = arena.alloc_with(|| [0_u8; 100_000]); // not copied from the stack
        /// assert_eq!(table.len(), 100_000);
        /// ```
        #[inline(always)]
        pub fn alloc_with<T>(self: $this, f: impl FnOnce() -> T) -> &$s mut T {
            match objects::make(self.arena(), f) {
                Ok(object) => object,
                Err(_) => objects::no_memory_for::<T>(1),
            }
        }
        /// Makes a value in its final place. If there is no memory, returns `f` in the error
        /// without calling `f`.
        #[inline(always)]
        pub fn try_alloc_with<T, F>(self: $this, f: F) -> Result<&$s mut T, Full<F>>
        where
            F: FnOnce() -> T,
        {
            objects::make(self.arena(), f).map_err(Full::no_memory)
        }
        /// Makes a value in its final place. If `f` returns an error, the block is freed.
        #[inline(always)]
        pub fn alloc_try_with<T, E>(
            self: $this,
            f: impl FnOnce() -> Result<T, E>,
        ) -> Result<&$s mut T, E> {
            match objects::make_or(self.arena(), f) {
                Ok(result) => result,
                Err(_) => objects::no_memory_for::<T>(1),
            }
        }
        /// Makes a value in its final place. If `f` returns an error, the block is freed. If there
        /// is no memory, returns `f` in the error [`Full`](crate::Full) without calling `f`.
        ///
        /// ```
        /// let arena = mallard::Arena::new();
        /// let parse = |text: &'static str| arena.try_alloc_try_with(|| text.parse::<u32>());
        /// assert_eq!(**parse("7").unwrap().as_ref().unwrap(), 7);
        /// assert!(parse("seven").unwrap().is_err());
        /// ```
        #[inline(always)]
        pub fn try_alloc_try_with<T, E, F>(
            self: $this,
            f: F,
        ) -> Result<Result<&$s mut T, E>, Full<F>>
        where
            F: FnOnce() -> Result<T, E>,
        {
            objects::make_or(self.arena(), f).map_err(Full::no_memory)
        }

        /// Moves `value` into the arena, and returns a box. The box drops the value. The box also
        /// frees the block, if that block is the last one that was allocated.
        ///
        /// ```
        /// let arena = mallard::Arena::new();
        /// let list = arena.alloc_box(vec![1, 2]);
        /// assert_eq!(list.into_inner(), [1, 2]);
        /// ```
        #[inline(always)]
        pub fn alloc_box<T>(self: $this, value: T) -> Box<$s, T, $arena> {
            let arena = self.arena();
            let object = match objects::put(arena, value) {
                Ok(object) => object,
                Err(_) => objects::no_memory_for::<T>(1),
            };
            // SAFETY: the object was made just now, and nothing else refers to it.
            unsafe { Box::from_raw_in(object.into(), arena) }
        }
        /// Moves `value` into the arena, and returns a box that drops the value. If there is no
        /// memory, returns the value in the error.
        #[inline(always)]
        pub fn try_alloc_box<T>(self: $this, value: T) -> Result<Box<$s, T, $arena>, Full<T>> {
            let arena = self.arena();
            match objects::put(arena, value) {
                // SAFETY: the object was made just now, and nothing else refers to it.
                Ok(object) => Ok(unsafe { Box::from_raw_in(object.into(), arena) }),
                Err(value) => Err(Full::no_memory(value)),
            }
        }
        /// Allocates a slice of all items that `items` yields, in a box that drops the items.
        pub fn alloc_box_iter<I: IntoIterator>(self: $this, items: I) -> Box<$s, [I::Item], $arena> {
            match self.try_alloc_box_iter(items) {
                Ok(slice) => slice,
                Err(_) => objects::no_memory_for::<I::Item>(1),
            }
        }
        /// Allocates a slice of all items that `items` yields, in a box that drops the items. If
        /// there is no memory, the items are dropped before the call returns.
        pub fn try_alloc_box_iter<I: IntoIterator>(
            self: $this,
            items: I,
        ) -> Result<Box<$s, [I::Item], $arena>, Full> {
            let arena = self.arena();
            match objects::collect(arena, items) {
                // SAFETY: the slice was made just now, and nothing else refers to it.
                Ok(slice) => Ok(unsafe { Box::from_raw_in(slice, arena) }),
                Err(_) => Err(Full::no_memory(())),
            }
        }

        /// Allocates a copy of a string.
        #[inline]
        pub fn alloc_str(self: $this, text: &str) -> &$s mut str {
            match self.try_alloc_str(text) {
                Ok(copy) => copy,
                Err(_) => objects::no_memory_for::<u8>(text.len()),
            }
        }
        /// Allocates a copy of a string. Returns an error if there is no memory.
        #[inline]
        pub fn try_alloc_str(self: $this, text: &str) -> Result<&$s mut str, Full> {
            match objects::copy(self.arena(), text.as_bytes()) {
                // SAFETY: the bytes are copied from a string.
                Some(bytes) => Ok(unsafe { core::str::from_utf8_unchecked_mut(bytes) }),
                None => Err(Full::no_memory(())),
            }
        }
        /// Allocates a copy of a slice.
        #[inline]
        pub fn alloc_slice_copy<T: Copy>(self: $this, from: &[T]) -> &$s mut [T] {
            match objects::copy(self.arena(), from) {
                Some(copy) => copy,
                None => objects::no_memory_for::<T>(from.len()),
            }
        }
        /// Allocates a copy of a slice. Returns an error if there is no memory.
        #[inline]
        pub fn try_alloc_slice_copy<T: Copy>(
            self: $this,
            from: &[T],
        ) -> Result<&$s mut [T], Full> {
            objects::copy(self.arena(), from).ok_or(Full::no_memory(()))
        }
        /// Allocates a slice with clones of the elements. The clones' destructors never run.
        #[inline]
        pub fn alloc_slice_clone<T: Clone>(self: $this, from: &[T]) -> &$s mut [T] {
            self.alloc_slice_fill_with(from.len(), |n| from[n].clone())
        }
        /// Allocates a slice of clones, like `alloc_slice_clone`. Returns an error if there is no
        /// memory.
        #[inline]
        pub fn try_alloc_slice_clone<T: Clone>(
            self: $this,
            from: &[T],
        ) -> Result<&$s mut [T], Full> {
            self.try_alloc_slice_fill_with(from.len(), |n| from[n].clone())
        }
        /// Allocates a slice of `f(0)`, `f(1)`, ..., with `count` elements. If `f` panics, the
        /// elements made so far are dropped and the block is freed. Otherwise the destructors of
        /// the elements never run.
        ///
        /// ```
        /// let arena = mallard::Arena::new();
        /// assert_eq!(arena.alloc_slice_fill_with(3, |n| n * n), [0, 1, 4]);
        /// ```
        #[doc(alias = "alloc_slice_fill_copy")]
        #[doc(alias = "alloc_slice_fill_clone")]
        #[doc(alias = "alloc_slice_fill_default")]
        #[inline]
        pub fn alloc_slice_fill_with<T>(
            self: $this,
            count: usize,
            f: impl FnMut(usize) -> T,
        ) -> &$s mut [T] {
            match objects::fill(self.arena(), count, f) {
                Some(slice) => slice,
                None => objects::no_memory_for::<T>(count),
            }
        }
        /// Allocates a slice like `alloc_slice_fill_with`. Returns an error if there is no memory.
        #[inline]
        pub fn try_alloc_slice_fill_with<T>(
            self: $this,
            count: usize,
            f: impl FnMut(usize) -> T,
        ) -> Result<&$s mut [T], Full> {
            objects::fill(self.arena(), count, f).ok_or(Full::no_memory(()))
        }
        /// Allocates a slice of all items that `items` yields. The iterator may have an unknown
        /// length.
        ///
        /// The slice starts with room for the lower bound of `items.size_hint()`. While the slice
        /// is the last block, it grows in place, and otherwise it moves. If `items` panics, the
        /// elements made so far are dropped and the block is freed. Otherwise the destructors of
        /// the elements never run. `alloc_box_iter` returns a slice whose elements are dropped.
        ///
        /// ```
        /// let arena = mallard::Arena::new();
        /// assert_eq!(arena.alloc_iter("a b c".split(' ')), ["a", "b", "c"]);
        /// ```
        #[doc(alias = "alloc_slice_fill_iter")]
        #[doc(alias = "alloc_from_iter")]
        #[inline]
        pub fn alloc_iter<I: IntoIterator>(self: $this, items: I) -> &$s mut [I::Item] {
            match self.try_alloc_iter(items) {
                Ok(slice) => slice,
                Err(_) => objects::no_memory_for::<I::Item>(1),
            }
        }
        /// Allocates a slice of all items that `items` yields. If there is no memory, the elements
        /// are dropped.
        #[inline]
        pub fn try_alloc_iter<I: IntoIterator>(
            self: $this,
            items: I,
        ) -> Result<&$s mut [I::Item], Full> {
            match objects::collect(self.arena(), items) {
                // SAFETY: the slice was made just now, and nothing else refers to it.
                Ok(slice) => Ok(unsafe { &mut *slice.as_ptr() }),
                Err(_) => Err(Full::no_memory(())),
            }
        }
        /// Writes formatted text directly into the arena.
        ///
        /// ```
        /// let arena = mallard::Arena::new();
        /// assert_eq!(arena.alloc_fmt(format_args!("{:03}", 7)), "007");
        /// ```
        ///
        /// # Panics
        /// If a formatting trait returns an error, as `format!` does.
        pub fn alloc_fmt(self: $this, args: core::fmt::Arguments<'_>) -> &$s mut str {
            match objects::format(self.arena(), args) {
                Ok(Ok(text)) => text,
                Ok(Err(_)) => objects::formatting_failed(),
                Err(_) => objects::no_memory_for::<u8>(1),
            }
        }
        /// Writes formatted text directly into the arena. Fails if there is no memory, or if a
        /// formatting trait returns an error.
        pub fn try_alloc_fmt(
            self: $this,
            args: core::fmt::Arguments<'_>,
        ) -> Result<&$s mut str, Full> {
            match objects::format(self.arena(), args) {
                Ok(Ok(text)) => Ok(text),
                Ok(Err(_)) => Err(Full::because(Cause::Format, ())),
                Err(_) => Err(Full::no_memory(())),
            }
        }

        /// Allocates an uninitialised block for one `T`.
        ///
        /// ```
        /// let arena = mallard::Arena::new();
        /// assert_eq!(*arena.alloc_uninit().write(7), 7);
        /// ```
        #[inline(always)]
        pub fn alloc_uninit<T>(self: $this) -> &$s mut MaybeUninit<T> {
            self.alloc_with(MaybeUninit::uninit)
        }
        /// Allocates an uninitialised block for one `T`. Returns an error if there is no memory.
        #[inline(always)]
        pub fn try_alloc_uninit<T>(self: $this) -> Result<&$s mut MaybeUninit<T>, Full> {
            objects::make(self.arena(), MaybeUninit::uninit).map_err(|_| Full::no_memory(()))
        }
        /// Allocates an uninitialised slice of `count` elements.
        #[inline]
        pub fn alloc_uninit_slice<T>(self: $this, count: usize) -> &$s mut [MaybeUninit<T>] {
            match self.try_alloc_uninit_slice(count) {
                Ok(slice) => slice,
                Err(_) => objects::no_memory_for::<T>(count),
            }
        }
        /// Allocates an uninitialised slice of `count` elements. Returns an error if there is no
        /// memory, or if the size is above `isize::MAX`.
        #[inline]
        pub fn try_alloc_uninit_slice<T>(
            self: $this,
            count: usize,
        ) -> Result<&$s mut [MaybeUninit<T>], Full> {
            let layout = Layout::array::<T>(count).map_err(|_| Full::no_memory(()))?;
            let block = self.try_alloc_layout(layout)?.cast();
            // SAFETY: the block has room for `count` elements, which need no initial value.
            Ok(unsafe { &mut *NonNull::slice_from_raw_parts(block, count).as_ptr() })
        }
        /// Allocates an uninitialised block of any layout. A block of size 0 has a dangling
        /// address.
        #[inline(always)]
        pub fn alloc_layout(self: $this, layout: Layout) -> NonNull<u8> {
            self.arena().allocate(layout)
        }
        /// Allocates an uninitialised block of any layout. A block of size 0 has a dangling
        /// address. Returns an error if there is no memory.
        #[inline(always)]
        pub fn try_alloc_layout(self: $this, layout: Layout) -> Result<NonNull<u8>, Full> {
            self.arena().try_allocate(layout).ok_or(Full::no_memory(()))
        }
    };
}
pub(crate) use object_methods;

/// Defines the functions that make objects whose destructors the arena calls.
macro_rules! owning_methods {
    ($s:lifetime, $this:ty, $pins:path, $($bound:tt)+) => {
        /// Moves `value` into the arena, which drops the value when the arena frees the block. That
        /// happens at a reset, release or rewind, or when the arena is dropped. The newest value is
        /// dropped first.
        ///
        /// An owned value needs two words more, unless its type has no destructor. If a destructor
        /// panics, the other destructors still run.
        ///
        /// ```
        /// let mut arena = mallard::Arena::new();
        /// let list = arena.own(vec![1, 2]);
        /// list.push(3);
        /// arena.reset(); // drops the vector
        /// ```
        #[doc(alias = "drop")]
        #[doc(alias = "destructor")]
        #[inline(always)]
        pub fn own<T: $($bound)+>(self: $this, value: T) -> &$s mut T {
            match self.try_own(value) {
                Ok(object) => object,
                Err(_) => objects::no_memory_for::<T>(1),
            }
        }
        /// Moves `value` into the arena like [`own`](Self::own), and pins it.
        ///
        /// An owned value is always dropped before its memory is reused. A boxed value is not
        /// dropped if its box is leaked. If the arena itself is leaked, the arena's memory must
        /// stay valid, so the source must be a [`PinSource`](crate::PinSource). A scope cannot be
        /// leaked, so a scope can pin in memory of any source.
        #[inline(always)]
        pub fn own_pin<T: $($bound)+>(self: $this, value: T) -> core::pin::Pin<&$s mut T>
        where
            S: $pins,
        {
            // SAFETY: the value never moves. The arena drops it before reusing its memory, and nothing
            // else reuses the memory, even if the arena is leaked.
            unsafe { core::pin::Pin::new_unchecked(self.own(value)) }
        }
        /// Moves `value` into the arena like [`own`](Self::own). If there is no memory, returns the
        /// value in the error.
        #[inline(always)]
        pub fn try_own<T: $($bound)+>(self: $this, value: T) -> Result<&$s mut T, Full<T>> {
            if const { !core::mem::needs_drop::<T>() } {
                return self.try_alloc(value);
            }
            match objects::put(self.arena(), Owned::new(value)) {
                Ok(owned) => {
                    let owned: *mut Owned<T> = owned;
                    // SAFETY: the value keeps its address until it is dropped, and the bounds allow
                    // that `T` is dropped at any time before the end of its lifetime. The list does
                    // not touch the value until it drops the value.
                    Ok(unsafe {
                        self.finalizers().push(owned);
                        &mut (*owned).value
                    })
                }
                Err(owned) => Err(Full::no_memory(owned.into_inner())),
            }
        }
    };
}
pub(crate) use owning_methods;
