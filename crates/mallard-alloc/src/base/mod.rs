//! What every allocator is built on: sizes and layouts, sources of memory, growth, and the traits
//! and errors that all allocators share. Nothing here knows an allocator.

pub(crate) mod allocator;
pub(crate) mod bits;
pub(crate) mod full;
pub(crate) mod growth;
pub(crate) mod source;
pub(crate) mod statistics;
mod unsize;
