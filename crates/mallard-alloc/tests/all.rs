//! Collects the tests of the crate in one program, which is linked once. Tests that exhaust a
//! resource of the process are separate programs.

#[cfg(feature = "allocator-api2-02")]
extern crate allocator_api2_02 as allocator_api2; // the name in the code of `mallard advise`

mod adaptors;
#[cfg(feature = "allocator-api2-02")]
mod advice;
mod allocator_api;
mod arena;
mod arena_programs;
mod auto_traits;
mod checked;
mod common;
mod counted_pool;
mod file_arena;
mod growth;
mod lifetimes;
mod limits;
mod migration;
mod multipool;
mod object_pool;
mod object_pool_failures;
mod pool;
mod secondary_map;
#[cfg(feature = "serde")]
mod serde;
mod shared_arena;
mod shared_object_pool;
mod shared_pools;
mod shared_slot_map;
mod size_class;
mod slot_map;
mod slot_map_iteration;
mod slot_map_programs;
mod spec;
mod system;
mod typed_arena;
