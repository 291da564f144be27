//! Says which functions may be regions.

use crate::names::{has_name, is_standard, is_start, is_system_library, is_wrapper, MISSING};
use crate::trace::FrameInfo;

/// Whether a function may be a region. `None` for functions that start a program or a thread, that only
/// pass an allocation on, or that belong to a standard library or a library of the system. `Some(false)`
/// for functions without a name, such as `libx.so+0x123`. Frames that are not known are no function.
pub(super) fn is_kind(info: &FrameInfo) -> Option<bool> {
    let function = info.function;
    if is_start(function) || is_wrapper(function) || is_standard(function) {
        return None;
    }
    if is_system_library(info.module) || function.is_empty() || function.starts_with('?') {
        return None;
    }
    if MISSING.contains(&function) {
        return None;
    }
    Some(has_name(function))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_that_are_not_known_are_no_region() {
        let of = |function| {
            is_kind(&FrameInfo { function, file: "", line: None, module: "", is_inlined: false })
        };
        assert_eq!(MISSING.map(of), [None, None]);
        assert_eq!((of("parse"), of("libx.so+0x123")), (Some(true), Some(false)));
    }
}
