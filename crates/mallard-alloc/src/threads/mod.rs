//! Building blocks for allocators that several threads use: locks, a lock-free stack, and the
//! registry of threads.

#[cfg_attr(not(target_has_atomic = "64"), allow(dead_code))] // only shared slot maps use all of it
pub(crate) mod lock;
#[cfg(any(feature = "std", target_has_atomic = "64"))]
pub(crate) mod registry;
#[cfg(target_has_atomic = "64")]
pub(crate) mod tagged_stack;
