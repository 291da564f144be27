//! The contenders that allocate blocks of all sizes and free them together.

use super::peer;
use allocator_api2::alloc::{AllocError, Allocator};
use std::alloc::Layout;
use std::fmt;
use std::ptr::NonNull;

/// The functions of an arena that the benchmarks call. `reset` frees everything that was allocated
/// from the arena.
pub trait Arena: Sized + 'static {
    fn name() -> String;
    /// Makes an arena without memory, if the crate can.
    fn new() -> Self;
    /// Makes an arena with room for `bytes` bytes.
    fn with_room(bytes: usize) -> Self;
    /// Frees everything. Keeps as much memory as the crate can keep.
    fn reset(&mut self);

    fn alloc<T>(&self, value: T) -> &mut T;
    fn alloc_with<T>(&self, make: impl FnOnce() -> T) -> &mut T;
    fn try_alloc<T>(&self, value: T) -> Option<&mut T>;
    fn copy_str(&self, text: &str) -> &mut str;
    fn copy_slice<T: Copy>(&self, slice: &[T]) -> &mut [T];
    fn collect<T>(&self, items: impl ExactSizeIterator<Item = T>) -> &mut [T];

    /// Whether `format` is supported.
    const FORMATS: bool = true;
    fn format(&self, _text: fmt::Arguments<'_>) -> &str {
        ""
    }

    /// Allocates through the `Allocator` trait. Each crate implements some version of that trait.
    fn allocate(&self, layout: Layout) -> Option<NonNull<[u8]>>;
    /// Frees a block.
    ///
    /// # Safety
    ///
    /// `block` must be live and have this layout.
    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout);
    /// Grows a block.
    ///
    /// # Safety
    ///
    /// `block` must be live and have the layout `from`. `to` must not be smaller.
    unsafe fn grow(&self, block: NonNull<u8>, from: Layout, to: Layout) -> Option<NonNull<[u8]>>;
    /// Shrinks a block.
    ///
    /// # Safety
    ///
    /// `block` must be live and have the layout `from`. `to` must not be larger.
    unsafe fn shrink(&self, block: NonNull<u8>, from: Layout, to: Layout) -> Option<NonNull<[u8]>>;
}

/// Implements the block functions of `Arena` through the trait `$version::alloc::Allocator`.
macro_rules! by_allocator {
    ($version:path, |$arena:ident| $allocator:expr) => {
        #[inline(always)]
        fn allocate(&self, layout: Layout) -> Option<NonNull<[u8]>> {
            use $version as version;
            let $arena = self;
            version::Allocator::allocate(&$allocator, layout).ok()
        }
        #[inline(always)]
        unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
            use $version as version;
            let $arena = self;
            // SAFETY: the caller keeps the contract of this function.
            unsafe { version::Allocator::deallocate(&$allocator, block, layout) }
        }
        #[inline(always)]
        unsafe fn grow(
            &self,
            block: NonNull<u8>,
            from: Layout,
            to: Layout,
        ) -> Option<NonNull<[u8]>> {
            use $version as version;
            let $arena = self;
            // SAFETY: the caller keeps the contract of this function.
            unsafe { version::Allocator::grow(&$allocator, block, from, to) }.ok()
        }
        #[inline(always)]
        unsafe fn shrink(
            &self,
            block: NonNull<u8>,
            from: Layout,
            to: Layout,
        ) -> Option<NonNull<[u8]>> {
            use $version as version;
            let $arena = self;
            // SAFETY: the caller keeps the contract of this function.
            unsafe { version::Allocator::shrink(&$allocator, block, from, to) }.ok()
        }
    };
}
pub(super) use by_allocator;

pub type Bumpalo = bumpalo::Bump;

