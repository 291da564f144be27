//! A value in an arena that is dropped when its owner goes, not when the arena forgets.

use crate::arena::Arena;
use crate::base::allocator::BlockAllocator;
use core::alloc::Layout;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::pin::Pin;
use core::ptr::NonNull;

/// Owns a value in an arena: drops it, and gives its block back.
///
/// An arena takes a block back only if it is the last one, so the memory of other boxes is
/// free when the arena forgets it. Two pointers wide for a sized value; an `Option` of it is no
/// larger. It may go to another thread if its arena is a `SharedArena`.
///
/// ```
/// use mallard::Arena;
/// let arena = Arena::new();
/// let names = arena.alloc_box(vec!["a".to_string()]); // the vector will be dropped
/// assert_eq!(names.len(), 1);
/// let moved_out: Vec<String> = names.into_inner();
/// # assert_eq!(moved_out[0], "a");
/// ```
///
/// A box of a trait object is made by [`unsize_box!`](crate::unsize_box).
pub struct Box<'a, T: ?Sized, A: BlockAllocator = Arena> {
    pub(super) value: NonNull<T>,
    arena: &'a A,
    owns: PhantomData<T>,
}

// SAFETY: it is a `T` and a `&A`.
unsafe impl<T: ?Sized + Send, A: BlockAllocator + Sync> Send for Box<'_, T, A> {}
// SAFETY: the same.
unsafe impl<T: ?Sized + Sync, A: BlockAllocator + Sync> Sync for Box<'_, T, A> {}

impl<'a, T, A: BlockAllocator> Box<'a, T, A> {
    /// Moves the value out, and gives its block back.
    ///
    /// ```
    /// let arena = mallard::Arena::new();
    /// assert_eq!(arena.alloc_box(7).into_inner(), 7);
    /// ```
    #[inline]
    pub fn into_inner(self) -> T {
        // SAFETY: the value is there, and is no longer once it is read; the block is from the
        // arena, of which no more is used.
        unsafe {
            let (value, arena) = self.into_raw_parts();
            let inner = value.read();
            arena.deallocate(value.cast(), Layout::new::<T>());
            inner
        }
    }
}

impl<'a, T: ?Sized, A: BlockAllocator> Box<'a, T, A> {
    /// A box of what is at `value`.
    ///
    /// # Safety
    /// The value is in a block of its own from `arena`, of the layout of the value, and nobody
    /// else uses or drops it.
    #[inline(always)]
    pub unsafe fn from_raw_in(value: NonNull<T>, arena: &'a A) -> Self {
        Self { value, arena, owns: PhantomData }
    }
    /// The value, which is no longer dropped, and its arena: what `from_raw_in` wants.
    ///
    /// # Safety
    /// The arena is used only to make a box of the value again. If the box was made in a scope,
    /// blocks of that arena may die before `'a` does.
    #[inline(always)]
    pub unsafe fn into_raw_parts(self) -> (NonNull<T>, &'a A) {
        let this = ManuallyDrop::new(self);
        (this.value, this.arena)
    }
    /// For `unsize_box!`: like `into_raw_parts`, but the type that holds the arena is never coerced.
    ///
    /// # Safety
    /// As for `into_raw_parts`.
    #[doc(hidden)]
    #[inline(always)]
    pub unsafe fn __split(self) -> (NonNull<T>, InArena<'a, A>) {
        // SAFETY: passed on.
        let (value, arena) = unsafe { self.into_raw_parts() };
        (value, InArena(arena))
    }
    /// # Safety
    /// As for `from_raw_in`.
    #[doc(hidden)]
    #[inline(always)]
    pub unsafe fn __join(value: NonNull<T>, InArena(arena): InArena<'a, A>) -> Self {
        // SAFETY: passed on.
        unsafe { Self::from_raw_in(value, arena) }
    }
    /// The value, which is no longer dropped: as if it had been made by `alloc`.
    #[inline]
    pub fn leak(self) -> &'a mut T {
        // SAFETY: it is there for as long as the arena is borrowed, and it was the box's.
        unsafe { self.into_raw_parts().0.as_mut() }
    }
    /// The value will not move any more. For a box in an arena that lives for ever.
    ///
    /// Other boxes can be forgotten, and their memory used again without dropping the value,
    /// which must not happen to one that is pinned. `own_pin` pins in any arena; a box of a
    /// value that is `Unpin` is pinned by `Pin::new`.
    #[inline]
    pub fn into_pin(self) -> Pin<Self>
    where
        'a: 'static,
    {
        // SAFETY: nobody can have the arena to himself any more, which is what it takes to use
        // the memory again, but for dropping the box; and no other function of a pinned box
        // lets the value move out.
        unsafe { Pin::new_unchecked(self) }
    }
}

/// The arena of a box, while `unsize_box!` converts the pointer to its value.
#[doc(hidden)]
#[derive(Debug)]
pub struct InArena<'a, A>(&'a A);

impl<T: ?Sized, A: BlockAllocator> Drop for Box<'_, T, A> {
    #[inline]
    fn drop(&mut self) {
        struct Block<'a, A: BlockAllocator>(&'a A, NonNull<u8>, Layout);
        impl<A: BlockAllocator> Drop for Block<'_, A> {
            #[inline(always)]
            fn drop(&mut self) {
                // SAFETY: it is from there, and its value is gone, or lost to a panic.
                unsafe { self.0.deallocate(self.1, self.2) }
            }
        }
        // SAFETY: the value is there until now.
        unsafe {
            let _block = Block(self.arena, self.value.cast(), Layout::for_value(self.as_ref()));
            self.value.as_ptr().drop_in_place();
        }
    }
}
