//! Handles to objects of pools: [`Box`], [`OwnedBox`], [`Rc`], [`Arc`] and [`Weak`].
//!
//! A handle is one pointer wide, and so is an `Option` of a handle. Only an `OwnedBox` is two
//! pointers wide. The address of an object determines its pool, so a handle need not store the
//! pool.

mod boxed;
mod counts;
mod shared;
mod unsize;

pub use boxed::Box;
pub(crate) use boxed::{DropsObject, FreesSlot};
#[cfg(target_has_atomic = "64")]
pub use counts::Atomic;
pub use counts::{Counts, Local};
#[cfg(target_has_atomic = "64")]
pub use shared::Arc;
pub(crate) use shared::Slot;
pub use shared::{Handle, Rc, Weak};

#[cfg(feature = "alloc")]
pub use crate::object_pool::OwnedBox;
