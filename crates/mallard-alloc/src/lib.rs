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
#[cfg(feature = "std")]
mod shared_arena;
mod source;
mod statistics;
pub mod sync;
pub mod typed_arena;

pub use allocator::{BlockAllocator, Owning};
pub use arena::Arena;
pub use full::Full;
pub use growth::Growth;
#[cfg(feature = "std")]
pub use shared_arena::SharedArena;
pub use source::{Buffer, Chunk, DefaultHeap, Null, Source};
pub use statistics::{Statistics, Validity};
pub use typed_arena::TypedArena;
