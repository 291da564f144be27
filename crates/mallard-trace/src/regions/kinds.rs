//! Says which functions may be regions.

use crate::names::{has_name, is_standard, is_start, is_system_library, is_wrapper};
use crate::trace::FrameInfo;

/// Whether a function may be a region. `None` for functions that start a program or a thread, that only
/// pass an allocation on, or that belong to a standard library or a library of the system. `Some(false)`
/// for functions without a name, such as `libx.so+0x123`.
pub(super) fn is_kind(info: &FrameInfo) -> Option<bool> {
    let function = info.function;
    if is_start(function) || is_wrapper(function) || is_standard(function) {
        return None;
    }
    if is_system_library(info.module) || function.is_empty() || function.starts_with('?') {
        return None;
    }
    Some(has_name(function))
}
