//! Marks of regions for the recorder `mallard record`.
//!
//! Call stacks do not always show where an instance of a region ends, because two calls of a
//! function from one loop look alike. With marks, a recording contains the exact begin and end of
//! each instance. To use marks, write `region = "convert"` and `ends = "exact"` in a plan of
//! `mallard replay`. `mallard advise` uses marks too. The header mallard/trace/region.h sets the
//! same marks in C and C++.
//!
//! In a program that is not recorded, a mark only tests a pointer.

use core::ffi::{c_char, CStr};
use core::fmt;
use core::marker::PhantomData;
use std::sync::OnceLock;

/// The number of bytes to which the recorder cuts a name.
const NAME_MAX: usize = 240;

/// Marks that this thread enters the region `name`. The region ends when the returned value is
/// dropped, also if a panic drops the value.
///
/// Marks nest, separately on each thread. A name is cut to 240 bytes, or before its first zero byte.
///
/// ```
/// fn convert(text: &str) -> usize {
///     let _marked = mallard::trace::region("convert");
///     text.split(' ').map(String::from).collect::<Vec<_>>().len()
/// }
/// assert_eq!(convert("two words"), 2);
/// ```
pub fn region(name: &str) -> Region<'_> {
    mark(marks().begin, name);
    Region { name, of_this_thread: PhantomData }
}

/// A region that this thread is in. The region ends when this value is dropped.
#[must_use = "the region ends when this is dropped"]
pub struct Region<'name> {
    name: &'name str,
    /// Keeps a `Region` on its thread, because the recorder nests the marks of each thread, and a
    /// region must end on the thread that began the region.
    of_this_thread: PhantomData<*const ()>,
}

impl fmt::Debug for Region<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Region").field(&self.name).finish()
    }
}

impl Drop for Region<'_> {
    fn drop(&mut self) {
        mark(marks().end, self.name);
    }
}

/// The type of the recorder's functions, whose argument is the name of a region.
type Mark = unsafe extern "C" fn(*const c_char);

/// The functions of the recorder. Both are `None` in a program that is not recorded.
struct Marks {
    begin: Option<Mark>,
    end: Option<Mark>,
}

unsafe extern "C" {
    fn dlsym(handle: *mut core::ffi::c_void, name: *const c_char) -> *mut core::ffi::c_void;
}

/// Returns the functions of the recorder, which the first call looks up.
fn marks() -> &'static Marks {
    static MARKS: OnceLock<Marks> = OnceLock::new();
    MARKS.get_or_init(|| Marks {
        begin: find(c"mallard_record_region_begin"),
        end: find(c"mallard_record_region_end"),
    })
}

fn find(name: &CStr) -> Option<Mark> {
    if cfg!(miri) {
        return None; // Miri looks up no functions
    }
    // SAFETY: the name ends with a zero, and null stands for all libraries of the process.
    let found = unsafe { dlsym(core::ptr::null_mut(), name.as_ptr()) };
    // SAFETY: a function pointer and a data pointer have the same size here, a null pointer becomes
    // `None`, and the functions with these names have this type.
    unsafe { core::mem::transmute::<*mut core::ffi::c_void, Option<Mark>>(found) }
}

/// Calls a function of the recorder with a name, if the program is recorded.
fn mark(function: Option<Mark>, name: &str) {
    let Some(function) = function else { return };
    let mut text = [0; NAME_MAX + 1];
    let length = name.len().min(NAME_MAX);
    text[..length].copy_from_slice(&name.as_bytes()[..length]);
    // SAFETY: the last byte of the text is a zero. The recorder copies the text.
    unsafe { function(text.as_ptr().cast()) }
}
