//! Sets limits on the memory of the program or of a heap.

use crate::ffi;
use core::ffi::c_void;
use core::ptr;

/// Memory limits in bytes. 0 means no limit, and is the default.
///
/// ```
/// use mallard_malloc::Limits;
/// mallard_malloc::set_limits(Limits { hard: 4 << 30, ..Limits::default() });
/// # mallard_malloc::set_limits(Limits::default());
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// The soft limit. When the memory in use exceeds this limit, `met` is called once. `met` is
    /// called again only after the memory in use was below three quarters of the limit.
    pub soft: usize,
    /// The hard limit. An allocation that would exceed this limit calls `met` and tries again. The
    /// allocation fails if the second try would exceed the limit too.
    pub hard: usize,
    /// A function that receives the bytes in use and the limit. The thread that reaches a limit
    /// calls the function. The function may allocate and free, for example to drop a cache. If the
    /// function panics, the process aborts.
    pub met: Option<fn(held: usize, limit: usize)>,
}

impl Limits {
    pub(crate) fn call(&self) -> (Option<ffi::LimitMet>, *mut c_void) {
        match self.met {
            Some(met) => (Some(call_met), met as *mut c_void),
            None => (None, ptr::null_mut()),
        }
    }
}

extern "C" fn call_met(context: *mut c_void, held: usize, limit: usize) {
    // SAFETY: `Limits::call` made the context from a function pointer of this type.
    let met = unsafe { core::mem::transmute::<*mut c_void, fn(usize, usize)>(context) };
    met(held, limit);
}

/// Sets the limits of the whole program. The limits count the memory that holds blocks, in units of
/// 16 KiB. If the program already uses more memory than a limit allows, that memory stays in use.
/// The environment variable `MALLARD_LIMIT=512M` sets the hard limit.
///
/// ```
/// use mallard_malloc::{set_limits, Limits};
/// # #[global_allocator]
/// # static A: mallard_malloc::Mallard = mallard_malloc::Mallard;
/// let held = mallard_malloc::statistics().bytes_taken;
/// set_limits(Limits { hard: held + (8 << 20), ..Limits::default() });
/// assert!(Vec::<u8>::new().try_reserve(100 << 20).is_err());
/// set_limits(Limits::default());
/// ```
pub fn set_limits(limits: Limits) {
    let (met, context) = limits.call();
    // SAFETY: the context is a function pointer of the type that `met` expects, and stays valid for
    // ever.
    unsafe { ffi::mallard_limit(limits.soft, limits.hard, met, context) }
}
