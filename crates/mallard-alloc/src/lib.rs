//! Allocators that a program chooses for one part of itself.
#![no_std]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod allocator;
pub mod arena;
mod bits;
mod full;
mod growth;
mod source;
mod statistics;
pub mod sync;

pub use allocator::{BlockAllocator, Owning};
pub use arena::Arena;
pub use full::Full;
pub use growth::Growth;
pub use source::{Buffer, Chunk, DefaultHeap, Null, Source};
pub use statistics::{Statistics, Validity};
