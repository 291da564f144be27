//! A box, which owns a value in an arena and drops the value when the box is dropped.

use crate::arena::Arena;
use crate::base::allocator::{BlockAllocator, FreesBlock};
use core::alloc::Layout;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::pin::Pin;
use core::ptr::NonNull;

/// Owns a value in an arena. Dropping the box drops the value and frees its block.
///
/// An arena reuses a freed block only if the block was allocated last. The memory of other boxes
/// becomes free when the arena is reset. A box of a sized value is two pointers wide, and so is an
/// `Option` of such a box. A box may move to another thread if its arena is a `SharedArena`.
///
/// ```
/// use mallard::Arena;
/// let arena = Arena::new();
/// let names = arena.alloc_box(vec!["a".to_string()]); // the box will drop the vector
/// assert_eq!(names.len(), 1);
/// let moved_out: Vec<String> = names.into_inner();
/// # assert_eq!(moved_out[0], "a");
/// ```
///
/// [`unsize_box!`](crate::unsize_box) makes a box of a trait object.
pub struct Box<'a, T: ?Sized, A: BlockAllocator = Arena> {
    pub(super) value: NonNull<T>,
    arena: &'a A,
    owns: PhantomData<T>,
}

// SAFETY: a box consists of a `T` and a `&A`.
unsafe impl<T: ?Sized + Send, A: BlockAllocator + Sync> Send for Box<'_, T, A> {}
// SAFETY: a box consists of a `T` and a `&A`.
unsafe impl<T: ?Sized + Sync, A: BlockAllocator + Sync> Sync for Box<'_, T, A> {}

impl<'a, T, A: BlockAllocator> Box<'a, T, A> {
    /// Moves the value out of the box, and frees the block of the value.
    ///
    /// ```
    /// let arena = mallard::Arena::new();
    /// assert_eq!(arena.alloc_box(7).into_inner(), 7);
    /// ```
    #[inline]
    pub fn into_inner(self) -> T {
        // SAFETY: the value is initialised until it is read here. Its block is from this arena, and
        // is not used after this call.
        unsafe {
            let (value, arena) = self.into_raw_parts();
            let inner = value.read();
            arena.deallocate(value.cast(), Layout::new::<T>());
            inner
        }
    }
}

impl<'a, T: ?Sized, A: BlockAllocator> Box<'a, T, A> {
    /// Makes a box from a pointer to its value.
    ///
    /// # Safety
    /// The value is in a separate block from `arena`, with the layout of the value. Nothing else
    /// uses or drops the value.
    #[inline(always)]
    pub unsafe fn from_raw_in(value: NonNull<T>, arena: &'a A) -> Self {
        Self { value, arena, owns: PhantomData }
    }
    /// Takes a box apart into the arguments of `from_raw_in`. The value is no longer dropped.
    ///
    /// # Safety
    /// The caller uses the returned arena only to make a box of the value again. If the box was
    /// made in a scope, the arena may free its blocks before `'a` ends.
    #[inline(always)]
    pub unsafe fn into_raw_parts(self) -> (NonNull<T>, &'a A) {
        let this = ManuallyDrop::new(self);
        (this.value, this.arena)
    }
    /// Does the same as `into_raw_parts` for `unsize_box!`, but returns the arena in a type that is
    /// never coerced.
    ///
    /// # Safety
    /// The same as for `into_raw_parts`.
    #[doc(hidden)]
    #[inline(always)]
    pub unsafe fn __split(self) -> (NonNull<T>, InArena<'a, A>) {
        // SAFETY: the caller's guarantee is passed on unchanged.
        let (value, arena) = unsafe { self.into_raw_parts() };
        (value, InArena(arena))
    }
    /// Makes a box again from the parts that `__split` returned, for `unsize_box!`.
    ///
    /// # Safety
    /// The same as for `from_raw_in`.
    #[doc(hidden)]
    #[inline(always)]
    pub unsafe fn __join(value: NonNull<T>, InArena(arena): InArena<'a, A>) -> Self {
        // SAFETY: the caller's guarantee is passed on unchanged.
        unsafe { Self::from_raw_in(value, arena) }
    }
    /// Returns a reference to the value. The value is never dropped, as if `alloc` had made it.
    #[inline]
    pub fn leak(self) -> &'a mut T {
        // SAFETY: the value is valid for as long as the arena is borrowed, and only the box used it.
        unsafe { self.into_raw_parts().0.as_mut() }
    }
    /// Pins the value of a box. Works only for an arena that is borrowed for `'static`.
    ///
    /// A box in any other arena can be leaked. Then the box's memory is reused without dropping the
    /// value, which must not happen to a pinned value. `own_pin` pins in any arena. `Pin::new` pins
    /// a box of an `Unpin` value.
    #[inline]
    pub fn into_pin(self) -> Pin<Self>
    where
        'a: 'static,
    {
        // SAFETY: the memory is reused only after the box is dropped, or with exclusive access to
        // the arena, which is borrowed for ever. No function of a pinned box moves the value out.
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
        // SAFETY: the value is initialised, and not used after this. The guard frees the block even if
        // the destructor panics.
        unsafe {
            let _block =
                FreesBlock(self.arena, self.value.cast(), Layout::for_value(self.as_ref()));
            self.value.as_ptr().drop_in_place();
        }
    }
}
