//! Allocators that a program uses for one of its parts: arenas, object pools with handles, slot
//! maps and multipools. Pure Rust, without dependencies, `no_std`.
//!
//! | what the part allocates | allocator |
//! |---|---|
//! | objects that are all freed together | [`Arena`]; for one type, with destructors, [`TypedArena`]; for several threads, `SharedArena` |
//! | objects of one type, made and dropped one by one | [`ObjectPool`]; with shared owners, [`RcPool`] and `ArcPool` |
//! | objects that are found by keys, which may outlive the objects | [`SlotMap`]; for several threads, `SharedSlotMap` |
//! | blocks of many sizes, freed one by one | [`Multipool`]; over an arena, to free all of them together too |
//! | blocks of one layout | [`Pool`] |
//!
//! ```
//! use mallard::{Arena, ObjectPool};
//! let mut scratch = Arena::new(); // takes no memory yet
//! let name = scratch.alloc_str("all of this is freed at once");
//! assert_eq!(name.len(), 28);
//! scratch.reset(); // frees everything, and keeps the memory
//!
//! let points: ObjectPool<(i32, i32)> = ObjectPool::new();
//! let corner = points.make((3, 4)); // a box: one pointer wide, frees its slot
//! assert_eq!(corner.0, 3);
//! ```
//!
//! A mode in the type of a pool determines which threads may call the pool at the same time: see
//! [`sync`]. Allocators request memory from a [`Source`]. A [`Growth`] determines the size of each
//! request. The adaptors [`Counted`], [`Limited`], [`Failing`], [`Traced`], [`Fallback`],
//! [`BySize`], [`Synchronized`] and `Checked` wrap any allocator. `trace::region` marks a part of
//! the program for the recorder `mallard record`.
//!
//! Features: `std` is the default. Without `std`, the feature `alloc` makes the crate `alloc`
//! available. With `allocator-api2-02`, `-03`, `-04` and `nightly`, `Vec`, `Box` and hashbrown can
//! use these allocators. `serde` serialises keys and maps. `tracing` emits events.
#![no_std]
#![cfg_attr(feature = "nightly", feature(allocator_api))]
#![cfg_attr(docsrs, feature(doc_cfg))] // docs.rs shows which feature each item needs

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod adapt;
#[cfg(any(
    feature = "allocator-api2-02",
    feature = "allocator-api2-03",
    feature = "allocator-api2-04",
    feature = "nightly",
))]
mod allocator_api;
pub mod arena;
mod base;
mod counted_pool;
mod debug;
#[cfg(all(doctest, feature = "std"))]
mod guide;
pub mod handles;
mod hooks;
mod loom;
mod multipool;
pub mod object_pool;
#[cfg(all(
    feature = "std",
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"),
))]
mod os;
#[cfg(all(
    feature = "std",
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"),
))]
mod persist;
mod pool;
pub mod secondary_map;
#[cfg(feature = "std")]
mod shared_arena;
#[cfg(target_has_atomic = "64")]
pub mod shared_slot_map;
pub mod size_class;
pub mod slot_map;
pub mod sync;
mod threads;
#[cfg(all(feature = "std", target_os = "linux"))]
pub mod trace;
pub mod typed_arena;

pub use adapt::as_source::AsSource;
pub use adapt::by_size::BySize;
pub use adapt::counted::{CallCounts, Counted, CountingScope};
pub use adapt::failing::{for_each_failure, Failing, FailureRule, Failures};
pub use adapt::fallback::Fallback;
pub use adapt::limited::{Budget, Limited};
pub use adapt::synchronized::Synchronized;
#[cfg(feature = "tracing")]
pub use adapt::traced::TracingEvents;
pub use adapt::traced::{Event, Observer, Traced};
#[cfg(feature = "allocator-api2-02")]
pub use allocator_api::allocator_api2_02;
#[cfg(feature = "allocator-api2-03")]
pub use allocator_api::allocator_api2_03;
#[cfg(feature = "allocator-api2-04")]
pub use allocator_api::allocator_api2_04;
#[cfg(feature = "nightly")]
pub use allocator_api::nightly;
#[doc(inline)]
pub use arena::Arena;
pub use base::allocator::{BlockAllocator, Owns};
pub use base::full::{Cause, Full};
pub use base::growth::Growth;
pub use base::resettable::{Measured, Resettable};
pub use base::source::{Buffer, Chunk, DefaultHeap, Null, PinSource, Source};
pub use base::statistics::{Statistics, Validity};
#[cfg(target_has_atomic = "64")]
pub use counted_pool::ArcPool;
pub use counted_pool::{CountedPool, RcPool};
#[cfg(feature = "alloc")]
pub use debug::checked::Checked;
#[cfg(feature = "std")]
pub use debug::fault::print_faults;
pub use debug::fault::{panic_at_faults, Fault, FaultKind, FaultyBlock};
pub use hooks::{Hooks, NoHooks};
pub use multipool::Multipool;
#[doc(inline)]
pub use object_pool::ObjectPool;
#[cfg(all(
    feature = "std",
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"),
))]
pub use os::{Huge, Pages, PagesOptions, SystemError};
#[cfg(all(
    feature = "std",
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"),
))]
pub use persist::{layout_hash, FileAccess, FileArena, FileOptions, FileStatistics, SharedMemory};
pub use pool::Pool;
#[doc(inline)]
pub use secondary_map::{SecondaryMap, SparseSecondaryMap};
#[cfg(feature = "std")]
pub use shared_arena::SharedArena;
#[cfg(target_has_atomic = "64")]
#[doc(inline)]
pub use shared_slot_map::SharedSlotMap;
pub use slot_map::key::{Bits, Key, Key32, Key64};
pub use slot_map::keyed::Join;
#[doc(inline)]
pub use slot_map::SlotMap;
#[cfg(feature = "std")]
pub use threads::lock::StdLock;
pub use threads::lock::{DefaultLock, Lock, Spin, SpinGuard};
#[doc(inline)]
pub use typed_arena::TypedArena;

#[doc(hidden)]
pub mod __key {
    pub use crate::slot_map::key::{Bits, Select, Width};
    #[cfg(feature = "serde")]
    pub use serde;
}