impl Arena for bumpalo::Bump {
    fn name() -> String {
        peer("bumpalo")
    }
    #[inline(always)]
    fn new() -> Self {
        Self::new()
    }
    #[inline(always)]
    fn with_room(bytes: usize) -> Self {
        Self::with_capacity(bytes)
    }
    #[inline(always)]
    fn reset(&mut self) {
        self.reset();
    }
    #[inline(always)]
    fn alloc<T>(&self, value: T) -> &mut T {
        self.alloc(value)
    }
    #[inline(always)]
    fn alloc_with<T>(&self, make: impl FnOnce() -> T) -> &mut T {
        self.alloc_with(make)
    }
    #[inline(always)]
    fn try_alloc<T>(&self, value: T) -> Option<&mut T> {
        self.try_alloc(value).ok()
    }
    #[inline(always)]
    fn copy_str(&self, text: &str) -> &mut str {
        self.alloc_str(text)
    }
    #[inline(always)]
    fn copy_slice<T: Copy>(&self, slice: &[T]) -> &mut [T] {
        self.alloc_slice_copy(slice)
    }
    #[inline(always)]
    fn collect<T>(&self, items: impl ExactSizeIterator<Item = T>) -> &mut [T] {
        self.alloc_slice_fill_iter(items)
    }
    #[inline(always)]
    fn format(&self, text: fmt::Arguments<'_>) -> &str {
        // Repeats what bumpalo's `format!` expands to.
        let mut string = bumpalo::collections::String::new_in(self);
        let _ = fmt::Write::write_fmt(&mut string, text);
        string.into_bump_str()
    }
    by_allocator!(allocator_api2::alloc, |a| a);
}

/// An arena of the crate bump-scope. `UP` says whether it allocates upward or downward.
pub struct BumpScope<const UP: bool>(
    bump_scope::Bump<bump_scope::alloc::Global, bump_scope::settings::BumpSettings<1, UP>>,
);

impl<const UP: bool> Arena for BumpScope<UP> {
    fn name() -> String {
        peer("bump-scope") + if UP { "/up" } else { "/down" }
    }
    #[inline(always)]
    fn new() -> Self {
        Self(bump_scope::Bump::new())
    }
    #[inline(always)]
    fn with_room(bytes: usize) -> Self {
        let layout = Layout::from_size_align(bytes, 16).expect("a size of a benchmark");
        Self(bump_scope::Bump::with_capacity(layout))
    }
    #[inline(always)]
    fn reset(&mut self) {
        self.0.reset_to_start();
    }
    #[inline(always)]
    fn alloc<T>(&self, value: T) -> &mut T {
        bump_scope::BumpBox::leak(self.0.alloc(value))
    }
    #[inline(always)]
    fn alloc_with<T>(&self, make: impl FnOnce() -> T) -> &mut T {
        bump_scope::BumpBox::leak(self.0.alloc_with(make))
    }
    #[inline(always)]
    fn try_alloc<T>(&self, value: T) -> Option<&mut T> {
        self.0.try_alloc(value).ok().map(bump_scope::BumpBox::leak)
    }
    #[inline(always)]
    fn copy_str(&self, text: &str) -> &mut str {
        bump_scope::BumpBox::leak(self.0.alloc_str(text))
    }
    #[inline(always)]
    fn copy_slice<T: Copy>(&self, slice: &[T]) -> &mut [T] {
        bump_scope::BumpBox::leak(self.0.alloc_slice_copy(slice))
    }
    #[inline(always)]
    fn collect<T>(&self, items: impl ExactSizeIterator<Item = T>) -> &mut [T] {
        bump_scope::BumpBox::leak(self.0.alloc_iter_exact(items))
    }
    #[inline(always)]
    fn format(&self, text: fmt::Arguments<'_>) -> &str {
        bump_scope::BumpBox::leak(self.0.alloc_fmt(text))
    }
    by_allocator!(bump_scope::alloc, |a| a.0);
}

pub struct Blink(blink_alloc::Blink);

