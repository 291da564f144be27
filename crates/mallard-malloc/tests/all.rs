//! Tests in a program whose global allocator is not Mallard. Tests of Mallard as the global
//! allocator, or of the statistics of a whole process, are separate programs.

mod auto_traits;
mod consumer;
#[cfg(feature = "allocator-api2-02")]
mod containers;
mod heaps;
