//! The rule that says when an instance of a region has certainly ended.

/// How many outer frames a call stack shares with the previous event of its thread. `depth` is the
/// number of frames in the call stack, and `fresh` is how many of them are new.
#[inline]
pub(crate) fn kept_frames(depth: u16, fresh: u16) -> u16 {
    depth.saturating_sub(fresh)
}

/// Whether an instance is over at an event of its thread. `entry` is the depth of the outermost frame of
/// the region's function in the call stack of the event, or 0 if the function is not in the call stack.
///
/// A frame is a return address and its place on the stack. Both together identify the running call
/// of the *next inner* function. So a function is in the same call as before only if the frame
/// outside of the function has not changed.
#[inline]
pub(crate) fn is_over(entry: u16, kept: u16) -> bool {
    entry == 0 || kept < entry - 1
}
