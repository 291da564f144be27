//! Allocators that a program chooses for one part of itself.
#![no_std]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod allocator;
mod bits;
mod full;
mod growth;
mod key;
mod keyed;
pub mod secondary_map;
#[cfg(target_has_atomic = "64")]
pub mod shared_slot_map;
pub mod slot_map;
mod source;
mod statistics;
pub mod sync;

pub use allocator::{BlockAllocator, Owning};
pub use full::Full;
pub use growth::Growth;
pub use key::{Bits as KeyBits, Key, Key32, Key64};
pub use secondary_map::{SecondaryMap, SparseSecondaryMap};
#[cfg(target_has_atomic = "64")]
pub use shared_slot_map::SharedSlotMap;
pub use slot_map::SlotMap;
pub use source::{Buffer, Chunk, DefaultHeap, Null, Source};
pub use statistics::{Statistics, Validity};

#[doc(hidden)]
pub mod __key {
    pub use crate::key::{Bits, Select, Width};
    #[cfg(feature = "serde")]
    pub use serde;
}
