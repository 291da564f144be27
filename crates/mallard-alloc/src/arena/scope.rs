//! Scopes of an arena. Everything made in a scope is freed when the scope ends.

use super::finalizers::{Finalizers, Owned};
use super::methods::{object_methods, owning_methods};
use super::objects;
use super::{Arena, Box, Mark};
use crate::base::allocator::BlockAllocator;
use crate::{Cause, DefaultHeap, Full, Source};
use core::alloc::Layout;
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ops::Deref;
use core::ptr::NonNull;

/// A part of an arena, from which a closure passed to [`Arena::scope`] allocates. Everything made
/// in the scope is freed when the closure returns or panics.
///
/// Objects made in a scope live for `'s`, the time in which the closure runs, so they cannot be
/// returned or stored elsewhere. A scope can contain inner scopes. While an inner scope is open,
/// the outer scope cannot allocate, but the objects made in the outer scope stay valid.
///
/// ```
/// let mut arena = mallard::Arena::new();
/// let sum = arena.scope(|outer| {
///     let a = outer.alloc(1);
///     let b = outer.scope(|inner| *inner.alloc(2) + *a); // `a` stays valid
///     *a + b
/// });
/// assert_eq!(sum, 4);
/// ```
///
/// No reference to an object escapes from its scope:
/// ```compile_fail
/// let mut arena = mallard::Arena::new();
/// let escaped = arena.scope(|s| s.alloc(1));
/// ```
/// ```compile_fail,E0521
/// let mut arena = mallard::Arena::new();
/// let mut kept: Option<&mut i32> = None;
/// arena.scope(|s| kept = Some(s.alloc(1)));
/// ```
/// No object can be made in the outer scope while the inner scope is open:
/// ```compile_fail,E0502
/// let mut arena = mallard::Arena::new();
/// arena.scope(|outer| outer.scope(|inner| { outer.alloc(1); inner.alloc(2); }));
/// ```
pub struct Scope<'s, 'env: 's, S: Source = DefaultHeap, const MIN_ALIGN: usize = 1> {
    /// The arena. No function returns this reference, because a caller with `&'s Arena` could
    /// allocate while an inner scope is open.
    arena: &'s Arena<S, MIN_ALIGN>,
    env: PhantomData<&'env mut &'env ()>,
}

impl<'s, 'env, S: Source, const M: usize> Scope<'s, 'env, S, M> {
    #[inline(always)]
    fn arena(&self) -> &'s Arena<S, M> {
        self.arena
    }
    #[inline(always)]
    fn finalizers(&self) -> &'s Finalizers {
        &self.arena.owned
    }

    object_methods!('s, &Self, Arena<S, M>);
    // Owned values are dropped before the call that opened the scope returns, and so before 'env
    // ends. The same thread drops them, because a scope is not `Send`. A scope cannot be leaked.
    owning_methods!('s, &Self, Source, 'env);

    /// Runs `f` with a scope inside this one.
    pub fn scope<'e, R>(
        &'e mut self,
        f: impl for<'t> FnOnce(&'t mut Scope<'t, 'e, S, M>) -> R,
    ) -> R {
        run(self.arena, f)
    }
}

// SAFETY: all blocks are blocks of the arena. No block is used after the scope, because each value that
// allocates from the scope borrows it.
unsafe impl<S: Source, const M: usize> BlockAllocator for Scope<'_, '_, S, M> {
    #[inline(always)]
    fn try_allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        self.arena.try_allocate(layout)
    }
    #[inline(always)]
    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller's guarantee is passed on unchanged.
        unsafe { self.arena.deallocate(block, layout) }
    }
    #[inline(always)]
    unsafe fn try_expand(&self, block: NonNull<u8>, from: Layout, to: Layout) -> bool {
        // SAFETY: the caller's guarantee is passed on unchanged.
        unsafe { self.arena.try_expand(block, from, to) }
    }
}

/// Runs `f` in a scope. The caller has exclusive access to the arena, or to its innermost scope.
pub(super) fn run<'env, R, S: Source, const M: usize>(
    arena: &Arena<S, M>,
    f: impl for<'t> FnOnce(&'t mut Scope<'t, 'env, S, M>) -> R,
) -> R {
    let rewind = Rewind { arena, mark: arena.mark() };
    let mut scope = Scope { arena: rewind.arena, env: PhantomData };
    f(&mut scope)
}

/// A guard that rewinds the arena to a mark when the guard is dropped.
struct Rewind<'a, S: Source, const M: usize> {
    arena: &'a Arena<S, M>,
    mark: Mark,
}

impl<S: Source, const M: usize> Drop for Rewind<'_, S, M> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the mark is from the start of this scope. Scopes end in the reverse order,
        // because `Rewind` borrows the arena or the outer scope exclusively. Everything made in the
        // scope borrows the `Rewind`, so nothing uses the blocks any more.
        unsafe { self.arena.rewind(self.mark) }
    }
}

/// A scope that ends when the guard is dropped, for code that does not fit a closure.
///
/// A guard dereferences to the arena. Objects made through a guard do not outlive the guard.
///
/// ```
/// let mut arena = mallard::Arena::new();
/// let mut outer = arena.guard();
/// outer.alloc(1);
/// {
///     let inner = outer.guard();
///     assert_eq!(*inner.alloc_str("two"), *"two");
/// } // everything that `inner` made is freed
/// drop(outer);
/// arena.reset();
/// ```
/// ```compile_fail,E0505
/// let mut arena = mallard::Arena::new();
/// let guard = arena.guard();
/// let one = guard.alloc(1);
/// drop(guard);
/// *one = 2;
/// ```
///
/// A leaked guard frees nothing. Then the next `reset` of the arena frees everything that was made
/// through the guard.
#[must_use = "a scope ends when its guard is dropped"]
pub struct Guard<'a, S: Source = DefaultHeap, const MIN_ALIGN: usize = 1>(Rewind<'a, S, MIN_ALIGN>);

impl<'a, S: Source, const M: usize> Guard<'a, S, M> {
    pub(super) fn new(arena: &'a mut Arena<S, M>) -> Self {
        Self(Rewind { arena, mark: arena.mark() })
    }
    /// Opens a scope inside this one, and returns its guard.
    pub fn guard(&mut self) -> Guard<'_, S, M> {
        Guard(Rewind { arena: self.0.arena, mark: self.0.arena.mark() })
    }
    /// Runs `f` with a scope inside this one.
    pub fn scope<'e, R>(
        &'e mut self,
        f: impl for<'t> FnOnce(&'t mut Scope<'t, 'e, S, M>) -> R,
    ) -> R {
        run(self.0.arena, f)
    }
    /// Frees everything made since the guard was made.
    pub fn reset(&mut self) {
        // SAFETY: `&mut self` proves that nothing made through the guard is borrowed any more.
        unsafe { self.0.arena.rewind(self.0.mark) }
    }
}

impl<S: Source, const M: usize> Deref for Guard<'_, S, M> {
    type Target = Arena<S, M>;
    #[inline(always)]
    fn deref(&self) -> &Arena<S, M> {
        self.0.arena
    }
}

impl<S: Source, const M: usize> core::fmt::Debug for Scope<'_, '_, S, M> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Scope").field(&self.arena.statistics()).finish()
    }
}

impl<S: Source, const M: usize> core::fmt::Debug for Guard<'_, S, M> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Guard").field(&self.0.arena.statistics()).finish()
    }
}
