//! Allocators that a program chooses for one part of itself: arenas, pools of objects with
//! handles, slot maps, multipools. No C++, no dependencies, `no_std`.
//!
//! | what is allocated | take |
//! |---|---|
//! | everything dies together | [`Arena`]; one type, dropped: [`TypedArena`]; threads: `SharedArena` |
//! | objects that come and go, with owners | [`ObjectPool`], [`RcPool`], `ArcPool` |
//! | objects that others refer to and that may be gone | [`SlotMap`] |
//! | many sizes, freed one by one | [`Multipool`]; over an arena to end all at once |
//! | blocks of one layout | [`Pool`] |
//!
//! ```
//! use mallard::{Arena, ObjectPool};
//! let mut scratch = Arena::new(); // takes nothing yet
//! let name = scratch.alloc_str("all of this is freed at once");
//! assert_eq!(name.len(), 28);
//! scratch.reset(); // and the memory kept
//!
//! let points: ObjectPool<(i32, i32)> = ObjectPool::new();
//! let corner = points.make((3, 4)); // a box: one pointer, gives itself back
//! assert_eq!(corner.0, 3);
//! ```
//!
//! Who may call a pool at the same time is a type: [`sync`]. Where memory comes from is a
//! [`Source`], how much at a time a [`Growth`]. Around any allocator: [`Counted`], [`Limited`],
//! [`Failing`], [`Traced`], [`Fallback`], [`BySize`], [`Synchronized`], `Checked`.
//!
//! Features: `std` (default); `alloc` without it; `allocator-api2-02`, `-03`, `-04` and
//! `nightly`, so that `Vec`, `Box` and hashbrown work in these allocators; `serde`; `tracing`.
#![no_std]
#![cfg_attr(feature = "nightly", feature(allocator_api))]
#![cfg_attr(docsrs, feature(doc_cfg))] // docs.rs says which feature each item needs

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod adaptor;
mod allocator;
pub mod arena;
mod bits;
#[cfg(any(
    feature = "allocator-api2-02",
    feature = "allocator-api2-03",
    feature = "allocator-api2-04",
    feature = "nightly",
))]
mod bridge;
mod by;
mod by_size;
#[cfg(feature = "alloc")]
mod checked;
mod counted;
mod counted_pool;
mod failing;
mod fallback;
mod fault;
mod full;
mod growth;
#[cfg(all(doctest, feature = "std"))]
mod guide;
pub mod handles;
mod hooks;
mod key;
mod keyed;
mod limited;
#[cfg_attr(not(target_has_atomic = "64"), allow(dead_code))] // nothing else needs one there
mod lock;
mod multipool;
pub mod object_pool;
mod pool;
pub mod secondary_map;
#[cfg(feature = "std")]
mod shared_arena;
#[cfg(target_has_atomic = "64")]
pub mod shared_slot_map;
pub mod size_class;
pub mod slot_map;
mod source;
mod statistics;
pub mod sync;
mod synchronized;
#[cfg(all(
    feature = "std",
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"),
))]
mod system;
#[cfg(target_has_atomic = "64")]
mod tagged_stack;
#[cfg(feature = "std")]
mod threads;
mod traced;
pub mod typed_arena;
mod unsize;

pub use adaptor::{Measured, Resettable};
pub use allocator::{BlockAllocator, Owning};
#[doc(inline)]
pub use arena::Arena;
#[cfg(feature = "allocator-api2-02")]
pub use bridge::allocator_api2_02;
#[cfg(feature = "allocator-api2-03")]
pub use bridge::allocator_api2_03;
#[cfg(feature = "allocator-api2-04")]
pub use bridge::allocator_api2_04;
#[cfg(feature = "nightly")]
pub use bridge::nightly;
pub use by::By;
pub use by_size::BySize;
#[cfg(feature = "alloc")]
pub use checked::Checked;
pub use counted::{CallCounts, Counted, Stretch};
#[cfg(target_has_atomic = "64")]
pub use counted_pool::ArcPool;
pub use counted_pool::{CountedPool, RcPool};
pub use failing::{for_each_failure, Failing, RefusalRule, Refusals};
pub use fallback::Fallback;
#[cfg(feature = "std")]
pub use fault::print_faults;
pub use fault::{panic_at_faults, Fault, FaultKind, FaultyBlock};
pub use full::{Cause, Full};
pub use growth::Growth;
pub use hooks::{Hooks, NoHooks};
pub use key::{Bits, Key, Key32, Key64};
pub use keyed::Join;
pub use limited::{Budget, Limited};
pub use multipool::Multipool;
#[doc(inline)]
pub use object_pool::ObjectPool;
pub use pool::Pool;
#[doc(inline)]
pub use secondary_map::{SecondaryMap, SparseSecondaryMap};
#[cfg(feature = "std")]
pub use shared_arena::SharedArena;
#[cfg(target_has_atomic = "64")]
#[doc(inline)]
pub use shared_slot_map::SharedSlotMap;
#[doc(inline)]
pub use slot_map::SlotMap;
pub use source::{Buffer, Chunk, DefaultHeap, Null, Source};
pub use statistics::{Statistics, Validity};
#[cfg(feature = "std")]
pub use synchronized::StdLock;
pub use synchronized::{DefaultLock, Lock, Spin, SpinGuard, Synchronized};
#[cfg(all(
    feature = "std",
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"),
))]
pub use system::*;
#[cfg(feature = "tracing")]
pub use traced::TracingEvents;
pub use traced::{Event, Tell, Traced};
#[doc(inline)]
pub use typed_arena::TypedArena;

#[doc(hidden)]
pub mod __key {
    pub use crate::key::{Bits, Select, Width};
    #[cfg(feature = "serde")]
    pub use serde;
}
