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
mod chunk_store;
mod counted_pool;
mod full;
mod growth;
pub mod handles;
mod hooks;
mod lock;
#[cfg(target_has_atomic = "64")]
mod lock_free_core;
#[cfg(feature = "std")]
mod locked_core;
mod magazine;
#[cfg(target_has_atomic = "64")]
mod numbered_chunks;
pub mod object_pool;
#[cfg(feature = "std")]
mod owned_chunks;
mod pool;
mod pool_chunk;
mod pool_core;
mod pool_methods;
#[cfg(feature = "std")]
mod remote;
mod slots;
mod source;
mod statistics;
pub mod sync;
#[cfg(target_has_atomic = "64")]
mod tagged_stack;
#[cfg(feature = "std")]
mod thread_fronts;

pub use allocator::{BlockAllocator, Owning};
#[cfg(target_has_atomic = "64")]
pub use counted_pool::ArcPool;
pub use counted_pool::{CountedPool, RcPool};
pub use full::Full;
pub use growth::Growth;
pub use hooks::{Hooks, NoHooks};
pub use object_pool::ObjectPool;
pub use pool::Pool;
pub use source::{Buffer, Chunk, DefaultHeap, Null, Source};
pub use statistics::{Statistics, Validity};