impl Arena for Blink {
    fn name() -> String {
        peer("blink-alloc")
    }
    #[inline(always)]
    fn new() -> Self {
        Self(blink_alloc::Blink::new())
    }
    #[inline(always)]
    fn with_room(bytes: usize) -> Self {
        Self(blink_alloc::Blink::with_chunk_size(bytes))
    }
    #[inline(always)]
    fn reset(&mut self) {
        self.0.reset();
    }
    #[inline(always)]
    fn alloc<T>(&self, value: T) -> &mut T {
        self.0.put_no_drop(value)
    }
    #[inline(always)]
    fn alloc_with<T>(&self, make: impl FnOnce() -> T) -> &mut T {
        self.0.emplace_no_drop().with(make)
    }
    #[inline(always)]
    fn try_alloc<T>(&self, value: T) -> Option<&mut T> {
        self.0.emplace_no_drop().try_value(value).ok()
    }
    #[inline(always)]
    fn copy_str(&self, text: &str) -> &mut str {
        self.0.copy_str(text)
    }
    #[inline(always)]
    fn copy_slice<T: Copy>(&self, slice: &[T]) -> &mut [T] {
        self.0.copy_slice(slice)
    }
    #[inline(always)]
    fn collect<T>(&self, items: impl ExactSizeIterator<Item = T>) -> &mut [T] {
        self.0.emplace_no_drop().from_iter(items)
    }
    const FORMATS: bool = false;
    by_allocator!(allocator_api2_04::alloc, |a| a.0.allocator());
}

/// Makes an arena an `Allocator`, so that a `Vec` can use it. The same code serves all arenas.
pub struct Via<'a, A>(pub &'a A);

// SAFETY: the arena fulfils the contract of `Allocator`, and keeps its address while it is
// borrowed.
unsafe impl<A: Arena> Allocator for Via<'_, A> {
    #[inline(always)]
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        self.0.allocate(layout).ok_or(AllocError)
    }
    #[inline(always)]
    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
        // SAFETY: the arguments are passed on unchanged.
        unsafe { self.0.deallocate(block, layout) }
    }
    #[inline(always)]
    unsafe fn grow(
        &self,
        block: NonNull<u8>,
        from: Layout,
        to: Layout,
    ) -> Result<NonNull<[u8]>, AllocError> {
        // SAFETY: the arguments are passed on unchanged.
        unsafe { self.0.grow(block, from, to) }.ok_or(AllocError)
    }
    #[inline(always)]
    unsafe fn shrink(
        &self,
        block: NonNull<u8>,
        from: Layout,
        to: Layout,
    ) -> Result<NonNull<[u8]>, AllocError> {
        // SAFETY: the arguments are passed on unchanged.
        unsafe { self.0.shrink(block, from, to) }.ok_or(AllocError)
    }
}

/// An arena for values of one type. typed-arena has only these functions.
pub trait ArenaOf<T>: Sized + 'static {
    fn name() -> String;
    fn with_room_for(count: usize) -> Self;
    fn alloc(&self, value: T) -> &mut T;
    fn reset(&mut self);
}

pub struct Any<A>(A);

impl<T, A: Arena> ArenaOf<T> for Any<A> {
    fn name() -> String {
        A::name()
    }
    #[inline(always)]
    fn with_room_for(count: usize) -> Self {
        Self(A::with_room(count * size_of::<T>()))
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

pub struct TypedArena<T> {
    arena: typed_arena::Arena<T>,
    count: usize,
}

impl<T: 'static> ArenaOf<T> for TypedArena<T> {
    fn name() -> String {
        peer("typed-arena")
    }
    #[inline(always)]
    fn with_room_for(count: usize) -> Self {
        Self { arena: typed_arena::Arena::with_capacity(count), count }
    }
    #[inline(always)]
    fn alloc(&self, value: T) -> &mut T {
        self.arena.alloc(value)
    }
    /// Replaces the arena, because typed-arena has no reset.
    #[inline(always)]
    fn reset(&mut self) {
        self.arena = typed_arena::Arena::with_capacity(self.count);
    }
}
