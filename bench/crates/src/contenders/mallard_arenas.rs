//! The contenders that are Mallard's arenas.

use super::arenas::{by_allocator, Arena, ArenaOf};
use mallard::{AsSource, DefaultHeap};
use std::alloc::Layout;
use std::fmt;
use std::ptr::NonNull;

/// Mallard's arena. It aligns blocks to at least `M`.
pub struct MallardArena<const M: usize>(mallard::Arena<DefaultHeap, M>);

impl<const M: usize> Arena for MallardArena<M> {
    fn name() -> String {
        match M {
            1 => "mallard/Arena".to_string(),
            _ => format!("mallard/Arena/{M}"),
        }
    }
    #[inline(always)]
    fn new() -> Self {
        Self(mallard::Arena::with_min_align())
    }
    #[inline(always)]
    fn with_room(bytes: usize) -> Self {
        let arena = Self::new();
        arena.0.reserve(bytes);
        arena
    }
    #[inline(always)]
    fn reset(&mut self) {
        self.0.reset();
    }
    #[inline(always)]
    fn alloc<T>(&self, value: T) -> &mut T {
        self.0.alloc(value)
    }
    #[inline(always)]
    fn alloc_with<T>(&self, make: impl FnOnce() -> T) -> &mut T {
        self.0.alloc_with(make)
    }
    #[inline(always)]
    fn try_alloc<T>(&self, value: T) -> Option<&mut T> {
        self.0.try_alloc(value).ok()
    }
    #[inline(always)]
    fn copy_str(&self, text: &str) -> &mut str {
        self.0.alloc_str(text)
    }
    #[inline(always)]
    fn copy_slice<T: Copy>(&self, slice: &[T]) -> &mut [T] {
        self.0.alloc_slice_copy(slice)
    }
    #[inline(always)]
    fn collect<T>(&self, items: impl ExactSizeIterator<Item = T>) -> &mut [T] {
        self.0.alloc_iter(items)
    }
    #[inline(always)]
    fn format(&self, text: fmt::Arguments<'_>) -> &str {
        self.0.alloc_fmt(text)
    }
    by_allocator!(allocator_api2::alloc, |a| AsSource(&a.0));
}

pub struct MallardTypedArena<T>(mallard::TypedArena<T>);

impl<T: 'static> ArenaOf<T> for MallardTypedArena<T> {
    fn name() -> String {
        "mallard/TypedArena".to_string()
    }
    #[inline(always)]
    fn with_room_for(count: usize) -> Self {
        Self(mallard::TypedArena::with_capacity(count))
    }
    #[inline(always)]
    fn alloc(&self, value: T) -> &mut T {
        self.0.alloc(value)
    }
    #[inline(always)]
    fn reset(&mut self) {
        self.0.reset();
    }
}
