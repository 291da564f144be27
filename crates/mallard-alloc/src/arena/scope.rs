//! A stretch of a program whose blocks all die together.

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

/// What a closure given to [`Arena::scope`] allocates from: all of it is free when the closure
/// has returned, or panicked.
///
/// What is made here lives for `'s`, which is as long as the closure runs and no longer, so it
/// cannot be returned or kept. A scope can have scopes: meanwhile it makes nothing, and what it
/// has made stays in use.
///
/// ```
/// let mut arena = mallard::Arena::new();
/// let sum = arena.scope(|outer| {
///     let a = outer.alloc(1);
///     let b = outer.scope(|inner| *inner.alloc(2) + *a); // `a` is older, and stays
///     *a + b
/// });
/// assert_eq!(sum, 4);
/// ```
///
/// Nothing escapes:
/// ```compile_fail
/// let mut arena = mallard::Arena::new();
/// let escaped = arena.scope(|s| s.alloc(1));
/// ```
/// ```compile_fail,E0521
/// let mut arena = mallard::Arena::new();
/// let mut kept: Option<&mut i32> = None;
/// arena.scope(|s| kept = Some(s.alloc(1)));
/// ```
/// and nothing is made in a scope while one of its own is open:
/// ```compile_fail,E0502
/// let mut arena = mallard::Arena::new();
/// arena.scope(|outer| outer.scope(|inner| { outer.alloc(1); inner.alloc(2); }));
/// ```
pub struct Scope<'s, 'env: 's, S: Source = DefaultHeap, const MIN_ALIGN: usize = 1> {
    /// Never shown to anyone: `&'s Arena` would allocate while an inner scope is open.
    arena: &'s Arena<S, MIN_ALIGN>,
    env: PhantomData<&'env mut &'env ()>,
}

impl<'s, 'env, S: Source, const M: usize> Scope<'s, 'env, S, M> {
    #[inline(always)]
    fn home(&self) -> &'s Arena<S, M> {
        self.arena
    }
    #[inline(always)]
    fn finalizers(&self) -> &'s Finalizers {
        &self.arena.owned
    }

    object_methods!('s, &Self, Arena<S, M>);
    // Run before the call that opened the scope returns, which is shorter than 'env, and by
    // the same thread: a scope is not `Send`, and nobody can forget to close it.
    owning_methods!('s, &Self, Source, 'env);

    /// A scope inside this one.
    pub fn scope<'e, R>(
        &'e mut self,
        f: impl for<'t> FnOnce(&'t mut Scope<'t, 'e, S, M>) -> R,
    ) -> R {
        run(self.arena, f)
    }
}

// SAFETY: blocks are the arena's. None is used after the scope, since an allocator that borrows
// the scope ends before it.
unsafe impl<S: Source, const M: usize> BlockAllocator for Scope<'_, '_, S, M> {
    #[inline(always)]
    fn try_allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        self.arena.try_allocate(layout)
    }
    #[inline(always)]
    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
        // SAFETY: passed on.
        unsafe { self.arena.deallocate(block, layout) }
    }
    #[inline(always)]
    unsafe fn try_expand(&self, block: NonNull<u8>, from: Layout, to: Layout) -> bool {
        // SAFETY: passed on.
        unsafe { self.arena.try_expand(block, from, to) }
    }
}

/// Runs `f` in a scope. The caller has the arena, or the innermost scope of it, to himself.
pub(super) fn run<'env, R, S: Source, const M: usize>(
    arena: &Arena<S, M>,
    f: impl for<'t> FnOnce(&'t mut Scope<'t, 'env, S, M>) -> R,
) -> R {
    let rewind = Rewind { arena, mark: arena.mark() };
    let mut scope = Scope { arena: rewind.arena, env: PhantomData };
    f(&mut scope)
}

struct Rewind<'a, S: Source, const M: usize> {
    arena: &'a Arena<S, M>,
    mark: Mark,
}

impl<S: Source, const M: usize> Drop for Rewind<'_, S, M> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the mark is from the beginning of this scope. Marks nest, since who holds
        // this borrows the arena or the outer scope exclusively, and what is made in it borrows
        // this.
        unsafe { self.arena.rewind(self.mark) }
    }
}

/// A scope that ends when this goes: for code that does not fit a closure.
///
/// It is used as an arena, and what is made lives no longer than it.
///
/// ```
/// let mut arena = mallard::Arena::new();
/// let mut outer = arena.guard();
/// outer.alloc(1);
/// {
///     let inner = outer.guard();
///     assert_eq!(*inner.alloc_str("two"), *"two");
/// } // what `inner` made is free
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
/// A guard that is forgotten frees nothing; the arena does at its next `reset`.
#[must_use = "a scope ends when its guard goes"]
pub struct Guard<'a, S: Source = DefaultHeap, const MIN_ALIGN: usize = 1>(Rewind<'a, S, MIN_ALIGN>);

impl<'a, S: Source, const M: usize> Guard<'a, S, M> {
    pub(super) fn new(arena: &'a mut Arena<S, M>) -> Self {
        Self(Rewind { arena, mark: arena.mark() })
    }
    /// A guard inside this one.
    pub fn guard(&mut self) -> Guard<'_, S, M> {
        Guard(Rewind { arena: self.0.arena, mark: self.0.arena.mark() })
    }
    /// A scope inside this one.
    pub fn scope<'e, R>(
        &'e mut self,
        f: impl for<'t> FnOnce(&'t mut Scope<'t, 'e, S, M>) -> R,
    ) -> R {
        run(self.0.arena, f)
    }
    /// All that was made since the guard was is free.
    pub fn reset(&mut self) {
        // SAFETY: as when this is dropped; nothing made in it is borrowed.
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
