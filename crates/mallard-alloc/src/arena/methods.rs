//! What one can make in an arena, said once for all who have one.

/// The functions of an arena that make objects, for a type with a function `home` that leads
/// to the arena: `$s` is how long they live.
macro_rules! object_methods {
    ($s:lifetime, $this:ty, $home:ty) => {
        /// Moves `value` here. Its destructor never runs: see `own` and `alloc_box` for that.
        ///
        /// For a large value see [`alloc_with`](Self::alloc_with). Without memory the program
        /// ends, as it does in all functions here that do not begin with `try_`.
        #[inline(always)]
        pub fn alloc<T>(self: $this, value: T) -> &$s mut T {
            match objects::put(self.home(), value) {
                Ok(object) => object,
                Err(_) => objects::refuse::<T>(1),
            }
        }
        /// Moves `value` here, or gives it back.
        #[inline(always)]
        pub fn try_alloc<T>(self: $this, value: T) -> Result<&$s mut T, Full<T>> {
            objects::put(self.home(), value).map_err(Full::no_memory)
        }
        /// Makes a value in its place. If `f` panics, the block is given back.
        #[inline(always)]
        pub fn alloc_with<T>(self: $this, f: impl FnOnce() -> T) -> &$s mut T {
            match objects::make(self.home(), f) {
                Ok(object) => object,
                Err(_) => objects::refuse::<T>(1),
            }
        }
        /// Makes a value in its place; without memory, `f` comes back and was not called.
        #[inline(always)]
        pub fn try_alloc_with<T, F>(self: $this, f: F) -> Result<&$s mut T, Full<F>>
        where
            F: FnOnce() -> T,
        {
            objects::make(self.home(), f).map_err(Full::no_memory)
        }
        /// Makes a value in its place, or gives the block back and passes the error on.
        #[inline(always)]
        pub fn alloc_try_with<T, E>(
            self: $this,
            f: impl FnOnce() -> Result<T, E>,
        ) -> Result<&$s mut T, E> {
            match objects::make_or(self.home(), f) {
                Ok(result) => result,
                Err(_) => objects::refuse::<T>(1),
            }
        }
        /// Makes a value in its place with `f`. If `f` returns an error, the block is freed and the error
        /// is returned. Without memory, `f` is not called and comes back in the [`Full`](crate::Full).
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
            objects::make_or(self.home(), f).map_err(Full::no_memory)
        }

        /// Moves `value` here, to be dropped with the box.
        ///
        /// The box also gives its block back, which frees it if it is the last.
        #[inline(always)]
        pub fn alloc_box<T>(self: $this, value: T) -> Box<$s, T, $home> {
            let home = self.home();
            let object = match objects::put(home, value) {
                Ok(object) => object,
                Err(_) => objects::refuse::<T>(1),
            };
            // SAFETY: it was made there just now, and nobody else has it.
            unsafe { Box::from_raw_in(object.into(), home) }
        }
        /// Moves `value` here, to be dropped with the box, or gives it back.
        #[inline(always)]
        pub fn try_alloc_box<T>(self: $this, value: T) -> Result<Box<$s, T, $home>, Full<T>> {
            let home = self.home();
            match objects::put(home, value) {
                // SAFETY: it was made there just now, and nobody else has it.
                Ok(object) => Ok(unsafe { Box::from_raw_in(object.into(), home) }),
                Err(value) => Err(Full::no_memory(value)),
            }
        }
        /// All that `items` gives, side by side, to be dropped with the box.
        pub fn alloc_box_iter<I: IntoIterator>(self: $this, items: I) -> Box<$s, [I::Item], $home> {
            match self.try_alloc_box_iter(items) {
                Ok(slice) => slice,
                Err(_) => objects::refuse::<I::Item>(1),
            }
        }
        /// All that `items` gives, side by side, to be dropped with the box; or, without memory,
        /// they are dropped now.
        pub fn try_alloc_box_iter<I: IntoIterator>(
            self: $this,
            items: I,
        ) -> Result<Box<$s, [I::Item], $home>, Full> {
            let home = self.home();
            match objects::collect(home, items) {
                // SAFETY: made there just now, and nobody else has it.
                Ok(slice) => Ok(unsafe { Box::from_raw_in(slice, home) }),
                Err(_) => Err(Full::no_memory(())),
            }
        }

        /// The same text, here.
        #[inline]
        pub fn alloc_str(self: $this, text: &str) -> &$s mut str {
            match self.try_alloc_str(text) {
                Ok(copy) => copy,
                Err(_) => objects::refuse::<u8>(text.len()),
            }
        }
        /// The same text, here.
        #[inline]
        pub fn try_alloc_str(self: $this, text: &str) -> Result<&$s mut str, Full> {
            match objects::copy(self.home(), text.as_bytes()) {
                // SAFETY: copied from text.
                Some(bytes) => Ok(unsafe { core::str::from_utf8_unchecked_mut(bytes) }),
                None => Err(Full::no_memory(())),
            }
        }
        /// The same elements, here.
        #[inline]
        pub fn alloc_slice_copy<T: Copy>(self: $this, from: &[T]) -> &$s mut [T] {
            match objects::copy(self.home(), from) {
                Some(copy) => copy,
                None => objects::refuse::<T>(from.len()),
            }
        }
        /// The same elements, here.
        #[inline]
        pub fn try_alloc_slice_copy<T: Copy>(
            self: $this,
            from: &[T],
        ) -> Result<&$s mut [T], Full> {
            objects::copy(self.home(), from).ok_or(Full::no_memory(()))
        }
        /// Clones of the elements. Their destructors never run.
        #[inline]
        pub fn alloc_slice_clone<T: Clone>(self: $this, from: &[T]) -> &$s mut [T] {
            self.alloc_slice_fill_with(from.len(), |n| from[n].clone())
        }
        /// Clones of the elements. Their destructors never run.
        #[inline]
        pub fn try_alloc_slice_clone<T: Clone>(
            self: $this,
            from: &[T],
        ) -> Result<&$s mut [T], Full> {
            self.try_alloc_slice_fill_with(from.len(), |n| from[n].clone())
        }
        /// `f(0)`, `f(1)`, ..., `count` of them. If `f` panics, those that are there are dropped,
        /// and the block is given back; their destructors do not run otherwise.
        #[doc(alias = "alloc_slice_fill_copy")]
        #[doc(alias = "alloc_slice_fill_clone")]
        #[doc(alias = "alloc_slice_fill_default")]
        #[inline]
        pub fn alloc_slice_fill_with<T>(
            self: $this,
            count: usize,
            f: impl FnMut(usize) -> T,
        ) -> &$s mut [T] {
            match objects::fill(self.home(), count, f) {
                Some(slice) => slice,
                None => objects::refuse::<T>(count),
            }
        }
        /// `f(0)`, `f(1)`, ..., `count` of them, as `alloc_slice_fill_with` does.
        #[inline]
        pub fn try_alloc_slice_fill_with<T>(
            self: $this,
            count: usize,
            f: impl FnMut(usize) -> T,
        ) -> Result<&$s mut [T], Full> {
            objects::fill(self.home(), count, f).ok_or(Full::no_memory(()))
        }
        /// All that `items` gives, side by side, whether it knows how many or not.
        ///
        /// Begins with room for the least that it promises; grows in place while this is the
        /// last block, else moves. If `items` panics, what it gave is dropped and the block given
        /// back. Destructors do not run otherwise: see `alloc_box_iter`.
        #[doc(alias = "alloc_slice_fill_iter")]
        #[doc(alias = "alloc_from_iter")]
        #[inline]
        pub fn alloc_iter<I: IntoIterator>(self: $this, items: I) -> &$s mut [I::Item] {
            match self.try_alloc_iter(items) {
                Ok(slice) => slice,
                Err(_) => objects::refuse::<I::Item>(1),
            }
        }
        /// All that `items` gives, side by side; without memory, what it gave is dropped.
        #[inline]
        pub fn try_alloc_iter<I: IntoIterator>(
            self: $this,
            items: I,
        ) -> Result<&$s mut [I::Item], Full> {
            match objects::collect(self.home(), items) {
                // SAFETY: made there just now, and nobody else has it.
                Ok(slice) => Ok(unsafe { &mut *slice.as_ptr() }),
                Err(_) => Err(Full::no_memory(())),
            }
        }
        /// What `format_args!` prints, here, and nothing on the heap.
        ///
        /// # Panics
        /// If printing a value returns an error, as `format!` does.
        pub fn alloc_fmt(self: $this, args: core::fmt::Arguments<'_>) -> &$s mut str {
            match objects::format(self.home(), args) {
                Ok(Ok(text)) => text,
                Ok(Err(_)) => objects::formatting_failed(),
                Err(_) => objects::refuse::<u8>(1),
            }
        }
        /// What `format_args!` prints, here; no text without memory, or if printing a value
        /// returns an error.
        pub fn try_alloc_fmt(
            self: $this,
            args: core::fmt::Arguments<'_>,
        ) -> Result<&$s mut str, Full> {
            match objects::format(self.home(), args) {
                Ok(Ok(text)) => Ok(text),
                Ok(Err(_)) => Err(Full::because(Cause::Format, ())),
                Err(_) => Err(Full::no_memory(())),
            }
        }

        /// A block for a `T`, with nothing in it.
        #[inline(always)]
        pub fn alloc_uninit<T>(self: $this) -> &$s mut MaybeUninit<T> {
            self.alloc_with(MaybeUninit::uninit)
        }
        /// A block for a `T`, with nothing in it.
        #[inline(always)]
        pub fn try_alloc_uninit<T>(self: $this) -> Result<&$s mut MaybeUninit<T>, Full> {
            objects::make(self.home(), MaybeUninit::uninit).map_err(|_| Full::no_memory(()))
        }
        /// A block for `count` of `T`, with nothing in it.
        #[inline]
        pub fn alloc_uninit_slice<T>(self: $this, count: usize) -> &$s mut [MaybeUninit<T>] {
            match self.try_alloc_uninit_slice(count) {
                Ok(slice) => slice,
                Err(_) => objects::refuse::<T>(count),
            }
        }
        /// A block for `count` of `T`, with nothing in it. A size above `isize::MAX` is refused.
        #[inline]
        pub fn try_alloc_uninit_slice<T>(
            self: $this,
            count: usize,
        ) -> Result<&$s mut [MaybeUninit<T>], Full> {
            let layout = Layout::array::<T>(count).map_err(|_| Full::no_memory(()))?;
            let block = self.try_alloc_layout(layout)?.cast();
            // SAFETY: a block for so many, in which nothing needs to be.
            Ok(unsafe { &mut *NonNull::slice_from_raw_parts(block, count).as_ptr() })
        }
        /// A block of any layout; of size 0, it is dangling.
        #[inline(always)]
        pub fn alloc_layout(self: $this, layout: Layout) -> NonNull<u8> {
            self.home().allocate(layout)
        }
        /// A block of any layout; of size 0, it is dangling.
        #[inline(always)]
        pub fn try_alloc_layout(self: $this, layout: Layout) -> Result<NonNull<u8>, Full> {
            self.home().try_allocate(layout).ok_or(Full::no_memory(()))
        }
    };
}
pub(crate) use object_methods;

