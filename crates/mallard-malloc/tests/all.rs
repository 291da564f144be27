//! Tests in a program with another global allocator. Tests of a global allocator, or of the statistics of
//! a whole process, are programs of their own.

mod auto_traits;
mod consumer;
#[cfg(feature = "allocator-api2-02")]
mod containers;
mod heaps;
