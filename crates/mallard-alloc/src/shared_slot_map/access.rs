//! The types that determine how a shared slot map gives access to its elements.

use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU64, Ordering};

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Guarded {}
    impl Sealed for super::Copied {}
}

/// The way in which a map gives access to its elements: [`Guarded`] or [`Copied`]. This trait is
/// sealed.
pub trait Access<V>: sealed::Sealed {
    /// Writes an element.
    ///
    /// # Safety
    /// `at` is aligned to 8 bytes, whole words of 8 bytes may be written there, and nothing else
    /// writes there.
    #[doc(hidden)]
    unsafe fn write(at: *mut V, value: V);
}

/// The access under guards, for elements of any type.
///
/// ```
/// use mallard::{shared_slot_map::Guarded, Key64, SharedSlotMap};
/// let map: SharedSlotMap<Key64, String, Guarded> = SharedSlotMap::new(); // the default access
/// let key = map.insert("duck".into());
/// assert_eq!(map.with(key, String::len), Some(4));
/// ```
#[derive(Debug)]
pub enum Guarded {}

/// The access to [`Plain`] elements, which can be copied without a guard or read under a guard.
///
/// ```
/// use mallard::{shared_slot_map::Copied, Key64, SharedSlotMap};
/// let map = SharedSlotMap::<Key64, u32, Copied>::new();
/// let key = map.insert(7);
/// assert_eq!(map.read(key), Some(7));
/// ```
#[derive(Debug)]
pub enum Copied {}

impl<V> Access<V> for Guarded {
    #[inline(always)]
    unsafe fn write(at: *mut V, value: V) {
        // SAFETY: the caller guarantees that `at` may be written.
        unsafe { at.write(value) }
    }
}

impl<V: Plain> Access<V> for Copied {
    #[inline(always)]
    unsafe fn write(at: *mut V, value: V) {
        for i in 0..words::<V>() {
            let mut word = [0u8; 8];
            let count = (size_of::<V>() - 8 * i).min(8);
            // SAFETY: all bytes of the value are initialised, and the word is within the memory at
            // `at`. The store is atomic, because a thread that still copies an earlier element may
            // read the word at the same time.
            unsafe {
                let from = (&raw const value).cast::<u8>().add(8 * i);
                from.copy_to_nonoverlapping(word.as_mut_ptr(), count);
                let to = AtomicU64::from_ptr(at.cast::<u64>().add(i));
                to.store(u64::from_ne_bytes(word), Ordering::Release);
            }
        }
    }
}

const fn words<V>() -> usize {
    size_of::<V>().div_ceil(8)
}

/// Loads the words of an element. If another thread replaces the element at the same time, the
/// words may belong to different elements.
///
/// # Safety
/// `Copied::write` has written an element there before.
#[inline(always)]
pub(super) unsafe fn load<V: Plain>(at: *mut V) -> MaybeUninit<V> {
    let mut copy = MaybeUninit::<V>::uninit();
    for i in 0..words::<V>() {
        let count = (size_of::<V>() - 8 * i).min(8);
        // SAFETY: the word is within the element, and the bytes are within the copy.
        unsafe {
            let word = AtomicU64::from_ptr(at.cast::<u64>().add(i)).load(Ordering::Acquire);
            let to = copy.as_mut_ptr().cast::<u8>().add(8 * i);
            to.copy_from_nonoverlapping(word.to_ne_bytes().as_ptr(), count);
        }
    }
    copy
}

/// Types whose values have no uninitialised bytes, so that the values can be copied word by word.
///
/// ```
/// #[derive(Clone, Copy)]
/// #[repr(C)]
/// struct Speed { x: f32, y: f32 }
/// // SAFETY: the type has two fields of 4 bytes, and no padding.
/// unsafe impl mallard::shared_slot_map::Plain for Speed {}
/// ```
///
/// # Safety
/// All bytes of a value are initialised, because the type has no padding and no `MaybeUninit`. The
/// type has no pointers, references or cells.
pub unsafe trait Plain: Copy + Send + Sync + 'static {}

macro_rules! plain {
    ($($type:ty)*) => {
        $(
            // SAFETY: every byte of the type is a part of its value.
            unsafe impl Plain for $type {}
        )*
    };
}
plain! { () u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize f32 f64 bool char }

// SAFETY: an array has no padding between its elements.
unsafe impl<T: Plain, const N: usize> Plain for [T; N] {}