/// The functions of an arena that make objects which it drops itself.
macro_rules! owning_methods {
    ($s:lifetime, $this:ty, $pins:path, $($bound:tt)+) => {
        /// Moves `value` here, to be dropped when the block is forgotten, the newest first.
        ///
        /// Costs two words beside the value, and nothing for values that need no dropping. If
        /// one of several panics, the others are dropped nevertheless.
        #[inline(always)]
        pub fn own<T: $($bound)+>(self: $this, value: T) -> &$s mut T {
            match self.try_own(value) {
                Ok(object) => object,
                Err(_) => objects::refuse::<T>(1),
            }
        }
        /// Owns a value, and pins it: unlike a box, which can itself be forgotten, what is owned is
        /// always dropped before its memory is used again.
        /// If the arena itself is forgotten, its memory has to stay: its source is
        /// [`PinSource`](crate::PinSource). A scope, which nobody can forget, pins in the
        /// memory of any source.
        #[inline(always)]
        pub fn own_pin<T: $($bound)+>(self: $this, value: T) -> core::pin::Pin<&$s mut T>
        where
            S: $pins,
        {
            // SAFETY: nobody moves the value. It is dropped before the memory is used again by the
            // arena, and by nobody else if the arena is forgotten.
            unsafe { core::pin::Pin::new_unchecked(self.own(value)) }
        }
        /// Moves `value` here, to be dropped when the block is forgotten, or gives it back.
        #[inline(always)]
        pub fn try_own<T: $($bound)+>(self: $this, value: T) -> Result<&$s mut T, Full<T>> {
            if const { !core::mem::needs_drop::<T>() } {
                return self.try_alloc(value);
            }
            match objects::put(self.home(), Owned::new(value)) {
                Ok(owned) => {
                    let owned: *mut Owned<T> = owned;
                    // SAFETY: it stays there until those who forget the block have run the
                    // list, and `T` may be dropped at any time until then. The value is a
                    // field of its own, which the list touches last.
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
