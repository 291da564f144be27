//! Allocators that a program chooses for one part of itself.
#![no_std]
#![cfg_attr(feature = "nightly", feature(allocator_api))]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod adaptor;
mod allocator;
mod bits;
#[cfg(any(
    feature = "allocator-api2-02",
    feature = "allocator-api2-03",
    feature = "allocator-api2-04",
    feature = "nightly",
))]
mod bridge;
mod by;
mod full;
mod growth;
mod multipool;
pub mod size_class;
mod source;
mod statistics;
pub mod sync;

pub use adaptor::{Measured, Resettable};
pub use allocator::{BlockAllocator, Owning};
#[cfg(feature = "allocator-api2-02")]
pub use bridge::allocator_api2_02;
#[cfg(feature = "allocator-api2-03")]
pub use bridge::allocator_api2_03;
#[cfg(feature = "allocator-api2-04")]
pub use bridge::allocator_api2_04;
#[cfg(feature = "nightly")]
pub use bridge::nightly;
pub use by::By;
pub use full::Full;
pub use growth::Growth;
pub use multipool::Multipool;
pub use source::{Buffer, Chunk, DefaultHeap, Null, Source};
pub use statistics::{Statistics, Validity};
