//! How elements of a shared slot map may be looked at, as a type.

use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU64, Ordering};

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Guarded {}
    impl Sealed for super::Copied {}
}

/// How elements may be looked at: [`Guarded`] or [`Copied`].
pub trait Access<V>: sealed::Sealed {
    /// # Safety
    /// `at` is valid for whole words of 8 bytes and aligned to them, and nobody else writes there.
    #[doc(hidden)]
    unsafe fn write(at: *mut V, value: V);
}

/// Any elements, under guards.
#[derive(Debug)]
pub enum Guarded {}

/// [`Plain`] elements, which may also be copied without a guard.
#[derive(Debug)]
pub enum Copied {}

impl<V> Access<V> for Guarded {
    #[inline(always)]
    unsafe fn write(at: *mut V, value: V) {
        // SAFETY: as the caller says.
        unsafe { at.write(value) }
    }
}

impl<V: Plain> Access<V> for Copied {
    #[inline(always)]
    unsafe fn write(at: *mut V, value: V) {
        for i in 0..words::<V>() {
            let mut word = [0u8; 8];
            let count = (size_of::<V>() - 8 * i).min(8);
            // SAFETY: a part of the value, all of whose bytes are there, and a word of the place. It is
            // atomic, since a late reader of an earlier element may look at it.
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

/// The words of an element, or of several if it is replaced meanwhile.
///
/// # Safety
/// They were written once by `Copied::write`.
#[inline(always)]
pub(super) unsafe fn load<V: Plain>(at: *mut V) -> MaybeUninit<V> {
    let mut copy = MaybeUninit::<V>::uninit();
    for i in 0..words::<V>() {
        let count = (size_of::<V>() - 8 * i).min(8);
        // SAFETY: a word of the place, and a part of the copy.
        unsafe {
            let word = AtomicU64::from_ptr(at.cast::<u64>().add(i)).load(Ordering::Acquire);
            let to = copy.as_mut_ptr().cast::<u8>().add(8 * i);
            to.copy_from_nonoverlapping(word.to_ne_bytes().as_ptr(), count);
        }
    }
    copy
}

/// Values that are their bytes.
///
/// ```
/// #[derive(Clone, Copy)]
/// #[repr(C)]
/// struct Speed { x: f32, y: f32 }
/// // SAFETY: two times 4 bytes, and none between or behind them.
/// unsafe impl mallard::shared_slot_map::Plain for Speed {}
/// ```
///
/// # Safety
/// All bytes of a value are initialised: there is no padding, and no `MaybeUninit`. It has no pointer, no
/// reference, and nothing that changes behind a shared reference.
pub unsafe trait Plain: Copy + Send + Sync + 'static {}

macro_rules! plain {
    ($($type:ty)*) => {
        $(
            // SAFETY: all its bytes are its value.
            unsafe impl Plain for $type {}
        )*
    };
}
plain! { () u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize f32 f64 bool char }

// SAFETY: elements lie side by side.
unsafe impl<T: Plain, const N: usize> Plain for [T; N] {}
