//! How much memory a program, or a heap, may have.

use crate::raw;
use core::ffi::c_void;
use core::ptr;

/// Limits of memory in bytes; 0 is none. By default there are none.
///
/// ```
/// use mallard_malloc::Limits;
/// mallard_malloc::set_limits(Limits { hard: 4 << 30, ..Limits::default() });
/// # mallard_malloc::set_limits(Limits::default());
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// Above it `met` is called, once until a quarter less is held.
    pub soft: usize,
    /// What would exceed it is tried again after a call of `met`, and refused.
    pub hard: usize,
    /// Called with what is held and the limit that was met, by the thread that met it. It may
    /// allocate and free, which is its use: to drop what is cached. If it panics, the process
    /// aborts.
    pub met: Option<fn(held: usize, limit: usize)>,
}

impl Limits {
    pub(crate) fn call(&self) -> (Option<raw::LimitMet>, *mut c_void) {
        match self.met {
            Some(met) => (Some(call_met), met as *mut c_void),
            None => (None, ptr::null_mut()),
        }
    }
}

extern "C" fn call_met(context: *mut c_void, held: usize, limit: usize) {
    // SAFETY: `Limits::call` made the one of the other.
    let met = unsafe { core::mem::transmute::<*mut c_void, fn(usize, usize)>(context) };
    met(held, limit);
}

/// Sets the limits of the program, which counts what blocks are in, in whole units of 16 KiB. What
/// is held already stays. `MALLARD_LIMIT=512M` sets the hard one from outside.
///
/// ```
/// use mallard_malloc::{set_limits, Limits};
/// # #[global_allocator]
/// # static A: mallard_malloc::Mallard = mallard_malloc::Mallard;
/// let held = mallard_malloc::stats().bytes_taken;
/// set_limits(Limits { hard: held + (8 << 20), ..Limits::default() });
/// assert!(Vec::<u8>::new().try_reserve(100 << 20).is_err());
/// set_limits(Limits::default());
/// ```
pub fn set_limits(limits: Limits) {
    let (met, context) = limits.call();
    // SAFETY: the call fits its context, which is a function and so lives for ever.
    unsafe { raw::mallard_limit(limits.soft, limits.hard, met, context) }
}
