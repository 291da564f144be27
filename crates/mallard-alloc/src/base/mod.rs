//! The foundation of every allocator: layouts, sources of chunks, growth, and the traits, errors and
//! figures that all allocators share. Nothing here depends on an allocator.

pub(crate) mod allocator;
pub(crate) mod bits;
pub(crate) mod box_traits;
pub(crate) mod full;
pub(crate) mod growth;
pub(crate) mod resettable;
pub(crate) mod source;
pub(crate) mod statistics;
