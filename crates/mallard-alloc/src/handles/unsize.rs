//! Safe boxes of trait objects and slices on stable Rust.

/// Converts a box to a box of a trait object or of a slice, as an unsizing coercion does for boxes
/// of `std`.
///
/// ```
/// use mallard::{arena::Box, unsize_box, Arena};
/// let arena = Arena::new();
/// let shown: Box<dyn core::fmt::Display> = unsize_box!(arena.alloc_box(7));
/// assert_eq!(shown.to_string(), "7");
/// let slice: Box<[u8]> = unsize_box!(arena.alloc_box([1, 2, 3]));
/// assert_eq!(slice.len(), 3);
/// ```
///
/// For a box of an object pool, name the target type:
///
/// ```
/// use core::fmt::Display;
/// use mallard::{handles::Box, unsize_box, ObjectPool};
/// let numbers: ObjectPool<u32> = ObjectPool::new();
/// let names: ObjectPool<String> = ObjectPool::new();
/// let shown: [Box<'_, dyn Display>; 2] = [
///     unsize_box!(numbers.make(7) => dyn Display),
///     unsize_box!(names.make("seven".into()) => dyn Display),
/// ];
/// assert_eq!(format!("{} {}", shown[0], shown[1]), "7 seven");
/// ```
///
/// The macro does not compile in three cases:
/// - The target type is not an unsized form of the value's type.
/// - The allocator would be converted too, because it dereferences to an allocator of another type.
/// - A lifetime would become shorter.
///
/// Examples of the three cases:
///
/// ```compile_fail
/// # use core::{alloc::Layout, ops::Deref, ptr::NonNull};
/// use mallard::{arena::Box, unsize_box, BlockAllocator, Multipool};
/// struct Own(Multipool, Multipool); // allocates in the first field, and dereferences to the second
/// # unsafe impl BlockAllocator for Own {
/// #     fn try_allocate(&self, layout: Layout) -> Option<NonNull<u8>> { self.0.try_allocate(layout) }
/// #     unsafe fn deallocate(&self, b: NonNull<u8>, l: Layout) { unsafe { self.0.deallocate(b, l) } }
/// # }
/// # impl Deref for Own {
/// #     type Target = Multipool;
/// #     fn deref(&self) -> &Multipool { &self.1 }
/// # }
/// fn elsewhere<'a>(own: Box<'a, u8, Own>) -> Box<'a, u8, Multipool> {
///     unsize_box!(own)
/// }
/// ```
///
/// ```compile_fail
/// let pool: mallard::ObjectPool<u32> = mallard::ObjectPool::new();
/// let other = mallard::unsize_box!(pool.make(7) => u64);
/// ```
/// ```compile_fail
/// use mallard::{handles::Box, unsize_box, ObjectPool};
/// fn shortened<'p, 'a>(long: Box<'p, [&'static str; 1]>) -> Box<'p, [&'a str]> {
///     unsize_box!(long => [&'a str])
/// }
/// ```
#[macro_export]
macro_rules! unsize_box {
    ($box:expr => $unsized:ty) => {{
        let sized = $box;
        // SAFETY: only an unsizing coercion compiles here.
        unsafe { $crate::handles::Box::map_unsized(sized, |p| -> *mut $unsized { p }) }
    }};
    ($box:expr) => {{
        let boxed = $box;
        // SAFETY: the argument `value` of `__join` may be coerced. Unlike a cast, a coercion only
        // makes another pointer to the same value, so the new box owns the value that the old box
        // owned. `__split` wraps the arena in a type that `Deref` cannot coerce to another arena.
        unsafe {
            let (value, arena) = $crate::arena::Box::__split(boxed);
            $crate::arena::Box::__join(value, arena)
        }
    }};
}
