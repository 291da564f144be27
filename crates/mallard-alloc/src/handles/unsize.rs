//! Boxes of trait objects and slices, safely, on stable Rust.

/// Makes the box of a trait object, or of a slice, from the box of what it is.
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
/// The box of an object pool says what it is to be:
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
/// The macro does not compile if the result is a box of another type, a box in another arena that the
/// box's own arena dereferences to, or a box of a value with a shorter lifetime than the pool assumes:
///
/// ```compile_fail
/// # use core::{alloc::Layout, ops::Deref, ptr::NonNull};
/// use mallard::{arena::Box, unsize_box, BlockAllocator, Multipool};
/// struct Own(Multipool, Multipool); // gives blocks of the first, and leads to the second
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
        // SAFETY: what compiles here is an unsizing coercion.
        unsafe { $crate::handles::Box::map_unsized(sized, |p| -> *mut $unsized { p }) }
    }};
    ($box:expr) => {{
        let boxed = $box;
        // SAFETY: the compiler turns a pointer into another, without a cast, only where both
        // lead to the same value. It was the box's, and is again. The arena, which a reference
        // might be turned into another by `Deref`, is in a type of its own.
        unsafe {
            let (value, arena) = $crate::arena::Box::__split(boxed);
            $crate::arena::Box::__join(value, arena)
        }
    }};
}
