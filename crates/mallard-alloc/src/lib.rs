//! Allocators that a program chooses for one part of itself.
#![no_std]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod allocator;
mod bits;
#[cfg(feature = "std")]
mod cached_chunk;
#[cfg(feature = "std")]
mod cached_core;
#[cfg(feature = "std")]
mod cached_front;
mod chunk_runs;
mod full;
mod growth;
mod lock;
#[cfg(target_has_atomic = "64")]
mod lock_free_core;
#[cfg(target_has_atomic = "64")]
mod numbered_chunks;
#[cfg(feature = "std")]
mod owned_chunks;
#[cfg(feature = "std")]
mod remote;
#[cfg(all(test, feature = "std", target_has_atomic = "64", not(loom)))]
mod shared_tests;
mod source;
mod statistics;
pub mod sync;
#[cfg(target_has_atomic = "64")]
mod tagged_stack;
#[cfg(feature = "std")]
mod thread_fronts;

pub use allocator::{BlockAllocator, Owning};
pub use full::Full;
pub use growth::Growth;
pub use source::{Buffer, Chunk, DefaultHeap, Null, Source};
pub use statistics::{Statistics, Validity};
